// What the route library builds its handlers from, beyond generators: the routes that C++ has for them.
#include <cmath>

#include "lua/box.h"
#include "lua/cache_route.h"
#include "lua/commons.h"
#include "lua/fields.h"
#include "lua/library.h"
#include "lua/response_object.h"
#include "lua/settings_reader.h"
#include "lua/static_route.h"
#include "lua/targets.h"

namespace sluice::lua {
namespace {

constexpr double kLongestTtlS = 366.0 * 86'400;

// nil and a sentence: what the library then says with the place of the declaration.
int refuse(lua_State* L, const char* sentence) {
  lua_pushnil(L);
  lua_pushstring(L, sentence);
  return 2;
}

// core.static(status, {name, value, ...}, body, tagged)
int static_route(lua_State* L) {
  Runtime& runtime = building(L, "routes");
  const lua_Integer status = luaL_checkinteger(L, 1);
  luaL_checktype(L, 2, LUA_TTABLE);
  luaL_checkstring(L, 3);
  {
    std::string headers;
    const int n = static_cast<int>(lua_objlen(L, 2));
    for (int i = 1; i + 1 <= n; i += 2) {
      lua_rawgeti(L, 2, i);
      lua_rawgeti(L, 2, i + 1);
      if (lua_type(L, -2) != LUA_TSTRING || lua_type(L, -1) != LUA_TSTRING || !append_header(headers, text_at(L, -2), text_at(L, -1))) {
        const char* name = lua_tostring(L, -2);
        lua_pushfstring(L, name && is_framing_field(name) ? "'%s' is the server's own" : "'%s' is not a header that can be sent", name ? name : "?");
        lua_pushnil(L);
        lua_insert(L, -2);
        return 2;
      }
      lua_pop(L, 2);
    }
    push_route(L, runtime, std::make_unique<StaticRoute>(static_cast<std::uint16_t>(status), std::move(headers), text_at(L, 3), lua_toboolean(L, 4) != 0), "static");
  }
  return 1;
}

// The bytes of a size, a number or "64MiB"; nothing: it is none from `least` to `most`.
std::optional<std::uint64_t> size_at(lua_State* L, int index, double least, double most) {
  std::optional<double> n;
  if (lua_type(L, index) == LUA_TNUMBER) n = lua_tonumber(L, index);
  else if (lua_type(L, index) == LUA_TSTRING)
    if (const auto bytes = read_size(text_at(L, index))) n = static_cast<double>(*bytes);
  if (!n || !(*n >= least && *n <= most)) return std::nullopt;
  return static_cast<std::uint64_t>(*n);
}

// The strings of a list. false: it has something else.
template <class F>
bool each_text(lua_State* L, int index, F&& f) {
  const int n = static_cast<int>(lua_objlen(L, index));
  for (int i = 1; i <= n; ++i) {
    lua_rawgeti(L, index, i);
    const bool good = lua_type(L, -1) == LUA_TSTRING && f(text_at(L, -1));
    lua_pop(L, 1);
    if (!good) return false;
  }
  return true;
}

// core.cache(x, name, ttl or nil, bytes or nil, item or nil, {header...}, {store...} or nil, everybody): a cache before x. With
// stores it asks whether they have changed. nil and a sentence.
int cache(lua_State* L) {
  Runtime& runtime = building(L, "routes");
  luaL_checkstring(L, 2);
  luaL_checktype(L, 6, LUA_TTABLE);
  lua_settop(L, 8);
  proxy::Route& child = one_route(L, runtime, 1, "route_cache");
  CacheSpec spec;
  spec.revalidate = lua_istable(L, 7);
  spec.everybody = lua_toboolean(L, 8) != 0;
  const double ttl = lua_isnil(L, 3) ? 0 : lua_tonumber(L, 3);
  if (!lua_isnil(L, 3) && !(ttl >= 0.001 && ttl <= kLongestTtlS)) return refuse(L, "`ttl` is seconds, from 0.001 to a year");
  spec.ttl_us = static_cast<std::uint64_t>(std::llround(ttl * 1e6));
  if (!lua_isnil(L, 4)) {
    const auto bytes = size_at(L, 4, 4096, 64.0 * (1u << 30));
    if (!bytes) return refuse(L, "`bytes` is a size from \"4KiB\" to \"64GiB\"");
    spec.limit_bytes = *bytes;
  }
  spec.item_bytes = spec.limit_bytes / 8;
  if (!lua_isnil(L, 5)) {
    const auto bytes = size_at(L, 5, 1, static_cast<double>(spec.limit_bytes));
    if (!bytes) return refuse(L, "`item` is a size from 1 to `bytes`");
    spec.item_bytes = *bytes;
  }
  each_text(L, 6, [&](std::string_view name) { return spec.vary.emplace_back(name), true; });
  if (spec.revalidate)
    each_text(L, 7, [&](std::string_view name) {
      if (proxy::StorePtr store = runtime.stores->find(name)) spec.stores.push_back(std::move(store));
      return true;
    });
  const std::string name(text_at(L, 2));
  auto shared = runtime.commons->caches.find_or_make(name, [] { return std::make_shared<CacheShared>(); });
  runtime.caches.emplace_back(name, shared);
  push_route(L, runtime, std::make_unique<CacheRoute>(std::move(spec), std::move(shared), child), "cache");
  return 1;
}

}  // namespace

void open_handlers(lua_State* L, Runtime& runtime) {
  const StackGuard guard(L);
  runtime.home.caches = &runtime.caches;
  static constexpr luaL_Reg kCoreHandlers[] = {{"static", static_route}, {"cache", cache}, {nullptr, nullptr}};
  push_core(L);
  set_functions(L, kCoreHandlers, &runtime);
}

}  // namespace sluice::lua
