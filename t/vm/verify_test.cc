// Everything that the loader proves about code, each with a module that breaks it.
#include <doctest/doctest.h>

#include "t/vm/refusals.h"

using namespace sluice;
using namespace sluice::vm;

namespace {
constexpr Word kDone = word(Op::done);

// A keyed message's handler over documents of a kind.
std::string keyed(DocumentKind kind, std::string_view registers, std::vector<Word> code, bool writes = true) {
  Assembler a;
  a.documents(kind);
  a.handler(event_of(a.message("edit", {{"n", slot(Base::u32)}, {"body", slot(Base::text, 9)}}, true)), registers, std::move(code), writes);
  return a.refusal();
}
}  // namespace

TEST_CASE("registers have the type an instruction needs, and exist") {
  CHECK(start("NT", {word_x(Op::textk, 1, 0), word(Op::add, 0, 1, 1), kDone}) == "module: on start at 1: register 1 is T, not N");
  CHECK(start("N", {word_x(Op::textk, 0, 0), kDone}) == "module: on start at 0: register 0 is N, not T");
  CHECK(start("N", {word_x(Op::integer, 1, 0), kDone}) == "module: on start at 0: there is no register 1");
  CHECK(start("N", {word(Op::move, 0, 7), kDone}) == "module: on start at 0: there is no register 7");
  CHECK(start("NT", {word_x(Op::integer, 0, 1), word(Op::move, 1, 0), kDone}) == "module: on start at 1: register 1 is T, not N");
  CHECK(start("T", {word_x(Op::textk, 0, 0), word(Op::concat, 0, 0, 2), kDone}) == "module: on start at 1: there is no register 1");
  CHECK(start("T", {word_x(Op::textk, 0, 0), word(Op::concat, 0, 0, 0), kDone}) == "module: on start at 1: joins no texts");
  CHECK(start("N", {word_x(Op::integer, 0, 1), word_x(Op::jt, 0, 2), kDone}) == "module: on start at 1: register 0 is N, not B");
}

TEST_CASE("registers have a value on every path that reads them") {
  CHECK(start("NN", {word(Op::move, 0, 1), kDone}) == "module: on start at 0: register 1 may have no value");
  CHECK(start("BN", {word(Op::boolean, 0, 1), word_x(Op::jf, 0, 3), word_x(Op::integer, 1, 1), word(Op::neg, 1, 1), kDone}) ==
        "module: on start at 3: register 1 may have no value");
  CHECK(start("BN", {word(Op::boolean, 0, 1), word_x(Op::jf, 0, 4), word_x(Op::integer, 1, 1), word_x(Op::jmp, 0, 5),
                     word_x(Op::integer, 1, 2), word(Op::neg, 1, 1), kDone}).empty());
  CHECK(start("T", {word_x(Op::gets, 0, 1), word_x(Op::absent, 0, 2), word(Op::replyv, 0)}) ==
        "module: on start at 2: register 0 may have no value");
  CHECK(start("NNN", {word_x(Op::integer, 0, 1), word_x(Op::integer, 1, 2), word_x(Op::forp, 0, 5), word_x(Op::forl, 0, 5),
                      word_x(Op::absent, 0, 7), word_x(Op::integer, 2, 1), word_x(Op::loop, 0, 3), word(Op::replyv, 2)}) ==
        "module: on start at 7: register 2 may have no value");
  CHECK(start("NN", {word_x(Op::integer, 0, 1), word_x(Op::integer, 1, 2), word_x(Op::forp, 0, 5), word_x(Op::forl, 0, 5),
                     word_x(Op::absent, 0, 6), word_x(Op::loop, 0, 3), word(Op::replyv, 0)}) ==
        "module: on start at 6: register 0 may have no value");
}

TEST_CASE("jumps go forward, inside the function, to an instruction") {
  CHECK(start("", {word(Op::nop), word_x(Op::jmp, 0, 0), kDone}) == "module: on start at 1: jumps to 0, which is not ahead");
  CHECK(start("", {word_x(Op::jmp, 0, 0), kDone}) == "module: on start at 0: jumps to 0, which is not ahead");
  CHECK(start("", {word_x(Op::jmp, 0, 2), kDone}) == "module: on start at 0: jumps to 2, behind the end");
  CHECK(start("BT", {word(Op::boolean, 0, 1), word_x(Op::jt, 0, 3), word_x(Op::gets, 1, 1), word_x(Op::absent, 0, 4), kDone}) ==
        "module: on start at 2: a jump leads to ABSENT");
  CHECK(start("", {word_x(Op::absent, 0, 1), kDone}) == "module: on start at 0: ABSENT behind what is never absent");
  CHECK(start("N", {word_x(Op::gets, 0, 0), word_x(Op::absent, 0, 2), kDone}) == "module: on start at 0: ABSENT behind what is never absent");
}

TEST_CASE("every word can be reached, and no path runs off the end") {
  CHECK(start("", {kDone, kDone}) == "module: on start at 1: nothing leads here");
  CHECK(start("", {word_x(Op::jmp, 0, 2), word(Op::nop), kDone}) == "module: on start at 1: nothing leads here");
  CHECK(start("", {word(Op::nop)}) == "module: on start at 0: the function ends without an end");
  CHECK(start("", {word(static_cast<Op>(0xff)), kDone}) == "module: on start at 0: there is no instruction 255");
  CHECK(start("", {word(Op::nop, 1), kDone}) == "module: on start at 0: an operand that is not used is not 0");
}

namespace {
// A loop over registers 0 and 1 with a body, and what stands behind it.
std::vector<Word> loop(std::vector<Word> body, std::vector<Word> behind = {word(Op::done)}) {
  std::vector<Word> code{word_x(Op::integer, 0, 1), word_x(Op::integer, 1, 2), word_x(Op::forp, 0, 5), word_x(Op::forl, 0, 5),
                         word_x(Op::absent, 0, static_cast<unsigned>(6 + body.size()))};
  code.insert(code.end(), body.begin(), body.end());
  code.push_back(word_x(Op::loop, 0, 3));
  code.insert(code.end(), behind.begin(), behind.end());
  return code;
}
// Loops in loops, over registers 2i and 2i + 1, which are given in each round of the loop around.
std::vector<Word> nested(unsigned depth, std::vector<Word> body) {
  std::vector<Word> code;
  const auto end = static_cast<unsigned>(5 * depth + body.size() + depth);  // behind all LOOPs
  for (unsigned i = 0; i < depth; ++i) {
    code.push_back(word_x(Op::integer, 2 * i, 1));
    code.push_back(word_x(Op::integer, 2 * i + 1, 1));
    code.push_back(word_x(Op::forp, 2 * i, 10000));
    code.push_back(word_x(Op::forl, 2 * i, 10000));
    code.push_back(word_x(Op::absent, 0, end - i));
  }
  code.insert(code.end(), body.begin(), body.end());
  for (unsigned i = depth; i-- > 0;) code.push_back(word_x(Op::loop, 0, 5 * i + 3));
  code.push_back(kDone);
  return code;
}
std::string changed(std::vector<Word> code, std::size_t at, Word w) {
  code[at] = w;
  return start("NNB", std::move(code));
}
}  // namespace

TEST_CASE("loops are closed where they say, bounded, and neither left nor entered by a jump") {
  CHECK(start("NNB", loop({word(Op::nop)})).empty());
  CHECK(start("NNB", loop({word(Op::fail, kNoRegister, 1)})).empty());
  CHECK(changed(loop({}), 2, word_x(Op::forp, 0, 0)) == "module: on start at 2: a loop's limit is not 1 to 10000");
  CHECK(changed(loop({}), 2, word_x(Op::forp, 0, 10001)) == "module: on start at 2: a loop's limit is not 1 to 10000");
  CHECK(changed(loop({}), 2, word_x(Op::forp, 0, 6)) == "module: on start at 2: no FORL of its own follows");
  CHECK(changed(loop({}), 2, word(Op::nop)) == "module: on start at 3: no FORP of its own is before it");
  CHECK(changed(loop({}), 4, word(Op::nop)) == "module: on start at 3: no ABSENT follows");
  CHECK(changed(loop({}), 4, word_x(Op::absent, 0, 5)) == "module: on start at 3: its ABSENT does not go behind its LOOP");
  CHECK(changed(loop({}), 5, word_x(Op::loop, 0, 2)) == "module: on start at 3: its ABSENT does not go behind its LOOP");
  CHECK(start("", {word_x(Op::loop, 0, 0), kDone}) == "module: on start at 0: LOOP closes no open loop");
  CHECK(start("NNB", loop({word(Op::boolean, 2, 1), word_x(Op::jt, 2, 8)})) == "module: on start at 6: jumps out of a loop");
  CHECK(start("NNB", loop({word(Op::boolean, 2, 1), word_x(Op::jt, 2, 7)})).empty());
  const Word t = word(Op::boolean, 2, 1);
  for (const unsigned into : {6u, 7u, 8u}) {  // ABSENT, the body, LOOP
    std::vector<Word> code{word_x(Op::integer, 0, 1), word_x(Op::integer, 1, 2), t, word_x(Op::jt, 2, into),
                           word_x(Op::forp, 0, 5), word_x(Op::forl, 0, 5), word_x(Op::absent, 0, 9), word(Op::nop),
                           word_x(Op::loop, 0, 5), kDone};
    CHECK(start("NNB", code) == "module: on start at 5: a jump leads into the loop");
  }
  std::vector<Word> to_head{word_x(Op::integer, 0, 1), word_x(Op::integer, 1, 2), t, word_x(Op::jt, 2, 5), word_x(Op::forp, 0, 5),
                            word_x(Op::forl, 0, 5), word_x(Op::absent, 0, 8), word_x(Op::loop, 0, 5), kDone};
  CHECK(start("NNB", to_head) == "module: on start at 4: a jump leads into the loop");
  CHECK(start("NNB", loop({word_x(Op::integer, 0, 1)})) == "module: on start at 5: register 0 belongs to a loop");
  CHECK(start("NNB", loop({word_x(Op::integer, 1, 1)})) == "module: on start at 5: register 1 belongs to a loop");
}

TEST_CASE("loops are at most four deep") {
  CHECK(start(std::string(10, 'N'), nested(4, {word(Op::nop)})).empty());
  CHECK(start(std::string(10, 'N'), nested(5, {word(Op::nop)})) == "module: on start at 23: loops are more than 4 deep");
}

TEST_CASE("calls go to plain functions before the caller, eight running at most") {
  const auto caller = [](auto change) {
    Assembler a;
    a.function("f", "N", 'N', "", {word(Op::ret, 0)});
    a.start("NT", {word_x(Op::integer, 0, 1), word(Op::call, 0, 0, 0), kDone});
    change(a.module);
    return a.refusal();
  };
  CHECK(caller([](Module&) {}).empty());
  CHECK(caller([](Module& m) { m.functions[1].code[1] = word(Op::call, 0, 0, 1); }) ==
        "module: on start at 1: calls function 1, which is not before it");
  CHECK(caller([](Module& m) { m.functions[0].code = {word(Op::call, 0, 0, 0), word(Op::ret, 0)}; }) ==
        "module: fn f at 0: calls function 0, which is not before it");
  CHECK(caller([](Module& m) { m.functions[1].code[1] = word(Op::call, 0, 1, 0); }) == "module: on start at 1: register 1 is T, not N");
  CHECK(caller([](Module& m) { m.functions[1].code[1] = word(Op::call, 1, 0, 0); }) == "module: on start at 1: register 1 is T, not N");
  CHECK(caller([](Module& m) {
          m.functions[0].result = Type::none;
          m.functions[0].code = {kDone};
        }) == "module: on start at 1: takes the result of `fn f`, which has none");
  CHECK(caller([](Module& m) {
          m.functions[0].writes = true;
          m.functions[1].writes = false;
        }) == "module: on start at 1: calls `fn f`, which writes");
  CHECK(declared([](Assembler& a) {
          const unsigned k = a.input("k", InputKind::key);
          a.handler(event_of(k), "", {kDone});
          a.handler(event_of(k, true), "", {word(Op::call, kNoRegister, 0, 0), kDone});
        }) == "module: on k up at 0: calls `on k down`, which is no function");
  const auto deep = [](unsigned functions) {
    return declared([&](Assembler& a) {
      a.function("f0", "", '-', "", {kDone});
      for (unsigned i = 1; i < functions; ++i)
        a.function("f" + std::to_string(i), "", '-', "", {word(Op::call, kNoRegister, 0, i - 1), kDone});
      a.start("", {word(Op::call, kNoRegister, 0, functions - 1), kDone});
    });
  };
  CHECK(deep(7).empty());
  CHECK(deep(8) == "module: on start at 0: calls are more than 8 deep");
}

TEST_CASE("results come from functions and views, absence from partial ones, ends from the others") {
  const auto function = [](char result, bool partial, std::vector<Word> code) {
    return declared([&](Assembler& a) { a.module.functions[a.function("f", "N", result, "", std::move(code))].partial = partial; });
  };
  CHECK(start("N", {word_x(Op::integer, 0, 1), word(Op::ret, 0)}) == "module: on start at 1: a handler has no result");
  CHECK(function('N', false, {word(Op::retabs)}) == "module: fn f at 0: the function is never absent");
  CHECK(function('N', true, {word(Op::retabs)}).empty());
  CHECK(function('N', false, {kDone}) == "module: fn f at 0: the function has a result");
  CHECK(function('-', false, {word(Op::ret, 0)}) == "module: fn f at 0: the function has no result");
  CHECK(function('-', false, {word(Op::ret, kNoRegister)}).empty());
  CHECK(function('T', false, {word(Op::ret, 0)}) == "module: fn f at 0: register 0 is N, not T");
  CHECK(start("", {word(Op::fail, kNoRegister, 0)}) == "module: on start at 0: there is no fault 0");
  CHECK(start("", {word(Op::fail, kNoRegister, 9)}) == "module: on start at 0: there is no fault 9");
  CHECK(start("N", {word_x(Op::integer, 0, 1), word(Op::fail, 0, 1)}) == "module: on start at 1: register 0 is N, not T");
}

TEST_CASE("numbers of constants, states and language functions are in range") {
  CHECK(start("N", {word_x(Op::numk, 0, 1), kDone}) == "module: on start at 0: there is no number constant 1");
  CHECK(start("T", {word_x(Op::textk, 0, 1), kDone}) == "module: on start at 0: there is no text constant 1");
  CHECK(start("N", {word_x(Op::gets, 0, 2), kDone}) == "module: on start at 0: there is no state 2");
  CHECK(start("N", {word_x(Op::sets, 0, 2), kDone}) == "module: on start at 0: there is no state 2");
  CHECK(start("N", {word_x(Op::clrs, 0, 2), kDone}) == "module: on start at 0: there is no state 2");
  CHECK(start("N", {word(Op::builtin, 0, 0, 38), kDone}) == "module: on start at 0: there is no language function 38");
  CHECK(start("N", {word_x(Op::clrs, 0, 0), kDone}) == "module: on start at 0: the state `n` is never absent");
  CHECK(start("B", {word(Op::boolean, 0, 2), kDone}) == "module: on start at 0: a bool is 0 or 1");
  CHECK(start("T", {word_x(Op::textk, 0, 0), word(Op::builtin, 0, 0, 0), kDone}) == "module: on start at 1: register 0 is T, not N");
}

TEST_CASE("writes and chance stand only under the writes flag, so a view has neither") {
  const std::vector<Word> set{word_x(Op::integer, 0, 1), word_x(Op::sets, 0, 0), kDone};
  CHECK(start("N", set, true).empty());
  CHECK(start("N", set, false) == "module: on start at 1: writes, but the function is not said to");
  CHECK(start("", {word_x(Op::clrs, 0, 1), kDone}, false) == "module: on start at 0: writes, but the function is not said to");
  CHECK(start("N", {word_x(Op::integer, 0, 1), word(Op::builtin, 0, 0, 36), kDone}, false) ==
        "module: on start at 1: uses `random`, but the function is not said to write");
  CHECK(declared([](Assembler& a) {
          a.view("v", {}, Type::text, "NT", {word_x(Op::integer, 0, 1), word(Op::builtin, 1, 0, 37), word(Op::ret, 1)});
        }) == "module: view v at 1: uses `token`, but the function is not said to write");
}

TEST_CASE("the document belongs to handlers of keyed messages") {
  for (const Word w : {word(Op::doc, 0), word(Op::docset, 0), word(Op::docdel), word(Op::docapp, 0), word(Op::docspl, 0)})
    CHECK(start("T", {w, kDone}) == "module: on start at 0: only handlers of keyed messages use the document");
  CHECK(start("T", {word_x(Op::dockey, 0, 0), kDone}) == "module: on start at 0: only handlers of keyed messages use the document");
  CHECK(start("N", {word_x(Op::docrev, 0, 0), kDone}) == "module: on start at 0: only handlers of keyed messages use the document");
  CHECK(start("", {word(Op::replyd)}) == "module: on start at 0: only handlers of keyed messages use the document");
  CHECK(declared([](Assembler& a) {
          a.documents(DocumentKind::text);
          a.function("f", "", '-', "T", {word(Op::doc, 0), kDone});
        }) == "module: fn f at 0: only handlers of keyed messages use the document");
  CHECK(keyed(DocumentKind::text, "T", {word(Op::doc, 0), word(Op::docset, 0), word(Op::replyd)}).empty());
  CHECK(keyed(DocumentKind::text, "Y", {word(Op::doc, 0), kDone}) == "module: on edit at 0: register 0 is Y, not T");
  CHECK(keyed(DocumentKind::bytes, "YT", {word(Op::doc, 0), word_x(Op::field, 1, 1), word(Op::docset, 1), kDone}).empty());
  CHECK(keyed(DocumentKind::bytes, "N", {word_x(Op::docrev, 0, 0), word(Op::docset, 0), kDone}) == "module: on edit at 1: register 0 is N, not Y");
  CHECK(keyed(DocumentKind::text, "T", {word(Op::doc, 0, 2), kDone}) == "module: on edit at 0: there is no such way to ask for the document");
  CHECK(keyed(DocumentKind::text, "", {word(Op::docdel), kDone}, false) == "module: on edit at 0: writes, but the function is not said to");
}

TEST_CASE("fields are the handler's own, and only texts and bytes are borrowed") {
  CHECK(start("N", {word_x(Op::field, 0, 0), kDone}) == "module: on start at 0: there is no field 0");
  CHECK(start("", {word(Op::replyf, 0)}) == "module: on start at 0: there is no field 0");
  CHECK(keyed(DocumentKind::text, "N", {word_x(Op::field, 0, 2), kDone}) == "module: on edit at 0: there is no field 2");
  CHECK(keyed(DocumentKind::text, "T", {word_x(Op::field, 0, 0), kDone}) == "module: on edit at 0: register 0 is T, not N");
  CHECK(keyed(DocumentKind::text, "", {word(Op::replyf, 0)}) == "module: on edit at 0: field 0 is not borrowed");
  CHECK(keyed(DocumentKind::text, "", {word(Op::replyf, 2)}) == "module: on edit at 0: there is no field 2");
  CHECK(keyed(DocumentKind::text, "", {word(Op::replyf, 1)}).empty());
  CHECK(declared([](Assembler& a) { a.function("f", "", '-', "N", {word_x(Op::field, 0, 0), kDone}); }) ==
        "module: fn f at 0: only handlers have fields");
  CHECK(declared([](Assembler& a) { a.handler(event_of(a.input("k", InputKind::key)), "N", {word_x(Op::field, 0, 0), kDone}); }) ==
        "module: on k down at 0: there is no field 0");
}

TEST_CASE("handlers alone reply, and a record is begun on every path to its parts") {
  const auto function = [](Word w) {
    return declared([&](Assembler& a) {
      a.text("x");
      a.function("f", "N", '-', "", {w, kDone});
    });
  };
  for (const Word w : {word(Op::jbeg), word_x(Op::jfld, 0, 0), word_x(Op::jnul, 0, 0), word(Op::replyj), word(Op::replyv, 0),
                       word(Op::replyf, 0), word(Op::replyd)})
    CHECK(function(w) == "module: fn f at 0: only handlers reply");
  CHECK(start("N", {word_x(Op::integer, 0, 1), word_x(Op::jfld, 0, 0), kDone}) == "module: on start at 1: no record was begun");
  CHECK(start("", {word(Op::replyj)}) == "module: on start at 0: no record was begun");
  CHECK(start("B", {word(Op::boolean, 0, 1), word_x(Op::jt, 0, 3), word(Op::jbeg), word(Op::replyj)}) ==
        "module: on start at 3: no record was begun");
  CHECK(start("N", {word(Op::jbeg), word_x(Op::jnul, 0, 1), word(Op::replyj)}) == "module: on start at 1: there is no text constant 1");
  CHECK(declared([](Assembler& a) {
          a.text("x");
          a.handler(event_of(a.message("m", {{"b", slot(Base::bytes, 9)}})), "Y", {word_x(Op::field, 0, 0), word(Op::jbeg), word_x(Op::jfld, 0, 0), word(Op::replyj)});
        }) == "module: on m at 2: bytes are no part of a record");
}

TEST_CASE("the bound takes the dearer path, multiplies through loops and adds callees") {
  Assembler a;
  a.state("n", slot(Base::num), Value::number(0));
  // 100 + 1 written, or 2: the dearer counts
  a.function("f", "B", '-', "N", {word_x(Op::jf, 0, 4), word_x(Op::integer, 1, 1), word_x(Op::sets, 1, 0), kDone,
                                  word_x(Op::gets, 1, 0), kDone});
  a.module.functions[0].writes = true;
  std::vector<Word> code = loop({word(Op::boolean, 2, 1), word(Op::call, kNoRegister, 2, 0)});
  a.start("NNB", code);
  const auto m = a.build();
  CHECK(m->facts[0].fuel == 1 + 1 + 100 + 1);
  CHECK(m->facts[0].rows_written == 1);
  // INT INT FORP, (FORL ABSENT) x 6, (BOOL CALL f LOOP) x 5, DONE
  CHECK(m->facts[1].fuel == 3 + 2 * 6 + 5 * (1 + 5 + 103 + 1) + 1);
  CHECK(m->facts[1].rows_written == 5);
  CHECK(m->facts[1].writes);
}

TEST_CASE("a bound beyond all numbers stays at the top") {
  Assembler a;
  a.function("f0", "", '-', "NNNNNNNN", {kDone});
  for (unsigned i = 1; i < 3; ++i)
    a.function("f" + std::to_string(i), "", '-', "NNNNNNNN", nested(4, {word(Op::call, kNoRegister, 0, i - 1)}));
  const auto m = a.build();
  CHECK(m->facts[1].fuel < UINT64_MAX);
  CHECK(m->facts[2].fuel == UINT64_MAX);
}

TEST_CASE("what a round may lose was not left over from the round before") {
  const Word gets = word_x(Op::gets, 2, 1);
  // Behind a word that gives register 2.
  const auto round = [](std::vector<Word> code) {
    code.insert(code.begin(), word_x(Op::textk, 2, 0));
    for (Word& w : code)
      if (op_of(w) == Op::absent || op_of(w) == Op::loop || op_of(w) == Op::jmp) w = word_x(op_of(w), 0, x_of(w) + 1u);
    return start("NNTT", std::move(code));
  };
  CHECK(round(loop({word(Op::move, 3, 2), gets, word_x(Op::absent, 0, 8)})) ==
        "module: on start at 9: register 2 may have no value in the next round");
  CHECK(round(loop({word_x(Op::textk, 2, 0), word(Op::move, 3, 2), gets, word_x(Op::absent, 0, 9)})).empty());
  CHECK(round(loop({word(Op::move, 3, 2), gets, word_x(Op::absent, 0, 9), word_x(Op::jmp, 0, 10), word_x(Op::textk, 2, 0)})).empty());
  CHECK(round(loop({gets, word_x(Op::absent, 0, 7)}, {word(Op::replyv, 2)})) == "module: on start at 9: register 2 may have no value");
}
