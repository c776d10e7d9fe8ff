// What a module reads of a committed store while a worker evaluates it: states decoded on demand, documents and records as
// stored.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/engine/document_edit.h"
#include "proxy/engine/environment.h"
#include "proxy/engine/served.h"
#include "vm/machine.h"
#include "vm/records.h"

namespace sluice::proxy {

// Decoded states are kept as long as no commit has come, over turns of the loop too, so that a hot view reads no store
// at all.
// Thread: its worker.
class SnapshotHost final : public vm::Host, private vm::Records {
 public:
  explicit SnapshotHost(Environment& environment) : environment_(environment), reader_(environment) {}

  // Begins an evaluation over what is committed now. Errors: stopped, storage.
  // `module`: a Served, counted by this worker alone.
  Result<void> begin(const std::shared_ptr<const void>& module);
  // A commit came between two reads of the evaluation: its answer is of no use; begin() and run it again. That happens
  // once at most, since the second run has its snapshot from the start.
  bool stale() const { return stale_; }
  // The same with a document. Life: until the next begin().
  Result<void> open_document(std::string_view key);
  store::Document& document() { return document_; }
  const store::Snapshot& snapshot() const { return *reader_.snapshot(); }
  Environment& environment() { return environment_; }
  DocumentEdit& edit() { return edit_; }
  // Events that have changed the store. Errors: storage.
  Result<std::uint64_t> seq();
  // What went wrong while the module ran, code none when nothing did: its answer is then of no use.
  const Error& error() const { return error_; }
  // At the end of a turn.
  void rest() { reader_.rest(); }

 private:
  struct Cell {
    std::uint64_t commit = 0;             // that the rest was read at
    bool present = false;
    vm::Value value;
    std::string text;
  };
  bool read(std::uint16_t number, Cell& cell);
  // The snapshot at commit_; null: stale, or an error.
  const store::Snapshot* snapshot_here();

  bool state(std::uint16_t number, vm::Value& out) override;
  void set_state(std::uint16_t, const vm::Value&) override { refuse_write(); }
  void clear_state(std::uint16_t) override { refuse_write(); }
  bool doc(vm::Value& out) override;
  bool has_doc() override { return edit_.exists(); }
  std::uint64_t doc_bytes() override { return edit_.bytes(); }
  double doc_revision() override { return static_cast<double>(edit_.stored_revision()); }
  std::string_view doc_key() override { return edit_.key(); }
  void doc_set(std::string_view) override { refuse_write(); }
  void doc_delete() override { refuse_write(); }
  void doc_append(std::string_view) override { refuse_write(); }
  void doc_splice(std::uint64_t, std::uint64_t, std::string_view) override { refuse_write(); }
  std::string_view seed() override {
    refuse_write();
    return {};
  }
  const vm::Tables* tables() override { return served_->tables.get(); }
  vm::Records* records() override { return this; }

  bool get(std::string_view key, std::string_view& value) override;
  std::size_t scan(const vm::KeyRange& range, std::span<vm::Entry> out) override;
  void put(std::string_view, std::string_view) override { refuse_write(); }
  void erase(std::string_view) override { refuse_write(); }
  // The verifier proves that nothing evaluated here writes or uses chance.
  static void refuse_write() { SLUICE_CHECK(!"a read wrote"); }

  Environment& environment_;
  PinnedReader reader_;
  std::shared_ptr<const void> module_;    // what `served_` is: held, so that no later one can stand at its address
  const Served* served_ = nullptr;
  std::uint64_t commit_ = 0;              // that the evaluation reads at
  bool stale_ = false;
  std::vector<Cell> cells_;
  store::Document document_;
  DocumentEdit edit_;
  Error error_;
};

}  // namespace sluice::proxy
