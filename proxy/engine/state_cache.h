// The states of a store, decoded, as the events of the present burst have made them.
//
// An event changes the cache alone and notes what was there before; stage() turns what the burst changed into bytes
// once, however often it changed. A failed event, or a failed burst, leaves no trace.
#pragma once
#include <cstdint>
#include <vector>

#include "proxy/engine/served.h"
#include "store/batch.h"
#include "store/store.h"
#include "vm/value.h"

namespace sluice::proxy {

// Thread: owner.
class StateCache {
 public:
  // Reads every state anew; what was staged is forgotten. Errors: the store's; damaged when bytes are not of their slot.
  Result<void> load(const ServedPtr& served, const store::Snapshot& snapshot);
  // First values, for a store that is being created.
  void load_first(const ServedPtr& served);
  // Another module over the same store: states keep their values by their keys; new ones begin, and those that are kept
  // in another form are changed, so that they are staged.
  void swap(const ServedPtr& served);

  bool get(std::uint16_t number, vm::Value& out) const {
    const Cell& cell = cells_[number];
    if (!cell.present) return false;
    out = cell.value;
    return true;
  }
  // `value` is narrowed. A write that changes nothing leaves no note.
  void set(std::uint16_t number, const vm::Value& value);
  void clear(std::uint16_t number);

  bool event_changed() const { return !journal_.empty(); }
  void keep_event();
  void undo_event();

  std::size_t changed() const { return changed_.size(); }   // states that the burst changed
  void stage(store::Batch& batch);                          // writes them; a later commit makes them durable
  void committed();

 private:
  // A vector of char, since a text's bytes must stay where they are when it moves into the journal.
  using Bytes = std::vector<char>;
  struct Cell {
    vm::Value value;
    Bytes text;                   // what `value` points into, for texts
    bool present = false;
    bool changed = false;         // in this burst
  };
  struct Undo {
    std::uint16_t number = 0;
    bool present = false;
    vm::Value value;
    Bytes text;
  };
  Bytes spare();
  void note(std::uint16_t number);
  void hold(Cell& cell, const vm::Value& value);

  ServedPtr served_;
  std::vector<Cell> cells_;
  std::vector<Undo> journal_;
  std::vector<std::uint16_t> changed_;
  std::vector<Bytes> spare_;      // buffers to use again
  std::string encoded_;
};

}  // namespace sluice::proxy
