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

// The names that settings{} takes, sorted: documentation is checked against them.
std::vector<std::string> setting_names();

}  // namespace sluice::lua
