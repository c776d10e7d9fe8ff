// The worker stage: generators, routers and hooks, built while the generation is made and sealed after it.
#include <algorithm>

#include "lua/box.h"
#include "lua/context.h"
#include "lua/library.h"
#include "lua/credentials.h"
#include "lua/inspector.h"
#include "lua/limiter_api.h"
#include "lua/log_api.h"
#include "lua/targets.h"
#include "proxy/module_route.h"

namespace sluice::lua {
namespace {

constexpr std::size_t kNameBytes = 80;

Fgen& self(lua_State* L, const char* method) {
  Fgen& f = check_boxed<Fgen>(L, 1, Kind::fgen, "a function generator");
  if (f.runtime().sealed) luaL_error(L, "%s: only while the routes are made", method);
  return f;
}

int funcgen_new(lua_State* L) {
  new_fgen(L, building(L, "sluice.funcgen_new"));
  return 1;
}

int new_handle(lua_State* L) {
  Fgen& f = self(L, "new_handle");
  if (f.is_ready()) return luaL_error(L, "new_handle: after ready{}");
  if (f.handles().size() == kHandlesPerFgen) return luaL_error(L, "new_handle: more than %d handles", kHandlesPerFgen);
  if (find_boxed<Fgen>(L, 2, Kind::fgen) == &f) return luaL_error(L, "new_handle: a generator cannot be its own child");
  const Target* to = target_at(L, f.runtime(), 2, "new_handle");
  if (to->depth >= kDeepestRoutes) return luaL_error(L, "new_handle: routes inside routes are at most %d deep", static_cast<int>(kDeepestRoutes));
  lua_pushinteger(L, f.add_handle(to));
  return 1;
}

// ready{f = generator, a = its argument, n = name, u = how many objects it may make}
int ready(lua_State* L) {
  Fgen& f = self(L, "ready");
  if (f.is_ready()) return luaL_error(L, "ready: it is ready already");
  Vm::check_stack(L);
  luaL_checktype(L, 2, LUA_TTABLE);
  lua_settop(L, 2);
  lua_pushnil(L);
  while (lua_next(L, 2) != 0) {
    const std::string_view key = lua_type(L, -2) == LUA_TSTRING ? text_at(L, -2) : std::string_view();
    if (key != "f" && key != "a" && key != "n" && key != "u") return luaL_error(L, "ready has no `%s`; its fields are f (the generator), a (its argument), n (a name) and u (how many objects)", lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : "?");
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

// core.wrap(function, name): a ready generator.
int wrap(lua_State* L) {
  Runtime& runtime = building(L, "routes");
  luaL_checktype(L, 1, LUA_TFUNCTION);
  const char* name = luaL_checkstring(L, 2);
  Fgen& f = wrap_function(L, runtime, 1, name);
  push_box(L, Kind::fgen, &f);
  return 1;
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

int raise(lua_State* L, const std::string& sentence) {
  luaL_where(L, 1);
  push(L, sentence);
  lua_concat(L, 2);
  return lua_error(L);
}

// The limiter that the table at `index` describes. nullptr and `why`: it cannot be read, or a global one has no name.
std::shared_ptr<Limiter> limiter_of(lua_State* L, Runtime& runtime, int index, bool global, std::string name, std::string& why) {
  LimitSpec spec;
  if (!read_limit(L, index, spec, name, why)) return nullptr;
  if (!global) return std::make_shared<Limiter>(spec, false);
  if (name.empty()) {
    why = "here it needs a `name`, by which the workers find the same one";
    return nullptr;
  }
  return global_limiter(*runtime.commons, name, spec);
}

int new_limiter(lua_State* L, bool global, const char* what) {
  Runtime& runtime = building(L, what);
  luaL_checktype(L, 1, LUA_TTABLE);
  {
    std::string why;
    std::shared_ptr<Limiter> limiter = limiter_of(L, runtime, 1, global, {}, why);
    if (limiter) {
      push_limiter(L, *limiter);
      runtime.limiters.push_back(std::move(limiter));
      return 1;
    }
    raise(L, std::string(what) + ": " + why);
  }
  return 0;
}
int ratelim(lua_State* L) { return new_limiter(L, false, "sluice.ratelim_tbf"); }
int ratelim_global(lua_State* L) { return new_limiter(L, true, "sluice.ratelim_global_tbf"); }

// core.ratelim(x, {limit=, ...}, key or nil, name or nil): a route that asks a limiter before x; with a name a global one.
// nil and a sentence when it cannot be read.
int limit_route(lua_State* L) {
  Runtime& runtime = building(L, "routes");
  luaL_checktype(L, 2, LUA_TTABLE);
  lua_settop(L, 4);
  proxy::Route& child = one_route(L, runtime, 1, "route_ratelim");
  std::string why;
  const std::optional<LimitKey> key = LimitKey::read(lua_isnil(L, 3) ? std::string_view() : text_at(L, 3));
  std::shared_ptr<Limiter> limiter;
  if (!key) why = "`key` is client_ip, key, header:NAME or query:NAME";
  else limiter = limiter_of(L, runtime, 2, !lua_isnil(L, 4), lua_isnil(L, 4) ? std::string() : std::string(text_at(L, 4)), why);
  if (!limiter) {
    lua_pushnil(L);
    push(L, why);
    return 2;
  }
  push_route(L, runtime, std::make_unique<LimitRoute>(std::move(limiter), *key, child), "ratelim");
  return 1;
}

// register_cron() and add_stat() in a file that both stages run: the config VM has done it.
int done_elsewhere(lua_State* L) {
  building(L, "what the config VM does");
  return 0;
}

// core.stores(): the module interface of all stores.
int stores_route(lua_State* L) {
  Runtime& runtime = building(L, "routes");
  push_route(L, runtime, std::make_unique<proxy::ModuleRoute>(*runtime.stores), "stores");
  return 1;
}

}  // namespace

void open_worker_stage(lua_State* L, Runtime& runtime, std::shared_ptr<const proxy::StoreSet> stores) {
  const StackGuard guard(L);
  runtime.stores = std::move(stores);
  static constexpr luaL_Reg kFgen[] = {{"new_handle", new_handle}, {"ready", ready}, {nullptr, nullptr}};
  static constexpr luaL_Reg kNone[] = {{nullptr, nullptr}};
  static constexpr luaL_Reg kCoreFunctions[] = {{"null", null_route}, {"direct", direct}, {"stores", stores_route}, {"wrap", wrap}, {"ratelim", limit_route},
                                                 {"credentials", credentials}, {nullptr, nullptr}};
  static constexpr luaL_Reg kPublic[] = {{"funcgen_new", funcgen_new}, {"register_cron", done_elsewhere}, {"add_stat", done_elsewhere}, {"ratelim_tbf", ratelim},
                                         {"ratelim_global_tbf", ratelim_global}, {nullptr, nullptr}};
  make_class(L, Kind::fgen, "sluice.funcgen", kFgen);
  make_class(L, Kind::target, "sluice.target", kNone);
  register_request(L);
  register_response(L);
  register_context(L);
  open_inspectors(L);
  open_mutators(L);
  open_limiters(L, runtime.home);
  push_core(L);
  set_functions(L, kCoreFunctions, &runtime);
  lua_pushliteral(L, "worker");
  lua_setfield(L, -2, "stage");
  lua_getglobal(L, "sluice");
  set_functions(L, kPublic, &runtime);
  open_routers(L, runtime);
  open_handlers(L, runtime);
  open_request_log(L, runtime.home);
  // The module interface of all stores, as something that new_handle() takes.
  push_route(L, runtime, std::make_unique<proxy::ModuleRoute>(*runtime.stores), "internal");
  lua_setfield(L, -2, "internal");
}

}  // namespace sluice::lua
