// Reads config files: the one entrance to the Lua layer.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "proxy/config.h"
#include "proxy/log.h"

namespace sluice::lua {

// Life:   `log` outlives the reader, its configs and their routes; it may be null.
// Thread: control.
std::unique_ptr<proxy::ConfigReader> make_config_reader(proxy::Log* log);

// The names that settings{} takes, and the functions and methods that configs can call, sorted: documentation is
// checked against them.
std::vector<std::string> setting_names();
std::vector<std::string> call_names();

}  // namespace sluice::lua
