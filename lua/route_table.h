// The routes of one generation on one worker, as its VM has built them.
#pragma once
#include <memory>
#include <string>

#include "lua/config_data.h"
#include "lua/runtime.h"
#include "lua/watchdog.h"
#include "proxy/route.h"

namespace sluice::lua {

// Runs the config's second stage in a fresh VM. Units: load_time_ms for each of its calls; `lua_time_limit` is of requests.
// Errors: "FILE:LINE: sentence".
// Thread: control.
Result<std::unique_ptr<proxy::RouteTable>, std::string> make_route_table(std::shared_ptr<const ConfigData> config,
                                                                         std::shared_ptr<Commons> commons,
                                                                         std::shared_ptr<const proxy::StoreSet> stores,
                                                                         std::uint16_t worker,
                                                                         std::shared_ptr<Watchdog> watchdog,
                                                                         std::uint32_t load_time_ms,
                                                                         proxy::Log* log);

}  // namespace sluice::lua
