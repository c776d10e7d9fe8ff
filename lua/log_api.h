// What routes write: lines of their own, and one line about a request and its answer; to the log, and to who watches.
#pragma once
#include <string_view>

#include "lua/home.h"
#include "lua/state.h"

namespace sluice::lua {

// sluice.log and print. Watchers of `user` hear it at any level.
void write_text(const Home& home, proxy::LogLevel level, std::string_view text);
// sluice.log_req and log_reqsample.
void open_request_log(lua_State* L, const Home& home);

}  // namespace sluice::lua
