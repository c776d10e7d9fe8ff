// sluice.req_mutator_new and res_mutator_new: mutator(object, source...) edits the object by all its steps, or by none.
#include <array>
#include <utility>

#include "lua/box.h"
#include "lua/fields.h"
#include "lua/inspector.h"

namespace sluice::lua {
namespace {

enum Step : int {
  methodset, methodcopy, pathset, pathcopy, keyset, keycopy, queryset, querycopy, querydel, querycopyall,
  headerset, headercopy, headerdel, headercopyall, bodyset, bodycopy, statusset, statuscopy,
};
constexpr StepType kSteps[] = {
    {"methodset", true, false, "S"}, {"methodcopy", true, false, "I"}, {"pathset", true, false, "S"}, {"pathcopy", true, false, "I"},
    {"keyset", true, false, "S"}, {"keycopy", true, false, "I"}, {"queryset", true, false, "NS"}, {"querycopy", true, false, "NI"},
    {"querydel", true, false, "N"}, {"querycopyall", true, false, "I"}, {"headerset", true, true, "NS"},
    {"headercopy", true, true, "NI"}, {"headerdel", true, true, "N"}, {"headercopyall", true, true, "I"}, {"bodyset", true, true, "S"},
    {"bodycopy", true, true, "I"}, {"statusset", false, true, "I"}, {"statuscopy", false, true, "I"}};

struct Edit {
  Step step;
  std::string name, text;
  int number;                        // a source, from 1, or a status
};

struct Mutator {
  bool of_request;
  std::vector<Edit> edits;
};

// What stands at one place of the arguments. The object of at most one kind is not null.
struct Source {
  const RequestObject* request = nullptr;
  const ResponseObject* response = nullptr;
  std::optional<std::string_view> text;
  std::array<char, 40> number;
};

// Raises when it is neither an object that lives, a string nor a number. Absent: nil.
bool read_source(lua_State* L, int index, Source& s) {
  if (lua_isnoneornil(L, index)) return false;
  s.request = find_boxed<RequestObject>(L, index, Kind::request);
  s.response = find_boxed<ResponseObject>(L, index, Kind::response);
  if (s.request && !s.request->alive) luaL_error(L, "a request that is no more: it is answered");
  if (s.response && (!s.response->alive || s.response->passed_on)) luaL_error(L, "a response that is no more");
  if (s.request || s.response) return true;
  s.text = lua_isboolean(L, index) ? std::nullopt : field_value(L, index, s.number.data());
  if (!s.text) luaL_error(L, "a mutator's sources are requests, responses, strings and numbers, got a %s", luaL_typename(L, index));
  return true;
}

bool valid_path(std::string_view path) { return !path.empty() && path[0] == '/'; }

// What the step would write; nothing: its source has none, or it cannot be written.
std::optional<std::string_view> value_of(const Edit& e, Source& s, HeaderRoom& room) {
  switch (e.step) {
    case methodset: case pathset: case keyset: case queryset: case headerset: case bodyset: return e.text;
    case methodcopy: {
      const std::string_view m = s.request ? proxy::name(s.request->its_method()) : s.text.value_or("");
      if (method_named(m) == proxy::Method::other) return std::nullopt;
      return m;
    }
    case pathcopy: {
      const std::string_view p = s.request ? s.request->its_path() : s.text.value_or("");
      if (!valid_path(p)) return std::nullopt;
      return p;
    }
    case keycopy:
      if (s.request) return s.request->its_key();
      return s.text;
    case querycopy:
      if (s.request) return query_of(*s.request, e.name);
      return s.text;
    case headercopy: {
      std::optional<std::string_view> v = s.text;
      if (s.request) v = header_of(*s.request, e.name);
      if (s.response) v = s.response->header(e.name, room);
      if (v && !valid_field_value(*v)) return std::nullopt;
      return v;
    }
    case bodycopy:
      if (s.request) return s.request->its_body();
      if (s.response) return s.response->body().flat();
      return s.text;
    case statuscopy:
      if (s.response) return std::string_view();
      return s.text;
    default: return std::string_view();
  }
}

std::optional<int> status_of(const Source& s) {
  if (s.response) return s.response->status();
  int n = 0;
  for (const char c : s.text.value_or("x")) {
    if (c < '0' || c > '9' || n > 599) return std::nullopt;
    n = n * 10 + (c - '0');
  }
  if (n < 200 || n > 599) return std::nullopt;
  return n;
}

bool copies(Step s) {
  switch (s) {
    case methodcopy: case pathcopy: case keycopy: case querycopy: case querycopyall: case headercopy: case headercopyall: case bodycopy:
    case statuscopy: return true;
    default: return false;
  }
}

template <class F>
void each_header(const Source& s, F&& f) {
  if (s.request && s.request->owned)
    for (std::size_t i = 0; i < s.request->header_count; ++i) f(s.request->headers[i].name, s.request->headers[i].value);
  else if (s.request)
    for (const proxy::Header& h : s.request->live->headers) f(h.name, h.value);
  else if (s.response) s.response->each_header(f);
}

void apply(RequestObject& r, const Edit& e, const Source& s, std::string_view value) {
  switch (e.step) {
    case methodset: case methodcopy: r.method = method_named(value); break;
    case pathset: case pathcopy: r.path.assign(value); break;
    case keyset: case keycopy: r.own_key.assign(value); break;
    case queryset: case querycopy: r.set_query(e.name, value); break;
    case querydel: r.drop_query(e.name); break;
    case querycopyall:
      if (s.request->owned)
        for (std::size_t i = 0; i < s.request->query_count; ++i) r.set_query(s.request->query[i].name, s.request->query[i].value);
      else
        for (const proxy::Parameter& p : s.request->live->query) r.set_query(p.name, p.value);
      break;
    case headerset: case headercopy: r.set_header(e.name, value); break;
    case headerdel: r.drop_header(e.name); break;
    case headercopyall:
      each_header(s, [&](std::string_view name, std::string_view) {
        if (!is_framing_field(name)) r.drop_header(name);
      });
      each_header(s, [&](std::string_view name, std::string_view v) {
        if (!is_framing_field(name)) r.add_header(name, v);
      });
      break;
    case bodyset: case bodycopy:
      r.body.assign(value);
      r.has_body = true;
      break;
    default: break;
  }
}

void apply(ResponseObject& r, const Edit& e, const Source& s, std::string_view value) {
  const auto set = [&r](std::string_view name, std::string_view v) {
    drop_header(r.response, name);
    append_header(r.response.headers, name, v);
  };
  switch (e.step) {
    case headerset: case headercopy: set(e.name, value); break;
    case headerdel: drop_header(r.response, e.name); break;
    case headercopyall:
      // All that the object had first: a name that the source has twice (Set-Cookie) is there twice.
      each_header(s, [&r](std::string_view name, std::string_view) { drop_header(r.response, name); });
      each_header(s, [&r](std::string_view name, std::string_view v) { append_header(r.response.headers, name, v); });
      break;
    case bodyset: r.response.body.text.assign(value); break;
    case bodycopy:
      // A large document lies in pieces.
      if (s.response && s.response->body().flat().empty()) {
        r.response.body.text.clear();
        for (const std::string_view p : s.response->body().pieces) r.response.body.text.append(p);
      } else {
        r.response.body.text.assign(value);
      }
      break;
    case statusset: r.response.status = static_cast<std::uint16_t>(e.number); break;
    case statuscopy: r.response.status = static_cast<std::uint16_t>(*status_of(s)); break;
    default: break;
  }
}

// mutator(object, source...): true, or false and nothing was changed when a source has not what a step copies.
int mutate(lua_State* L) {
  const Mutator* m = find_boxed<Mutator>(L, 1, Kind::mutator);
  if (!m) return luaL_error(L, "a mutator expected");
  RequestObject* request = nullptr;
  ResponseObject* response = nullptr;
  if (m->of_request) request = &check_boxed<RequestObject>(L, 2, Kind::request, "a request");
  else response = &check_boxed<ResponseObject>(L, 2, Kind::response, "a response");
  if (request ? !request->alive || !request->owned : !response->alive || !response->owned)
    return luaL_error(L, "a mutator edits an object that the route made: %s", request ? "rctx:request_new()" : "rctx:response_new()");
  // All are looked at before any is applied.
  for (const bool write : {false, true})
    for (const Edit& e : m->edits) {
      Source s;
      HeaderRoom room;
      if (copies(e.step)) {
        const bool there = read_source(L, 2 + e.number, s);
        if ((request && s.request == request) || (response && s.response == response))
          return luaL_error(L, "a mutator does not copy from the object that it edits");
        const bool fits = (e.step == querycopyall || e.step == headercopyall) ? s.request || (e.step == headercopyall && s.response) : there;
        if (!there || !fits) {
          lua_pushboolean(L, 0);
          return 1;
        }
      }
      const std::optional<std::string_view> value = value_of(e, s, room);
      if (!value || (e.step == statuscopy && !status_of(s))) {
        lua_pushboolean(L, 0);
        return 1;
      }
      if (!write) continue;
      if (request) apply(*request, e, s, *value);
      else apply(*response, e, s, *value);
    }
  lua_pushboolean(L, 1);
  return 1;
}

int forget(lua_State* L) {
  Box* box = box_at(L, 1);
  if (box && box->kind == Kind::mutator) delete static_cast<Mutator*>(std::exchange(box->object, nullptr));
  return 0;
}

int make(lua_State* L, bool request, const char* what) {
  const int n = lua_gettop(L);
  if (n == 0) return luaL_error(L, "%s: no steps", what);
  if (n > 100) return luaL_error(L, "%s: more than 100 steps", what);
  Box* box = push_box(L, Kind::mutator, nullptr);
  box->object = new Mutator{request, {}};
  auto& edits = static_cast<Mutator*>(box->object)->edits;
  for (int i = 1; i <= n; ++i) {
    StepFields f;
    const auto step = static_cast<Step>(read_step(L, i, kSteps, request, what, f));
    const auto refuse = [&](const char* why) { luaL_error(L, "%s: step `%s`: %s", what, f.type.c_str(), why); };
    if (copies(step) && f.number < 1) refuse("sources count from 1");
    if (step == methodset && method_named(f.text) == proxy::Method::other) refuse("not a method");
    if (step == pathset && !valid_path(f.text)) refuse("a path starts with `/`");
    if (step == statusset && (f.number < 200 || f.number > 599)) refuse("a final status is 200 to 599");
    if (step == headerset || step == headercopy) {
      if (!valid_field_name(f.name) || !valid_field_value(f.text)) refuse("not a header that can be sent");
      if (is_framing_field(f.name)) refuse("that header is the server's own");
    }
    edits.push_back({step, f.name, f.text, f.number});
  }
  return 1;
}
int req_mutator_new(lua_State* L) { return make(L, true, "req_mutator_new"); }
int res_mutator_new(lua_State* L) { return make(L, false, "res_mutator_new"); }

}  // namespace

void open_mutators(lua_State* L) {
  const StackGuard guard(L);
  static constexpr luaL_Reg kNone[] = {{nullptr, nullptr}};
  static constexpr luaL_Reg kPublic[] = {{"req_mutator_new", req_mutator_new}, {"res_mutator_new", res_mutator_new}, {nullptr, nullptr}};
  make_class(L, Kind::mutator, "sluice.mutator", kNone);
  lua_rawgeti(L, LUA_REGISTRYINDEX, static_cast<int>(Kind::mutator));
  lua_pushcfunction(L, mutate);
  lua_setfield(L, -2, "__call");
  lua_pushcfunction(L, forget);
  lua_setfield(L, -2, "__gc");
  lua_getglobal(L, "sluice");
  luaL_setfuncs(L, kPublic, 0);
}

}  // namespace sluice::lua
