// Positions in an order of rows: ranks, and far pages.
//
// Of an order (a table's key or one of its indexes) that was asked for a position, every 64th key is kept in memory
// with the number of rows up to the next: fences. Built by one scan at first use, moved by each insert and delete,
// undone with the event, nothing on disk.
// Source: design module.md 4.4.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "vm/records.h"

namespace sluice::vm {

// The entries of an order are the records whose keys begin with `prefix` (its table and index number).
// Thread: owner.
class Orders {
 public:
  Orders();
  ~Orders();
  Orders(const Orders&) = delete;
  Orders& operator=(const Orders&) = delete;

  // Entries of the order below `key` (any bytes that begin with `prefix`). Builds its fences when there are none.
  std::uint64_t rank(std::string_view prefix, std::string_view key, Records& records);
  // The entry at position n of the order; false when there are fewer. Life: as Records says.
  bool at(std::string_view prefix, std::uint64_t n, Records& records, Entry& out);

  // An entry has come or gone; nothing to do for an order without fences.
  void inserted(std::string_view prefix, std::string_view key);
  void erased(std::string_view prefix, std::string_view key);

  void begin_event();
  void keep_event();
  void undo_event();
  // Forgets all fences: after a failed commit, and when the module is swapped.
  void clear();
  std::size_t bytes() const;                  // memory in use

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice::vm
