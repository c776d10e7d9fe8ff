// coroutine.yield, resume and wrap: a config's own coroutines go on as in Lua, those that routes run in are their waits' alone.
//
// LuaJIT nests coroutines on the thread's stack without a bound, so each resume looks how much is left.
#include "lua/sandbox.h"

namespace sluice::lua {
namespace {

// The registry's table of the coroutines that routes run in has the value at `index`.
bool is_route_coroutine(lua_State* L, int index) {
  lua_pushvalue(L, index);
  lua_getfield(L, LUA_REGISTRYINDEX, kRouteCoroutines);
  lua_insert(L, -2);
  lua_rawget(L, -2);
  const bool is = !lua_isnil(L, -1);
  lua_pop(L, 2);
  return is;
}

// A yield out of a route would be taken for a wait that nobody ends.
int yield(lua_State* L) {
  lua_pushthread(L);
  if (is_route_coroutine(L, -1)) return luaL_error(L, "coroutine.yield outside of a coroutine of your own");
  lua_pop(L, 1);
  return lua_yield(L, lua_gettop(L));
}

// upvalue: Lua's own.
int resume(lua_State* L) {
  luaL_checktype(L, 1, LUA_TTHREAD);
  Vm::check_stack(L);
  // Another route's waits for a result that is not in.
  if (is_route_coroutine(L, 1)) {
    lua_pushboolean(L, 0);
    lua_pushliteral(L, "cannot resume a route's coroutine: its waits do");
    return 2;
  }
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_insert(L, 1);
  lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
  return lua_gettop(L);
}

// upvalue: what Lua's own wrap() gave.
int wrapped(lua_State* L) {
  Vm::check_stack(L);
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_insert(L, 1);
  lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
  return lua_gettop(L);
}

// upvalue: Lua's own.
int wrap(lua_State* L) {
  luaL_checktype(L, 1, LUA_TFUNCTION);
  lua_settop(L, 1);
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_insert(L, 1);
  lua_call(L, 1, 1);
  lua_pushcclosure(L, wrapped, 1);
  return 1;
}

}  // namespace

void open_coroutines(lua_State* L) {
  const StackGuard guard(L);
  // By weak key: a coroutine that nobody holds any more is no route's.
  lua_newtable(L);
  lua_createtable(L, 0, 1);
  lua_pushliteral(L, "k");
  lua_setfield(L, -2, "__mode");
  lua_setmetatable(L, -2);
  lua_setfield(L, LUA_REGISTRYINDEX, kRouteCoroutines);

  lua_getglobal(L, "coroutine");
  lua_pushcfunction(L, yield);
  lua_setfield(L, -2, "yield");
  for (const auto& [name, function] : {luaL_Reg{"resume", resume}, luaL_Reg{"wrap", wrap}}) {
    lua_getfield(L, -1, name);
    lua_pushcclosure(L, function, 1);
    lua_setfield(L, -2, name);
  }
}

}  // namespace sluice::lua
