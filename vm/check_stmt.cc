// What statements may do, and whether each can be reached.
#include <algorithm>

#include "vm/check_base.h"
#include "vm/names.h"

namespace sluice::vm {

bool Checker::block(Block& statements) {
  const std::size_t scope = scope_.size();
  bool open = true;
  for (StmtPtr& s : statements) {
    if (failed_) break;
    if (!open) {
      complain(s->at, "this is never reached", "what stands before it always ends here");
      break;
    }
    open = statement(*s);
  }
  scope_.resize(scope);
  return open;
}

bool Checker::statement(Stmt& s) {
  switch (s.kind) {
    case StmtKind::let:
    case StmtKind::var:
      local(s);
      return true;
    case StmtKind::assign:
      assign(s);
      return true;
    case StmtKind::call:
      effect(s);
      return true;
    case StmtKind::branch:
      return branch(s);
    case StmtKind::count_loop:
      return count_loop(s);
    case StmtKind::row_loop:
      row_loop(s);
      return true;
    case StmtKind::check:
      condition(*s.value);
      fault_text(s);
      return true;
    case StmtKind::fail:
      fault_text(s);
      return false;
    case StmtKind::reply_value:
    case StmtKind::reply_record:
    case StmtKind::reply_nothing:
      reply(s);
      return false;
    case StmtKind::give:
      give(s);
      return false;
    case StmtKind::append:
    case StmtKind::splice:
    case StmtKind::delete_document:
      document_write(s);
      return true;
    case StmtKind::insert:
    case StmtKind::put:
      insert(s);
      return true;
    case StmtKind::update:
      update(s);
      return true;
    case StmtKind::delete_row:
      delete_row(s);
      return true;
  }
  return true;
}

std::optional<std::uint32_t> Checker::new_local(const Name& name, RegisterType type,
                                                bool changeable) {
  if (failed_ || hides(name)) return std::nullopt;
  if (is_field(name.text)) {
    complain(name.span, "`" + name.text + "` hides the field of that name", "choose another name");
    return std::nullopt;
  }
  if (find_local(name.text, nullptr)) {
    complain(name.span, "there is already a local called `" + name.text + "`", "choose another name");
    return std::nullopt;
  }
  const std::uint32_t index = static_cast<std::uint32_t>(body_->locals.size());
  body_->locals.push_back({name.text, name.span, type, changeable});
  scope_.push_back(index);
  return index;
}

void Checker::local(Stmt& s) {
  value(*s.value);
  if (failed_ || s.value->type == Type::none) return;
  if (const auto index = new_local(s.name, register_type(*s.value), s.kind == StmtKind::var)) s.local = *index;
}

// A call for what it does.
void Checker::effect(Stmt& s) {
  Expr& e = *s.value;
  effect_ = e.kind == ExprKind::call;
  expr(e);
  effect_ = false;
  if (e.meaning != Meaning::function)
    complain(e.span, "this does nothing with what `" + e.text + "` gives", "write `let x = ...`");
}

void Checker::assign(Stmt& s) {
  Expr& t = *s.target;
  if (t.kind == ExprKind::member) return assign_column(s);
  if (t.kind != ExprKind::name)
    return complain(t.span, "this cannot be set", "a state, a column, a `var` or `doc` can");
  if (t.text == "doc") return document_write(s);
  const auto found = globals_.find(t.text);
  if (found != globals_.end() && found->second.meaning == Meaning::state)
    return assign_state(s, found->second.index);
  expr(t);
  if (failed_) return;
  if (t.meaning == Meaning::local) {
    const Local& l = body_->locals[t.index];
    if (!l.changeable)
      return complain(t.span, "`" + t.text + "` does not change",
                      l.type.type == Type::row ? "set its columns: `" + t.text + ".column = ...`"
                                               : "declare it with `var` to change it");
    value(*s.value);
    return assign_to(s, l.type, t.text);
  }
  if (t.meaning == Meaning::field)
    return complain(t.span, "a field of the request does not change",
                    "copy it first: `var x = " + t.text + "`");
  complain(t.span, "`" + t.text + "` cannot be set", "a state, a column, a `var` or `doc` can");
}

void Checker::assign_state(Stmt& s, std::uint32_t index) {
  Expr& t = *s.target;
  const SlotSyntax& slot = syntax_.states[index].slot;
  t.meaning = Meaning::state;
  t.index = index;
  t.type = type_of(slot.base);
  t.absent = slot.optional;
  if (!allow_write(t.at, {})) return;
  expr(*s.value);
  if (failed_) return;
  if (s.value->never) return set_none(s, slot.optional, t.text);
  assign_to(s, t.type, t.text);
}

// `s = none`
void Checker::set_none(const Stmt& s, bool optional, const std::string& what) {
  if (s.op)
    complain(s.value->span, "`none` is no value here", "write `" + what + " = none`");
  else if (!optional)
    complain(s.value->span, "`" + what + "` always has a value",
             "write `?` behind its type to let it have none");
}

// The value is checked and is not `none`.
void Checker::assign_to(Stmt& s, RegisterType type, std::string_view what) {
  const Expr& v = *s.value;
  if (failed_ || v.type == Type::none) return;
  if (s.op) {
    if (*s.op == Operator::add && (type == Type::text || v.type == Type::text))
      return complain(s.op_at, "texts are not added with `+`", "write them together: \"{a}{b}\"");
    if (type != Type::num)
      return complain(s.target->span,
                      "only a num is counted with, and `" + std::string(what) + "` is " + kind_of(type));
  }
  wants(v, "`" + std::string(what) + "` is", type);
}

void Checker::condition(Expr& e) { value_of(e, Type::boolean, "a condition is"); }

bool Checker::branch(Stmt& s) {
  condition(*s.value);
  if (failed_) return true;
  const bool yes = block(s.body);
  const bool no = s.otherwise.empty() ? true : block(s.otherwise);
  return yes || no;
}

bool Checker::count_loop(Stmt& s) {
  value_of(*s.first, Type::num, "a loop counts from");
  value_of(*s.last, Type::num, "a loop counts to");
  if (failed_) return true;
  if (const auto rounds = known_whole(s.limit, 1, kLoopMax, "a limit")) s.rounds = *rounds;
  if (failed_) return true;
  if (!deeper(s.at)) return true;
  const std::size_t scope = scope_.size();
  const auto index = new_local(s.name, Type::num, false);
  if (!index) return true;
  s.local = *index;
  ++loops_;
  block(s.body);
  --loops_;
  scope_.resize(scope);
  return true;
}

void Checker::fault_text(Stmt& s) {
  if (s.text && !failed_) value_of(*s.text, Type::text, "what a fault says is");
}

void Checker::reply(Stmt& s) {
  if (place_ == Place::function)
    return complain(s.at, "a function cannot reply",
                    "give the value with `return`, and reply in the handler");
  if (on_ && (on_->start || (input_ && input_->kind == InputKind::timer)))
    return complain(s.at, "nobody asked, so `on " + on_->name.text + "` cannot reply", "leave out the reply");
  if (s.kind == StmtKind::reply_record) return cells(s.cells, false);
  if (s.kind != StmtKind::reply_value) return;
  value(*s.value);
  if (!failed_ && s.value->type == Type::bytes && s.value->meaning != Meaning::field &&
      s.value->meaning != Meaning::doc)
    complain(s.value->span, "only a field or `doc` is replied as bytes",
             "reply the field itself, or `text(...)` of the bytes");
}

// Of a record, or of a row in a table's view.
void Checker::cells(std::vector<Cell>& cells, bool of_view) {
  const std::string_view what = of_view ? "row" : "record", holder = of_view ? "a cell" : "a record";
  for (std::size_t i = 0; i < cells.size() && !failed_; ++i) {
    const Cell& c = cells[i];
    for (std::size_t j = 0; j < i; ++j)
      if (cells[j].name.text == c.name.text)
        return complain(c.name.span, "there is already a `" + c.name.text + "` in this " + std::string(what),
                        "give it another name: `name: ...`");
    expr(*c.value);
    if (failed_ || c.value->never) continue;
    if (c.value->type == Type::bytes)
      complain(c.value->span, std::string(holder) + " cannot hold bytes", "write `text(...)` of them");
    if (c.value->type == Type::row)
      complain(c.value->span, std::string(holder) + " cannot hold a row",
               "take a column of it: `" + source_of(c.value->span) + ".column`");
  }
}

void Checker::give(Stmt& s) {
  if (place_ != Place::function)
    return complain(s.at, "a handler does not return", "answer with `reply ...`");
  if (!s.value) {
    if (fn_->result)
      complain(s.at, "`" + fn_->name.text + "` gives " + with_article(fn_->type),
               "write `return` and the value");
    return;
  }
  expr(*s.value);
  if (failed_) return;
  if (!fn_->result)
    return complain(s.value->span, "`" + fn_->name.text + "` gives nothing",
                    "declare what it gives: `fn " + fn_->name.text + "(...): num { ... }`");
  if (s.value->never) {
    if (!fn_->partial)
      complain(s.value->span, "`" + fn_->name.text + "` always gives a value",
               "write `" + fn_->result->text + "?` to let it give none");
    return;
  }
  wants(*s.value, "`" + fn_->name.text + "` gives", fn_->type);
}

// What a document is given: texts for texts, either for bytes.
void Checker::content(Expr& e) {
  value(e);
  if (failed_ || (module_->documents.kind == DocumentKind::bytes && e.type == Type::bytes)) return;
  wants(e, "a document holds", Type::text);
}

void Checker::document_write(Stmt& s) {
  const Span at = s.kind == StmtKind::assign ? s.target->span : s.at;
  if (!document_allowed(at) || !allow_write(at, {})) return;
  switch (s.kind) {
    case StmtKind::assign:
      if (s.op)
        return complain(s.op_at, "a document is not counted with", "write `append doc ...` to add to it");
      if (s.value->kind == ExprKind::none)
        return complain(s.value->span, "a document is not set to none", "write `delete doc`");
      s.target->meaning = Meaning::doc;
      content(*s.value);
      break;
    case StmtKind::append:
      content(*s.value);
      break;
    case StmtKind::splice:
      if (value_of(*s.first, Type::num, "a document is spliced at") &&
          value_of(*s.last, Type::num, "what is removed is"))
        content(*s.value);
      break;
    default:
      break;
  }
}

}  // namespace sluice::vm
