#include "lua/context_args.h"

namespace sluice::lua {
namespace {

constexpr double kLongestWaitS = 86'400;

}  // namespace

Context& context_at(lua_State* L) { return check_boxed<Context>(L, 1, Kind::rctx, "rctx"); }

Context& running_context(lua_State* L, const char* method) {
  Context& c = context_at(L);
  if (!c.may_ask())
    luaL_error(L, "rctx:%s: only while this slot's route runs (not in the generator, in a callback, or for another slot)", method);
  return c;
}

Context& waiting_context(lua_State* L, const char* method) {
  Context& c = running_context(L, method);
  if (c.coroutine() != L)
    luaL_error(L, "rctx:%s: a wait inside a coroutine of your own would return to that one's resume", method);
  return c;
}

std::uint32_t handle_at(lua_State* L, Context& c, int index, const char* method) {
  if (lua_type(L, index) != LUA_TNUMBER)
    luaL_error(L, "rctx:%s: a handle expected, got %s", method, luaL_typename(L, index));
  const int at = c.fgen().handle_index(lua_tonumber(L, index));
  if (at < 0) luaL_error(L, "rctx:%s: not a handle of route '%s'", method, c.fgen().name().c_str());
  return static_cast<std::uint32_t>(at);
}

std::int64_t timeout_at(lua_State* L, int index, const char* method) {
  if (lua_isnoneornil(L, index)) return -1;
  const double s = lua_type(L, index) == LUA_TNUMBER ? lua_tonumber(L, index) : -1;
  if (!(s >= 0 && s <= kLongestWaitS))
    luaL_error(L, "rctx:%s: a timeout is a number of seconds from 0 to 86400", method);
  return static_cast<std::int64_t>(s * 1e6);
}

const RequestObject& live_request_at(lua_State* L, int index) {
  const RequestObject& r = check_boxed<RequestObject>(L, index, Kind::request, "a request");
  if (!r.alive) luaL_error(L, "a request that is no more: it is answered");
  return r;
}

void check_enqueue(lua_State* L, Context& c, std::uint32_t handle, const char* method) {
  if (const char* why = c.refuse_enqueue(handle))
    luaL_error(L, "rctx:%s: handle %d ('%s') %s", method, static_cast<int>(handle), c.target(handle).name.c_str(), why);
}

int wait_or_yield(lua_State* L, Context& c, const Wait& wait) {
  if (c.begin_wait(wait)) return c.push_wait_result(L, false);
  return lua_yield(L, 0);
}

int wait_for_handle(lua_State* L, Context& c, std::uint32_t handle, std::int64_t timeout_us) {
  Wait w;
  w.kind = Wait::Kind::handle;
  w.handle = handle;
  w.timeout_us = timeout_us;
  return wait_or_yield(L, c, w);
}

}  // namespace sluice::lua
