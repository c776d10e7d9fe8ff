// Proves each function in one pass over its words, and finds the bound of what it costs: the common part.
// Source: design module.md 3.5.
#include "vm/verify_code.h"

#include "vm/builtin.h"

namespace sluice::vm {
namespace {
std::string number(std::uint64_t n) { return std::to_string(n); }
std::uint32_t as_rows(std::uint64_t n) { return static_cast<std::uint32_t>(std::min<std::uint64_t>(n, UINT32_MAX)); }
// Heads and ends of loops are paid by the round, and instructions on tables by what they can move.
bool is_priced_apart(Op op) {
  return op == Op::loop || op == Op::forl || (op >= Op::row && op <= Op::next);
}
}  // namespace

std::string type_text(const Module& module, RegisterType type) {
  constexpr char letters[] = {'-', 'N', 'T', 'B', 'Y', 'R', 'C'};
  std::string out(1, letters[static_cast<int>(type.type)]);
  if (type.type == Type::row || type.type == Type::cursor) out += " " + module.tables[type.table].name;
  return out;
}

std::string CodeCheck::run(Facts& facts) {
  for (unsigned i = 0; i < f_.parameters.size(); ++i) now_.add(i);
  while (pc_ < code_.size()) {
    meet_jumps();
    const bool closes_loop = op_of(code_[pc_]) == Op::loop;
    if (!live_ && !closes_loop) return at("nothing leads here", pc_);
    const std::uint32_t word = pc_;
    if (!step()) return at(why_, word);
  }
  if (live_) return at("the function ends without an end", static_cast<std::uint32_t>(code_.size() - 1));
  if (depth_ > kFrames) return at("calls are more than 8 deep", 0);
  frames_[index_] = depth_;
  facts = facts_;
  facts.fuel = worst_.fuel;
  facts.rows_read = as_rows(worst_.read);
  facts.rows_written = as_rows(worst_.written);
  return {};
}

std::string CodeCheck::at(const std::string& why, std::uint32_t word) const {
  return "module: " + f_.name + " at " + number(word) + ": " + why;
}

// Paths that jump here join the one that falls through.
void CodeCheck::meet_jumps() {
  const auto jump = jumps_.find(pc_);
  if (jump == jumps_.end()) return;
  if (live_) {
    now_.meet(jump->second.path);
    cost_.most(jump->second.cost);
  } else {
    now_ = jump->second.path;
    cost_ = jump->second.cost;
    live_ = true;
  }
  jumps_.erase(jump);
}

bool CodeCheck::has_register(unsigned r) {
  return r < f_.registers.size() || refuse("there is no register " + number(r));
}

bool CodeCheck::typed(unsigned r, RegisterType type) {
  if (!has_register(r)) return false;
  if (f_.registers[r] == type) return true;
  return refuse("register " + number(r) + " is " + type_text(m_, f_.registers[r]) + ", not " + type_text(m_, type));
}

bool CodeCheck::has_value(unsigned r) {
  if (!now_.set.has(r)) return refuse("register " + number(r) + " may have no value");
  for (std::size_t i = 0; i < loops_.size(); ++i)
    if (!now_.fresh[i].has(r)) loops_[i].carried.add(r);
  return true;
}

bool CodeCheck::is_free(unsigned r) {
  for (const Loop& loop : loops_)
    if (r >= loop.own && r < loop.own + loop.owned) return refuse("register " + number(r) + " belongs to a loop");
  return true;
}

bool CodeCheck::give(unsigned r, RegisterType type) {
  if (!typed(r, type) || !is_free(r)) return false;
  now_.add(r);
  return true;
}

// Records a way to `target`, of which only the jump's own rules are known here.
bool CodeCheck::jump(std::uint32_t target, const Path& path) {
  if (target <= pc_) return refuse("jumps to " + number(target) + ", which is not ahead");
  if (target >= code_.size()) return refuse("jumps to " + number(target) + ", behind the end");
  if (!loops_.empty() && target >= loops_.back().exit) return refuse("jumps out of a loop");
  const auto [entry, is_new] = jumps_.try_emplace(target, Jump{path, cost_});
  if (!is_new) {
    entry->second.path.meet(path);
    entry->second.cost.most(cost_);
  }
  return true;
}

// Steps over the instruction; when it may be absent, also over an ABSENT behind it, whose way has no result in `r`.
bool CodeCheck::done(bool may_be_absent, unsigned r) {
  if (pc_ + 1 < code_.size() && op_of(code_[pc_ + 1]) == Op::absent) {
    if (!may_be_absent) {
      ++pc_;
      return refuse("ABSENT behind what is never absent");
    }
    ++pc_;
    if (jumps_.contains(pc_)) return refuse("a jump leads to ABSENT");
    if (a_of(code_[pc_]) != 0) return refuse("an operand that is not used is not 0");
    spend({1});
    Path without = now_;
    if (r != kNoRegister) without.remove(r);
    if (!jump(x_of(code_[pc_]), without)) return false;
  }
  ++pc_;
  return true;
}

bool CodeCheck::finish() {
  live_ = false;
  (loops_.empty() ? worst_ : loops_.back().body).most(cost_);
  return done();
}

bool CodeCheck::is_handler() { return f_.kind == FunctionKind::handler || refuse("only handlers reply"); }

bool CodeCheck::is_keyed() {
  if (f_.kind == FunctionKind::handler && role_.input != nullptr && role_.input->keyed) return true;
  return refuse("only handlers of keyed messages use the document");
}

bool CodeCheck::writes() {
  if (!f_.writes) return refuse("writes, but the function is not said to");
  facts_.writes = true;
  return true;
}

bool CodeCheck::numbers(Word w, Type operand, Type result) {
  return need(b_of(w), operand) && need(c_of(w), operand) && give(a_of(w), result) && done();
}

// What field `i` of the handler's event holds.
bool CodeCheck::field(std::uint32_t i, Base& base) {
  if (f_.kind != FunctionKind::handler) return refuse("only handlers have fields");
  const Input* input = role_.input;
  if (input != nullptr && input->kind == InputKind::text && i == 0) {
    base = Base::text;
    return true;
  }
  if (input == nullptr || i >= input->fields.size()) return refuse("there is no field " + number(i));
  base = input->fields[i].slot.base;
  return true;
}

bool CodeCheck::step() {
  const Word w = code_[pc_];
  const Op op = op_of(w);
  const unsigned a = a_of(w), b = b_of(w), c = c_of(w), x = x_of(w);
  if (mnemonic(op).empty()) return refuse("there is no instruction " + number(static_cast<unsigned>(op)));
  if (!is_priced_apart(op)) spend({flat_fuel(op)});
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
      if (f_.registers[b].type == Type::cursor) return refuse("a cursor stays where it was opened");
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

    case Op::loop: case Op::forp: case Op::forl: case Op::next: return step_loop(w);
    case Op::doc: case Op::docset: case Op::docdel: case Op::docapp: case Op::docspl: return step_document(w);
    case Op::jbeg: case Op::jfld: case Op::jnul: case Op::replyj: case Op::replyv: case Op::replyf: case Op::replyd:
    case Op::replyr:
      return step_reply(w);

    case Op::row: case Op::col: case Op::setcol: case Op::clrcol: case Op::insert: case Op::update: case Op::erase:
    case Op::count: case Op::gcount: case Op::total: case Op::rank: case Op::open:
      return step_table(w);
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
  facts_.ranks = facts_.ranks || facts.ranks;
  facts_.tables_read |= facts.tables_read;
  facts_.tables_written |= facts.tables_written;
  if (facts.tables_written != 0 && !may_write_tables()) return false;
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
      } else if (f_.result.type == Type::cursor && (pc_ == 0 || op_of(code_[pc_ - 1]) != Op::open || a_of(code_[pc_ - 1]) != a)) {
        return refuse("gives a cursor that was not opened just before");
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

bool CodeCheck::step_document(Word w) {
  const unsigned a = a_of(w), b = b_of(w), c = c_of(w), x = x_of(w);
  if (!is_keyed()) return false;
  const bool bytes = m_.documents.kind == DocumentKind::bytes;
  // Bytes may be any text as well; a text may not be any bytes.
  const auto content = [&](unsigned r) {
    if (!has_register(r)) return false;
    const bool text_in_bytes = bytes && f_.registers[r] == RegisterType(Type::text);
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
  const auto begun = [&] { return now_.set.has(kRecord) || refuse("no record was begun"); };
  const auto value = [&](bool may_be_bytes) {
    if (!has_register(a)) return false;
    const Type type = f_.registers[a].type;
    if (type == Type::row || type == Type::cursor) return refuse("a row or cursor is no value to reply");
    if (type == Type::bytes && !may_be_bytes) return refuse("bytes are no part of a record");
    return need(a, f_.registers[a]);
  };
  switch (op_of(w)) {
    case Op::jbeg:
      if (!zero(a) || !zero(x)) return false;
      now_.add(kRecord);
      return done();
    case Op::jfld: return begun() && inside(x, m_.texts, "text constant") && value(false) && done();
    case Op::jnul: return zero(a) && begun() && inside(x, m_.texts, "text constant") && done();
    case Op::replyj: return zero(a) && zero(x) && begun() && finish();
    case Op::replyv:
      return zero(x) && value(true) && finish();
    case Op::replyf: {
      Base base{};
      if (!zero(x) || !field(a, base)) return false;
      if (base != Base::text && base != Base::slug && base != Base::bytes) return refuse("field " + number(a) + " is not borrowed");
      return finish();
    }
    case Op::replyr: {
      std::uint8_t table = 0;
      if (!zero(x) || !row(a, table)) return false;
      reads_table(table, 0);
      return finish();
    }
    default: return zero(a) && zero(x) && is_keyed() && finish();
  }
}

std::string verify_code(Module& module) {
  std::vector<Role> roles(module.functions.size());
  for (const Handler& handler : module.handlers) roles[handler.function].input = input_of(module, handler.event);
  for (const View& view : module.views) roles[view.function].filtered = view.where.has_value();
  std::vector<unsigned> frames(module.functions.size(), 0);
  module.facts.assign(module.functions.size(), Facts{});
  for (std::uint32_t i = 0; i < module.functions.size(); ++i) {
    std::string why = CodeCheck(module, i, roles[i], frames).run(module.facts[i]);
    if (!why.empty()) return why;
  }
  return {};
}

}  // namespace sluice::vm
