#include "lua/response_object.h"

#include <charconv>
#include <utility>

#include "lua/fields.h"

namespace sluice::lua {

void ResponseObject::pass_on(proxy::Response& out) {
  if (kept) {
    out = response;
    return;
  }
  passed_on = true;
  if (event) proxy::respond(out, event->answer);
  else swap(out, response);
}

bool next_header_line(std::string_view& lines, std::string_view& name, std::string_view& value) {
  while (!lines.empty()) {
    const std::size_t end = lines.find("\r\n");
    const std::string_view line = lines.substr(0, end);
    lines.remove_prefix(end == lines.npos ? lines.size() : end + 2);
    const std::size_t colon = line.find(": ");
    if (colon == line.npos) continue;
    name = line.substr(0, colon);
    value = line.substr(colon + 2);
    return true;
  }
  return false;
}

void drop_header_line(std::string& lines, std::string_view wanted) {
  std::string_view rest = lines, name, value;
  while (next_header_line(rest, name, value)) {
    if (!same_field(name, wanted)) continue;
    const auto at = static_cast<std::size_t>(name.data() - lines.data());
    const std::size_t after = lines.size() - rest.size();
    lines.erase(at, after - at);
    rest = std::string_view(lines).substr(at);
  }
}

std::optional<std::string_view> ResponseObject::header(std::string_view wanted, HeaderRoom& room) const {
  if (!event) {
    std::string_view lines = response.headers, its, value;
    while (next_header_line(lines, its, value))
      if (same_field(its, wanted)) return value;
  }
  char* p = room.data();
  if (same_field(wanted, "etag")) {
    if (revision() == 0) return std::nullopt;
    *p++ = '"';
    p = std::to_chars(p, room.data() + room.size() - 1, revision()).ptr;
    *p++ = '"';
  } else if (same_field(wanted, "content-type")) {
    if (content_type().empty()) return std::nullopt;
    return content_type();
  } else if (same_field(wanted, "x-pure-error")) {
    return error_name();
  } else if (same_field(wanted, "retry-after") && !event && response.retry_after_s != 0) {
    p = std::to_chars(p, room.data() + room.size(), response.retry_after_s).ptr;
  } else {
    return std::nullopt;
  }
  return std::string_view(room.data(), static_cast<std::size_t>(p - room.data()));
}

bool append_header(std::string& lines, std::string_view name, std::string_view value) {
  if (!valid_field_name(name) || !valid_field_value(value) || is_framing_field(name)) return false;
  if (lines.size() + name.size() + value.size() + 4 > kHeaderLinesBytes) return false;
  lines.append(name).append(": ").append(value).append("\r\n");
  return true;
}

void drop_header(proxy::Response& r, std::string_view name) {
  drop_header_line(r.headers, name);
  if (same_field(name, "content-type")) r.content_type = {};
  else if (same_field(name, "etag")) r.revision = 0;
  else if (same_field(name, "cache-control")) r.no_store = false;
  else if (same_field(name, "retry-after")) r.retry_after_s = 0;
  else if (same_field(name, "allow")) r.allow = 0;
}

namespace {

ResponseObject& self(lua_State* L) {
  ResponseObject& r = check_boxed<ResponseObject>(L, 1, Kind::response, "a response");
  if (!r.alive) luaL_error(L, "a response that is no more: its request is answered");
  return r;
}

ResponseObject& own(lua_State* L, const char* method) {
  ResponseObject& r = self(L);
  if (!r.owned) luaL_error(L, "%s: a result is read only; make a response with rctx:response_new()", method);
  return r;
}

int ok(lua_State* L) {
  lua_pushboolean(L, class_of(self(L).status()) >= Class::ok);
  return 1;
}

int hit(lua_State* L) {
  lua_pushboolean(L, class_of(self(L).status()) == Class::good);
  return 1;
}

int status(lua_State* L) {
  lua_pushinteger(L, self(L).status());
  return 1;
}

int header(lua_State* L) {
  ResponseObject& r = self(L);
  std::size_t n = 0;
  const char* s = luaL_checklstring(L, 2, &n);
  HeaderRoom room;
  if (const auto value = r.header({s, n}, room)) push(L, *value);
  else lua_pushnil(L);
  return 1;
}

void push_body(lua_State* L, const proxy::Body& body) {
  if (body.loan && body.pieces.size() > 1) {
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    for (const std::string_view p : body.pieces) luaL_addlstring(&b, p.data(), p.size());
    luaL_pushresult(&b);
    return;
  }
  push(L, body.flat());
}

ResponseObject& with_body(lua_State* L) {
  ResponseObject& r = self(L);
  if (r.passed_on) luaL_error(L, "a response whose body has gone to the client");
  return r;
}

int body(lua_State* L) {
  if (lua_gettop(L) > 1) {
    ResponseObject& r = own(L, "body");
    std::size_t n = 0;
    const char* s = luaL_checklstring(L, 2, &n);
    r.response.body.text.assign(s, n);
    lua_settop(L, 1);
    return 1;
  }
  push_body(L, with_body(L).body());
  return 1;
}

int vlen(lua_State* L) {
  lua_pushnumber(L, static_cast<double>(with_body(L).body().size()));
  return 1;
}

// The decoded body, or nil and why not.
int json(lua_State* L) {
  ResponseObject& r = with_body(L);
  lua_getfield(L, LUA_REGISTRYINDEX, kJsonDecode);
  push_body(L, r.body());
  if (lua_pcall(L, 1, 1, 0) != LUA_OK) {
    lua_pushnil(L);
    lua_insert(L, -2);
    return 2;
  }
  return 1;
}

int revision(lua_State* L) {
  const std::uint64_t n = self(L).revision();
  if (n == 0) lua_pushnil(L);
  else lua_pushnumber(L, static_cast<double>(n));
  return 1;
}

int error(lua_State* L) {
  HeaderRoom room;
  push(L, *self(L).header("x-pure-error", room));
  return 1;
}

// In seconds, from the sending to the answer.
int elapsed(lua_State* L) {
  lua_pushnumber(L, static_cast<double>(self(L).elapsed_us) / 1e6);
  return 1;
}

int backend(lua_State* L) {
  ResponseObject& r = self(L);
  if (r.backend.empty()) lua_pushnil(L);
  else push(L, r.backend);
  return 1;
}

int set_status(lua_State* L) {
  ResponseObject& r = own(L, "set_status");
  const lua_Integer n = luaL_checkinteger(L, 2);
  if (n < 200 || n > 599) return luaL_error(L, "set_status: %d is not a final status (200 to 599)", static_cast<int>(n));
  r.response.status = static_cast<std::uint16_t>(n);
  lua_settop(L, 1);
  return 1;
}

// set_header(name, value or list of values or nil): in place of those of that name.
int set_header(lua_State* L) {
  ResponseObject& r = own(L, "set_header");
  luaL_checkstring(L, 2);
  const std::string_view name = text_at(L, 2);
  if (is_framing_field(name)) return luaL_error(L, "set_header: '%s' is the server's own", name.data());
  char number[40];
  const auto can_be_sent = [&](int index) {
    const auto value = field_value(L, index, number);
    return value && valid_field_value(*value);
  };
  const int n = lua_istable(L, 3) ? static_cast<int>(lua_objlen(L, 3)) : 0;
  bool good = valid_field_name(name) && (n > 0 || lua_isnil(L, 3) || can_be_sent(3));
  // All are looked at before any is set.
  for (int i = 1; good && i <= n; ++i, lua_pop(L, 1)) {
    lua_rawgeti(L, 3, i);
    good = can_be_sent(-1);
  }
  if (!good) return luaL_error(L, "set_header: '%s' is not a header that can be sent", name.data());
  std::string& lines = r.response.headers;
  drop_header_line(lines, name);
  if (same_field(name, "content-type")) r.response.content_type = {};
  for (int i = 1; i <= n; ++i, lua_pop(L, 1)) {
    lua_rawgeti(L, 3, i);
    good = good && append_header(lines, name, *field_value(L, -1, number));
  }
  if (n == 0 && !lua_isnil(L, 3)) good = append_header(lines, name, *field_value(L, 3, number));
  if (!good) return luaL_error(L, "set_header: more than %d bytes of headers", static_cast<int>(kHeaderLinesBytes));
  lua_settop(L, 1);
  return 1;
}

}  // namespace

void register_response(lua_State* L) {
  static constexpr luaL_Reg kMethods[] = {
      {"ok", ok}, {"hit", hit}, {"status", status}, {"header", header}, {"body", body}, {"json", json}, {"vlen", vlen},
      {"revision", revision}, {"error", error}, {"elapsed", elapsed}, {"backend", backend}, {"set_status", set_status},
      {"set_header", set_header}, {"set_body", body}, {nullptr, nullptr}};
  make_class(L, Kind::response, "sluice.response", kMethods);
}

}  // namespace sluice::lua
