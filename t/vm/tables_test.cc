#include "vm/tables.h"

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

#include "t/vm/table_model.h"
#include "vm/exact_sum.h"
#include "vm/memory_records.h"
#include "vm/varint.h"

namespace sluice::vm {
namespace {
using Random = std::mt19937;
unsigned below(Random& random, unsigned n) { return static_cast<unsigned>(random() % n); }
bool chance(Random& random, unsigned one_in) { return below(random, one_in) == 0; }

Column column(std::string name, Base base, bool optional = false) {
  Column out;
  out.name = std::move(name);
  out.slot.base = base;
  out.slot.optional = optional;
  if (base == Base::slug) out.slot.max = kSlugMax;
  if (base == Base::text) out.slot.max = 20;
  return out;
}

// A table of few columns, whose values are few as well, so that keys and entries meet often.
Table random_table(Random& random, std::string name) {
  Table table;
  table.name = std::move(name);
  const unsigned columns = 3 + below(random, 5);
  const unsigned keys = 1 + below(random, 3);
  for (unsigned c = 0; c < columns; ++c) {
    const Base bases[] = {Base::num, Base::integer, Base::u32, Base::boolean, Base::text, Base::slug};
    table.columns.push_back(column("c" + std::to_string(c), bases[below(random, 6)], c >= keys && chance(random, 3)));
  }
  for (unsigned k = 0; k < keys; ++k) table.key.push_back(static_cast<std::uint8_t>(k));
  if (chance(random, 2)) std::reverse(table.key.begin(), table.key.end());
  if (chance(random, 4)) {
    table.columns.push_back(column("id", Base::integer));
    table.columns.back().automatic = true;
    table.key.push_back(static_cast<std::uint8_t>(table.columns.size() - 1));
  }
  const auto some_columns = [&](bool optional_too) {
    std::vector<std::uint8_t> out;
    for (std::uint8_t c = 0; c < columns; ++c)
      if (chance(random, 3) && (optional_too || !table.columns[c].slot.optional)) out.push_back(c);
    std::shuffle(out.begin(), out.end(), random);
    if (out.size() > 3) out.resize(3);
    return out;
  };
  for (unsigned i = below(random, 4); i > 0; --i) {
    Index index;
    index.name = "i" + std::to_string(i);
    for (const std::uint8_t c : some_columns(true)) index.parts.push_back({c, chance(random, 2)});
    if (index.parts.empty()) continue;
    index.unique = chance(random, 3);
    index.ranked = !index.unique;
    table.indexes.push_back(std::move(index));
  }
  for (unsigned i = below(random, 4); i > 0; --i) {
    Total total;
    total.name = "t" + std::to_string(i);
    total.by = some_columns(false);
    for (std::uint8_t c = 0; c < columns; ++c)
      if (type_of(table.columns[c].slot.base) == Type::num && chance(random, 2)) {
        total.sum = true;
        total.column = c;
      }
    table.totals.push_back(std::move(total));
  }
  if (table.key.size() > 1 && chance(random, 2)) {
    table.per = 1;
    table.group_size = chance(random, 2) ? Size::max : Size::keep;
    table.group_rows = 2 + below(random, 3);
  }
  if (chance(random, 2)) {
    table.size = chance(random, 2) ? Size::max : Size::keep;
    table.rows = 5 + below(random, 10);
  }
  return table;
}

ModelValue random_cell(Random& random, const Slot& slot) {
  ModelValue cell;
  if (slot.optional && chance(random, 4)) return cell;
  cell.type = type_of(slot.base);
  switch (slot.base) {
    case Base::num: {
      constexpr double some[] = {0, -1, 1, 0.1, -0.1, 1e300, -1e300, 1e-300};
      cell.num = some[below(random, 8)];
      break;
    }
    case Base::integer: cell.num = static_cast<double>(below(random, 5)) * 1000 - 2000; break;
    case Base::u32: cell.num = chance(random, 6) ? 4294967295.0 : below(random, 3); break;
    case Base::boolean: cell.num = below(random, 2); break;
    default: {
      constexpr std::string_view some[] = {"a", "b", "ab", "abc", "B", "-"};
      cell.text = some[below(random, 6)];
      if (slot.base == Base::text && chance(random, 4)) cell.text = "";
      if (slot.base == Base::text && chance(random, 4)) cell.text = "\xc3\xa9\x01";
    }
  }
  return cell;
}

// One table's module, records and model.
struct Bench {
  explicit Bench(Table table) {
    module.name = "bench";
    module.tables.push_back(std::move(table));
    tables = std::make_unique<Tables>(module, first_layout(module));
    model = std::make_unique<TableModel>(module.tables[0]);
  }
  const Table& table() const { return module.tables[0]; }

  void begin() {
    arena.reset();
    use.written = 0;
    before = records.contents();
    rows_before = model->rows;
    orders.begin_event();
  }
  void keep() {
    records.keep_event();
    orders.keep_event();
  }
  void undo() {
    records.undo_event();
    orders.undo_event();
    model->rows = rows_before;
    REQUIRE(records.contents() == before);
  }

  ModelRow cells_of(const Row& row) const {
    ModelRow out;
    for (std::size_t c = 0; c < table().columns.size(); ++c) out.push_back(ModelValue::of(row.columns[c]));
    return out;
  }
  std::string_view key_of(const ModelRow& row) {
    std::vector<Value> key;
    for (const std::uint8_t c : table().key) key.push_back(row[c].value());
    std::string_view out;
    REQUIRE(tables->row_key(use, 0, key.data(), out) == Fault::none);
    return out;
  }

  // Everything derived, worked out from the rows that are stored.
  MemoryRecords::Map rebuilt() {
    MemoryRecords::Map out;
    std::map<std::string, std::uint64_t, std::less<>> counts;
    std::map<std::string, ExactSum, std::less<>> sums;
    double highest = 0;
    for (const auto& [key, record] : records.contents()) {
      if (key[0] != '\x10') continue;
      Row row;
      REQUIRE(tables->read(use, 0, key, row));
      out[key] = record;
      for (std::size_t c = 0; c < table().columns.size(); ++c)
        if (table().columns[c].automatic) highest = std::max(highest, row.columns[c].num);
      const Fault fault = tables->derive(use, 0, key, row, [&](const Tables::Derived& one) {
        switch (one.kind) {
          case Tables::Derived::Kind::entry: case Tables::Derived::Kind::unique:
            CHECK(out.emplace(one.key, one.value).second);
            break;
          case Tables::Derived::Kind::count: ++counts[std::string(one.key)]; break;
          case Tables::Derived::Kind::sum: {
            ExactSum value;
            CHECK(value.decode(one.value));
            sums[std::string(one.key)].add(value);
          }
        }
      });
      REQUIRE(fault == Fault::none);
    }
    char bytes[ExactSum::kEncodedMax];
    for (const auto& [key, count] : counts) out[key] = std::string(bytes, put_varint(bytes, count));
    for (const auto& [key, sum] : sums)
      if (!sum.is_zero()) out[key] = std::string(bytes, sum.encode(bytes));
    // The next automatic number is not derived: it is above every one there.
    for (const auto& [key, record] : records.contents()) {
      if (key[0] != '\x14') continue;
      std::string_view rest = record;
      std::uint64_t count = 0, next = 1;
      REQUIRE(take_varint(rest, count));
      CHECK(count == model->rows.size());
      if (!rest.empty()) {
        REQUIRE(take_varint(rest, next));
        CHECK(static_cast<double>(next) > highest);
      }
      out[key] = record;
    }
    return out;
  }

  // The rows that a scan goes over.
  std::vector<ModelRow> scanned(const Scan& scan, const std::vector<Value>& window) {
    KeyRange range;
    REQUIRE(tables->range(use, scan, window.data(), range) == Fault::none);
    std::vector<Entry> entries(1000);
    entries.resize(records.scan(range, entries));
    std::vector<ModelRow> out;
    for (const Entry& entry : entries) {
      Row row;
      REQUIRE(tables->read(use, 0, tables->row_of(use, scan, entry), row));
      out.push_back(cells_of(row));
    }
    return out;
  }

  Module module;
  MemoryRecords records;
  Arena arena;
  Orders orders;
  TableUse use{records, arena, &orders};
  std::unique_ptr<Tables> tables;
  std::unique_ptr<TableModel> model;
  MemoryRecords::Map before;
  std::vector<ModelRow> rows_before;
};

// One random write, to the tables and the model alike. Returns its fault.
Fault random_write(Random& random, Bench& bench) {
  const Table& table = bench.table();
  TableModel& model = *bench.model;
  const auto values_of = [](const ModelRow& row, const std::vector<std::uint8_t>& columns) {
    std::vector<Value> out;
    for (const std::uint8_t c : columns) out.push_back(row[c].value());
    return out;
  };
  const bool has_row = !model.rows.empty();
  const std::size_t at = has_row ? below(random, static_cast<unsigned>(model.rows.size())) : 0;
  const unsigned what = below(random, 10);
  if (what < 5 || !has_row) {
    ModelRow row;
    std::vector<std::uint8_t> given;
    std::uint8_t automatic = 255;
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
      row.push_back(random_cell(random, table.columns[c].slot));
      if (table.columns[c].automatic) automatic = static_cast<std::uint8_t>(c);
      else given.push_back(static_cast<std::uint8_t>(c));
    }
    double number = 0;
    const bool replace = chance(random, 2);
    const Fault fault = bench.tables->insert(bench.use, 0, replace, given, values_of(row, given).data(), number);
    if (automatic != 255) {
      if (fault != Fault::none) number = 1e9;      // a key that no row has
      row[automatic].num = number;
    }
    CHECK(model.insert(row, replace) == fault);
    return fault;
  }
  if (what < 8) {
    ModelRow row = model.rows[at];
    const std::string_view key = bench.key_of(row);
    std::vector<std::uint8_t> changed;
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
      if (std::count(table.key.begin(), table.key.end(), c) != 0 || table.columns[c].automatic || chance(random, 2)) continue;
      changed.push_back(static_cast<std::uint8_t>(c));
      row[c] = random_cell(random, table.columns[c].slot);
    }
    const Fault fault = bench.tables->update(bench.use, 0, key, changed, values_of(row, changed).data());
    CHECK(model.update(at, row) == fault);
    return fault;
  }
  const std::string_view key = bench.key_of(model.rows[at]);
  CHECK(bench.tables->erase(bench.use, 0, key) == Fault::none);
  CHECK(bench.tables->erase(bench.use, 0, key) == Fault::not_found);
  model.rows.erase(model.rows.begin() + static_cast<std::ptrdiff_t>(at));
  return Fault::none;
}

void compare_reading(Random& random, Bench& bench) {
  const Table& table = bench.table();
  const TableModel& model = *bench.model;
  CHECK(bench.tables->rows(bench.use, 0) == model.rows.size());
  // A scan in any order with any bounds.
  Scan scan;
  scan.order = static_cast<std::uint8_t>(below(random, static_cast<unsigned>(table.indexes.size()) + 1));
  const std::size_t size = order_size(table, scan.order);
  scan.prefix = static_cast<std::uint8_t>(below(random, static_cast<unsigned>(size) + 1));
  if (scan.prefix < size) {
    scan.low = static_cast<Bound>(below(random, 3));
    scan.high = static_cast<Bound>(below(random, 3));
  }
  scan.descending = chance(random, 2);
  ModelRow given;
  for (std::size_t i = 0; i < size; ++i) {
    Slot slot = table.columns[order_part(table, scan.order, i).column].slot;
    slot.optional = false;
    given.push_back(random_cell(random, slot));
    if (i == scan.prefix && slot.base == Base::u32 && chance(random, 2)) given.back().num += below(random, 2) == 0 ? 0.5 : -1.5;
    if (i == scan.prefix && type_of(slot.base) == Type::text && chance(random, 2))
      given.back().text += chance(random, 2) ? std::string("\0x", 2) : std::string(80, 'b');
  }
  ModelValue low, high;
  std::vector<Value> window;
  for (std::size_t i = 0; i < scan.prefix; ++i) window.push_back(given[i].value());
  if (scan.low != Bound::none) {
    low = given[scan.prefix];
    window.push_back(low.value());
  }
  if (scan.high != Bound::none) {
    Slot slot = table.columns[order_part(table, scan.order, scan.prefix).column].slot;
    slot.optional = false;
    high = chance(random, 2) ? random_cell(random, slot) : given[scan.prefix];
    window.push_back(high.value());
  }
  std::vector<ModelRow> expected;
  for (const ModelRow& row : model.in_order(scan.order)) {
    bool inside = true;
    for (std::size_t i = 0; i < scan.prefix; ++i)
      inside = inside && row[order_part(table, scan.order, i).column].compare(given[i]) == 0;
    if (scan.low != Bound::none) {
      const int sign = row[order_part(table, scan.order, scan.prefix).column].compare(low);
      inside = inside && (scan.low == Bound::including ? sign >= 0 : sign > 0);
    }
    if (scan.high != Bound::none) {
      const int sign = row[order_part(table, scan.order, scan.prefix).column].compare(high);
      inside = inside && (scan.high == Bound::including ? sign <= 0 : sign < 0);
    }
    if (inside) expected.push_back(row);
  }
  if (scan.descending) std::reverse(expected.begin(), expected.end());
  CHECK(bench.scanned(scan, window) == expected);

  if (model.rows.empty()) return;
  const ModelRow& row = model.rows[below(random, static_cast<unsigned>(model.rows.size()))];
  const std::string_view key = bench.key_of(row);
  Row read;
  REQUIRE(bench.tables->read(bench.use, 0, key, read));
  CHECK(bench.cells_of(read) == row);
  for (std::uint32_t c = 0; c < table.columns.size(); ++c) {
    Value value;
    REQUIRE(bench.tables->column(bench.use, 0, key, c, value));
    CHECK(ModelValue::of(value) == row[c]);
  }
  for (std::uint32_t i = 0; i < table.indexes.size(); ++i) {
    std::uint64_t rank = 0;
    const bool there = bench.tables->rank(bench.use, 0, i, key, read, rank);
    CHECK(there == model.is_in(row, i + 1));
    if (!there) continue;
    std::uint64_t before = 0;
    for (const ModelRow& other : model.in_order(i + 1)) before += model.compare(other, row, i + 1) < 0 ? 1 : 0;
    CHECK(rank == before);
  }
  if (table.per != 0) {
    std::uint64_t in_group = 0, expected_rows = 0;
    for (const ModelRow& other : model.rows) expected_rows += model.same_group(other, row) ? 1 : 0;
    const Value group = row[table.key[0]].value();
    CHECK(bench.tables->group_rows(bench.use, 0, &group, in_group) == Fault::none);
    CHECK(in_group == expected_rows);
  }
  for (std::uint32_t t = 0; t < table.totals.size(); ++t) {
    const Total& total = table.totals[t];
    std::vector<Value> group;
    for (const std::uint8_t c : total.by) group.push_back(row[c].value());
    ExactSum sum;
    double rows = 0;
    for (const ModelRow& other : model.rows) {
      bool same = true;
      for (const std::uint8_t c : total.by) same = same && other[c] == row[c];
      if (!same) continue;
      ++rows;
      if (total.sum) sum.add(other[total.column].num);
    }
    Value value;
    CHECK(bench.tables->total(bench.use, 0, t, group.data(), value) == Fault::none);
    CHECK(ModelValue::of(value) == ModelValue::of(total.sum ? Value::number(*sum.value()) : Value::number(rows)));
  }
}
}  // namespace

TEST_CASE("random writes to random tables do what the obvious way does, and what is derived equals a rebuild") {
  Random random(11);
  int faults[kFaults] = {};
  for (int round = 0; round < 150; ++round) {
    CAPTURE(round);
    Bench bench(random_table(random, "t"));
    for (int event = 0; event < 60; ++event) {
      CAPTURE(event);
      bench.begin();
      Fault fault = Fault::none;
      for (unsigned i = 1 + below(random, 4); i > 0 && fault == Fault::none; --i) {
        fault = random_write(random, bench);
        if (fault == Fault::none) compare_reading(random, bench);
      }
      ++faults[static_cast<int>(fault)];
      if (fault != Fault::none || chance(random, 5)) {
        bench.undo();
      } else {
        bench.keep();
      }
      REQUIRE(bench.records.contents() == bench.rebuilt());
      compare_reading(random, bench);
    }
  }
  CHECK(faults[static_cast<int>(Fault::exists)] > 100);
  CHECK(faults[static_cast<int>(Fault::limit)] > 100);
}

}  // namespace sluice::vm
