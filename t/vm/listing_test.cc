#include <doctest/doctest.h>

#include "t/vm/assembler.h"
#include "vm/disasm.h"
#include "vm/explain.h"

using namespace sluice;
using namespace sluice::vm;

namespace {
Assembler sample() {
  Assembler a;
  a.state("hits", slot(Base::num), Value::number(0));
  a.documents(DocumentKind::text);
  a.number(0.5);
  a.text("a \"b\"");
  a.function("half", "N", 'N', "N", {word_x(Op::numk, 1, 0), word(Op::mul, 1, 0, 1), word(Op::ret, 1)});
  a.function("maybe", "", 'T', "T", {word(Op::retabs)});
  a.module.functions[1].partial = true;
  a.handler(event_of(a.message("take", {{"n", slot(Base::u32)}, {"who", slot(Base::slug)}})), "NBTTT",
            {word_x(Op::field, 0, 0), word(Op::call, 0, 0, 0), word_x(Op::integer, 0, 0xfffe), word(Op::len, 1, 0, 0),
             word_x(Op::jt, 1, 6), word(Op::fail, kNoRegister, 4), word_x(Op::textk, 2, 0), word(Op::move, 3, 2),
             word(Op::concat, 4, 2, 2), word(Op::builtin, 0, 2, 10), word_x(Op::sets, 0, 0), word(Op::jbeg),
             word_x(Op::jfld, 0, 0), word(Op::replyj)});
  a.view("hits", {}, Type::num, "N", {word_x(Op::gets, 0, 0), word(Op::ret, 0)});
  return a;
}
}  // namespace

TEST_CASE("the listing reads as the design shows it") {
  CHECK(disassemble(*sample().build()) == R"(module sample 1

fn half   N | N -> N
  0  NUMK    r1 = 0.5
  1  MUL     r1 = r0 * r1
  2  RET     r1

fn maybe   T -> T?
  0  RETABS

on take   N B T T T
  0  FIELD   r0 = field 0
  1  CALL    r0 = half(r0)
  2  INT     r0 = -2
  3  LEN     r1 = r0 <= r0
  4  JT      r1 -> 6
  5  FAIL    limit
  6  TEXTK   r2 = "a \"b\""
  7  MOVE    r3 = r2
  8  CONCAT  r4 = r2, r3
  9  BUILTIN r0 = size(r2)
 10  SETS    hits = r0
 11  JBEG
 12  JFLD    "a \"b\"" = r0
 13  REPLYJ

view hits   N -> N
  0  GETS    r0 = hits
  1  RET     r0
)");
}

TEST_CASE("any word can be listed, whatever it holds") {
  const auto m = sample().build();
  for (unsigned op = 0; op < 256; ++op) {
    const Word w = word(static_cast<Op>(op), 250, 251, 252);
    const std::string line = disassemble(*m, m->functions[0], w);
    CHECK(!line.empty());
    CHECK(line.starts_with(mnemonic(static_cast<Op>(op)).empty() ? "?" : mnemonic(static_cast<Op>(op))));
  }
}

TEST_CASE("the worst cases are aligned") {
  CHECK(grouped(1234567) == "1,234,567");
  CHECK(grouped(999, 5) == "  999");
  CHECK(explain("s.aup", *sample().build()) ==
        "s.aup: on take      14 instructions, at most     132 fuel,   0 rows read,     1 written\n"
        "s.aup: view hits     2 instructions, at most       3 fuel,   0 rows read,     0 written\n");
}
