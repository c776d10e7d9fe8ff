// Statements.
#include <algorithm>

#include "vm/check_query.h"
#include "vm/codegen_base.h"

namespace sluice::vm {
namespace {

// Whether `e` reads the local.
bool mentions(const Expr& e, std::uint32_t local) {
  if (e.meaning == Meaning::local && e.index == local) return true;
  return std::any_of(e.args.begin(), e.args.end(), [&](const ExprPtr& a) { return mentions(*a, local); });
}

// Expressions that write their register before they have read all they need.
bool writes_early(const Expr& e) {
  return e.kind == ExprKind::conditional || e.kind == ExprKind::coalesce || e.kind == ExprKind::logical_and ||
         e.kind == ExprKind::logical_or || e.kind == ExprKind::joined;
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
    case StmtKind::insert:
    case StmtKind::put:
    case StmtKind::update:
    case StmtKind::delete_row:
      return;
  }
}

void Generator::local(const Stmt& s) {
  Reg r = operand(*s.value);
  // A second name for what never changes needs no register of its own.
  const bool shared = !r.owned && s.kind == StmtKind::let && s.value->kind == ExprKind::name;
  const bool source_changes = shared && locals_[s.value->index].owned;
  if (!r.owned && (!shared || source_changes)) {
    const Reg own{code_.take(s.value->type), true};
    code_.emit(Op::move, own.number, r.number);
    r = own;
  }
  locals_[s.local] = r;
  scope_.push_back(s.local);
}

void Generator::assign(const Stmt& s) {
  const Expr& t = *s.target;
  if (t.meaning == Meaning::doc) return write_document(s);
  if (t.meaning == Meaning::state) {
    if (s.value->kind == ExprKind::none) {
      code_.emit_x(Op::clrs, 0, t.index);
      return;
    }
    Reg r;
    if (s.op) {
      const Reg before{code_.take(Type::num), true};
      code_.emit_x(Op::gets, before.number, t.index);
      may_be_absent(t.absent);
      const Reg by = operand(*s.value);
      release(before);
      release(by);
      r = {code_.take(Type::num), true};
      at(s.op_at);
      arithmetic(*s.op, r.number, before.number, by.number);
    } else {
      // `s = if c then x else none`: what has no value clears the state.
      Label none, end;
      if (t.absent) none_ = &none;
      r = operand(*s.value);
      none_ = nullptr;
      at(s.at);
      code_.emit_x(Op::sets, r.number, t.index);
      release(r);
      if (none.uses.empty()) return;
      code_.jump(end);
      code_.bind(none);
      code_.emit_x(Op::clrs, 0, t.index);
      code_.bind(end);
      return;
    }
    at(s.at);
    code_.emit_x(Op::sets, r.number, t.index);
    release(r);
    return;
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
    // No jump leaves a loop, so what is absent inside ends the function from inside.
    Label absent;
    Label* const outer = absent_;
    if (in_partial_) absent_ = &absent;
    block(s.body);
    absent_ = outer;
    if (!absent.uses.empty()) {
      Label next;
      code_.jump(next);
      code_.bind(absent);
      code_.end(Op::retabs);
      code_.bind(next);
    }
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
    code_.end(Op::replyv, r.number);
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
