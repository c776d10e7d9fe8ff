#include "vm/upgrade.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <utility>

#include "vm/arena.h"
#include "vm/base/check.h"
#include "vm/exact_sum.h"
#include "vm/image.h"
#include "vm/row_walk.h"
#include "vm/varint.h"

namespace sluice::vm {
namespace {

using Done = Result<void, std::string>;

// Builds all that is new in one table, from its rows.
class TableBuild {
 public:
  TableBuild(const TableWork& work, const Tables& tables, UpgradeRecords& records)
      : work_(work), tables_(tables), table_(tables.module().tables[work.table]),
        codec_(table_, tables.layout().tables[work.table]), records_(records), use_{records, arena_} {
    for (std::size_t c = 0; c < table_.columns.size(); ++c)
      if (table_.columns[c].automatic) automatic_ = c;
  }

  // False: the row's bytes are no row.
  bool add(const Entry& entry) {
    Row row;
    if (!codec_.decode(entry.value, row.columns)) return false;
    arena_.reset();
    const Fault fault = tables_.derive(use_, work_.table, entry.key, row, [this](const Tables::Derived& d) { add(d); });
    if (work_.numbers && row.columns[automatic_].type == Type::num && row.columns[automatic_].num >= 1)
      next_ = std::max(next_, static_cast<std::uint64_t>(row.columns[automatic_].num) + 1);
    return fault == Fault::none;
  }
  // Writes what counts and sums have gathered.
  void flush() {
    for (const auto& [key, count] : counts_) {
      std::string_view bytes;
      std::uint64_t before = 0;
      if (records_.get(key, bytes)) take_varint(bytes, before);
      char out[kVarintMax];
      records_.put(key, {out, put_varint(out, before + count)});
    }
    for (const auto& [key, sum] : sums_) {
      std::string_view bytes;
      ExactSum all;
      if (records_.get(key, bytes)) all.decode(bytes);
      all.add(sum);
      char out[ExactSum::kEncodedMax];
      const std::size_t size = all.encode(out);
      if (size == 0) records_.erase(key);
      else records_.put(key, {out, size});
    }
    counts_.clear();
    sums_.clear();
    if (work_.numbers) write_next();
    written_ = 0;
  }
  std::size_t written() const { return written_ + counts_.size() + sums_.size(); }

 private:
  void add(const Tables::Derived& d) {
    using Kind = Tables::Derived::Kind;
    switch (d.kind) {
      case Kind::entry: case Kind::unique:
        if (!has(work_.indexes, d.part)) return;
        records_.put(d.key, d.value);
        ++written_;
        return;
      case Kind::count:
        if (d.part == Tables::kTable || (d.part == Tables::kGroup ? !work_.counts : !has(work_.totals, d.part))) return;
        ++counts_.try_emplace(std::string(d.key)).first->second;
        return;
      case Kind::sum:
        if (has(work_.totals, d.part)) sums_.try_emplace(std::string(d.key)).first->second.add(d.number.num);
        return;
    }
  }
  static bool has(const std::vector<std::uint8_t>& parts, std::uint32_t part) {
    return std::find(parts.begin(), parts.end(), part) != parts.end();
  }
  // The count of rows is there; the number stands behind it.
  void write_next() {
    const std::string key = record_prefix(0x14, tables_.layout().tables[work_.table].number);
    std::string_view bytes;
    std::uint64_t rows = 0, next = 1;
    if (records_.get(key, bytes)) {
      take_varint(bytes, rows);
      take_varint(bytes, next);
    }
    next = std::max(next, next_);
    if (rows == 0 && next <= 1) return;
    char out[2 * kVarintMax];
    const std::size_t size = put_varint(out, rows);
    records_.put(key, {out, size + put_varint(out + size, next)});
  }

  const TableWork& work_;
  const Tables& tables_;
  const Table& table_;
  const RowCodec codec_;
  UpgradeRecords& records_;
  Arena arena_;
  TableUse use_;
  std::size_t automatic_ = 0;
  std::uint64_t next_ = 1;
  std::map<std::string, std::uint64_t> counts_;
  std::map<std::string, ExactSum> sums_;
  std::size_t written_ = 0;
};

class Run {
 public:
  Run(const Plan& plan, const Module& module, UpgradeRecords& records, const UpgradeLimits& limits)
      : plan_(plan), module_(module), records_(records), limits_(limits) {}

  // Each leaves `catalog` as it is stored then.
  Done abandon(Catalog& catalog) {
    const auto target = decode_catalog(catalog.upgrade->target);
    if (!target) return target.error();
    for (Erase& erase : erases_between(*target, catalog)) catalog.erases.push_back(std::move(erase));
    catalog.upgrade.reset();
    return store(catalog);
  }

  Done erase_all(Catalog& catalog) {
    if (catalog.erases.empty()) return {};
    std::size_t written = 0;
    for (const Erase& erase : catalog.erases) {
      RecordWalk walk(records_, erase.prefix);
      while (const Entry* entry = walk.next()) {
        if (!erase.parts.empty() && !has_parts(entry->key.substr(erase.prefix.size()), erase.parts)) continue;
        records_.erase(entry->key);
        if (++written < limits_.writes) continue;
        walk.pause();
        if (Done done = records_.commit(); !done) return done;
        written = 0;
      }
    }
    catalog.erases.clear();
    return store(catalog);
  }

  Done build_all(Catalog& catalog) {
    const Tables tables(module_, layout_of(plan_.next));
    for (const TableWork& work : plan_.tables) {
      if (!work.builds()) continue;
      if (!catalog.upgrade) {
        Catalog target = plan_.next;
        target.erases.clear();
        catalog.upgrade = {encode(target), work.table, {}};
      }
      Upgrade& at = *catalog.upgrade;
      if (work.table < at.table) continue;
      if (work.table > at.table) at = {std::move(at.target), work.table, {}};
      TableBuild build(work, tables, records_);
      RecordWalk walk(records_, tables.order_prefix(work.table, 0), at.after);
      std::size_t rows = 0;
      while (const Entry* entry = walk.next()) {
        if (!build.add(*entry)) return "a row of the table " + module_.tables[work.table].name + " is damaged";
        if (++rows < limits_.writes && build.written() < limits_.writes) continue;
        at.after = entry->key;
        walk.pause();
        build.flush();
        if (Done done = store(catalog); !done) return done;
        rows = 0;
      }
      // With what comes next in the same transaction: then this table is not begun again.
      build.flush();
      at = {std::move(at.target), work.table + 1, {}};
    }
    return {};
  }

  // One transaction: from here on the store is the new module's.
  Done take_over(Catalog& catalog) {
    for (const StateWork& work : plan_.states) {
      const std::string key = state_key(plan_.next.states[work.state].number);
      const State& state = module_.states[work.state];
      std::optional<Value> value = state.first;
      std::string_view bytes;
      if (!work.fresh) {
        if (!work.rewrite || !records_.get(key, bytes)) continue;
        value = decode_state(work.before, bytes);
        if (!value) return "the state " + state.name + " is damaged";
      }
      if (!value) continue;
      std::string encoded;
      encode_state(encoded, state.slot, *value);
      records_.put(key, encoded);
    }
    Catalog next = plan_.next;
    next.erases = erases_between(catalog, plan_.next);
    catalog = std::move(next);
    return store(catalog);
  }

 private:
  Done store(const Catalog& catalog) {
    records_.put(kCatalogKey, encode(catalog));
    return records_.commit();
  }

  static bool has_parts(std::string_view key, std::string_view parts) {
    for (const char part : parts) {
      const std::size_t end = part == 0 ? key.find('\0') : std::string_view::npos;
      if (part == 0 && end == std::string_view::npos) return false;
      const std::size_t size = part == 0 ? end + 1 : static_cast<std::size_t>(part);
      if (size > key.size()) return false;
      key.remove_prefix(size);
    }
    return key.empty();
  }

  const Plan& plan_;
  const Module& module_;
  UpgradeRecords& records_;
  const UpgradeLimits& limits_;
};

}  // namespace

bool continues(const Catalog& now, const Plan& plan) {
  if (!now.upgrade) return false;
  const auto target = decode_catalog(now.upgrade->target);
  return target && target->keeps_as(plan.next);
}

Result<Catalog, std::string> run_upgrade(const Catalog& now, const Plan& plan, const Module& module, UpgradeRecords& records,
                                         const UpgradeLimits& limits) {
  SLUICE_CHECK(!plan.refused());
  Catalog catalog = now;
  Run run(plan, module, records, limits);
  // First of all, since numbers that were given to what was not finished are given again.
  if (catalog.upgrade && !continues(catalog, plan))
    if (Done done = run.abandon(catalog); !done) return done.error();
  if (Done done = run.erase_all(catalog); !done) return done.error();
  if (plan.steps.empty()) {
    Catalog next = plan.next;
    next.erases.clear();
    return next;
  }
  if (Done done = run.build_all(catalog); !done) return done.error();
  if (Done done = run.take_over(catalog); !done) return done.error();
  if (Done done = run.erase_all(catalog); !done) return done.error();
  return catalog;
}

}  // namespace sluice::vm
