// What tables refuse, and what they make of stores that are damaged.
#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "vm/memory_records.h"
#include "vm/tables.h"

namespace sluice::vm {
namespace {
Column column(std::string name, Base base, std::uint32_t max = 0) {
  Column out;
  out.name = std::move(name);
  out.slot.base = base;
  out.slot.max = max;
  return out;
}

// t: key (k text max 5, u u32), n int in 0..9, w text? max 8; index by_n n, unique w; total s sum(n) by u; max 3 per k.
struct Small {
  Module module;
  MemoryRecords records;
  Arena arena;
  Orders orders;
  TableUse use{records, arena, &orders};
  std::unique_ptr<Tables> tables;

  Small() {
    Table t;
    t.name = "t";
    t.columns = {column("k", Base::text, 5), column("u", Base::u32), column("n", Base::integer), column("w", Base::text, 8)};
    t.columns[2].slot.range = Range::in;
    t.columns[2].slot.high = 9;
    t.columns[3].slot.optional = true;
    t.key = {0, 1};
    t.per = 1;
    t.group_size = Size::max;
    t.group_rows = 3;
    t.indexes.push_back({"by_n", {{2, false}}});
    t.indexes.push_back({"w", {{3, false}}, true});
    Total total{"s"};
    total.sum = true;
    total.column = 2;
    total.by = {1};
    t.totals.push_back(total);
    module.tables.push_back(std::move(t));
    tables = std::make_unique<Tables>(module, first_layout(module));
  }
  Fault insert(std::string_view k, double u, double n, Value w = {}, bool replace = false) {
    const std::uint8_t columns[] = {0, 1, 2, 3};
    const Value values[] = {Value::span(k), Value::number(u), Value::number(n), w};
    double number = 0;
    const Fault fault = tables->insert(use, 0, replace, columns, values, number);
    if (fault == Fault::none) {
      records.keep_event();
    } else {
      records.undo_event();
    }
    return fault;
  }
  std::string_view key(std::string_view k, double u) {
    const Value values[] = {Value::span(k), Value::number(u)};
    std::string_view out;
    CHECK(tables->row_key(use, 0, values, out) == Fault::none);
    return out;
  }
};
const std::string_view kNul("a\0b", 3);
}  // namespace

TEST_CASE("a row is refused by its slots, its key, its unique indexes and its group") {
  Small t;
  CHECK(t.insert("a", 1, 1, Value::span("x")) == Fault::none);
  CHECK(t.insert("a", 1, 1) == Fault::exists);
  CHECK(t.insert("a", 2, 10) == Fault::clamp);
  CHECK(t.insert("a", 2, 0.5) == Fault::clamp);
  CHECK(t.insert("a", -1, 1) == Fault::clamp);
  CHECK(t.insert("abcdef", 1, 1) == Fault::limit);
  CHECK(t.insert(kNul, 1, 1) == Fault::encoding);
  CHECK(t.insert("b", 1, 1, Value::span(kNul)) == Fault::encoding);
  CHECK(t.insert("b", 1, 1, Value::span("too long!")) == Fault::limit);
  CHECK(t.insert("b", 1, 1, Value::span("x")) == Fault::exists);
  CHECK(t.insert("a", 1, 2, Value::span("x"), true) == Fault::none);      // its own entry is no other's
  CHECK(t.insert("a", 2, 1) == Fault::none);
  CHECK(t.insert("a", 3, 1) == Fault::none);
  CHECK(t.insert("a", 4, 1) == Fault::limit);
  CHECK(t.insert("a", 3, 2, {}, true) == Fault::none);
  CHECK(t.insert("b", 4, 1) == Fault::none);
  CHECK(t.tables->rows(t.use, 0) == 4);
}

TEST_CASE("looking for a key that no row can have finds nothing") {
  Small t;
  REQUIRE(t.insert("a", 1, 5) == Fault::none);
  std::string_view key;
  std::uint64_t count = 9;
  Value value;
  const auto with = [](std::string_view k, double u) { return std::vector<Value>{Value::span(k), Value::number(u)}; };
  for (const double u : {0.5, -1.0, 4294967296.0}) {
    CHECK(t.tables->row_key(t.use, 0, with("a", u).data(), key) == Fault::none);
    CHECK(key.empty());
    const Value group = Value::number(u);
    CHECK(t.tables->total(t.use, 0, 0, &group, value) == Fault::none);
    CHECK(value.num == 0);
  }
  for (const std::string_view text : {kNul, std::string_view("abcdef")}) {
    CHECK(t.tables->row_key(t.use, 0, with(text, 1).data(), key) == Fault::none);
    CHECK(key.empty());
    const Value group = Value::span(text);
    CHECK(t.tables->group_rows(t.use, 0, &group, count) == Fault::none);
    CHECK(count == 0);
    KeyRange range;
    Scan scan;
    scan.prefix = 1;
    CHECK(t.tables->range(t.use, scan, &group, range) == Fault::none);
    Entry entry;
    CHECK(t.use.records.scan(range, {&entry, 1}) == 0);
  }
  const Value one = Value::number(1);
  CHECK(t.tables->total(t.use, 0, 0, &one, value) == Fault::none);
  CHECK(value.num == 5);
  CHECK(t.tables->erase(t.use, 0, t.key("a", 2)) == Fault::not_found);
  const std::uint8_t n = 2;
  CHECK(t.tables->update(t.use, 0, t.key("a", 2), {&n, 1}, &one) == Fault::not_found);
  const Value ten = Value::number(10);
  CHECK(t.tables->update(t.use, 0, t.key("a", 1), {&n, 1}, &ten) == Fault::clamp);
}

TEST_CASE("keys, bounds and rows take of the event's memory, and there is an end to it") {
  Small t;
  REQUIRE(t.insert("a", 1, 5) == Fault::none);
  const std::string key(t.key("a", 1));
  t.use.reserved = kArenaBytes - t.arena.used();
  std::string_view out;
  const Value values[] = {Value::span("a"), Value::number(1)};
  CHECK(t.tables->row_key(t.use, 0, values, out) == Fault::limit);
  KeyRange range;
  Scan scan;
  CHECK(t.tables->range(t.use, scan, nullptr, range) == Fault::limit);
  CHECK(t.insert("a", 2, 5) == Fault::limit);
  scan.order = 1;
  Entry entry;
  REQUIRE(t.records.scan({t.tables->order_prefix(0, 1), "\x12", false}, {&entry, 1}) == 1);
  CHECK(t.tables->row_of(t.use, scan, entry).empty());
  t.use.reserved = 0;
  CHECK(t.tables->row_of(t.use, scan, entry) == key);
  t.use.written = kRecordsWritten;
  CHECK(t.tables->erase(t.use, 0, key) == Fault::limit);
}

TEST_CASE("records that are damaged are as if they were not there") {
  Small t;
  REQUIRE(t.insert("a", 1, 5, Value::span("x")) == Fault::none);
  const std::string key(t.key("a", 1));
  Row row;
  Value value;
  REQUIRE(t.tables->read(t.use, 0, key, row));
  std::uint64_t rank = 9;
  CHECK(t.tables->rank(t.use, 0, 0, key, row, rank));
  CHECK(rank == 0);
  for (const std::string bytes : {"", "\x09", "\x80", "\x00\xff"}) {
    t.records.put(key, bytes);
    CHECK_FALSE(t.tables->read(t.use, 0, key, row));
    CHECK_FALSE(t.tables->column(t.use, 0, key, 3, value));
    CHECK(t.tables->erase(t.use, 0, key) == Fault::not_found);
    CHECK(t.insert("a", 1, 6, {}, true) == Fault::not_found);
  }
  Scan scan;
  scan.order = 1;
  for (const std::string_view end : {"", "\x01", "1234567"}) {
    const std::string entry_key = std::string(t.tables->order_prefix(0, 1)).append(end);
    CHECK(t.tables->row_of(t.use, scan, {entry_key, {}}).empty());
  }
  scan.order = 2;
  CHECK(t.tables->row_of(t.use, scan, {"\x11", {}}).empty());
  CHECK(t.tables->row_of(t.use, scan, {"\x11", std::string(600, 'x')}).empty());
  for (const std::string counter : {"\x80", ""}) {
    t.records.put(std::string("\x14\0", 2), counter);
    CHECK(t.tables->rows(t.use, 0) == 0);
  }
}

TEST_CASE("automatic numbers end before two rows would get one") {
  Small t;
  Table numbered;
  numbered.name = "n";
  numbered.columns = {column("id", Base::integer)};
  numbered.columns[0].automatic = true;
  numbered.key = {0};
  Module module;
  module.tables.push_back(numbered);
  numbered.columns[0].slot.range = Range::in;
  numbered.columns[0].slot.low = 1;
  numbered.columns[0].slot.high = 2;
  module.tables.push_back(numbered);
  const Tables tables(module, first_layout(module));
  double number = 0;
  t.records.put(std::string("\x14\0", 2), std::string("\0\xff\xff\xff\xff\xff\xff\xff\x0f", 9));    // the next is 2^53 - 1
  CHECK(tables.insert(t.use, 0, false, {}, nullptr, number) == Fault::none);
  CHECK(number == 9007199254740991.0);
  CHECK(tables.insert(t.use, 0, false, {}, nullptr, number) == Fault::limit);
  for (const Fault fault : {Fault::none, Fault::none, Fault::clamp}) CHECK(tables.insert(t.use, 1, false, {}, nullptr, number) == fault);
}

TEST_CASE("a table above its `keep` comes down to it by one row more for each that is inserted") {
  Table log;
  log.name = "log";
  log.columns = {column("id", Base::integer)};
  log.columns[0].automatic = true;
  log.key = {0};
  Module wide, narrow;
  wide.tables.push_back(log);
  log.size = Size::keep;
  log.rows = 4;
  narrow.tables.push_back(log);
  const Tables before(wide, first_layout(wide)), after(narrow, first_layout(narrow));
  Small t;
  double number = 0;
  for (int i = 0; i < 7; ++i) REQUIRE(before.insert(t.use, 0, false, {}, nullptr, number) == Fault::none);
  for (const std::uint64_t rows : {6u, 5u, 4u, 4u}) {
    REQUIRE(after.insert(t.use, 0, false, {}, nullptr, number) == Fault::none);
    CHECK(after.rows(t.use, 0) == rows);
  }
}

}  // namespace sluice::vm
