// Statements.
#include <algorithm>

#include "vm/codegen_base.h"

namespace sluice::vm {
namespace {

// Whether `e` reads the local.
bool mentions(const Expr& e, std::uint32_t local) {
  if (e.meaning == Meaning::local && e.index == local) return true;
  const auto in = [&](const auto& part) { return part && mentions(*part, local); };
  if (std::any_of(e.args.begin(), e.args.end(), in)) return true;
  if (!e.query) return false;
  const std::vector<const Expr*> window = window_of(*e.query);
  return in(e.query->where) || std::any_of(window.begin(), window.end(), in);
}

// Expressions that write their register before they have read all they need.
bool writes_early(const Expr& e) {
  return e.kind == ExprKind::conditional || e.kind == ExprKind::coalesce || e.kind == ExprKind::logical_and ||
         e.kind == ExprKind::logical_or || e.kind == ExprKind::joined || e.kind == ExprKind::aggregate;
}

}  // namespace

void Generator::block(const Block& statements) {
  const std::size_t scope = scope_.size();
  for (const StmtPtr& s : statements) statement(*s);
  for (; scope_.size() > scope; scope_.pop_back()) release(locals_[scope_.back()]);
}

void Generator::statement(const Stmt& s) {
  at(s.at);
  switch (s.kind) {
    case StmtKind::let:
    case StmtKind::var:
      return local(s);
    case StmtKind::assign:
      return assign(s);
    case StmtKind::call: {
      const Expr& e = *s.value;
      const Window window = arguments(e.args);
      release(window);
      at(e.at);
      code_.emit(Op::call, kNoRegister, window.first, e.index);
      // Called for its effects: that it gives nothing is no failure.
      Label next;
      if (syntax_.functions[e.index].partial) code_.refer(Op::absent, 0, next);
      code_.bind(next);
      return;
    }
    case StmtKind::branch:
      return branch(s);
    case StmtKind::count_loop:
      return count_loop(s);
    case StmtKind::check: {
      Label good;
      branch_on(*s.value, true, good);
      fail(s);
      code_.bind(good);
      return;
    }
    case StmtKind::fail:
      return fail(s);
    case StmtKind::reply_value:
    case StmtKind::reply_record:
    case StmtKind::reply_nothing:
      return reply(s);
    case StmtKind::give:
      return give(s);
    case StmtKind::append:
    case StmtKind::splice:
    case StmtKind::delete_document:
      return write_document(s);
    case StmtKind::row_loop:
      return row_loop(s);
    case StmtKind::insert:
    case StmtKind::put:
      return insert(s);
    case StmtKind::update:
      return update(s);
    case StmtKind::delete_row:
      return delete_row(s);
  }
}

void Generator::local(const Stmt& s) {
  Reg r = operand(*s.value);
  // A second name for what never changes needs no register of its own.
  const bool shared = !r.owned && s.kind == StmtKind::let && s.value->kind == ExprKind::name;
  const bool source_changes = shared && locals_[s.value->index].owned;
  if (!r.owned && (!shared || source_changes)) {
    const Reg own{code_.take(register_type(*s.value)), true};
    code_.emit(Op::move, own.number, r.number);
    r = own;
  }
  locals_[s.local] = r;
  scope_.push_back(s.local);
}

template <class Read, class Store, class Clear>
void Generator::assign_stored(const Stmt& s, bool optional, Read read, Store store, Clear clear) {
  if (s.value->never) return clear();
  if (s.op) {
    const Reg before{code_.take(Type::num), true};
    read(before.number);
    may_be_absent(optional);
    const Reg by = operand(*s.value);
    release(before);
    release(by);
    const Reg r{code_.take(Type::num), true};
    at(s.op_at);
    arithmetic(*s.op, r.number, before.number, by.number);
    at(s.at);
    store(r.number);
    release(r);
    return;
  }
  // `s = if c then x else none`: what has no value clears it.
  Label none, end;
  if (optional) none_ = &none;
  const Reg r = operand(*s.value);
  none_ = nullptr;
  at(s.at);
  store(r.number);
  release(r);
  if (none.uses.empty()) return;
  code_.jump(end);
  code_.bind(none);
  clear();
  code_.bind(end);
}

void Generator::assign(const Stmt& s) {
  const Expr& t = *s.target;
  if (t.meaning == Meaning::doc) return write_document(s);
  if (t.meaning == Meaning::state)
    return assign_stored(
        s, t.absent, [&](unsigned r) { code_.emit_x(Op::gets, r, t.index); },
        [&](unsigned r) { code_.emit_x(Op::sets, r, t.index); },
        [&] { code_.emit_x(Op::clrs, 0, t.index); });
  if (t.meaning == Meaning::column) {
    const Reg row = operand(*t.args[0]);
    assign_stored(
        s, module_.tables[t.table].columns[t.index].slot.optional,
        [&](unsigned r) { code_.emit(Op::col, r, row.number, t.index); },
        [&](unsigned r) { code_.emit(Op::setcol, row.number, t.index, r); },
        [&] { code_.emit(Op::clrcol, row.number, t.index); });
    return release(row);
  }
  const unsigned to = locals_[t.index].number;
  if (s.op) {
    const Reg by = operand(*s.value);
    release(by);
    at(s.op_at);
    arithmetic(*s.op, to, to, by.number);
  } else if (writes_early(*s.value) && mentions(*s.value, t.index)) {
    const Reg r = operand(*s.value);
    code_.emit(Op::move, to, r.number);
    release(r);
  } else {
    into(*s.value, to);
  }
}

void Generator::branch(const Stmt& s) {
  Label no, end;
  branch_on(*s.value, false, no);
  block(s.body);
  if (s.otherwise.empty()) {
    code_.bind(no);
    return;
  }
  code_.jump(end);
  code_.bind(no);
  block(s.otherwise);
  code_.bind(end);
}

void Generator::count_loop(const Stmt& s) {
  const unsigned counter = code_.take_window({Type::num, Type::num});
  into(*s.first, counter);
  into(*s.last, counter + 1);
  if (code_.reachable()) {
    code_.emit_x(Op::forp, counter, s.rounds);
    const std::uint32_t head = code_.here();
    code_.emit_x(Op::forl, counter, s.rounds);
    Label exit;
    code_.refer(Op::absent, 0, exit);
    locals_[s.local] = {counter, false};
    inside_loop([&] { block(s.body); });
    at(s.at);
    code_.close_loop(head);
    code_.bind(exit);
  }
  code_.free_window(counter, 2);
}

void Generator::fail(const Stmt& s) {
  const unsigned fault = static_cast<unsigned>(s.fault);
  if (!code_.reachable()) return;
  if (!s.text) {
    code_.end(Op::fail, kNoRegister, fault);
    return;
  }
  const Reg r = operand(*s.text);
  at(s.at);
  code_.end(Op::fail, r.number, fault);
  release(r);
}

void Generator::cell(const Cell& c) {
  const std::uint16_t name = text_index(c.name.text);
  Label absent, end;
  const Reg r = with_absent(absent, [&] { return operand(*c.value); });
  code_.emit_x(Op::jfld, r.number, name);
  release(r);
  if (absent.uses.empty()) return;
  code_.jump(end);
  code_.bind(absent);
  code_.emit_x(Op::jnul, 0, name);
  code_.bind(end);
}

void Generator::reply(const Stmt& s) {
  if (s.kind == StmtKind::reply_nothing) {
    code_.end(Op::done);
    return;
  }
  if (s.kind == StmtKind::reply_record) {
    code_.emit(Op::jbeg);
    for (const Cell& c : s.cells) {
      at(c.name.span);
      // `none` alone: nothing behind it is reached but the null.
      cell(c);
    }
    at(s.at);
    code_.end(Op::replyj);
    return;
  }
  const Expr& e = *s.value;
  if (e.meaning == Meaning::field && e.type != Type::num) {
    code_.end(Op::replyf, e.index);
  } else if (e.meaning == Meaning::doc) {
    code_.end(Op::replyd);
  } else {
    const Reg r = operand(e);
    at(s.at);
    code_.end(e.type == Type::row ? Op::replyr : Op::replyv, r.number);
    release(r);
  }
}

void Generator::give(const Stmt& s) {
  if (!s.value) {
    code_.end(Op::ret, kNoRegister);
    return;
  }
  if (s.value->kind == ExprKind::none) {
    code_.end(Op::retabs);
    return;
  }
  const Reg r = operand(*s.value);
  at(s.at);
  code_.end(Op::ret, r.number);
  release(r);
}

void Generator::write_document(const Stmt& s) {
  switch (s.kind) {
    case StmtKind::delete_document:
      code_.emit(Op::docdel);
      break;
    case StmtKind::splice: {
      const unsigned first = code_.take_window({Type::num, Type::num, s.value->type});
      into(*s.first, first);
      into(*s.last, first + 1);
      into(*s.value, first + 2);
      at(s.at);
      code_.emit(Op::docspl, first);
      code_.free_window(first, 3);
      break;
    }
    default: {
      const Reg r = operand(*s.value);
      at(s.at);
      code_.emit(s.kind == StmtKind::append ? Op::docapp : Op::docset, r.number);
      release(r);
      break;
    }
  }
}

}  // namespace sluice::vm
