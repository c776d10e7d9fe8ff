// What the methods of rctx check before they do anything: who is asked, when, with which handle and for how long.
//
// All but wait_or_yield() and wait_for_handle() raise a Lua error that begins with "rctx:METHOD" when it is not so.
#pragma once
#include <cstdint>

#include "lua/context.h"

namespace sluice::lua {

Context& context_at(lua_State* L);                                  // argument 1
Context& running_context(lua_State* L, const char* method);         // whose slot's own coroutine runs, or one that its route made
Context& waiting_context(lua_State* L, const char* method);         // the first of the two alone
std::uint32_t handle_at(lua_State* L, Context& c, int index, const char* method);
// Seconds at `index`, as microseconds; -1: nil, no timeout.
std::int64_t timeout_at(lua_State* L, int index, const char* method);
const RequestObject& live_request_at(lua_State* L, int index);
void check_enqueue(lua_State* L, Context& c, std::uint32_t handle, const char* method);

// As the last thing of a C function: its results, now or by the coroutine's resume.
int wait_or_yield(lua_State* L, Context& c, const Wait& wait);
int wait_for_handle(lua_State* L, Context& c, std::uint32_t handle, std::int64_t timeout_us);

}  // namespace sluice::lua
