#include "lua/box.h"

namespace sluice::lua {

void make_class(lua_State* L, Kind kind, const char* name, const luaL_Reg* methods, const void* upvalue) {
  lua_createtable(L, 0, 4);
  lua_newtable(L);
  push_pointer(L, upvalue);
  luaL_setfuncs(L, methods, 1);
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
