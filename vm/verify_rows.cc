// Tables must make sense by themselves, and queries and writes must fit their tables.
// Source: design module.md 1.4, 1.9, 3.4, 4.2.
#include <algorithm>
#include <bitset>

#include "vm/verify_base.h"

namespace sluice::vm {
namespace {
std::string at_most(std::size_t limit, std::string_view what) {
  return "has more than " + std::to_string(limit) + " " + std::string(what);
}

std::string size_problem(Size size, std::uint32_t rows, std::string_view whose) {
  if ((size == Size::none) != (rows == 0)) return "holds no rows" + std::string(whose);
  return {};
}

std::string columns_problem(const Table& table) {
  if (table.columns.empty()) return "has no columns";
  if (table.columns.size() > kColumnsMax) return at_most(kColumnsMax, "columns");
  if (std::string why = names("column", table.columns); !why.empty()) return why;
  if (std::string why = former_names("column", table.columns, table.drops); !why.empty()) return why;
  bool numbered = false;
  for (const Column& column : table.columns) {
    const std::string where = "column `" + column.name + "`: ";
    if (column.slot.base == Base::bytes) return where + "bytes are not stored in tables";
    if (std::string why = slot_problem(column.slot, kColumnTextMax); !why.empty()) return where + why;
    if (std::string why = first_problem(column.slot, column.first, "default"); !why.empty()) return where + why;
    if (!column.automatic) continue;
    if (column.slot.base != Base::integer || column.slot.optional || column.slot.range == Range::clamp)
      return where + "is numbered, but is not an int that takes each number or refuses it";
    if (column.first) return where + "is numbered, but has a default";
    if (numbered) return where + "is the second one that is numbered";
    numbered = true;
  }
  return {};
}

// Columns of a key, an index or a group: there, each once, short enough, present unless they `may_be_absent`, and with
// a default that a key can have.
template <class Columns, class Number>
std::string parts_problem(const Table& table, const Columns& columns, Number number, bool may_be_absent) {
  std::bitset<kColumnsMax> seen;
  for (const auto& part : columns) {
    const std::uint8_t i = number(part);
    if (i >= table.columns.size()) return "there is no column " + std::to_string(i);
    const Column& column = table.columns[i];
    if (seen[i]) return "names the column `" + column.name + "` twice";
    seen.set(i);
    if (column.slot.optional && !may_be_absent) return "the column `" + column.name + "` may be absent";
    if (column.slot.base == Base::text && column.slot.max > kKeyTextMax)
      return "the column `" + column.name + "` is too long: up to " + std::to_string(column.slot.max) + " bytes";
    if (column.first && column.first->type == Type::text && column.first->text().find('\0') != std::string_view::npos)
      return "the column `" + column.name + "`: its default has U+0000, which no key has";
  }
  return {};
}
std::uint8_t itself(std::uint8_t column) { return column; }

std::string width_problem(std::uint32_t bytes) {
  if (bytes <= kEncodedKeyMax) return {};
  return "takes up to " + std::to_string(bytes) + " bytes, more than the " + std::to_string(kEncodedKeyMax) + " of a key";
}

std::string key_problem(const Table& table) {
  if (table.key.empty() || table.key.size() > kKeyColumnsMax) return "its key has not 1 to 4 columns";
  if (std::string why = parts_problem(table, table.key, itself, false); !why.empty()) return "key: " + why;
  if (std::string why = width_problem(order_bytes(table, 0)); !why.empty()) return "key: " + why;
  if (std::string why = size_problem(table.size, table.rows, ""); !why.empty()) return why;
  if (std::string why = size_problem(table.group_size, table.group_rows, " of a group"); !why.empty()) return why;
  if ((table.group_size == Size::none) != (table.per == 0)) return "bounds groups without saying of what";
  if (table.per > table.key.size()) return "has groups of more columns than its key";
  return {};
}

std::string indexes_problem(const Table& table) {
  if (table.indexes.size() > kIndexesMax) return at_most(kIndexesMax, "indexes");
  if (std::string why = names("index", table.indexes); !why.empty()) return why;
  for (std::size_t i = 0; i < table.indexes.size(); ++i) {
    const Index& index = table.indexes[i];
    const std::string where = "index `" + index.name + "`: ";
    if (index.parts.empty() || index.parts.size() > kOrderColumnsMax) return where + "has not 1 to 8 columns";
    if (std::string why = parts_problem(table, index.parts, [](const KeyPart& part) { return part.column; }, true); !why.empty())
      return where + why;
    if (std::string why = width_problem(order_bytes(table, static_cast<unsigned>(i) + 1)); !why.empty()) return where + why;
    if (index.unique && index.ranked) return where + "is unique, so it is not ranked";
  }
  return {};
}

std::string totals_problem(const Table& table) {
  if (table.totals.size() > kTotalsMax) return at_most(kTotalsMax, "totals");
  if (std::string why = names("total", table.totals); !why.empty()) return why;
  for (const Total& total : table.totals) {
    const std::string where = "total `" + total.name + "`: ";
    if (!total.sum && total.column != 0) return where + "counts rows, but names a column";
    if (total.sum) {
      if (total.column >= table.columns.size()) return where + "there is no column " + std::to_string(total.column);
      if (type_of(table.columns[total.column].slot.base) != Type::num) return where + "sums what is no number";
    }
    if (total.by.size() > kOrderColumnsMax) return where + "has more than 8 columns";
    if (std::string why = parts_problem(table, total.by, itself, false); !why.empty()) return where + why;
    if (std::string why = width_problem(total_bytes(table, total)); !why.empty()) return where + why;
  }
  return {};
}

std::string scan_problem(const Module& module, const Scan& scan) {
  if (scan.table >= module.tables.size()) return "there is no table " + std::to_string(scan.table);
  const Table& table = module.tables[scan.table];
  if (scan.order > table.indexes.size()) return "there is no index " + std::to_string(scan.order - 1);
  const std::size_t columns = order_size(table, scan.order);
  const bool bounded = scan.low != Bound::none || scan.high != Bound::none;
  if (scan.prefix + (bounded ? 1u : 0u) > columns) return "gives more columns than its order has";
  if (scan.limit > kLoopMax) return "reads more than 10000 rows";
  return {};
}

std::string shape_problem(const Module& module, const RowShape& shape) {
  if (shape.table >= module.tables.size()) return "there is no table " + std::to_string(shape.table);
  const Table& table = module.tables[shape.table];
  std::bitset<kColumnsMax> given;
  for (const std::uint8_t i : shape.columns) {
    if (i >= table.columns.size()) return "there is no column " + std::to_string(i);
    const std::string& name = table.columns[i].name;
    if (given[i]) return "gives the column `" + name + "` twice";
    given.set(i);
    if (table.columns[i].automatic) return "gives the column `" + name + "`, which is numbered";
    if (shape.writing == Writing::update && std::find(table.key.begin(), table.key.end(), i) != table.key.end())
      return "changes the column `" + name + "` of the key";
  }
  if (shape.writing == Writing::update) return shape.columns.empty() ? "changes no column" : std::string();
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    const Column& column = table.columns[i];
    if (!given[i] && !column.automatic && !column.first && !column.slot.optional)
      return "does not give the column `" + column.name + "`";
  }
  return {};
}
}  // namespace

std::string tables_problem(const Module& module) {
  if (module.tables.size() > kTablesMax) return "there are more than 64 tables";
  if (std::string why = names("table", module.tables); !why.empty()) return why;
  if (std::string why = former_names("table", module.tables, module.dropped_tables); !why.empty()) return why;
  std::size_t totals = 0;
  for (const Table& table : module.tables) {
    const std::string where = "table `" + table.name + "`: ";
    for (const auto check : {columns_problem, key_problem, indexes_problem, totals_problem})
      if (std::string why = check(table); !why.empty()) return where + why;
    totals += table.totals.size();
  }
  return totals > kAllTotalsMax ? "there are more than 256 totals" : std::string();
}

std::string descriptors_problem(const Module& module) {
  if (module.scans.size() > kScansMax) return "there are more than 256 scans";
  for (std::size_t i = 0; i < module.scans.size(); ++i)
    if (std::string why = scan_problem(module, module.scans[i]); !why.empty()) return "scan " + std::to_string(i) + ": " + why;
  if (module.shapes.size() > kShapesMax) return "there are more than 256 row shapes";
  for (std::size_t i = 0; i < module.shapes.size(); ++i)
    if (std::string why = shape_problem(module, module.shapes[i]); !why.empty()) return "row shape " + std::to_string(i) + ": " + why;
  return {};
}

}  // namespace sluice::vm
