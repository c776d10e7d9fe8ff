#include "lua/box.h"

#include <string>
#include <vector>

#include "lua/value.h"

namespace sluice::lua {
namespace {

// object:NAME, of no method: who mistyped it is told of the nearest. Upvalue: what the class is called.
int no_method(lua_State* L) {
  if (lua_type(L, 2) != LUA_TSTRING) return 0;
  bool near = false;
  {
    std::vector<std::string> known;
    for (lua_pushnil(L); lua_next(L, 1) != 0; lua_pop(L, 1))
      if (lua_type(L, -2) == LUA_TSTRING) known.emplace_back(text_at(L, -2));
    const std::string best = nearest(text_at(L, 2), known);
    near = !best.empty();
    if (near) push(L, best);
  }
  if (near) return luaL_error(L, "%s has no `%s`; did you mean `%s`?", lua_tostring(L, lua_upvalueindex(1)), lua_tostring(L, 2), lua_tostring(L, -1));
  return luaL_error(L, "%s has no `%s`", lua_tostring(L, lua_upvalueindex(1)), lua_tostring(L, 2));
}

}  // namespace

void make_class(lua_State* L, Kind kind, const char* name, const luaL_Reg* methods, const void* upvalue) {
  lua_createtable(L, 0, 4);
  lua_newtable(L);
  push_pointer(L, upvalue);
  luaL_setfuncs(L, methods, 1);
  lua_createtable(L, 0, 1);
  lua_pushstring(L, name);
  lua_pushcclosure(L, no_method, 1);
  lua_setfield(L, -2, "__index");
  lua_setmetatable(L, -2);
  lua_setfield(L, -2, "__index");
  // Locked: what getmetatable() shows is a name.
  lua_pushstring(L, name);
  lua_setfield(L, -2, "__metatable");
  lua_rawseti(L, LUA_REGISTRYINDEX, static_cast<int>(kind));
}

Box* push_box(lua_State* L, Kind kind, void* object) {
  Box* box = static_cast<Box*>(lua_newuserdata(L, sizeof(Box)));
  *box = {kind, object};
  lua_rawgeti(L, LUA_REGISTRYINDEX, static_cast<int>(kind));
  lua_setmetatable(L, -2);
  return box;
}

}  // namespace sluice::lua
