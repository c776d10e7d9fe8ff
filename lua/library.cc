#include "lua/library.h"

#include <time.h>

#include <cmath>

#include "lua/box.h"
#include "lua/log_api.h"
#include "lua/response_object.h"
#include "proxy/log.h"

namespace sluice::lua {
namespace {

constexpr const char* kCore = "sluice.core";

bool word_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// Is `name` given a value in this line: name =, ["name"] =, ['name'] =?
bool assigns(std::string_view line, std::string_view name) {
  if (name.empty()) return false;
  for (std::size_t at = line.find(name); at != line.npos; at = line.find(name, at + 1)) {
    if (at > 0 && word_char(line[at - 1]) && word_char(name.front())) continue;
    std::size_t end = at + name.size();
    if (end < line.size() && word_char(line[end]) && word_char(name.back())) continue;
    if (end < line.size() && (line[end] == '"' || line[end] == '\'')) ++end;
    if (end < line.size() && line[end] == ']') ++end;
    while (end < line.size() && (line[end] == ' ' || line[end] == '\t')) ++end;
    if (end < line.size() && line[end] == '=') return true;
  }
  return false;
}

// where(level): "file", line of the caller at that level (1: who called the function that calls this).
int where(lua_State* L) {
  lua_Debug d;
  if (lua_getstack(L, static_cast<int>(luaL_checkinteger(L, 1)), &d) == 0 || lua_getinfo(L, "Sl", &d) == 0) {
    lua_pushliteral(L, "?");
    lua_pushinteger(L, 0);
    return 2;
  }
  lua_pushstring(L, d.short_src);
  lua_pushinteger(L, d.currentline);
  return 2;
}

// fail(file, line, name or nil, sentence): raises "file:line: sentence" at the line where `name` is given a value.
int fail(lua_State* L) {
  const auto& source = *static_cast<const SourceText*>(lua_touserdata(L, lua_upvalueindex(1)));
  luaL_checkstring(L, 1);
  luaL_checkstring(L, 4);
  const std::string_view file = text_at(L, 1);
  int line = static_cast<int>(luaL_checkinteger(L, 2));
  if (file == source.file && lua_type(L, 3) == LUA_TSTRING && !text_at(L, 3).empty())
    line = line_of(source.text, text_at(L, 3), line);
  lua_pushfstring(L, "%s:%d: %s", lua_tostring(L, 1), line, lua_tostring(L, 4));
  return lua_error(L);
}

// line(name, from): where `name` is given a value.
int line(lua_State* L) {
  const auto& source = *static_cast<const SourceText*>(lua_touserdata(L, lua_upvalueindex(1)));
  luaL_checkstring(L, 1);
  lua_pushinteger(L, line_of(source.text, text_at(L, 1), static_cast<int>(luaL_checkinteger(L, 2))));
  return 1;
}

// function_place(f): "FILE:LINE" of its first line.
int function_place(lua_State* L) {
  luaL_checktype(L, 1, LUA_TFUNCTION);
  lua_Debug d;
  lua_settop(L, 1);
  if (lua_getinfo(L, ">S", &d) == 0) lua_pushliteral(L, "?");
  else lua_pushfstring(L, "%s:%d", d.short_src, d.linedefined);
  return 1;
}

// nearest(word, {names}): the nearest one or nil.
int nearest_word(lua_State* L) {
  luaL_checktype(L, 2, LUA_TTABLE);
  luaL_checkstring(L, 1);
  bool found = false;
  {
    std::vector<std::string> known;
    const int n = static_cast<int>(lua_objlen(L, 2));
    for (int i = 1; i <= n; ++i) {
      lua_rawgeti(L, 2, i);
      if (lua_type(L, -1) == LUA_TSTRING) known.emplace_back(text_at(L, -1));
      lua_pop(L, 1);
    }
    const std::string best = nearest(text_at(L, 1), known);
    found = !best.empty();
    if (found) push(L, best);
  }
  if (!found) lua_pushnil(L);
  return 1;
}

// log(text [, level])
int log(lua_State* L) {
  luaL_checkstring(L, 1);
  proxy::LogLevel level = proxy::LogLevel::info;
  if (!lua_isnoneornil(L, 2)) {
    luaL_checkstring(L, 2);
    const std::string_view wanted = text_at(L, 2);
    if (wanted == "debug") level = proxy::LogLevel::debug;
    else if (wanted == "warn") level = proxy::LogLevel::warn;
    else if (wanted == "error") level = proxy::LogLevel::error;
    else if (wanted != "info") return luaL_error(L, "sluice.log: the level is debug, info, warn or error");
  }
  write_text(*static_cast<const Home*>(lua_touserdata(L, lua_upvalueindex(1))), level, text_at(L, 1));
  return 0;
}

int print(lua_State* L) {
  const Home& home = *static_cast<const Home*>(lua_touserdata(L, lua_upvalueindex(1)));
  const int n = lua_gettop(L);
  Vm::check_stack(L);
  luaL_Buffer b;
  luaL_buffinit(L, &b);
  for (int i = 1; i <= n; ++i) {
    if (i > 1) luaL_addchar(&b, '\t');
    lua_getglobal(L, "tostring");
    lua_pushvalue(L, i);
    lua_call(L, 1, 1);
    if (lua_type(L, -1) != LUA_TSTRING) return luaL_error(L, "print: tostring gave no string");
    luaL_addvalue(&b);
  }
  luaL_pushresult(&b);
  write_text(home, proxy::LogLevel::info, text_at(L, -1));
  return 0;
}

double clock_ms(clockid_t which) {
  timespec t{};
  clock_gettime(which, &t);
  return std::floor(static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) / 1e6);
}

int time_real_millis(lua_State* L) {
  const auto& home = *static_cast<const Home*>(lua_touserdata(L, lua_upvalueindex(1)));
  lua_pushnumber(L, home.services ? static_cast<double>(home.services->wall_ms()) : clock_ms(CLOCK_REALTIME));
  return 1;
}

// Not the loop's time, which stands still during a turn: routes measure with it.
int time_mono_millis(lua_State* L) {
  lua_pushnumber(L, clock_ms(CLOCK_MONOTONIC));
  return 1;
}

void open_json(lua_State* L) {
  lua_pushcfunction(L, luaopen_cjson);
  lua_call(L, 0, 1);
  lua_getfield(L, -1, "decode");
  lua_setfield(L, LUA_REGISTRYINDEX, kJsonDecode);
  lua_setfield(L, -2, "json");
}

void set_numbers(lua_State* L) {
  struct Constant {
    const char* name;
    int value;
  };
  static constexpr Constant kConstants[] = {{"WAIT_ANY", 1}, {"WAIT_OK", 2}, {"WAIT_GOOD", 3}, {"WAIT_FASTGOOD", kWaitFastGood},
                                            {"WAIT_RESUME", kWaitResume}, {"RES_ANY", 1}, {"RES_OK", 2}, {"RES_GOOD", 3}};
  for (const Constant& c : kConstants) {
    lua_pushinteger(L, c.value);
    lua_setfield(L, -2, c.name);
  }
  lua_pushliteral(L, "ANY");
  lua_setfield(L, -2, "ANY");
}

}  // namespace

int line_of(std::string_view text, std::string_view name, int from) {
  for (int line = from; from > 0; ++line) {
    const std::string_view t = line_text(text, line);
    if (t.data() == nullptr) return from;
    if (assigns(t, name)) return line;
  }
  return from;
}

std::string_view line_text(std::string_view text, int line) {
  for (int at = 1; at < line; ++at) {
    const std::size_t end = text.find('\n');
    if (end == text.npos) return {};
    text.remove_prefix(end + 1);
  }
  if (line < 1 || text.data() == nullptr) return {};
  return text.substr(0, text.find('\n'));
}

void push_core(lua_State* L) { lua_getfield(L, LUA_REGISTRYINDEX, kCore); }

void set_functions(lua_State* L, const luaL_Reg* functions, const void* upvalue) {
  for (const luaL_Reg* f = functions; f->name != nullptr; ++f) {
    push_pointer(L, upvalue);
    lua_pushcclosure(L, f->func, 1);
    lua_setfield(L, -2, f->name);
  }
}

void open_file_reader(lua_State* L, const Sources& sources, Sources* read) {
  const StackGuard guard(L);
  push_core(L);
  push_file_reader(L, sources, read);
  lua_setfield(L, -2, "read_file");
}

void open_common(lua_State* L, const SourceText& source, const Home& home) {
  const StackGuard guard(L);
  static constexpr luaL_Reg kLog[] = {{"log", log}, {nullptr, nullptr}};
  static constexpr luaL_Reg kTime[] = {{"time_real_millis", time_real_millis}, {"time_mono_millis", time_mono_millis}, {nullptr, nullptr}};
  static constexpr luaL_Reg kCoreFunctions[] = {{"where", where}, {"fail", fail}, {"line", line}, {"nearest", nearest_word},
                                                 {"function_place", function_place}, {nullptr, nullptr}};
  lua_newtable(L);
  set_numbers(L);
  set_functions(L, kLog, &home);
  set_functions(L, kTime, &home);
  open_json(L);
  lua_setglobal(L, "sluice");
  open_shared(L, home);
  push_pointer(L, &home);
  lua_pushcclosure(L, print, 1);
  lua_setglobal(L, "print");
  lua_newtable(L);
  set_functions(L, kCoreFunctions, &source);
  push(L, source.file);
  lua_setfield(L, -2, "file");
  lua_setfield(L, LUA_REGISTRYINDEX, kCore);
}

}  // namespace sluice::lua
