// What a store remembers of the module that it serves: every declaration of what is stored, with the number under which
// it is kept.
//
// Numbers are given once and never again, also when what had them is gone, so a renamed column needs no rewritten row and
// an old row never reads as something new. A module is compared with this before it serves (vm/plan.h).
// Its bytes are drawn in catalog.cc.
// Source: design module.md 3.11.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vm/base/result.h"
#include "vm/layout.h"
#include "vm/module.h"

namespace sluice::vm {

struct KeptState {
  std::uint16_t number = 0;
  std::string name;
  Slot slot;
  bool operator==(const KeptState&) const = default;
};

// A value that owns its text. Shape: none, num, boolean or text.
struct KeptValue {
  Type type = Type::none;
  double num = 0;
  bool boolean = false;
  std::string text;
  bool operator==(const KeptValue&) const = default;
  static KeptValue of(const std::optional<Value>& value);
};

struct KeptColumn {
  std::uint16_t number = 0;
  std::string name;
  Slot slot;
  bool automatic = false;
  KeptValue before;                 // what rows read that were written before it came: its default of that day, for ever
  bool operator==(const KeptColumn&) const = default;
};

struct KeptIndex {
  struct Part {
    std::uint16_t column = 0;       // its number, as everywhere here
    bool descending = false;
    bool operator==(const Part&) const = default;
  };
  std::uint16_t number = 0;
  std::string name;
  std::vector<Part> parts;
  bool unique = false;
  bool operator==(const KeptIndex&) const = default;
};

struct KeptTotal {
  std::uint16_t number = 0;
  std::string name;
  bool sum = false;
  std::uint16_t column = 0;         // of a sum
  std::vector<std::uint16_t> by;
  bool operator==(const KeptTotal&) const = default;
};

inline constexpr std::size_t kShapesInTable = 4096;   // far more upgrades than a table sees

struct KeptTable {
  std::uint16_t number = 0;
  std::string name;
  Size size = Size::none, group_size = Size::none;
  std::uint32_t rows = 0, group_rows = 0;
  std::uint8_t per = 0;
  std::vector<KeptColumn> columns;
  std::vector<std::uint16_t> key;
  std::vector<KeptIndex> indexes;
  std::vector<KeptTotal> totals;
  std::vector<Shape> shapes;        // every form in which rows were ever written; rows name theirs by its place here
  std::uint16_t shape = 0;          // the present one
  std::uint16_t next_column = 0, next_index = 0, next_total = 0;

  const KeptColumn* find_column(std::uint16_t number_of_it) const;
  bool operator==(const KeptTable&) const = default;
};

// Records that nobody reads any more. They are erased before the store serves the next time.
struct Erase {
  std::string prefix;               // of their keys
  // Empty: all of them. Else those whose keys have exactly these parts behind the prefix, a byte for each: 1, 4 or 8 bytes
  // long, or 0 for a text with its end. (Counts of groups by one column and by two lie in the same place.)
  std::string parts;
  bool operator==(const Erase&) const = default;
};

// Records that are being built from the rows for the module that will serve next.
struct Upgrade {
  std::string target;               // the catalog as it will be, encoded
  std::uint32_t table = 0;          // of the target's tables: those before it are built
  std::string after;                // the last row of it that was dealt with; empty: none
  bool operator==(const Upgrade&) const = default;
};

// States, tables, columns and so on are in the order in which the module declares them.
struct Catalog {
  std::string name;
  std::uint32_t version = 1;        // the greatest that ever served
  std::uint64_t code = 0;           // Module::code_hash
  Documents documents;
  std::vector<KeptState> states;
  std::vector<KeptTable> tables;
  std::uint16_t next_state = 0, next_table = 0;
  std::vector<Erase> erases;
  std::optional<Upgrade> upgrade;

  // The same for every store that keeps the same declarations, whatever its history; names in, numbers out.
  std::uint64_t shape_hash() const;
  // Whether both keep the same under the same numbers; versions, code and what is under way aside.
  bool keeps_as(const Catalog& other) const;
};

// Of a store that is made by `module`: all numbers from 0.
Catalog first_catalog(const Module& module);
KeptTable first_table(const Table& table, std::uint16_t number);
// Shape: `table` has the columns as the module declares them.
KeptIndex kept_index(const Index& index, const KeptTable& table, std::uint16_t number);
KeptTotal kept_total(const Total& total, const KeptTable& table, std::uint16_t number);
Layout layout_of(const Catalog& catalog);
// What the catalog declares, as a module without code: enough for Tables over layout_of(catalog).
std::unique_ptr<const Module> module_of(const Catalog& catalog);

std::string encode(const Catalog& catalog);
// Errors: one sentence, the end of "store X: ". Reads what earlier versions wrote (format 1: states and documents only).
Result<Catalog, std::string> decode_catalog(std::string_view bytes);

}  // namespace sluice::vm
