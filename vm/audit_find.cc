// The half of an audit that finds the records in which two sums differ.
#include <algorithm>
#include <map>

#include "vm/audit_base.h"
#include "vm/base/hash.h"
#include "vm/base/number_text.h"

namespace sluice::vm {

// What every sound row gives: f(derived, row).
template <class F>
void TableAudit::each_derived(F f) {
  RecordWalk walk(records_, tables_.order_prefix(number_, 0));
  while (const Entry* entry = walk.next()) {
    if (told_.enough()) return;
    Row row;
    if (!codec_.decode(entry->value, row.columns)) continue;
    tables_.derive(use_, number_, entry->key, row, [&](const Tables::Derived& d) { f(d, row); });
  }
}

void TableAudit::find_entries(std::uint32_t index) {
  using Kind = Tables::Derived::Kind;
  const Index& of = table_.indexes[index];
  const std::string said = table_.name + (of.unique ? " unique " : " index ") + of.name;
  const auto is_entry = [index](const Tables::Derived& d) {
    return (d.kind == Kind::entry || d.kind == Kind::unique) && d.part == index;
  };
  std::vector<std::string> wrong;             // keys of entries that were told of
  each_derived([&](const Tables::Derived& d, const Row& row) {
    if (!is_entry(d)) return;
    std::string_view value;
    if (!records_.get(d.key, value)) told_.say(said + " has no entry for " + row_name(table_, row));
    else if (value != d.value) {
      told_.say(said + (of.unique ? " names another row where " : " has an entry that is damaged where ") + row_name(table_, row) + " is");
      if (!told_.enough()) wrong.emplace_back(d.key);
    }
  });
  Scan scan;
  scan.table = static_cast<std::uint8_t>(number_);
  scan.order = static_cast<std::uint8_t>(index + 1);
  RecordWalk walk(records_, tables_.order_prefix(number_, index + 1));
  while (const Entry* entry = walk.next()) {
    if (told_.enough()) return;
    arena_.reset();
    const std::string_view row_key = tables_.row_of(use_, scan, *entry);
    Row row;
    bool there = false;
    if (!row_key.empty() && tables_.read(use_, number_, row_key, row))
      tables_.derive(use_, number_, row_key, row, [&](const Tables::Derived& d) { there = there || (is_entry(d) && d.key == entry->key); });
    if (!there && std::find(wrong.begin(), wrong.end(), entry->key) == wrong.end())
      told_.say(said + " has an entry of no row, under the key " + hex(entry->key));
  }
}

void TableAudit::find_amounts(const Amounts& what) {
  using Kind = Tables::Derived::Kind;
  struct Group {
    std::uint64_t count = 0;
    ExactSum sum;
    std::string row;                          // one of the group
    bool seen = false;
  };
  std::uint64_t groups = 0;
  for (RecordWalk walk(records_, what.prefix); walk.next() != nullptr;) ++groups;
  // Groups that the records do not know of are no more than rows.
  const std::uint64_t rounds = 1 + std::max(groups, rows_) / std::max<std::size_t>(told_.limits.groups, 1);
  const auto amount = [&what](const Group& g) {
    if (!what.sum) return std::to_string(g.count);
    const std::optional<double> value = g.sum.value();
    std::string out;
    if (value) append_number(out, *value);
    return value ? out : std::string("more than any number");
  };
  for (std::uint64_t round = 0; round < rounds && !told_.enough(); ++round) {
    const auto mine = [&](std::string_view key) { return xxh3_64(key) % rounds == round; };
    std::map<std::string, Group, std::less<>> wanted;
    each_derived([&](const Tables::Derived& d, const Row& row) {
      if (d.part != what.part || d.kind != (what.sum ? Kind::sum : Kind::count) || !mine(d.key)) return;
      auto at = wanted.find(d.key);
      if (at == wanted.end()) {
        at = wanted.emplace(std::string(d.key), Group{}).first;
        at->second.row = row_name(table_, row);
      }
      if (what.sum) at->second.sum.add(d.number.num);
      else ++at->second.count;
    });
    RecordWalk walk(records_, what.prefix);
    while (const Entry* entry = walk.next()) {
      if (told_.enough()) return;
      if (!mine(entry->key)) continue;
      Group stored;
      const auto count = what.sum ? std::optional<std::uint64_t>(0) : read_count(entry->value);
      const auto sum = what.sum ? read_sum(entry->value) : std::optional<ExactSum>(ExactSum());
      const auto at = wanted.find(entry->key);
      const std::string where = at == wanted.end() ? "under the key " + hex(entry->key) : "where " + at->second.row + " is";
      if (at != wanted.end()) at->second.seen = true;
      if (!count || !sum) {
        told_.say(what.name + " is damaged " + where);
        continue;
      }
      stored.count = *count;
      stored.sum = *sum;
      if (at == wanted.end()) told_.say(what.name + " is " + amount(stored) + " of no row, " + where);
      else if (stored.count != at->second.count || !(stored.sum == at->second.sum))
        told_.say(what.name + " is " + amount(stored) + " " + where + ", and its rows give " + amount(at->second));
    }
    for (const auto& [key, group] : wanted) {
      if (group.seen || (what.sum && group.sum.is_zero())) continue;
      told_.say(what.name + " is nothing where " + group.row + " is, and its rows give " + amount(group));
    }
  }
}

}  // namespace sluice::vm
