#include "proxy/engine/upgrade_records.h"

#include <utility>

#include "vm/base/errc.h"

namespace sluice::proxy {

Result<void, std::string> UpgradeRecords::begin() {
  snapshot_.reset();
  Result<store::Snapshot> newest = reader_.snapshot();
  if (!newest) return "its data cannot be read: " + std::string(newest.error().what);
  snapshot_.emplace(std::move(*newest));
  records_.begin(&*snapshot_);
  batch_.begin_event();
  return {};
}

Result<void, std::string> UpgradeRecords::commit() {
  if (records_.error().code != Errc::none) return "its data cannot be read: " + std::string(records_.error().what);
  if (batch_.empty()) return {};
  batch_.keep_event();
  const store::Batch* const all[] = {&batch_};
  const Result<void> done = store_.commit(all);
  batch_.clear();
  if (!done) return "its upgrade cannot be saved (" + std::string(name(done.error().code)) + "): " + done.error().what;
  return begin();
}

}  // namespace sluice::proxy
