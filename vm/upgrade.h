// Does what a plan says to a store, before it serves: first looks at everything, then builds, then switches the catalog,
// then erases what nobody reads any more.
//
// A module that is refused has changed nothing. Builds go in transactions of some thousand rows, each with the place
// where it stopped in the catalog, beside the catalog as it will be: whoever opens the store next continues with the same
// module, or erases what was built for another.
// Source: design module.md 3.11.
#pragma once
#include <cstddef>
#include <string>

#include "vm/base/result.h"
#include "vm/plan.h"
#include "vm/records.h"

namespace sluice::vm {

// Records that are written in transactions of the caller's choice. `scan` need not show what was written since the last
// commit; `get` does.
class UpgradeRecords : public Records {
 public:
  // Makes durable, at once, what was written since the last commit. What was lent before is gone.
  // Errors: a sentence; also when something could not be read since.
  virtual Result<void, std::string> commit() = 0;
};

struct UpgradeLimits {
  std::size_t writes = 10'000;              // records and rows of a transaction
  std::size_t hashes = std::size_t{4} << 20;   // kept at once to find rows that agree: 8 bytes each
};

// Looks at whatever the plan wants looked at; writes nothing. Shape: the plan is not refused.
// Errors: the sentence that names the row and its value.
Result<void, std::string> check_upgrade(const Plan& plan, const Module& module, UpgradeRecords& records, const UpgradeLimits& limits = {});

// The rest. `now` is what the store has. Returns the catalog that is to be served with; it is stored when anything was to
// be done. Errors: a sentence; going on later with the same call continues.
Result<Catalog, std::string> run_upgrade(const Catalog& now, const Plan& plan, const Module& module, UpgradeRecords& records,
                                         const UpgradeLimits& limits = {});

// Whether the next run goes on with what an earlier one began (so the rows were looked at).
bool continues(const Catalog& now, const Plan& plan);

}  // namespace sluice::vm
