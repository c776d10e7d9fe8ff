// Schemas that change at random over rows that change at random: whatever an upgrade takes, no value is lost, and all that
// is derived is what the rows give.
#include <doctest/doctest.h>

#include <map>
#include <random>
#include <set>

#include "t/vm/table_model.h"
#include "t/vm/upgrade_store.h"
#include "vm/audit.h"
#include "vm/row_walk.h"

using namespace sluice;
using namespace sluice::vm;

namespace {

class Evolution {
 public:
  explicit Evolution(unsigned seed) : random_(seed) {}

  void run(int versions) {
    schema_.name = "random";
    add_table();
    REQUIRE(store_.open(schema_) == "");
    for (int i = 0; i < versions; ++i) {
      write_rows();
      upgrade();
      REQUIRE(differences() == std::vector<std::string>{});
    }
  }
  int taken = 0, refused = 0, crashed = 0;

 private:
  using Rows = std::map<std::string, std::map<std::uint16_t, ModelValue>>;    // by row key: cells by column number

  std::uint32_t below(std::uint32_t n) { return std::uniform_int_distribution<std::uint32_t>(0, n - 1)(random_); }
  bool one_in(std::uint32_t n) { return below(n) == 0; }

  Slot slot(bool key = false) {
    Slot s;
    switch (below(6)) {
      case 0: s = of(Base::num); break;
      case 1: s = of(Base::integer); break;
      case 2: s = of(Base::u32); break;
      case 3: s = of(Base::boolean); break;
      case 4: s = of(Base::text, 2 + below(8)); break;
      case 5: s = of(Base::slug); break;
    }
    if (type_of(s.base) == Type::num && one_in(3)) s = between(s.base, below(3), 3 + below(20), one_in(2) ? Range::in : Range::clamp);
    if (!key && one_in(3)) s.optional = true;
    return s;
  }
  Value value(const Slot& s, bool required = false) {
    if (s.optional && !required && one_in(3)) return {};
    switch (type_of(s.base)) {
      case Type::num: return Value::number(s.base == Base::num && one_in(3) ? below(40) / 4.0 : below(25));
      case Type::boolean: return Value::truth(one_in(2));
      default: {
        static const std::string words[] = {"a", "b", "c", "aa", "ab", "abc", "abcdef", "x-y", "x y", std::string("a\0", 2)};
        return Value::span(words[below(s.base == Base::slug ? 8 : one_in(20) ? 10 : 9)]);
      }
    }
  }
  // Within the slot: a default must fit.
  Value fitting(const Slot& s) {
    Value v = value(s, true);
    if (s.range != Range::none) v = Value::number(s.low);
    if (type_of(s.base) == Type::num && s.base != Base::num) v.num = std::floor(v.num);
    if (type_of(s.base) == Type::text) v = Value::span("a");
    return v;
  }
  std::string fresh_name() { return "n" + std::to_string(names_++); }

  void add_table() {
    Table t;
    t.name = fresh_name();
    schema_.tables.push_back(t);
    const std::uint32_t keys = 1 + below(3), others = below(4);
    for (std::uint32_t i = 0; i < keys + others; ++i) schema_.add(t.name, fresh_name(), slot(i < keys));
    for (std::uint32_t i = 0; i < keys; ++i) schema_.table(t.name).key.push_back(static_cast<std::uint8_t>(i));
    if (one_in(2)) schema_.table(t.name).per = static_cast<std::uint8_t>(1 + below(keys));
    sizes(schema_.table(t.name));
  }
  void sizes(Table& t) {
    t.size = static_cast<Size>(below(3));
    t.rows = t.size == Size::none ? 0 : 5 + below(40);
    t.group_size = t.per == 0 ? Size::none : static_cast<Size>(below(3));
    t.group_rows = t.group_size == Size::none ? 0 : 1 + below(12);
  }
  bool used(const Table& t, std::size_t c, bool by_total) const {
    for (const Index& i : t.indexes)
      for (const KeyPart& p : i.parts)
        if (p.column == c) return true;
    for (const Total& total : t.totals) {
      if (by_total && total.sum && total.column == c) return true;
      for (const std::uint8_t b : total.by)
        if (b == c) return true;
    }
    return false;
  }
  bool in_key(const Table& t, std::size_t c) const {
    return std::find(t.key.begin(), t.key.end(), static_cast<std::uint8_t>(c)) != t.key.end();
  }

  void mutate(Schema& s) {
    Table& t = s.tables[below(static_cast<std::uint32_t>(s.tables.size()))];
    const std::size_t c = below(static_cast<std::uint32_t>(t.columns.size()));
    switch (below(14)) {
      case 0: {
        Slot of_it = slot();
        if (t.columns.size() < 12) s.add(t.name, fresh_name(), of_it, of_it.optional && one_in(2) ? std::nullopt : std::optional(fitting(of_it)));
        return;
      }
      case 1:
        if (in_key(t, c) || used(t, c, true)) return;
        if (!one_in(10)) t.drops.push_back(t.columns[c].name);
        s.remove(t.name, t.columns[c].name);
        return;
      case 2:
        t.columns[c].was = t.columns[c].name;
        t.columns[c].name = fresh_name();
        return;
      case 3: case 4: {
        Slot next = slot(in_key(t, c) || used(t, c, false));
        if (!one_in(6) && type_of(next.base) != type_of(t.columns[c].slot.base)) return;
        t.columns[c].slot = next;
        t.columns[c].first.reset();
        return;
      }
      case 5: case 6: {
        if (t.indexes.size() == 5) return;
        Index index;
        index.name = fresh_name();
        std::set<std::uint8_t> in_it;
        for (std::uint32_t n = 1 + below(3); n > 0; --n) {
          const auto column = static_cast<std::uint8_t>(below(static_cast<std::uint32_t>(t.columns.size())));
          if (in_it.insert(column).second) index.parts.push_back({column, one_in(2)});
        }
        index.unique = one_in(3);
        t.indexes.push_back(index);
        return;
      }
      case 7:
        if (!t.indexes.empty()) t.indexes.pop_back();
        return;
      case 8:
        if (!t.indexes.empty()) t.indexes[0].parts[0].descending = !t.indexes[0].parts[0].descending;
        return;
      case 9: {
        if (t.totals.size() == 5) return;
        Total total;
        total.name = fresh_name();
        total.sum = type_of(t.columns[c].slot.base) == Type::num && one_in(2);
        if (total.sum) total.column = static_cast<std::uint8_t>(c);
        for (std::size_t b = 0; b < t.columns.size(); ++b)
          if (!t.columns[b].slot.optional && one_in(3)) total.by.push_back(static_cast<std::uint8_t>(b));
        t.totals.push_back(total);
        return;
      }
      case 10:
        if (!t.totals.empty()) t.totals.erase(t.totals.begin());
        return;
      case 11:
        t.per = static_cast<std::uint8_t>(below(static_cast<std::uint32_t>(t.key.size() + 1)));
        sizes(t);
        return;
      case 12:
        t.was = t.name;
        t.name = fresh_name();
        return;
      case 13:
        if (s.tables.size() > 1 && one_in(3)) {
          s.dropped_tables.push_back(t.name);
          s.tables.erase(s.tables.begin() + (&t - s.tables.data()));
        } else if (s.tables.size() < 4) {
          std::swap(s, schema_);
          add_table();
          std::swap(s, schema_);
        }
        return;
    }
  }

  void write_rows() {
    for (int i = 0; i < 25; ++i) {
      const std::uint32_t t = below(static_cast<std::uint32_t>(store_.module->tables.size()));
      const Table& table = store_.module->tables[t];
      if (one_in(6)) {
        const auto rows = store_.with_prefix(store_.tables->order_prefix(t, 0));
        if (rows.empty()) continue;
        const std::string key = std::next(rows.begin(), below(static_cast<std::uint32_t>(rows.size())))->first;
        in_event([&](TableUse& use) { return store_.tables->erase(use, t, key); });
        continue;
      }
      std::vector<Value> values;
      std::vector<std::uint8_t> columns;
      for (std::size_t c = 0; c < table.columns.size(); ++c) {
        values.push_back(value(table.columns[c].slot));
        columns.push_back(static_cast<std::uint8_t>(c));
      }
      double given = 0;
      in_event([&](TableUse& use) { return store_.tables->insert(use, t, one_in(2), columns, values.data(), given); });
    }
  }
  template <class F>
  void in_event(F f) {
    MemoryRecords records;
    for (const auto& [key, bytes] : store_.records.committed) records.put(key, bytes);
    records.keep_event();
    store_.arena.reset();
    TableUse use{records, store_.arena};
    if (f(use) == Fault::none) store_.records.committed = {records.contents().begin(), records.contents().end()};
  }

  std::map<std::uint16_t, Rows> rows() {
    std::map<std::uint16_t, Rows> out;
    for (std::uint32_t t = 0; t < store_.module->tables.size(); ++t) {
      const TableLayout& layout = store_.tables->layout().tables[t];
      Rows& of = out[layout.number];
      for (const auto& [key, record] : store_.with_prefix(store_.tables->order_prefix(t, 0))) {
        TableUse use = store_.use();
        Row row;
        REQUIRE(store_.tables->read(use, t, key, row));
        for (std::size_t c = 0; c < layout.columns.size(); ++c) of[key][layout.columns[c]] = ModelValue::of(row.columns[c]);
      }
    }
    return out;
  }

  void upgrade() {
    const Schema old = schema_;
    Schema next = schema_;
    ++next.version;
    next.dropped_tables.clear();
    for (Table& t : next.tables) {
      t.was.clear();
      t.drops.clear();
      for (Column& c : t.columns) c.was.clear();
    }
    for (std::uint32_t n = 1 + below(3); n > 0; --n) mutate(next);
    const auto before = rows();
    const auto all = store_.records.committed;
    store_.limits.writes = 1 + below(20);
    store_.limits.hashes = 1 + below(10);
    constexpr auto never = std::numeric_limits<std::size_t>::max();
    if (one_in(2)) store_.records.commits_left = below(8);
    std::string why = store_.open(next);
    while (why == "the machine stops") {
      ++crashed;
      REQUIRE(differences() == std::vector<std::string>{});
      store_.records.commits_left = one_in(3) ? below(4) : never;
      if (one_in(3)) {
        const std::string back = store_.open(old);
        if (back.empty()) REQUIRE(rows() == before);
        else CHECK((back == "the machine stops" || store_.catalog().version == next.version));
      }
      why = store_.open(next);
    }
    store_.records.commits_left = never;
    if (!why.empty()) {
      ++refused;
      REQUIRE(store_.records.committed == all);
      REQUIRE(store_.open(old) == "");
      return;
    }
    ++taken;
    schema_ = next;
    const auto after = rows();
    const Catalog catalog = store_.catalog();
    for (const KeptTable& t : catalog.tables) {
      const auto was = before.find(t.number);
      const Rows& is = after.at(t.number);
      if (was == before.end()) {
        REQUIRE(is.empty());
        continue;
      }
      REQUIRE(is.size() == was->second.size());
      for (const auto& [key, cells] : is)
        for (const KeptColumn& c : t.columns) {
          const auto& then = was->second.at(key);
          ModelValue wanted;
          if (const auto at = then.find(c.number); at != then.end()) wanted = at->second;
          else {
            wanted.type = c.before.type;
            wanted.num = c.before.type == Type::boolean ? (c.before.boolean ? 1 : 0) : c.before.num;
            wanted.text = c.before.text;
          }
          REQUIRE(cells.at(c.number) == wanted);
        }
    }
  }
  std::vector<std::string> differences() { return audit(store_.catalog(), store_.records).differences; }

  std::mt19937 random_;
  Schema schema_;
  TestStore store_;
  int names_ = 0;
};

}  // namespace

TEST_CASE("random upgrades of random rows lose nothing and derive everything, also with crashes between") {
  int taken = 0, refused = 0, crashed = 0;
  for (unsigned seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    Evolution evolution(seed);
    evolution.run(12);
    taken += evolution.taken;
    refused += evolution.refused;
    crashed += evolution.crashed;
  }
  MESSAGE("taken " << taken << ", refused " << refused << ", crashed " << crashed);
  CHECK(taken > 200);
  CHECK(refused > 50);
  CHECK(crashed > 50);
}
