// Tables the slow and obvious way, to compare the real ones with: rows in a list, everything worked out from them when asked.
#pragma once
#include <algorithm>
#include <cmath>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "vm/module.h"

namespace sluice::vm {

// A value that owns its text.
struct ModelValue {
  Type type = Type::none;
  double num = 0;                   // a bool: 0 or 1
  std::string text;
  bool operator==(const ModelValue&) const = default;

  static ModelValue of(const Value& value) {
    ModelValue cell;
    cell.type = value.type;
    if (value.type == Type::num) cell.num = value.num;
    if (value.type == Type::boolean) cell.num = value.boolean ? 1 : 0;
    if (value.type == Type::text) cell.text = value.text();
    return cell;
  }
  // Life: points into the cell.
  Value value() const {
    if (type == Type::num) return Value::number(num);
    if (type == Type::boolean) return Value::truth(num != 0);
    return type == Type::text ? Value::span(text) : Value();
  }
  int compare(const ModelValue& other) const {
    if (type == Type::text) return text.compare(other.text);
    return num < other.num ? -1 : num > other.num ? 1 : 0;
  }
};
using ModelRow = std::vector<ModelValue>;

class TableModel {
 public:
  explicit TableModel(const Table& table) : table_(table) {}

  // In the order of the key, or of an index; rows that are not in the index left out.
  std::vector<ModelRow> in_order(unsigned order) const {
    std::vector<ModelRow> out;
    for (const ModelRow& row : rows)
      if (is_in(row, order)) out.push_back(row);
    std::sort(out.begin(), out.end(), [&](const ModelRow& a, const ModelRow& b) { return compare(a, b, order) < 0; });
    return out;
  }
  bool is_in(const ModelRow& row, unsigned order) const {
    for (std::size_t i = 0; i < order_size(table_, order); ++i)
      if (row[order_part(table_, order, i).column].type == Type::none) return false;
    return true;
  }
  int compare(const ModelRow& a, const ModelRow& b, unsigned order) const {
    for (std::size_t i = 0; i < order_size(table_, order); ++i) {
      const KeyPart part = order_part(table_, order, i);
      const int sign = a[part.column].compare(b[part.column]);
      if (sign != 0) return part.descending ? -sign : sign;
    }
    return order == 0 ? 0 : compare(a, b, 0);
  }
  std::size_t find(const ModelRow& row) const {
    std::size_t i = 0;
    while (i < rows.size() && compare(rows[i], row, 0) != 0) ++i;
    return i;
  }
  bool same_group(const ModelRow& a, const ModelRow& b) const {
    for (std::size_t i = 0; i < table_.per; ++i)
      if (a[table_.key[i]] != b[table_.key[i]]) return false;
    return true;
  }

  // What would be the fault of a unique index.
  bool is_taken(const ModelRow& row, std::size_t but) const {
    for (unsigned o = 1; o <= table_.indexes.size(); ++o) {
      if (!table_.indexes[o - 1].unique || !is_in(row, o)) continue;
      for (std::size_t i = 0; i < rows.size(); ++i) {
        if (i == but || !is_in(rows[i], o)) continue;
        bool same = true;
        for (const KeyPart& part : table_.indexes[o - 1].parts) same = same && rows[i][part.column] == row[part.column];
        if (same) return true;
      }
    }
    return false;
  }
  Fault insert(ModelRow row, bool replace) {
    const std::size_t at = find(row);
    if (at != rows.size()) {
      if (!replace || is_taken(row, at)) return Fault::exists;
      rows[at] = std::move(row);
      return Fault::none;
    }
    std::vector<std::size_t> group;
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (same_group(rows[i], row)) group.push_back(i);
    if (const Fault fault = make_room(table_.group_size, table_.group_rows, group); fault != Fault::none) return fault;
    std::vector<std::size_t> all;
    for (std::size_t i = 0; i < rows.size(); ++i) all.push_back(i);
    if (const Fault fault = make_room(table_.size, table_.rows, all); fault != Fault::none) return fault;
    if (is_taken(row, rows.size())) return Fault::exists;
    rows.push_back(std::move(row));
    return Fault::none;
  }
  Fault update(std::size_t at, ModelRow row) {
    if (is_taken(row, at)) return Fault::exists;
    rows[at] = std::move(row);
    return Fault::none;
  }

  std::vector<ModelRow> rows;

 private:
  Fault make_room(Size size, std::size_t most, const std::vector<std::size_t>& among) {
    if (size == Size::none || among.size() < most) return Fault::none;
    if (size == Size::max) return Fault::limit;
    std::size_t first = among[0];
    for (const std::size_t i : among)
      if (compare(rows[i], rows[first], 0) < 0) first = i;
    rows.erase(rows.begin() + static_cast<std::ptrdiff_t>(first));
    return Fault::none;
  }

  const Table& table_;
};

}  // namespace sluice::vm
