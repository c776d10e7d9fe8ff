// Loops over the rows of a query, and what is computed in one.
#include <algorithm>

#include "vm/builtin.h"
#include "vm/codegen_base.h"

namespace sluice::vm {

unsigned Generator::scan_index(const Query& q) {
  const auto bound = [](const ExprPtr& e, bool excluded) {
    return !e ? Bound::none : excluded ? Bound::excluding : Bound::including;
  };
  Scan scan;
  scan.table = static_cast<std::uint8_t>(q.table_index);
  scan.order = static_cast<std::uint8_t>(q.order);
  scan.prefix = static_cast<std::uint8_t>(q.group.size());
  scan.low = bound(q.low, q.low_excluded);
  scan.high = bound(q.high, q.high_excluded);
  scan.descending = q.desc_at.length != 0;
  scan.streams = q.streams;
  scan.limit = q.rows;
  const auto found = std::find(module_.scans.begin(), module_.scans.end(), scan);
  if (found != module_.scans.end()) return static_cast<unsigned>(found - module_.scans.begin());
  if (module_.scans.size() == kScansMax) {
    complaints_.push_back({q.span, "a module has at most 256 different queries",
                           "let a function go over the same rows"});
    return 0;
  }
  module_.scans.push_back(scan);
  return static_cast<unsigned>(module_.scans.size() - 1);
}

bool Generator::open(const Query& q, Rows& rows) {
  const Window window = arguments(window_of(q));
  release(window);
  if (!code_.reachable()) return false;
  rows.cursor = code_.take({Type::cursor, q.table_index});
  rows.row = code_.take({Type::row, q.table_index});
  at(q.span);
  code_.emit(Op::open, rows.cursor, window.first, scan_index(q));
  rows.head = code_.here();
  code_.emit(Op::next, rows.row, rows.cursor);
  code_.refer(Op::absent, 0, rows.exit);
  return true;
}

void Generator::close(Rows& rows, Span at_loop) {
  at(at_loop);
  code_.close_loop(rows.head);
  code_.bind(rows.exit);
  code_.free(rows.cursor);
  code_.free(rows.row);
}

void Generator::row_loop(const Stmt& s) {
  const Query& q = *s.query;
  Rows rows;
  if (!open(q, rows)) return;
  locals_[s.local] = {rows.row, false};
  Label next;
  inside_loop([&] {
    if (q.where) branch_on(*q.where, false, next);
    block(s.body);
  });
  code_.bind(next);
  close(rows, s.at);
}

// The number of rows, as the table keeps it.
Generator::Reg Generator::kept(const Query& q, std::optional<unsigned> target) {
  const Table& t = module_.tables[q.table_index];
  const auto read = [&](unsigned to) {
    if (kept_count(q, t) == Kept::table) {
      code_.emit_x(Op::count, to, q.table_index);
      return;
    }
    const Window group = arguments(window_of(q));
    release(group);
    at(q.span);
    code_.emit(Op::gcount, to, group.first, q.table_index);
  };
  if (q.rows == 0) {
    const Reg to = destination(target, Type::num);
    read(to.number);
    return to;
  }
  // `limit` counts no further.
  const unsigned pair = code_.take_window({Type::num, Type::num});
  read(pair);
  number_constant(q.rows, pair + 1);
  code_.free_window(pair, 2);
  const Reg to = destination(target, Type::num);
  constexpr Type kNumbers[] = {Type::num, Type::num};
  code_.emit(Op::builtin, to.number, pair, find_builtin("min", kNumbers, 2)->number);
  return to;
}

// Without the flag there is nothing.
void Generator::absent_unless(unsigned flag) {
  if (absent_) {
    code_.refer(Op::jf, flag, *absent_);
    return;
  }
  Label there;
  code_.refer(Op::jt, flag, there);
  code_.end(Op::fail, kNoRegister, static_cast<unsigned>(Fault::not_found));
  code_.bind(there);
}

// A row that `where` lets through, added to what there is.
void Generator::accumulate(const Expr& e, unsigned to, std::optional<unsigned> have, Label& next) {
  const Expr& v = *e.args[0];
  if (e.text == "any" || e.text == "all") {
    const bool any = e.text == "any";
    branch_on(v, !any, next);
    code_.emit(Op::boolean, to, any ? 1 : 0);
    return;
  }
  if (e.text == "sum") {
    const Reg r = operand(v);
    at(e.at);
    code_.emit(Op::add, to, to, r.number);
    release(r);
    return;
  }
  if (e.text == "first" || e.query->rows == 1) {
    // A register that may be left without a value is no register to give one in after the loop.
    if (absent_) {
      const Reg r = operand(v);
      code_.emit(Op::move, to, r.number);
      release(r);
    } else {
      into(v, to);
    }
  } else {
    const Reg r = operand(v);
    Label better;
    at(e.at);
    code_.refer(Op::jf, *have, better);
    const unsigned less = code_.take(Type::boolean);
    const bool least = e.text == "min";
    code_.emit(e.type == Type::num ? Op::ltn : Op::ltt, less, least ? r.number : to, least ? to : r.number);
    code_.refer(Op::jf, less, next);
    code_.free(less);
    code_.bind(better);
    code_.emit(Op::move, to, r.number);
    release(r);
  }
  code_.emit(Op::boolean, *have, 1);
}

Generator::Reg Generator::aggregate(const Expr& e, std::optional<unsigned> target) {
  const Query& q = *e.query;
  const bool counts = e.text == "count";
  if (counts && kept_count(q, module_.tables[q.table_index]) != Kept::no) return kept(q, target);
  const Reg to = destination(target, e.type);
  if (e.text == "all")
    code_.emit(Op::boolean, to.number, 1);
  else
    blank(e.type, to.number);
  const bool one = q.rows == 1;
  // Flags, because no jump leaves a loop: whether a row was there, and whether one had no value.
  std::optional<unsigned> have, gone, step;
  if (e.text == "first" || e.text == "min" || e.text == "max") have = code_.take(Type::boolean);
  const bool absent_inside = (q.where && q.where->absent) || (!counts && e.args[0]->absent);
  const bool passed_on = absent_ && absent_inside;
  if (passed_on && !(have && one)) gone = code_.take(Type::boolean);
  if (counts) step = code_.take(Type::num);
  if (have) code_.emit(Op::boolean, *have, 0);
  if (gone) code_.emit(Op::boolean, *gone, 0);
  if (step) number_constant(1, *step);

  Rows rows;
  if (open(q, rows)) {
    Label next, absent;
    Label* const outer = absent_;
    absent_ = passed_on ? &absent : nullptr;
    if (e.kind == ExprKind::aggregate) locals_[e.index] = {rows.row, false};
    if (!one && gone) code_.refer(Op::jt, *gone, next);
    if (!one && e.text == "any") code_.refer(Op::jt, to.number, next);
    if (!one && e.text == "all") code_.refer(Op::jf, to.number, next);
    if (!one && e.text == "first") code_.refer(Op::jt, *have, next);
    if (q.where) branch_on(*q.where, false, next);
    if (counts)
      code_.emit(Op::add, to.number, to.number, *step);
    else
      accumulate(e, to.number, have, next);
    absent_ = outer;
    if (!absent.uses.empty()) {
      Label end;
      code_.jump(end);
      code_.bind(absent);
      if (gone) code_.emit(Op::boolean, *gone, 1);
      code_.bind(end);
    }
    code_.bind(next);
    close(rows, e.at);
  }
  if (gone) code_.refer(Op::jt, *gone, *absent_);
  if (have) absent_unless(*have);
  for (const std::optional<unsigned>& flag : {have, gone, step})
    if (flag) code_.free(*flag);
  return to;
}

}  // namespace sluice::vm
