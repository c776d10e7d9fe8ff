// A store's keyed bytes as an upgrade reads and writes them: a transaction at a time.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "proxy/engine/burst_records.h"
#include "store/batch.h"
#include "store/store.h"
#include "vm/base/result.h"
#include "vm/upgrade.h"

namespace sluice::proxy {

// Thread: the one that uses it, while nobody else commits to the store.
class UpgradeRecords final : public vm::UpgradeRecords {
 public:
  // Life: the store outlives it.
  explicit UpgradeRecords(store::Store& store) : store_(store), reader_(store), records_(batch_) {}

  // Before anything else. Errors: a sentence.
  Result<void, std::string> begin();

  bool get(std::string_view key, std::string_view& value) override { return records_.get(key, value); }
  std::size_t scan(const vm::KeyRange& range, std::span<vm::Entry> out) override { return records_.scan(range, out); }
  void put(std::string_view key, std::string_view value) override { records_.put(key, value); }
  void erase(std::string_view key) override { records_.erase(key); }
  Result<void, std::string> commit() override;

 private:
  store::Store& store_;
  store::Batch batch_;
  store::Reader reader_;
  std::optional<store::Snapshot> snapshot_;
  BurstRecords records_;
};

}  // namespace sluice::proxy
