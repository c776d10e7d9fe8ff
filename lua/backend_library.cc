// What a config says of remote backends, and of pools: sluice.backend{}, sluice.pool(list, options).
#include <algorithm>

#include "lua/backend_options.h"
#include "lua/box.h"
#include "lua/draft.h"
#include "lua/fields.h"
#include "proxy/module_call.h"

namespace sluice::lua {
namespace {

constexpr std::size_t kLabelBytes = 255;
constexpr std::uint32_t kMostWeight = 100;
constexpr std::string_view kDownLabel = "_down_";   // "HOST:PORT _down_"
constexpr std::size_t kStopBytes = 16;

bool is_label(std::string_view text) {
  return !text.empty() && text.size() <= kLabelBytes &&
         std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) > 0x20 && static_cast<unsigned char>(c) < 0x7f; });
}

// "HOST:PORT", "HOST:PORT LABEL", "HOST:PORT _down_".
std::optional<std::string> read_line(std::string_view text, BackendDraft& out) {
  const std::size_t space = text.find(' ');
  Result<proxy::BackendPlace, std::string> place = proxy::read_place(text.substr(0, space));
  if (!place) return std::move(place).error();
  out.spec.place = *std::move(place);
  if (space == text.npos) return std::nullopt;
  std::string_view label = text.substr(space + 1);
  while (!label.empty() && label.front() == ' ') label.remove_prefix(1);
  if (label == kDownLabel) {
    out.spec.options.down = true;
    return std::nullopt;
  }
  if (!is_label(label)) return "a backend's label is a word behind its place, \"HOST:PORT LABEL\", got \"" + std::string(text) + "\"";
  out.spec.label = label;
  return std::nullopt;
}

// Fields of one backend at the top of the stack, under the name `field`. `host` and `port` are put together behind it.
struct Parts {
  std::string host;
  double port = 0;
  bool has_host = false, has_port = false, has_line = false;
};

std::optional<std::string> read_field(lua_State* L, std::string_view field, BackendDraft& out, Parts& parts) {
  static const char* const kOwn[] = {"address", "host", "port", "label", "name", "host_header", "down", "weight"};
  const auto text = [&](std::string& into) -> std::optional<std::string> {
    if (lua_type(L, -1) != LUA_TSTRING || text_at(L, -1).empty()) return "`" + std::string(field) + "` of a backend is a string that is not empty";
    into = text_at(L, -1);
    return std::nullopt;
  };
  if (is_backend_option(field)) return read_backend_option(L, field, field, out.spec.options);
  if (field == "address") {
    std::string line;
    if (auto why = text(line)) return why;
    parts.has_line = true;
    return read_line(line, out);
  }
  if (field == "host") {
    parts.has_host = true;
    return text(parts.host);
  }
  if (field == "port") {
    parts.port = lua_type(L, -1) == LUA_TNUMBER ? lua_tonumber(L, -1) : 0;
    if (!(parts.port >= 1 && parts.port <= 65535) || parts.port != static_cast<int>(parts.port)) return std::string("`port` of a backend is a number from 1 to 65535");
    parts.has_port = true;
    return std::nullopt;
  }
  if (field == "label" || field == "name") {
    if (lua_type(L, -1) != LUA_TSTRING || !is_label(text_at(L, -1))) return std::string("`label` of a backend is a word of 1 to 255 bytes");
    out.spec.label = text_at(L, -1);
    return std::nullopt;
  }
  if (field == "host_header") {
    if (auto why = text(out.spec.host_field)) return why;
    if (out.spec.host_field.find_first_of(" \t,/@") != std::string::npos || !valid_field_value(out.spec.host_field))
      return std::string("`host_header` of a backend is a name such as \"example.com\"");
    return std::nullopt;
  }
  if (field == "down") {
    if (!lua_isboolean(L, -1)) return std::string("`down` of a backend is true or false");
    out.spec.options.down = out.spec.options.down || lua_toboolean(L, -1) != 0;
    return std::nullopt;
  }
  if (field == "weight") {
    const double n = lua_type(L, -1) == LUA_TNUMBER ? lua_tonumber(L, -1) : 0;
    if (!(n >= 1 && n <= kMostWeight) || n != static_cast<int>(n)) return std::string("`weight` of a backend is a whole number from 1 to 100");
    out.weight = static_cast<std::uint32_t>(n);
    return std::nullopt;
  }
  std::vector<std::string> known = backend_option_names();
  known.insert(known.end(), std::begin(kOwn), std::end(kOwn));
  const std::string near = nearest(field, known);
  return "a backend has no `" + std::string(field) + "`" + (near.empty() ? "" : "; did you mean `" + near + "`?");
}

// A string, or { "HOST:PORT LABEL", option = ... }, at `index`; `defaults` at the index behind it, a table of options or nil.
std::optional<std::string> read_backend(lua_State* L, int index, int defaults, BackendDraft& out, std::string& field) {
  Parts parts;
  if (lua_istable(L, defaults)) {
    lua_pushnil(L);
    while (lua_next(L, defaults) != 0) {
      field = lua_type(L, -2) == LUA_TSTRING ? std::string(text_at(L, -2)) : std::string();
      if (!is_backend_option(field)) {
        const std::string near = nearest(field, backend_option_names());
        return "`backend_options` have no `" + field + "`" + (near.empty() ? "" : "; did you mean `" + near + "`?");
      }
      if (auto why = read_backend_option(L, field, field, out.spec.options)) return why;
      lua_pop(L, 1);
    }
  } else if (!lua_isnil(L, defaults)) {
    field = "backend_options";
    return std::string("`backend_options` are a table");
  }
  if (lua_type(L, index) == LUA_TSTRING) {
    parts.has_line = true;
    if (auto why = read_line(text_at(L, index), out)) return why;
  } else if (lua_istable(L, index)) {
    lua_pushnil(L);
    while (lua_next(L, index) != 0) {
      const bool first = lua_type(L, -2) == LUA_TNUMBER && lua_tonumber(L, -2) == 1;
      field = first ? "address" : lua_type(L, -2) == LUA_TSTRING ? std::string(text_at(L, -2)) : std::string();
      if (auto why = read_field(L, field, out, parts)) return why;
      lua_pop(L, 1);
    }
  } else {
    return std::string("a backend is \"HOST:PORT\" or a table such as { host = \"10.0.0.1\", port = 8767 }, got a ") + luaL_typename(L, index);
  }
  field.clear();
  if (parts.has_line && (parts.has_host || parts.has_port)) return std::string("a backend says its place once: \"HOST:PORT\", or `host` and `port`");
  if (!parts.has_line) {
    if (!parts.has_host) return std::string("a backend needs a place: \"HOST:PORT\", \"unix:PATH\", or `host` and `port`");
    const bool is_path = parts.host.starts_with("unix:");
    if (is_path == parts.has_port) return std::string(is_path ? "a backend at a Unix socket has no `port`" : "a backend with a `host` needs a `port`");
    const bool six = !is_path && parts.host.find(':') != std::string::npos && parts.host[0] != '[';
    const std::string whole = is_path ? parts.host : (six ? "[" + parts.host + "]" : parts.host) + ":" + std::to_string(static_cast<int>(parts.port));
    Result<proxy::BackendPlace, std::string> place = proxy::read_place(whole);
    if (!place) return std::move(place).error();
    out.spec.place = *std::move(place);
  }
  if (out.spec.label.empty()) out.spec.label = out.spec.place.text();
  if (out.spec.options.down) return std::nullopt;
  Result<std::vector<proxy::SocketAddress>, std::string> addresses = proxy::resolve(out.spec.place);
  if (!addresses) return "backend `" + out.spec.label + "`: " + addresses.error();
  out.spec.addresses = *std::move(addresses);
  return std::nullopt;
}

// core.backend(text or table [, options]): a description, or nil, the field and what is wrong.
int backend(lua_State* L) {
  Draft& d = draft(L, "backends");
  lua_settop(L, 2);
  {
    auto made = std::make_unique<BackendDraft>();
    made->spec.options = d.settings.backend;
    std::string field;
    if (const std::optional<std::string> why = read_backend(L, 1, 2, *made, field)) {
      lua_settop(L, 0);
      lua_pushnil(L);
      push(L, field);
      push(L, *why);
      return 3;
    }
    d.backends.push_back(std::move(made));
    push_box(L, Kind::backend_description, d.backends.back().get());
  }
  return 1;
}

// sluice.backend{...}: the same, raising.
int backend_or_raise(lua_State* L) {
  lua_settop(L, 1);
  if (backend(L) == 1) return 1;
  return raise(L, text_at(L, -1));
}

// What a double holds exactly.
bool is_seed(double n) { return n >= 0 && n <= 9007199254740992.0 && n == static_cast<double>(static_cast<std::uint64_t>(n)); }

struct PoolOptions {
  std::string name, prefix;
  proxy::BackendPoolOptions of_keys;
  bool of_backends = false;      // one that pools of stores do not have was given
};

std::optional<std::string> read_pool_option(lua_State* L, std::string_view field, PoolOptions& out, std::string& filter, std::string& filter_conf) {
  static const std::vector<std::string> kKnown = {"name", "seed", "hash", "dist", "filter", "filter_conf", "beprefix"};
  const bool is_text = lua_type(L, -1) == LUA_TSTRING;
  const std::string_view text = is_text ? text_at(L, -1) : std::string_view();
  if (field == "name") {
    if (!is_text || text.empty()) return std::string("`name` of a pool is a string");
    out.name = text;
  } else if (field == "seed") {
    if (lua_type(L, -1) != LUA_TNUMBER || !is_seed(lua_tonumber(L, -1))) return std::string("`seed` of a pool is a whole number from 0");
    out.of_keys.seed = static_cast<std::uint64_t>(lua_tonumber(L, -1));
  } else if (field == "hash") {
    if (text != "xxh3") return std::string("`hash` of a pool is \"xxh3\"");
  } else if (field == "dist") {
    if (text != "jump" && text != "ring") return std::string("`dist` of a pool is \"jump\" or \"ring\"");
    out.of_keys.distribution = text == "ring" ? proxy::Distribution::ring : proxy::Distribution::jump;
    out.of_backends = out.of_backends || text == "ring";
  } else if (field == "filter") {
    if (text != "stop" && text != "tags") return std::string("`filter` of a pool is \"stop\" or \"tags\"");
    filter = text;
  } else if (field == "filter_conf") {
    if (text.empty() || text.size() > kStopBytes) return std::string("`filter_conf` of a pool is a string of 1 to 16 bytes");
    filter_conf = text;
  } else if (field == "beprefix") {
    if (!is_label(text)) return std::string("`beprefix` of a pool is a word");
    out.prefix = text;
    out.of_backends = true;
  } else {
    const std::string near = nearest(field, kKnown);
    return "a pool has no option `" + std::string(field) + "`" + (near.empty() ? "" : "; did you mean `" + near + "`?");
  }
  return std::nullopt;
}

std::optional<std::string> read_pool_options(lua_State* L, int index, PoolOptions& out) {
  if (lua_isnil(L, index)) return std::nullopt;
  if (!lua_istable(L, index)) return std::string("a pool's options are a table");
  std::string filter, conf;
  lua_pushnil(L);
  while (lua_next(L, index) != 0) {
    const std::string_view field = lua_type(L, -2) == LUA_TSTRING ? text_at(L, -2) : std::string_view();
    if (auto why = read_pool_option(L, field, out, filter, conf)) return why;
    lua_pop(L, 1);
  }
  if (filter.empty() != conf.empty()) return std::string("a pool's `filter` and `filter_conf` go together");
  if (filter == "tags" && conf.size() != 2) return std::string("with filter = \"tags\" `filter_conf` is two characters, such as \"{}\"");
  out.of_keys.filter.kind = filter.empty() ? proxy::KeyFilter::Kind::whole : filter == "stop" ? proxy::KeyFilter::Kind::stop : proxy::KeyFilter::Kind::tags;
  out.of_keys.filter.text = conf;
  return std::nullopt;
}

std::optional<std::string> make_remote(Draft& d, const std::vector<const BackendDraft*>& members, const PoolOptions& options, PoolSpec& spec) {
  std::vector<proxy::BackendPtr> backends;
  std::vector<std::uint32_t> weights;
  for (const BackendDraft* m : members) {
    proxy::BackendSpec its = m->spec;
    its.prefix = options.prefix;
    const std::string name = its.name();
    auto stats = d.commons->backend_stats.find_or_make(name, [] { return std::make_shared<proxy::BackendStats>(); });
    backends.push_back(d.commons->backends.find_or_make(its.key(), [&] { return std::make_shared<proxy::Backend>(its, stats, d.home.log); }));
    weights.push_back(m->weight);
  }
  Result<proxy::BackendPool, std::string> pool = proxy::BackendPool::make(spec.name, std::move(backends), options.of_keys, std::move(weights));
  if (!pool) return std::move(pool).error();
  spec.remote = std::make_shared<const proxy::BackendPool>(*std::move(pool));
  return std::nullopt;
}

std::optional<std::string> make_pool(lua_State* L, Draft& d, PoolSpec& spec) {
  PoolOptions options;
  if (auto why = read_pool_options(L, 2, options)) return why;
  spec.name = options.name.empty() ? "pool" + std::to_string(d.pools.size() + 1) : options.name;
  spec.seed = options.of_keys.seed;
  spec.filter = options.of_keys.filter;
  std::vector<const BackendDraft*> remote;
  const int n = static_cast<int>(lua_objlen(L, 1));
  for (int i = 1; i <= n; ++i) {
    lua_rawgeti(L, 1, i);
    const auto* store = find_boxed<std::string>(L, -1, Kind::store_description);
    const auto* far = find_boxed<BackendDraft>(L, -1, Kind::backend_description);
    if (!store && !far) return std::string("a pool is made of stores, what sluice.store{} returned, or of backends, what sluice.backend{} returned");
    if (store && std::find(spec.stores.begin(), spec.stores.end(), *store) != spec.stores.end()) return "store `" + *store + "` is in the pool twice";
    if (store) spec.stores.push_back(*store);
    else remote.push_back(far);
    lua_pop(L, 1);
  }
  if (n == 0) return std::string("a pool without stores or backends");
  if (remote.empty()) {
    if (options.of_backends) return std::string("a ring and `beprefix` are of pools of backends");
    return std::nullopt;
  }
  if (!spec.stores.empty()) return std::string("a pool has stores or backends, not both: route_failover and others take one of each");
  return make_remote(d, remote, options, spec);
}

// core.pool({stores or backends}, {name=, seed=, ...}): a description, or nil and what is wrong.
int pool(lua_State* L) {
  Draft& d = draft(L, "pools");
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_settop(L, 2);
  {
    PoolSpec spec;
    if (const std::optional<std::string> why = make_pool(L, d, spec)) {
      lua_settop(L, 0);
      lua_pushnil(L);
      push(L, *why);
      return 2;
    }
    d.indices.push_back(std::make_unique<std::uint32_t>(static_cast<std::uint32_t>(d.pools.size())));
    d.pools.push_back(std::move(spec));
    push_box(L, Kind::pool_description, d.indices.back().get());
  }
  return 1;
}

// sluice.pool(...): the same, raising.
int pool_or_raise(lua_State* L) {
  if (pool(L) == 1) return 1;
  return raise(L, text_at(L, -1));
}

}  // namespace

void open_backends(lua_State* L, Draft& d) {
  const StackGuard guard(L);
  static constexpr luaL_Reg kCore[] = {{"backend", backend}, {"pool", pool}, {nullptr, nullptr}};
  static constexpr luaL_Reg kPublic[] = {{"backend", backend_or_raise}, {"pool", pool_or_raise}, {nullptr, nullptr}};
  push_core(L);
  set_functions(L, kCore, &d);
  lua_getglobal(L, "sluice");
  set_functions(L, kPublic, &d);
}

}  // namespace sluice::lua
