#include "lua/request_object.h"

#include <algorithm>

#include "lua/fields.h"
#include "proxy/module_call.h"

namespace sluice::lua {

void RequestObject::reset_owned() {
  method = proxy::Method::get;
  path.assign("/");
  query_count = header_count = 0;
  body.clear();
  has_body = false;
  own_key.clear();
}

namespace {

void put(std::vector<RequestObject::Field>& list, std::size_t& count, std::size_t at, std::string_view name,
         std::string_view value) {
  if (at == count) {
    if (count == list.size()) list.emplace_back();
    ++count;
    list[at].name.assign(name);
  }
  list[at].value.assign(value);
}

}  // namespace

void RequestObject::set_query(std::string_view name, std::string_view value) {
  std::size_t at = 0;
  while (at < query_count && query[at].name != name) ++at;
  put(query, query_count, at, name, value);
}

void RequestObject::set_header(std::string_view name, std::string_view value) {
  drop_header(name);
  add_header(name, value);
}

void RequestObject::add_header(std::string_view name, std::string_view value) {
  put(headers, header_count, header_count, name, value);
}

void RequestObject::drop_query(std::string_view name) {
  for (std::size_t at = 0; at < query_count; ++at) {
    if (query[at].name != name) continue;
    std::rotate(query.begin() + static_cast<std::ptrdiff_t>(at), query.begin() + static_cast<std::ptrdiff_t>(at) + 1,
                query.begin() + static_cast<std::ptrdiff_t>(query_count));
    --query_count;
    return;
  }
}

void RequestObject::drop_header(std::string_view name) {
  for (std::size_t at = 0; at < header_count;) {
    if (!same_field(headers[at].name, name)) {
      ++at;
      continue;
    }
    std::rotate(headers.begin() + static_cast<std::ptrdiff_t>(at), headers.begin() + static_cast<std::ptrdiff_t>(at) + 1,
                headers.begin() + static_cast<std::ptrdiff_t>(header_count));
    --header_count;
  }
}

std::string_view RequestObject::its_key() const {
  if (!owned) return proxy::distribution_key(live_path, live->query);
  if (!own_key.empty()) return own_key;
  // Of an owned one's query the first that is not of paging, as distribution_key() has it.
  for (std::size_t i = 0; i < query_count && path.compare(0, 9, "/objects/") != 0; ++i) {
    const proxy::Parameter p{query[i].name, query[i].value};
    if (const std::string_view key = proxy::distribution_key(path, {&p, 1}); key.data() == p.value.data()) return key;
  }
  return proxy::distribution_key(path, {});
}

proxy::Method method_named(std::string_view name) {
  for (int i = 0; i < proxy::kMethods; ++i) {
    const auto m = static_cast<proxy::Method>(i);
    if (m != proxy::Method::other && m != proxy::Method::connect && proxy::name(m) == name) return m;
  }
  return proxy::Method::other;
}

namespace {

RequestObject& self(lua_State* L) {
  RequestObject& r = check_boxed<RequestObject>(L, 1, Kind::request, "a request");
  if (!r.alive) luaL_error(L, "a request that is no more: it is answered");
  return r;
}

RequestObject& own(lua_State* L, const char* method) {
  RequestObject& r = self(L);
  if (!r.owned) luaL_error(L, "%s: the client's request is read only; make one with rctx:request_new()", method);
  return r;
}

int method(lua_State* L) {
  RequestObject& r = self(L);
  push(L, r.owned || r.live->method_text.empty() ? proxy::name(r.its_method()) : r.live->method_text);
  return 1;
}

int path(lua_State* L) {
  push(L, self(L).its_path());
  return 1;
}

int full_path(lua_State* L) {
  RequestObject& r = self(L);
  push(L, r.owned ? std::string_view(r.path) : r.live->path);
  return 1;
}

// As it was sent, with its query; of an owned one the path.
int target(lua_State* L) {
  RequestObject& r = self(L);
  push(L, r.owned || r.live->target.empty() ? r.its_path() : r.live->target);
  return 1;
}

int param(lua_State* L) {
  RequestObject& r = self(L);
  if (lua_type(L, 2) == LUA_TNUMBER) {
    const auto n = lua_tointeger(L, 2);
    if (n < 1 || static_cast<std::size_t>(n) > r.captured.size()) lua_pushnil(L);
    else push(L, r.captured[static_cast<std::size_t>(n) - 1].value);
    return 1;
  }
  std::size_t n = 0;
  const char* s = luaL_checklstring(L, 2, &n);
  for (const proxy::Match::Captured& c : r.captured)
    if (c.name == std::string_view(s, n)) {
      push(L, c.value);
      return 1;
    }
  lua_pushnil(L);
  return 1;
}

int query(lua_State* L) {
  RequestObject& r = self(L);
  std::size_t n = 0;
  const char* s = luaL_checklstring(L, 2, &n);
  const std::string_view wanted(s, n);
  if (r.owned) {
    for (std::size_t i = 0; i < r.query_count; ++i)
      if (r.query[i].name == wanted) {
        push(L, r.query[i].value);
        return 1;
      }
  } else {
    for (const proxy::Parameter& p : r.live->query)
      if (p.name == wanted) {
        push(L, p.value);
        return 1;
      }
  }
  lua_pushnil(L);
  return 1;
}

int header(lua_State* L) {
  RequestObject& r = self(L);
  std::size_t n = 0;
  const char* s = luaL_checklstring(L, 2, &n);
  const std::string_view wanted(s, n);
  if (r.owned) {
    for (std::size_t i = 0; i < r.header_count; ++i)
      if (same_field(r.headers[i].name, wanted)) {
        push(L, r.headers[i].value);
        return 1;
      }
  } else {
    for (const proxy::Header& h : r.live->headers)
      if (same_field(h.name, wanted)) {
        push(L, h.value);
        return 1;
      }
  }
  lua_pushnil(L);
  return 1;
}

// All of them, names in lower case; of repeated ones the values joined as RFC 9110 (5.3) allows.
int headers(lua_State* L) {
  RequestObject& r = self(L);
  lua_createtable(L, 0, 8);
  const auto add = [L](std::string_view name, std::string_view value) {
    push_lower(L, name);
    lua_pushvalue(L, -1);
    lua_rawget(L, -3);
    if (lua_isnil(L, -1)) {
      lua_pop(L, 1);
      push(L, value);
    } else {
      lua_pushliteral(L, ", ");
      push(L, value);
      lua_concat(L, 3);
    }
    lua_rawset(L, -3);
  };
  if (r.owned)
    for (std::size_t i = 0; i < r.header_count; ++i) add(r.headers[i].name, r.headers[i].value);
  else
    for (const proxy::Header& h : r.live->headers) add(h.name, h.value);
  return 1;
}

// body(): the bytes. body(text), on an owned one: sets them and returns the object, for chains.
int body(lua_State* L) {
  if (lua_gettop(L) > 1) {
    RequestObject& r = own(L, "body");
    std::size_t n = 0;
    const char* s = luaL_checklstring(L, 2, &n);
    r.body.assign(s, n);
    r.has_body = true;
    lua_settop(L, 1);
    return 1;
  }
  push(L, self(L).its_body());
  return 1;
}

int key(lua_State* L) {
  push(L, self(L).its_key());
  return 1;
}

int tag(lua_State* L) {
  RequestObject& r = self(L);
  push(L, r.owned ? std::string_view() : r.live->tag);
  return 1;
}

int client_ip(lua_State* L) {
  RequestObject& r = self(L);
  if (r.owned) lua_pushnil(L);
  else push(L, r.live->client_ip);
  return 1;
}

int http_version(lua_State* L) {
  RequestObject& r = self(L);
  lua_pushliteral(L, "1.1");
  if (!r.owned && r.live->minor == 0) lua_pushliteral(L, "1.0");
  return 1;
}

// set(name, value or nil): a field of the query. Numbers are written as clients see them.
int set(lua_State* L) {
  RequestObject& r = own(L, "set");
  std::size_t n = 0;
  const char* s = luaL_checklstring(L, 2, &n);
  char number[40];
  if (lua_isnil(L, 3)) {
    r.drop_query({s, n});
    lua_settop(L, 1);
    return 1;
  }
  const std::optional<std::string_view> value = field_value(L, 3, number);
  if (!value) return luaL_error(L, "set: the value of '%s' must be a string, a number or a boolean, got %s", s, luaL_typename(L, 3));
  r.set_query({s, n}, *value);
  lua_settop(L, 1);
  return 1;
}

int set_method(lua_State* L) {
  RequestObject& r = own(L, "set_method");
  std::size_t n = 0;
  const char* s = luaL_checklstring(L, 2, &n);
  const proxy::Method m = method_named({s, n});
  if (m == proxy::Method::other) return luaL_error(L, "set_method: '%s' is not a method", s);
  r.method = m;
  lua_settop(L, 1);
  return 1;
}

int set_path(lua_State* L) {
  RequestObject& r = own(L, "set_path");
  std::size_t n = 0;
  const char* s = luaL_checklstring(L, 2, &n);
  if (n == 0 || s[0] != '/') return luaL_error(L, "set_path: a path starts with '/', got '%s'", s);
  r.path.assign(s, n);
  lua_settop(L, 1);
  return 1;
}

int set_header(lua_State* L) {
  RequestObject& r = own(L, "set_header");
  std::size_t n = 0, m = 0;
  const char* s = luaL_checklstring(L, 2, &n);
  if (!valid_field_name({s, n})) return luaL_error(L, "set_header: '%s' is not a header name", s);
  if (lua_isnil(L, 3)) {
    r.drop_header({s, n});
  } else {
    const char* v = luaL_checklstring(L, 3, &m);
    if (!valid_field_value({v, m})) return luaL_error(L, "set_header: the value of '%s' has control bytes", s);
    r.set_header({s, n}, {v, m});
  }
  lua_settop(L, 1);
  return 1;
}

int set_key(lua_State* L) {
  RequestObject& r = own(L, "set_key");
  std::size_t n = 0;
  const char* s = luaL_checklstring(L, 2, &n);
  r.own_key.assign(s, n);
  lua_settop(L, 1);
  return 1;
}

// Takes n bytes off the front of the path.
int ltrimpath(lua_State* L) {
  RequestObject& r = own(L, "ltrimpath");
  const lua_Integer n = luaL_checkinteger(L, 2);
  if (n < 0 || static_cast<std::size_t>(n) > r.path.size())
    return luaL_error(L, "ltrimpath: %d bytes of a path of %d", static_cast<int>(n), static_cast<int>(r.path.size()));
  r.path.erase(0, static_cast<std::size_t>(n));
  if (r.path.empty() || r.path[0] != '/') r.path.insert(r.path.begin(), '/');
  lua_settop(L, 1);
  return 1;
}

}  // namespace

void register_request(lua_State* L) {
  static constexpr luaL_Reg kMethods[] = {
      {"method", method}, {"path", path}, {"full_path", full_path}, {"target", target}, {"param", param}, {"query", query},
      {"header", header}, {"headers", headers}, {"body", body}, {"key", key}, {"tag", tag}, {"client_ip", client_ip},
      {"http_version", http_version}, {"set", set}, {"set_query", set}, {"set_method", set_method}, {"set_path", set_path},
      {"set_header", set_header}, {"set_body", body}, {"set_key", set_key}, {"ltrimpath", ltrimpath}, {nullptr, nullptr}};
  make_class(L, Kind::request, "sluice.request", kMethods);
}

}  // namespace sluice::lua
