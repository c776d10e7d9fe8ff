#include "vm/upgrade.h"

#include <doctest/doctest.h>

#include "t/vm/upgrade_store.h"
#include "vm/row_walk.h"

using namespace sluice;
using namespace sluice::vm;

namespace {
Value text(std::string_view s) { return Value::span(s); }
Value number(double n) { return Value::number(n); }

// shop 1 with some rows.
struct Shop : TestStore {
  Schema schema = shop();
  explicit Shop(int items = 4) {
    REQUIRE(open(schema).empty());
    for (int i = 0; i < items; ++i) {
      const std::string sku = "s" + std::to_string(100 + i), note = i % 2 == 0 ? "even" : "";
      REQUIRE(insert("item", {text(sku), number(items <= 40 ? i * 10 : i), number(i + 0.5), note.empty() ? Value() : text(note)}) == Fault::none);
    }
    for (const char* user : {"ann", "bob"})
      for (int i = 0; i < 3; ++i)
        REQUIRE(insert("cart", {text(user), text("s" + std::to_string(100 + i)), number(i)}) == Fault::none);
    schema.version = 2;
  }
  // Opens with the changed schema; a refusal leaves everything as it was.
  std::string refused() {
    const TestRecords::Map before = records.committed;
    const std::string why = open(schema);
    CHECK(!why.empty());
    CHECK(records.committed == before);
    return why;
  }
};
}  // namespace

TEST_CASE("what is new over old rows is what inserting them under the new module would have made") {
  Shop store(25);
  store.limits.writes = 7;
  store.schema.index("item", "by_price", {"price desc", "sku"});
  store.schema.index("item", "one_price", {"price"}, true);
  store.schema.total("item", "per_note", "price", {"left"});
  store.schema.total("item", "goods", "");
  store.schema.table("cart").per = 2;
  REQUIRE(store.open(store.schema) == "");
  CHECK(store.catalog().erases.empty());
  CHECK(!store.catalog().upgrade);

  TestStore fresh;
  REQUIRE(fresh.open(store.schema) == "");
  for (int i = 0; i < 25; ++i)
    REQUIRE(fresh.insert("item", {text("s" + std::to_string(100 + i)), number(i * 10), number(i + 0.5), i % 2 == 0 ? text("even") : Value()}) == Fault::none);
  for (const char* user : {"ann", "bob"})
    for (int i = 0; i < 3; ++i)
      REQUIRE(fresh.insert("cart", {text(user), text("s" + std::to_string(100 + i)), number(i)}) == Fault::none);
  for (const char* kind : {"\x10", "\x11", "\x12", "\x13", "\x14"}) {
    CAPTURE(kind);
    CHECK(store.with_prefix(kind) == fresh.with_prefix(kind));
    CHECK(!store.with_prefix(kind).empty());
  }
  CHECK(store.records.largest <= 14);
}

TEST_CASE("columns: new ones read their default in old rows, renamed ones their values, and rows turn to the new shape") {
  Shop store;
  store.schema.add("item", "color", of(Base::text, 9), Value::span("red"));
  store.schema.add("item", "grade", optionally(of(Base::integer)));
  store.schema.column("item", "left").was = "left";
  store.schema.column("item", "left").name = "stock";
  store.schema.table("item").drops = {"note"};
  store.schema.remove("item", "note");
  const auto before = store.with_prefix("\x10");
  REQUIRE(store.open(store.schema) == "");
  CHECK(store.with_prefix("\x10") == before);
  TableUse use = store.use();
  const Value key = text("s101");
  std::string_view row_key;
  REQUIRE(store.tables->row_key(use, 0, &key, row_key) == Fault::none);
  Row row;
  REQUIRE(store.tables->read(use, 0, row_key, row));
  CHECK(row.columns[1].num == 10);
  CHECK(row.columns[2].num == 1.5);
  CHECK(row.columns[3].text() == "red");
  CHECK(row.columns[4].type == Type::none);
  // A later default is for new rows alone.
  store.schema.version = 3;
  store.schema.column("item", "color").first = Value::span("blue");
  REQUIRE(store.open(store.schema) == "");
  TableUse again = store.use();
  REQUIRE(store.tables->row_key(again, 0, &key, row_key) == Fault::none);
  REQUIRE(store.tables->read(again, 0, row_key, row));
  CHECK(row.columns[3].text() == "red");
}

TEST_CASE("states: new ones begin, dropped ones go, a whole number becomes one that need not be") {
  Shop store;
  store.records.put(state_key(0), "\x54");       // hits: 42
  REQUIRE(store.records.commit());
  store.schema.states[0].slot = of(Base::num);
  store.schema.states[0].was = "hits";
  store.schema.states[0].name = "count";
  store.schema.states.pop_back();
  store.schema.dropped_states = {"motto"};
  store.schema.state("title", of(Base::text, 9), Value::span("hi"));
  store.schema.state("last", optionally(of(Base::num)));
  store.records.put(state_key(1), "a motto");
  REQUIRE(store.records.commit());
  REQUIRE(store.open(store.schema) == "");
  CHECK(store.state(0)->num == 42);
  CHECK(store.state(1)->text() == "hi");
  CHECK(!store.state(2));
  CHECK(!store.records.committed.contains(state_key(1)));
  CHECK(store.tables->layout().states == std::vector<std::uint16_t>{0, 2, 3});
  store.schema.version = 3;
  store.schema.states[0].slot = of(Base::u32);
  REQUIRE(store.open(store.schema) == "");
  CHECK(store.state(0)->num == 42);
}

TEST_CASE("a value that does not fit refuses the module, names row and value, and changes nothing") {
  const auto why = [](auto change) {
    Shop store;
    change(store.schema);
    return store.refused();
  };
  CHECK(why([](Schema& s) { s.column("item", "left").slot.high = 25; }) == "item[\"s103\"].left is 30, which does not fit int in 0..25");
  CHECK(why([](Schema& s) { s.column("item", "left").slot = between(Base::integer, 10, 1000, Range::clamp); }) ==
        "item[\"s100\"].left is 0, which does not fit int clamp 10..1000");
  CHECK(why([](Schema& s) { s.column("item", "price").slot = of(Base::integer); }) == "item[\"s100\"].price is 0.5, which does not fit int");
  CHECK(why([](Schema& s) { s.column("item", "note").slot.optional = false; }) == "item[\"s101\"].note is none, which does not fit text max 100");
  CHECK(why([](Schema& s) { s.column("item", "note").slot.max = 3; }) == "item[\"s100\"].note is \"even\", which does not fit text? max 3");
  CHECK(why([](Schema& s) { s.table("item").rows = 3; }) == "table item has 4 rows, and may have 3");
  CHECK(why([](Schema& s) { s.table("cart").group_rows = 2; }) == "table cart has more than 2 rows for user \"ann\"");
  CHECK(why([](Schema& s) {
          s.table("cart").per = 2;
          s.table("cart").group_rows = 0;
        }) == "table cart has more than 0 rows for user \"ann\", sku \"s100\"");
  CHECK(why([](Schema& s) { s.index("item", "one_note", {"note"}, true); }) == "item[\"s100\"] and item[\"s102\"] agree in unique one_note");
  CHECK(why([](Schema& s) { s.index("cart", "one_sku", {"sku"}, true); }) == "cart[\"ann\", \"s100\"] and cart[\"bob\", \"s100\"] agree in unique one_sku");
  CHECK(why([](Schema& s) { s.states[1].slot.optional = false; }) == "state motto is none, which does not fit text max 40");
  CHECK(why([](Schema& s) { s.states[0].slot.low = 1; }) == "state hits is 0, which does not fit int in 1..100");
  // The first that does not fit refuses, also when there is much to build beside it.
  CHECK(why([](Schema& s) {
          s.index("item", "by_price", {"price"});
          s.column("cart", "qty").slot.range = Range::in;
          s.column("cart", "qty").slot.high = 1;
        }) == "cart[\"ann\", \"s102\"].qty is 2, which does not fit u32 in 0..1");
}

TEST_CASE("what fits passes: every check has rows that it lets through") {
  Shop store;
  Schema& s = store.schema;
  s.column("item", "left").slot.high = 30;
  s.column("item", "note").slot = optionally(of(Base::slug));
  s.table("item").rows = 4;
  s.table("cart").group_rows = 3;
  s.index("item", "one_left", {"left"}, true);
  s.index("cart", "one_both", {"sku", "user"}, true);
  CHECK(store.open(s) == "");
  CHECK(store.insert("item", {text("more"), number(1), number(1), Value()}) == Fault::limit);
  CHECK(store.insert("cart", {text("ann"), text("more"), number(1)}) == Fault::limit);
}

TEST_CASE("rows that agree are found in as many rounds as hashes need room") {
  for (const std::size_t hashes : {1, 3, 100}) {
    Shop store(40);
    store.limits.hashes = hashes;
    store.schema.index("item", "one_left", {"left"}, true);
    CHECK(store.open(store.schema) == "");
    store.schema.version = 3;
    store.schema.index("item", "one_note", {"note"}, true);
    CHECK(store.refused() == "item[\"s100\"] and item[\"s102\"] agree in unique one_note");
  }
}

TEST_CASE("a text with U+0000 refuses what would bring it into a key") {
  using std::string_literals::operator""s;
  for (const bool total : {false, true}) {
    Shop store;
    const std::string note = "a\0b"s;
    REQUIRE(store.insert("item", {text("zero"), number(1), number(1), text(note)}) == Fault::none);
    if (total) {
      store.schema.add("item", "label", of(Base::text, 50), Value::span("x"));
      REQUIRE(store.open(store.schema) == "");
      REQUIRE(store.insert("item", {text("zero2"), number(1), number(1), Value(), text(note)}) == Fault::none);
      store.schema.version = 3;
      store.schema.total("item", "labels", "", {"label"});
      CHECK(store.refused() == "item[\"zero2\"].label is \"a\\u{00}b\", and U+0000 cannot come into a key");
    } else {
      store.schema.index("item", "by_note", {"note"});
      CHECK(store.refused() == "item[\"zero\"].note is \"a\\u{00}b\", and U+0000 cannot come into a key");
    }
  }
}

TEST_CASE("a damaged row or state refuses, and says so rather than what it would have been") {
  Shop store;
  store.records.committed[behind("\x10\x01")] = "x";
  const std::string cart_row = store.with_prefix("\x10\x01").begin()->first;
  store.records.committed.erase(behind("\x10\x01"));
  store.records.committed[cart_row] = "\x7f";
  store.schema.column("cart", "qty").slot.range = Range::in;
  store.schema.column("cart", "qty").slot.high = 100;
  CHECK(store.refused() == "a row of the table cart is damaged");
  store.schema = shop();
  store.schema.version = 2;
  store.schema.index("cart", "one", {"sku", "user"}, true);
  CHECK(store.refused() == "a row of the table cart is damaged");
  store.schema = shop();
  store.schema.version = 2;
  store.schema.index("cart", "by_sku", {"sku"});
  CHECK(store.open(store.schema) == "a row of the table cart is damaged");
  Shop other;
  other.records.committed[state_key(0)] = "";
  other.schema.states[0].slot.high = 50;
  CHECK(other.refused() == "the state hits is damaged");
  other.schema.states[0].slot = of(Base::num);
  CHECK(other.open(other.schema) == "the state hits is damaged");
  // When the disk could not be read, that is the reason.
  other.records.unread = "its data cannot be read";
  other.schema.states[0].slot = between(Base::integer, 0, 50);
  CHECK(other.refused() == "its data cannot be read");
}

TEST_CASE("what is dropped is erased, its records and no others") {
  Shop store;
  store.schema.tables.pop_back();
  store.schema.dropped_tables = {"cart"};
  store.schema.table("item").indexes.clear();
  store.schema.table("item").totals.clear();
  CHECK(store.open(store.schema, false) == "table cart: its rows are lost; start with --allow-destroy to agree");
  store.limits.writes = 2;
  CHECK(store.open(store.schema) == "");
  for (const char* prefix : {"\x10\x01", "\x11", "\x12", "\x13", "\x14\x01"}) CHECK(store.with_prefix(prefix).empty());
  CHECK(store.with_prefix("\x10").size() == 4);
  CHECK(store.with_prefix("\x14").size() == 1);
  CHECK(store.catalog().erases.empty());
  CHECK(store.open(store.schema) == "");
  // Another table of that name is another table.
  store.schema.version = 3;
  store.schema.tables.push_back(shop().tables[1]);
  store.schema.dropped_tables.clear();
  CHECK(store.open(store.schema) == "");
  CHECK(store.catalog().tables[1].number == 2);
}

TEST_CASE("groups by one column and by two are told apart where they lie together") {
  Shop store;
  const auto by_user = store.with_prefix("\x13");
  CHECK(by_user.size() == 2);
  store.schema.table("cart").per = 2;
  REQUIRE(store.open(store.schema) == "");
  const auto by_both = store.with_prefix("\x13");
  CHECK(by_both.size() == 6);
  for (const auto& [key, value] : by_both) CHECK(!by_user.contains(key));
  store.schema.version = 3;
  store.schema.table("cart").per = 1;
  REQUIRE(store.open(store.schema) == "");
  CHECK(store.with_prefix("\x13") == by_user);
}

TEST_CASE("a column that becomes `auto` goes on behind the largest number that is there") {
  TestStore store;
  Schema s = shop();
  Table log;
  log.name = "log";
  s.tables.push_back(log);
  s.add("log", "id", of(Base::integer));
  s.add("log", "n", of(Base::num));
  s.table("log").key = {0};
  REQUIRE(store.open(s) == "");
  for (const double id : {-5.0, 17.0, 3.0}) REQUIRE(store.insert("log", {number(id), number(0)}) == Fault::none);
  s.version = 2;
  s.column("log", "id").automatic = true;
  REQUIRE(store.open(s) == "");
  REQUIRE(store.insert("log", {number(1)}) == Fault::none);
  const auto rows = store.with_prefix(store.tables->order_prefix(2, 0));
  CHECK(rows.size() == 4);
  TableUse use = store.use();
  Row row;
  REQUIRE(store.tables->read(use, 2, rows.rbegin()->first, row));
  CHECK(row.columns[0].num == 18);
}

TEST_CASE("an upgrade that is cut short anywhere ends as one that was not") {
  const auto change = [](Schema& s) {
    s.index("item", "by_price", {"price"});
    s.index("item", "one_left", {"left"}, true);
    s.table("item").indexes[0].parts[0].descending = false;
    s.total("item", "sums", "price", {"left"});
    s.table("cart").per = 2;
    s.index("cart", "by_sku", {"sku"});
    s.state("more", of(Base::num), Value::number(1));
    s.states[0].slot = of(Base::num);
    s.remove("item", "note");
    s.table("item").drops = {"note"};
  };
  Shop whole(30);
  const TestRecords::Map before = whole.records.committed;
  whole.limits.writes = 5;
  whole.records.commits = 0;
  change(whole.schema);
  REQUIRE(whole.open(whole.schema) == "");
  const std::size_t commits = whole.records.commits;
  REQUIRE(commits > 20);
  for (std::size_t stop = 1; stop + 1 < commits; ++stop) {
    CAPTURE(stop);
    Shop store(30);
    store.limits.writes = 5;
    Schema old = shop();
    change(store.schema);
    store.records.commits_left = stop;
    REQUIRE(store.open(store.schema) == "the machine stops");
    store.records.commits_left = std::numeric_limits<std::size_t>::max();
    const TestRecords::Map half = store.records.committed;
    // It may go on; the module that was there may come back, as long as the new one has not taken over; or another may come.
    store.records.commits = 0;
    REQUIRE(store.open(store.schema) == "");
    CHECK(store.records.committed == whole.records.committed);
    CHECK(store.records.commits < commits + 2);

    TestStore back;
    back.limits.writes = 5;
    back.records.committed = half;
    const bool taken = back.catalog().version == 2;
    if (taken) {
      CHECK(back.open(old) != "");
      continue;
    }
    REQUIRE(back.open(old) == "");
    CHECK(back.records.committed == before);

    TestStore other;
    other.limits.writes = 5;
    other.records.committed = half;
    Schema third = shop();
    third.version = 2;
    third.index("item", "by_sum", {"sku desc", "price desc"});
    REQUIRE(other.open(third) == "");
    Shop straight(30);
    straight.limits.writes = 5;
    REQUIRE(straight.open(third) == "");
    CHECK(other.records.committed == straight.records.committed);
  }
}

TEST_CASE("an upgrade that goes on does not build again what is built") {
  Shop store(200);
  store.limits.writes = 10;
  store.schema.index("item", "by_price", {"price"});
  store.records.commits_left = 15;
  REQUIRE(store.open(store.schema) == "the machine stops");
  REQUIRE(store.catalog().upgrade);
  CHECK(!store.catalog().upgrade->after.empty());
  store.records.commits_left = std::numeric_limits<std::size_t>::max();
  store.records.commits = 0;
  REQUIRE(store.open(store.schema) == "");
  CHECK(store.records.commits < 10);
}
