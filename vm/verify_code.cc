// Proves each function in one pass over its words, and finds the bound of what it costs.
//
// Registers have one type for the whole function, so nothing is joined but a set of registers that surely have a value:
// at a forward jump it is intersected into the target's. Loops add nothing on the way back (their body starts with less
// than it ends with), so there is no second pass. Costs go along the same paths and take the larger one where they meet.
// Source: design module.md 3.5.
#include <algorithm>
#include <array>
#include <map>

#include "vm/builtin.h"
#include "vm/verify.h"

namespace sluice::vm {
namespace {
constexpr std::uint32_t kLoopMax = 10'000;
constexpr std::size_t kNesting = 4;
constexpr unsigned kFrames = 8;        // functions that are running at once, the handler included
constexpr unsigned kRecord = 255;      // the bit of a record that is being built

// Registers that surely have a value, and whether a record surely was begun.
struct Assigned {
  std::array<std::uint64_t, 4> bits{};
  void add(unsigned i) { bits[i / 64] |= std::uint64_t{1} << (i % 64); }
  void remove(unsigned i) { bits[i / 64] &= ~(std::uint64_t{1} << (i % 64)); }
  bool has(unsigned i) const { return (bits[i / 64] >> (i % 64) & 1) != 0; }
  void meet(const Assigned& other) {
    for (std::size_t i = 0; i < bits.size(); ++i) bits[i] &= other.bits[i];
  }
};

// Sums that stay at the top instead of wrapping: four nested loops of calls pass any integer.
std::uint64_t add(std::uint64_t a, std::uint64_t b) {
  std::uint64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}
std::uint64_t times(std::uint64_t a, std::uint64_t b) {
  std::uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

struct Cost {
  std::uint64_t fuel = 0, read = 0, written = 0;
  void take(const Cost& other) {
    fuel = add(fuel, other.fuel);
    read = add(read, other.read);
    written = add(written, other.written);
  }
  void most(const Cost& other) {
    fuel = std::max(fuel, other.fuel);
    read = std::max(read, other.read);
    written = std::max(written, other.written);
  }
  Cost by(std::uint64_t n) const { return {times(fuel, n), times(read, n), times(written, n)}; }
};
std::uint32_t as_rows(std::uint64_t n) { return static_cast<std::uint32_t>(std::min<std::uint64_t>(n, UINT32_MAX)); }

char letter(Type type) {
  constexpr char letters[] = {'-', 'N', 'T', 'B', 'Y', 'R', 'C'};
  return letters[static_cast<int>(type)];
}
std::string number(std::uint64_t n) { return std::to_string(n); }

class CodeCheck {
 public:
  CodeCheck(const Module& module, std::uint32_t index, const Input* input, std::vector<unsigned>& frames)
      : m_(module), f_(module.functions[index]), code_(f_.code), index_(index), input_(input), frames_(frames) {}

  // Empty, or what is wrong.
  std::string run(Facts& facts) {
    for (unsigned i = 0; i < f_.parameters.size(); ++i) now_.add(i);
    while (pc_ < code_.size()) {
      meet_jumps();
      const bool closes_loop = op_of(code_[pc_]) == Op::loop;
      if (!live_ && !closes_loop) return at("nothing leads here");
      const std::uint32_t word = pc_;
      if (!step()) return at(why_, word);
    }
    if (live_) return at("the function ends without an end", static_cast<std::uint32_t>(code_.size() - 1));
    if (depth_ > kFrames) return at("calls are more than 8 deep", 0);
    frames_[index_] = depth_;
    facts.fuel = worst_.fuel;
    facts.rows_read = as_rows(worst_.read);
    facts.rows_written = as_rows(worst_.written);
    facts.reads_now = facts_.reads_now;
    facts.reads_seq = facts_.reads_seq;
    facts.chance = facts_.chance;
    facts.writes = facts_.writes;
    return {};
  }

 private:
  struct Jump {
    Assigned set;
    Cost cost;
  };
  struct Loop {
    std::uint32_t head, exit;   // FORL, and the word behind LOOP
    std::uint32_t limit;
    unsigned counter;           // with the next register: the loop's own
    Assigned after;
    Cost before, turn, body;    // up to the loop; its head, once; the dearest way through its body
  };

  std::string at(const std::string& why, std::uint32_t word) const {
    return "module: " + f_.name + " at " + number(word) + ": " + why;
  }
  std::string at(const std::string& why) const { return at(why, pc_); }
  bool refuse(std::string why) {
    why_ = std::move(why);
    return false;
  }

  // Paths that jump here join the one that falls through.
  void meet_jumps() {
    const auto jump = jumps_.find(pc_);
    if (jump == jumps_.end()) return;
    if (live_) {
      now_.meet(jump->second.set);
      cost_.most(jump->second.cost);
    } else {
      now_ = jump->second.set;
      cost_ = jump->second.cost;
      live_ = true;
    }
    jumps_.erase(jump);
  }

  bool has_register(unsigned r) {
    return r < f_.registers.size() || refuse("there is no register " + number(r));
  }
  bool typed(unsigned r, RegisterType type) {
    if (!has_register(r)) return false;
    if (f_.registers[r] == type) return true;
    return refuse("register " + number(r) + " is " + letter(f_.registers[r].type) + ", not " + letter(type.type));
  }
  bool has_value(unsigned r) { return now_.has(r) || refuse("register " + number(r) + " may have no value"); }
  bool need(unsigned r, RegisterType type) { return typed(r, type) && has_value(r); }
  bool is_free(unsigned r) {
    for (const Loop& loop : loops_)
      if (r == loop.counter || r == loop.counter + 1) return refuse("register " + number(r) + " belongs to a loop");
    return true;
  }
  bool give(unsigned r, RegisterType type) {
    if (!typed(r, type) || !is_free(r)) return false;
    now_.add(r);
    return true;
  }
  bool zero(unsigned operand) { return operand == 0 || refuse("an operand that is not used is not 0"); }
  template <class List>
  bool inside(std::uint32_t i, const List& list, const char* what) {
    return i < list.size() || refuse(std::string("there is no ") + what + " " + number(i));
  }

  // Records a way to `target`, of which only the jump's own rules are known here.
  bool jump(std::uint32_t target, const Assigned& set) {
    if (target <= pc_) return refuse("jumps to " + number(target) + ", which is not ahead");
    if (target >= code_.size()) return refuse("jumps to " + number(target) + ", behind the end");
    if (!loops_.empty() && target >= loops_.back().exit) return refuse("jumps out of a loop");
    const auto [entry, is_new] = jumps_.try_emplace(target, Jump{set, cost_});
    if (!is_new) {
      entry->second.set.meet(set);
      entry->second.cost.most(cost_);
    }
    return true;
  }
  void spend(Cost cost) { cost_.take(cost); }
  void end() {
    live_ = false;
    (loops_.empty() ? worst_ : loops_.back().body).most(cost_);
  }
  // Steps over the instruction; when it may be absent, also over an ABSENT behind it, whose way has no result in `r`.
  bool done(bool may_be_absent = false, unsigned r = kNoRegister) {
    if (pc_ + 1 < code_.size() && op_of(code_[pc_ + 1]) == Op::absent) {
      if (!may_be_absent) {
        ++pc_;
        return refuse("ABSENT behind what is never absent");
      }
      ++pc_;
      if (jumps_.contains(pc_)) return refuse("a jump leads to ABSENT");
      if (a_of(code_[pc_]) != 0) return refuse("an operand that is not used is not 0");
      spend({1});
      Assigned without = now_;
      if (r != kNoRegister) without.remove(r);
      if (!jump(x_of(code_[pc_]), without)) return false;
    }
    ++pc_;
    return true;
  }
  bool finish() {
    end();
    return done();
  }

  bool is_handler() { return f_.kind == FunctionKind::handler || refuse("only handlers reply"); }
  bool is_keyed() {
    if (f_.kind == FunctionKind::handler && input_ != nullptr && input_->keyed) return true;
    return refuse("only handlers of keyed messages use the document");
  }
  bool writes() {
    if (!f_.writes) return refuse("writes, but the function is not said to");
    facts_.writes = true;
    return true;
  }
  bool numbers(Word w, Type operand, Type result) {
    return need(b_of(w), operand) && need(c_of(w), operand) && give(a_of(w), result) && done();
  }
  // What field `i` of the handler's event holds.
  bool field(std::uint32_t i, Base& base) {
    if (f_.kind != FunctionKind::handler) return refuse("only handlers have fields");
    if (input_ != nullptr && input_->kind == InputKind::text && i == 0) {
      base = Base::text;
      return true;
    }
    if (input_ == nullptr || i >= input_->fields.size()) return refuse("there is no field " + number(i));
    base = input_->fields[i].slot.base;
    return true;
  }

  bool step();
  bool step_call(Word w);
  bool step_return(Word w);
  bool step_builtin(Word w);
  bool step_loop(Word w);
  bool step_document(Word w);
  bool step_reply(Word w);

  const Module& m_;
  const Function& f_;
  const std::vector<Word>& code_;
  const std::uint32_t index_;
  const Input* input_;
  std::vector<unsigned>& frames_;   // per function already proven: how many run at once below and with it

  std::uint32_t pc_ = 0;
  bool live_ = true;
  Assigned now_;
  Cost cost_, worst_;
  std::map<std::uint32_t, Jump> jumps_;
  std::vector<Loop> loops_;
  unsigned depth_ = 1;
  Facts facts_;
  std::string why_;
};

bool CodeCheck::step() {
  const Word w = code_[pc_];
  const Op op = op_of(w);
  const unsigned a = a_of(w), b = b_of(w), c = c_of(w), x = x_of(w);
  if (mnemonic(op).empty()) return refuse("there is no instruction " + number(static_cast<unsigned>(op)));
  if (op != Op::loop) spend({flat_fuel(op)});
  switch (op) {
    case Op::nop: return zero(a) && zero(x) && done();
    case Op::jmp: {
      if (!zero(a) || !jump(x, now_)) return false;
      live_ = false;
      return done();
    }
    case Op::jt: case Op::jf: return need(a, Type::boolean) && jump(x, now_) && done();
    case Op::absent: return refuse("ABSENT behind what is never absent");
    case Op::call: return step_call(w);
    case Op::ret: case Op::retabs: case Op::done: case Op::fail: return step_return(w);

    case Op::move: {
      if (!zero(c) || !has_register(b)) return false;
      return need(b, f_.registers[b]) && give(a, f_.registers[b]) && done();
    }
    case Op::numk: return inside(x, m_.numbers, "number constant") && give(a, Type::num) && done();
    case Op::textk: return inside(x, m_.texts, "text constant") && give(a, Type::text) && done();
    case Op::integer: return give(a, Type::num) && done();
    case Op::boolean:
      if (b > 1) return refuse("a bool is 0 or 1");
      return zero(c) && give(a, Type::boolean) && done();

    case Op::add: case Op::sub: case Op::mul: case Op::div: case Op::mod: return numbers(w, Type::num, Type::num);
    case Op::neg: return zero(c) && need(b, Type::num) && give(a, Type::num) && done();
    case Op::eqn: case Op::ltn: case Op::len: return numbers(w, Type::num, Type::boolean);
    case Op::eqt: case Op::ltt: case Op::let: return numbers(w, Type::text, Type::boolean);
    case Op::eqb: return numbers(w, Type::boolean, Type::boolean);
    case Op::logical_not: return zero(c) && need(b, Type::boolean) && give(a, Type::boolean) && done();

    case Op::concat: {
      if (c == 0) return refuse("joins no texts");
      for (unsigned i = 0; i < c; ++i)
        if (!need(b + i, Type::text)) return false;
      return give(a, Type::text) && done();
    }
    case Op::builtin: return step_builtin(w);

    case Op::field: {
      Base base{};
      return field(x, base) && give(a, type_of(base)) && done();
    }
    case Op::now: facts_.reads_now = true; return zero(x) && give(a, Type::num) && done();
    case Op::seq: facts_.reads_seq = true; return zero(x) && give(a, Type::num) && done();
    case Op::dockey: return zero(x) && is_keyed() && give(a, Type::text) && done();
    case Op::docrev: return zero(x) && is_keyed() && give(a, Type::num) && done();

    case Op::gets:
      return inside(x, m_.states, "state") && give(a, type_of(m_.states[x].slot.base)) &&
             done(m_.states[x].slot.optional, a);
    case Op::sets:
      spend({0, 0, 1});
      return inside(x, m_.states, "state") && writes() && need(a, type_of(m_.states[x].slot.base)) && done();
    case Op::clrs:
      spend({0, 0, 1});
      if (!zero(a) || !inside(x, m_.states, "state") || !writes()) return false;
      return m_.states[x].slot.optional ? done() : refuse("the state `" + m_.states[x].name + "` is never absent");

    case Op::loop: case Op::forp: case Op::forl: return step_loop(w);
    case Op::doc: case Op::docset: case Op::docdel: case Op::docapp: case Op::docspl: return step_document(w);
    case Op::jbeg: case Op::jfld: case Op::jnul: case Op::replyj: case Op::replyv: case Op::replyf: case Op::replyd:
      return step_reply(w);

    case Op::row: case Op::col: case Op::setcol: case Op::clrcol: case Op::insert: case Op::update: case Op::erase:
    case Op::count: case Op::gcount: case Op::total: case Op::rank: case Op::open: case Op::next: case Op::replyr:
      return refuse(std::string(mnemonic(op)) + " works on tables, which this version does not serve");
  }
  return refuse("there is no such instruction");
}

bool CodeCheck::step_call(Word w) {
  const unsigned a = a_of(w), b = b_of(w), c = c_of(w);
  if (c >= index_) return refuse("calls function " + number(c) + ", which is not before it");
  const Function& callee = m_.functions[c];
  const Facts& facts = m_.facts[c];
  if (callee.kind != FunctionKind::function) return refuse("calls `" + callee.name + "`, which is no function");
  if (callee.writes && !f_.writes) return refuse("calls `" + callee.name + "`, which writes");
  for (unsigned i = 0; i < callee.parameters.size(); ++i)
    if (!need(b + i, callee.parameters[i])) return false;
  if (callee.parameters.empty() && !zero(b)) return false;
  spend({facts.fuel, facts.rows_read, facts.rows_written});
  facts_.reads_now = facts_.reads_now || facts.reads_now;
  facts_.reads_seq = facts_.reads_seq || facts.reads_seq;
  facts_.chance = facts_.chance || facts.chance;
  facts_.writes = facts_.writes || facts.writes;
  depth_ = std::max(depth_, frames_[c] + 1);
  if (a != kNoRegister) {
    if (callee.result == Type::none) return refuse("takes the result of `" + callee.name + "`, which has none");
    if (!give(a, callee.result)) return false;
  }
  return done(callee.partial, a);
}

bool CodeCheck::step_return(Word w) {
  const unsigned a = a_of(w), b = b_of(w), x = x_of(w);
  switch (op_of(w)) {
    case Op::ret:
      if (!zero(x)) return false;
      if (f_.kind == FunctionKind::handler) return refuse("a handler has no result");
      if (f_.result == Type::none) {
        if (a != kNoRegister) return refuse("the function has no result");
      } else if (!need(a, f_.result)) {
        return false;
      }
      return finish();
    case Op::retabs:
      if (!zero(a) || !zero(x)) return false;
      return f_.partial ? finish() : refuse("the function is never absent");
    case Op::done:
      if (!zero(a) || !zero(x)) return false;
      return f_.result == Type::none ? finish() : refuse("the function has a result");
    default:
      if (!zero(c_of(w))) return false;
      if (b == 0 || b >= static_cast<unsigned>(kFaults)) return refuse("there is no fault " + number(b));
      if (a != kNoRegister && !need(a, Type::text)) return false;
      return finish();
  }
}

bool CodeCheck::step_builtin(Word w) {
  const unsigned a = a_of(w), b = b_of(w), c = c_of(w);
  if (c >= static_cast<unsigned>(kBuiltins)) return refuse("there is no language function " + number(c));
  const Builtin& one = builtin(static_cast<std::uint8_t>(c));
  for (unsigned i = 0; i < one.arity; ++i)
    if (!need(b + i, one.arguments[i])) return false;
  if (one.chance) {
    if (!f_.writes) return refuse("uses `" + std::string(one.name) + "`, but the function is not said to write");
    facts_.chance = true;
  }
  spend({one.fuel});
  return give(a, one.result) && done(one.partial, a);
}

bool CodeCheck::step_loop(Word w) {
  const unsigned a = a_of(w), x = x_of(w);
  switch (op_of(w)) {
    case Op::forp: {
      if (x == 0 || x > kLoopMax) return refuse("a loop's limit is not 1 to 10000");
      if (pc_ + 1 >= code_.size() || code_[pc_ + 1] != word_x(Op::forl, a, x)) return refuse("no FORL of its own follows");
      if (jumps_.contains(pc_ + 1)) return refuse("a jump leads into the loop");
      return need(a, Type::num) && need(a + 1, Type::num) && is_free(a) && is_free(a + 1) && done();
    }
    case Op::forl: {
      if (pc_ == 0 || code_[pc_ - 1] != word_x(Op::forp, a, x)) return refuse("no FORP of its own is before it");
      if (loops_.size() == kNesting) return refuse("loops are more than 4 deep");
      if (pc_ + 1 >= code_.size() || op_of(code_[pc_ + 1]) != Op::absent) return refuse("no ABSENT follows");
      const std::uint32_t exit = x_of(code_[pc_ + 1]);
      if (a_of(code_[pc_ + 1]) != 0) return refuse("an operand that is not used is not 0");
      if (exit < pc_ + 3 || exit >= code_.size() || code_[exit - 1] != word_x(Op::loop, 0, pc_))
        return refuse("its ABSENT does not go behind its LOOP");
      if (!loops_.empty() && exit >= loops_.back().exit) return refuse("goes on behind the loop around it");
      const auto inside = jumps_.lower_bound(pc_);
      if (inside != jumps_.end() && inside->first < exit) return refuse("a jump leads into the loop");
      Loop loop{pc_, exit, x, a, now_, cost_, {flat_fuel(Op::forl) + 1}, {}};
      // FORL itself was added on the way in; the loop's own sum has it.
      loop.before.fuel -= std::min<std::uint64_t>(loop.before.fuel, flat_fuel(Op::forl));
      loop.after.remove(a);
      loops_.push_back(loop);
      now_.add(a);
      cost_ = {};
      pc_ += 2;
      return true;
    }
    default: {
      if (loops_.empty() || loops_.back().exit != pc_ + 1 || loops_.back().head != x)
        return refuse("LOOP closes no open loop");
      if (!zero(a)) return false;
      Loop loop = loops_.back();
      if (live_) {
        spend({flat_fuel(Op::loop)});
        loop.body.most(cost_);
      }
      loops_.pop_back();
      live_ = false;
      cost_ = loop.before;
      spend(loop.turn.by(std::uint64_t{loop.limit} + 1));
      spend(loop.body.by(loop.limit));
      return jump(loop.exit, loop.after) && done();
    }
  }
}

bool CodeCheck::step_document(Word w) {
  const unsigned a = a_of(w), b = b_of(w), c = c_of(w), x = x_of(w);
  if (!is_keyed()) return false;
  const bool bytes = m_.documents.kind == DocumentKind::bytes;
  // Bytes may be any text as well; a text may not be any bytes.
  const auto content = [&](unsigned r) {
    if (!has_register(r)) return false;
    const bool text_in_bytes = bytes && f_.registers[r] == Type::text;
    return need(r, bytes && !text_in_bytes ? Type::bytes : Type::text);
  };
  if (op_of(w) == Op::doc) {
    spend({0, 1, 0});
    if (b > 1) return refuse("there is no such way to ask for the document");
    return zero(c) && give(a, bytes ? Type::bytes : Type::text) && done(true, a);
  }
  spend({0, 0, 1});
  if (!zero(x) || !writes()) return false;
  switch (op_of(w)) {
    case Op::docdel: return zero(a) && done();
    case Op::docspl: return need(a, Type::num) && need(a + 1, Type::num) && content(a + 2) && done();
    default: return content(a) && done();
  }
}

bool CodeCheck::step_reply(Word w) {
  const unsigned a = a_of(w), x = x_of(w);
  if (!is_handler()) return false;
  const auto begun = [&] { return now_.has(kRecord) || refuse("no record was begun"); };
  const auto plain = [&] {
    if (!has_register(a)) return false;
    return f_.registers[a] == Type::bytes ? refuse("bytes are no part of a record") : need(a, f_.registers[a]);
  };
  switch (op_of(w)) {
    case Op::jbeg:
      if (!zero(a) || !zero(x)) return false;
      now_.add(kRecord);
      return done();
    case Op::jfld: return begun() && inside(x, m_.texts, "text constant") && plain() && done();
    case Op::jnul: return zero(a) && begun() && inside(x, m_.texts, "text constant") && done();
    case Op::replyj: return zero(a) && zero(x) && begun() && finish();
    case Op::replyv:
      if (!zero(x) || !has_register(a)) return false;
      return need(a, f_.registers[a]) && finish();
    case Op::replyf: {
      Base base{};
      if (!zero(x) || !field(a, base)) return false;
      if (base != Base::text && base != Base::slug && base != Base::bytes) return refuse("field " + number(a) + " is not borrowed");
      return finish();
    }
    default: return zero(a) && zero(x) && is_keyed() && finish();
  }
}
}  // namespace

std::string verify_code(Module& module) {
  std::vector<const Input*> inputs(module.functions.size(), nullptr);
  for (const Handler& handler : module.handlers) inputs[handler.function] = input_of(module, handler.event);
  std::vector<unsigned> frames(module.functions.size(), 0);
  module.facts.assign(module.functions.size(), Facts{});
  for (std::uint32_t i = 0; i < module.functions.size(); ++i) {
    std::string why = CodeCheck(module, i, inputs[i], frames).run(module.facts[i]);
    if (!why.empty()) return why;
  }
  return {};
}

}  // namespace sluice::vm
