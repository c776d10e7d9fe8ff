// Opens the store of one spec and makes it ready to serve, threads aside, in two phases: first everything is looked at,
// then the store is created or upgraded.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "proxy/engine.h"
#include "proxy/engine/core.h"
#include "proxy/engine/owner.h"
#include "proxy/engine/served.h"
#include "vm/base/result.h"
#include "vm/catalog.h"
#include "vm/plan.h"

namespace sluice::proxy {

using ModulePtr = std::unique_ptr<const vm::Module>;

// The module of a spec. Errors: a sentence; of a source its diagnostics.
Result<ModulePtr, std::string> load_module(const StoreSpec& spec);

// What is wrong with a spec by itself, whatever its module; empty: nothing.
std::string why_not_opened(const StoreSpec& spec);

// A store that is open, and what its module asks of it. Dropped before it is ready it closes, and is removed if it was
// made for this.
class Opening {
 public:
  // Opens the store, plans the module against its catalog and looks at what the plan wants looked at.
  // Errors: a sentence that names the store or its path; nothing of it has changed.
  static Result<std::unique_ptr<Opening>, std::string> look(const std::shared_ptr<Core>& core, const StoreSpec& spec, ModulePtr module);
  ~Opening();
  Opening(const Opening&) = delete;
  Opening& operator=(const Opening&) = delete;

  struct Ready {
    HomePtr home;                     // owners are made, not started
    ServedPtr served;
    bool created = false;
  };
  // Creates the store with the module's first values and runs `on start`; or does what the plan says. Once.
  // Errors: a sentence. A store that could not be created is gone; an upgrade that was cut short goes on next time.
  Result<Ready, std::string> ready();

 private:
  Opening(std::shared_ptr<Core> core, const StoreSpec& spec, ModulePtr module)
      : core_(std::move(core)), spec_(spec), module_(std::move(module)) {}
  // Both give the end of a sentence.
  Result<void, std::string> look();
  Result<ServedPtr, std::string> upgrade();
  Result<ServedPtr, std::string> create(std::uint64_t now_ms);
  Result<void, std::string> make_owners(const ServedPtr& served);
  void say(const std::string& line) const;

  const std::shared_ptr<Core> core_;
  const StoreSpec spec_;
  ModulePtr module_;
  HomePtr home_;
  bool created_ = false;
  vm::Clock clock_;
  std::optional<vm::Catalog> now_;    // none: a new store
  vm::Plan plan_;
};

// Removes a store that was created and that nobody has used.
void remove_created(const StoreSpec& spec);

}  // namespace sluice::proxy
