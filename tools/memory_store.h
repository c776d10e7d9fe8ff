// A module's store in memory: what an owner keeps on disk, in one ordered map and with one event at a time.
//
// Beside the records of a store (vm/image.h, vm/tables.h) it keeps documents, under
//
//   ff key        u64 revision, u8 exists, content
#pragma once
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "proxy/engine/document_edit.h"
#include "tools/check_derived.h"

#include "vm/layout.h"
#include "vm/machine.h"
#include "vm/memory_records.h"
#include "vm/orders.h"
#include "vm/tables.h"

namespace sluice::tools {

// Thread: one.
class MemoryStore final : public vm::Host {
 public:
  // With the first values of its states. Life: `module` outlives it.
  explicit MemoryStore(const vm::Module& module);

  // An event is over by keep or undo. `key`: of its document; empty when it has none.
  void begin_event(std::string_view key);
  // True: it changed the store.
  bool keep_event();
  void undo_event();

  proxy::DocumentEdit& document() { return document_; }
  const vm::MemoryRecords::Map& contents() const { return records_.contents(); }
  // What is wrong with what was derived from the rows, one sentence; empty when it equals a rebuild.
  std::string check_derived() { return tools::check_derived(tables_, records_, orders_); }

  bool state(std::uint16_t number, vm::Value& out) override;
  void set_state(std::uint16_t number, const vm::Value& value) override;
  void clear_state(std::uint16_t number) override;
  bool doc(vm::Value& out) override;
  bool has_doc() override { return document_.exists(); }
  std::uint64_t doc_bytes() override { return document_.bytes(); }
  double doc_revision() override { return static_cast<double>(document_.stored_revision()); }
  std::string_view doc_key() override { return document_.key(); }
  void doc_set(std::string_view content) override { document_.set(content); }
  void doc_delete() override { document_.erase(); }
  void doc_append(std::string_view content) override { document_.append(content); }
  void doc_splice(std::uint64_t at, std::uint64_t remove, std::string_view insert) override {
    document_.splice(at, remove, insert);
  }
  // The same at every run: from the number of the event alone.
  std::string_view seed() override;
  const vm::Tables* tables() override { return &tables_; }
  vm::Records* records() override { return &records_; }
  vm::Orders* orders() override { return &orders_; }

 private:
  std::string state_key(std::uint16_t number) const;
  void stage_document();

  const vm::Module& module_;
  const vm::Tables tables_;
  vm::MemoryRecords records_;
  vm::Orders orders_;
  std::uint64_t events_ = 0;
  std::string seed_, key_;
  store::Document stored_;                    // of the event
  bool has_document_ = false;
  proxy::DocumentEdit document_;
};

}  // namespace sluice::tools
