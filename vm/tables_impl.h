// What Tables works out once about its tables, and the parts it is made of.
#pragma once
#include <array>
#include <string>
#include <vector>

#include "vm/exact_sum.h"
#include "vm/key_codec.h"
#include "vm/row_codec.h"
#include "vm/tables.h"

namespace sluice::vm {

// The first byte of a record's key.
inline constexpr char kRowRecord = 0x10, kIndexRecord = 0x11, kTotalRecord = 0x12, kGroupRecord = 0x13, kCountRecord = 0x14;
inline constexpr std::uint8_t kNoColumn = 255;
using ColumnSet = std::uint32_t;      // a bit per column
static_assert(kColumnsMax <= 32);

// The key of a table, or an index.
struct OrderFacts {
  std::string prefix;                 // of its records
  std::vector<KeyPart> parts;
  ColumnSet columns = 0;
  bool unique = false;
};
struct TotalFacts {
  std::string prefix;
  ColumnSet columns = 0;              // that move it
};
struct TableFacts {
  const Table* table = nullptr;
  RowCodec rows;
  std::vector<OrderFacts> orders;     // the key, then the indexes
  std::vector<TotalFacts> totals;
  std::string group_prefix, count_key;
  std::uint8_t automatic = kNoColumn;

  TableFacts(const Table& of, const TableLayout& layout) : table(&of), rows(of, layout) {}
};

struct Tables::Impl {
  const Module& module;
  const Layout layout;
  std::vector<TableFacts> tables;

  Impl(const Module& m, Layout l);

  // The number of rows, and the next automatic number.
  struct Counts {
    std::uint64_t rows = 0, next = 1;
  };
  static std::uint64_t number(TableUse& use, std::string_view key);     // a counter; 0 when there is none
  static Counts counts(TableUse& use, const TableFacts& facts);

  // Keys of what is derived. `values`: of the columns, in their order.
  static Fault append_columns(KeyBuffer& key, const Table& table, const std::uint8_t* columns, std::size_t count,
                              const Value* values);
  // False: nothing can be stored under these values.
  static bool have_key_form(const Table& table, const std::uint8_t* columns, std::size_t count, const Value* values);
  // `there` is false for a row that has no value for one of the index's columns.
  static Fault entry_key(const TableFacts& facts, std::size_t order, std::string_view row_key, const Row& row,
                         KeyBuffer& key, bool& there);
  static Fault total_key(const TableFacts& facts, std::size_t total, const Row& row, KeyBuffer& key);
  static Fault group_key(const TableFacts& facts, const Row& row, KeyBuffer& key);
  static std::string_view row_part(const TableFacts& facts, std::string_view row_key);   // without `10 table`

  // The one place that changes rows and what is derived from them. `next`: the next automatic number, 0: as it is.
  Fault write(TableUse& use, std::uint32_t table, std::string_view row_key, const Row* before, const Row* after,
              std::uint64_t next) const;
  static Fault write_index(TableUse& use, const TableFacts& facts, std::size_t order, std::string_view row_key,
                           const Row* before, const Row* after);
  static Fault write_total(TableUse& use, const TableFacts& facts, std::size_t total, const Row* before, const Row* after);
  static Fault write_count(TableUse& use, std::string_view key, std::uint64_t count);
  static Fault put(TableUse& use, std::string_view key, std::string_view value);
  static Fault erase(TableUse& use, std::string_view key);
  Fault make_room(TableUse& use, std::uint32_t table, const Row& row) const;
  Fault make_room(TableUse& use, std::uint32_t table, Size size, std::uint64_t rows, std::uint64_t most,
                  const KeyBuffer& first) const;
};

}  // namespace sluice::vm
