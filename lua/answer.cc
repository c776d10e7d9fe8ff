#include "lua/answer.h"

#include <string_view>

#include "lua/box.h"
#include "lua/fields.h"
#include "lua/response_object.h"

namespace sluice::lua {
namespace {

constexpr std::string_view kText = "text/plain; charset=utf-8";

bool read_status(lua_State* L, int index, proxy::Response& out, std::string& why) {
  const double n = lua_tonumber(L, index);
  if (!(n >= 200 && n <= 599) || n != static_cast<int>(n)) {
    why = "a route returned a status that is not one of 200 to 599";
    return false;
  }
  out.status = static_cast<std::uint16_t>(n);
  return true;
}

bool read_body(lua_State* L, int index, proxy::Response& out, std::string& why) {
  if (lua_isnoneornil(L, index)) return true;
  if (lua_type(L, index) != LUA_TSTRING) {
    why = std::string("a route returned a body that is a ") + luaL_typename(L, index) + ", not a string";
    return false;
  }
  out.body.text.assign(text_at(L, index));
  if (out.status != 204 && out.status != 304) out.content_type = kText;
  return true;
}

bool add_header(proxy::Response& out, std::string_view name, std::string_view value, std::string& why) {
  if (!append_header(out.headers, name, value)) {
    why = "a route returned a header that cannot be sent: '";
    why.append(name.substr(0, 60)).append(is_framing_field(name) ? "' is the server's own" : "'");
    if (out.headers.size() + name.size() + value.size() + 4 > kHeaderLinesBytes) why += ": more than 32 KiB of headers";
    return false;
  }
  return true;
}

// Of lists what follows a response is one more entry; of others it stands in the response's place.
bool is_added(std::string_view name) { return same_field(name, "vary") || same_field(name, "set-cookie"); }

// {name = value or list of values}: names are strings; values strings or numbers.
bool read_headers(lua_State* L, int index, proxy::Response& out, std::string& why) {
  if (lua_isnoneornil(L, index)) return true;
  if (!lua_istable(L, index)) {
    why = std::string("a route returned headers that are a ") + luaL_typename(L, index) + ", not a table";
    return false;
  }
  char number[40];
  lua_pushnil(L);
  while (lua_next(L, index) != 0) {
    if (lua_type(L, -2) != LUA_TSTRING) {
      why = "a route returned headers whose names are not strings";
      return false;
    }
    if (!is_added(text_at(L, -2))) drop_header(out, text_at(L, -2));
    if (lua_istable(L, -1)) {
      for (int i = 1;; ++i) {
        lua_rawgeti(L, -1, i);
        const auto value = field_value(L, -1, number);
        if (!value) {
          if (lua_isnil(L, -1) && i > 1) break;
          why = "a route returned a list of header values that is empty or has something else than strings and numbers";
          return false;
        }
        if (!add_header(out, text_at(L, -3), *value, why)) return false;
        lua_pop(L, 1);
      }
      lua_pop(L, 1);
    } else {
      const auto value = field_value(L, -1, number);
      if (!value) {
        why = "a route returned a header value that is neither a string nor a number";
        return false;
      }
      if (!add_header(out, text_at(L, -2), *value, why)) return false;
    }
    lua_pop(L, 1);
  }
  return true;
}

bool read_values(lua_State* L, proxy::Response& out, std::string& why) {
  switch (lua_gettop(L) == 0 ? LUA_TNIL : lua_type(L, 1)) {
    case LUA_TSTRING:
      out.body.text.assign(text_at(L, 1));
      out.content_type = kText;
      return true;
    case LUA_TUSERDATA: {
      auto* r = find_boxed<ResponseObject>(L, 1, Kind::response);
      if (r == nullptr) {
        why = "a route returned an object that is not a response";
        return false;
      }
      if (!r->alive || r->passed_on) {
        why = r->alive ? "a route returned a response that was returned before"
                       : "a route returned a response of another request";
        return false;
      }
      r->pass_on(out);
      // A number behind it is its class, as best_result() and others return it.
      if (lua_isnoneornil(L, 2) || lua_type(L, 2) == LUA_TNUMBER) return true;
      if (lua_gettop(L) == 2 && lua_istable(L, 2)) return read_headers(L, 2, out, why);
      why = std::string("a route returned a response and a ") + luaL_typename(L, 2) + "; what may follow it are headers, a table";
      return false;
    }
    case LUA_TNUMBER:
      return read_status(L, 1, out, why) && read_body(L, 2, out, why) && read_headers(L, 3, out, why);
    case LUA_TTABLE: {
      if (lua_gettop(L) > 1) {
        why = "a route returned a table and more; a table says all by itself: status, body, headers";
        return false;
      }
      bool known = false;
      for (lua_pushnil(L); lua_next(L, 1) != 0; lua_pop(L, 1)) {
        const std::string_view key = lua_type(L, -2) == LUA_TSTRING ? text_at(L, -2) : std::string_view("a number");
        known = key == "status" || key == "body" || key == "headers";
        if (known) continue;
        why = "a route returned a table with `" + std::string(key) + "`; it may have status, body and headers";
        return false;
      }
      if (!known) {
        why = "a route returned an empty table; it needs a status, a body or headers";
        return false;
      }
      for (const char* field : {"status", "body", "headers"}) {
        lua_pushstring(L, field);
        lua_rawget(L, 1);
      }
      if (lua_isnil(L, 2)) {
        lua_pushinteger(L, 200);
        lua_replace(L, 2);
      } else if (lua_type(L, 2) != LUA_TNUMBER) {
        why = "a route returned a table whose status is not a number";
        return false;
      }
      return read_status(L, 2, out, why) && read_body(L, 3, out, why) && read_headers(L, 4, out, why);
    }
    default:
      why = std::string("a route returned ") + (lua_gettop(L) == 0 ? "nothing" : luaL_typename(L, 1)) +
            "; it returns a response, a string, a status and a body, or a table";
      return false;
  }
}

}  // namespace

bool read_answer(lua_State* L, proxy::Response& out, std::string& why) {
  // Four tell all there is to know, and leave room for what is looked at: a route may return thousands.
  if (lua_gettop(L) > 4) lua_settop(L, 4);
  lua_checkstack(L, 12);
  if (read_values(L, out, why)) return true;
  out.reset();
  return false;
}

}  // namespace sluice::lua
