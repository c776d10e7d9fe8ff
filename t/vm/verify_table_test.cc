// What the loader proves about instructions on tables, each used rightly once and refused in each other way.
#include <doctest/doctest.h>

#include "t/vm/refusals.h"

using namespace sluice;
using namespace sluice::vm;

namespace {
constexpr Word kDone = word(Op::done), kText = word_x(Op::textk, 0, 0);

// Why `on start` of a shop with this code is refused, without its beginning.
std::string shop(std::string_view registers, std::vector<Word> code, bool writes = true) {
  const std::string why = Shop::refusal_of(registers, std::move(code), writes);
  return why.starts_with("module: on start at ") ? why.substr(20) : why;
}
// The same behind a text in register 0 and the item of that name in register 1; registers go on behind them.
std::string with_row(std::string_view registers, std::vector<Word> code, bool writes = true) {
  code.insert(code.begin(), {kText, word(Op::row, 1, 0, 0)});
  return shop("TR0" + std::string(registers), std::move(code), writes);
}
Facts facts(std::string_view registers, std::vector<Word> code) {
  Shop s;
  s.start(registers, std::move(code));
  return s.build()->facts[0];
}
}  // namespace

TEST_CASE("ROW takes the key of its table and may find nothing") {
  CHECK(shop("TR0", {kText, word(Op::row, 1, 0, 0), kDone}).empty());
  CHECK(shop("TR0", {kText, word(Op::row, 1, 0, 0), word_x(Op::absent, 0, 3), kDone}).empty());
  CHECK(shop("TR0", {kText, word(Op::row, 1, 0, 0), word_x(Op::absent, 0, 3), word(Op::replyr, 1)}) == "3: register 1 may have no value");
  CHECK(shop("TR0", {kText, word(Op::row, 1, 0, 3), kDone}) == "1: there is no table 3");
  CHECK(shop("NR0", {word_x(Op::integer, 0, 1), word(Op::row, 1, 0, 0), kDone}) == "1: register 0 is N, not T");
  CHECK(shop("TR1", {kText, word(Op::row, 1, 0, 0), kDone}) == "1: register 1 is R cart, not R item");
  CHECK(shop("TN", {kText, word(Op::row, 1, 0, 0), kDone}) == "1: register 1 is N, not R item");
  CHECK(shop("TNR1", {kText, word_x(Op::integer, 1, 1), word(Op::row, 2, 0, 1), kDone}).empty());
  CHECK(shop("TNR1", {kText, word(Op::row, 2, 0, 1), kDone}) == "1: register 1 may have no value");
  CHECK(shop("R1T", {word_x(Op::textk, 1, 0), word(Op::row, 0, 1, 1), kDone}) == "1: there is no register 2");
}

TEST_CASE("COL reads a column of a row that has a value, and only a `?` one may be absent") {
  CHECK(with_row("N", {word(Op::col, 2, 1, Shop::left), kDone}).empty());
  CHECK(with_row("T", {word(Op::col, 2, 1, Shop::note), word_x(Op::absent, 0, 4), kDone}).empty());
  CHECK(with_row("N", {word(Op::col, 2, 1, Shop::left), word_x(Op::absent, 0, 4), kDone}) == "2: ABSENT behind what is never absent");
  CHECK(with_row("N", {word(Op::col, 2, 1, 4), kDone}) == "2: there is no column 4");
  CHECK(with_row("N", {word(Op::col, 2, 1, Shop::sku), kDone}) == "2: register 2 is N, not T");
  CHECK(with_row("N", {word(Op::col, 2, 0, 0), kDone}) == "2: register 0 is T, not a row");
  CHECK(with_row("N", {word(Op::col, 2, 9, 0), kDone}) == "2: there is no register 9");
  CHECK(shop("R0N", {word(Op::col, 1, 0, 1), kDone}) == "0: register 0 may have no value");
}

TEST_CASE("SETCOL and CLRCOL change columns outside the key, and clear only `?` ones") {
  const Word one = word_x(Op::integer, 2, 1);
  CHECK(with_row("N", {one, word(Op::setcol, 1, Shop::left, 2), kDone}).empty());
  CHECK(with_row("N", {one, word(Op::setcol, 1, Shop::left, 2), kDone}, false) == "3: writes, but the function is not said to");
  CHECK(with_row("", {word(Op::setcol, 1, Shop::sku, 0), kDone}) == "2: changes the column `sku` of the key");
  CHECK(with_row("", {word(Op::setcol, 1, 4, 0), kDone}) == "2: there is no column 4");
  CHECK(with_row("", {word(Op::setcol, 1, Shop::left, 0), kDone}) == "2: register 0 is T, not N");
  CHECK(with_row("N", {word(Op::setcol, 1, Shop::left, 2), kDone}) == "2: register 2 may have no value");
  CHECK(with_row("", {word(Op::setcol, 0, 1, 0), kDone}) == "2: register 0 is T, not a row");
  CHECK(with_row("", {word(Op::clrcol, 1, Shop::note), kDone}).empty());
  CHECK(with_row("", {word(Op::clrcol, 1, Shop::left), kDone}) == "2: the column `left` is never absent");
  CHECK(with_row("", {word(Op::clrcol, 1, Shop::sku), kDone}) == "2: changes the column `sku` of the key");
  CHECK(with_row("", {word(Op::clrcol, 1, Shop::note, 1), kDone}) == "2: an operand that is not used is not 0");
  CHECK(with_row("", {word(Op::clrcol, 1, Shop::note), kDone}, false) == "2: writes, but the function is not said to");
  Shop numbered;
  numbered.module.tables[0].columns[1] = {"left", slot(Base::integer), true};
  numbered.module.shapes.clear();
  numbered.start("TR0N", {kText, word(Op::row, 1, 0, 0), one, word(Op::setcol, 1, 1, 2), kDone});
  CHECK(numbered.refusal() == "module: on start at 3: gives the column `left`, which is numbered");
}

TEST_CASE("INSERT takes a whole row, two registers for a `?` column, and gives a number only of a table with one") {
  // item: sku, left, whether there is a note, note
  const auto insert = [](std::string_view registers, Word w, bool writes = true) {
    std::vector<Word> code;
    const auto types = Assembler::types(registers);
    for (unsigned i = 0; i < types.size() && i < 4; ++i)
      code.push_back(types[i] == Type::num ? word_x(Op::integer, i, 1) : types[i] == Type::text ? word_x(Op::textk, i, 0) : word(Op::boolean, i, 1));
    code.push_back(w);
    code.push_back(kDone);
    return shop(registers, std::move(code), writes);
  };
  const Word plain = word(Op::insert, kNoRegister, 0, 0);
  CHECK(insert("TNBT", plain).empty());
  CHECK(insert("TNBT", plain, false) == "4: writes, but the function is not said to");
  CHECK(insert("TNTB", plain) == "4: register 2 is T, not B");
  CHECK(insert("TNBN", plain) == "4: register 3 is N, not T");
  CHECK(insert("TN", plain) == "2: there is no register 2");
  CHECK(insert("TN", word(Op::insert, kNoRegister, 0, 1)).empty());        // put
  CHECK(insert("TNN", word(Op::insert, 2, 0, 1)) == "3: the table `item` numbers no rows");
  CHECK(insert("TNN", word(Op::insert, kNoRegister, 0, 2)) == "3: row shape 2 makes no rows");
  CHECK(insert("TNN", word(Op::insert, kNoRegister, 0, 9)) == "3: there is no row shape 9");
  CHECK(insert("TTNN", word(Op::insert, 2, 0, 3)).empty());
  CHECK(insert("TTTN", word(Op::insert, 2, 0, 3)) == "4: register 2 is T, not N");
  CHECK(insert("TTN", word(Op::insert, kNoRegister, 0, 3)).empty());
  // a table whose rows need nothing
  Shop s;
  s.table("tick", {{"id", slot(Base::integer), true}}, {0});
  const unsigned nothing = s.shape(3, Writing::insert, {});
  s.start("N", {word(Op::insert, 0, 0, nothing), word(Op::insert, kNoRegister, 0, nothing), kDone});
  CHECK(s.refusal().empty());
  s.module.functions[0].code[0] = word(Op::insert, 0, 1, nothing);
  CHECK(s.refusal() == "module: on start at 0: an operand that is not used is not 0");
}

TEST_CASE("UPDATE changes a row of its shape's table, DELETE any row") {
  const Word yes = word(Op::boolean, 2, 1), note = word_x(Op::textk, 3, 0), price = word_x(Op::integer, 4, 1);
  CHECK(with_row("BTN", {yes, note, price, word(Op::update, 1, 2, 2), kDone}).empty());
  CHECK(with_row("BTN", {yes, price, word(Op::update, 1, 2, 2), kDone}) == "4: register 3 may have no value");
  CHECK(with_row("BTN", {yes, note, price, word(Op::update, 1, 2, 0), kDone}) == "5: row shape 0 makes rows");
  CHECK(with_row("BTN", {yes, note, price, word(Op::update, 1, 2, 9), kDone}) == "5: there is no row shape 9");
  CHECK(with_row("BTN", {yes, note, price, word(Op::update, 0, 2, 2), kDone}) == "5: register 0 is T, not R item");
  CHECK(with_row("BTN", {yes, note, price, word(Op::update, 1, 2, 2), kDone}, false) == "5: writes, but the function is not said to");
  CHECK(with_row("", {word(Op::erase, 1), kDone}).empty());
  CHECK(with_row("", {word(Op::erase, 0), kDone}) == "2: register 0 is T, not a row");
  CHECK(with_row("", {word(Op::erase, 1, 1), kDone}) == "2: an operand that is not used is not 0");
  CHECK(with_row("", {word(Op::erase, 1, 0, 1), kDone}) == "2: an operand that is not used is not 0");
  CHECK(with_row("", {word(Op::erase, 1), kDone}, false) == "2: writes, but the function is not said to");
}

TEST_CASE("COUNT, GCOUNT and TOTAL ask for what a table keeps") {
  CHECK(shop("N", {word_x(Op::count, 0, 2), kDone}).empty());
  CHECK(shop("N", {word_x(Op::count, 0, 3), kDone}) == "0: there is no table 3");
  CHECK(shop("N", {word_x(Op::count, 0, 256), kDone}) == "0: there is no table 256");
  CHECK(shop("T", {word_x(Op::count, 0, 0), kDone}) == "0: register 0 is T, not N");
  CHECK(shop("TN", {kText, word(Op::gcount, 1, 0, 1), kDone}).empty());
  CHECK(shop("TN", {kText, word(Op::gcount, 1, 0, 0), kDone}) == "1: the table `item` counts no groups");
  CHECK(shop("TN", {kText, word(Op::gcount, 1, 0, 3), kDone}) == "1: there is no table 3");
  CHECK(shop("TN", {kText, word(Op::gcount, 1, 1, 1), kDone}) == "1: register 1 is N, not T");
  CHECK(shop("N", {word(Op::total, 0, 0, 0), kDone}).empty());
  CHECK(shop("N", {word(Op::total, 0, 0, 0), word_x(Op::absent, 0, 2), kDone}).empty());   // a sum of num
  CHECK(shop("N", {word(Op::total, 0, 0, 1), word_x(Op::absent, 0, 2), kDone}) == "0: ABSENT behind what is never absent");
  CHECK(shop("N", {word(Op::total, 0, 1, 0), kDone}) == "0: an operand that is not used is not 0");
  CHECK(shop("N", {word(Op::total, 0, 0, 4), kDone}) == "0: there is no total 4");
  CHECK(shop("NN", {word_x(Op::integer, 0, 1), word(Op::total, 1, 0, 2), word_x(Op::absent, 0, 3), kDone}) ==
        "1: ABSENT behind what is never absent");
  CHECK(shop("TN", {kText, word(Op::total, 1, 0, 3), kDone}).empty());
  CHECK(shop("TN", {kText, word(Op::total, 1, 1, 3), kDone}) == "1: register 1 is N, not T");
}

TEST_CASE("RANK needs a ranked index of the row's table, which the row may not be in") {
  CHECK(with_row("N", {word(Op::rank, 2, 1, 0), kDone}).empty());
  CHECK(with_row("N", {word(Op::rank, 2, 1, 0), word_x(Op::absent, 0, 4), kDone}).empty());
  CHECK(with_row("N", {word(Op::rank, 2, 1, 1), kDone}) == "2: the index `by_note` is not ranked");
  CHECK(with_row("N", {word(Op::rank, 2, 1, 2), kDone}) == "2: there is no index 2");
  CHECK(with_row("N", {word(Op::rank, 2, 0, 0), kDone}) == "2: register 0 is T, not a row");
}

TEST_CASE("handlers reply a row as a record, and rows and cursors as nothing else") {
  CHECK(with_row("", {word(Op::replyr, 1)}).empty());
  CHECK(with_row("", {word(Op::replyr, 0)}) == "2: register 0 is T, not a row");
  CHECK(with_row("", {word(Op::replyr, 1, 1)}) == "2: an operand that is not used is not 0");
  CHECK(with_row("", {word(Op::replyv, 1)}) == "2: a row or cursor is no value to reply");
  CHECK(with_row("", {word(Op::jbeg), word_x(Op::jfld, 1, 0), word(Op::replyj)}) == "3: a row or cursor is no value to reply");
  Shop s;
  s.function("f", "R0", '-', "", {word(Op::replyr, 0)});
  CHECK(s.refusal() == "module: fn f at 0: only handlers reply");
}

TEST_CASE("rows are moved and passed, to the function's own table, and cursors are not") {
  CHECK(with_row("R0", {word(Op::move, 2, 1), kDone}).empty());
  CHECK(with_row("R1", {word(Op::move, 2, 1), kDone}) == "2: register 2 is R cart, not R item");
  CHECK(shop("C0C0R0", {word(Op::open, 0, 0, 0), word(Op::next, 2, 0), word_x(Op::absent, 0, 5), word(Op::move, 1, 0), word_x(Op::loop, 0, 1), kDone}) ==
        "3: a cursor stays where it was opened");
  const auto call = [](std::string_view parameter) {
    Shop s;
    s.function("f", parameter, '-', "", {kDone});
    s.start("TR0", {kText, word(Op::row, 1, 0, 0), word(Op::call, kNoRegister, 1, 0), kDone});
    return s.refusal();
  };
  CHECK(call("R0").empty());
  CHECK(call("R1") == "module: on start at 2: register 1 is R item, not R cart");
}

namespace {
// A loop over items with a body of register 1, then `on start`'s end; registers go on behind cursor and row.
std::vector<Word> over(unsigned scan, std::vector<Word> body) {
  std::vector<Word> code{word(Op::open, 0, 0, scan), word(Op::next, 1, 0), word_x(Op::absent, 0, static_cast<unsigned>(4 + body.size()))};
  code.insert(code.end(), body.begin(), body.end());
  code.push_back(word_x(Op::loop, 0, 1));
  code.push_back(kDone);
  return code;
}
std::string changed(std::vector<Word> code, std::size_t at, Word w, std::string_view registers = "C0R0B") {
  code[at] = w;
  return shop(registers, std::move(code));
}
}  // namespace

TEST_CASE("a loop over rows is opened and closed where it stands") {
  const std::vector<Word> plain = over(0, {word(Op::nop)});
  CHECK(shop("C0R0", plain).empty());
  CHECK(changed(plain, 0, word(Op::nop)) == "1: no OPEN of its own is before it");
  CHECK(changed(plain, 0, word(Op::open, 0, 0, 9)) == "0: there is no scan 9");
  CHECK(changed(plain, 0, word(Op::open, 0, 1, 0)) == "0: an operand that is not used is not 0");
  CHECK(changed(plain, 1, word(Op::nop)) == "0: no NEXT of its own follows");
  CHECK(changed(plain, 1, word(Op::next, 1, 1)) == "0: no NEXT of its own follows");
  CHECK(changed(plain, 1, word(Op::next, 1, 0, 1)) == "1: an operand that is not used is not 0");
  CHECK(changed(plain, 1, word(Op::next, 2, 0)) == "1: register 2 is B, not R item");
  CHECK(changed(plain, 1, word(Op::next, 2, 0), "C0R0R1") == "1: register 2 is R cart, not R item");
  CHECK(changed(plain, 2, word(Op::nop)) == "1: no ABSENT follows");
  CHECK(changed(plain, 2, word_x(Op::absent, 0, 4)) == "1: its ABSENT does not go behind its LOOP");
  CHECK(changed(plain, 2, word_x(Op::absent, 1, 5)) == "1: an operand that is not used is not 0");
  CHECK(changed(plain, 4, word_x(Op::loop, 0, 0)) == "1: its ABSENT does not go behind its LOOP");
  CHECK(shop("C0", {word(Op::open, 0, 0, 0), kDone}) == "0: no NEXT of its own follows");
  CHECK(shop("C0", {word(Op::open, 0, 0, 0)}) == "0: no NEXT of its own follows");
  CHECK(shop("C1R0", plain) == "0: register 0 is C cart, not C item");
  CHECK(shop("C0R0", over(0, {word(Op::open, 0, 0, 0), word(Op::next, 1, 0), word_x(Op::absent, 0, 7), word_x(Op::loop, 0, 4)})) ==
        "3: register 0 belongs to a loop");
  CHECK(shop("C0R0B", over(0, {word(Op::boolean, 2, 1), word_x(Op::jt, 2, 6)})) == "4: jumps out of a loop");
  CHECK(shop("BC0R0", {word(Op::boolean, 0, 1), word_x(Op::jt, 0, 3), word(Op::open, 1, 0, 0), word(Op::next, 2, 1), word_x(Op::absent, 0, 6),
                       word_x(Op::loop, 0, 3), kDone}) == "2: a jump leads between OPEN and what follows");
  CHECK(shop("BC0R0", {word(Op::boolean, 0, 1), word_x(Op::jt, 0, 5), word(Op::open, 1, 0, 0), word(Op::next, 2, 1), word_x(Op::absent, 0, 7),
                       word(Op::nop), word_x(Op::loop, 0, 3), kDone}) == "3: a jump leads into the loop");
}

TEST_CASE("a row is there in its loop and not behind it") {
  CHECK(shop("C0R0", over(0, {word(Op::replyr, 1)})).empty());
  std::vector<Word> behind = over(0, {});
  behind.back() = word(Op::replyr, 1);
  CHECK(shop("C0R0", behind) == "4: register 1 may have no value");
}

TEST_CASE("the window of OPEN holds the columns of the order, then its bounds") {
  const std::vector<Word> numbers{word_x(Op::integer, 0, 1), word_x(Op::integer, 1, 9)};
  const auto open = [&](std::string_view registers, unsigned cursor, unsigned scan, std::vector<Word> before) {
    const auto at = static_cast<unsigned>(before.size());
    for (const Word w : {word(Op::open, cursor, 0, scan), word(Op::next, cursor + 1, cursor), word_x(Op::absent, 0, at + 4), word_x(Op::loop, 0, at + 1), kDone})
      before.push_back(w);
    return shop(registers, std::move(before));
  };
  CHECK(open("NNC0R0", 2, 1, numbers).empty());                        // by_price from, below
  CHECK(open("NNC0R0", 2, 1, {numbers[0]}) == "1: register 1 may have no value");
  CHECK(open("NTC0R0", 2, 1, {numbers[0], word_x(Op::textk, 1, 0)}) == "2: register 1 is T, not N");
  CHECK(open("TC1R1", 1, 2, {kText}).empty());                         // cart[user]
  CHECK(open("NC1R1", 1, 2, {numbers[0]}) == "1: register 0 is N, not T");
  Shop s;
  s.module.scans[0].limit = 0;
  s.start("C0R0", over(0, {}));
  CHECK(s.refusal() == "module: on start at 0: a loop's limit is not 1 to 10000");
}

TEST_CASE("a loop that streams writes no table, not in what it calls either") {
  Shop s;
  const unsigned taken = s.scan({0, 0, 0, Bound::none, Bound::none, false, false, 100});
  CHECK(shop("C0R0", over(0, {word(Op::erase, 1)})) == "3: writes tables in a loop that streams");
  s.start("C0R0", over(taken, {word(Op::erase, 1)}));
  CHECK(s.refusal().empty());
  const auto calls = [](bool streams) {
    Shop shop;
    shop.state("n", slot(Base::num), Value::number(0));
    shop.module.scans[0].streams = streams;
    shop.module.functions[shop.function("remove", "R0", '-', "", {word(Op::erase, 0), kDone})].writes = true;
    shop.start("C0R0", over(0, {word(Op::call, kNoRegister, 1, 0)}));
    return shop.refusal();
  };
  CHECK(calls(false).empty());
  CHECK(calls(true) == "module: on start at 3: writes tables in a loop that streams");
  // within a loop within it
  std::vector<Word> nested = over(0, {word(Op::open, 2, 0, taken), word(Op::next, 3, 2), word_x(Op::absent, 0, 8), word(Op::erase, 3), word_x(Op::loop, 0, 4)});
  Shop inner;
  inner.scan({0, 0, 0, Bound::none, Bound::none, false, false, 100});
  inner.start("C0R0C0R0", nested);
  CHECK(inner.refusal() == "module: on start at 6: writes tables in a loop that streams");
  // a state is no table
  Shop state;
  state.state("n", slot(Base::num), Value::number(0));
  state.start("C0R0N", over(0, {word(Op::col, 2, 1, Shop::left), word_x(Op::sets, 2, 0)}));
  CHECK(state.refusal().empty());
}

TEST_CASE("loops over rows and numbers are at most four deep together") {
  const auto deep = [](unsigned rows, unsigned numbers) {
    std::vector<Word> code;
    std::string registers;
    std::vector<unsigned> heads;
    unsigned r = 0;
    for (unsigned i = 0; i < rows; ++i, r += 2) {
      registers += "C0R0";
      code.push_back(word(Op::open, r, 0, 0));
      heads.push_back(static_cast<unsigned>(code.size()));
      code.push_back(word(Op::next, r + 1, r));
      code.push_back(0);
    }
    for (unsigned i = 0; i < numbers; ++i, r += 2) {
      registers += "NN";
      code.push_back(word_x(Op::integer, r, 1));
      code.push_back(word_x(Op::integer, r + 1, 2));
      code.push_back(word_x(Op::forp, r, 5));
      heads.push_back(static_cast<unsigned>(code.size()));
      code.push_back(word_x(Op::forl, r, 5));
      code.push_back(0);
    }
    for (std::size_t i = heads.size(); i-- > 0;) {
      code.push_back(word_x(Op::loop, 0, heads[i]));
      code[heads[i] + 1] = word_x(Op::absent, 0, static_cast<unsigned>(code.size()));
    }
    code.push_back(kDone);
    return shop(registers, code);
  };
  CHECK(deep(2, 2).empty());
  CHECK(deep(4, 0).empty());
  CHECK(deep(3, 2) == "17: loops are more than 4 deep");
}

TEST_CASE("facts say what a function costs, reads and writes") {
  const Facts loop = facts("C0R0N", over(0, {word(Op::col, 2, 1, Shop::left)}));
  CHECK(loop.fuel == 150 + 101 * 41 + 100 * (2 + 1) + 1);
  CHECK(loop.rows_read == 100);
  CHECK(loop.rows_written == 0);
  CHECK(loop.tables_read == 1);
  CHECK(loop.tables_written == 0);
  CHECK(!loop.writes);

  const Facts sell = facts("TR0N", {kText, word(Op::row, 1, 0, 0), word_x(Op::integer, 2, 1), word(Op::setcol, 1, Shop::left, 2), word(Op::replyr, 1)});
  CHECK(sell.fuel == 1 + 100 + 1 + (200 + 100 * 2) + 50);   // `left` is summed, and grouped by
  CHECK(sell.rows_read == 1);
  CHECK(sell.rows_written == 1);
  CHECK(sell.tables_read == 1);
  CHECK(sell.tables_written == 1);
  CHECK(sell.writes);

  const Facts say = facts("T", {kText, word(Op::insert, kNoRegister, 0, 4), kDone});
  CHECK(say.fuel == 1 + (400 + 2 * 300) + 1);
  CHECK(say.rows_written == 3);                             // one makes room, or two where there were more before
  CHECK(say.tables_written == 4);

  const Facts asked = facts("TN", {kText, word_x(Op::count, 1, 2), word(Op::gcount, 1, 0, 1), word(Op::total, 1, 0, 3), kDone});
  CHECK(asked.fuel == 1 + 2 + 100 + 100 + 1);
  CHECK(asked.rows_read == 2);
  CHECK(asked.tables_read == 6);
  CHECK(!asked.ranks);
  CHECK(facts("TR0N", {kText, word(Op::row, 1, 0, 0), word(Op::rank, 2, 1, 0), kDone}).ranks);

  Shop s;
  s.module.functions[s.function("drop", "R0", '-', "N", {word(Op::rank, 1, 0, 0), word(Op::erase, 0), kDone})].writes = true;
  s.start("TR0", {kText, word(Op::row, 1, 0, 0), word(Op::call, kNoRegister, 1, 0), kDone});
  const auto m = s.build();
  CHECK(m->facts[1].ranks);
  CHECK(m->facts[1].tables_written == 1);
  CHECK(m->facts[1].fuel == 1 + 100 + 5 + (800 + (300 + 100 * 5) + 1) + 1);
}

TEST_CASE("a write costs what it can move") {
  Shop s;
  const Module& m = s.module;
  Function f;
  f.registers = Assembler::types("R0R1N");
  const auto fuel = [&](Word w) { return fuel_of(m, f, w); };
  CHECK(fuel(word(Op::setcol, 0, Shop::note, 2)) == 300);         // by_note
  CHECK(fuel(word(Op::setcol, 0, Shop::price, 2)) == 400);        // by_price, worth
  CHECK(fuel(word(Op::clrcol, 0, Shop::note)) == 300);
  CHECK(fuel(word(Op::setcol, 1, Shop::quantity, 2)) == 300);     // wanted
  CHECK(fuel(word(Op::insert, 255, 0, s.new_item)) == 900);
  CHECK(fuel(word(Op::insert, 255, 0, s.new_line)) == 500);
  CHECK(fuel(word(Op::update, 0, 0, s.change_item)) == 250 + 300);
  CHECK(fuel(word(Op::erase, 1)) == 400);
  s.module.tables[s.item].size = Size::keep;                      // two rows go at most
  CHECK(fuel(word(Op::insert, 255, 0, s.new_item)) == 900 + 2 * 800);
  s.module.tables[s.item].group_size = Size::keep;                // and two of the group
  CHECK(fuel(word(Op::insert, 255, 0, s.new_item)) == 900 + 4 * 800);
  CHECK(fuel(word(Op::add, 0, 0, 0)) == 1);
}
