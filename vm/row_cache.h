// The rows that a run has looked at last, taken apart, so that the next column of one costs no reading.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

#include "vm/tables.h"

namespace sluice::vm {

// A row in a register is its key, and rows are found here by where that key stands. A write to a table makes what is
// known of its rows out of date.
// Thread: its machine's.
class RowCache {
 public:
  struct One {
    std::uint8_t table = 0;
    std::uint64_t writes = 0;         // to the table, when the row was read
    std::string_view key;
    Row row;
  };

  void clear() { keys_.fill(nullptr); }
  // All but the one that `key` stands for.
  void clear_but(const char* key) {
    for (const char*& one : keys_)
      if (one != key) one = nullptr;
  }
  void written(std::uint32_t table) { ++writes_[table]; }

  const One* find(const char* key) const {
    for (std::size_t i = 0; i < kRows; ++i)
      if (keys_[i] == key) return is_fresh(rows_[i]) ? &rows_[i] : nullptr;
    return nullptr;
  }
  // The same row, wherever its key stands.
  const One* find_same(std::uint32_t table, std::string_view key) const {
    for (std::size_t i = 0; i < kRows; ++i)
      if (keys_[i] != nullptr && rows_[i].table == table && rows_[i].key == key && is_fresh(rows_[i])) return &rows_[i];
    return nullptr;
  }
  // A place for a row about to be read: its old one, or that of the row put in longest ago. It holds nothing until kept.
  One& place(std::uint32_t table, std::string_view key) {
    std::size_t at = next_;
    for (std::size_t i = 0; i < kRows; ++i)
      if (keys_[i] == key.data()) at = i;
    if (at == next_) next_ = (next_ + 1) % kRows;
    keys_[at] = nullptr;
    One& one = rows_[at];
    one.table = static_cast<std::uint8_t>(table);
    one.writes = writes_[table];
    one.key = key;
    return one;
  }
  void keep(const One& one) { keys_[static_cast<std::size_t>(&one - rows_.data())] = one.key.data(); }
  // The memory from `from` on is used for something else.
  void forget(const char* from, const char* end) {
    for (const char*& one : keys_)
      if (one >= from && one < end) one = nullptr;
  }

 private:
  static constexpr std::size_t kRows = 8;
  bool is_fresh(const One& one) const { return one.writes == writes_[one.table]; }

  std::array<const char*, kRows> keys_ = {};
  std::size_t next_ = 0;
  std::array<std::uint64_t, kTablesMax> writes_ = {};
  std::array<One, kRows> rows_;
};

}  // namespace sluice::vm
