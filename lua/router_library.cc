// sluice.methods, router_new and attach: which route a request leads to.
#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "lua/box.h"
#include "lua/library.h"
#include "lua/request_object.h"
#include "lua/targets.h"

namespace sluice::lua {
namespace {

// Every method but these is the map's `all`.
proxy::Method method_key(lua_State* L, int index) {
  if (lua_type(L, index) != LUA_TSTRING) return proxy::Method::other;
  return method_named(text_at(L, index));
}

// sluice.methods{GET = x, all = y}: one route per method.
int methods(lua_State* L) {
  Runtime& runtime = building(L, "sluice.methods");
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_settop(L, 1);
  auto made = std::make_unique<Target>();
  made->kind = Target::Kind::methods;
  made->name = "methods";
  Target* target = made.get();
  runtime.targets.push_back(std::move(made));
  bool some = false;
  lua_pushnil(L);
  while (lua_next(L, 1) != 0) {
    const bool all = lua_type(L, -2) == LUA_TSTRING && (text_at(L, -2) == "all" || text_at(L, -2) == "ANY");
    const proxy::Method m = method_key(L, -2);
    if (!all && m == proxy::Method::other) return luaL_error(L, "sluice.methods: its keys are methods and `all`");
    const Target* to = answering(L, runtime, lua_gettop(L), "sluice.methods");
    if (to->kind != Target::Kind::route) return luaL_error(L, "sluice.methods: a map of methods inside another");
    target->methods.set(all ? proxy::kAllMethods : proxy::method_bit(m), to->route);
    target->depth = std::max(target->depth, to->depth);
    some = true;
    lua_pop(L, 1);
  }
  if (!some) return luaL_error(L, "sluice.methods: a map without methods");
  push_box(L, Kind::target, target);
  return 1;
}

struct RouterSpec {
  bool words = false;
  proxy::WordRule rule;
};

// The fields mode, start, stop and of. Raises.
void read_router_spec(lua_State* L, RouterSpec& spec) {
  static const char* const kFields[] = {"map", "cmap", "default", "mode", "start", "stop", "of"};
  const char* mode = "path";
  bool started = false, stopped = false, of = false;
  lua_pushnil(L);
  while (lua_next(L, 1) != 0) {
    const std::string_view key = lua_type(L, -2) == LUA_TSTRING ? text_at(L, -2) : std::string_view();
    if (std::find(std::begin(kFields), std::end(kFields), key) == std::end(kFields)) {
      const std::string near = nearest(key, {std::begin(kFields), std::end(kFields)});
      luaL_error(L, "sluice.router_new has no `%s`%s", std::string(key).c_str(), near.empty() ? "" : ("; did you mean `" + near + "`?").c_str());
    }
    if (key == "mode" || key == "start" || key == "stop" || key == "of") {
      if (lua_type(L, -1) != LUA_TSTRING) luaL_error(L, "sluice.router_new: `%s` is a string", lua_tostring(L, -2));
      const std::string_view value = text_at(L, -1);
      if (key == "mode") {
        if (value != "path" && value != "prefix" && value != "anchor") luaL_error(L, "sluice.router_new: `mode` is path, prefix or anchor");
        mode = lua_tostring(L, -1);
      } else if (key == "of") {
        if (value != "path" && value != "key") luaL_error(L, "sluice.router_new: `of` is path or key");
        spec.rule.of_key = value == "key";
        of = true;
      } else {
        if (value.empty() || value.size() > 5) luaL_error(L, "sluice.router_new: `%s` has 1 to 5 bytes", lua_tostring(L, -2));
        (key == "start" ? spec.rule.start : spec.rule.stop) = value;
        (key == "start" ? started : stopped) = true;
      }
    }
    lua_pop(L, 1);
  }
  const std::string_view m = mode;
  spec.words = m != "path";
  if (!spec.words && (started || stopped || of)) luaL_error(L, "sluice.router_new: `start`, `stop` and `of` go with mode = prefix or anchor");
  if (m == "prefix" && started) luaL_error(L, "sluice.router_new: `start` goes with mode = anchor");
  if (m == "anchor" && started != stopped) luaL_error(L, "sluice.router_new: `start` and `stop` go together");
  if (m == "anchor" && !started) spec.rule.start = "/";
}

// Gives `to`, or each of its methods, to `add`; false: it refused.
template <class Add>
bool each_route(const Target& to, Add&& add) {
  if (to.kind == Target::Kind::route) return add(proxy::kAllMethods, to.route);
  for (int m = 0; m < proxy::kMethods; ++m)
    if (proxy::Route* route = to.methods.routes[static_cast<std::size_t>(m)]; route && !add(1u << m, route)) return false;
  return to.methods.others == nullptr || add(proxy::kAllMethods, to.methods.others);
}

// The keys of the table at `index`, sorted: which of two conflicting ones is refused must not depend on chance, and thousands
// of paths are added fastest in their order. Raises. Life: the table's.
std::vector<std::string_view> sorted_keys(lua_State* L, int index) {
  std::vector<std::string_view> keys;
  for (lua_pushnil(L); lua_next(L, index) != 0; lua_pop(L, 1)) {
    if (lua_type(L, -2) != LUA_TSTRING) luaL_error(L, "sluice.router_new: the keys of map are strings");
    keys.push_back(text_at(L, -2));
  }
  std::sort(keys.begin(), keys.end());
  return keys;
}

// map = {pattern or word = x or {GET = x}}, cmap = {GET = x}, default = x, into either kind of router.
template <class AnyRouter>
void fill_router(lua_State* L, Runtime& runtime, AnyRouter& router) {
  bool some = false;
  lua_getfield(L, 1, "map");
  if (!lua_isnil(L, 2)) {
    luaL_checktype(L, 2, LUA_TTABLE);
    for (const std::string_view key : sorted_keys(L, 2)) {
      push(L, key);
      lua_rawget(L, 2);
      if (lua_istable(L, -1)) {
        // {GET = x}: as sluice.methods{}.
        lua_pushlightuserdata(L, &runtime);
        lua_pushcclosure(L, methods, 1);
        lua_insert(L, -2);
        lua_call(L, 1, 1);
      }
      const Target* to = answering(L, runtime, lua_gettop(L), "sluice.router_new");
      std::string why;
      const bool added = each_route(*to, [&](proxy::MethodSet set, proxy::Route* route) {
        const Result<void, std::string> one = router.add(key, set, route);
        if (!one) why = one.error();
        return one.has_value();
      });
      if (!added) luaL_error(L, "%s", why.c_str());
      some = true;
      lua_pop(L, 1);
    }
  }
  lua_settop(L, 2);
  lua_getfield(L, 1, "default");
  if (!lua_isnil(L, 3)) {
    each_route(*answering(L, runtime, 3, "sluice.router_new: default"), [&](proxy::MethodSet set, proxy::Route* route) {
      router.set_fallback(set, route);
      return true;
    });
    some = true;
  }
  lua_getfield(L, 1, "cmap");
  if (!lua_isnil(L, 4)) {
    luaL_checktype(L, 4, LUA_TTABLE);
    lua_pushnil(L);
    while (lua_next(L, 4) != 0) {
      const proxy::Method m = method_key(L, -2);
      if (m == proxy::Method::other) luaL_error(L, "sluice.router_new: the keys of cmap are methods");
      const Target* to = answering(L, runtime, lua_gettop(L), "sluice.router_new: cmap");
      if (to->kind != Target::Kind::route) luaL_error(L, "sluice.router_new: a map of methods inside cmap");
      router.set_fallback(proxy::method_bit(m), to->route);
      some = true;
      lua_pop(L, 1);
    }
  }
  if (!some) luaL_error(L, "sluice.router_new: map, cmap or default is needed");
}

// sluice.router_new{map =, cmap =, default = [, mode =, start =, stop =, of =]}
int router_new(lua_State* L) {
  Runtime& runtime = building(L, "sluice.router_new");
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_settop(L, 1);
  RouterSpec spec;
  read_router_spec(L, spec);
  if (spec.words) {
    runtime.word_routers.push_back(std::make_unique<proxy::WordRouter>(std::move(spec.rule)));
    fill_router(L, runtime, *runtime.word_routers.back());
    push_box(L, Kind::word_route, runtime.word_routers.back().get());
  } else {
    runtime.routers.push_back(std::make_unique<proxy::Router>());
    fill_router(L, runtime, *runtime.routers.back());
    push_box(L, Kind::route, runtime.routers.back().get());
  }
  return 1;
}

// The third argument of attach(): a listener's tag, or {tag =, host =}.
void read_place(lua_State* L, int index, std::string& tag, std::string& host) {
  if (lua_isnoneornil(L, index)) return;
  const auto word = [L](const char* what) {
    if (lua_type(L, -1) != LUA_TSTRING || text_at(L, -1).empty() || text_at(L, -1).size() > 255)
      luaL_error(L, "sluice.attach: a %s is a string of 1 to 255 bytes", what);
    return text_at(L, -1);
  };
  if (!lua_istable(L, index)) {
    lua_pushvalue(L, index);
    tag = word("tag");
    lua_pop(L, 1);
    return;
  }
  for (lua_pushnil(L); lua_next(L, index) != 0; lua_pop(L, 1)) {
    const std::string_view field = lua_type(L, -2) == LUA_TSTRING ? text_at(L, -2) : std::string_view();
    if (field == "tag") tag = word("tag");
    else if (field == "host") host = word("host");
    else luaL_error(L, "sluice.attach: the third argument is a tag, or { tag =, host = }");
  }
  for (char& c : host) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  if (host.starts_with("*.")) host.erase(0, 1);
  if (host.size() > 1 && host.ends_with('.')) host.pop_back();   // the root's, which a request's host has not either
  const bool literal = host.starts_with('[') && host.ends_with(']');   // an IPv6 address
  if (host.find_first_of(literal ? "*/ " : "*/ :") != host.npos || host == ".")
    luaL_error(L, "sluice.attach: `%s` is not a host: a name without its port, or *.NAME", host.c_str());
}

HookSet& hooks_of(Runtime& runtime, const std::string& tag, const std::string& host) {
  // The most particular first; of hosts the longest.
  const auto rank = [](const HookSet& s) {
    return std::tuple(s.tag.empty(), s.host.empty(), s.host.starts_with('.'), ~s.host.size());
  };
  for (HookSet& s : runtime.hooks)
    if (s.tag == tag && s.host == host) return s;
  HookSet made;
  made.tag = tag;
  made.host = host;
  const auto at = std::find_if(runtime.hooks.begin(), runtime.hooks.end(), [&](const HookSet& s) { return rank(made) < rank(s); });
  return *runtime.hooks.insert(at, std::move(made));
}

// attach(method or sluice.ANY, generator, router, route, store, pool or function [, tag or {tag =, host =}])
int attach(lua_State* L) {
  Runtime& runtime = building(L, "sluice.attach");
  luaL_checkstring(L, 1);
  const bool any = text_at(L, 1) == "ANY";
  const proxy::Method m = method_named(text_at(L, 1));
  if (!any && m == proxy::Method::other) return luaL_error(L, "sluice.attach: '%s' is not a method", lua_tostring(L, 1));
  std::string tag, host;
  read_place(L, 3, tag, host);
  Hook hook;
  if (lua_isfunction(L, 2)) hook.route = &wrap_function(L, runtime, 2, "anonymous");
  else if (auto* router = find_boxed<proxy::Router>(L, 2, Kind::route)) hook.router = router;
  else if (auto* words = find_boxed<proxy::WordRouter>(L, 2, Kind::word_route)) hook.words = words;
  else hook.target = answering(L, runtime, 2, "sluice.attach");
  if (hook.target && hook.target->kind == Target::Kind::route) hook.route = hook.target->route;
  HookSet& set = hooks_of(runtime, tag, host);
  (any ? set.any : set.hooks[static_cast<std::size_t>(m)]) = hook;
  return 0;
}

}  // namespace

void open_routers(lua_State* L, Runtime& runtime) {
  const StackGuard guard(L);
  static constexpr luaL_Reg kNone[] = {{nullptr, nullptr}};
  static constexpr luaL_Reg kPublic[] = {{"router_new", router_new}, {"methods", methods}, {"attach", attach}, {nullptr, nullptr}};
  make_class(L, Kind::route, "sluice.router", kNone);
  make_class(L, Kind::word_route, "sluice.router", kNone);
  lua_getglobal(L, "sluice");
  set_functions(L, kPublic, &runtime);
}

}  // namespace sluice::lua
