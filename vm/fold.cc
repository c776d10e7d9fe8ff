#include "vm/fold.h"

#include <cmath>

#include "vm/base/number_text.h"
#include "vm/builtin.h"

namespace sluice::vm {
namespace {

constexpr std::string_view kByZero = "this divides by zero";
constexpr std::string_view kTooLarge = "this number is too large";

Folded number(double n) {
  if (!std::isfinite(n)) return {std::nullopt, kTooLarge};
  Constant c;
  c.type = Type::num;
  c.number = n == 0 ? 0 : n;
  return {std::move(c), {}};
}
Folded truth(bool b) {
  Constant c;
  c.type = Type::boolean;
  c.truth = b;
  return {std::move(c), {}};
}
Folded text(std::string s) {
  Constant c;
  c.type = Type::text;
  c.text = std::move(s);
  return {std::move(c), {}};
}

template <class T>
bool compare(Operator op, const T& a, const T& b) {
  switch (op) {
    case Operator::eq:
      return a == b;
    case Operator::ne:
      return a != b;
    case Operator::lt:
      return a < b;
    case Operator::le:
      return a <= b;
    case Operator::gt:
      return a > b;
    default:
      return a >= b;
  }
}

Folded binary(Operator op, const Constant& a, const Constant& b) {
  switch (op) {
    case Operator::add:
      return number(a.number + b.number);
    case Operator::subtract:
      return number(a.number - b.number);
    case Operator::multiply:
      return number(a.number * b.number);
    case Operator::divide:
      return b.number == 0 ? Folded{std::nullopt, kByZero} : number(a.number / b.number);
    case Operator::modulo: {
      if (b.number == 0) return {std::nullopt, kByZero};
      double r = std::fmod(a.number, b.number);
      if (r != 0 && (r < 0) != (b.number < 0)) r += b.number;
      return number(r);
    }
    default:
      break;
  }
  if (a.type == Type::num) return truth(compare(op, a.number, b.number));
  if (a.type == Type::text) return truth(compare(op, std::string_view(a.text), std::string_view(b.text)));
  return truth(compare(op, a.truth, b.truth));
}

// The functions a range or a limit is likely written with; the others are left to the machine.
Folded call(const Expr& e) {
  const std::string_view f = builtin(static_cast<std::uint8_t>(e.index)).name;
  const Constant& a = *e.args[0]->constant;
  if (f == "size" && a.type == Type::text) return number(static_cast<double>(a.text.size()));
  if (a.type != Type::num) return {};
  const double n = a.number;
  if (f == "abs") return number(std::fabs(n));
  if (f == "floor") return number(std::floor(n));
  if (f == "ceil") return number(std::ceil(n));
  if (f == "trunc") return number(std::trunc(n));
  if (f == "min" || f == "max") {
    const double m = e.args[1]->constant->number;
    return number(f == "min" ? (m < n ? m : n) : (m > n ? m : n));
  }
  return {};
}

Folded joined(const Expr& e) {
  std::string out;
  for (const ExprPtr& part : e.args) {
    const Constant& c = *part->constant;
    if (c.type == Type::num)
      append_number(out, c.number);
    else if (c.type == Type::boolean)
      out += c.truth ? "true" : "false";
    else
      out += c.text;
    // What doubles with every const would outgrow any file before the file's own limit is looked at.
    if (out.size() > 128 * 1024) return {std::nullopt, "this text is too long"};
  }
  return text(std::move(out));
}

}  // namespace

Folded fold(const Expr& e) {
  for (const ExprPtr& a : e.args)
    if (!a->constant) return {};
  switch (e.kind) {
    case ExprKind::number:
      return number(e.number);
    case ExprKind::boolean:
      return truth(e.truth);
    case ExprKind::text:
      return text(e.text);
    case ExprKind::joined:
      return joined(e);
    case ExprKind::negate:
      return number(-e.args[0]->constant->number);
    case ExprKind::logical_not:
      return truth(!e.args[0]->constant->truth);
    case ExprKind::logical_and:
      return truth(e.args[0]->constant->truth && e.args[1]->constant->truth);
    case ExprKind::logical_or:
      return truth(e.args[0]->constant->truth || e.args[1]->constant->truth);
    case ExprKind::conditional:
      return {e.args[e.args[0]->constant->truth ? 1 : 2]->constant, {}};
    case ExprKind::binary:
      return binary(e.op, *e.args[0]->constant, *e.args[1]->constant);
    case ExprKind::call:
      return e.meaning == Meaning::builtin && !e.args.empty() ? call(e) : Folded{};
    default:
      return {};
  }
}

}  // namespace sluice::vm
