// The config of a server that was given a module and no config file.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "proxy/config.h"

namespace sluice::proxy {

// Reads `path` as the module of one store in `store_folder`, with every setting at its default and no routes. Nothing is
// opened here: EngineControl::prepare reads the module, again at each reload.
std::unique_ptr<ConfigReader> make_module_reader(std::string store_folder);

// What that store is called in paths, logs and counters: the file's name up to its last dot, or "store" when no store
// may be called so.
std::string store_name(std::string_view module_path);

}  // namespace sluice::proxy
