#include "lua/limiter_api.h"

#include <cmath>
#include <cstdio>

#include "lua/box.h"
#include "lua/value.h"
#include "proxy/module_call.h"

namespace sluice::lua {
namespace {

constexpr double kLongestFillS = 30.0 * 86'400;

bool whole(double n, double least, double most) { return n >= least && n <= most && n == std::floor(n); }

int call(lua_State* L) {
  Limiter& limiter = check_boxed<Limiter>(L, 1, Kind::limiter, "a rate limiter");
  const Home& home = *static_cast<const Home*>(lua_touserdata(L, lua_upvalueindex(1)));
  if (home.loading) return luaL_error(L, "a rate limiter is asked by routes and crons, not while the config is read");
  int next = 2;
  std::string_view key;
  if (limiter.spec().keys != 0) {
    if (lua_type(L, 2) != LUA_TSTRING && lua_type(L, 2) != LUA_TNUMBER)
      return luaL_error(L, "this rate limiter has keys: its first argument is one, a string, got a %s", luaL_typename(L, 2));
    key = text_at(L, 2);
    next = 3;
  }
  const double n = luaL_optnumber(L, next, 1);
  if (!whole(n, 1, 1e9)) return luaL_error(L, "how many tokens is a whole number from 1");
  const Verdict v = limiter.take(key, static_cast<std::uint64_t>(n), home.now_us());
  lua_pushboolean(L, v.admitted);
  if (v.admitted || !v.wait_us) return 1;
  lua_pushnumber(L, static_cast<double>(*v.wait_us) / 1e6);
  return 2;
}

}  // namespace

bool read_limit(lua_State* L, int index, LimitSpec& spec, std::string& name, std::string& why) {
  static const char* const kFields[] = {"limit", "rate", "fillrate", "tickrate", "keys", "name"};
  const StackGuard guard(L);
  double limit = 0, rate = 0, fill = 1, tick_ms = 1;
  bool ticks = false;
  lua_pushnil(L);
  while (lua_next(L, index) != 0) {
    const std::string field = lua_type(L, -2) == LUA_TSTRING ? std::string(text_at(L, -2)) : std::string();
    const double n = lua_type(L, -1) == LUA_TNUMBER ? lua_tonumber(L, -1) : -1;
    if (field == "limit") {
      if (!whole(limit = n, 1, 1e9)) why = "`limit` is a whole number from 1 to 1e9";
    } else if (field == "rate") {
      if (!((rate = n) >= 1e-5 && n <= 1e9)) why = "`rate` is a number per second, from 1e-5 to 1e9";
    } else if (field == "fillrate") {
      ticks = true;
      if (!((fill = n) > 0 && n <= 1e9)) why = "`fillrate` is a number above 0, per tick";
    } else if (field == "tickrate") {
      ticks = true;
      if (!((tick_ms = n) >= 1 && n <= 86'400'000)) why = "`tickrate` is a number of milliseconds, from 1 to a day";
    } else if (field == "keys") {
      if (!whole(n, 1, 1e6)) why = "`keys` is how many are kept apart, a whole number from 1 to 1e6";
      else spec.keys = static_cast<std::uint32_t>(n);
    } else if (field == "name") {
      if (lua_type(L, -1) != LUA_TSTRING || text_at(L, -1).empty()) why = "`name` is a string";
      else name = text_at(L, -1);
    } else {
      const std::string near = nearest(field, {std::begin(kFields), std::end(kFields)});
      why = "a rate limiter has no `" + field + "`" + (near.empty() ? "" : "; did you mean `" + near + "`?");
    }
    if (!why.empty()) return false;
    lua_pop(L, 1);
  }
  if (limit == 0) why = "a rate limiter needs a `limit`";
  else if (rate != 0 && ticks) why = "`rate` and `fillrate` with `tickrate` say the same; give one";
  if (!why.empty()) return false;
  spec.limit = static_cast<std::uint64_t>(limit);
  spec.per_second = rate != 0 ? rate : fill * 1000 / tick_ms;
  if (!(spec.per_second >= 1e-5 && spec.per_second <= 1e9)) why = "a rate is from 1e-5 to 1e9 per second";
  else if (limit / spec.per_second > kLongestFillS) why = "a limiter that takes more than 30 days to fill";
  return why.empty();
}

std::shared_ptr<Limiter> global_limiter(Commons& commons, const std::string& name, const LimitSpec& spec) {
  // A changed one is another: it begins full.
  char rate[40];
  std::snprintf(rate, sizeof rate, "%a", spec.per_second);   // to its last bit
  const std::string shape = name + " " + std::to_string(spec.limit) + " " + rate + " " + std::to_string(spec.keys);
  return commons.limiters.find_or_make(shape, [&] { return std::make_shared<Limiter>(spec, true); });
}

void open_limiters(lua_State* L, const Home& home) {
  const StackGuard guard(L);
  static constexpr luaL_Reg kNone[] = {{nullptr, nullptr}};
  make_class(L, Kind::limiter, "sluice.ratelim", kNone);
  lua_rawgeti(L, LUA_REGISTRYINDEX, static_cast<int>(Kind::limiter));
  push_pointer(L, &home);
  lua_pushcclosure(L, call, 1);
  lua_setfield(L, -2, "__call");
}

void push_limiter(lua_State* L, Limiter& limiter) { push_box(L, Kind::limiter, &limiter); }

std::optional<LimitKey> LimitKey::read(std::string_view text) {
  if (text.empty()) return LimitKey{};
  if (text == "client_ip") return LimitKey{From::client_ip, {}};
  if (text == "key") return LimitKey{From::key, {}};
  for (const auto& [prefix, from] : {std::pair{std::string_view("header:"), From::header}, std::pair{std::string_view("query:"), From::query}})
    if (text.starts_with(prefix) && text.size() > prefix.size()) return LimitKey{from, std::string(text.substr(prefix.size()))};
  return std::nullopt;
}

void LimitRoute::start(proxy::Exchange& exchange, const proxy::Match& match, proxy::Services& services) {
  const proxy::Request& request = exchange.request();
  std::string_view key;
  switch (key_.from) {
    case LimitKey::From::nothing: break;
    case LimitKey::From::client_ip: key = request.client_ip; break;
    case LimitKey::From::key: key = proxy::distribution_key(match.rest, request.query); break;
    // Those without it share one bucket.
    case LimitKey::From::header: key = request.header(key_.name).value_or(""); break;
    case LimitKey::From::query: key = request.parameter(key_.name).value_or(""); break;
  }
  const Verdict v = limiter_->take(key, 1, services.monotonic_us());
  if (v.admitted) return child_.start(exchange, match, services);
  proxy::respond_error(refusal_, 429, Errc::rate, "too many requests; try again later");
  refusal_.retry_after_s = static_cast<std::uint32_t>((v.wait_us.value_or(1) + 999'999) / 1'000'000);
  exchange.answer(refusal_);
}

}  // namespace sluice::lua
