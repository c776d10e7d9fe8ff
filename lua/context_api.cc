// The methods of rctx: what a route asks, waits for and looks at.
#include <array>
#include <bitset>
#include <cmath>

#include "lua/context_args.h"
#include "lua/fields.h"

namespace sluice::lua {
namespace {

int enqueue(lua_State* L) {
  Context& c = running_context(L, "enqueue");
  const RequestObject& r = live_request_at(L, 2);
  if (lua_istable(L, 3)) {
    const int n = static_cast<int>(lua_objlen(L, 3));
    if (n > kHandlesPerFgen) return luaL_error(L, "rctx:enqueue: a list of %d handles; a route has at most %d", n, kHandlesPerFgen);
    // All are looked at before any is queued.
    std::array<std::uint32_t, kHandlesPerFgen> list;
    std::bitset<kHandlesPerFgen> named;
    for (int i = 0; i < n; ++i) {
      lua_rawgeti(L, 3, i + 1);
      const std::uint32_t index = list[static_cast<std::size_t>(i)] = handle_at(L, c, -1, "enqueue");
      lua_pop(L, 1);
      check_enqueue(L, c, index, "enqueue");
      if (named.test(index)) return luaL_error(L, "rctx:enqueue: the list names handle %d ('%s') twice", static_cast<int>(index), c.target(index).name.c_str());
      named.set(index);
    }
    for (int i = 0; i < n; ++i) c.enqueue(L, r, list[static_cast<std::size_t>(i)]);
    return 0;
  }
  const std::uint32_t index = handle_at(L, c, 3, "enqueue");
  check_enqueue(L, c, index, "enqueue");
  c.enqueue(L, r, index);
  return 0;
}

int enqueue_and_wait(lua_State* L) {
  Context& c = waiting_context(L, "enqueue_and_wait");
  const RequestObject& r = live_request_at(L, 2);
  const std::uint32_t index = handle_at(L, c, 3, "enqueue_and_wait");
  const std::int64_t limit = timeout_at(L, 4, "enqueue_and_wait");
  check_enqueue(L, c, index, "enqueue_and_wait");
  c.enqueue(L, r, index);
  return wait_for_handle(L, c, index, limit);
}

int wait_cond(lua_State* L) {
  Context& c = waiting_context(L, "wait_cond");
  const double n = luaL_checknumber(L, 2);
  if (!(n >= 0 && n <= 1e9) || n != std::floor(n)) return luaL_error(L, "rctx:wait_cond: how many is a whole number from 0");
  Wait w;
  w.kind = Wait::Kind::cond;
  w.wanted = static_cast<std::uint32_t>(n);
  if (!lua_isnoneornil(L, 3)) {
    const double mode = lua_type(L, 3) == LUA_TNUMBER ? lua_tonumber(L, 3) : 0;
    if (!(mode >= 1 && mode <= 4) || mode != std::floor(mode))
      return luaL_error(L, "rctx:wait_cond: the mode is WAIT_ANY, WAIT_OK, WAIT_GOOD or WAIT_FASTGOOD");
    w.mode = static_cast<int>(mode);
  }
  w.timeout_us = timeout_at(L, 4, "wait_cond");
  return wait_or_yield(L, c, w);
}

int wait_handle(lua_State* L) {
  Context& c = waiting_context(L, "wait_handle");
  const std::uint32_t index = handle_at(L, c, 2, "wait_handle");
  const std::int64_t limit = timeout_at(L, 3, "wait_handle");
  if (c.queue()[index].state == QueueSlot::State::idle)
    return luaL_error(L, "rctx:wait_handle: nothing was enqueued on handle %d ('%s')", static_cast<int>(index),
                      c.target(index).name.c_str());
  return wait_for_handle(L, c, index, limit);
}

int sleep(lua_State* L) {
  Context& c = waiting_context(L, "sleep");
  luaL_checknumber(L, 2);
  Wait w;
  w.kind = Wait::Kind::sleep;
  w.timeout_us = timeout_at(L, 2, "sleep");
  return wait_or_yield(L, c, w);
}

int result_of_class(lua_State* L, Class least, const char* method) {
  Context& c = context_at(L);
  const std::uint32_t index = handle_at(L, c, 2, method);
  const QueueSlot& q = c.queue()[index];
  if (q.state != QueueSlot::State::done || q.cls < least) lua_pushnil(L);
  else lua_rawgeti(L, LUA_REGISTRYINDEX, q.result->ref);
  return 1;
}
int res_good(lua_State* L) { return result_of_class(L, Class::good, "res_good"); }
int res_ok(lua_State* L) { return result_of_class(L, Class::ok, "res_ok"); }
int res_any(lua_State* L) { return result_of_class(L, Class::any, "res_any"); }

int result(lua_State* L) {
  Context& c = context_at(L);
  return c.push_result(L, handle_at(L, c, 2, "result"));
}

// best: the first GOOD, else the last OK, else the last error. worst: the worst class, of equal ones the last.
int pick_result(lua_State* L, bool best, const char* method) {
  Context& c = context_at(L);
  luaL_checktype(L, 2, LUA_TTABLE);
  const int n = static_cast<int>(lua_objlen(L, 2));
  std::int64_t chosen = -1;
  Class its = Class::none;
  for (int i = 1; i <= n; ++i) {
    lua_rawgeti(L, 2, i);
    const std::uint32_t index = handle_at(L, c, -1, method);
    lua_pop(L, 1);
    const QueueSlot& q = c.queue()[index];
    if (q.state != QueueSlot::State::done) continue;
    if (best && its == Class::good) continue;
    if (chosen < 0 || (best ? q.cls >= its : q.cls <= its)) {
      chosen = index;
      its = q.cls;
    }
  }
  if (chosen >= 0) return c.push_result(L, static_cast<std::uint32_t>(chosen));
  lua_pushnil(L);
  lua_pushnil(L);
  return 2;
}
int best_result(lua_State* L) { return pick_result(L, true, "best_result"); }
int worst_result(lua_State* L) { return pick_result(L, false, "worst_result"); }

int handle_set_cb(lua_State* L) {
  Context& c = context_at(L);
  const std::uint32_t index = handle_at(L, c, 2, "handle_set_cb");
  if (!lua_isnil(L, 3)) luaL_checktype(L, 3, LUA_TFUNCTION);
  QueueSlot& q = c.queue()[index];
  luaL_unref(L, LUA_REGISTRYINDEX, q.callback);
  q.callback = LUA_NOREF;
  if (!lua_isnil(L, 3)) {
    lua_pushvalue(L, 3);
    q.callback = luaL_ref(L, LUA_REGISTRYINDEX);
  }
  return 0;
}

Context& making(lua_State* L, const char* method) {
  Context& c = context_at(L);
  if (!c.may_ask() && c.phase() != Phase::setup)
    luaL_error(L, "rctx:%s: only in the generator or while this slot's route runs", method);
  return c;
}

RequestObject& new_request(lua_State* L, Context& c, const char* method) {
  RequestObject* r = c.take_request(L);
  if (r == nullptr)
    luaL_error(L, "rctx:%s: the limit of objects (u = %d) is reached", method, static_cast<int>(c.fgen().objects()));
  return *r;
}

// request_new([method [, path]])
int request_new(lua_State* L) {
  Context& c = making(L, "request_new");
  const std::string_view wanted = lua_isnoneornil(L, 2) ? "GET" : (luaL_checkstring(L, 2), text_at(L, 2));
  const proxy::Method m = method_named(wanted);
  if (m == proxy::Method::other) return luaL_error(L, "rctx:request_new: '%s' is not a method", lua_tostring(L, 2));
  const std::string_view path = lua_isnoneornil(L, 3) ? "/" : (luaL_checkstring(L, 3), text_at(L, 3));
  if (path.empty() || path[0] != '/') return luaL_error(L, "rctx:request_new: a path starts with '/'");
  RequestObject& r = new_request(L, c, "request_new");
  r.method = m;
  r.path.assign(path);
  lua_rawgeti(L, LUA_REGISTRYINDEX, r.ref);
  return 1;
}

int response_new(lua_State* L) {
  Context& c = making(L, "response_new");
  ResponseObject* r = c.take_response(L);
  if (r == nullptr)
    return luaL_error(L, "rctx:response_new: the limit of objects (u = %d) is reached", static_cast<int>(c.fgen().objects()));
  r->response.content_type = "text/plain; charset=utf-8";
  lua_rawgeti(L, LUA_REGISTRYINDEX, r->ref);
  return 1;
}

// event(handle, input): a request that delivers one event, POST /inputs/INPUT; edited with set() and body().
int event(lua_State* L) {
  Context& c = making(L, "event");
  handle_at(L, c, 2, "event");
  luaL_checkstring(L, 3);
  const std::string_view input = text_at(L, 3);
  RequestObject& r = new_request(L, c, "event");
  r.method = proxy::Method::post;
  r.path.assign("/inputs/").append(input);
  lua_rawgeti(L, LUA_REGISTRYINDEX, r.ref);
  return 1;
}

int deadline(lua_State* L) {
  Context& c = running_context(L, "deadline");
  luaL_checknumber(L, 2);
  c.set_deadline(static_cast<std::uint64_t>(timeout_at(L, 2, "deadline")));
  return 0;
}

int cancelled(lua_State* L) {
  lua_pushboolean(L, context_at(L).cancelled());
  return 1;
}

int cfd(lua_State* L) {
  Context& c = running_context(L, "cfd");
  if (c.request().alive) lua_pushinteger(L, c.request().live->fd);
  else lua_pushnil(L);
  return 1;
}

int client_ip(lua_State* L) {
  Context& c = running_context(L, "client_ip");
  if (c.request().alive) push(L, c.request().live->client_ip);
  else lua_pushnil(L);
  return 1;
}

// Of a certificate that the client showed and that was verified; else nil.
int tls_peer_cn(lua_State* L) {
  Context& c = running_context(L, "tls_peer_cn");
  if (c.request().alive && !c.request().live->tls_peer_cn.empty()) push(L, c.request().live->tls_peer_cn);
  else lua_pushnil(L);
  return 1;
}

}  // namespace

void register_shorthands(lua_State* L);

void register_context(lua_State* L) {
  static constexpr luaL_Reg kMethods[] = {
      {"enqueue", enqueue}, {"enqueue_and_wait", enqueue_and_wait}, {"wait_cond", wait_cond}, {"wait_handle", wait_handle},
      {"sleep", sleep}, {"res_good", res_good}, {"res_ok", res_ok}, {"res_any", res_any}, {"result", result},
      {"best_result", best_result}, {"worst_result", worst_result}, {"handle_set_cb", handle_set_cb},
      {"request_new", request_new}, {"response_new", response_new}, {"event", event}, {"deadline", deadline},
      {"cancelled", cancelled}, {"cfd", cfd}, {"client_ip", client_ip}, {"tls_peer_cn", tls_peer_cn}, {nullptr, nullptr}};
  make_class(L, Kind::rctx, "sluice.rctx", kMethods);
  register_shorthands(L);
}

}  // namespace sluice::lua
