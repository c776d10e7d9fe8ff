// What an expression means, and of which type it is.
#include <algorithm>

#include "vm/base/utf8.h"
#include "vm/builtin.h"
#include "vm/check_base.h"
#include "vm/fold.h"
#include "vm/names.h"

namespace sluice::vm {
namespace {

constexpr std::string_view kSameAnswer = "a view must give the same answer for the same data";

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

std::string_view type_word(Type t) {
  switch (t) {
    case Type::num:
      return "num";
    case Type::text:
      return "text";
    case Type::boolean:
      return "bool";
    default:
      return "bytes";
  }
}

}  // namespace

void Checker::no_tables(Span at) {
  // A module with a table has heard of it where the table stands.
  if (!syntax_.tables.empty() && at.offset != syntax_.tables.front().at.offset) {
    failed_ = true;
    return;
  }
  complain(at, "this version has no tables yet",
           "keep single values in `state`, and what belongs to a key in `documents`");
}

// `this is a text` with a hint that makes it the type wanted.
void Checker::wants(const Expr& e, std::string_view who, Type type) {
  if (failed_ || e.type == Type::none || e.type == type) return;
  std::string hint;
  // What is written out is simply written otherwise.
  if (e.constant)
    hint.clear();
  else if (type == Type::text && e.type == Type::bytes)
    hint = "write `text(...)`, which fails with `encoding` when it is not UTF-8";
  else if (type == Type::text)
    hint = "write it into a text: \"{...}\"";
  else if (type == Type::num && e.type == Type::text)
    hint = "write `num(...)`, which is absent when it is no number";
  else if (type == Type::boolean && e.type == Type::num)
    hint = "compare it, as in `x > 0`";
  complain(e.span, std::string(who) + " " + with_article(type) + ", and this is " + with_article(e.type),
           hint);
}

bool Checker::value_of(Expr& e, Type type, std::string_view who) {
  value(e);
  wants(e, who, type);
  return !failed_ && e.type == type;
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
    case ExprKind::aggregate:
    case ExprKind::count:
    case ExprKind::rank: {
      const auto found = globals_.find(e.text);
      const bool builtin_form = e.kind == ExprKind::aggregate && found == globals_.end();
      if (!builtin_form && (found == globals_.end() || found->second.meaning != Meaning::unknown)) {
        if (found == globals_.end() && !find_local(e.text, nullptr) && !is_field(e.text))
          unknown_name(e, e.text);
        else
          complain(e.at, "`" + e.text + "` is not a table",
                   e.kind == ExprKind::index ? "only rows are found by `[...]`"
                                             : "only rows are gone over with `for`");
      } else {
        no_tables(e.at);
      }
      break;
    }
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

std::vector<std::string> Checker::known_names() const {
  std::vector<std::string> known;
  if (place_ != Place::constant && body_) {
    for (std::uint32_t i : scope_) known.push_back(body_->locals[i].name);
    if (input_)
      for (const FieldSyntax& f : input_->fields) known.push_back(f.name.text);
    if (on_ && on_->line) known.push_back(on_->line->text);
    known.insert(known.end(), {"now", "seq", "doc"});
  }
  for (const auto& [name, global] : globals_) known.push_back(name);
  return known;
}

void Checker::unknown_name(const Expr& e, std::string_view text) {
  const std::string near = nearest(text, known_names());
  std::string hint;
  if (!near.empty())
    hint = "did you mean `" + near + "`?";
  else if (text == "null" || text == "nil" || text == "undefined")
    hint = "what has no value is `none`";
  else if (text == "line" && input_ && input_->kind == InputKind::text)
    hint = "name the text first: `on " + input_->name.text + " (line) { ... }`";
  complain(e.at, "there is nothing called `" + std::string(text) + "`", hint);
}

bool Checker::not_known(Span at, std::string_view what) {
  if (place_ != Place::constant) return false;
  complain(at, "`" + std::string(what) + "` is not known when the module is compiled",
           "use numbers, texts and consts");
  return true;
}

const Local* Checker::find_local(std::string_view name, std::uint32_t* index) const {
  for (auto i = scope_.rbegin(); i != scope_.rend(); ++i) {
    if (body_->locals[*i].name != name) continue;
    if (index) *index = *i;
    return &body_->locals[*i];
  }
  return nullptr;
}

bool Checker::document_allowed(Span at) {
  if (module_->documents.kind == DocumentKind::none) {
    complain(at, "this module has no documents", "declare `documents text`");
    return false;
  }
  if (place_ == Place::handler && input_ && input_->keyed_at.length != 0) return true;
  if (place_ == Place::handler && input_ && input_->kind == InputKind::message)
    complain(at, "`doc` is used only in handlers of keyed messages",
             "write `message " + input_->name.text + " keyed { ... }`");
  else if (place_ == Place::function)
    complain(at, "`doc` is used only in handlers of keyed messages", "pass it to the function as a text");
  else
    complain(at, "`doc` is used only in handlers of keyed messages");
  return false;
}

void Checker::name_expr(Expr& e) {
  const std::string& n = e.text;
  std::uint32_t index = 0;
  if (place_ != Place::constant) {
    if (const Local* local = find_local(n, &index)) {
      e.meaning = Meaning::local;
      e.index = index;
      e.type = local->type.type;
      return;
    }
    if (on_ && on_->line && on_->line->text == n) {
      e.meaning = Meaning::field;
      e.type = Type::text;
      return;
    }
    if (input_) {
      for (std::uint32_t i = 0; i < input_->fields.size(); ++i) {
        if (input_->fields[i].name.text != n) continue;
        e.meaning = Meaning::field;
        e.index = i;
        e.type = type_of(input_->fields[i].slot.base);
        return;
      }
    }
  }
  if (n == "now" || n == "seq") {
    if (not_known(e.at, n)) return;
    e.meaning = n == "now" ? Meaning::now : Meaning::seq;
    e.type = Type::num;
    return;
  }
  if (n == "doc") {
    if (not_known(e.at, n) || !document_allowed(e.at)) return;
    e.meaning = Meaning::doc;
    e.type = module_->documents.kind == DocumentKind::bytes ? Type::bytes : Type::text;
    e.absent = true;
    return;
  }
  if (n == "row") {
    complain(e.at, "`row` is used only in the cells of a table's view");
    return;
  }
  const auto found = globals_.find(n);
  if (found == globals_.end()) {
    if (is_builtin_name(n))
      complain(e.at, "`" + n + "` is a function", "call it: `" + n + "(...)`");
    else
      unknown_name(e, n);
    return;
  }
  const Global& g = found->second;
  e.meaning = g.meaning;
  e.index = g.index;
  switch (g.meaning) {
    case Meaning::constant: {
      const Constant* c = constant(g.index);
      if (!c) {
        // The const was complained about where it stands.
        failed_ = true;
        return;
      }
      e.type = c->type;
      e.constant = *c;
      return;
    }
    case Meaning::state: {
      if (not_known(e.at, n)) return;
      const SlotSyntax& slot = syntax_.states[g.index].slot;
      e.type = type_of(slot.base);
      e.absent = slot.optional;
      return;
    }
    case Meaning::function:
      complain(e.at, "`" + n + "` is a function", "call it: `" + n + "(...)`");
      return;
    default:
      no_tables(e.at);
      return;
  }
}

void Checker::member(Expr& e) {
  Expr& of = *e.args[0];
  if (of.kind == ExprKind::name && of.text == "doc" && !find_local("doc", nullptr)) {
    if (not_known(of.at, "doc") || !document_allowed(of.at)) return;
    if (e.text == "key") {
      e.meaning = Meaning::doc_key;
      e.type = Type::text;
    } else if (e.text == "revision") {
      e.meaning = Meaning::doc_revision;
      e.type = Type::num;
    } else {
      complain(e.at, "a document has no `" + e.text + "`", "it has `doc.key` and `doc.revision`");
    }
    return;
  }
  expr(of);
  if (of.type != Type::none) {
    const std::string what = of.type == Type::text && e.text == "length"
                                 ? "write `size(...)` for bytes, `chars(...)` for characters"
                                 : "";
    complain(e.at, with_article(of.type) + " has no `" + e.text + "`", what);
  } else if (of.never) {
    complain(of.span, "`none` is no value here");
  }
}

bool Checker::allow_chance(Span at, std::string_view what) {
  body_->chance = true;
  const bool show =
      place_ == Place::handler && input_ && input_->name.text == "show" && input_->keyed_at.length != 0;
  if (place_ != Place::view && !show) return true;
  complain(at, std::string(show ? "`show`" : "a view") + " cannot use `" + std::string(what) + "`",
           std::string(kSameAnswer));
  return false;
}

bool Checker::allow_write(Span at, std::string_view what) {
  body_->writes = true;
  const bool show =
      place_ == Place::handler && input_ && input_->name.text == "show" && input_->keyed_at.length != 0;
  if (place_ != Place::view && !show) return true;
  if (what.empty())
    complain(at, "`show` cannot change anything", "it answers GET, which must be safe to repeat");
  else
    complain(at,
             std::string(show ? "`show`" : "a view") + " cannot call `" + std::string(what) +
                 "`, which changes something",
             show ? "it answers GET, which must be safe to repeat" : std::string(kSameAnswer));
  return false;
}

void Checker::call(Expr& e) {
  const auto found = globals_.find(e.text);
  if (found != globals_.end()) {
    if (found->second.meaning == Meaning::function) return call_function(e, found->second.index);
    if (found->second.meaning == Meaning::unknown) return no_tables(e.at);
    return complain(e.at, "`" + e.text + "` is not a function");
  }
  if (is_builtin_name(e.text)) return call_builtin(e);
  // Forms over rows that look like calls.
  if (e.text == "count" || e.text == "sum" || e.text == "first" || e.text == "any" || e.text == "all" ||
      e.text == "total" || e.text == "rank")
    return no_tables(e.at);
  std::vector<std::string> known;
  for (const auto& [name, global] : globals_)
    if (global.meaning == Meaning::function) known.push_back(name);
  for (int i = 0; i < kBuiltins; ++i) known.emplace_back(builtin(static_cast<std::uint8_t>(i)).name);
  const std::string near = nearest(e.text, known);
  complain(e.at, "there is no function called `" + e.text + "`",
           near.empty() ? "" : "did you mean `" + near + "`?");
}

void Checker::call_function(Expr& e, std::uint32_t index) {
  if (not_known(e.at, e.text)) return;
  FnSyntax& f = syntax_.functions[index];
  e.meaning = Meaning::function;
  e.index = index;
  if (place_ == Place::function && index == fn_index_)
    return complain(e.at, "`" + e.text + "` calls itself",
                    "there is no recursion, so that every event ends; use a `for` with a limit");
  if (place_ == Place::function && index > fn_index_)
    return complain(
        e.at, "`" + e.text + "` is declared below",
        "a function calls only functions above it, so that every event ends; move `" + e.text + "` up");
  if (e.args.size() != f.parameters.size())
    return complain(e.at, "`" + e.text + "` takes " + std::to_string(f.parameters.size()) +
                              (f.parameters.size() == 1 ? " value, not " : " values, not ") +
                              std::to_string(e.args.size()));
  for (std::size_t i = 0; i < e.args.size() && !failed_; ++i) {
    if (i < f.types.size())
      value_of(*e.args[i], f.types[i].type, "`" + f.parameters[i].name.text + "` of `" + e.text + "` is");
    else
      value(*e.args[i]);
  }
  if (failed_) return;
  if (!f.known) {
    // Its head was complained about, so nothing more can be said here.
    failed_ = true;
    return;
  }
  body_->depth = std::max(body_->depth, f.body.depth + 1);
  if (body_->depth > kCallsDeep)
    return complain(e.at, "calls go more than " + std::to_string(kCallsDeep) + " deep here",
                    "let one function do the work of two");
  if (f.body.writes && !allow_write(e.at, e.text)) return;
  if (f.body.chance && !allow_chance(e.at, e.text)) return;
  e.type = f.type;
  e.absent = f.partial;
}

void Checker::call_builtin(Expr& e) {
  std::vector<Type> types;
  for (ExprPtr& a : e.args) {
    value(*a);
    if (failed_ || a->type == Type::none) return;
    types.push_back(a->type);
  }
  const Builtin* b =
      e.args.size() <= 4 ? find_builtin(e.text, types.data(), static_cast<int>(types.size())) : nullptr;
  if (!b) {
    std::vector<const Builtin*> same;
    for (int i = 0; i < kBuiltins; ++i)
      if (builtin(static_cast<std::uint8_t>(i)).name == e.text)
        same.push_back(&builtin(static_cast<std::uint8_t>(i)));
    const std::size_t arity = same[0]->arity;
    if (arity != types.size())
      return complain(e.at, "`" + e.text + "` takes " + std::to_string(arity) +
                                (arity == 1 ? " value, not " : " values, not ") +
                                std::to_string(types.size()));
    for (std::size_t i = 0; i < arity; ++i) {
      const bool fits = std::any_of(same.begin(), same.end(),
                                    [&](const Builtin* s) { return s->arguments[i] == types[i]; });
      if (fits) continue;
      if (same.size() == 1) return wants(*e.args[i], "`" + e.text + "` takes", same[0]->arguments[i]);
      std::string either;
      for (const Builtin* s : same) either += (either.empty() ? "" : " or ") + with_article(s->arguments[i]);
      return complain(e.args[i]->span,
                      "`" + e.text + "` takes " + either + ", and this is " + with_article(types[i]));
    }
    return complain(e.at, "`" + e.text + "` does not take these types together");
  }
  if (b->chance && !not_known(e.at, e.text) && !allow_chance(e.at, e.text)) return;
  e.meaning = Meaning::builtin;
  e.index = b->number;
  e.type = b->result;
  e.absent = b->partial;
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
    return complain(e.at, with_article(left) + " and " + with_article(right) + " are never compared",
                    left == Type::bytes || right == Type::bytes ? "write `text(...)` of the bytes"
                                                                : "both sides have one type");
  if (left == Type::bytes)
    return complain(e.at, "bytes are not compared", "compare `text(...)` of them, or `hash`");
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
  if (!right.never && left.type != right.type && left.type != Type::none && right.type != Type::none)
    return complain(right.span, "both sides of `??` have one type, and this is " + with_article(right.type),
                    "before it is " + with_article(left.type));
  e.type = left.type;
  e.absent = right.absent;
}

void Checker::conditional(Expr& e) {
  condition(*e.args[0]);
  Expr& yes = *e.args[1];
  Expr& no = *e.args[2];
  if (!failed_) expr(yes);
  if (!failed_) expr(no);
  if (failed_) return;
  if (!yes.never && !no.never && yes.type != no.type && yes.type != Type::none && no.type != Type::none)
    return complain(no.span, "both sides of `else` have one type, and this is " + with_article(no.type),
                    "before it is " + with_article(yes.type));
  e.never = yes.never && no.never;
  e.type = yes.never ? no.type : yes.type;
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
      return complain(part->span, "a text cannot hold " + std::string(type_word(part->type)),
                      "write `text(...)` of them");
    if (part->type == Type::none) return;
  }
  e.type = Type::text;
}

}  // namespace sluice::vm
