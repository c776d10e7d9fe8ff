#include "lua/backend_options.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <variant>

#include "lua/settings_reader.h"

namespace sluice::lua {
namespace {

using proxy::BackendOptions;

enum class OptionUnit : std::uint8_t { count, bytes, seconds, factor, flag };

struct Option {
  std::string_view name;
  OptionUnit unit;
  std::variant<std::uint32_t BackendOptions::*, std::uint64_t BackendOptions::*, double BackendOptions::*, bool BackendOptions::*> field;
  double least = 0, most = 0;    // in the unit
};

constexpr double kDay_s = 86'400;
constexpr double kMostBytes = 1024.0 * 1024 * 1024 * 1024;

constexpr Option kOptions[] = {
    {"connections", OptionUnit::count, &BackendOptions::connections, 1, 4096},
    {"connect_timeout", OptionUnit::seconds, &BackendOptions::connect_timeout_ms, 0.001, kDay_s},
    {"read_timeout", OptionUnit::seconds, &BackendOptions::read_timeout_ms, 0.001, kDay_s},
    {"idle_timeout", OptionUnit::seconds, &BackendOptions::idle_timeout_ms, 0.001, kDay_s},
    {"failure_limit", OptionUnit::count, &BackendOptions::failure_limit, 0, 1'000'000},
    {"retry_waittime", OptionUnit::seconds, &BackendOptions::retry_waittime_ms, 0.01, kDay_s},
    {"flap_time", OptionUnit::seconds, &BackendOptions::flap_time_ms, 0, kDay_s},
    {"flap_backoff_ramp", OptionUnit::factor, &BackendOptions::flap_backoff_ramp, 1, 100},
    {"flap_backoff_max", OptionUnit::seconds, &BackendOptions::flap_backoff_max_ms, 0.01, kDay_s},
    {"depth_limit", OptionUnit::count, &BackendOptions::depth_limit, 0, 100e6},
    {"head_limit", OptionUnit::bytes, &BackendOptions::head_bytes, 256, 1 << 20},
    {"body_limit", OptionUnit::bytes, &BackendOptions::body_bytes, 0, kMostBytes},
    {"tcp_keepalive", OptionUnit::flag, &BackendOptions::tcp_keepalive, 0, 0},
};

const Option* find(std::string_view name) {
  for (const Option& o : kOptions)
    if (o.name == name) return &o;
  return nullptr;
}

std::string number_text(double n) {
  char text[40];
  const auto end = n == std::floor(n) && std::fabs(n) < 1e15 ? std::to_chars(text, text + 40, static_cast<long long>(n))
                                                             : std::to_chars(text, text + 40, n);
  return {text, end.ptr};
}

}  // namespace

bool is_backend_option(std::string_view name) { return find(name) != nullptr; }

std::vector<std::string> backend_option_names() {
  std::vector<std::string> names;
  for (const Option& o : kOptions) names.emplace_back(o.name);
  std::sort(names.begin(), names.end());
  return names;
}

std::optional<std::string> read_backend_option(lua_State* L, std::string_view name, std::string_view said, BackendOptions& out) {
  const Option& o = *find(name);
  const std::string called = "`" + std::string(said) + "` ";
  if (o.unit == OptionUnit::flag) {
    if (!lua_isboolean(L, -1)) return called + "is true or false, got a " + luaL_typename(L, -1);
    out.*std::get<bool BackendOptions::*>(o.field) = lua_toboolean(L, -1) != 0;
    return std::nullopt;
  }
  const char* const what = o.unit == OptionUnit::seconds ? "a number of seconds" : o.unit == OptionUnit::bytes ? "a size such as 4096 or \"64MiB\"" : "a number";
  double n = 0;
  if (lua_type(L, -1) == LUA_TNUMBER) {
    n = lua_tonumber(L, -1);
  } else if (o.unit == OptionUnit::bytes && lua_type(L, -1) == LUA_TSTRING) {
    const std::optional<std::uint64_t> bytes = read_size(text_at(L, -1));
    if (!bytes) return called + "is " + what + ", got \"" + std::string(text_at(L, -1)) + "\"";
    n = static_cast<double>(*bytes);
  } else {
    return called + "is " + what + ", got a " + luaL_typename(L, -1);
  }
  if (!(n >= o.least && n <= o.most))
    return called + "is " + number_text(n) + ", but goes from " + number_text(o.least) + " to " + number_text(o.most);
  if (o.unit == OptionUnit::seconds) n = std::round(n * 1000);
  else if (o.unit != OptionUnit::factor && n != std::floor(n)) return called + "is a whole number, got " + number_text(n);
  if (const auto* u32 = std::get_if<std::uint32_t BackendOptions::*>(&o.field)) out.**u32 = static_cast<std::uint32_t>(n);
  else if (const auto* u64 = std::get_if<std::uint64_t BackendOptions::*>(&o.field)) out.**u64 = static_cast<std::uint64_t>(n);
  else out.*std::get<double BackendOptions::*>(o.field) = n;
  return std::nullopt;
}

}  // namespace sluice::lua
