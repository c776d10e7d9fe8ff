// Calls: of functions, of the language's own, and of totals.
#include <algorithm>
#include <utility>

#include "vm/builtin.h"
#include "vm/check_base.h"
#include "vm/names.h"

namespace sluice::vm {
namespace {

constexpr std::string_view kSameAnswer = "a view must give the same answer for the same data";

}  // namespace

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
    return complain(e.at, "`" + e.text + "` is not a function");
  }
  effect_ = false;
  if (is_builtin_name(e.text)) return call_builtin(e);
  if (e.text == "total") return kept_total(e);
  // Forms over rows that are not calls.
  if (e.text == "rank")
    return complain(e.at, "`rank` needs an index", "write `rank(t[key] by index)`");
  if (e.text == "count")
    return complain(e.at, "`count` counts the rows of a table", "write `count(t)` or `count(t[...] limit 100)`");
  if (e.text == "sum" || e.text == "first" || e.text == "any" || e.text == "all")
    return complain(e.at, "`" + e.text + "` goes over rows", "write `" + e.text + "(... for r in t)`");
  std::vector<std::string> known;
  for (const auto& [name, global] : globals_)
    if (global.meaning == Meaning::function) known.push_back(name);
  for (int i = 0; i < kBuiltins; ++i) known.emplace_back(builtin(static_cast<std::uint8_t>(i)).name);
  const std::string near = nearest(e.text, known);
  complain(e.at, "there is no function called `" + e.text + "`",
           near.empty() ? "" : "did you mean `" + near + "`?");
}

void Checker::call_function(Expr& e, std::uint32_t index) {
  const bool effect = std::exchange(effect_, false);
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
      value_of(*e.args[i], f.types[i], "`" + f.parameters[i].name.text + "` of `" + e.text + "` is");
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
  body_->writes_tables |= f.body.writes_tables;
  if (f.type == Type::none && !effect)
    return complain(e.span, "`" + e.text + "` gives nothing",
                    "declare what it gives: `fn " + e.text + "(...): num { ... }`");
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
                      "`" + e.text + "` takes " + either + ", and this is " + kind_of(*e.args[i]));
    }
    return complain(e.at, "`" + e.text + "` does not take these types together");
  }
  if (b->chance && !not_known(e.at, e.text) && !allow_chance(e.at, e.text)) return;
  e.meaning = Meaning::builtin;
  e.index = b->number;
  e.type = b->result;
  e.absent = b->partial;
}

// `total(table.name, groups)`: a count or sum that the table keeps.
void Checker::kept_total(Expr& e) {
  if (not_known(e.at, e.text)) return;
  const Expr* which = e.args.empty() ? nullptr : e.args[0].get();
  if (!which || which->kind != ExprKind::member || which->args[0]->kind != ExprKind::name)
    return complain(which ? which->span : e.at, "`total` begins with the total it reads",
                    "write `total(table.name, ...)`");
  const Table* t = find_table({which->args[0]->text, which->args[0]->span}, e.table, "only tables keep totals");
  if (!t) return;
  const auto found = std::find_if(t->totals.begin(), t->totals.end(),
                                  [&](const Total& one) { return one.name == which->text; });
  if (found == t->totals.end()) {
    std::vector<std::string> known;
    for (const Total& one : t->totals) known.push_back(one.name);
    const std::string near = nearest(which->text, known);
    return complain(which->at, "`" + t->name + "` keeps no total `" + which->text + "`",
                    near.empty() ? "declare it in the table: `total " + which->text + " count by ...`"
                                 : "did you mean `" + near + "`?");
  }
  if (e.args.size() - 1 != found->by.size()) {
    std::string groups;
    for (const std::uint8_t c : found->by) groups += ", " + t->columns[c].name;
    const std::string written = "`total(" + t->name + "." + found->name + groups + ")`";
    return complain(e.span, "`" + t->name + "." + found->name + "` is kept by " +
                                (found->by.empty() ? "nothing" : columns_in_words(found->by.size())) + ", not " +
                                std::to_string(e.args.size() - 1),
                    "write " + written);
  }
  for (std::size_t i = 0; i < found->by.size() && !failed_; ++i) column_of(*e.args[i + 1], *t, found->by[i]);
  e.meaning = Meaning::total;
  e.index = module_->total_number(e.table, static_cast<std::uint32_t>(found - t->totals.begin()));
  e.type = Type::num;
  // An exact sum of nums can be beyond the largest of them.
  e.absent = found->sum && t->columns[found->column].slot.base == Base::num;
}

}  // namespace sluice::vm
