// rctx:get, put, delete, view, post and their _and_wait forms: one call for what a request object takes several.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "lua/context_args.h"
#include "lua/fields.h"

namespace sluice::lua {
namespace {

constexpr std::size_t kFields = 16;

// What one shorthand says, as views of its arguments.
struct Asked {
  proxy::Method method = proxy::Method::get;
  std::string_view folder;                     // "/views/"
  std::string_view name;
  std::vector<proxy::Parameter>* fields = nullptr;   // the runtime's, made empty; nullptr: none
  std::array<std::array<char, 40>, kFields> numbers;
  proxy::Header condition;                     // no name: none
  std::array<char, 32> revision;
  std::string_view body;
  bool has_body = false;
};

// {name = value}, by name: a table has no order, and a pool's choice must not depend on chance.
void read_fields(lua_State* L, int index, Asked& a, std::vector<proxy::Parameter>& fields, const char* method) {
  if (lua_isnoneornil(L, index)) return;
  fields.clear();
  a.fields = &fields;
  if (!lua_istable(L, index)) luaL_error(L, "rctx:%s: fields are a table, got %s", method, luaL_typename(L, index));
  lua_pushnil(L);
  while (lua_next(L, index) != 0) {
    if (lua_type(L, -2) != LUA_TSTRING) luaL_error(L, "rctx:%s: the name of a field is a string", method);
    if (fields.size() == kFields) luaL_error(L, "rctx:%s: more than %d fields", method, static_cast<int>(kFields));
    const auto value = field_value(L, -1, a.numbers[fields.size()].data());
    if (!value)
      luaL_error(L, "rctx:%s: field '%s' is neither a string, a finite number nor a boolean", method, lua_tostring(L, -2));
    fields.push_back({text_at(L, -2), *value});
    lua_pop(L, 1);
  }
  std::sort(fields.begin(), fields.end(),
            [](const proxy::Parameter& x, const proxy::Parameter& y) { return x.name < y.name; });
}

// A revision as rctx and res:revision() know it; `absent_allowed`: nil means that the document must not exist.
void read_revision(lua_State* L, int index, Asked& a, bool absent_allowed, const char* method) {
  if (lua_isnoneornil(L, index)) {
    if (!absent_allowed) luaL_error(L, "rctx:%s: the revision to delete is missing", method);
    a.condition = {"If-None-Match", "*"};
    return;
  }
  const double n = lua_type(L, index) == LUA_TNUMBER ? lua_tonumber(L, index) : 0;
  if (!(n >= 1 && n <= 9007199254740992.0) || n != std::floor(n)) luaL_error(L, "rctx:%s: a revision is a whole number from 1", method);
  char* p = a.revision.data();
  *p++ = '"';
  p = std::to_chars(p, a.revision.data() + 30, static_cast<unsigned long long>(n)).ptr;
  *p++ = '"';
  a.condition = {"If-Match", {a.revision.data(), static_cast<std::size_t>(p - a.revision.data())}};
}

std::string_view string_arg(lua_State* L, int index, const char* method, const char* what) {
  if (lua_type(L, index) != LUA_TSTRING && lua_type(L, index) != LUA_TNUMBER)
    luaL_error(L, "rctx:%s: %s is a string, got %s", method, what, luaL_typename(L, index));
  return text_at(L, index);
}

enum class Which : std::uint8_t { get, put, del, view, post };

// The arguments: rctx, handle, name, then each form's own, then a timeout.
int shorthand(lua_State* L, Which which, bool waits, const char* method) {
  Context& c = waits ? waiting_context(L, method) : running_context(L, method);
  const std::uint32_t index = handle_at(L, c, 2, method);
  check_enqueue(L, c, index, method);

  Asked a;
  int timeout_index = 4;
  switch (which) {
    case Which::get:
      a.folder = "/objects/";
      break;
    case Which::view:
      a.folder = "/views/";
      read_fields(L, 4, a, c.runtime().query, method);
      timeout_index = 5;
      break;
    case Which::post:
      a.method = proxy::Method::post;
      a.folder = "/inputs/";
      read_fields(L, 4, a, c.runtime().query, method);
      if (!lua_isnoneornil(L, 5)) {
        a.body = string_arg(L, 5, method, "the body");
        a.has_body = true;
      }
      timeout_index = 6;
      break;
    case Which::put:
      a.method = proxy::Method::put;
      a.folder = "/objects/";
      a.body = string_arg(L, 4, method, "the document");
      a.has_body = true;
      read_revision(L, 5, a, true, method);
      timeout_index = 6;
      break;
    case Which::del:
      a.method = proxy::Method::del;
      a.folder = "/objects/";
      read_revision(L, 4, a, false, method);
      timeout_index = 5;
      break;
  }
  a.name = string_arg(L, 3, method, "the name");
  const std::int64_t limit_us = waits ? timeout_at(L, timeout_index, method) : -1;

  const Target& to = c.target(index);
  if (to.kind == Target::Kind::route || to.kind == Target::Kind::methods) {
    RequestObject* r = c.take_request(L);
    r->method = a.method;
    r->path.assign(a.folder).append(a.name);
    if (a.fields)
      for (const proxy::Parameter& p : *a.fields) r->set_query(p.name, p.value);
    if (!a.condition.name.empty()) r->set_header(a.condition.name, a.condition.value);
    r->has_body = a.has_body;
    r->body.assign(a.body);
    c.enqueue(L, *r, index);
  } else {
    proxy::Buffer body;
    bool room = true;
    if (!a.body.empty()) {
      body = proxy::Buffer::copy(a.body, &c.runtime().services->budget());
      room = static_cast<bool>(body);
    }
    if (room) {
      std::string& path = c.runtime().path;
      path.assign(a.folder).append(a.name);
      c.enqueue_module(L,
                       {.method = a.method, .path = path, .query = a.fields ? std::span<const proxy::Parameter>(*a.fields) : std::span<const proxy::Parameter>(),
                        .headers = {&a.condition, a.condition.name.empty() ? std::size_t{0} : std::size_t{1}},
                        .body = &body, .has_length = true},
                       {}, index);
    } else {
      c.enqueue_refused(L, index, 503, Errc::payload_budget, "no room for the body now", 0);
    }
  }
  return waits ? wait_for_handle(L, c, index, limit_us) : 0;
}

constexpr const char* kMethods[][2] = {{"get", "get_and_wait"}, {"put", "put_and_wait"}, {"delete", "delete_and_wait"},
                                      {"view", "view_and_wait"}, {"post", "post_and_wait"}};   // by Which, by waiting

// A function of its own for each form: what it is needs no look at an upvalue.
template <Which which, bool waits>
int form(lua_State* L) {
  return shorthand(L, which, waits, kMethods[static_cast<std::size_t>(which)][waits]);
}

template <Which... which>
void add_forms(lua_State* L) {
  const auto add = [L](Which w, bool waits, lua_CFunction f) {
    lua_pushcfunction(L, f);
    lua_setfield(L, -2, kMethods[static_cast<std::size_t>(w)][waits]);
  };
  (add(which, false, form<which, false>), ...);
  (add(which, true, form<which, true>), ...);
}

}  // namespace

void register_shorthands(lua_State* L) {
  const StackGuard guard(L);
  lua_rawgeti(L, LUA_REGISTRYINDEX, static_cast<int>(Kind::rctx));
  lua_getfield(L, -1, "__index");
  add_forms<Which::get, Which::put, Which::del, Which::view, Which::post>(L);
}

}  // namespace sluice::lua
