// What instructions do to rows.
//
// A row in a register is the key of its record, so it may be copied like a text, and always shows what the event has
// written to it.
#include "vm/machine_impl.h"

namespace sluice::vm {
namespace {
// The columns of a window, whose `?` columns take two registers each, one value for each.
struct Unpacked {
  Value values[kColumnsMax];

  Unpacked(const Table& table, const RowShape& shape, const Value* window) {
    Value* to = values;
    for (const std::uint8_t column : shape.columns) {
      bool there = true;
      if (table.columns[column].slot.optional) there = (window++)->boolean;
      *to++ = there ? *window : Value();
      ++window;
    }
  }
};
}  // namespace

const Row* Machine::Impl::load(std::uint32_t table, std::string_view key) {
  RowCache::One& one = rows.place(table, key);
  if (!tables->read(*use, table, key, one.row)) return nullptr;
  rows.keep(one);
  return &one.row;
}

const Row* Machine::Impl::row_of(std::uint32_t table, const Value& row) {
  if (const RowCache::One* const one = rows.find(row.data)) return &one->row;
  return load(table, row.text());
}

Fault Machine::Impl::find_row(std::uint32_t table, const Value* key, Value& to, bool& there) {
  use->reserved = reserved();
  std::string_view bytes;
  if (const Fault fault = tables->row_key(*use, table, key, bytes); fault != Fault::none) return fault;
  if (const RowCache::One* const one = rows.find_same(table, bytes); one != nullptr && !is_loops(one->key.data())) {
    arena.give_back(bytes.size());
    to = Value::span(one->key, Type::row);
    return Fault::none;
  }
  there = !bytes.empty() && load(table, bytes) != nullptr;
  if (there) {
    to = Value::span(bytes, Type::row);
  } else {
    arena.give_back(bytes.size());
  }
  return Fault::none;
}

Fault Machine::Impl::column(std::uint32_t table, const Value& row, std::uint32_t column, Value& to, bool& there) {
  const Row* const columns = row_of(table, row);
  if (columns == nullptr) return Fault::not_found;
  const Value& value = columns->columns[column];
  there = value.type != Type::none;
  if (there) to = value;
  return Fault::none;
}

Fault Machine::Impl::set_columns(std::uint32_t table, const Value& row, std::span<const std::uint8_t> columns,
                                 const Value* values) {
  if (const Fault fault = count_write(); fault != Fault::none) return fault;
  use->reserved = reserved();
  const Fault fault = tables->update(*use, table, row.text(), columns, values);
  rows.written(table);
  return fault;
}

Fault Machine::Impl::insert(const RowShape& shape, const Value* window, Value* number) {
  if (const Fault fault = count_write(); fault != Fault::none) return fault;
  const Unpacked given(module->tables[shape.table], shape, window);
  use->reserved = reserved();
  double automatic = 0;
  const Fault fault =
      tables->insert(*use, shape.table, shape.writing == Writing::put, shape.columns, given.values, automatic);
  rows.written(shape.table);
  if (fault == Fault::none && number != nullptr) *number = Value::number(automatic);
  return fault;
}

Fault Machine::Impl::rank(std::uint32_t table, const Value& row, std::uint32_t index, Value& to, bool& there) {
  const Row* const columns = row_of(table, row);
  if (columns == nullptr) return Fault::not_found;
  if (use->orders == nullptr) {
    outcome.elsewhere = true;
    return Fault::limit;
  }
  std::uint64_t before = 0;
  there = tables->rank(*use, table, index, row.text(), *columns, before);
  if (there) to = Value::number(static_cast<double>(before));
  return Fault::none;
}

// `pc` is behind the instruction.
Fault Machine::Impl::table_step(Word w, const Frame& frame, Value* r, std::uint32_t pc, bool& there) {
  const unsigned a = a_of(w), b = b_of(w), c = c_of(w), x = x_of(w);
  const auto table_of = [&frame](unsigned row) { return std::uint32_t{frame.function->registers[row].table}; };
  switch (op_of(w)) {
    case Op::row: return find_row(c, r + b, r[a], there);
    case Op::col: return column(table_of(b), r[b], c, r[a], there);
    case Op::setcol: case Op::clrcol: {
      const auto number = static_cast<std::uint8_t>(b);
      const Value value = op_of(w) == Op::setcol ? r[c] : Value();
      return set_columns(table_of(a), r[a], {&number, 1}, &value);
    }
    case Op::insert: return insert(module->shapes[c], r + b, a == kNoRegister ? nullptr : &r[a]);
    case Op::update: {
      const RowShape& shape = module->shapes[c];
      const Unpacked given(module->tables[shape.table], shape, r + b);
      return set_columns(shape.table, r[a], shape.columns, given.values);
    }
    case Op::erase: {
      if (const Fault fault = count_write(); fault != Fault::none) return fault;
      use->reserved = reserved();
      const Fault fault = tables->erase(*use, table_of(a), r[a].text());
      rows.written(table_of(a));
      return fault;
    }
    case Op::count: r[a] = Value::number(static_cast<double>(tables->rows(*use, x))); return Fault::none;
    case Op::gcount: {
      std::uint64_t count = 0;
      const Fault fault = tables->group_rows(*use, c, r + b, count);
      r[a] = Value::number(static_cast<double>(count));
      return fault;
    }
    case Op::total: {
      const Module::TotalAt at = module->total_at(c);
      Value value;
      const Fault fault = tables->total(*use, at.table, at.total, r + b, value);
      there = value.type != Type::none;
      if (there) r[a] = value;
      return fault;
    }
    case Op::rank: return rank(table_of(b), r[b], c, r[a], there);
    case Op::open: return open(module->scans[c], r + b, frame, pc, r[a]);
    default: return next(cursor[r[b].handle], r[a], there);
  }
}

}  // namespace sluice::vm
