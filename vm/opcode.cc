// Mnemonics and fuel of the instructions: cost model 1, whose numbers never change.
#include "vm/opcode.h"

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

}  // namespace sluice::vm
