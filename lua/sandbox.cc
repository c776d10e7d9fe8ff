#include "lua/sandbox.h"

#include <unistd.h>

#include <limits>

#include "lua/pattern.h"
#include "lua/random_seed.h"
#include "vm/base/read_file.h"

namespace sluice::lua {
namespace {

// What load() takes: the compiler is a C function, which nothing stops, and so much takes it a tenth of a second.
constexpr std::size_t kLoadBytes = std::size_t{1} << 20;
constexpr std::size_t kModuleBytes = std::size_t{16} << 20, kFileBytes = std::size_t{1} << 20;

void open_library(lua_State* L, lua_CFunction open, const char* library) {
  lua_pushcfunction(L, open);
  lua_pushstring(L, library);
  lua_call(L, 1, 0);
}

void forget(lua_State* L, const char* table, std::initializer_list<const char*> names) {
  lua_getglobal(L, table);
  for (const char* n : names) {
    lua_pushnil(L);
    lua_setfield(L, -2, n);
  }
  lua_pop(L, 1);
}

// Of xpcall(), upvalue 1: the config's own handler. It runs where the error was raised, with hooks off when that was the
// watchdog's: nothing would end a loop in it then. So the watchdog's error meets no handler.
int handle_error(lua_State* L) {
  if (Vm::stopping(L)) return 1;
  lua_settop(L, 1);
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_insert(L, 1);
  lua_call(L, 1, 1);
  return 1;
}

// A handler for LuaJIT's xpcall. One in C, such as debug.traceback, ends by itself.
int guarded(lua_State* L) {
  lua_settop(L, 1);
  if (!lua_isfunction(L, 1) || lua_iscfunction(L, 1)) return 1;
  lua_pushcclosure(L, handle_error, 1);
  return 1;
}

// table.insert(t, [position,] x): LuaJIT's moves what is between a position and the end one by one, and nothing stops it
// there, from -2^31 on for twenty seconds. So positions begin at 1.
int insert(lua_State* L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  const auto n = static_cast<int>(lua_objlen(L, 1));
  switch (lua_gettop(L)) {
    case 2: lua_rawseti(L, 1, n + 1); return 0;
    case 3: break;
    default: return luaL_error(L, "wrong number of arguments to 'insert'");
  }
  const lua_Number asked = luaL_checknumber(L, 2);
  luaL_argcheck(L, asked >= 1 && asked <= std::numeric_limits<int>::max(), 2, "a position from 1 expected");
  const auto at = static_cast<int>(asked);
  for (int i = n; i >= at; --i) {
    lua_rawgeti(L, 1, i);
    lua_rawseti(L, 1, i + 1);
  }
  lua_rawseti(L, 1, at);
  return 0;
}

// In Lua, since a wait passes through LuaJIT's own and not through a C function of ours.
constexpr const char* kXpcall = "local xpcall, guarded = ... return function(f, handler, ...) return xpcall(f, guarded(handler), ...) end";

void open_xpcall(lua_State* L) {
  luaL_loadbuffer(L, kXpcall, std::char_traits<char>::length(kXpcall), "=xpcall");
  lua_getglobal(L, "xpcall");
  lua_pushcfunction(L, guarded);
  lua_call(L, 2, 1);
  lua_setglobal(L, "xpcall");
}

// load(text or function [, name [, mode [, env]]]), of text alone: bytecode can be made to break the VM.
int load_text(lua_State* L) {
  std::size_t n = 0;
  const char* text = luaL_checklstring(L, 1, &n);
  const char* chunk = luaL_optstring(L, 2, "=(load)");
  if (n > kLoadBytes) return luaL_error(L, "load: the text has %d bytes; at most %d are taken", static_cast<int>(n), static_cast<int>(kLoadBytes));
  if (luaL_loadbufferx(L, text, n, chunk, "t") != LUA_OK) {
    lua_pushnil(L);
    lua_insert(L, -2);
    return 2;
  }
  if (lua_istable(L, 4)) {
    lua_pushvalue(L, 4);
    lua_setfenv(L, -2);
  }
  return 1;
}

int collect_garbage(lua_State* L) {
  const std::string_view what = lua_gettop(L) > 0 ? std::string_view(luaL_checkstring(L, 1)) : "collect";
  if (what != "count" && what != "collect" && what != "step")
    return luaL_error(L, "collectgarbage: only \"count\"; the server collects between requests");
  lua_pushnumber(L, what == "count" ? lua_gc(L, LUA_GCCOUNT, 0) + lua_gc(L, LUA_GCCOUNTB, 0) / 1024.0 : 0);
  return 1;
}

// require "a.b": a/b.lua beside the config. upvalue 1: Sources, 2: the table of what was loaded, 3: Sources to read files
// into, or null. What is being loaded has a light userdata there instead of its value.
int require(lua_State* L) {
  std::size_t n = 0;
  const char* raw = luaL_checklstring(L, 1, &n);
  lua_pushvalue(L, 1);
  lua_rawget(L, lua_upvalueindex(2));
  if (lua_islightuserdata(L, -1))
    return luaL_error(L, "require: '%s' requires itself, over whatever way, or failed before", raw);
  if (!lua_isnil(L, -1)) return 1;
  lua_pop(L, 1);
  const Sources& sources = *static_cast<const Sources*>(lua_touserdata(L, lua_upvalueindex(1)));
  Sources* read = static_cast<Sources*>(lua_touserdata(L, lua_upvalueindex(3)));
  if (read && read->frozen) read = nullptr;
  const std::string_view module(raw, n);
  for (const char c : module)
    if (!(c == '.' || c == '_' || c == '-' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')))
      return luaL_error(L, "require: '%s' is not a module name (letters, digits, _ - and dots)", raw);
  if (module.empty() || module.find("..") != module.npos || module.front() == '.')
    return luaL_error(L, "require: '%s' is not a module name (letters, digits, _ - and dots)", raw);
  const std::string* text = nullptr;
  {
    const std::string key(module);
    auto at = sources.text.find(key);
    if (at == sources.text.end() && read && !sources.folder.empty()) {
      std::string path = sources.folder;
      for (const char c : module) path += c == '.' ? '/' : c;
      path += ".lua";
      Result<std::string, std::string> found = read_file(path, kModuleBytes);
      if (found) at = read->text.emplace(key, *std::move(found)).first;
      else if (access(path.c_str(), F_OK) == 0) return luaL_error(L, "require: %s", found.error().c_str());
    }
    if (at != sources.text.end()) text = &at->second;
  }
  if (text == nullptr)
    return luaL_error(L, read ? "require: no file '%s.lua' beside the config (dots stand for folders)"
                              : "require: '%s' was not required while the config was read, and routes and crons read no files", raw);
  lua_pushfstring(L, "@%s.lua", raw);
  if (luaL_loadbufferx(L, text->data(), text->size(), lua_tostring(L, -1), "t") != LUA_OK) return lua_error(L);
  lua_pushvalue(L, 1);
  lua_pushlightuserdata(L, nullptr);
  lua_rawset(L, lua_upvalueindex(2));
  lua_pushvalue(L, 1);
  lua_call(L, 1, 1);
  if (lua_isnil(L, -1) || lua_islightuserdata(L, -1)) {
    lua_pop(L, 1);
    lua_pushboolean(L, 1);
  }
  lua_pushvalue(L, 1);
  lua_pushvalue(L, -2);
  lua_rawset(L, lua_upvalueindex(2));
  return 1;
}

}  // namespace

namespace {

int read_file_beside(lua_State* L) {
  luaL_checkstring(L, 1);
  const Sources& sources = *static_cast<const Sources*>(lua_touserdata(L, lua_upvalueindex(1)));
  Sources* read = static_cast<Sources*>(lua_touserdata(L, lua_upvalueindex(2)));
  if (read && read->frozen) read = nullptr;
  const std::string name(text_at(L, 1));
  // No module is called so.
  const std::string key = "file " + name;
  auto at = sources.text.find(key);
  if (at == sources.text.end() && read) {
    Result<std::string, std::string> found = read_file(name.starts_with('/') ? name : sources.folder + name, kFileBytes);
    if (!found) {
      lua_pushnil(L);
      push(L, found.error());
      return 2;
    }
    at = read->text.emplace(key, *std::move(found)).first;
  }
  if (at == sources.text.end()) {
    lua_pushnil(L);
    push(L, "`" + name + "` was not read with the config");
    return 2;
  }
  push(L, at->second);
  return 1;
}

}  // namespace

void push_file_reader(lua_State* L, const Sources& sources, Sources* read) {
  push_pointer(L, &sources);
  push_pointer(L, read);
  lua_pushcclosure(L, read_file_beside, 2);
}

void open_sandbox(lua_State* L, const Sources& sources, Sources* read) {
  open_library(L, luaopen_base, "");
  open_library(L, luaopen_table, LUA_TABLIBNAME);
  open_library(L, luaopen_string, LUA_STRLIBNAME);
  open_library(L, luaopen_math, LUA_MATHLIBNAME);
  open_library(L, luaopen_bit, LUA_BITLIBNAME);
  open_library(L, luaopen_os, LUA_OSLIBNAME);
  open_library(L, luaopen_debug, LUA_DBLIBNAME);

  forget(L, "os", {"execute", "exit", "remove", "rename", "setlocale", "tmpname"});
  forget(L, "string", {"dump"});
  lua_getglobal(L, LUA_TABLIBNAME);
  lua_pushcfunction(L, insert);
  lua_setfield(L, -2, "insert");
  lua_pop(L, 1);
  // Its generator begins the same in every VM: workers and nodes would all shuffle alike. Of the 53 bits that a number has.
  lua_getglobal(L, "math");
  lua_getfield(L, -1, "randomseed");
  lua_pushnumber(L, static_cast<double>(random_seed() >> 11));
  lua_call(L, 1, 0);
  lua_pop(L, 1);
  open_patterns(L);
  lua_createtable(L, 0, 1);
  lua_getglobal(L, "debug");
  lua_getfield(L, -1, "traceback");
  lua_setfield(L, -3, "traceback");
  lua_pop(L, 1);
  lua_setglobal(L, "debug");
  for (const char* gone : {"dofile", "loadfile", "newproxy", "getfenv", "setfenv", "jit", "module", "gcinfo", "require", "package", "io"}) {
    lua_pushnil(L);
    lua_setglobal(L, gone);
  }
  lua_pushcfunction(L, load_text);
  lua_pushvalue(L, -1);
  lua_setglobal(L, "load");
  lua_setglobal(L, "loadstring");
  lua_pushcfunction(L, collect_garbage);
  lua_setglobal(L, "collectgarbage");
  open_coroutines(L);
  open_xpcall(L);

  push_pointer(L, &sources);
  lua_newtable(L);
  push_pointer(L, read);
  lua_pushcclosure(L, require, 3);
  lua_setglobal(L, "require");
}

}  // namespace sluice::lua
