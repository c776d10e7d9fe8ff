// Writing: rows, and with each all that is derived from it.
#include <algorithm>
#include <bit>
#include <cstring>

#include "vm/base/check.h"
#include "vm/opcode.h"
#include "vm/slot.h"
#include "vm/tables.h"
#include "vm/tables_impl.h"
#include "vm/varint.h"

namespace sluice::vm {
namespace {
constexpr double kWholeMax = 9007199254740992.0;   // 2^53

bool same(const Value& a, const Value& b) {
  if (a.type != b.type) return false;
  switch (a.type) {
    case Type::none: return true;
    case Type::num: return a.num == b.num;
    case Type::boolean: return a.boolean == b.boolean;
    default: return a.text() == b.text();
  }
}
}  // namespace

Fault Tables::Impl::put(TableUse& use, std::string_view key, std::string_view value) {
  use.bytes_written += key.size() + value.size();
  if (++use.written > kRecordsWritten || use.bytes_written > kBytesWritten) return Fault::limit;
  use.records.put(key, value);
  return Fault::none;
}

Fault Tables::Impl::erase(TableUse& use, std::string_view key) {
  if (++use.written > kRecordsWritten) return Fault::limit;
  use.records.erase(key);
  return Fault::none;
}

// A counter that is 0 is no record, so that what is stored says nothing of what once was.
Fault Tables::Impl::write_count(TableUse& use, std::string_view key, std::uint64_t count) {
  if (count == 0) return erase(use, key);
  char bytes[kVarintMax];
  return put(use, key, {bytes, put_varint(bytes, count)});
}

Fault Tables::Impl::write_index(TableUse& use, const TableFacts& facts, std::size_t order, std::string_view row_key,
                                const Row* before, const Row* after) {
  const OrderFacts& of = facts.orders[order];
  KeyBuffer old, now;
  bool was = false, is = false;
  Fault fault = Fault::none;
  if (before != nullptr) fault = entry_key(facts, order, row_key, *before, old, was);
  if (after != nullptr && fault == Fault::none) fault = entry_key(facts, order, row_key, *after, now, is);
  if (fault != Fault::none) return fault;
  if (was && is && old.view() == now.view()) return Fault::none;
  if (is && of.unique) {
    std::string_view taken;
    if (use.records.get(now.view(), taken)) return Fault::exists;
  }
  if (was) {
    if (fault = erase(use, old.view()); fault != Fault::none) return fault;
    if (use.orders != nullptr) use.orders->erased(of.prefix, old.view());
  }
  if (is) {
    fault = put(use, now.view(), of.unique ? row_part(facts, row_key) : std::string_view());
    if (fault != Fault::none) return fault;
    if (use.orders != nullptr) use.orders->inserted(of.prefix, now.view());
  }
  return Fault::none;
}

Fault Tables::Impl::write_total(TableUse& use, const TableFacts& facts, std::size_t total, const Row* before,
                                const Row* after) {
  const Total& of = facts.table->totals[total];
  KeyBuffer old, now;
  Fault fault = Fault::none;
  if (before != nullptr) fault = total_key(facts, total, *before, old);
  if (after != nullptr && fault == Fault::none) fault = total_key(facts, total, *after, now);
  if (fault != Fault::none) return fault;
  const bool same_group = before != nullptr && after != nullptr && old.view() == now.view();

  // Takes `minus` out of one group's record and adds `plus`.
  const auto move = [&](std::string_view key, const Row* minus, const Row* plus) {
    if (!of.sum) {
      const std::uint64_t count = number(use, key);
      return write_count(use, key, count + (plus != nullptr ? 1 : 0) - (minus != nullptr && count != 0 ? 1 : 0));
    }
    ExactSum sum;
    std::string_view bytes;
    const bool there = use.records.get(key, bytes) && sum.decode(bytes);
    if (minus != nullptr && minus->columns[of.column].type != Type::none) sum.subtract(minus->columns[of.column].num);
    if (plus != nullptr && plus->columns[of.column].type != Type::none) sum.add(plus->columns[of.column].num);
    char encoded[ExactSum::kEncodedMax];
    const std::string_view result(encoded, sum.encode(encoded));
    if (there ? bytes == result : result.empty()) return Fault::none;
    return result.empty() ? erase(use, key) : put(use, key, result);
  };
  if (same_group) return of.sum ? move(now.view(), before, after) : Fault::none;
  if (before != nullptr)
    if (fault = move(old.view(), before, nullptr); fault != Fault::none) return fault;
  return after != nullptr ? move(now.view(), nullptr, after) : Fault::none;
}

Fault Tables::Impl::write(TableUse& use, std::uint32_t table, std::string_view row_key, const Row* before,
                          const Row* after, std::uint64_t next) const {
  const TableFacts& facts = tables[table];
  const std::size_t columns = facts.table->columns.size();
  ColumnSet changed = ~ColumnSet{0};
  if (before != nullptr && after != nullptr) {
    changed = 0;
    for (std::size_t c = 0; c < columns; ++c)
      if (!same(before->columns[c], after->columns[c])) changed |= ColumnSet{1} << c;
    if (changed == 0) return Fault::none;
  }

  Fault fault = Fault::none;
  for (std::size_t o = 1; o < facts.orders.size(); ++o) {
    if ((facts.orders[o].columns & changed) == 0) continue;
    if (fault = write_index(use, facts, o, row_key, before, after); fault != Fault::none) return fault;
  }
  const bool comes_or_goes = before == nullptr || after == nullptr;
  for (std::size_t i = 0; i < facts.totals.size(); ++i) {
    if (!comes_or_goes && (facts.totals[i].columns & changed) == 0) continue;
    if (fault = write_total(use, facts, i, before, after); fault != Fault::none) return fault;
  }
  if (comes_or_goes) {
    const auto moved = [after](std::uint64_t count) { return after != nullptr ? count + 1 : count == 0 ? 0 : count - 1; };
    if (facts.table->per != 0) {
      KeyBuffer group;
      if (fault = group_key(facts, after != nullptr ? *after : *before, group); fault != Fault::none) return fault;
      if (fault = write_count(use, group.view(), moved(number(use, group.view()))); fault != Fault::none) return fault;
    }
    Counts all = counts(use, facts);
    all.rows = moved(all.rows);
    if (next != 0) all.next = next;
    char bytes[2 * kVarintMax];
    std::size_t size = put_varint(bytes, all.rows);
    if (facts.automatic != kNoColumn) size += put_varint(bytes + size, all.next);
    fault = all.rows == 0 && all.next == 1 ? erase(use, facts.count_key) : put(use, facts.count_key, {bytes, size});
    if (fault != Fault::none) return fault;
  }

  if (after == nullptr) {
    if (fault = erase(use, row_key); fault != Fault::none) return fault;
    if (use.orders != nullptr) use.orders->erased(facts.orders[0].prefix, row_key);
    return Fault::none;
  }
  const std::size_t size = facts.rows.encoded_size(after->columns);
  char* const bytes = use.arena.take(size, use.reserved);
  if (bytes == nullptr) return Fault::limit;
  facts.rows.encode(after->columns, bytes);
  fault = put(use, row_key, {bytes, size});
  use.arena.give_back(size);
  if (fault == Fault::none && before == nullptr && use.orders != nullptr)
    use.orders->inserted(facts.orders[0].prefix, row_key);
  return fault;
}

// `first`: what the keys of the rows that count begin with.
Fault Tables::Impl::make_room(TableUse& use, std::uint32_t table, Size size, std::uint64_t rows, std::uint64_t most,
                              const KeyBuffer& first) const {
  if (rows < most) return Fault::none;
  if (size == Size::max) return Fault::limit;
  KeyBuffer end = first;
  const bool has_end = next_key(end);
  for (std::uint32_t i = 0; i < kKeepRemoves && rows >= most; ++i, --rows) {
    Entry entry;
    if (use.records.scan({first.view(), has_end ? end.view() : std::string_view(), false}, {&entry, 1}) == 0) break;
    Row gone;
    if (!tables[table].rows.decode(entry.value, gone.columns)) return Fault::not_found;
    if (const Fault fault = write(use, table, entry.key, &gone, nullptr, 0); fault != Fault::none) return fault;
  }
  return Fault::none;
}

// What `max` and `keep` of the table and its groups say to one more row.
Fault Tables::Impl::make_room(TableUse& use, std::uint32_t table, const Row& row) const {
  const TableFacts& facts = tables[table];
  const Table& of = *facts.table;
  if (of.group_size != Size::none) {
    KeyBuffer group, first;
    if (const Fault fault = group_key(facts, row, group); fault != Fault::none) return fault;
    first.append(facts.orders[0].prefix);
    first.append(group.view().substr(facts.group_prefix.size()));
    const Fault fault = make_room(use, table, of.group_size, number(use, group.view()), of.group_rows, first);
    if (fault != Fault::none) return fault;
  }
  if (of.size == Size::none) return Fault::none;
  KeyBuffer first;
  first.append(facts.orders[0].prefix);
  return make_room(use, table, of.size, counts(use, facts).rows, of.rows, first);
}

Fault Tables::insert(TableUse& use, std::uint32_t table, bool replace, std::span<const std::uint8_t> columns,
                     const Value* values, double& auto_number) const {
  const TableFacts& facts = impl_->tables[table];
  const Table& of = *facts.table;
  Row after;
  for (std::size_t c = 0; c < of.columns.size(); ++c)
    if (of.columns[c].first) after.columns[c] = *of.columns[c].first;
  Fault fault = Fault::none;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    Value value = values[i];
    if (value.type != Type::none)
      if (fault = narrow(of.columns[columns[i]].slot, value); fault != Fault::none) return fault;
    after.columns[columns[i]] = value;
  }
  std::uint64_t next = 0;
  const auto give_number = [&](double n) {
    Value value = Value::number(n);
    const Fault narrowed = narrow(of.columns[facts.automatic].slot, value);
    // A range that saturates would number two rows alike.
    if (narrowed != Fault::none || value.num != n) return Fault::clamp;
    after.columns[facts.automatic] = value;
    auto_number = n;
    return Fault::none;
  };
  if (facts.automatic != kNoColumn) {
    const std::uint64_t number = Impl::counts(use, facts).next;
    if (static_cast<double>(number) >= kWholeMax) return Fault::limit;
    if (fault = give_number(static_cast<double>(number)); fault != Fault::none) return fault;
    next = number + 1;
  }

  KeyBuffer key;
  key.append(facts.orders[0].prefix);
  for (const std::uint8_t column : of.key) {
    fault = append_key(key, of.columns[column].slot, false, after.columns[column]);
    if (fault != Fault::none) return fault;
  }
  std::string_view record;
  if (use.records.get(key.view(), record)) {
    if (!replace) return Fault::exists;
    Row before;
    if (!facts.rows.decode(record, before.columns)) return Fault::not_found;
    if (facts.automatic != kNoColumn) {
      // The row stays the same one: it keeps its number.
      after.columns[facts.automatic] = before.columns[facts.automatic];
      auto_number = before.columns[facts.automatic].num;
    }
    return impl_->write(use, table, key.view(), &before, &after, 0);
  }
  if (fault = impl_->make_room(use, table, after); fault != Fault::none) return fault;
  return impl_->write(use, table, key.view(), nullptr, &after, next);
}

Fault Tables::update(TableUse& use, std::uint32_t table, std::string_view row_key, std::span<const std::uint8_t> columns,
                     const Value* values) const {
  const TableFacts& facts = impl_->tables[table];
  Row before;
  if (!read(use, table, row_key, before)) return Fault::not_found;
  Row after = before;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    Value value = values[i];
    if (value.type != Type::none) {
      const Fault fault = narrow(facts.table->columns[columns[i]].slot, value);
      if (fault != Fault::none) return fault;
    }
    after.columns[columns[i]] = value;
  }
  return impl_->write(use, table, row_key, &before, &after, 0);
}

Fault Tables::erase(TableUse& use, std::uint32_t table, std::string_view row_key) const {
  Row before;
  if (!read(use, table, row_key, before)) return Fault::not_found;
  return impl_->write(use, table, row_key, &before, nullptr, 0);
}

}  // namespace sluice::vm
