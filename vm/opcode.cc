// Mnemonics and fuel of the instructions: cost model 1, whose numbers never change.
#include "vm/opcode.h"

#include <algorithm>

#include "vm/module.h"

namespace sluice::vm {

std::string_view mnemonic(Op op) {
  switch (op) {
    case Op::nop: return "NOP";
    case Op::jmp: return "JMP";
    case Op::jt: return "JT";
    case Op::jf: return "JF";
    case Op::absent: return "ABSENT";
    case Op::loop: return "LOOP";
    case Op::call: return "CALL";
    case Op::ret: return "RET";
    case Op::retabs: return "RETABS";
    case Op::done: return "DONE";
    case Op::fail: return "FAIL";
    case Op::move: return "MOVE";
    case Op::numk: return "NUMK";
    case Op::textk: return "TEXTK";
    case Op::integer: return "INT";
    case Op::boolean: return "BOOL";
    case Op::add: return "ADD";
    case Op::sub: return "SUB";
    case Op::mul: return "MUL";
    case Op::div: return "DIV";
    case Op::mod: return "MOD";
    case Op::neg: return "NEG";
    case Op::eqn: return "EQN";
    case Op::ltn: return "LTN";
    case Op::len: return "LEN";
    case Op::eqt: return "EQT";
    case Op::ltt: return "LTT";
    case Op::let: return "LET";
    case Op::eqb: return "EQB";
    case Op::logical_not: return "NOT";
    case Op::concat: return "CONCAT";
    case Op::builtin: return "BUILTIN";
    case Op::field: return "FIELD";
    case Op::now: return "NOW";
    case Op::seq: return "SEQ";
    case Op::dockey: return "DOCKEY";
    case Op::docrev: return "DOCREV";
    case Op::gets: return "GETS";
    case Op::sets: return "SETS";
    case Op::clrs: return "CLRS";
    case Op::row: return "ROW";
    case Op::col: return "COL";
    case Op::setcol: return "SETCOL";
    case Op::clrcol: return "CLRCOL";
    case Op::insert: return "INSERT";
    case Op::update: return "UPDATE";
    case Op::erase: return "DELETE";
    case Op::count: return "COUNT";
    case Op::gcount: return "GCOUNT";
    case Op::total: return "TOTAL";
    case Op::rank: return "RANK";
    case Op::open: return "OPEN";
    case Op::next: return "NEXT";
    case Op::forp: return "FORP";
    case Op::forl: return "FORL";
    case Op::doc: return "DOC";
    case Op::docset: return "DOCSET";
    case Op::docdel: return "DOCDEL";
    case Op::docapp: return "DOCAPP";
    case Op::docspl: return "DOCSPL";
    case Op::jbeg: return "JBEG";
    case Op::jfld: return "JFLD";
    case Op::jnul: return "JNUL";
    case Op::replyj: return "REPLYJ";
    case Op::replyv: return "REPLYV";
    case Op::replyf: return "REPLYF";
    case Op::replyd: return "REPLYD";
    case Op::replyr: return "REPLYR";
  }
  return {};
}

std::uint32_t flat_fuel(Op op) {
  switch (op) {
    case Op::call: return 5;
    case Op::concat: return 6;
    case Op::builtin: return 0;
    case Op::gets: return 2;
    case Op::sets: case Op::clrs: return 100;
    case Op::doc: return 100;
    case Op::docset: case Op::docspl: return 400;
    case Op::docdel: case Op::docapp: return 300;
    case Op::jfld: return 8;
    case Op::row: case Op::gcount: case Op::total: return 100;
    case Op::col: case Op::count: return 2;
    case Op::setcol: case Op::clrcol: return 200;
    case Op::insert: return 400;
    case Op::update: return 250;
    case Op::erase: return 300;
    case Op::rank: return 800;
    case Op::open: return 150;
    case Op::next: return 40;
    case Op::replyr: return 50;
    default: return 1;
  }
}

namespace {
constexpr std::uint32_t kMoved = 100;  // an index entry or a total that follows its row

// Indexes and totals that change when one of these columns does.
std::uint32_t moved_by(const Table& table, const std::uint8_t* columns, std::size_t count) {
  const auto set = [&](std::uint8_t column) { return std::find(columns, columns + count, column) != columns + count; };
  std::uint32_t moved = 0;
  for (const Index& index : table.indexes)
    moved += std::any_of(index.parts.begin(), index.parts.end(), [&](const KeyPart& part) { return set(part.column); });
  for (const Total& total : table.totals)
    moved += (total.sum && set(total.column)) || std::any_of(total.by.begin(), total.by.end(), set);
  return moved;
}
std::uint32_t derived(const Table& table) {
  return static_cast<std::uint32_t>(table.indexes.size() + table.totals.size());
}
std::uint32_t kept_sizes(const Table& table) {
  return (table.size == Size::keep ? 1 : 0) + (table.group_size == Size::keep ? 1 : 0);
}
}  // namespace

std::uint32_t fuel_of(const Module& module, const Function& function, Word w) {
  const Op op = op_of(w);
  const auto table_of = [&](unsigned r) -> const Table& { return module.tables[function.registers[r].table]; };
  switch (op) {
    case Op::setcol: case Op::clrcol: {
      const std::uint8_t column = b_of(w);
      return flat_fuel(op) + kMoved * moved_by(table_of(a_of(w)), &column, 1);
    }
    case Op::update: {
      const RowShape& shape = module.shapes[c_of(w)];
      return flat_fuel(op) + kMoved * moved_by(module.tables[shape.table], shape.columns.data(), shape.columns.size());
    }
    case Op::insert: {
      const Table& table = module.tables[module.shapes[c_of(w)].table];
      const std::uint32_t gone = kept_sizes(table) * kKeepRemoves;
      return flat_fuel(op) + gone * flat_fuel(Op::erase) + kMoved * (1 + gone) * derived(table);
    }
    case Op::erase: return flat_fuel(op) + kMoved * derived(table_of(a_of(w)));
    default: return flat_fuel(op);
  }
}

}  // namespace sluice::vm
