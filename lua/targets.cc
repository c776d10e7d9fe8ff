// What leads to a route: stores, pools, generators, functions, as the calls that build routes take them.
#include "lua/targets.h"

#include "lua/box.h"
#include "lua/context.h"
#include "proxy/choosing_route.h"
#include "proxy/module_route.h"

namespace sluice::lua {

Runtime& building(lua_State* L, const char* what) {
  Runtime& r = *static_cast<Runtime*>(lua_touserdata(L, lua_upvalueindex(1)));
  if (r.sealed) luaL_error(L, "%s: only while the routes are made", what);
  return r;
}

Fgen& new_fgen(lua_State* L, Runtime& runtime) {
  runtime.fgens.push_back(std::make_unique<Fgen>(runtime, runtime.next_fgen++));
  push_box(L, Kind::fgen, runtime.fgens.back().get());
  return *runtime.fgens.back();
}

namespace {

int return_upvalue(lua_State* L) {
  lua_pushvalue(L, lua_upvalueindex(1));
  return 1;
}

}  // namespace

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

namespace {

void check_ready(lua_State* L, const Fgen& f, const char* what) {
  if (!f.is_ready()) luaL_error(L, "%s: that function generator is not ready: call its ready{} first", what);
}

}  // namespace

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
    target->depth = fgen->depth();
    runtime.targets.push_back(std::move(target));
    return runtime.targets.back().get();
  }
  std::unique_ptr<proxy::Route> inside;
  if (auto* router = find_boxed<proxy::Router>(L, index, Kind::route)) inside = std::make_unique<proxy::RouterRoute<proxy::Router>>(*router);
  else if (auto* words = find_boxed<proxy::WordRouter>(L, index, Kind::word_route)) inside = std::make_unique<proxy::RouterRoute<proxy::WordRouter>>(*words);
  if (inside) {
    Target* made = push_route(L, runtime, std::move(inside), "router");
    lua_pop(L, 1);
    return made;
  }
  luaL_error(L, "%s: a store, a pool, a route, a router or a function generator expected, got %s", what, luaL_typename(L, index));
  return nullptr;
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

proxy::Route& one_route(lua_State* L, Runtime& runtime, int index, const char* what) {
  Target* target = answering(L, runtime, index, what);
  if (target->kind == Target::Kind::route) return *target->route;
  runtime.routes.push_back(std::make_unique<proxy::MethodsRoute>(target->methods));
  return *runtime.routes.back();
}

Target* push_route(lua_State* L, Runtime& runtime, std::unique_ptr<proxy::Route> route, const char* name) {
  auto target = std::make_unique<Target>();
  target->kind = Target::Kind::route;
  target->name = name;
  target->route = route.get();
  runtime.routes.push_back(std::move(route));
  return push_target(L, runtime, std::move(target));
}

Target* push_target(lua_State* L, Runtime& runtime, std::unique_ptr<Target> target) {
  runtime.targets.push_back(std::move(target));
  push_box(L, Kind::target, runtime.targets.back().get());
  return runtime.targets.back().get();
}

}  // namespace sluice::lua
