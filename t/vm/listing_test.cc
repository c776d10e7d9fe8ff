#include <doctest/doctest.h>

#include "t/vm/refusals.h"
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

TEST_CASE("instructions on tables name what they work on") {
  Shop s;
  s.scan({0, 2, 1, Bound::none, Bound::none, false, false, 5});
  s.scan({0, 0, 0, Bound::excluding, Bound::including, true, true, 0});
  s.function("left", "R0", 'N', "N", {word(Op::col, 1, 0, 1), word(Op::ret, 1)});
  s.start("TNBTR0NR1C0",
          {word_x(Op::textk, 0, 0), word_x(Op::integer, 1, 1), word(Op::boolean, 2, 1), word_x(Op::textk, 3, 0), word(Op::insert, kNoRegister, 0, 0),
           word(Op::insert, kNoRegister, 0, 1), word(Op::row, 4, 0, 0), word(Op::call, 5, 4, 0), word(Op::setcol, 4, 1, 5), word(Op::clrcol, 4, 2),
           word_x(Op::count, 5, 0), word(Op::gcount, 5, 0, 1), word(Op::total, 5, 0, 0), word(Op::total, 5, 1, 2), word(Op::rank, 5, 4, 0),
           word(Op::row, 6, 0, 1), word_x(Op::absent, 0, 18), word(Op::erase, 6), word_x(Op::integer, 5, 1), word(Op::move, 1, 5), word(Op::open, 7, 0, 3),
           word(Op::next, 4, 7), word_x(Op::absent, 0, 24), word_x(Op::loop, 0, 21), word(Op::open, 7, 0, 0), word(Op::next, 4, 7), word_x(Op::absent, 0, 29),
           word(Op::replyr, 4), word_x(Op::loop, 0, 25), word(Op::done)});
  s.module.tables[1].key = {0};   // so that one text is a key
  s.module.tables[1].columns[1].automatic = false;
  s.module.tables[1].columns[1].first = Value::number(0);
  CHECK(disassemble(*s.build()) == R"(module sample 1

scan 0  item limit 100 streams
scan 1  item by by_price from below limit 10
scan 2  cart[1] desc limit 50
scan 3  item by by_note[1] limit 5
scan 4  item above to desc paged streams

fn left   R item | N -> N
  0  COL     r1 = r0.left
  1  RET     r1

on start   T N B T R item N R cart C item
  0  TEXTK   r0 = "x"
  1  INT     r1 = 1
  2  BOOL    r2 = true
  3  TEXTK   r3 = "x"
  4  INSERT  item (sku, left, note) from r0..
  5  INSERT  item (sku, left) from r0..
  6  ROW     r4 = item[r0]
  7  CALL    r5 = left(r4)
  8  SETCOL  r4.left = r5
  9  CLRCOL  r4.note
 10  COUNT   r5 = item
 11  GCOUNT  r5 = cart[r0]
 12  TOTAL   r5 = item.worth
 13  TOTAL   r5 = item.alike[r1]
 14  RANK    r5 = r4 by by_price
 15  ROW     r6 = cart[r0]
 16  ABSENT  -> 18
 17  DELETE  r6
 18  INT     r5 = 1
 19  MOVE    r1 = r5
 20  OPEN    r7 = scan 3 from r0..
 21  NEXT    r4 from r7
 22  ABSENT  -> 24
 23  LOOP    -> 21
 24  OPEN    r7 = scan 0
 25  NEXT    r4 from r7
 26  ABSENT  -> 29
 27  REPLYR  r4
 28  LOOP    -> 25
 29  DONE
)");
  CHECK(disassemble(s.module, s.module.functions[1], word(Op::update, 4, 1, 2)) == "UPDATE  r4 (note, price) from r1..");
}

TEST_CASE("any word can be listed, whatever it holds") {
  for (const unsigned r : {4u, 250u}) {
    Shop s;
    s.start("TNBTR0NR1C0", {word(Op::done)});
    for (unsigned op = 0; op < 256; ++op)
      for (const unsigned n : {0u, 3u, 7u, 251u}) CHECK(!disassemble(s.module, s.module.functions[0], word(static_cast<Op>(op), r, n, n)).empty());
  }
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
