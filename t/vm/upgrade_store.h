// A store for tests of upgrades: committed records, what is written since, and crashes.
#pragma once
#include <doctest/doctest.h>

#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "t/vm/schema.h"
#include "vm/arena.h"
#include "vm/image.h"
#include "vm/memory_records.h"
#include "vm/tables.h"
#include "vm/upgrade.h"

namespace sluice::vm {

// As narrow as UpgradeRecords allows: a scan shows nothing that is not committed.
class TestRecords final : public UpgradeRecords {
 public:
  using Map = std::map<std::string, std::string, std::less<>>;

  bool get(std::string_view key, std::string_view& value) override {
    if (const auto at = fresh_.find(key); at != fresh_.end()) {
      if (at->second) value = *at->second;
      return at->second.has_value();
    }
    const auto at = committed.find(key);
    if (at == committed.end()) return false;
    value = at->second;
    return true;
  }
  std::size_t scan(const KeyRange& range, std::span<Entry> out) override {
    REQUIRE(!range.backward);
    std::size_t n = 0;
    for (auto at = committed.lower_bound(range.low); at != committed.end() && n < out.size(); ++at) {
      if (!range.high.empty() && at->first >= range.high) break;
      out[n++] = {at->first, at->second};
    }
    return n;
  }
  void put(std::string_view key, std::string_view value) override { write(key, std::string(value)); }
  void erase(std::string_view key) override { write(key, std::nullopt); }
  Result<void, std::string> commit() override {
    const bool crash = commits_left-- == 0;
    if (!crash)
      for (auto& [key, value] : fresh_) {
        if (value) committed[key] = std::move(*value);
        else committed.erase(key);
      }
    largest = std::max(largest, fresh_.size());
    fresh_.clear();
    lent_.clear();
    ++commits;
    if (crash) return std::string("the machine stops");
    return unread.empty() ? Result<void, std::string>() : Result<void, std::string>(unread);
  }

  Map committed;
  std::size_t commits_left = std::numeric_limits<std::size_t>::max(), commits = 0, largest = 0;
  std::string unread;                         // what commit() says could not be read

 private:
  void write(std::string_view key, std::optional<std::string> value) {
    auto& at = fresh_[std::string(key)];
    if (at) lent_.push_back(std::move(at));
    at = std::move(value);
  }
  std::map<std::string, std::optional<std::string>, std::less<>> fresh_;
  std::vector<std::optional<std::string>> lent_;
};

struct TestStore {
  TestRecords records;
  UpgradeLimits limits;
  std::unique_ptr<const Module> module;
  std::unique_ptr<const Tables> tables;
  Arena arena;

  Catalog catalog() const {
    const auto read = decode_catalog(records.committed.at(std::string(kCatalogKey)));
    REQUIRE_MESSAGE(read, (read ? std::string() : read.error()));
    return *read;
  }
  // Serves with this from now on: makes the store, or upgrades it. Else why not.
  std::string open(const Schema& schema, bool allow_destroy = true) {
    auto next = schema.module();
    if (!records.committed.contains(std::string(kCatalogKey))) {
      const Catalog first = first_catalog(*next);
      records.put(kCatalogKey, encode(first));
      for (std::size_t i = 0; i < next->states.size(); ++i) {
        if (!next->states[i].first) continue;
        std::string bytes;
        encode_state(bytes, next->states[i].slot, *next->states[i].first);
        records.put(state_key(first.states[i].number), bytes);
      }
      REQUIRE(records.commit());
      return serve(std::move(next), first);
    }
    const Catalog now = catalog();
    const Plan plan = plan_upgrade(now, *next);
    if (std::string why = plan.why_not(allow_destroy); !why.empty()) return why;
    if (!continues(now, plan))
      if (auto checked = check_upgrade(plan, *next, records, limits); !checked) return checked.error();
    auto ran = run_upgrade(now, plan, *next, records, limits);
    if (!ran) return ran.error();
    // What an engine does with its next commit.
    records.put(kCatalogKey, encode(*ran));
    if (auto stored = records.commit(); !stored) return stored.error();
    return serve(std::move(next), *ran);
  }
  std::string serve(std::unique_ptr<const Module> next, const Catalog& with) {
    tables = std::make_unique<const Tables>(*next, layout_of(with));
    module = std::move(next);
    return {};
  }

  TableUse use() {
    arena.reset();
    return {records, arena};
  }
  // Through the one writer, an event each. `values`: of all columns but automatic ones.
  Fault insert(std::string_view table, const std::vector<Value>& values) { return insert(place_of(table), values); }
  Fault insert(std::uint32_t table, const std::vector<Value>& values) {
    MemoryRecords before;
    for (const auto& [key, value] : records.committed) before.put(key, value);
    before.keep_event();
    std::vector<std::uint8_t> columns;
    const Table& of = module->tables[table];
    for (std::size_t c = 0; c < of.columns.size(); ++c)
      if (!of.columns[c].automatic) columns.push_back(static_cast<std::uint8_t>(c));
    REQUIRE(columns.size() == values.size());
    arena.reset();
    TableUse at{before, arena};
    double given = 0;
    const Fault fault = tables->insert(at, table, false, columns, values.data(), given);
    if (fault == Fault::none) records.committed = {before.contents().begin(), before.contents().end()};
    return fault;
  }
  std::uint32_t place_of(std::string_view table) const {
    return static_cast<std::uint32_t>(module->find_table(table) - module->tables.data());
  }
  // Records of one kind, or of all kinds that are derived.
  std::map<std::string, std::string> with_prefix(std::string_view prefix) const {
    std::map<std::string, std::string> out;
    for (auto at = records.committed.lower_bound(prefix); at != records.committed.end() && at->first.starts_with(prefix); ++at)
      out.insert(*at);
    return out;
  }
  std::optional<Value> state(std::size_t i) {
    std::string_view bytes;
    if (!records.get(state_key(tables->layout().states[i]), bytes)) return std::nullopt;
    const auto value = decode_state(module->states[i].slot, bytes);
    REQUIRE(value);
    return value;
  }
};

}  // namespace sluice::vm
