// The worker stage: generators, routers and hooks, built while the generation is made and sealed after it.
#include <algorithm>

#include "lua/box.h"
#include "lua/context.h"
#include "lua/library.h"
#include "proxy/module_route.h"

namespace sluice::lua {
namespace {

constexpr std::size_t kNameBytes = 80;

Runtime& building(lua_State* L, const char* what) {
  Runtime& r = *static_cast<Runtime*>(lua_touserdata(L, lua_upvalueindex(1)));
  if (r.sealed) luaL_error(L, "%s: only while the routes are made", what);
  return r;
}

Fgen& self(lua_State* L, const char* method) {
  Fgen& f = check_boxed<Fgen>(L, 1, Kind::fgen, "a function generator");
  if (f.runtime().sealed) luaL_error(L, "%s: only while the routes are made", method);
  return f;
}

Fgen& new_fgen(lua_State* L, Runtime& runtime) {
  runtime.fgens.push_back(std::make_unique<Fgen>(runtime, runtime.next_fgen++));
  push_box(L, Kind::fgen, runtime.fgens.back().get());
  return *runtime.fgens.back();
}

int funcgen_new(lua_State* L) {
  new_fgen(L, building(L, "sluice.funcgen_new"));
  return 1;
}

void check_ready(lua_State* L, const Fgen& f, const char* what) {
  if (!f.is_ready()) luaL_error(L, "%s: that function generator is not ready: call its ready{} first", what);
}

// Of a store, a pool, a route or a ready generator; raises for others.
Target* target_at(lua_State* L, Runtime& runtime, int index, const char* what) {
  if (auto* target = find_boxed<Target>(L, index, Kind::target)) return target;
  if (auto* fgen = find_boxed<Fgen>(L, index, Kind::fgen)) {
    check_ready(L, *fgen, what);
    if (&fgen->runtime() != &runtime) luaL_error(L, "%s: a generator of another VM", what);
    auto target = std::make_unique<Target>();
    target->kind = Target::Kind::route;
    target->name = fgen->name();
    target->route = target->fgen = fgen;
    runtime.targets.push_back(std::move(target));
    return runtime.targets.back().get();
  }
  luaL_error(L, "%s: a store, a pool, a route or a function generator expected, got %s", what, luaL_typename(L, index));
  return nullptr;
}

int new_handle(lua_State* L) {
  Fgen& f = self(L, "new_handle");
  if (f.is_ready()) return luaL_error(L, "new_handle: after ready{}");
  if (f.handles().size() == kHandlesPerFgen) return luaL_error(L, "new_handle: more than %d handles", kHandlesPerFgen);
  if (find_boxed<Fgen>(L, 2, Kind::fgen) == &f) return luaL_error(L, "new_handle: a generator cannot be its own child");
  lua_pushinteger(L, f.add_handle(target_at(L, f.runtime(), 2, "new_handle")));
  return 1;
}

// ready{f = generator, a = its argument, n = name, u = how many objects it may make}
int ready(lua_State* L) {
  Fgen& f = self(L, "ready");
  if (f.is_ready()) return luaL_error(L, "ready: it is ready already");
  luaL_checktype(L, 2, LUA_TTABLE);
  lua_settop(L, 2);
  lua_pushnil(L);
  while (lua_next(L, 2) != 0) {
    const std::string_view key = lua_type(L, -2) == LUA_TSTRING ? text_at(L, -2) : std::string_view();
    if (key != "f" && key != "a" && key != "n" && key != "u") return luaL_error(L, "ready: its fields are f, a, n and u");
    lua_pop(L, 1);
  }
  lua_getfield(L, 2, "n");
  if (!lua_isnil(L, 3) && (lua_type(L, 3) != LUA_TSTRING || text_at(L, 3).empty() || text_at(L, 3).size() > kNameBytes))
    return luaL_error(L, "ready: n is a name of 1 to 80 bytes");
  lua_getfield(L, 2, "u");
  const double u = lua_isnil(L, 4) ? 0 : lua_type(L, 4) == LUA_TNUMBER ? lua_tonumber(L, 4) : -1;
  if (!lua_isnil(L, 4) && !(u >= 1 && u <= 255)) return luaL_error(L, "ready: u is a number from 1 to 255");
  lua_getfield(L, 2, "a");
  const int argument = luaL_ref(L, LUA_REGISTRYINDEX);
  lua_getfield(L, 2, "f");
  if (!lua_isfunction(L, -1)) return luaL_error(L, "ready: f is a function that returns the function of one slot");
  const int generator = luaL_ref(L, LUA_REGISTRYINDEX);
  bool good = false;
  {
    std::string name = lua_isnil(L, 3) ? "anonymous" : std::string(text_at(L, 3));
    const Result<void, std::string> made = f.ready(generator, argument, std::move(name), static_cast<std::uint32_t>(u));
    good = made.has_value();
    if (!good) push(L, made.error());
  }
  if (!good) return lua_error(L);   // the sentence has its position
  lua_settop(L, 1);
  return 1;
}

int return_upvalue(lua_State* L) {
  lua_pushvalue(L, lua_upvalueindex(1));
  return 1;
}

// A function in a generator's place: it answers requests itself, in every slot.
Fgen& wrap_function(lua_State* L, Runtime& runtime, int index, const char* name) {
  lua_pushvalue(L, index);
  lua_pushcclosure(L, return_upvalue, 1);
  const int generator = luaL_ref(L, LUA_REGISTRYINDEX);
  Fgen& f = new_fgen(L, runtime);
  lua_pop(L, 1);
  bool good = false;
  {
    const Result<void, std::string> made = f.ready(generator, LUA_REFNIL, name, 0);
    good = made.has_value();
    if (!good) push(L, made.error());
  }
  if (!good) lua_error(L);
  return f;
}

// core.wrap(function, name): a ready generator.
int wrap(lua_State* L) {
  Runtime& runtime = building(L, "routes");
  luaL_checktype(L, 1, LUA_TFUNCTION);
  const char* name = luaL_checkstring(L, 2);
  Fgen& f = wrap_function(L, runtime, 1, name);
  push_box(L, Kind::fgen, &f);
  return 1;
}

// What answers requests: a route or routes by method. A store or pool does by the module interface.
Target* answering(lua_State* L, Runtime& runtime, int index, const char* what) {
  Target* target = target_at(L, runtime, index, what);
  if (target->kind == Target::Kind::route || target->kind == Target::Kind::methods) return target;
  auto route = target->store ? std::make_unique<proxy::ModuleRoute>(target->store)
                             : std::make_unique<proxy::ModuleRoute>(target->pool);
  auto made = std::make_unique<Target>();
  made->kind = Target::Kind::route;
  made->name = target->name;
  made->route = route.get();
  runtime.routes.push_back(std::move(route));
  runtime.targets.push_back(std::move(made));
  return runtime.targets.back().get();
}

Target* push_route(lua_State* L, Runtime& runtime, std::unique_ptr<proxy::Route> route, const char* name) {
  auto target = std::make_unique<Target>();
  target->kind = Target::Kind::route;
  target->name = name;
  target->route = route.get();
  runtime.routes.push_back(std::move(route));
  return push_target(L, runtime, std::move(target));
}

// core.null(), core.direct(store or pool), core.stores()
int null_route(lua_State* L) {
  push_route(L, building(L, "routes"), std::make_unique<proxy::NullRoute>(), "null");
  return 1;
}

int direct(lua_State* L) {
  Runtime& runtime = building(L, "routes");
  push_box(L, Kind::target, answering(L, runtime, 1, "route_direct"));
  return 1;
}

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
    some = true;
    lua_pop(L, 1);
  }
  if (!some) return luaL_error(L, "sluice.methods: a map without methods");
  push_box(L, Kind::target, target);
  return 1;
}

// Adds what a target answers at `pattern`. Errors: a sentence in `why`.
bool add_route(proxy::Router& router, std::string_view pattern, const Target& to, std::string& why) {
  const auto add = [&](proxy::MethodSet set, proxy::Route* route) {
    if (route == nullptr) return true;
    const Result<void, std::string> added = router.add(pattern, set, route);
    if (!added) why = added.error();
    return added.has_value();
  };
  if (to.kind == Target::Kind::route) return add(proxy::kAllMethods, to.route);
  for (int m = 0; m < proxy::kMethods; ++m)
    if (!add(1u << m, to.methods.routes[static_cast<std::size_t>(m)])) return false;
  return add(proxy::kAllMethods, to.methods.others);
}

void set_fallback(proxy::Router& router, const Target& to) {
  if (to.kind == Target::Kind::route) return router.set_fallback(proxy::kAllMethods, to.route);
  for (int m = 0; m < proxy::kMethods; ++m)
    if (proxy::Route* route = to.methods.routes[static_cast<std::size_t>(m)]) router.set_fallback(1u << m, route);
  if (to.methods.others) router.set_fallback(proxy::kAllMethods, to.methods.others);
}

// sluice.router_new{map = {pattern = x or {GET = x}}, cmap = {GET = x}, default = x}
int router_new(lua_State* L) {
  Runtime& runtime = building(L, "sluice.router_new");
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_settop(L, 1);
  lua_pushnil(L);
  while (lua_next(L, 1) != 0) {
    const std::string_view key = lua_type(L, -2) == LUA_TSTRING ? text_at(L, -2) : std::string_view();
    if (key != "map" && key != "cmap" && key != "default") return luaL_error(L, "sluice.router_new: its fields are map, cmap and default");
    lua_pop(L, 1);
  }
  runtime.routers.push_back(std::make_unique<proxy::Router>());
  proxy::Router& router = *runtime.routers.back();
  bool some = false;
  std::string why;
  lua_getfield(L, 1, "map");
  if (!lua_isnil(L, 2)) {
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_pushnil(L);
    while (lua_next(L, 2) != 0) {
      if (lua_type(L, -2) != LUA_TSTRING) return luaL_error(L, "sluice.router_new: the keys of map are paths");
      if (lua_istable(L, -1)) {
        // {GET = x}: as sluice.methods{}.
        lua_pushlightuserdata(L, &runtime);
        lua_pushcclosure(L, methods, 1);
        lua_insert(L, -2);
        lua_call(L, 1, 1);
      }
      const Target* to = answering(L, runtime, lua_gettop(L), "sluice.router_new");
      if (!add_route(router, text_at(L, -2), *to, why)) return luaL_error(L, "%s", why.c_str());
      some = true;
      lua_pop(L, 1);
    }
  }
  lua_settop(L, 2);
  lua_getfield(L, 1, "default");
  if (!lua_isnil(L, 3)) {
    set_fallback(router, *answering(L, runtime, 3, "sluice.router_new: default"));
    some = true;
  }
  lua_getfield(L, 1, "cmap");
  if (!lua_isnil(L, 4)) {
    luaL_checktype(L, 4, LUA_TTABLE);
    lua_pushnil(L);
    while (lua_next(L, 4) != 0) {
      const proxy::Method m = method_key(L, -2);
      if (m == proxy::Method::other) return luaL_error(L, "sluice.router_new: the keys of cmap are methods");
      const Target* to = answering(L, runtime, lua_gettop(L), "sluice.router_new: cmap");
      if (to->kind != Target::Kind::route) return luaL_error(L, "sluice.router_new: a map of methods inside cmap");
      router.set_fallback(proxy::method_bit(m), to->route);
      some = true;
      lua_pop(L, 1);
    }
  }
  if (!some) return luaL_error(L, "sluice.router_new: map, cmap or default is needed");
  push_box(L, Kind::route, &router);
  return 1;
}

// attach(method or sluice.ANY, generator, router, route, store, pool or function)
int attach(lua_State* L) {
  Runtime& runtime = building(L, "sluice.attach");
  luaL_checkstring(L, 1);
  const bool any = text_at(L, 1) == "ANY";
  const proxy::Method m = method_named(text_at(L, 1));
  if (!any && m == proxy::Method::other) return luaL_error(L, "sluice.attach: '%s' is not a method", lua_tostring(L, 1));
  if (!lua_isnoneornil(L, 3)) return luaL_error(L, "sluice.attach: listeners have no tags yet");
  Hook hook;
  if (lua_isfunction(L, 2)) hook.route = &wrap_function(L, runtime, 2, "anonymous");
  else if (auto* router = find_boxed<proxy::Router>(L, 2, Kind::route)) hook.router = router;
  else hook.target = answering(L, runtime, 2, "sluice.attach");
  if (hook.target && hook.target->kind == Target::Kind::route) hook.route = hook.target->route;
  (any ? runtime.any : runtime.hooks[static_cast<std::size_t>(m)]) = hook;
  runtime.attached = true;
  return 0;
}

// core.stores(): the module interface of all stores.
int stores_route(lua_State* L) {
  Runtime& runtime = building(L, "routes");
  push_route(L, runtime, std::make_unique<proxy::ModuleRoute>(*runtime.stores), "stores");
  return 1;
}

}  // namespace

Target* push_target(lua_State* L, Runtime& runtime, std::unique_ptr<Target> target) {
  runtime.targets.push_back(std::move(target));
  push_box(L, Kind::target, runtime.targets.back().get());
  return runtime.targets.back().get();
}

void open_worker_stage(lua_State* L, Runtime& runtime, std::shared_ptr<const proxy::StoreSet> stores) {
  const StackGuard guard(L);
  runtime.stores = std::move(stores);
  static constexpr luaL_Reg kFgen[] = {{"new_handle", new_handle}, {"ready", ready}, {nullptr, nullptr}};
  static constexpr luaL_Reg kNone[] = {{nullptr, nullptr}};
  static constexpr luaL_Reg kCoreFunctions[] = {{"null", null_route}, {"direct", direct}, {"stores", stores_route}, {"wrap", wrap}, {nullptr, nullptr}};
  static constexpr luaL_Reg kPublic[] = {{"funcgen_new", funcgen_new}, {"router_new", router_new}, {"methods", methods},
                                         {"attach", attach}, {nullptr, nullptr}};
  make_class(L, Kind::fgen, "sluice.funcgen", kFgen);
  make_class(L, Kind::target, "sluice.target", kNone);
  make_class(L, Kind::route, "sluice.router", kNone);
  register_request(L);
  register_response(L);
  register_context(L);
  push_core(L);
  set_functions(L, kCoreFunctions, &runtime);
  lua_pushliteral(L, "worker");
  lua_setfield(L, -2, "stage");
  lua_getglobal(L, "sluice");
  set_functions(L, kPublic, &runtime);
}

}  // namespace sluice::lua
