// The config stage: what a file may declare, and how it becomes plain data.
#include "lua/box.h"
#include "lua/draft.h"
#include "lua/inspector.h"
#include "lua/limiter_api.h"
#include "lua/settings_reader.h"
#include "lua/tls_reader.h"
#include "lua/unsandboxed.h"
#include "proxy/module_call.h"

namespace sluice::lua {
namespace {

constexpr std::size_t kMostStats = 1000;
constexpr std::uint64_t kMostShared = std::uint64_t{64} << 30;

// "FILE:LINE" of the declaration when it says where to listen: given behind the table, or the caller's.
void note_listen_place(lua_State* L, Draft& d) {
  const StackGuard guard(L);
  bool says = false;
  for (const char* name : {"listen", "host", "port"}) {
    lua_getfield(L, 1, name);
    says = says || !lua_isnil(L, -1);
  }
  lua_Debug caller;
  std::string place;
  if (lua_type(L, 3) == LUA_TSTRING) place = std::string(text_at(L, 3)) + ":" + std::to_string(lua_tointeger(L, 4));
  else if (lua_getstack(L, 1, &caller) != 0 && lua_getinfo(L, "Sl", &caller) != 0) place = caller.short_src + (":" + std::to_string(caller.currentline));
  if (says && !place.empty()) d.settings.listen_place = d.folder + place;
}

// core.settings(t [, line [, file, line of `listen`]]): nothing, or the name of a setting and what is wrong with it. `line`:
// where the file says it.
int settings(lua_State* L) {
  Draft& d = draft(L, "settings");
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_settop(L, 4);
  note_listen_place(L, d);
  {
    if (const std::optional<SettingProblem> problem = read_settings(L, 1, d.settings)) {
      push(L, problem->name);
      push(L, problem->sentence);
      return 2;
    }
    const int line = lua_isnumber(L, 2) ? static_cast<int>(lua_tointeger(L, 2)) : 1;
    place_tls(d.settings, d.folder, d.source->file, d.source->text, line);
  }
  if (!d.settings.lua_sandbox) open_unsandboxed(L);
  return 0;
}

std::string resolve(const Draft& d, std::string_view path) {
  if (!path.empty() && path[0] == '/') return std::string(path);
  return d.folder + std::string(path);
}

// Reads store{name=, module=, path=, shards=, fuel=, quota=, map=, allow_destroy=} at index 1. `why` and `field` when it is wrong.
bool read_store(lua_State* L, const Draft& d, proxy::StoreSpec& s, std::string& field, std::string& why) {
  static const char* const kFields[] = {"name", "module", "path", "shards", "fuel", "quota", "map", "allow_destroy"};
  lua_pushnil(L);
  while (lua_next(L, 1) != 0) {
    field = lua_type(L, -2) == LUA_TSTRING ? std::string(text_at(L, -2)) : std::string();
    const auto text = [&](std::string& into) {
      if (lua_type(L, -1) != LUA_TSTRING || text_at(L, -1).empty()) {
        why = "`" + field + "` of a store is a string that is not empty";
        return false;
      }
      into = text_at(L, -1);
      return true;
    };
    const auto number = [&](double least, double most, bool size) -> std::optional<std::uint64_t> {
      std::optional<double> n;
      if (lua_type(L, -1) == LUA_TNUMBER) n = lua_tonumber(L, -1);
      else if (size && lua_type(L, -1) == LUA_TSTRING)
        if (const auto bytes = read_size(text_at(L, -1))) n = static_cast<double>(*bytes);
      if (n && *n >= least && *n <= most && *n == static_cast<double>(static_cast<std::uint64_t>(*n)))
        return static_cast<std::uint64_t>(*n);
      why = "`" + field + "` of a store is " + (size ? "a size such as \"64MiB\"" : "a whole number") + " from " +
            std::to_string(static_cast<std::uint64_t>(least)) + " to " + std::to_string(static_cast<std::uint64_t>(most));
      return std::nullopt;
    };
    bool good = true;
    std::string path;
    if (field == "name") {
      good = text(s.name);
    } else if (field == "module") {
      if ((good = text(path))) s.module_path = resolve(d, path);
    } else if (field == "path") {
      if ((good = text(path))) s.path = resolve(d, path);
    } else if (field == "shards") {
      const auto n = number(1, 64, false);
      if ((good = n.has_value())) s.shards = static_cast<std::uint32_t>(*n);
    } else if (field == "fuel") {
      const auto n = number(1000, 1e12, false);
      if ((good = n.has_value())) s.fuel = *n;
    } else if (field == "quota") {
      const auto n = number(0, 1e15, true);
      if ((good = n.has_value())) s.quota_bytes = *n;
    } else if (field == "map") {
      const auto n = number(0, 1e15, true);
      if ((good = n.has_value())) s.map_bytes = *n;
    } else if (field == "allow_destroy") {
      good = lua_type(L, -1) == LUA_TBOOLEAN;
      if (good) s.allow_destroy = lua_toboolean(L, -1) != 0;
      else why = "`allow_destroy` of a store is true or false";
    } else {
      const std::string near = nearest(field, {std::begin(kFields), std::end(kFields)});
      why = "a store has no `" + field + "`" + (near.empty() ? "" : "; did you mean `" + near + "`?");
      good = false;
    }
    if (!good) return false;
    lua_pop(L, 1);
  }
  field = s.name;
  if (!proxy::is_name(s.name)) why = "`" + s.name + "` is not a store's name: 1 to 64 of A-Z a-z 0-9 - _";
  else if (s.name == "views" || s.name == "inputs" || s.name == "objects") why = "no store is called `" + s.name + "`: paths begin with that";
  else if (s.module_path.empty()) why = "store `" + s.name + "` has no `module`";
  else if (s.path.empty()) why = "store `" + s.name + "` has no `path`";
  for (const proxy::StoreSpec& other : d.stores) {
    if (other.name == s.name) why = "store `" + s.name + "` is declared twice";
    else if (other.path == s.path) why = "stores `" + other.name + "` and `" + s.name + "` have the same path";
  }
  return why.empty();
}

// core.store(t [, file, line]): a description, or nil, the field and what is wrong.
int store(lua_State* L) {
  Draft& d = draft(L, "stores");
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_settop(L, 3);
  if (lua_isnil(L, 2)) {
    lua_Debug caller;
    if (lua_getstack(L, 1, &caller) == 0 || lua_getinfo(L, "Sl", &caller) == 0) return luaL_error(L, "sluice.store: no caller");
    lua_pushstring(L, caller.short_src);
    lua_replace(L, 2);
    lua_pushinteger(L, caller.currentline);
    lua_replace(L, 3);
  }
  bool good = false;
  {
    proxy::StoreSpec spec;
    std::string field, why;
    spec.place = d.folder + std::string(text_at(L, 2)) + ":" + std::to_string(lua_tointeger(L, 3));
    good = read_store(L, d, spec, field, why);
    lua_settop(L, 1);
    if (good) {
      d.names.push_back(std::make_unique<std::string>(spec.name));
      d.stores.push_back(std::move(spec));
      push_box(L, Kind::store_description, d.names.back().get());
    } else {
      lua_pushnil(L);
      push(L, field);
      push(L, why);
    }
  }
  return good ? 1 : 3;
}

// sluice.store{...}: the same, raising.
int store_or_raise(lua_State* L) {
  if (store(L) == 1) return 1;
  return raise(L, text_at(L, -1));
}

// core.shared(name, size): nothing, or what is wrong.
int shared(lua_State* L) {
  Draft& d = draft(L, "shared");
  luaL_checkstring(L, 1);
  lua_settop(L, 2);
  {
    std::string why;
    SharedSpec spec;
    spec.name = text_at(L, 1);
    std::optional<std::uint64_t> bytes;
    if (lua_type(L, 2) == LUA_TNUMBER && lua_tonumber(L, 2) >= 0 && lua_tonumber(L, 2) < 1e15)
      bytes = static_cast<std::uint64_t>(lua_tonumber(L, 2));
    else if (lua_type(L, 2) == LUA_TSTRING) bytes = read_size(text_at(L, 2));
    if (!proxy::is_name(spec.name)) why = "`" + spec.name + "` is not a shared table's name: 1 to 64 of A-Z a-z 0-9 - _";
    else if (!bytes || *bytes < SharedTable::kLeastBytes || *bytes > kMostShared)
      why = "shared table `" + spec.name + "` needs a size from \"4KiB\" to \"64GiB\"";
    for (const SharedSpec& other : d.shared)
      if (other.name == spec.name) why = "shared table `" + spec.name + "` is declared twice";
    if (!why.empty()) {
      push(L, why);
      return 1;
    }
    spec.bytes = *bytes;
    spec.table = d.commons->shared.find_or_make(spec.name, [&] { return std::make_shared<SharedTable>(*bytes); });
    spec.table->make_buckets_for(*bytes);   // should it have been declared smaller so far
    d.shared.push_back(std::move(spec));
  }
  add_shared(L, d.shared.back());
  return 0;
}

// core.stat(name, kind): nothing, or what is wrong.
int stat(lua_State* L) {
  Draft& d = draft(L, "stats");
  luaL_checkstring(L, 1);
  lua_settop(L, 2);
  {
    std::string why;
    const std::string name(text_at(L, 1));
    const std::string_view kind = lua_type(L, 2) == LUA_TSTRING ? text_at(L, 2) : std::string_view();
    if (!proxy::is_name(name)) why = "`" + name + "` is not the name of a counter: 1 to 64 of A-Z a-z 0-9 - _";
    else if (kind != "counter" && kind != "histogram") why = "`" + name + "` is \"counter\" or \"histogram\"";
    else if (d.stats.size() == kMostStats) why = "more than 1000 counters and histograms";
    for (const auto& other : d.stats)
      if (other->name() == name) why = "`" + name + "` is counted twice";
    if (!why.empty()) {
      push(L, why);
      return 1;
    }
    const auto which = kind == "counter" ? UserStat::Kind::counter : UserStat::Kind::histogram;
    d.stats.push_back(d.commons->stats.find_or_make(name + " " + std::string(kind), [&] { return std::make_shared<UserStat>(name, which); }));
  }
  add_stat(L, *d.stats.back(), UserStat::kControl);
  return 0;
}

// sluice.add_stat(name [, kind]): the same, raising.
int add_stat_or_raise(lua_State* L) {
  luaL_checkstring(L, 1);
  lua_settop(L, 2);
  if (lua_isnil(L, 2)) {
    lua_pushliteral(L, "counter");
    lua_replace(L, 2);
  }
  if (stat(L) == 0) return 0;
  return raise(L, text_at(L, -1));
}

// sluice.ratelim_tbf{...}: what a file makes for its routes, it makes here too; crons may ask it. Raises.
int ratelim(lua_State* L) {
  Draft& d = draft(L, "sluice.ratelim_tbf");
  luaL_checktype(L, 1, LUA_TTABLE);
  {
    LimitSpec spec;
    std::string name, why;
    if (read_limit(L, 1, spec, name, why)) {
      d.own_limiters.push_back(std::make_shared<Limiter>(spec, false));
      push_limiter(L, *d.own_limiters.back());
      return 1;
    }
    push(L, "sluice.ratelim_tbf: " + why);
  }
  return raise(L, text_at(L, -1));
}

// sluice.ratelim_global_tbf{...}: a description; sluice_config_routes() gets the limiter in its place. Raises.
int ratelim_global(lua_State* L) {
  Draft& d = draft(L, "sluice.ratelim_global_tbf");
  luaL_checktype(L, 1, LUA_TTABLE);
  std::string why;
  {
    LimitSpec spec;
    std::string name = "#" + std::to_string(d.limiters.size());
    if (read_limit(L, 1, spec, name, why)) {
      d.indices.push_back(std::make_unique<std::uint32_t>(static_cast<std::uint32_t>(d.limiters.size())));
      d.limiters.push_back(global_limiter(*d.commons, name, spec));
      push_box(L, Kind::limiter_description, d.indices.back().get());
      return 1;
    }
    push(L, "sluice.ratelim_global_tbf: " + why);
  }
  return raise(L, text_at(L, -1));
}

// sluice.settings{...}: for the lower layer.
int settings_or_raise(lua_State* L) {
  if (settings(L) == 0) return 0;
  return raise(L, text_at(L, -1));
}

int no_methods(lua_State* L) { return luaL_error(L, "a description has no methods here; routes use it"); }

}  // namespace

void open_config_stage(lua_State* L, Draft& d) {
  const StackGuard guard(L);
  static constexpr luaL_Reg kNone[] = {{"enqueue", no_methods}, {nullptr, nullptr}};
  static constexpr luaL_Reg kCore[] = {{"settings", settings}, {"store", store}, {"shared", shared}, {"stat", stat}, {nullptr, nullptr}};
  static constexpr luaL_Reg kPublic[] = {{"store", store_or_raise}, {"settings", settings_or_raise}, {"ratelim_tbf", ratelim}, {"ratelim_global_tbf", ratelim_global},
                                         {"add_stat", add_stat_or_raise}, {nullptr, nullptr}};
  make_class(L, Kind::store_description, "sluice.store", kNone);
  make_class(L, Kind::pool_description, "sluice.pool", kNone);
  make_class(L, Kind::backend_description, "sluice.backend", kNone);
  make_class(L, Kind::limiter_description, "sluice.ratelim", kNone);
  open_limiters(L, d.home);
  open_inspectors(L);
  open_mutators(L);
  open_backends(L, d);
  push_core(L);
  set_functions(L, kCore, &d);
  lua_pushliteral(L, "config");
  lua_setfield(L, -2, "stage");
  lua_getglobal(L, "sluice");
  set_functions(L, kPublic, &d);
}

}  // namespace sluice::lua
