#include "lua/unsandboxed.h"

namespace sluice::lua {
namespace {

constexpr const char* kOpened = "sluice.unsandboxed";

void open_library(lua_State* L, lua_CFunction open, const char* library) {
  lua_pushcfunction(L, open);
  lua_pushstring(L, library);
  lua_call(L, 1, 0);
}

// require(name): what is beside the config, as the sandbox has it, else what `package` finds; upvalues 1 and 2. A module of
// ours that fails is not looked for elsewhere: that its file is there is what counts.
int require(lua_State* L) {
  luaL_checkstring(L, 1);
  lua_settop(L, 1);
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_pushvalue(L, 1);
  if (lua_pcall(L, 1, 1, 0) == LUA_OK) return 1;
  const std::string_view why = lua_type(L, -1) == LUA_TSTRING ? text_at(L, -1) : std::string_view();
  if (why.find("require: no file '") == why.npos && why.find("' was not required while the config was read") == why.npos &&
      why.find("' is not a module name") == why.npos)
    return lua_error(L);
  lua_settop(L, 1);
  lua_pushvalue(L, lua_upvalueindex(2));
  lua_pushvalue(L, 1);
  lua_call(L, 1, 1);
  return 1;
}

// Copies these fields of the table `from` at the top into global table `to`, and takes it off.
void keep(lua_State* L, const char* to, std::initializer_list<const char*> names) {
  lua_getglobal(L, to);
  for (const char* n : names) {
    lua_getfield(L, -2, n);
    lua_setfield(L, -2, n);
  }
  lua_pop(L, 2);
}

}  // namespace

void open_unsandboxed(lua_State* L) {
  const StackGuard guard(L);
  lua_getfield(L, LUA_REGISTRYINDEX, kOpened);
  if (lua_toboolean(L, -1)) return;
  lua_pushboolean(L, 1);
  lua_setfield(L, LUA_REGISTRYINDEX, kOpened);

  // A library that is opened again writes into the table that it finds. These are hidden from it, and what is ours is put
  // back behind it.
  static constexpr const char* kOurs[] = {"debug", "os", "print", "load", "loadstring", "collectgarbage", "coroutine", "require", "xpcall"};
  static constexpr const char* kTables[] = {"debug", "os", "coroutine"};
  lua_newtable(L);
  const int ours = lua_gettop(L);
  for (const char* n : kOurs) {
    lua_getglobal(L, n);
    lua_setfield(L, ours, n);
  }
  lua_getfield(L, LUA_REGISTRYINDEX, "_LOADED");
  for (const char* n : kTables) {
    lua_pushnil(L);
    lua_setfield(L, -2, n);
    lua_pushnil(L);
    lua_setglobal(L, n);
  }
  open_library(L, luaopen_base, "");
  open_library(L, luaopen_io, LUA_IOLIBNAME);
  open_library(L, luaopen_os, LUA_OSLIBNAME);
  open_library(L, luaopen_debug, LUA_DBLIBNAME);
  open_library(L, luaopen_package, LUA_LOADLIBNAME);
  lua_getglobal(L, "require");
  const int standard = lua_gettop(L);
  lua_getglobal(L, "os");
  const int whole_os = lua_gettop(L);
  lua_getglobal(L, "debug");
  const int whole_debug = lua_gettop(L);
  for (const char* n : kOurs) {
    lua_getfield(L, ours, n);
    lua_setglobal(L, n);
  }
  lua_pushvalue(L, whole_os);
  keep(L, "os", {"execute", "remove", "rename", "tmpname"});
  lua_pushvalue(L, whole_debug);
  keep(L, "debug", {"getinfo", "getlocal", "getupvalue"});
  lua_getfield(L, ours, "require");
  lua_pushvalue(L, standard);
  lua_pushcclosure(L, require, 2);
  lua_setglobal(L, "require");
  for (const char* gone : {"newproxy", "gcinfo", "module"}) {
    lua_pushnil(L);
    lua_setglobal(L, gone);
  }
  // What require "os" and the like give is what the globals are.
  lua_getfield(L, LUA_REGISTRYINDEX, "_LOADED");
  for (const char* n : kTables) {
    lua_getglobal(L, n);
    lua_setfield(L, -2, n);
  }
  lua_pushnil(L);
  lua_setfield(L, -2, "jit");
  luaL_findtable(L, LUA_REGISTRYINDEX, "_PRELOAD", 1);
  lua_pushcfunction(L, luaopen_ffi);
  lua_setfield(L, -2, "ffi");
}

}  // namespace sluice::lua
