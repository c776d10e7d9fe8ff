// The functions of a module: of functions, handlers and views, in the order in which they may call.
#include "vm/codegen.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "vm/codegen_base.h"

namespace sluice::vm {
namespace {

// The numbers of the first `n` locals: a body's parameters.
std::vector<std::uint32_t> first_locals(std::size_t n) {
  std::vector<std::uint32_t> out(n);
  std::iota(out.begin(), out.end(), 0u);
  return out;
}

}  // namespace
void generate(std::string_view source, const Syntax& syntax, Module& module,
              std::vector<Complaint>& complaints) {
  Generator(source, syntax, module, complaints).run();
}

Generator::Generator(std::string_view source, const Syntax& syntax, Module& module,
                     std::vector<Complaint>& complaints)
    : syntax_(syntax), module_(module), complaints_(complaints) {
  line_starts_.push_back(0);
  for (std::uint32_t i = 0; i < source.size(); ++i)
    if (source[i] == '\n') line_starts_.push_back(i + 1);
}

void Generator::at(Span span) {
  const auto next = std::upper_bound(line_starts_.begin(), line_starts_.end(), span.offset);
  code_.line(static_cast<std::uint32_t>(next - line_starts_.begin()));
}

std::uint16_t Generator::number_index(double n) {
  const auto [entry, fresh] = numbers_.try_emplace(std::bit_cast<std::uint64_t>(n),
                                                   static_cast<std::uint16_t>(module_.numbers.size()));
  if (fresh) module_.numbers.push_back(n);
  return entry->second;
}

std::uint16_t Generator::text_index(const std::string& text) {
  const auto [entry, fresh] = texts_.try_emplace(text, static_cast<std::uint16_t>(module_.texts.size()));
  if (fresh) module_.texts.push_back(text);
  return entry->second;
}

void Generator::run() {
  for (const FnSyntax& f : syntax_.functions) function(f);
  std::vector<const OnSyntax*> handlers;
  for (const OnSyntax& o : syntax_.handlers) handlers.push_back(&o);
  std::sort(handlers.begin(), handlers.end(),
            [](const OnSyntax* a, const OnSyntax* b) { return a->event < b->event; });
  for (const OnSyntax* o : handlers) handler(*o);
  for (std::size_t i = 0; i < syntax_.views.size(); ++i) view(syntax_.views[i], module_.views[i]);
}

void Generator::begin(const Body& body, const std::vector<std::uint32_t>& parameters) {
  code_ = FunctionCode();
  locals_.assign(body.locals.size(), Reg{});
  scope_.clear();
  absent_ = nullptr;
  none_ = nullptr;
  in_partial_ = false;
  // The first registers, in order.
  std::vector<RegisterType> types;
  for (const std::uint32_t p : parameters) {
    locals_[p] = {static_cast<unsigned>(types.size()), false};
    types.push_back(body.locals[p].type);
  }
  code_.take_window(types);
}

void Generator::finish(Function& function, const Name& name, std::string_view what) {
  if (code_.too_many_registers())
    complaints_.push_back({name.span, "this " + std::string(what) + " needs more than 200 registers",
                           "move parts of it into functions"});
  else if (code_.too_long())
    complaints_.push_back({name.span, "this " + std::string(what) + " needs more than 65535 instructions",
                           "move parts of it into functions"});
  std::vector<std::uint32_t> lines;
  code_.move_to(function, lines);
  module_.lines.push_back(std::move(lines));
  module_.functions.push_back(std::move(function));
}

void Generator::function(const FnSyntax& f) {
  begin(f.body, first_locals(f.parameters.size()));
  Function out;
  out.name = "fn " + f.name.text;
  out.parameters = f.types;
  out.result = f.type;
  out.partial = f.partial;
  out.writes = f.body.writes || f.body.chance;
  Label absent;
  if (f.partial) absent_ = &absent;
  in_partial_ = f.partial;
  if (!f.is_block) {
    const Expr& e = *f.body.value;
    const Reg r = operand(e);
    at(e.span);
    if (e.type != Type::none) code_.end(Op::ret, r.number);
  } else {
    block(f.body.block);
    at(f.body.end);
    code_.end(Op::ret, kNoRegister);
  }
  code_.bind(absent);
  code_.end(Op::retabs);
  finish(out, f.name, "function");
}

void Generator::handler(const OnSyntax& o) {
  begin(o.body, {});
  Function out;
  out.name = "on " + o.name.text;
  if (o.edge != Edge::none) out.name += o.edge == Edge::up ? " up" : " down";
  out.kind = FunctionKind::handler;
  out.writes = o.body.writes || o.body.chance;
  block(o.body.block);
  at(o.body.end);
  code_.end(Op::done);
  module_.handlers.push_back({o.event, static_cast<std::uint32_t>(module_.functions.size())});
  finish(out, o.name, "handler");
}

void Generator::view_function(const ViewSyntax& v, Function& out) {
  out.kind = FunctionKind::view;
  for (std::size_t i = 0; i < v.parameters.size(); ++i) out.parameters.push_back(v.body.locals[i].type);
}

void Generator::view(const ViewSyntax& v, View& out) {
  if (v.of_rows) return view_of_rows(v, out);
  begin(v.body, first_locals(v.parameters.size()));
  Function f;
  f.name = "view " + v.name.text;
  view_function(v, f);
  f.result = v.result;
  view_value(*v.body.value, f);
  out.function = static_cast<std::uint32_t>(module_.functions.size());
  finish(f, v.name, "view");
}

// What a view or a cell of it gives; absent when anything in it is.
void Generator::view_value(const Expr& e, Function& out) {
  Label absent;
  absent_ = &absent;
  const Reg r = operand(e);
  at(e.span);
  if (!e.never) code_.end(Op::ret, r.number);
  out.partial = !absent.uses.empty();
  code_.bind(absent);
  code_.end(Op::retabs);
}

void Generator::view_of_rows(const ViewSyntax& v, View& out) {
  const Query& q = *v.query;
  std::vector<std::uint32_t> parameters = first_locals(v.parameters.size());
  begin(v.body, parameters);
  Function rows;
  rows.name = "view " + v.name.text;
  view_function(v, rows);
  rows.result = {Type::cursor, q.table_index};
  const Window window = arguments(window_of(q));
  const unsigned cursor = code_.take(rows.result);
  at(q.span);
  code_.emit(Op::open, cursor, window.first, scan_index(q));
  code_.end(Op::ret, cursor);
  out.function = static_cast<std::uint32_t>(module_.functions.size());
  finish(rows, v.name, "view");

  // Locals of aggregates in the bounds may have had the row's name before it.
  std::uint32_t row = static_cast<std::uint32_t>(v.body.locals.size()) - 1;
  while (v.body.locals[row].name != v.row.text) --row;
  parameters.push_back(row);
  if (q.where) {
    begin(v.body, parameters);
    Function keeps;
    keeps.name = "view " + v.name.text + " where";
    view_function(v, keeps);
    keeps.parameters.push_back(v.body.locals[row].type);
    keeps.result = Type::boolean;
    const Reg r = operand(*q.where);
    at(q.where->span);
    code_.end(Op::ret, r.number);
    out.where = static_cast<std::uint32_t>(module_.functions.size());
    finish(keeps, v.name, "view");
  }
  for (std::size_t i = 0; i < v.cells.size(); ++i) {
    const Cell& c = v.cells[i];
    begin(v.body, parameters);
    position_ = code_.take_window({Type::num});
    Function cell;
    cell.name = "view " + v.name.text + "." + c.name.text;
    view_function(v, cell);
    cell.parameters.push_back(v.body.locals[row].type);
    cell.parameters.push_back(Type::num);
    cell.result = c.value->never ? Type::num : c.value->type;
    view_value(*c.value, cell);
    out.cells[i].function = static_cast<std::uint32_t>(module_.functions.size());
    finish(cell, c.name, "cell");
  }
}

}  // namespace sluice::vm
