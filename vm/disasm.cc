#include "vm/disasm.h"

#include "vm/base/json.h"
#include "vm/base/number_text.h"
#include "vm/builtin.h"

namespace sluice::vm {
namespace {
std::string number(double n) {
  std::string out;
  append_number(out, n);
  return out;
}
std::string reg(unsigned r) { return "r" + std::to_string(r); }
std::string to(unsigned x) { return "-> " + std::to_string(x); }
std::string quoted(std::string_view s) {
  std::string out;
  append_json_string(out, s);
  return out;
}

// "r1, r2" or "r1..r4"
std::string window(unsigned first, std::size_t count) {
  if (count == 0) return {};
  if (count == 1) return reg(first);
  if (count == 2) return reg(first) + ", " + reg(first + 1);
  return reg(first) + ".." + reg(first + static_cast<unsigned>(count) - 1);
}
std::string text_constant(const Module& m, unsigned x) {
  return x < m.texts.size() ? quoted(m.texts[x]) : "text " + std::to_string(x);
}
std::string state_name(const Module& m, unsigned x) {
  return x < m.states.size() ? m.states[x].name : "state " + std::to_string(x);
}
std::string_view sign(Op op) {
  switch (op) {
    case Op::add: return " + ";
    case Op::sub: return " - ";
    case Op::mul: return " * ";
    case Op::div: return " / ";
    case Op::mod: return " % ";
    case Op::ltn: case Op::ltt: return " < ";
    case Op::len: case Op::let: return " <= ";
    default: return " == ";
  }
}

std::string operands(const Module& m, Word w) {
  const Op op = op_of(w);
  const unsigned a = a_of(w), b = b_of(w), c = c_of(w), x = x_of(w);
  const std::string into = reg(a) + " = ";
  switch (op) {
    case Op::nop: case Op::retabs: case Op::done: case Op::docdel: case Op::jbeg: case Op::replyj: case Op::replyd: return {};
    case Op::jmp: case Op::absent: case Op::loop: return to(x);
    case Op::jt: case Op::jf: return reg(a) + " " + to(x);
    case Op::call: {
      if (c >= m.functions.size()) return into + "function " + std::to_string(c);
      const Function& callee = m.functions[c];
      std::string_view name = callee.name;
      if (name.starts_with("fn ")) name.remove_prefix(3);
      return (a == kNoRegister ? std::string() : into) + std::string(name) + "(" + window(b, callee.parameters.size()) + ")";
    }
    case Op::ret: return a == kNoRegister ? std::string() : reg(a);
    case Op::fail: {
      std::string out(name(static_cast<Fault>(b)));
      return a == kNoRegister ? out : out + " " + reg(a);
    }
    case Op::move: return into + reg(b);
    case Op::numk: return into + (x < m.numbers.size() ? number(m.numbers[x]) : "number " + std::to_string(x));
    case Op::textk: return into + text_constant(m, x);
    case Op::integer: return into + std::to_string(static_cast<std::int16_t>(x));
    case Op::boolean: return into + (b != 0 ? "true" : "false");
    case Op::add: case Op::sub: case Op::mul: case Op::div: case Op::mod: case Op::eqn: case Op::ltn: case Op::len:
    case Op::eqt: case Op::ltt: case Op::let: case Op::eqb:
      return into + reg(b) + std::string(sign(op)) + reg(c);
    case Op::neg: return into + "-" + reg(b);
    case Op::logical_not: return into + "not " + reg(b);
    case Op::concat: return into + window(b, c);
    case Op::builtin: {
      if (c >= static_cast<unsigned>(kBuiltins)) return into + "language function " + std::to_string(c);
      const Builtin& one = builtin(static_cast<std::uint8_t>(c));
      return into + std::string(one.name) + "(" + window(b, one.arity) + ")";
    }
    case Op::field: return into + "field " + std::to_string(x);
    case Op::now: case Op::seq: case Op::dockey: case Op::docrev: return reg(a);
    case Op::doc: return reg(a) + (b == 1 ? " (presence)" : "");
    case Op::gets: return into + state_name(m, x);
    case Op::sets: return state_name(m, x) + " = " + reg(a);
    case Op::clrs: return state_name(m, x);
    case Op::forp: case Op::forl: return reg(a) + " to " + reg(a + 1) + " limit " + std::to_string(x);
    case Op::docset: case Op::docapp: case Op::replyv: return reg(a);
    case Op::docspl: return window(a, 3);
    case Op::jfld: return text_constant(m, x) + " = " + reg(a);
    case Op::jnul: return text_constant(m, x);
    case Op::replyf: return "field " + std::to_string(a);
    default: return std::to_string(a) + " " + std::to_string(b) + " " + std::to_string(c);
  }
}

char letter(Type type) {
  constexpr char letters[] = {'-', 'N', 'T', 'B', 'Y', 'R', 'C'};
  return letters[static_cast<int>(type)];
}
}  // namespace

std::string disassemble(const Module& module, const Function& function, Word word) {
  (void)function;  // tables will name columns by the register's row
  const std::string_view name = mnemonic(op_of(word));
  if (name.empty()) return "?" + std::to_string(static_cast<unsigned>(op_of(word)));
  std::string out(name);
  const std::string rest = operands(module, word);
  if (rest.empty()) return out;
  if (out.size() < 8) out.resize(8, ' ');
  else out += ' ';
  return out + rest;
}

std::string disassemble(const Module& module) {
  std::string out = "module " + module.name + " " + std::to_string(module.version) + "\n";
  for (const Function& function : module.functions) {
    out += "\n" + function.name;
    if (!function.registers.empty()) {
      out += "  ";
      for (std::size_t i = 0; i < function.registers.size(); ++i) {
        if (i == function.parameters.size() && i > 0) out += " |";
        out += ' ';
        out += letter(function.registers[i].type);
      }
    }
    if (function.result != Type::none) {
      out += " -> ";
      out += letter(function.result.type);
      if (function.partial) out += '?';
    }
    out += '\n';
    for (std::size_t i = 0; i < function.code.size(); ++i) {
      std::string at = std::to_string(i);
      if (at.size() < 3) at.insert(0, 3 - at.size(), ' ');
      out += at + "  " + disassemble(module, function, function.code[i]) + "\n";
    }
  }
  return out;
}

}  // namespace sluice::vm
