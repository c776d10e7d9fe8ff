// Instructions on tables: rows and their columns, writes, what is kept about rows, and queries.
// Source: design module.md 3.2, 3.5 point 8; vm/opcode.h.
#include "vm/verify_code.h"

namespace sluice::vm {
namespace {
std::string number(std::uint64_t n) { return std::to_string(n); }
}  // namespace

bool CodeCheck::step_table(Word w) {
  const unsigned a = a_of(w), b = b_of(w), c = c_of(w), x = x_of(w);
  switch (op_of(w)) {
    case Op::count:
      if (!inside(x, m_.tables, "table")) return false;
      reads_table(static_cast<std::uint8_t>(x), 0);
      spend({flat_fuel(Op::count)});
      return give(a, Type::num) && done();
    case Op::gcount: {
      if (!inside(c, m_.tables, "table")) return false;
      const Table& table = m_.tables[c];
      if (table.per == 0) return refuse("the table `" + table.name + "` counts no groups");
      if (!values(table, b, table.key, table.per)) return false;
      reads_table(static_cast<std::uint8_t>(c), 1);
      spend({flat_fuel(Op::gcount)});
      return give(a, Type::num) && done();
    }
    case Op::total: {
      std::uint32_t totals = 0;
      for (const Table& table : m_.tables) totals += static_cast<std::uint32_t>(table.totals.size());
      if (c >= totals) return refuse("there is no total " + number(c));
      const Module::TotalAt which = m_.total_at(c);
      const Table& table = m_.tables[which.table];
      const Total& total = table.totals[which.total];
      if (total.by.empty() && !zero(b)) return false;
      if (!values(table, b, total.by, total.by.size())) return false;
      reads_table(which.table, 1);
      spend({flat_fuel(Op::total)});
      const bool may_overflow = total.sum && table.columns[total.column].slot.base == Base::num;
      return give(a, Type::num) && done(may_overflow, a);
    }
    case Op::rank: {
      std::uint8_t t = 0;
      if (!row(b, t) || !inside(c, m_.tables[t].indexes, "index")) return false;
      const Index& index = m_.tables[t].indexes[c];
      if (!index.ranked) return refuse("the index `" + index.name + "` is not ranked");
      reads_table(t, 1);
      facts_.ranks = true;
      spend({flat_fuel(Op::rank)});
      return give(a, Type::num) && done(true, a);
    }
    case Op::row: case Op::col: return step_row(w);
    case Op::open: return step_open(w);
    default: return step_write(w);
  }
}

bool CodeCheck::step_row(Word w) {
  const unsigned a = a_of(w), b = b_of(w), c = c_of(w);
  spend({flat_fuel(op_of(w))});
  if (op_of(w) == Op::row) {
    if (!inside(c, m_.tables, "table")) return false;
    const Table& table = m_.tables[c];
    if (!values(table, b, table.key, table.key.size())) return false;
    reads_table(static_cast<std::uint8_t>(c), 1);
    return give(a, {Type::row, c}) && done(true, a);
  }
  std::uint8_t t = 0;
  if (!row(b, t) || !column(t, c)) return false;
  const Slot& slot = m_.tables[t].columns[c].slot;
  reads_table(t, 0);
  return give(a, type_of(slot.base)) && done(slot.optional, a);
}

bool CodeCheck::step_write(Word w) {
  const unsigned a = a_of(w), b = b_of(w), c = c_of(w);
  std::uint8_t t = 0;
  std::uint64_t rows = 1;
  unsigned result = kNoRegister;
  switch (op_of(w)) {
    case Op::setcol:
      if (!row(a, t) || !changeable(t, b) || !need(c, type_of(m_.tables[t].columns[b].slot.base))) return false;
      break;
    case Op::clrcol:
      if (!zero(c) || !row(a, t) || !changeable(t, b)) return false;
      if (!m_.tables[t].columns[b].slot.optional)
        return refuse("the column `" + m_.tables[t].columns[b].name + "` is never absent");
      break;
    case Op::insert: {
      if (!inside(c, m_.shapes, "row shape")) return false;
      const RowShape& shape = m_.shapes[c];
      if (shape.writing == Writing::update) return refuse("row shape " + number(c) + " makes no rows");
      if (!window(shape, b)) return false;
      t = shape.table;
      const Table& table = m_.tables[t];
      const auto numbered = [](const Column& column) { return column.automatic; };
      if (a != kNoRegister && std::none_of(table.columns.begin(), table.columns.end(), numbered))
        return refuse("the table `" + table.name + "` numbers no rows");
      result = a;
      for (const Size size : {table.size, table.group_size}) rows += size == Size::keep ? kKeepRemoves : 0;
      break;
    }
    case Op::update: {
      if (!inside(c, m_.shapes, "row shape")) return false;
      const RowShape& shape = m_.shapes[c];
      if (shape.writing != Writing::update) return refuse("row shape " + number(c) + " makes rows");
      t = shape.table;
      if (!need(a, {Type::row, t}) || !window(shape, b)) return false;
      break;
    }
    default:
      if (!zero(b) || !zero(c) || !row(a, t)) return false;
      break;
  }
  spend({fuel_of(m_, f_, w)});
  if (!writes_table(t, rows)) return false;
  return (result == kNoRegister || give(result, Type::num)) && done();
}

// A cursor is used up where it was opened: by the loop that follows, or as the rows of a view.
bool CodeCheck::step_open(Word w) {
  const unsigned a = a_of(w), b = b_of(w), c = c_of(w);
  spend({flat_fuel(Op::open)});
  if (!inside(c, m_.scans, "scan")) return false;
  const Scan& scan = m_.scans[c];
  const Table& table = m_.tables[scan.table];
  std::vector<std::uint8_t> columns;   // of the window
  for (std::size_t i = 0; i < scan.prefix; ++i) columns.push_back(order_part(table, scan.order, i).column);
  for (const Bound bound : {scan.low, scan.high})
    if (bound != Bound::none) columns.push_back(order_part(table, scan.order, scan.prefix).column);
  if (columns.empty() && !zero(b)) return false;
  if (!values(table, b, columns, columns.size())) return false;
  if (!give(a, {Type::cursor, scan.table})) return false;
  reads_table(scan.table, 0);

  const Word next = pc_ + 1 < code_.size() ? code_[pc_ + 1] : word(Op::nop);
  if (jumps_.contains(pc_ + 1)) return refuse("a jump leads between OPEN and what follows");
  if (next == word(Op::ret, a) && f_.result == RegisterType{Type::cursor, scan.table}) {
    if (scan.limit == 0 && role_.filtered) return refuse("rows with a condition need a limit");
    if (scan.limit == 0 && !is_counted(scan)) facts_.ranks = true;
    reads_table(scan.table, scan.limit);
    return done();
  }
  if (op_of(next) != Op::next || b_of(next) != a) return refuse("no NEXT of its own follows");
  if (scan.limit == 0) return refuse("a loop's limit is not 1 to 10000");
  return done();
}

// Whether the number of rows of a paged scan is kept: all of the table, or one of its groups. Else it comes from the
// positions of the range's ends.
bool CodeCheck::is_counted(const Scan& scan) const {
  const Table& table = m_.tables[scan.table];
  if (scan.low != Bound::none || scan.high != Bound::none) return false;
  if (scan.prefix != 0) return scan.order == 0 && scan.prefix == table.per;
  for (std::size_t i = 0; i < order_size(table, scan.order); ++i)
    if (table.columns[order_part(table, scan.order, i).column].slot.optional) return false;
  return true;
}

bool CodeCheck::row(unsigned r, std::uint8_t& table) {
  if (!has_register(r)) return false;
  const RegisterType type = f_.registers[r];
  if (type.type != Type::row) return refuse("register " + number(r) + " is " + type_text(m_, type) + ", not a row");
  table = type.table;
  return has_value(r);
}

bool CodeCheck::column(std::uint8_t table, unsigned i) { return inside(i, m_.tables[table].columns, "column"); }

// Key columns never change, and numbers are given by the table alone.
bool CodeCheck::changeable(std::uint8_t table, unsigned i) {
  if (!column(table, i)) return false;
  const Table& t = m_.tables[table];
  const std::string& name = t.columns[i].name;
  if (std::find(t.key.begin(), t.key.end(), i) != t.key.end()) return refuse("changes the column `" + name + "` of the key");
  if (t.columns[i].automatic) return refuse("gives the column `" + name + "`, which is numbered");
  return true;
}

// Registers from `first` hold values of the first `count` of these columns.
bool CodeCheck::values(const Table& table, unsigned first, const std::vector<std::uint8_t>& columns, std::size_t count) {
  for (unsigned i = 0; i < count; ++i)
    if (!need(first + i, type_of(table.columns[columns[i]].slot.base))) return false;
  return true;
}

// The same for a write, where a `?` column takes two: whether there is a value, then the value.
bool CodeCheck::window(const RowShape& shape, unsigned first) {
  if (shape.columns.empty() && !zero(first)) return false;
  unsigned r = first;
  for (const std::uint8_t i : shape.columns) {
    const Slot& slot = m_.tables[shape.table].columns[i].slot;
    if (slot.optional && !need(r++, Type::boolean)) return false;
    if (!need(r++, type_of(slot.base))) return false;
  }
  return true;
}

bool CodeCheck::may_write_tables() {
  for (const Loop& loop : loops_)
    if (loop.streams) return refuse("writes tables in a loop that streams");
  return true;
}

bool CodeCheck::writes_table(std::uint8_t table, std::uint64_t rows) {
  if (!writes() || !may_write_tables()) return false;
  facts_.tables_written |= std::uint64_t{1} << table;
  spend({0, 0, rows});
  return true;
}

void CodeCheck::reads_table(std::uint8_t table, std::uint64_t rows) {
  facts_.tables_read |= std::uint64_t{1} << table;
  spend({0, rows, 0});
}

}  // namespace sluice::vm
