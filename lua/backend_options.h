// Options of remote backends between a config file and proxy::BackendOptions: of settings{} (backend_NAME), of a pool and
// of one backend they are the same.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lua/state.h"
#include "proxy/remote/options.h"

namespace sluice::lua {

// Reads the value at the top into the option `name`. `said`: what the config calls it, for errors.
// Errors: a sentence; one about an unknown name is the caller's (find_backend_option).
std::optional<std::string> read_backend_option(lua_State* L, std::string_view name, std::string_view said, proxy::BackendOptions& out);
bool is_backend_option(std::string_view name);
std::vector<std::string> backend_option_names();   // sorted

}  // namespace sluice::lua
