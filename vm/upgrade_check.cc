// The half of an upgrade that only looks.
#include <algorithm>
#include <map>

#include "vm/arena.h"
#include "vm/base/hash.h"
#include "vm/image.h"
#include "vm/plan_base.h"
#include "vm/row_walk.h"
#include "vm/slot.h"
#include "vm/upgrade.h"

namespace sluice::vm {
namespace {

using Found = Result<void, std::string>;

std::string damaged_row(const Table& table) { return "a row of the table " + table.name + " is damaged"; }

// Absence counts, and a range that saturates when a value is stored does not saturate what was stored before.
bool fits(const Slot& slot, const Value& value) {
  if (value.type == Type::none) return slot.optional;
  Slot strict = slot;
  if (strict.range == Range::clamp) strict.range = Range::in;
  Value narrowed = value;
  return narrow(strict, narrowed) == Fault::none;
}

class TableCheck {
 public:
  TableCheck(const TableWork& work, const Tables& tables, UpgradeRecords& records, const UpgradeLimits& limits)
      : work_(work), tables_(tables), table_(tables.module().tables[work.table]),
        codec_(table_, tables.layout().tables[work.table]), records_(records), limits_(limits), use_{records, arena_} {}

  Found run() {
    const std::uint64_t rows = tables_.rows(use_, work_.table);
    if (work_.rows && rows > table_.rows)
      return "table " + table_.name + " has " + std::to_string(rows) + " rows, and may have " + std::to_string(table_.rows);
    if (!work_.fits.empty() || !work_.keys.empty() || work_.groups)
      if (Found found = look_at_rows(); !found) return found;
    for (const std::uint8_t index : work_.distinct)
      if (Found found = look_for_twins(index, rows); !found) return found;
    return {};
  }

 private:
  Found look_at_rows() {
    RecordWalk walk(records_, tables_.order_prefix(work_.table, 0));
    std::string group;
    std::uint64_t in_group = 0;
    while (const Entry* entry = walk.next()) {
      Row row;
      if (!codec_.decode(entry->value, row.columns)) return damaged_row(table_);
      for (const std::uint8_t c : work_.fits)
        if (!fits(table_.columns[c].slot, row.columns[c]))
          return row_name(table_, row) + "." + table_.columns[c].name + " is " + written(row.columns[c]) +
                 ", which does not fit " + describe(table_.columns[c].slot);
      for (const std::uint8_t c : work_.keys)
        if (row.columns[c].type == Type::text && row.columns[c].text().find('\0') != std::string_view::npos)
          return row_name(table_, row) + "." + table_.columns[c].name + " is " + written(row.columns[c]) +
                 ", and U+0000 cannot come into a key";
      if (!work_.groups) continue;
      // Groups lie together in the order of the key.
      const std::string_view of = group_of(entry->key);
      if (of.empty()) return damaged_row(table_);
      if (of != group) {
        group = of;
        in_group = 0;
      }
      if (++in_group > table_.group_rows) return too_many(row);
    }
    return {};
  }

  // The key up to where its group ends; empty when it has no such part.
  std::string_view group_of(std::string_view key) const {
    std::size_t end = tables_.order_prefix(work_.table, 0).size();
    for (std::size_t i = 0; i < table_.per; ++i) {
      const std::size_t part = key_part_size(table_.columns[table_.key[i]].slot.base, false, key.substr(end));
      if (part == std::string_view::npos) return {};
      end += part;
    }
    return key.substr(0, end);
  }

  std::string too_many(const Row& row) const {
    std::string of;
    for (std::size_t i = 0; i < table_.per; ++i)
      of += (i == 0 ? "" : ", ") + table_.columns[table_.key[i]].name + " " + written(row.columns[table_.key[i]]);
    return "table " + table_.name + " has more than " + std::to_string(table_.group_rows) + " rows for " + of;
  }

  // Calls with each row's key in the index, in the order of rows, until it answers false. Errors: the store is damaged.
  template <class F>
  Found each_key(std::uint8_t index, F f) {
    RecordWalk walk(records_, tables_.order_prefix(work_.table, 0));
    bool more = true;
    while (more) {
      const Entry* entry = walk.next();
      if (entry == nullptr) break;
      Row row;
      if (!codec_.decode(entry->value, row.columns)) return damaged_row(table_);
      arena_.reset();
      const Fault fault = tables_.derive(use_, work_.table, entry->key, row, [&](const Tables::Derived& d) {
        if (d.kind == Tables::Derived::Kind::unique && d.part == index) more = f(d.key, row);
      });
      if (fault != Fault::none) return damaged_row(table_);
    }
    return {};
  }

  // Rows with equal keys have equal hashes, which are few enough to keep; of what is left the keys themselves are looked
  // at. More rows than hashes fit are looked at in several rounds, each with its part of the hashes.
  Found look_for_twins(std::uint8_t index, std::uint64_t rows) {
    const std::uint64_t rounds = 1 + rows / limits_.hashes;
    std::vector<std::uint64_t> seen;
    seen.reserve(static_cast<std::size_t>(std::min<std::uint64_t>(rows + 1, limits_.hashes)));
    for (std::uint64_t round = 0; round < rounds; ++round) {
      seen.clear();
      Found found = each_key(index, [&](std::string_view key, const Row&) {
        const std::uint64_t hash = xxh3_64(key);
        if (hash % rounds == round) seen.push_back(hash);
        return true;
      });
      if (!found) return found;
      std::sort(seen.begin(), seen.end());
      std::vector<std::uint64_t> twice;
      for (std::size_t i = 1; i < seen.size(); ++i)
        if (seen[i] == seen[i - 1] && (twice.empty() || twice.back() != seen[i])) twice.push_back(seen[i]);
      if (twice.empty()) continue;
      std::map<std::string, std::string, std::less<>> names;    // by key, of rows whose hash came twice
      std::string agree;
      found = each_key(index, [&](std::string_view key, const Row& row) {
        if (!std::binary_search(twice.begin(), twice.end(), xxh3_64(key))) return true;
        const auto [at, fresh] = names.emplace(std::string(key), row_name(table_, row));
        if (fresh) return true;
        agree = at->second + " and " + row_name(table_, row) + " agree in unique " + table_.indexes[index].name;
        return false;
      });
      if (!found) return found;
      if (!agree.empty()) return agree;
    }
    return {};
  }

  const TableWork& work_;
  const Tables& tables_;
  const Table& table_;
  const RowCodec codec_;
  UpgradeRecords& records_;
  const UpgradeLimits& limits_;
  Arena arena_;
  TableUse use_;
};

Found check_state(const StateWork& work, const Plan& plan, const Module& module, Records& records) {
  const State& state = module.states[work.state];
  std::string_view bytes;
  Value value;
  if (records.get(state_key(plan.next.states[work.state].number), bytes)) {
    const std::optional<Value> kept = decode_state(work.before, bytes);
    if (!kept) return "the state " + state.name + " is damaged";
    value = *kept;
  }
  if (fits(state.slot, value)) return {};
  return "state " + state.name + " is " + written(value) + ", which does not fit " + describe(state.slot);
}

}  // namespace

Result<void, std::string> check_upgrade(const Plan& plan, const Module& module, UpgradeRecords& records, const UpgradeLimits& limits) {
  Found found;
  for (const StateWork& work : plan.states)
    if (found && work.fits) found = check_state(work, plan, module, records);
  const Tables tables(module, layout_of(plan.next));
  for (const TableWork& work : plan.tables)
    if (found && work.checks()) found = TableCheck(work, tables, records, limits).run();
  // What could not be read looks like damage: the reason behind it is the better sentence.
  if (Found read = records.commit(); !read) return read;
  return found;
}

}  // namespace sluice::vm
