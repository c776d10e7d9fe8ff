// LuaJIT's headers, in the one place that names them.
#pragma once
#include <lua.hpp>

// Of lua-cjson's static library, which has no header.
extern "C" int luaopen_cjson(lua_State* L);
