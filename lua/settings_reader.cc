#include "lua/settings_reader.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <variant>

#include "lua/backend_options.h"
#include "lua/tls_reader.h"
#include "lua/value.h"
#include "proxy/log.h"
#include "proxy/module_call.h"

namespace sluice::lua {
namespace {

using proxy::Settings;

enum class Unit : std::uint8_t { count, bytes, seconds, flag, text, listen, control };

struct Setting {
  std::string_view name;
  Unit unit;
  std::variant<std::monostate, std::uint16_t Settings::*, std::uint32_t Settings::*, std::uint64_t Settings::*,
               bool Settings::*, std::string Settings::*> field;
  double least = 0, most = 0;    // in the unit: counts, bytes or seconds
};

constexpr std::string_view kBackend = "backend_";   // before the name of an option of remote backends
constexpr double kGiB = 1024.0 * 1024 * 1024;

constexpr Setting kSettings[] = {
    {"listen", Unit::listen, std::monostate{}, 0, 0},
    {"host", Unit::text, &Settings::host, 0, 0},
    {"port", Unit::count, &Settings::port, 0, 65535},
    {"workers", Unit::count, &Settings::workers, 0, 1024},
    {"connections", Unit::count, &Settings::connections, 1, 10e6},
    {"active_req_limit", Unit::count, &Settings::active_req_limit, 0, 100e6},
    {"payload_budget", Unit::bytes, &Settings::payload_budget_bytes, 1 << 16, 1024 * kGiB},
    {"head_limit", Unit::bytes, &Settings::head_bytes, 256, 1 << 20},
    {"header_count", Unit::count, &Settings::header_count, 1, 10'000},
    {"target_limit", Unit::bytes, &Settings::target_bytes, 64, 1 << 20},
    {"body_limit", Unit::bytes, &Settings::body_bytes, 0, 1024 * kGiB},
    {"requests_per_connection", Unit::count, &Settings::requests_per_connection, 0, 4e9},
    {"pipeline", Unit::count, &Settings::pipeline, 1, 10'000},
    {"head_timeout", Unit::seconds, &Settings::head_timeout_ms, 0.001, 86'400},
    {"body_timeout", Unit::seconds, &Settings::body_timeout_ms, 0.001, 86'400},
    {"body_rate", Unit::bytes, &Settings::body_rate, 0, kGiB},
    {"drain_timeout", Unit::seconds, &Settings::drain_timeout_ms, 0.001, 86'400},
    {"drain_rate", Unit::bytes, &Settings::drain_rate, 0, kGiB},
    {"idle_timeout", Unit::seconds, &Settings::idle_timeout_ms, 0.001, 86'400},
    {"request_timeout", Unit::seconds, &Settings::request_timeout_ms, 0.001, 86'400},
    {"lua_memory", Unit::bytes, &Settings::lua_memory_bytes, 4 << 20, 1024 * kGiB},
    {"lua_time_limit", Unit::seconds, &Settings::lua_time_ms, 0, 3600},
    {"lua_jit", Unit::flag, &Settings::lua_jit, 0, 0},
    {"lua_sandbox", Unit::flag, &Settings::lua_sandbox, 0, 0},
    {"log_level", Unit::text, &Settings::log_level, 0, 0},
    {"control", Unit::control, std::monostate{}, 0, 0},
};

std::string number_text(double n) {
  char text[40];
  const auto end = n == std::floor(n) && std::fabs(n) < 1e15 ? std::to_chars(text, text + 40, static_cast<long long>(n))
                                                             : std::to_chars(text, text + 40, n);
  return {text, end.ptr};
}

template <class T>
bool store(Settings& out, const Setting& s, double n) {
  auto field = std::get_if<T Settings::*>(&s.field);
  if (field) out.*(*field) = static_cast<T>(n);
  return field != nullptr;
}

std::optional<std::string> read_number(lua_State* L, const Setting& s, Settings& out) {
  double n = 0;
  const std::string name(s.name);
  if (lua_type(L, -1) == LUA_TNUMBER) {
    n = lua_tonumber(L, -1);
  } else if (s.unit == Unit::bytes && lua_type(L, -1) == LUA_TSTRING) {
    const std::optional<std::uint64_t> bytes = read_size(text_at(L, -1));
    if (!bytes) return "`" + name + "` is a size such as 4096 or \"64MiB\", got \"" + std::string(text_at(L, -1)) + "\"";
    n = static_cast<double>(*bytes);
  } else {
    const std::string what = s.unit == Unit::seconds ? "a number of seconds" : s.unit == Unit::bytes ? "a size such as 4096 or \"64MiB\"" : "a number";
    return "`" + name + "` is " + what + ", got a " + luaL_typename(L, -1);
  }
  if (!(n >= s.least && n <= s.most)) return "`" + name + "` is " + number_text(n) + ", but goes from " + number_text(s.least) + " to " + number_text(s.most);
  if (s.unit == Unit::seconds) n = std::round(n * 1000);
  else if (n != std::floor(n)) return "`" + name + "` is a whole number, got " + number_text(n);
  if (!store<std::uint16_t>(out, s, n) && !store<std::uint32_t>(out, s, n)) store<std::uint64_t>(out, s, n);
  return std::nullopt;
}

// "127.0.0.1:8767", "[::1]:8767".
std::optional<std::string> read_address(std::string_view text, std::string& to_host, std::uint16_t& to_port) {
  const std::size_t colon = text.rfind(':');
  std::string_view host = text.substr(0, colon == text.npos ? 0 : colon);
  const std::string_view port = colon == text.npos ? std::string_view() : text.substr(colon + 1);
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  unsigned number = 0;
  const auto read = std::from_chars(port.data(), port.data() + port.size(), number);
  if (host.empty() || port.empty() || read.ec != std::errc() || read.ptr != port.data() + port.size() || number > 65535 ||
      (!bracketed && host.find(':') != host.npos))
    return "`listen` is \"HOST:PORT\", such as \"127.0.0.1:8767\" or \"[::1]:8767\", got \"" + std::string(text) + "\"";
  to_host = host;
  to_port = static_cast<std::uint16_t>(number);
  return std::nullopt;
}

// One listener: an address, or { address, tag = "NAME", tls = {...} }, or { address =, tag =, tls = }.
std::optional<std::string> read_listener(lua_State* L, Settings::Listener& out, std::string& at_name) {
  if (lua_type(L, -1) == LUA_TSTRING) return read_address(text_at(L, -1), out.host, out.port);
  if (!lua_istable(L, -1)) return std::string("a listener is \"HOST:PORT\" or { \"HOST:PORT\", tag = \"NAME\" }, got a ") + luaL_typename(L, -1);
  bool addressed = false;
  const int at = lua_gettop(L);
  for (lua_pushnil(L); lua_next(L, at) != 0; lua_pop(L, 1)) {
    const bool first = lua_type(L, -2) == LUA_TNUMBER && lua_tonumber(L, -2) == 1;
    const std::string_view field = first ? "address" : lua_type(L, -2) == LUA_TSTRING ? text_at(L, -2) : std::string_view();
    if (field == "tls") {
      if (auto why = read_tls(L, out.tls.emplace(), at_name)) return why;
      continue;
    }
    if (field != "address" && field != "tag") return "a listener has `address`, `tag` and `tls`, not `" + std::string(field) + "`";
    if (lua_type(L, -1) != LUA_TSTRING) return "`" + std::string(field) + "` of a listener is a string, got a " + luaL_typename(L, -1);
    if (field == "tag") {
      out.tag = text_at(L, -1);
      if (!proxy::is_name(out.tag)) return "`" + out.tag + "` is not a tag: 1 to 64 of A-Z a-z 0-9 - _";
    } else {
      if (auto why = read_address(text_at(L, -1), out.host, out.port)) return why;
      addressed = true;
    }
  }
  if (!addressed) return std::string("a listener needs an address, \"HOST:PORT\"");
  return std::nullopt;
}

// An address, or a list of listeners.
std::optional<std::string> read_listen(lua_State* L, Settings& out, std::string& at_name) {
  std::vector<Settings::Listener> all;
  const int at = lua_gettop(L);
  if (lua_type(L, at) == LUA_TSTRING) {
    if (auto why = read_listener(L, all.emplace_back(), at_name)) return why;
  } else if (lua_istable(L, at)) {
    const int n = static_cast<int>(lua_objlen(L, at));
    for (int i = 1; i <= n; ++i) {
      lua_rawgeti(L, at, i);
      if (auto why = read_listener(L, all.emplace_back(), at_name)) return why;
      lua_pop(L, 1);
    }
    if (all.empty()) return std::string("`listen` is a list without listeners");
    // Else a `tls` that stands one level too high would be dropped, and what was to be secret served in the clear.
    for (lua_pushnil(L); lua_next(L, at) != 0; lua_pop(L, 1))
      if (lua_type(L, -2) != LUA_TNUMBER)
        return "`listen` is a list of listeners: `" + (lua_type(L, -2) == LUA_TSTRING ? std::string(text_at(L, -2)) : "?") +
               "` belongs into one of them, { { \"HOST:PORT\", tag =, tls = } }";
  } else {
    return std::string("`listen` is \"HOST:PORT\" or a list of listeners, got a ") + luaL_typename(L, at);
  }
  out.host = all[0].host;
  out.port = all[0].port;
  out.tag = all[0].tag;
  out.tls = all[0].tls;
  out.more_listeners.assign(all.begin() + 1, all.end());
  return std::nullopt;
}

// A path, or false for none.
std::optional<std::string> read_control(lua_State* L, Settings& out) {
  if (lua_type(L, -1) == LUA_TSTRING && lua_objlen(L, -1) != 0) out.control = text_at(L, -1);
  else if (lua_type(L, -1) == LUA_TBOOLEAN && lua_toboolean(L, -1) == 0) out.control = "";
  else return std::string("`control` is the path of a socket, or false for none, got ") + (lua_type(L, -1) == LUA_TSTRING ? "\"\"" : "a " + std::string(luaL_typename(L, -1)));
  return std::nullopt;
}

// `at_name`: the name that stands where the mistake is.
std::optional<std::string> read_one(lua_State* L, const Setting& s, Settings& out, std::string& at_name) {
  const std::string name(s.name);
  switch (s.unit) {
    case Unit::count:
    case Unit::bytes:
    case Unit::seconds: return read_number(L, s, out);
    case Unit::flag:
      if (!lua_isboolean(L, -1)) return "`" + name + "` is true or false, got a " + luaL_typename(L, -1);
      out.*std::get<bool Settings::*>(s.field) = lua_toboolean(L, -1) != 0;
      return std::nullopt;
    case Unit::listen: return read_listen(L, out, at_name);
    case Unit::control: return read_control(L, out);
    case Unit::text: break;
  }
  if (lua_type(L, -1) != LUA_TSTRING) return "`" + name + "` is a string, got a " + luaL_typename(L, -1);
  if (s.name == "log_level" && !proxy::find_log_level(text_at(L, -1)))
    return "`log_level` is one of " + std::string(proxy::kLogLevels) + ", got \"" + std::string(text_at(L, -1)) + "\"";
  out.*std::get<std::string Settings::*>(s.field) = text_at(L, -1);
  return std::nullopt;
}

}  // namespace

std::vector<std::string> setting_names() {
  std::vector<std::string> names;
  for (const Setting& s : kSettings) names.emplace_back(s.name);
  for (const std::string& s : backend_option_names()) names.push_back(std::string(kBackend) + s);
  std::sort(names.begin(), names.end());
  return names;
}

std::optional<std::uint64_t> read_size(std::string_view text) {
  std::uint64_t n = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), n);
  if (read.ec != std::errc() || read.ptr == text.data()) return std::nullopt;
  const std::string_view unit = text.substr(static_cast<std::size_t>(read.ptr - text.data()));
  int shift = 0;
  if (unit == "KiB") shift = 10;
  else if (unit == "MiB") shift = 20;
  else if (unit == "GiB") shift = 30;
  else if (unit == "TiB") shift = 40;
  else if (!unit.empty() && unit != "B") return std::nullopt;
  if (n > (UINT64_MAX >> shift)) return std::nullopt;
  return n << shift;
}

std::optional<SettingProblem> read_settings(lua_State* L, int index, proxy::Settings& out) {
  const StackGuard guard(L);
  bool listen = false, host = false;
  lua_pushnil(L);
  while (lua_next(L, index) != 0) {
    if (lua_type(L, -2) != LUA_TSTRING) return SettingProblem{"", "settings{} has a value without a name"};
    const std::string name(text_at(L, -2));
    const Setting* found = nullptr;
    for (const Setting& s : kSettings)
      if (s.name == name) found = &s;
    if (name.starts_with(kBackend) && is_backend_option(std::string_view(name).substr(kBackend.size()))) {
      if (auto why = read_backend_option(L, std::string_view(name).substr(kBackend.size()), name, out.backend)) return SettingProblem{name, *why};
      lua_pop(L, 1);
      continue;
    }
    if (found == nullptr) {
      const std::string near = nearest(name, setting_names());
      return SettingProblem{name, "there is no setting `" + name + "`" + (near.empty() ? "" : "; did you mean `" + near + "`?")};
    }
    listen = listen || name == "listen";
    host = host || name == "host" || name == "port";
    std::string at_name = name;
    if (std::optional<std::string> why = read_one(L, *found, out, at_name)) return SettingProblem{at_name, *why};
    lua_pop(L, 1);
  }
  if (listen && host) return SettingProblem{"listen", "`listen` says host and port; `host` and `port` cannot be given beside it"};
  return std::nullopt;
}

}  // namespace sluice::lua
