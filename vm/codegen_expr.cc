// Expressions: each into the register it is wanted in.
#include <cmath>
#include <utility>

#include "vm/base/number_text.h"
#include "vm/builtin.h"
#include "vm/codegen_base.h"

namespace sluice::vm {
namespace {

// Texts joined at once; more are joined in turns, so that a long text needs no more registers than this.
constexpr std::size_t kJoinedAtOnce = 32;

std::string constant_text(const Constant& c) {
  if (c.type == Type::text) return c.text;
  if (c.type == Type::boolean) return c.truth ? "true" : "false";
  std::string out;
  append_number(out, c.number);
  return out;
}

unsigned text_of(Type type) {
  const Builtin* b = find_builtin("text", &type, 1);
  return b->number;
}

}  // namespace

Generator::Reg Generator::destination(std::optional<unsigned> target, RegisterType type) {
  if (target) return {*target, false};
  return {code_.take(type), true};
}

void Generator::may_be_absent(bool partial) {
  if (partial && absent_) code_.refer(Op::absent, 0, *absent_);
}

void Generator::number_constant(double n, unsigned target) {
  if (n == std::floor(n) && n >= -32768 && n <= 32767)
    code_.emit_x(Op::integer, target, static_cast<std::uint16_t>(static_cast<std::int16_t>(n)));
  else
    code_.emit_x(Op::numk, target, number_index(n));
}

void Generator::text_constant(const std::string& text, unsigned target) {
  code_.emit_x(Op::textk, target, text_index(text));
}

Generator::Reg Generator::constant(const Constant& c, std::optional<unsigned> target) {
  const Reg to = destination(target, c.type);
  if (c.type == Type::num)
    number_constant(c.number, to.number);
  else if (c.type == Type::boolean)
    code_.emit(Op::boolean, to.number, c.truth ? 1 : 0);
  else
    text_constant(c.text, to.number);
  return to;
}

Generator::Reg Generator::value(const Expr& e, std::optional<unsigned> target) {
  at(e.at);
  if (e.constant) return constant(*e.constant, target);
  // A `none` that is only an argument of something has that something fail like any other.
  const bool passes = e.kind == ExprKind::none || e.kind == ExprKind::conditional || e.kind == ExprKind::coalesce;
  Label* const outer = none_;
  if (!passes) none_ = nullptr;
  const Reg r = value_of_kind(e, target);
  none_ = outer;
  return r;
}

Generator::Reg Generator::value_of_kind(const Expr& e, std::optional<unsigned> target) {
  switch (e.kind) {
    case ExprKind::name:
    case ExprKind::member:
      return name(e, target);
    case ExprKind::index:
      return row(e, target);
    case ExprKind::aggregate:
    case ExprKind::count:
      return aggregate(e, target);
    case ExprKind::rank:
      return rank(e, target);
    case ExprKind::call:
      return e.meaning == Meaning::total ? total(e, target) : call(e, target);
    case ExprKind::binary:
      return binary(e, target);
    case ExprKind::coalesce:
      return coalesce(e, target);
    case ExprKind::conditional:
      return conditional(e, target);
    case ExprKind::logical_and:
    case ExprKind::logical_or:
      return logical(e, target);
    case ExprKind::joined:
      return joined(e, target);
    case ExprKind::negate:
    case ExprKind::logical_not: {
      const Reg from = operand(*e.args[0]);
      release(from);
      const Reg to = destination(target, e.type);
      code_.emit(e.kind == ExprKind::negate ? Op::neg : Op::logical_not, to.number, from.number);
      return to;
    }
    case ExprKind::has: {
      const Reg to = destination(target, Type::boolean);
      Label no, end;
      branch_on_has(e, false, no);
      code_.emit(Op::boolean, to.number, 1);
      code_.jump(end);
      code_.bind(no);
      code_.emit(Op::boolean, to.number, 0);
      code_.bind(end);
      return to;
    }
    case ExprKind::none:
      if (none_)
        code_.jump(*none_);
      else if (absent_)
        code_.jump(*absent_);
      else
        code_.end(Op::fail, kNoRegister, static_cast<unsigned>(Fault::not_found));
      return {target.value_or(0), false};
    default:
      return {target.value_or(0), false};
  }
}

Generator::Reg Generator::name(const Expr& e, std::optional<unsigned> target) {
  if (e.meaning == Meaning::column) return column(e, target);
  if (e.meaning == Meaning::local || e.meaning == Meaning::position) {
    const unsigned from = e.meaning == Meaning::position ? position_ : locals_[e.index].number;
    if (!target || *target == from) return {from, false};
    code_.emit(Op::move, *target, from);
    return {*target, false};
  }
  const Reg to = destination(target, e.type);
  switch (e.meaning) {
    case Meaning::field:
      code_.emit_x(Op::field, to.number, e.index);
      break;
    case Meaning::now:
      code_.emit(Op::now, to.number);
      break;
    case Meaning::seq:
      code_.emit(Op::seq, to.number);
      break;
    case Meaning::doc_key:
      code_.emit(Op::dockey, to.number);
      break;
    case Meaning::doc_revision:
      code_.emit(Op::docrev, to.number);
      break;
    case Meaning::doc:
      code_.emit(Op::doc, to.number);
      may_be_absent(true);
      break;
    case Meaning::state:
      code_.emit_x(Op::gets, to.number, e.index);
      may_be_absent(e.absent);
      break;
    default:
      break;
  }
  return to;
}

// The arguments in consecutive registers: where they are already, when they are.
Generator::Window Generator::arguments(const std::vector<const Expr*>& args) {
  if (args.empty()) return {};
  auto local = [&](const Expr& e) { return e.kind == ExprKind::name && e.meaning == Meaning::local; };
  bool in_place = local(*args[0]);
  for (std::size_t i = 1; i < args.size() && in_place; ++i)
    in_place = local(*args[i]) && locals_[args[i]->index].number == locals_[args[0]->index].number + i;
  if (in_place) return {locals_[args[0]->index].number, 0};
  if (args.size() == 1) {
    const Reg r = operand(*args[0]);
    return {r.number, r.owned ? std::size_t{1} : 0};
  }
  std::vector<RegisterType> types;
  for (const Expr* a : args) types.push_back(register_type(*a));
  const unsigned first = code_.take_window(types);
  for (std::size_t i = 0; i < args.size(); ++i) into(*args[i], first + static_cast<unsigned>(i));
  return {first, args.size()};
}

Generator::Window Generator::arguments(const std::vector<ExprPtr>& args) {
  std::vector<const Expr*> all;
  for (const ExprPtr& a : args) all.push_back(a.get());
  return arguments(all);
}

Generator::Reg Generator::call(const Expr& e, std::optional<unsigned> target) {
  const Window window = arguments(e.args);
  release(window);
  at(e.at);
  if (e.meaning == Meaning::builtin) {
    const Reg to = destination(target, e.type);
    code_.emit(Op::builtin, to.number, window.first, e.index);
    may_be_absent(builtin(static_cast<std::uint8_t>(e.index)).partial);
    return to;
  }
  const Reg to = destination(target, e.type);
  code_.emit(Op::call, to.number, window.first, e.index);
  may_be_absent(syntax_.functions[e.index].partial);
  return to;
}

void Generator::arithmetic(Operator op, unsigned a, unsigned b, unsigned c) {
  constexpr Op kOps[] = {Op::add, Op::sub, Op::mul, Op::div, Op::mod};
  code_.emit(kOps[static_cast<std::size_t>(op)], a, b, c);
}

Generator::Reg Generator::binary(const Expr& e, std::optional<unsigned> target) {
  Reg left = operand(*e.args[0]);
  Reg right = operand(*e.args[1]);
  release(left);
  release(right);
  const Reg to = destination(target, e.type);
  at(e.at);
  if (e.op < Operator::eq) {
    arithmetic(e.op, to.number, left.number, right.number);
    return to;
  }
  const Type type = e.args[0]->type;
  if (e.op == Operator::gt || e.op == Operator::ge) std::swap(left, right);
  Op op = type == Type::num ? Op::eqn : type == Type::text ? Op::eqt : Op::eqb;
  if (e.op == Operator::lt || e.op == Operator::gt) op = type == Type::num ? Op::ltn : Op::ltt;
  if (e.op == Operator::le || e.op == Operator::ge) op = type == Type::num ? Op::len : Op::let;
  code_.emit(op, to.number, left.number, right.number);
  if (e.op == Operator::ne) code_.emit(Op::logical_not, to.number, to.number);
  return to;
}

Generator::Reg Generator::coalesce(const Expr& e, std::optional<unsigned> target) {
  const Reg to = destination(target, register_type(e));
  Label absent, end;
  with_absent(absent, [&] { return value(*e.args[0], to.number); });
  code_.jump(end);
  code_.bind(absent);
  into(*e.args[1], to.number);
  code_.bind(end);
  return to;
}

Generator::Reg Generator::conditional(const Expr& e, std::optional<unsigned> target) {
  // Both `none`: there is no type to hold, and nothing to hold it.
  const Reg to = e.never ? Reg{target.value_or(0), false} : destination(target, register_type(e));
  Label no, end;
  Label* const outer = std::exchange(none_, nullptr);
  branch_on(*e.args[0], false, no);
  none_ = outer;
  into(*e.args[1], to.number);
  code_.jump(end);
  code_.bind(no);
  into(*e.args[2], to.number);
  code_.bind(end);
  return to;
}

Generator::Reg Generator::logical(const Expr& e, std::optional<unsigned> target) {
  const Reg to = destination(target, Type::boolean);
  Label end;
  into(*e.args[0], to.number);
  code_.refer(e.kind == ExprKind::logical_and ? Op::jf : Op::jt, to.number, end);
  into(*e.args[1], to.number);
  code_.bind(end);
  return to;
}

void Generator::text_part(const Expr& e, unsigned target) {
  if (e.type == Type::text) return into(e, target);
  const Reg from = operand(e);
  release(from);
  code_.emit(Op::builtin, target, from.number, text_of(e.type));
}

Generator::Reg Generator::joined(const Expr& e, std::optional<unsigned> target) {
  // What is known stands together with its neighbours.
  struct Part {
    const Expr* value = nullptr;
    std::string text;
  };
  std::vector<Part> parts;
  for (const ExprPtr& a : e.args) {
    if (!a->constant) {
      parts.push_back({a.get(), {}});
    } else if (!parts.empty() && !parts.back().value) {
      parts.back().text += constant_text(*a->constant);
    } else {
      parts.push_back({nullptr, constant_text(*a->constant)});
    }
  }
  auto put = [&](const Part& p, unsigned to) {
    if (p.value)
      text_part(*p.value, to);
    else
      text_constant(p.text, to);
  };
  if (parts.size() == 1) {
    const Reg to = destination(target, Type::text);
    put(parts[0], to.number);
    return to;
  }
  std::size_t done = 0;
  std::optional<unsigned> before;  // what is joined so far
  while (true) {
    const std::size_t n = std::min(kJoinedAtOnce, parts.size() - done + (before ? 1 : 0));
    const unsigned first = code_.take_window(std::vector<RegisterType>(n, Type::text));
    std::size_t i = 0;
    if (before) {
      code_.emit(Op::move, first, *before);
      code_.free(*before);
      i = 1;
    }
    for (; i < n; ++i) put(parts[done++], first + static_cast<unsigned>(i));
    code_.free_window(first, n);
    const bool last = done == parts.size();
    const Reg to = last ? destination(target, Type::text) : Reg{code_.take(Type::text), true};
    at(e.at);
    code_.emit(Op::concat, to.number, first, static_cast<unsigned>(n));
    if (last) return to;
    before = to.number;
  }
}

void Generator::branch_on_has(const Expr& e, bool wanted, Label& to) {
  const Expr& of = *e.args[0];
  Label no;
  release(with_absent(wanted ? no : to, [&] {
    if (of.meaning != Meaning::doc) return operand(of);
    // Whether there is a document is known without reading it.
    const Reg r{code_.take(of.type), true};
    code_.emit(Op::doc, r.number, 1);
    may_be_absent(true);
    return r;
  }));
  if (!wanted) return;
  code_.jump(to);
  code_.bind(no);
}

void Generator::branch_on(const Expr& e, bool wanted, Label& to) {
  if (e.constant) {
    if (e.constant->truth == wanted) code_.jump(to);
    return;
  }
  switch (e.kind) {
    case ExprKind::logical_not:
      return branch_on(*e.args[0], !wanted, to);
    case ExprKind::has:
      at(e.at);
      return branch_on_has(e, wanted, to);
    case ExprKind::logical_and:
    case ExprKind::logical_or: {
      // `and` is false, and `or` true, as soon as one side is.
      const bool decides = e.kind == ExprKind::logical_or;
      if (decides == wanted) {
        branch_on(*e.args[0], wanted, to);
        branch_on(*e.args[1], wanted, to);
        return;
      }
      Label skip;
      branch_on(*e.args[0], decides, skip);
      branch_on(*e.args[1], wanted, to);
      code_.bind(skip);
      return;
    }
    case ExprKind::binary:
      if (e.op == Operator::ne) {
        Reg left = operand(*e.args[0]);
        Reg right = operand(*e.args[1]);
        release(left);
        release(right);
        const unsigned r = code_.take(Type::boolean);
        const Type type = e.args[0]->type;
        code_.emit(type == Type::num    ? Op::eqn
                   : type == Type::text ? Op::eqt
                                        : Op::eqb,
                   r, left.number, right.number);
        code_.refer(wanted ? Op::jf : Op::jt, r, to);
        code_.free(r);
        return;
      }
      break;
    default:
      break;
  }
  const Reg r = operand(e);
  code_.refer(wanted ? Op::jt : Op::jf, r.number, to);
  release(r);
}

}  // namespace sluice::vm
