// Reads config files: the one entrance to the Lua layer.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "proxy/config.h"
#include "proxy/log.h"

namespace sluice::lua {

// What reading a file may take: not the file's to set, and control does nothing else meanwhile.
struct LoadLimits {
  std::uint64_t memory_bytes = 512u << 20;       // of the config VM; workers' have `lua_memory`
  std::uint32_t time_ms = 5'000;                 // of each call: the file, and what it declares, once per VM
};

// Life:   `log` outlives the reader, its configs and their routes; it may be null.
// Thread: control.
std::unique_ptr<proxy::ConfigReader> make_config_reader(proxy::Log* log, const LoadLimits& limits = {});

// The names that settings{} takes, sorted: documentation is checked against them.
std::vector<std::string> setting_names();

}  // namespace sluice::lua
