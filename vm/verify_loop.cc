// Loops: over numbers (FORP, FORL) and over rows (OPEN, NEXT), closed by the one instruction that goes back.
// Source: design module.md 3.5, points 3 and 4.
#include "vm/verify_code.h"

namespace sluice::vm {

bool CodeCheck::step_loop(Word w) {
  const unsigned a = a_of(w), b = b_of(w), x = x_of(w);
  switch (op_of(w)) {
    case Op::forp: {
      if (x == 0 || x > kLoopMax) return refuse("a loop's limit is not 1 to 10000");
      if (pc_ + 1 >= code_.size() || code_[pc_ + 1] != word_x(Op::forl, a, x)) return refuse("no FORL of its own follows");
      if (jumps_.contains(pc_ + 1)) return refuse("a jump leads into the loop");
      return need(a, Type::num) && need(a + 1, Type::num) && is_free(a) && is_free(a + 1) && done();
    }
    case Op::forl: {
      if (pc_ == 0 || code_[pc_ - 1] != word_x(Op::forp, a, x)) return refuse("no FORP of its own is before it");
      Loop loop;
      loop.limit = x;
      loop.own = a;
      loop.owned = 2;
      return enter_loop(loop, a);
    }
    case Op::next: {
      if (!zero(c_of(w))) return false;
      if (pc_ == 0 || op_of(code_[pc_ - 1]) != Op::open || a_of(code_[pc_ - 1]) != b)
        return refuse("no OPEN of its own is before it");
      const Scan& scan = m_.scans[c_of(code_[pc_ - 1])];
      if (!typed(a, {Type::row, scan.table}) || !is_free(a)) return false;
      Loop loop;
      loop.limit = scan.limit;
      loop.own = b;
      loop.owned = 1;
      loop.streams = scan.streams;
      if (!enter_loop(loop, a)) return false;
      reads_table(scan.table, 1);
      return true;
    }
    default: return close_loop(w);
  }
}

// At a loop's head, which gives register `given` and has an ABSENT that goes behind the LOOP.
bool CodeCheck::enter_loop(Loop loop, unsigned given) {
  if (loops_.size() == kNesting) return refuse("loops are more than 4 deep");
  if (pc_ + 1 >= code_.size() || op_of(code_[pc_ + 1]) != Op::absent) return refuse("no ABSENT follows");
  const Word absent = code_[pc_ + 1];
  const std::uint32_t exit = x_of(absent);
  if (a_of(absent) != 0) return refuse("an operand that is not used is not 0");
  if (exit < pc_ + 3 || exit >= code_.size() || code_[exit - 1] != word_x(Op::loop, 0, pc_))
    return refuse("its ABSENT does not go behind its LOOP");
  if (!loops_.empty() && exit >= loops_.back().exit) return refuse("goes on behind the loop around it");
  const auto inside = jumps_.lower_bound(pc_);
  if (inside != jumps_.end() && inside->first < exit) return refuse("a jump leads into the loop");
  loop.head = pc_;
  loop.exit = exit;
  loop.turn = {flat_fuel(op_of(code_[pc_])) + flat_fuel(Op::absent)};
  loop.spent = cost_;
  loop.before = now_;
  now_.fresh[loops_.size()] = {};
  loops_.push_back(std::move(loop));
  now_.add(given);
  cost_ = {};
  pc_ += 2;
  return true;
}

bool CodeCheck::close_loop(Word w) {
  if (loops_.empty() || loops_.back().exit != pc_ + 1 || loops_.back().head != x_of(w))
    return refuse("LOOP closes no open loop");
  if (!zero(a_of(w))) return false;
  Loop& loop = loops_.back();
  Path after = loop.before;
  if (live_) {
    for (unsigned r = 0; r < f_.registers.size(); ++r)
      if (loop.carried.has(r) && !now_.set.has(r)) return refuse("register " + std::to_string(r) + " may have no value in the next round");
    spend({flat_fuel(Op::loop)});
    loop.body.most(cost_);
    after.meet(now_);
  }
  after.remove(a_of(code_[loop.head]));
  cost_ = loop.spent;
  spend(loop.turn.by(std::uint64_t{loop.limit} + 1));
  spend(loop.body.by(loop.limit));
  const std::uint32_t exit = loop.exit;
  loops_.pop_back();
  live_ = false;
  return jump(exit, after) && done();
}

}  // namespace sluice::vm
