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
std::string from(unsigned first) { return " from " + reg(first) + ".."; }
std::string table_name(const Module& m, unsigned t) {
  return t < m.tables.size() ? m.tables[t].name : "table " + std::to_string(t);
}
// Whose row register `r` holds; nullptr when it holds none.
const Table* table_of(const Module& m, const Function& f, unsigned r) {
  if (r >= f.registers.size() || f.registers[r].type != Type::row) return nullptr;
  return f.registers[r].table < m.tables.size() ? &m.tables[f.registers[r].table] : nullptr;
}
std::string column_name(const Table* table, unsigned i) {
  return table != nullptr && i < table->columns.size() ? table->columns[i].name : "column " + std::to_string(i);
}
std::string row_column(const Module& m, const Function& f, unsigned r, unsigned i) {
  return reg(r) + "." + column_name(table_of(m, f, r), i);
}
std::string bracketed(const std::string& what, unsigned first, std::size_t count) {
  return count == 0 ? what : what + "[" + window(first, count) + "]";
}
// "item (sku, left) from r3.."
std::string shape_text(const Module& m, unsigned i, unsigned first, bool named) {
  if (i >= m.shapes.size()) return "row shape " + std::to_string(i) + from(first);
  const RowShape& shape = m.shapes[i];
  std::string out = named ? table_name(m, shape.table) + " (" : "(";
  for (const std::uint8_t column : shape.columns) {
    if (out.back() != '(') out += ", ";
    out += column_name(shape.table < m.tables.size() ? &m.tables[shape.table] : nullptr, column);
  }
  return out + ")" + (shape.columns.empty() ? std::string() : from(first));
}
std::string total_text(const Module& m, unsigned first, unsigned number) {
  std::size_t totals = 0;
  for (const Table& table : m.tables) totals += table.totals.size();
  if (number >= totals) return "total " + std::to_string(number);
  const Module::TotalAt which = m.total_at(number);
  const Total& total = m.tables[which.table].totals[which.total];
  return bracketed(m.tables[which.table].name + "." + total.name, first, total.by.size());
}
bool has_bounds(const Module& m, unsigned scan) {
  return scan >= m.scans.size() || m.scans[scan].prefix != 0 || m.scans[scan].low != Bound::none || m.scans[scan].high != Bound::none;
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

std::string table_operands(const Module& m, const Function& f, Word w) {
  const unsigned a = a_of(w), b = b_of(w), c = c_of(w), x = x_of(w);
  const std::string into = reg(a) + " = ";
  switch (op_of(w)) {
    case Op::row: return into + bracketed(table_name(m, c), b, c < m.tables.size() ? m.tables[c].key.size() : 0);
    case Op::col: return into + row_column(m, f, b, c);
    case Op::setcol: return row_column(m, f, a, b) + " = " + reg(c);
    case Op::clrcol: return row_column(m, f, a, b);
    case Op::insert: return (a == kNoRegister ? std::string() : into) + shape_text(m, c, b, true);
    case Op::update: return reg(a) + " " + shape_text(m, c, b, false);
    case Op::count: return into + table_name(m, x);
    case Op::gcount: return into + bracketed(table_name(m, c), b, c < m.tables.size() ? m.tables[c].per : 0);
    case Op::total: return into + total_text(m, b, c);
    case Op::rank: {
      const Table* table = table_of(m, f, b);
      const bool known = table != nullptr && c < table->indexes.size();
      return into + reg(b) + " by " + (known ? table->indexes[c].name : "index " + std::to_string(c));
    }
    case Op::open: return into + "scan " + std::to_string(c) + (has_bounds(m, c) ? from(b) : std::string());
    case Op::next: return reg(a) + " from " + reg(b);
    default: return reg(a);  // DELETE, REPLYR
  }
}

std::string operands(const Module& m, const Function& f, Word w) {
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
    default: return table_operands(m, f, w);
  }
}

std::string letter(const Module& m, RegisterType type) {
  constexpr char letters[] = {'-', 'N', 'T', 'B', 'Y', 'R', 'C'};
  std::string out(1, letters[static_cast<int>(type.type)]);
  if (type.type == Type::row || type.type == Type::cursor) out += " " + table_name(m, type.table);
  return out;
}

// "job by ready[1] to desc limit 500 streams": its order, how many of its columns are given, bounds on the next.
std::string scan_text(const Module& m, const Scan& scan) {
  std::string out = table_name(m, scan.table);
  if (scan.order != 0) out += " by " + m.tables[scan.table].indexes[scan.order - 1].name;
  if (scan.prefix != 0) out += "[" + std::to_string(scan.prefix) + "]";
  if (scan.low != Bound::none) out += scan.low == Bound::including ? " from" : " above";
  if (scan.high != Bound::none) out += scan.high == Bound::including ? " to" : " below";
  if (scan.descending) out += " desc";
  out += scan.limit == 0 ? " paged" : " limit " + std::to_string(scan.limit);
  if (scan.streams) out += " streams";
  return out;
}
}  // namespace

std::string disassemble(const Module& module, const Function& function, Word word) {
  const std::string_view name = mnemonic(op_of(word));
  if (name.empty()) return "?" + std::to_string(static_cast<unsigned>(op_of(word)));
  std::string out(name);
  const std::string rest = operands(module, function, word);
  if (rest.empty()) return out;
  if (out.size() < 8) out.resize(8, ' ');
  else out += ' ';
  return out + rest;
}

std::string disassemble(const Module& module) {
  std::string out = "module " + module.name + " " + std::to_string(module.version) + "\n";
  if (!module.scans.empty()) out += '\n';
  for (std::size_t i = 0; i < module.scans.size(); ++i)
    out += "scan " + std::to_string(i) + "  " + scan_text(module, module.scans[i]) + "\n";
  for (const Function& function : module.functions) {
    out += "\n" + function.name;
    if (!function.registers.empty()) {
      out += "  ";
      for (std::size_t i = 0; i < function.registers.size(); ++i) {
        if (i == function.parameters.size() && i > 0) out += " |";
        out += ' ';
        out += letter(module, function.registers[i]);
      }
    }
    if (function.result != Type::none) {
      out += " -> ";
      out += letter(module, function.result);
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
