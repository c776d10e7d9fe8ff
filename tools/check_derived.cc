#include "tools/check_derived.h"

#include <map>

#include "vm/exact_sum.h"
#include "vm/varint.h"

namespace sluice::tools {
namespace {

constexpr char kFirstDerived = 0x11, kLastDerived = 0x14;
constexpr char kCountOfTable = 0x14;

struct Expected {
  vm::Tables::Derived::Kind kind = vm::Tables::Derived::Kind::entry;
  std::string value;                          // of unique entries
  std::uint64_t count = 0;
  vm::ExactSum sum;
  double greatest = 0;                        // automatic number, of the count of a table
  std::string table;
};
using Rebuilt = std::map<std::string, Expected, std::less<>>;

std::string hex(std::string_view bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    out.append({digits[byte >> 4], digits[byte & 15]});
  }
  return out;
}

class Rebuild {
 public:
  Rebuild(const vm::Tables& tables, vm::MemoryRecords& records, vm::Orders& orders)
      : tables_(tables), records_(records), orders_(orders) {}

  std::string check() {
    for (std::uint32_t t = 0; t < tables_.module().tables.size() && wrong_.empty(); ++t) take_table(t);
    for (const auto& [key, value] : records_.contents()) {
      if (!wrong_.empty()) return wrong_;
      if (!key.empty() && key[0] >= kFirstDerived && key[0] <= kLastDerived) check_record(key, value);
    }
    for (const auto& [key, e] : rebuilt_)
      // A sum of 0 is no record.
      if (wrong_.empty() && !(e.kind == vm::Tables::Derived::Kind::sum && e.sum.is_zero()))
        wrong_ = e.table + " lacks the record " + hex(key);
    return wrong_;
  }

 private:
  void take_table(std::uint32_t t) {
    const vm::Table& table = tables_.module().tables[t];
    const std::string_view prefix = tables_.order_prefix(t, 0);
    double greatest = 0;
    for (auto at = records_.contents().lower_bound(prefix); at != records_.contents().end(); ++at) {
      if (!at->first.starts_with(prefix)) break;
      arena_.reset();
      vm::TableUse use{records_, arena_};
      vm::Row row;
      if (!tables_.read(use, t, at->first, row)) {
        wrong_ = table.name + ": a row cannot be read, of the key " + hex(at->first);
        return;
      }
      for (std::size_t c = 0; c < table.columns.size(); ++c)
        if (table.columns[c].automatic && row.columns[c].num > greatest) greatest = row.columns[c].num;
      const vm::Fault fault = tables_.derive(use, t, at->first, row, [&](const vm::Tables::Derived& d) { add(table, d); });
      if (fault != vm::Fault::none) {
        wrong_ = table.name + ": nothing can be derived from the row of the key " + hex(at->first);
        return;
      }
    }
    const auto count = rebuilt_.find(std::string(1, kCountOfTable) + std::string(prefix.substr(1)));
    if (count != rebuilt_.end()) count->second.greatest = greatest;
    for (std::uint32_t i = 0; i < table.indexes.size(); ++i)
      if (table.indexes[i].ranked) check_positions(table, t, i);
  }

  void add(const vm::Table& table, const vm::Tables::Derived& d) {
    using Kind = vm::Tables::Derived::Kind;
    Expected& e = rebuilt_[std::string(d.key)];
    if (d.kind == Kind::unique && e.count != 0) wrong_ = table.name + ": a unique value comes twice, " + hex(d.key);
    e.kind = d.kind;
    e.table = table.name;
    e.value = d.value;
    ++e.count;
    if (d.kind != Kind::sum) return;
    e.sum.add(d.number.num);
  }

  void check_record(const std::string& key, std::string_view value) {
    using Kind = vm::Tables::Derived::Kind;
    const auto at = rebuilt_.find(key);
    if (at == rebuilt_.end()) {
      // An empty table still knows its next automatic number.
      std::uint64_t rows = 1;
      if (key[0] == kCountOfTable && vm::take_varint(value, rows) && rows == 0) return;
      wrong_ = "there is a record that no row gives, " + hex(key);
      return;
    }
    const Expected& e = at->second;
    bool right = false;
    std::uint64_t n = 0;
    switch (e.kind) {
      case Kind::entry: right = value.empty(); break;
      case Kind::unique: right = value == e.value; break;
      case Kind::count:
        right = vm::take_varint(value, n) && n == e.count;
        right = right && (key[0] == kCountOfTable ? next_is_right(value, e.greatest) : value.empty());
        break;
      case Kind::sum: {
        vm::ExactSum kept;
        right = kept.decode(value) && kept == e.sum;
        break;
      }
    }
    if (!right) wrong_ = e.table + ": the record " + hex(key) + " is not what its rows give";
    rebuilt_.erase(at);
  }

  // Behind the count of a table with an `auto` column: a number greater than all that were given.
  static bool next_is_right(std::string_view rest, double greatest) {
    std::uint64_t next = 0;
    if (rest.empty()) return greatest == 0;
    return vm::take_varint(rest, next) && rest.empty() && static_cast<double>(next) > greatest;
  }

  void check_positions(const vm::Table& table, std::uint32_t t, std::uint32_t index) {
    const std::string_view prefix = tables_.order_prefix(t, 1 + index);
    std::uint64_t position = 0;
    for (auto at = records_.contents().lower_bound(prefix); at != records_.contents().end(); ++at) {
      if (!at->first.starts_with(prefix)) return;
      if (orders_.rank(prefix, at->first, records_) != position++) {
        wrong_ = table.name + ": the position of " + hex(at->first) + " in `" + table.indexes[index].name + "` is wrong";
        return;
      }
    }
  }

  const vm::Tables& tables_;
  vm::MemoryRecords& records_;
  vm::Orders& orders_;
  vm::Arena arena_;
  Rebuilt rebuilt_;
  std::string wrong_;
};

}  // namespace

std::string check_derived(const vm::Tables& tables, vm::MemoryRecords& records, vm::Orders& orders) {
  return Rebuild(tables, records, orders).check();
}

}  // namespace sluice::tools
