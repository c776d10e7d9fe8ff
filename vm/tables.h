// Rows and everything derived from them: the one place that reads and writes a module's tables.
//
//   10 table key                 row
//   11 table index columns [key] the row's key (unique), or nothing
//   12 table total columns       count or exact sum
//   13 table group               rows in the group
//   14 table                     rows, and the next auto number
//
// (bytes in hex; numbers of tables, indexes and totals are varints of the layout's numbers.)
//
// `write` takes a row as it was and as it will be; insert has no before, erase no after. It works out what each of the
// two gives to indexes, totals, groups and counts, and writes the difference. There is no second path, so what is
// derived always equals a rebuild.
// Source: design module.md 4.1 to 4.4.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vm/arena.h"
#include "vm/layout.h"
#include "vm/module.h"
#include "vm/orders.h"
#include "vm/records.h"

namespace sluice::vm {

// What the tables are read and written through, for one event.
struct TableUse {
  Records& records;
  Arena& arena;                     // keys, rows and texts that the event needs
  Orders* orders = nullptr;         // null at a reader, which has no positions beyond what it steps over
  std::size_t reserved = 0;         // bytes of the event's memory outside the arena
  std::uint32_t written = 0;        // records so far
  std::size_t bytes_written = 0;    // their keys and values
};
// Of one event; more is the fault limit. A row costs fuel by its table, not by its bytes: these bound what is kept of them.
inline constexpr std::uint32_t kRecordsWritten = 50'000;
inline constexpr std::size_t kBytesWritten = 16 * 1024 * 1024;

// A row taken apart. Shape: a value per declared column, of Type::none where it is absent.
// Life: texts point into the record or the arena.
struct Row {
  Value columns[kColumnsMax];
};

// A module's tables as one store keeps them.
// Thread: frozen after construction; a use belongs to one thread.
class Tables {
 public:
  // Life: `module` outlives it.
  Tables(const Module& module, Layout layout);
  ~Tables();
  Tables(const Tables&) = delete;
  Tables& operator=(const Tables&) = delete;

  const Module& module() const;
  const Layout& layout() const;

  // Keys. Errors: encoding (U+0000 in a text), limit (no memory, or a text longer than any key of that column).
  // Life: the arena's. The record's whole key is given: `10 table key`. Empty: no row can have this key, as a column of
  // u32 is asked for a fraction.
  Fault row_key(TableUse& use, std::uint32_t table, const Value* key, std::string_view& out) const;

  // Reading. False: there is no such row, or its bytes are no row (the store is damaged).
  bool read(TableUse& use, std::uint32_t table, std::string_view row_key, Row& out) const;
  // A record that is at hand.
  bool decode(std::uint32_t table, std::string_view record, Row& out) const;
  // One column alone; Type::none when absent. False: no such row.
  bool column(TableUse& use, std::uint32_t table, std::string_view row_key, std::uint32_t column, Value& out) const;
  std::uint64_t rows(TableUse& use, std::uint32_t table) const;
  Fault group_rows(TableUse& use, std::uint32_t table, const Value* group, std::uint64_t& out) const;
  // `out` of Type::none: a sum beyond the largest double.
  Fault total(TableUse& use, std::uint32_t table, std::uint32_t total, const Value* group, Value& out) const;
  // Rows before this one in a ranked index. False: the row is not in it. Shape: use.orders is there.
  bool rank(TableUse& use, std::uint32_t table, std::uint32_t index, std::string_view row_key, const Row& row,
            std::uint64_t& out) const;

  // Writing. Every value passes narrow() of its slot here. `auto_number`: what the row got, for a table with one.
  // Errors: clamp, limit, encoding, exists, and what `max` says. After a fault the event has to be undone.
  Fault insert(TableUse& use, std::uint32_t table, bool replace, std::span<const std::uint8_t> columns,
               const Value* values, double& auto_number) const;
  // Shape: values as INSERT's window after its `?` pairs were put together: Type::none is absent.
  Fault update(TableUse& use, std::uint32_t table, std::string_view row_key, std::span<const std::uint8_t> columns,
               const Value* values) const;
  Fault erase(TableUse& use, std::uint32_t table, std::string_view row_key) const;

  // Going over rows. The byte range of a scan's bounds (the window of OPEN). Life: the arena's.
  Fault range(TableUse& use, const Scan& scan, const Value* window, KeyRange& out) const;
  // The row key behind an entry of a scan's order. Empty: the store is damaged. Life: the arena's or the record's.
  std::string_view row_of(TableUse& use, const Scan& scan, const Entry& entry) const;
  // The records of an order begin with this. Life: the object's.
  std::string_view order_prefix(std::uint32_t table, std::uint32_t order) const;

  // What one row gives to everything derived, for building it and for checking it: called with each derived record's key,
  // and for counts and sums with what this row adds. Sums come as exact sums of one value (vm/exact_sum.h).
  struct Derived {
    enum class Kind : std::uint8_t { entry, unique, count, sum } kind = Kind::entry;
    std::uint32_t part = 0;         // the index or total; for counts of groups and of the table: kGroup, kTable
    std::string_view key, value;    // value: of unique entries; of a sum the number's text of bytes, to add
    Value number;                   // of a sum
  };
  static constexpr std::uint32_t kGroup = 0x100, kTable = 0x101;
  Fault derive(TableUse& use, std::uint32_t table, std::string_view row_key, const Row& row,
               const std::function<void(const Derived&)>& sink) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice::vm
