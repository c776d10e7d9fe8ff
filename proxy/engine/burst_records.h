// A module's records as the running event sees them: what the burst has written over what the store held when it began.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "store/batch.h"
#include "store/store.h"
#include "vm/base/result.h"
#include "vm/records.h"

namespace sluice::proxy {

// Thread: owner.
class BurstRecords final : public vm::Records {
 public:
  // Life: `batch` outlives it; the caller begins and ends its events there.
  explicit BurstRecords(store::Batch& batch) : batch_(batch) {}

  // Life: `snapshot` until the next begin() or the last call. Null: the store is being created and holds nothing yet.
  void begin(const store::Snapshot* snapshot) {
    snapshot_ = snapshot;
    error_ = {};
    stepped_over_ = 0;
  }

  bool get(std::string_view key, std::string_view& value) override;
  std::size_t scan(const vm::KeyRange& range, std::span<vm::Entry> out) override;
  void put(std::string_view key, std::string_view value) override;
  void erase(std::string_view key) override;

  // What could not be read since begin() or the last forget(), code none when nothing: the event is of no use then.
  const Error& error() const { return error_; }
  void forget() { error_ = {}; }
  // How often since begin() scans went past a key that the burst has removed. A queue whose rows are taken from the
  // front goes past all that it has taken each time, and no fuel says so.
  std::uint64_t stepped_over() const { return stepped_over_; }

 private:
  bool stored(std::string_view key, std::string_view& value);

  store::Batch& batch_;
  const store::Snapshot* snapshot_ = nullptr;
  Error error_;
  std::uint64_t stepped_over_ = 0;
};

}  // namespace sluice::proxy
