// string.find, match, gmatch and gsub over our own matcher.
#include <cmath>
#include <cstring>

#include "lua/pattern.h"
#include "lua/state.h"

namespace sluice::lua {
namespace {

std::string_view string_arg(lua_State* L, int index) {
  std::size_t n = 0;
  const char* p = luaL_checklstring(L, index, &n);
  return {p, n};
}

// Where to begin, from the argument at 3: 1 is the first byte, -1 the last.
std::size_t first_byte(lua_State* L, std::size_t size) {
  const double from = std::trunc(luaL_optnumber(L, 3, 1));
  const double at = from > 0 ? from - 1 : from == 0 ? 0 : static_cast<double>(size) + from;
  if (!(at > 0)) return 0;
  return at >= static_cast<double>(size) ? size : static_cast<std::size_t>(at);
}

bool is_plain(std::string_view pattern) { return pattern.find_first_of("^$*+?.([%-") == pattern.npos; }

int find_or_match(lua_State* L, bool find) {
  const std::string_view subject = string_arg(L, 1);
  std::string_view pattern = string_arg(L, 2);
  const std::size_t from = first_byte(L, subject.size());
  if (find && (lua_toboolean(L, 4) || is_plain(pattern))) {
    const char* const at = pattern.empty() ? subject.data() + from
                                           : static_cast<const char*>(memmem(subject.data() + from, subject.size() - from,
                                                                             pattern.data(), pattern.size()));
    if (at == nullptr) {
      lua_pushnil(L);
      return 1;
    }
    lua_pushinteger(L, at - subject.data() + 1);
    lua_pushinteger(L, at - subject.data() + static_cast<std::ptrdiff_t>(pattern.size()));
    return 2;
  }
  const bool anchored = !pattern.empty() && pattern.front() == '^';
  if (anchored) pattern.remove_prefix(1);
  PatternMatcher m(L, subject, pattern);
  for (const char* s = subject.data() + from;; ++s) {
    if (const char* e = m.match_at(s)) {
      if (!find) return m.push_captures(s, e, true);
      lua_pushinteger(L, s - subject.data() + 1);
      lua_pushinteger(L, e - subject.data());
      return 2 + m.push_captures(s, e, false);
    }
    if (anchored || s == m.end()) break;
  }
  lua_pushnil(L);
  return 1;
}
int find(lua_State* L) { return find_or_match(L, true); }
int match(lua_State* L) { return find_or_match(L, false); }

// upvalues: the subject, the pattern, and where to go on.
int next_match(lua_State* L) {
  const std::string_view subject = text_at(L, lua_upvalueindex(1));
  PatternMatcher m(L, subject, text_at(L, lua_upvalueindex(2)));
  const auto from = static_cast<std::size_t>(lua_tonumber(L, lua_upvalueindex(3)));
  if (from > subject.size()) return 0;
  for (const char* s = subject.data() + from; s <= m.end(); ++s) {
    const char* e = m.match_at(s);
    if (!e) continue;
    // Behind an empty match it goes on one further.
    lua_pushnumber(L, static_cast<double>(e - subject.data()) + (e == s ? 1 : 0));
    lua_replace(L, lua_upvalueindex(3));
    return m.push_captures(s, e, true);
  }
  lua_pushnumber(L, static_cast<double>(subject.size()) + 1);
  lua_replace(L, lua_upvalueindex(3));
  return 0;
}

int gmatch(lua_State* L) {
  string_arg(L, 1);
  string_arg(L, 2);
  lua_settop(L, 2);
  lua_pushnumber(L, 0);
  lua_pushcclosure(L, next_match, 3);
  return 1;
}

// %0 to %9 in the replacement at 3 are captures; % before anything else is that itself.
void add_text(lua_State* L, luaL_Buffer& out, PatternMatcher& m, const char* s, const char* e) {
  const std::string_view text = text_at(L, 3);
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      luaL_addchar(&out, text[i]);
      continue;
    }
    // A `%` at the end stands before the zero behind every string, as it always did.
    const char c = ++i < text.size() ? text[i] : '\0';
    if (c < '0' || c > '9') {
      luaL_addchar(&out, c);
    } else if (c == '0') {
      luaL_addlstring(&out, s, static_cast<std::size_t>(e - s));
    } else {
      m.push_capture(c - '1', s, e);
      luaL_addvalue(&out);
    }
  }
}

void add_replacement(lua_State* L, luaL_Buffer& out, PatternMatcher& m, const char* s, const char* e, int kind) {
  if (kind == LUA_TTABLE) {
    m.push_capture(0, s, e);
    lua_gettable(L, 3);
  } else if (kind == LUA_TFUNCTION) {
    lua_pushvalue(L, 3);
    const int n = m.push_captures(s, e, true);
    lua_call(L, n, 1);
  } else {
    return add_text(L, out, m, s, e);
  }
  if (!lua_toboolean(L, -1)) {
    lua_pop(L, 1);
    lua_pushlstring(L, s, static_cast<std::size_t>(e - s));
  } else if (!lua_isstring(L, -1)) {
    luaL_error(L, "invalid replacement value (a %s)", luaL_typename(L, -1));
  }
  luaL_addvalue(&out);
}

int gsub(lua_State* L) {
  const std::string_view subject = string_arg(L, 1);
  std::string_view pattern = string_arg(L, 2);
  int kind = lua_type(L, 3);
  if (kind == LUA_TNUMBER) {
    lua_tostring(L, 3);
    kind = LUA_TSTRING;
  }
  if (kind != LUA_TSTRING && kind != LUA_TTABLE && kind != LUA_TFUNCTION)
    return luaL_error(L, "bad argument #3 to 'gsub' (string/function/table expected, got %s)", luaL_typename(L, 3));
  const double most = luaL_optnumber(L, 4, static_cast<double>(subject.size()) + 1);
  const bool anchored = !pattern.empty() && pattern.front() == '^';
  if (anchored) pattern.remove_prefix(1);
  if (kind != LUA_TSTRING) Vm::check_stack(L);
  PatternMatcher m(L, subject, pattern);
  luaL_Buffer out;
  luaL_buffinit(L, &out);
  double n = 0;
  const char* s = m.begin();
  while (n < most) {
    const char* const e = m.match_at(s);
    if (e) {
      ++n;
      add_replacement(L, out, m, s, e, kind);
    }
    if (e && e > s) s = e;
    else if (s < m.end()) luaL_addchar(&out, *s++);
    else break;
    if (anchored) break;
  }
  luaL_addlstring(&out, s, static_cast<std::size_t>(m.end() - s));
  luaL_pushresult(&out);
  lua_pushnumber(L, n);
  return 2;
}

}  // namespace

void open_patterns(lua_State* L) {
  const StackGuard guard(L);
  static constexpr luaL_Reg kFunctions[] = {{"find", find}, {"match", match}, {"gmatch", gmatch}, {"gsub", gsub}, {nullptr, nullptr}};
  lua_getglobal(L, "string");
  for (const luaL_Reg* f = kFunctions; f->name != nullptr; ++f) {
    lua_pushcfunction(L, f->func);
    lua_setfield(L, -2, f->name);
  }
  lua_pushnil(L);
  lua_setfield(L, -2, "gfind");   // gmatch's old name
}

}  // namespace sluice::lua
