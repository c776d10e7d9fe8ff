// Everything that the loader proves about declarations, each with a module that breaks it. Tables: verify_rows_test.cc.
#include <doctest/doctest.h>

#include <cmath>

#include "t/vm/refusals.h"

using namespace sluice;
using namespace sluice::vm;

namespace {
constexpr Word kDone = word(Op::done);
}  // namespace

TEST_CASE("names are well formed and unique for each kind") {
  CHECK(declared([](Assembler& a) { a.module.name = ""; }) == "module: its name is not 1 to 64 of A-Z a-z 0-9 - _");
  CHECK(declared([](Assembler& a) { a.state("a b", slot(Base::num), Value::number(0)); }) ==
        "module: the name of a state is not 1 to 64 of A-Z a-z 0-9 - _");
  CHECK(declared([](Assembler& a) {
          a.state("a", slot(Base::num), Value::number(0));
          a.state("a", slot(Base::num), Value::number(0));
        }) == "module: there are two of the state `a`");
  CHECK(declared([](Assembler& a) {
          a.input("a", InputKind::key);
          a.message("a", {});
        }) == "module: there are two of the input `a`");
  CHECK(declared([](Assembler& a) { a.message("m", {{"f", slot(Base::num)}, {"f", slot(Base::num)}}); }) ==
        "module: input `m`: there are two of the field `f`");
  CHECK(declared([](Assembler& a) {
          for (int i = 0; i < 2; ++i) a.view("v", {}, Type::num, "N", {word_x(Op::integer, 0, 1), word(Op::ret, 0)});
        }) == "module: there are two of the view `v`");
  CHECK(declared([](Assembler& a) {
          a.view("v", {{"p", slot(Base::num)}, {"p", slot(Base::num)}}, Type::num, "NN", {word(Op::ret, 0)});
        }) == "module: view `v`: there are two of the parameter `p`");
  CHECK(declared([](Assembler& a) {
          for (int i = 0; i < 2; ++i) a.function("f", "", '-', "", {kDone});
        }) == "module: there are two of the function `f`");
  CHECK(declared([](Assembler& a) { a.function("f f", "", '-', "", {kDone}); }) ==
        "module: function 0: its name is not 1 to 64 of A-Z a-z 0-9 - _");
}

TEST_CASE("slots and first values make sense") {
  const auto state = [](Slot s, std::optional<Value> first) {
    return declared([&](Assembler& a) { a.state("s", s, first); });
  };
  CHECK(state(slot(Base::bytes, 9), std::nullopt) == "module: state `s`: bytes are not stored in states");
  CHECK(state(slot(Base::num), std::nullopt) == "module: state `s`: has no first value");
  CHECK(state(ranged(Base::num, Range::in, 2, 1), Value::number(1)) == "module: state `s`: has a range that holds nothing");
  CHECK(state(ranged(Base::num, Range::in, -0.0, 1), Value::number(1)) == "module: state `s`: has a range that is not of numbers");
  CHECK(state(ranged(Base::u32, Range::in, -5, -1), Value::number(1)) == "module: state `s`: has a range that holds nothing");
  CHECK(state(ranged(Base::integer, Range::clamp, 0, 1.5), Value::number(1)) == "module: state `s`: saturates at a number that it cannot hold");
  CHECK(state(ranged(Base::boolean, Range::in, 0, 1), Value::truth(true)) == "module: state `s`: has a range, but is no number");
  CHECK(state(slot(Base::text, 0), Value::span("x")) == "module: state `s`: has a max that is not 1 to 65536");
  CHECK(state(slot(Base::text, 65537), Value::span("x")) == "module: state `s`: has a max that is not 1 to 65536");
  CHECK(state(ranged(Base::num, Range::in, 1, 5), Value::number(0)) == "module: state `s`: its first value is not num in 1..5");
  CHECK(state(ranged(Base::num, Range::clamp, 1, 5), Value::number(0)) == "module: state `s`: its first value is not num clamp 1..5");
  CHECK(state(slot(Base::num), Value::number(-0.0)) == "module: state `s`: its first value is not a number");
  CHECK(state(slot(Base::text, 9), Value::span("\xff")) == "module: state `s`: its first value is not UTF-8");
  CHECK(state(slot(Base::slug), Value::span("a b")) == "module: state `s`: its first value is not slug");
  CHECK(declared([](Assembler& a) {
          for (int i = 0; i < 257; ++i) a.state("s" + std::to_string(i), slot(Base::num), Value::number(0));
        }) == "module: there are more than 256 states");
}

TEST_CASE("constants are numbers and texts, and the cost model is known") {
  CHECK(declared([](Assembler& a) { a.number(-0.0); }) == "module: has a constant that is not a number");
  CHECK(declared([](Assembler& a) { a.number(1 / 0.0); }) == "module: has a constant that is not a number");
  CHECK(declared([](Assembler& a) { a.text("\xff"); }) == "module: has a constant that is not UTF-8");
  CHECK(declared([](Assembler& a) { a.module.cost_model = 2; }) == "module: has cost model 2, and this version knows 1");
  CHECK(declared([](Assembler& a) { a.documents(DocumentKind::text, kBytesMax + 1); }) ==
        "module: documents have a max that is not 1 to 16777216");
}

TEST_CASE("inputs: fields only on messages, the body last and bounded, keyed only with documents") {
  CHECK(declared([](Assembler& a) { a.module.inputs[a.input("k", InputKind::key)].fields = {{"f", slot(Base::num)}}; }) ==
        "module: input `k`: has fields, but is no message");
  CHECK(declared([](Assembler& a) { a.module.inputs[a.input("k", InputKind::key)].keyed = true; }) ==
        "module: input `k`: is keyed, but is no message");
  CHECK(declared([](Assembler& a) { a.message("m", {}, true); }) == "module: input `m`: is keyed, but there are no documents");
  const auto timer = [](double every_ms) {
    return declared([&](Assembler& a) { a.module.inputs[a.input("tick", InputKind::timer)].every_ms = every_ms; });
  };
  CHECK(timer(1).empty());
  CHECK(timer(366.0 * 24 * 3600 * 1000).empty());
  for (const double wrong : {0.0, 0.5, 1.5, -1.0, 366.0 * 24 * 3600 * 1000 + 1, 1 / 0.0, std::nan("")})
    CHECK(timer(wrong) == "module: input `tick`: does not run every 1 to 31622400000 whole milliseconds");
  CHECK(declared([](Assembler& a) { a.input("say", InputKind::text, 0); }) == "module: input `say`: has a max that is not 1 to 16777216");
  const auto field = [](std::vector<Field> fields) { return declared([&](Assembler& a) { a.message("m", std::move(fields)); }); };
  CHECK(field({{"b", slot(Base::text, 9)}, {"n", slot(Base::num)}}) ==
        "module: input `m`: field `b`: a text or bytes field must be the last one");
  CHECK(field({{"b", slot(Base::bytes, 0)}}) == "module: input `m`: field `b`: has a max that is not 1 to 16777216");
  CHECK(field({{"b", slot(Base::text, kBytesMax + 1)}}) == "module: input `m`: field `b`: has a max that is not 1 to 16777216");
  CHECK(field({{"b", slot(Base::boolean)}}) == "module: input `m`: field `b`: a field is no bool");
  CHECK(field({{"b", maybe(slot(Base::num))}}) == "module: input `m`: field `b`: a field is never absent");
  std::vector<Field> many;
  for (int i = 0; i < 17; ++i) many.push_back({"f" + std::to_string(i), slot(Base::num)});
  CHECK(field(many) == "module: input `m`: has more than 16 fields");
  CHECK(declared([](Assembler& a) {
          for (int i = 0; i < 129; ++i) a.input("k" + std::to_string(i), InputKind::key);
        }) == "module: there are more than 128 inputs");
}

TEST_CASE("functions have the form of their kind") {
  CHECK(declared([](Assembler& a) { a.function("f", "", '-', std::string(201, 'N'), {kDone}); }) ==
        "module: function 0: has more than 200 registers");
  CHECK(declared([](Assembler& a) { a.function("f", "", '-', "", {}); }) == "module: function 0: has no code, or more than 65535 words");
  CHECK(declared([](Assembler& a) { a.module.functions[a.function("f", "", '-', "N", {kDone})].registers[0] = Type::row; }) ==
        "module: function 0: there is no table 0");
  CHECK(declared([](Assembler& a) { a.module.functions[a.function("f", "", '-', "N", {kDone})].registers[0] = Type::none; }) ==
        "module: function 0: has a register without a type");
  CHECK(declared([](Assembler& a) { a.module.functions[a.function("f", "", '-', "N", {kDone})].result = Type::row; }) ==
        "module: function 0: there is no table 0");
  CHECK(declared([](Assembler& a) { a.module.functions[a.function("f", "", '-', "", {kDone})].partial = true; }) ==
        "module: function 0: may be absent, but has no result");
  CHECK(declared([](Assembler& a) { a.module.functions[a.start("N", {kDone})].parameters = {Type::num}; }) ==
        "module: function 0: is a handler with parameters or a result");
  CHECK(declared([](Assembler& a) {
          a.module.functions[a.view("v", {}, Type::num, "N", {word_x(Op::integer, 0, 1), word(Op::ret, 0)})].writes = true;
        }) == "module: function 0: is a view that writes");
  CHECK(declared([](Assembler& a) {
          for (int i = 0; i < 513; ++i) a.function("f" + std::to_string(i), "", '-', "", {kDone});
        }) == "module: there are more than 512 functions");
}

TEST_CASE("a handler belongs to exactly one event, which exists") {
  CHECK(declared([](Assembler& a) {
          const unsigned k = a.input("k", InputKind::key);
          a.module.handlers.push_back({event_of(k, true), a.handler(event_of(k), "", {kDone})});
        }) == "module: event 2: function 0 handles another event too");
  CHECK(declared([](Assembler& a) { a.module.functions[a.function("f", "", '-', "", {kDone})].kind = FunctionKind::handler; }) ==
        "module: function 0: belongs to no event or view");
  CHECK(declared([](Assembler& a) { a.handler(1, "", {kDone}); }) == "module: event 1: there is no such input");
  CHECK(declared([](Assembler& a) { a.handler(event_of(a.message("m", {}), true), "", {kDone}); }) ==
        "module: event 2: only a key has an up edge");
  CHECK(declared([](Assembler& a) { a.module.handlers.push_back({0, 7}); }) == "module: event 0: there is no function 7");
  CHECK(declared([](Assembler& a) { a.module.handlers.push_back({0, a.function("f", "", '-', "", {kDone})}); }) ==
        "module: event 0: function 0 is no handler");
  CHECK(declared([](Assembler& a) {
          a.input("k", InputKind::key);
          a.handler(1, "", {kDone});
          a.handler(0, "", {kDone});
        }) == "module: event 0: handlers do not rise by event");
}

TEST_CASE("a view's function has exactly the parameters and result of the view") {
  const std::vector<Word> one{word_x(Op::integer, 0, 1), word(Op::ret, 0)};
  const auto changed = [&](auto change) {
    return declared([&](Assembler& a) {
      a.view("v", {{"p", slot(Base::num)}}, Type::num, "N", one);
      change(a.module);
    });
  };
  CHECK(changed([](Module&) {}).empty());
  CHECK(changed([](Module& m) { m.views[0].type = Type::text; }) == "module: view `v`: its function gives another type");
  CHECK(changed([](Module& m) { m.views[0].type = Type::bytes; }) == "module: view `v`: is of no type that a view has");
  CHECK(changed([](Module& m) { m.views[0].parameters.clear(); }) == "module: view `v`: its function takes other parameters");
  CHECK(changed([](Module& m) { m.views[0].parameters[0].slot = slot(Base::slug); }) == "module: view `v`: its function takes other parameters");
  CHECK(changed([](Module& m) { m.views[0].function = 1; }) == "module: view `v`: there is no function 1");
  CHECK(changed([](Module& m) { m.views[0].parameters[0].name = "from"; }) == "module: view `v`: parameter `from`: the name is kept for pages");
  CHECK(changed([](Module& m) { m.views[0].parameters[0].slot.optional = true; }) == "module: view `v`: parameter `p`: a parameter is never absent");
  CHECK(changed([](Module& m) { m.views[0].parameters[0].slot = slot(Base::bytes, 9); }) == "module: view `v`: parameter `p`: a parameter is no bytes");
  CHECK(changed([](Module& m) { m.views[0].parameters[0].slot = slot(Base::text, 0); }) ==
        "module: view `v`: parameter `p`: has a max that is not 1 to 65536");
  CHECK(changed([](Module& m) {
          m.views.push_back(m.views[0]);
          m.views[1].name = "w";
        }) == "module: view `w`: function 0 is another view's too");
  CHECK(changed([](Module& m) { m.functions[0].kind = FunctionKind::function; m.functions[0].name = "fn f"; }) ==
        "module: view `v`: function 0 is no view");
}
