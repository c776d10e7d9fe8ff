#include "lua/fields.h"

#include <charconv>
#include <cmath>

namespace sluice::lua {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

bool same_field(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (lower(a[i]) != lower(b[i])) return false;
  return true;
}

bool valid_field_name(std::string_view name) {
  if (name.empty()) return false;
  for (const char c : name) {
    const bool alnum = (c >= '0' && c <= '9') || (lower(c) >= 'a' && lower(c) <= 'z');
    if (!alnum && std::string_view("!#$%&'*+-.^_`|~").find(c) == std::string_view::npos) return false;
  }
  return true;
}

bool valid_field_value(std::string_view value) {
  for (const char c : value)
    if ((static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f) return false;
  return true;
}

bool is_framing_field(std::string_view name) {
  for (const std::string_view owned : {"content-length", "transfer-encoding", "connection", "date", "keep-alive", "upgrade", "trailer"})
    if (same_field(name, owned)) return true;
  return false;
}

void push_lower(lua_State* L, std::string_view name) {
  char text[128];
  if (name.size() <= sizeof text) {
    for (std::size_t i = 0; i < name.size(); ++i) text[i] = lower(name[i]);
    lua_pushlstring(L, text, name.size());
    return;
  }
  luaL_Buffer b;
  luaL_buffinit(L, &b);
  for (const char c : name) luaL_addchar(&b, lower(c));
  luaL_pushresult(&b);
}

std::optional<std::string_view> field_value(lua_State* L, int index, char* number) {
  switch (lua_type(L, index)) {
    case LUA_TSTRING: return text_at(L, index);
    case LUA_TBOOLEAN: return lua_toboolean(L, index) ? std::string_view("true") : std::string_view("false");
    case LUA_TNUMBER: {
      const double v = lua_tonumber(L, index);
      if (!std::isfinite(v)) return std::nullopt;
      // Whole numbers without an exponent as far as they are exact; what a u32 or a number field reads.
      const bool whole = std::floor(v) == v && std::fabs(v) < 1e15;
      const auto end = whole ? std::to_chars(number, number + 40, static_cast<long long>(v))
                             : std::to_chars(number, number + 40, v);
      return std::string_view(number, static_cast<std::size_t>(end.ptr - number));
    }
    default: return std::nullopt;
  }
}

}  // namespace sluice::lua
