#include "vm/audit.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "t/vm/upgrade_store.h"
#include "vm/exact_sum.h"
#include "vm/fingerprint.h"
#include "vm/row_walk.h"

using namespace sluice;
using namespace sluice::vm;

namespace {
// shop with an index, a unique, totals by group, groups and an automatic number.
struct Shop : TestStore {
  Shop() {
    Schema s = shop();
    s.index("item", "one_price", {"price"}, true);
    s.total("item", "per_left", "price", {"left"});
    s.total("item", "goods", "", {"left"});
    Table log;
    log.name = "log";
    s.tables.push_back(log);
    s.add("log", "id", of(Base::integer)).automatic = true;
    s.add("log", "n", of(Base::num));
    s.table("log").key = {0};
    REQUIRE(open(s).empty());
    for (int i = 0; i < 6; ++i) {
      const std::string sku = "s" + std::to_string(i);
      REQUIRE(insert("item", {Value::span(sku), Value::number(i / 2), Value::number(i + 0.25), Value()}) == Fault::none);
      REQUIRE(insert("cart", {Value::span(i < 4 ? "ann" : "bob"), Value::span(sku), Value::number(i)}) == Fault::none);
      REQUIRE(insert("log", {Value::number(i)}) == Fault::none);
    }
  }
  std::vector<std::string> differences(AuditLimits of = {}) { return audit(catalog(), records, of).differences; }
  std::vector<std::string> one(std::string sentence) { return {std::move(sentence)}; }
  std::string first(std::string_view prefix, std::size_t n = 0) {
    const auto all = with_prefix(prefix);
    REQUIRE(all.size() > n);
    return std::next(all.begin(), static_cast<std::ptrdiff_t>(n))->first;
  }
  TestRecords::Map& map() { return records.committed; }
};
using std::string_literals::operator""s;
// Numbers of table item (0): index by_left 0, one_price 1; totals worth 0, per_left 1, goods 2.
const std::string kByLeft = "\x11\x00\x00"s, kOnePrice = "\x11\x00\x01"s, kWorth = "\x12\x00\x00"s, kPerLeft = "\x12\x00\x01"s,
                  kGoods = "\x12\x00\x02"s;
}  // namespace

TEST_CASE("what the one writer wrote is right, and all of it is looked at") {
  Shop store;
  const Audit found = audit(store.catalog(), store.records);
  CHECK(found.differences.empty());
  CHECK(!found.more);
  CHECK(found.rows == 18);
  // item: 6 + 6 entries, 1 + 3 + 3 groups of totals, its count; cart: 2 groups, its count; log: its count.
  CHECK(found.derived == 12 + 7 + 1 + 3 + 1);
}

TEST_CASE("an entry that is missing, one too many and one that is wrong are found") {
  Shop store;
  const std::string entry = store.first(kByLeft), unique = store.first(kOnePrice, 1);
  store.map().erase(entry);
  CHECK(store.differences() == store.one("item index by_left has no entry for item[\"s4\"]"));
  store.map()[entry] = "x";
  CHECK(store.differences() == store.one("item index by_left has an entry that is damaged where item[\"s4\"] is"));
  store.map()[entry] = "";
  store.map()[unique] = "s5\0"s;
  CHECK(store.differences() == store.one("item unique one_price names another row where item[\"s1\"] is"));
  store.map()[unique] = "s1\0"s;
  REQUIRE(store.differences().empty());
  store.map()[kByLeft + "\x01"] = "";
  CHECK(store.differences() == store.one("item index by_left has an entry of no row, under the key 11000001"));
  store.map().erase(kByLeft + "\x01");
  store.map()[kOnePrice + "12345678"] = "s1\0"s;
  CHECK(store.differences() == store.one("item unique one_price has an entry of no row, under the key 1100013132333435363738"));
}

TEST_CASE("a sum, a count and a number of rows that are wrong are found, whatever the rounds") {
  for (const std::size_t groups : {1, 2, 1000}) {
    AuditLimits limits;
    limits.groups = groups;
    Shop store;
    const auto with = [&](const std::string& key, std::string value) {
      const std::string before = store.map().at(key);
      if (value == "-") store.map().erase(key);
      else store.map()[key] = std::move(value);
      const auto out = store.differences(limits);
      store.map()[key] = before;
      return out;
    };
    char bytes[ExactSum::kEncodedMax];
    ExactSum sum;
    sum.add(2.5);
    const std::string two_and_half(bytes, sum.encode(bytes));
    CHECK(with(store.first(kWorth), two_and_half) == store.one("item total worth is 2.5 where item[\"s0\"] is, and its rows give 16.5"));
    CHECK(with(store.first(kPerLeft, 1), two_and_half) == store.one("item total per_left is 2.5 where item[\"s2\"] is, and its rows give 5.5"));
    CHECK(with(store.first(kPerLeft, 1), "-") == store.one("item total per_left is nothing where item[\"s2\"] is, and its rows give 5.5"));
    CHECK(with(store.first(kGoods, 2), "\x07") == store.one("item total goods is 7 where item[\"s4\"] is, and its rows give 2"));
    CHECK(with(store.first(kGoods, 2), "\x00"s) == store.one("item total goods is damaged where item[\"s4\"] is"));
    CHECK(with(store.first("\x13\x01"), "\x03") == store.one("the count of table cart is 3 where cart[\"ann\", \"s0\"] is, and its rows give 4"));
    CHECK(with("\x14\x00"s, "\x05") == store.one("table item counts 5 rows, and has 6"));
    CHECK(with("\x14\x02"s, "\x06\x06") == store.one("table log would number its next row 6, and has row 6"));
    CHECK(with("\x14\x02"s, "\x06") == store.one("the number of rows of table log is damaged"));
    store.map()[kGoods + "1234567"] = "\x01";
    CHECK(store.differences(limits) == store.one("item total goods is 1 of no row, under the key 12000231323334353637"));
  }
}

TEST_CASE("rows and states that are damaged, or not what is declared, are found") {
  Shop store;
  const std::string row = store.first("\x10\x00"s);
  const std::string before = store.map()[row];
  store.map()[row] = "\x09";
  CHECK(store.differences().front() == "a row of the table item is damaged, under the key 1000733000");
  store.map()[row] = before;
  store.map()["\x10\x00zz\0"s] = before;
  CHECK(store.differences().front() == "item[\"s0\"] lies under a key that is not its own, 10007a7a00");
  store.map().erase("\x10\x00zz\0"s);
  Catalog narrower = store.catalog();
  narrower.tables[0].columns[1].slot.high = 1;
  narrower.tables[0].rows = 5;
  narrower.tables[1].group_rows = 3;
  AuditLimits limits;
  const auto found = audit(narrower, store.records, limits).differences;
  CHECK(std::find(found.begin(), found.end(), "item[\"s4\"].left is 2, which does not fit int in 0..1") != found.end());
  CHECK(std::find(found.begin(), found.end(), "table item has 6 rows, and may have 5") != found.end());
  CHECK(std::find(found.begin(), found.end(), "table cart has 4 rows in one group, and may have 3") != found.end());
  store.map()[state_key(0)] = "\xca\x01";      // 101
  CHECK(store.differences() == store.one("the state hits is 101, which does not fit int in 0..100"));
  store.map().erase(state_key(0));
  CHECK(store.differences() == store.one("the state hits is none, which does not fit int in 0..100"));
  store.map()[state_key(0)] = "";
  CHECK(store.differences() == store.one("the state hits is damaged"));
}

TEST_CASE("a record that belongs to nothing is found; one that waits to be erased is no matter") {
  Shop store;
  for (const std::string& key : {"\x02\x63"s, "\x0f"s, "\x10\x63 x"s, "\x11\x01\x00 x"s, "\x12\x63"s, "\x13\x00 x"s, "\x14\x63"s, "\x15"s, "\xfe\xff"s}) {
    store.map()[key] = "";
    CHECK(store.differences().size() == 1);
    CHECK(store.differences().front().starts_with("a record belongs to nothing, under the key "));
    Catalog waiting = store.catalog();
    waiting.erases.push_back({key.size() > 2 ? key.substr(0, key.size() - 2) : key, {}});
    CHECK(audit(waiting, store.records).differences.empty());
    store.map().erase(key);
  }
  // The clock and timers are not the catalog's.
  store.map()["\x01\x01"] = "";
  store.map()["\x01\x02tick"] = "";
  CHECK(store.differences().empty());
}

TEST_CASE("no more differences are told than asked for, and that there are more is said") {
  Shop store;
  for (int i = 0; i < 50; ++i) store.map()["\x15" + std::to_string(i)] = "";
  AuditLimits limits;
  limits.differences = 3;
  const Audit found = audit(store.catalog(), store.records, limits);
  CHECK(found.differences.size() == 3);
  CHECK(found.more);
}

TEST_CASE("a fingerprint of sums is the same from the parts and from the whole, for any doubles") {
  const double numbers[] = {1, -1, 0.1, -0.1, 5e-324, -5e-324, 1.7976931348623157e308, -1.7976931348623157e308, 3, 1e-9, 123456789.125, -4294967295.0};
  Shop store;
  Schema s = shop();
  TestStore one;
  REQUIRE(one.open(s).empty());
  int i = 0;
  for (const double n : numbers) {
    const std::string sku = "k" + std::to_string(i++);
    REQUIRE(one.insert("item", {Value::span(sku), Value::number(0), Value::number(n), Value()}) == Fault::none);
    CHECK(audit(one.catalog(), one.records).differences.empty());
  }
  CHECK(Fingerprint::times(Fingerprint::power_of_two(-3), 8) == 1);
  CHECK(Fingerprint::times(Fingerprint::power_of_two(100), Fingerprint::power_of_two(-100)) == 1);
}

TEST_CASE("an upgrade that waits to go on is right as it stands") {
  Shop store;
  Schema s = shop();
  s.version = 2;
  Catalog now = store.catalog();
  now.upgrade = {encode(now), 0, {}};
  Catalog target = now;
  target.upgrade.reset();
  target.tables[0].indexes.push_back({7, "by_note", {{3, false}}, false});
  target.tables[0].next_index = 8;
  now.upgrade->target = encode(target);
  store.map()["\x11\x00\x07 x"s] = "";
  CHECK(audit(now, store.records).differences.empty());
}
