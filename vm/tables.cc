// Reading: keys, rows, counts and totals.
#include "vm/tables.h"

#include <cstring>
#include <utility>

#include "vm/base/check.h"
#include "vm/tables_impl.h"
#include "vm/varint.h"

namespace sluice::vm {
namespace {
std::string prefix_of(char kind, std::uint16_t number) {
  char digits[kVarintMax];
  return std::string(1, kind).append(digits, put_varint(digits, number));
}
std::string with_number(std::string prefix, std::uint16_t number) {
  char digits[kVarintMax];
  return prefix.append(digits, put_varint(digits, number));
}
ColumnSet bit_of(std::uint8_t column) { return ColumnSet{1} << column; }

// Where keys that are given out stay.
Fault keep_key(TableUse& use, const KeyBuffer& key, std::string_view& out) {
  char* const at = use.arena.take(key.size, use.reserved);
  if (at == nullptr) return Fault::limit;
  std::memcpy(at, key.bytes, key.size);
  out = {at, key.size};
  return Fault::none;
}
}  // namespace

Tables::Impl::Impl(const Module& m, Layout l) : module(m), layout(std::move(l)) {
  SLUICE_CHECK(layout.tables.size() == module.tables.size());
  for (std::size_t t = 0; t < module.tables.size(); ++t) {
    const Table& table = module.tables[t];
    const TableLayout& numbers = layout.tables[t];
    SLUICE_CHECK(numbers.columns.size() == table.columns.size() && numbers.shape < numbers.shapes.size());
    TableFacts facts(table, numbers);
    facts.group_prefix = prefix_of(kGroupRecord, numbers.number);
    facts.count_key = prefix_of(kCountRecord, numbers.number);
    for (std::size_t c = 0; c < table.columns.size(); ++c)
      if (table.columns[c].automatic) facts.automatic = static_cast<std::uint8_t>(c);
    for (unsigned o = 0; o <= table.indexes.size(); ++o) {
      OrderFacts order;
      order.prefix = prefix_of(o == 0 ? kRowRecord : kIndexRecord, numbers.number);
      if (o != 0) {
        order.prefix = with_number(std::move(order.prefix), numbers.indexes[o - 1]);
        order.unique = table.indexes[o - 1].unique;
      }
      for (std::size_t i = 0; i < order_size(table, o); ++i) {
        order.parts.push_back(order_part(table, o, i));
        order.columns |= bit_of(order.parts.back().column);
      }
      facts.orders.push_back(std::move(order));
    }
    for (std::size_t i = 0; i < table.totals.size(); ++i) {
      const Total& total = table.totals[i];
      TotalFacts one;
      one.prefix = with_number(prefix_of(kTotalRecord, numbers.number), numbers.totals[i]);
      for (const std::uint8_t column : total.by) one.columns |= bit_of(column);
      if (total.sum) one.columns |= bit_of(total.column);
      facts.totals.push_back(std::move(one));
    }
    tables.push_back(std::move(facts));
  }
}

Tables::Tables(const Module& module, Layout layout) : impl_(std::make_unique<Impl>(module, std::move(layout))) {}
Tables::~Tables() = default;

const Module& Tables::module() const { return impl_->module; }
const Layout& Tables::layout() const { return impl_->layout; }

std::uint64_t Tables::Impl::number(TableUse& use, std::string_view key) {
  std::string_view bytes;
  std::uint64_t n = 0;
  if (!use.records.get(key, bytes) || !take_varint(bytes, n)) return 0;
  return n;
}

Tables::Impl::Counts Tables::Impl::counts(TableUse& use, const TableFacts& facts) {
  Counts out;
  std::string_view bytes;
  if (!use.records.get(facts.count_key, bytes)) return out;
  if (!take_varint(bytes, out.rows)) out.rows = 0;
  if (!take_varint(bytes, out.next) || out.next == 0) out.next = 1;
  return out;
}

bool Tables::Impl::have_key_form(const Table& table, const std::uint8_t* columns, std::size_t count, const Value* values) {
  for (std::size_t i = 0; i < count; ++i)
    if (!has_key_form(table.columns[columns[i]].slot, values[i])) return false;
  return true;
}

Fault Tables::Impl::append_columns(KeyBuffer& key, const Table& table, const std::uint8_t* columns, std::size_t count,
                                   const Value* values) {
  for (std::size_t i = 0; i < count; ++i) {
    const Fault fault = append_key(key, table.columns[columns[i]].slot, false, values[i]);
    if (fault != Fault::none) return fault;
  }
  return Fault::none;
}

std::string_view Tables::Impl::row_part(const TableFacts& facts, std::string_view row_key) {
  return row_key.substr(facts.orders[0].prefix.size());
}

Fault Tables::Impl::entry_key(const TableFacts& facts, std::size_t order, std::string_view row_key, const Row& row,
                              KeyBuffer& key, bool& there) {
  const OrderFacts& of = facts.orders[order];
  there = true;
  key.size = 0;
  key.append(of.prefix);
  for (const KeyPart& part : of.parts) {
    const Value& value = row.columns[part.column];
    if (value.type == Type::none) {
      there = false;
      return Fault::none;
    }
    const Fault fault = append_key(key, facts.table->columns[part.column].slot, part.descending, value);
    if (fault != Fault::none) return fault;
  }
  return of.unique || key.append(row_part(facts, row_key)) ? Fault::none : Fault::limit;
}

Fault Tables::Impl::total_key(const TableFacts& facts, std::size_t total, const Row& row, KeyBuffer& key) {
  key.size = 0;
  key.append(facts.totals[total].prefix);
  for (const std::uint8_t column : facts.table->totals[total].by) {
    const Fault fault = append_key(key, facts.table->columns[column].slot, false, row.columns[column]);
    if (fault != Fault::none) return fault;
  }
  return Fault::none;
}

Fault Tables::Impl::group_key(const TableFacts& facts, const Row& row, KeyBuffer& key) {
  key.size = 0;
  key.append(facts.group_prefix);
  for (std::size_t i = 0; i < facts.table->per; ++i) {
    const std::uint8_t column = facts.table->key[i];
    const Fault fault = append_key(key, facts.table->columns[column].slot, false, row.columns[column]);
    if (fault != Fault::none) return fault;
  }
  return Fault::none;
}

Fault Tables::row_key(TableUse& use, std::uint32_t table, const Value* key, std::string_view& out) const {
  const TableFacts& facts = impl_->tables[table];
  const std::vector<std::uint8_t>& columns = facts.table->key;
  out = {};
  if (!Impl::have_key_form(*facts.table, columns.data(), columns.size(), key)) return Fault::none;
  KeyBuffer buffer;
  buffer.append(facts.orders[0].prefix);
  const Fault fault = Impl::append_columns(buffer, *facts.table, columns.data(), columns.size(), key);
  return fault != Fault::none ? fault : keep_key(use, buffer, out);
}

bool Tables::read(TableUse& use, std::uint32_t table, std::string_view row_key, Row& out) const {
  std::string_view record;
  return use.records.get(row_key, record) && impl_->tables[table].rows.decode(record, out.columns);
}

bool Tables::decode(std::uint32_t table, std::string_view record, Row& out) const {
  return impl_->tables[table].rows.decode(record, out.columns);
}

bool Tables::column(TableUse& use, std::uint32_t table, std::string_view row_key, std::uint32_t column, Value& out) const {
  std::string_view record;
  return use.records.get(row_key, record) && impl_->tables[table].rows.decode_column(record, column, out);
}

std::uint64_t Tables::rows(TableUse& use, std::uint32_t table) const { return Impl::counts(use, impl_->tables[table]).rows; }

Fault Tables::group_rows(TableUse& use, std::uint32_t table, const Value* group, std::uint64_t& out) const {
  const TableFacts& facts = impl_->tables[table];
  const std::uint8_t* const columns = facts.table->key.data();
  out = 0;
  if (!Impl::have_key_form(*facts.table, columns, facts.table->per, group)) return Fault::none;
  KeyBuffer key;
  key.append(facts.group_prefix);
  const Fault fault = Impl::append_columns(key, *facts.table, columns, facts.table->per, group);
  if (fault == Fault::none) out = Impl::number(use, key.view());
  return fault;
}

Fault Tables::total(TableUse& use, std::uint32_t table, std::uint32_t total, const Value* group, Value& out) const {
  const TableFacts& facts = impl_->tables[table];
  const Total& of = facts.table->totals[total];
  out = Value::number(0);
  if (!Impl::have_key_form(*facts.table, of.by.data(), of.by.size(), group)) return Fault::none;
  KeyBuffer key;
  key.append(facts.totals[total].prefix);
  const Fault fault = Impl::append_columns(key, *facts.table, of.by.data(), of.by.size(), group);
  if (fault != Fault::none) return fault;
  if (!of.sum) {
    out = Value::number(static_cast<double>(Impl::number(use, key.view())));
    return Fault::none;
  }
  std::string_view bytes;
  ExactSum sum;
  if (!use.records.get(key.view(), bytes) || !sum.decode(bytes)) return Fault::none;
  const std::optional<double> value = sum.value();
  out = value ? Value::number(*value) : Value();
  return Fault::none;
}

bool Tables::rank(TableUse& use, std::uint32_t table, std::uint32_t index, std::string_view row_key, const Row& row,
                  std::uint64_t& out) const {
  const TableFacts& facts = impl_->tables[table];
  KeyBuffer key;
  bool there = false;
  if (Impl::entry_key(facts, 1 + index, row_key, row, key, there) != Fault::none || !there) return false;
  out = use.orders->rank(facts.orders[1 + index].prefix, key.view(), use.records);
  return true;
}

std::string_view Tables::order_prefix(std::uint32_t table, std::uint32_t order) const {
  return impl_->tables[table].orders[order].prefix;
}

Fault Tables::derive(TableUse& use, std::uint32_t table, std::string_view row_key, const Row& row,
                     const std::function<void(const Derived&)>& sink) const {
  const TableFacts& facts = impl_->tables[table];
  KeyBuffer key;
  for (std::size_t o = 1; o < facts.orders.size(); ++o) {
    bool there = false;
    if (const Fault fault = Impl::entry_key(facts, o, row_key, row, key, there); fault != Fault::none) return fault;
    if (!there) continue;
    const bool unique = facts.orders[o].unique;
    sink({unique ? Derived::Kind::unique : Derived::Kind::entry, static_cast<std::uint32_t>(o - 1), key.view(),
          unique ? Impl::row_part(facts, row_key) : std::string_view(), Value()});
  }
  for (std::size_t i = 0; i < facts.totals.size(); ++i) {
    const Total& total = facts.table->totals[i];
    if (const Fault fault = Impl::total_key(facts, i, row, key); fault != Fault::none) return fault;
    const auto part = static_cast<std::uint32_t>(i);
    if (!total.sum) {
      sink({Derived::Kind::count, part, key.view(), {}, Value::number(1)});
      continue;
    }
    const Value& value = row.columns[total.column];
    if (value.type == Type::none) continue;
    ExactSum sum;
    sum.add(value.num);
    char bytes[ExactSum::kEncodedMax];
    sink({Derived::Kind::sum, part, key.view(), {bytes, sum.encode(bytes)}, value});
  }
  if (facts.table->per != 0) {
    if (const Fault fault = Impl::group_key(facts, row, key); fault != Fault::none) return fault;
    sink({Derived::Kind::count, kGroup, key.view(), {}, Value::number(1)});
  }
  sink({Derived::Kind::count, kTable, facts.count_key, {}, Value::number(1)});
  return Fault::none;
}

}  // namespace sluice::vm
