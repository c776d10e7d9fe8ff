// sluice.log_req and log_reqsample: one line of the log about a request and its answer.
#pragma once
#include "lua/home.h"
#include "lua/state.h"

namespace sluice::lua {

void open_request_log(lua_State* L, const Home& home);

}  // namespace sluice::lua
