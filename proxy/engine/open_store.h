// Opens the store of one spec and makes it ready to serve, threads aside: catalog, `on start`, states.
#pragma once
#include <memory>
#include <string>

#include "proxy/engine.h"
#include "proxy/engine/core.h"
#include "proxy/engine/owner.h"
#include "proxy/engine/served.h"
#include "vm/base/result.h"

namespace sluice::proxy {

// The module of a spec, as it will be served. Errors: a sentence; of a source its diagnostics.
Result<ServedPtr, std::string> load_served(const StoreSpec& spec);

// What is wrong with a spec by itself, whatever its module; empty: nothing.
std::string why_not_opened(const StoreSpec& spec);

// Owners are made, not started. A store that did not exist is created with the module's first values, and `on start`
// runs once; when that fails nothing is left of it. `created` says that the folder is new.
// Errors: a sentence that names the store or its path.
Result<HomePtr, std::string> open_home(const std::shared_ptr<Core>& core, const StoreSpec& spec, const ServedPtr& served,
                                       bool& created);

// Removes a store that open_home created and that nobody has used.
void remove_created(const StoreSpec& spec);

}  // namespace sluice::proxy
