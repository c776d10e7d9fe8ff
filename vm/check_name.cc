// What a name means, and what stands behind its dot or in its brackets.
#include <algorithm>

#include "vm/builtin.h"
#include "vm/check_base.h"
#include "vm/names.h"

namespace sluice::vm {

std::string columns_in_words(std::size_t n) { return n == 1 ? "1 column" : std::to_string(n) + " columns"; }

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

// A field of the message, or the text of the text input.
bool Checker::is_field(std::string_view name) const {
  if (on_ && on_->line && on_->line->text == name) return true;
  return input_ && std::any_of(input_->fields.begin(), input_->fields.end(),
                               [&](const FieldSyntax& f) { return f.name.text == name; });
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
      e.table = local->type.table;
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
    if (!in_cells_) return complain(e.at, "`row` is used only in the cells of a table's view");
    e.meaning = Meaning::position;
    e.type = Type::num;
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
      complain(e.at, "`" + n + "` is a table",
               "a row of it is `" + n + "[key]`; over all of them, `for r in " + n + " { ... }`");
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
  if (failed_) return;
  if (of.never) return complain(of.span, "`none` is no value here");
  if (of.type != Type::row) {
    const std::string what = of.type == Type::text && e.text == "length"
                                 ? "write `size(...)` for bytes, `chars(...)` for characters"
                                 : "";
    return complain(e.at, with_article(of.type) + " has no `" + e.text + "`", what);
  }
  const auto column = find_column(module_->tables[of.table], {e.text, e.at});
  if (!column) return;
  const Slot& slot = module_->tables[of.table].columns[*column].slot;
  e.meaning = Meaning::column;
  e.index = *column;
  e.table = of.table;
  e.type = type_of(slot.base);
  e.absent = slot.optional;
}

const Table* Checker::find_table(const Name& name, std::uint32_t& index, std::string_view only) {
  const auto found = globals_.find(name.text);
  if (found != globals_.end() && found->second.meaning == Meaning::table) {
    index = found->second.index;
    if (table_known_[index]) return &module_->tables[index];
    // It was complained about where it stands.
    failed_ = true;
    return nullptr;
  }
  if (found != globals_.end() || find_local(name.text, nullptr) || is_field(name.text)) {
    complain(name.span, "`" + name.text + "` is not a table", std::string(only));
    return nullptr;
  }
  std::vector<std::string> known;
  for (const TableSyntax& t : syntax_.tables) known.push_back(t.name.text);
  const std::string near = nearest(name.text, known);
  complain(name.span, "there is no table called `" + name.text + "`",
           near.empty() ? "declare it: `table " + name.text + " { ... }`" : "did you mean `" + near + "`?");
  return nullptr;
}

// `t[key]`: the row, which may not be there.
void Checker::row_of(Expr& e) {
  if (not_known(e.at, e.text)) return;
  const Table* t = find_table({e.text, e.at}, e.table, "only rows are found by `[...]`");
  if (!t) return;
  if (e.args.size() != t->key.size()) {
    std::string all;
    for (const std::uint8_t k : t->key) all += (all.empty() ? "" : ", ") + t->columns[k].name;
    if (e.args.size() < t->key.size())
      return complain(e.span, "this is a part of the key (" + all + ")",
                      "one row is `" + e.text + "[" + all + "]`; over several, `for r in " + source_of(e.span) +
                          " { ... }`");
    return complain(e.args[t->key.size()]->span, "the key of `" + e.text + "` has " + columns_in_words(t->key.size()) +
                                                    ", not " + std::to_string(e.args.size()),
                    "write `" + e.text + "[" + all + "]`");
  }
  for (std::size_t i = 0; i < e.args.size() && !failed_; ++i) column_of(*e.args[i], *t, t->key[i]);
  e.meaning = Meaning::table;
  e.type = Type::row;
  e.absent = true;
}

// A value that is compared with a column.
void Checker::column_of(Expr& e, const Table& t, std::uint8_t column) {
  const Column& c = t.columns[column];
  value_of(e, type_of(c.slot.base), "`" + c.name + "` of `" + t.name + "` is");
}

}  // namespace sluice::vm
