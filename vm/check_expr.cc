// What an expression means, and of which type it is.
#include <algorithm>

#include "vm/check_base.h"
#include "vm/fold.h"

namespace sluice::vm {
namespace {

std::string_view operator_text(Operator op) {
  switch (op) {
    case Operator::add:
      return "+";
    case Operator::subtract:
      return "-";
    case Operator::multiply:
      return "*";
    case Operator::divide:
      return "/";
    case Operator::modulo:
      return "%";
    case Operator::eq:
      return "==";
    case Operator::ne:
      return "!=";
    case Operator::lt:
      return "<";
    case Operator::le:
      return "<=";
    case Operator::gt:
      return ">";
    default:
      return ">=";
  }
}

}  // namespace

std::string Checker::kind_of(RegisterType type) const {
  if (type.type == Type::row) return "a row of `" + syntax_.tables[type.table].name.text + "`";
  return with_article(type.type);
}

// `this is a text` with a hint that makes it the type wanted.
void Checker::wants(const Expr& e, std::string_view who, RegisterType type) {
  if (failed_ || e.type == Type::none || register_type(e) == type) return;
  std::string hint;
  if (e.type == Type::row)
    hint = type.type == Type::row ? "" : "take a column of it: `" + source_of(e.span) + ".column`";
  else if (type.type == Type::row)
    hint = "find it by its key: `" + syntax_.tables[type.table].name.text + "[...]`";
  // What is written out is simply written otherwise.
  else if (e.constant)
    hint.clear();
  else if (type == Type::text && e.type == Type::bytes)
    hint = "write `text(...)`, which fails with `encoding` when it is not UTF-8";
  else if (type == Type::text)
    hint = "write it into a text: \"{...}\"";
  else if (type == Type::num && e.type == Type::text)
    hint = "write `num(...)`, which is absent when it is no number";
  else if (type == Type::boolean && e.type == Type::num)
    hint = "compare it, as in `x > 0`";
  complain(e.span, std::string(who) + " " + kind_of(type) + ", and this is " + kind_of(e), hint);
}

bool Checker::value_of(Expr& e, RegisterType type, std::string_view who) {
  value(e);
  wants(e, who, type);
  return !failed_ && register_type(e) == type;
}

void Checker::value(Expr& e) {
  expr(e);
  if (e.never)
    complain(e.span, "`none` is no value here",
             "`none` is given to what may have none, with `=` or `return`");
}

void Checker::expr(Expr& e) {
  switch (e.kind) {
    case ExprKind::number:
      e.type = Type::num;
      break;
    case ExprKind::boolean:
      e.type = Type::boolean;
      break;
    case ExprKind::text:
      e.type = Type::text;
      break;
    case ExprKind::none:
      e.absent = e.never = true;
      break;
    case ExprKind::joined:
      joined(e);
      break;
    case ExprKind::name:
      name_expr(e);
      break;
    case ExprKind::member:
      member(e);
      break;
    case ExprKind::index:
      row_of(e);
      break;
    case ExprKind::aggregate:
      aggregate(e);
      return;
    case ExprKind::count:
      count(e);
      return;
    case ExprKind::rank:
      rank(e);
      break;
    case ExprKind::call:
      call(e);
      break;
    case ExprKind::negate:
      if (value_of(*e.args[0], Type::num, "`-` takes")) e.type = Type::num;
      break;
    case ExprKind::logical_not:
      if (value_of(*e.args[0], Type::boolean, "`not` takes")) e.type = Type::boolean;
      break;
    case ExprKind::has:
      has(e);
      return;
    case ExprKind::binary:
      arithmetic(e);
      break;
    case ExprKind::logical_and:
    case ExprKind::logical_or: {
      const std::string_view who = e.kind == ExprKind::logical_and ? "`and` takes" : "`or` takes";
      if (value_of(*e.args[0], Type::boolean, who) && value_of(*e.args[1], Type::boolean, who))
        e.type = Type::boolean;
      break;
    }
    case ExprKind::coalesce:
      coalesce(e);
      return;
    case ExprKind::conditional:
      conditional(e);
      return;
  }
  finish(e);
}

// An expression has no value when a part of it has none; what is known of its parts may make it known.
void Checker::finish(Expr& e) {
  for (const ExprPtr& a : e.args) e.absent |= a->absent;
  if (failed_ || e.type == Type::none || e.constant) return;
  Folded folded = fold(e);
  if (!folded.problem.empty())
    complain(e.kind == ExprKind::binary ? e.at : e.span, std::string(folded.problem));
  e.constant = std::move(folded.value);
}

void Checker::arithmetic(Expr& e) {
  value(*e.args[0]);
  value(*e.args[1]);
  const Type left = e.args[0]->type, right = e.args[1]->type;
  if (failed_ || left == Type::none || right == Type::none) return;
  if (e.op >= Operator::eq) return comparison(e);
  if (e.op == Operator::add && (left == Type::text || right == Type::text))
    return complain(e.at, "texts are not added with `+`", "write them together: \"{a}{b}\"");
  const std::string who = "`" + std::string(operator_text(e.op)) + "` takes";
  wants(*e.args[0], who, Type::num);
  wants(*e.args[1], who, Type::num);
  if (!failed_) e.type = Type::num;
}

void Checker::comparison(Expr& e) {
  const Type left = e.args[0]->type, right = e.args[1]->type;
  if (left != right)
    return complain(e.at, kind_of(*e.args[0]) + " and " + kind_of(*e.args[1]) + " are never compared",
                    left == Type::bytes || right == Type::bytes ? "write `text(...)` of the bytes"
                                                                : "both sides have one type");
  if (left == Type::bytes)
    return complain(e.at, "bytes are not compared", "compare `text(...)` of them, or `hash`");
  if (left == Type::row) return complain(e.at, "rows are not compared", "compare their keys");
  const bool order = e.op != Operator::eq && e.op != Operator::ne;
  if (order && left == Type::boolean)
    return complain(e.at, "`" + std::string(operator_text(e.op)) + "` orders nums and texts, not bools",
                    "write `a and not b`");
  e.type = Type::boolean;
}

void Checker::coalesce(Expr& e) {
  Expr& left = *e.args[0];
  Expr& right = *e.args[1];
  value(left);
  if (failed_) return;
  expr(right);
  if (failed_) return;
  if (!left.absent)
    return complain(e.at, "`??` is not needed: what is before it always has a value",
                    "leave out `??` and what follows");
  if (!right.never && register_type(left) != register_type(right))
    return complain(right.span, "both sides of `??` have one type, and this is " + kind_of(right),
                    "before it is " + kind_of(left));
  e.type = left.type;
  e.table = left.table;
  e.absent = right.absent;
}

void Checker::conditional(Expr& e) {
  condition(*e.args[0]);
  Expr& yes = *e.args[1];
  Expr& no = *e.args[2];
  if (!failed_) expr(yes);
  if (!failed_) expr(no);
  if (failed_) return;
  if (!yes.never && !no.never && register_type(yes) != register_type(no))
    return complain(no.span, "both sides of `else` have one type, and this is " + kind_of(no),
                    "before it is " + kind_of(yes));
  e.never = yes.never && no.never;
  e.type = yes.never ? no.type : yes.type;
  e.table = yes.never ? no.table : yes.table;
  finish(e);
}

void Checker::has(Expr& e) {
  Expr& of = *e.args[0];
  value(of);
  if (failed_) return;
  if (of.type == Type::none) return;
  if (!of.absent) return complain(of.span, "`has` is not needed: this always has a value");
  e.type = Type::boolean;
}

void Checker::joined(Expr& e) {
  for (ExprPtr& part : e.args) {
    value(*part);
    if (failed_) return;
    if (part->type == Type::bytes)
      return complain(part->span, "a text cannot hold bytes", "write `text(...)` of them");
    if (part->type == Type::row)
      return complain(part->span, "a text cannot hold a row", "take a column of it: `" + source_of(part->span) + ".column`");
    if (part->type == Type::none) return;
  }
  e.type = Type::text;
}

}  // namespace sluice::vm
