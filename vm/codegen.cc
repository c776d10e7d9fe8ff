// The functions of a module: of functions, handlers and views, in the order in which they may call.
#include "vm/codegen.h"

#include <algorithm>
#include <bit>

#include "vm/codegen_base.h"

namespace sluice::vm {
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
  for (std::size_t i = 0; i < syntax_.views.size(); ++i) view(syntax_.views[i], i);
}

void Generator::begin(const Body& body, std::size_t parameters) {
  code_ = FunctionCode();
  locals_.assign(body.locals.size(), Reg{});
  scope_.clear();
  absent_ = nullptr;
  none_ = nullptr;
  in_partial_ = false;
  // One at a time, in order: the first registers are the parameters.
  std::vector<RegisterType> types;
  for (std::size_t i = 0; i < parameters; ++i) types.push_back(body.locals[i].type);
  code_.take_window(types);
  for (std::size_t i = 0; i < parameters; ++i) locals_[i] = {static_cast<unsigned>(i), false};
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
  begin(f.body, f.parameters.size());
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
  begin(o.body, 0);
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

void Generator::view(const ViewSyntax& v, std::size_t index) {
  begin(v.body, v.parameters.size());
  Function out;
  out.name = "view " + v.name.text;
  out.kind = FunctionKind::view;
  for (std::size_t i = 0; i < v.parameters.size(); ++i) out.parameters.push_back(v.body.locals[i].type);
  out.result = v.result;
  Label absent;
  absent_ = &absent;
  const Reg r = operand(*v.body.value);
  at(v.body.value->span);
  if (v.body.value->type != Type::none) code_.end(Op::ret, r.number);
  out.partial = !absent.uses.empty();
  code_.bind(absent);
  code_.end(Op::retabs);
  module_.views[index].function = static_cast<std::uint32_t>(module_.functions.size());
  finish(out, v.name, "view");
}

}  // namespace sluice::vm
