// What the first stage of a config left: everything that the second stage, and the rest of the process, needs of it.
#pragma once
#include <string>
#include <vector>

#include "lua/library.h"
#include "lua/sandbox.h"
#include "lua/value.h"
#include "proxy/settings.h"

namespace sluice::lua {

// Thread: frozen once read, then any.
struct ConfigData {
  std::string path;                      // as it was given
  SourceText source;
  Sources modules;                       // of require()
  proxy::Settings settings;
  std::vector<proxy::StoreSpec> stores;
  std::vector<PoolSpec> pools;
  std::vector<proxy::BackendPtr> backends;   // of all pools, each once
  Value value;                           // of sluice_config_pools()
  std::vector<SharedSpec> shared;
  std::vector<std::shared_ptr<Limiter>> limiters;
  std::vector<std::shared_ptr<UserStat>> stats;
  bool has_routes = false;
  std::string explanation;               // the tree of routes, for a person
};

// Runs the route library and then the file, in a VM where both stages' parts are open. Leaves the library's own table
// (close, has_routes, pools, routes) on the stack.
// Errors: "FILE:LINE: sentence (in: LINE'S TEXT)"; the stack is as before.
Result<void, std::string> run_file(Vm& vm, const ConfigData& config);
// Calls function `name` of that table, which is at the top, with `arguments` values above it (taken); leaves `results`.
Result<void, std::string> call_library(Vm& vm, const ConfigData& config, const char* name, int arguments, int results);

// The error that Lua raised, as a person reads it: the whole path, and the line's own text.
std::string readable(const ConfigData& config, std::string_view raised);

}  // namespace sluice::lua
