// Rows: found by their keys, read by column, written.
#include <algorithm>

#include "vm/codegen_base.h"

namespace sluice::vm {
namespace {

std::uint8_t column_number(const Table& t, std::string_view name) {
  const auto found =
      std::find_if(t.columns.begin(), t.columns.end(), [&](const Column& c) { return c.name == name; });
  return static_cast<std::uint8_t>(found - t.columns.begin());
}

}  // namespace

void Generator::blank(Type type, unsigned target) {
  if (type == Type::num)
    code_.emit_x(Op::integer, target, 0);
  else if (type == Type::boolean)
    code_.emit(Op::boolean, target, 0);
  else
    text_constant({}, target);
}

Generator::Reg Generator::row(const Expr& e, std::optional<unsigned> target) {
  const Window key = arguments(e.args);
  release(key);
  const Reg to = destination(target, register_type(e));
  at(e.at);
  code_.emit(Op::row, to.number, key.first, e.table);
  may_be_absent(true);
  return to;
}

Generator::Reg Generator::column(const Expr& e, std::optional<unsigned> target) {
  const Reg of = operand(*e.args[0]);
  release(of);
  const Reg to = destination(target, e.type);
  at(e.at);
  code_.emit(Op::col, to.number, of.number, e.index);
  may_be_absent(module_.tables[e.table].columns[e.index].slot.optional);
  return to;
}

Generator::Reg Generator::total(const Expr& e, std::optional<unsigned> target) {
  std::vector<const Expr*> group;
  for (std::size_t i = 1; i < e.args.size(); ++i) group.push_back(e.args[i].get());
  const Window window = arguments(group);
  release(window);
  const Reg to = destination(target, Type::num);
  at(e.at);
  code_.emit(Op::total, to.number, window.first, e.index);
  const Table& t = module_.tables[e.table];
  const Total& kept = t.totals[module_.total_at(e.index).total];
  may_be_absent(kept.sum && t.columns[kept.column].slot.base == Base::num);
  return to;
}

Generator::Reg Generator::rank(const Expr& e, std::optional<unsigned> target) {
  const Reg of = operand(*e.args[0]);
  release(of);
  const Reg to = destination(target, Type::num);
  at(e.at);
  code_.emit(Op::rank, to.number, of.number, e.index);
  const Table& t = module_.tables[e.table];
  const std::vector<KeyPart>& parts = t.indexes[e.index].parts;
  may_be_absent(std::any_of(parts.begin(), parts.end(),
                            [&](const KeyPart& p) { return t.columns[p.column].slot.optional; }));
  return to;
}

unsigned Generator::shape_index(const RowShape& shape, Span at_stmt) {
  const auto found = std::find(module_.shapes.begin(), module_.shapes.end(), shape);
  if (found != module_.shapes.end()) return static_cast<unsigned>(found - module_.shapes.begin());
  if (module_.shapes.size() == kShapesMax) {
    complaints_.push_back({at_stmt, "a module writes rows in at most 256 different ways",
                           "let a function write rows of the same columns"});
    return 0;
  }
  module_.shapes.push_back(shape);
  return static_cast<unsigned>(module_.shapes.size() - 1);
}

void Generator::column_into(const Expr& e, const Slot& slot, unsigned first) {
  if (!slot.optional) return into(e, first);
  const Type type = type_of(slot.base);
  Label none, end;
  if (!e.never) {
    none_ = &none;
    into(e, first + 1);
    none_ = nullptr;
    code_.emit(Op::boolean, first, 1);
    if (none.uses.empty()) return;
    code_.jump(end);
    code_.bind(none);
  }
  code_.emit(Op::boolean, first, 0);
  blank(type, first + 1);
  code_.bind(end);
}

Generator::Window Generator::columns(const std::vector<Cell>& cells, std::uint32_t table, RowShape& shape) {
  const Table& t = module_.tables[table];
  shape.table = static_cast<std::uint8_t>(table);
  std::vector<RegisterType> types;
  for (const Cell& c : cells) {
    shape.columns.push_back(column_number(t, c.name.text));
    const Slot& slot = t.columns[shape.columns.back()].slot;
    if (slot.optional) types.emplace_back(Type::boolean);
    types.emplace_back(type_of(slot.base));
  }
  const unsigned first = code_.take_window(types);
  unsigned next = first;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const Slot& slot = t.columns[shape.columns[i]].slot;
    column_into(*cells[i].value, slot, next);
    next += slot.optional ? 2 : 1;
  }
  return {first, types.size()};
}

void Generator::insert(const Stmt& s) {
  RowShape shape;
  shape.writing = s.kind == StmtKind::put ? Writing::put : Writing::insert;
  const Window window = columns(s.cells, s.table_index, shape);
  release(window);
  const bool named = !s.name.text.empty();
  const unsigned number = named ? code_.take(Type::num) : kNoRegister;
  at(s.at);
  code_.emit(Op::insert, number, window.first, shape_index(shape, s.at));
  if (!named) return;
  locals_[s.local] = {number, true};
  scope_.push_back(s.local);
}

void Generator::update(const Stmt& s) {
  const Reg row = operand(*s.target);
  RowShape shape;
  shape.writing = Writing::update;
  const Window window = columns(s.cells, s.table_index, shape);
  at(s.at);
  code_.emit(Op::update, row.number, window.first, shape_index(shape, s.at));
  release(window);
  release(row);
}

void Generator::delete_row(const Stmt& s) {
  const Reg row = operand(*s.target);
  at(s.at);
  code_.emit(Op::erase, row.number);
  release(row);
}

}  // namespace sluice::vm
