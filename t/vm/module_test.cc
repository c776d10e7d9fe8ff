#include <doctest/doctest.h>

#include "t/vm/assembler.h"
#include "vm/builtin.h"
#include "vm/slot.h"

using namespace sluice;
using namespace sluice::vm;

namespace {
Fault narrowed(const Slot& s, double n, double* out = nullptr) {
  Value v = Value::number(n);
  const Fault fault = narrow(s, v);
  if (out != nullptr) *out = v.num;
  return fault;
}
Fault narrowed(const Slot& s, std::string_view text) {
  Value v = Value::span(text);
  return narrow(s, v);
}
}  // namespace

TEST_CASE("faults have the names that clients read") {
  CHECK(name(Fault::none) == "none");
  CHECK(name(Fault::divide) == "divide");
  CHECK(name(Fault::denied) == "denied");
  CHECK(name(static_cast<Fault>(9)) == "unknown");
}

TEST_CASE("a slot refuses, saturates and bounds") {
  double n = 0;
  CHECK(narrowed(slot(Base::num), 1e300) == Fault::none);
  CHECK(narrowed(ranged(Base::num, Range::in, 0, 5), 5) == Fault::none);
  CHECK(narrowed(ranged(Base::num, Range::in, 0, 5), 5.1) == Fault::clamp);
  CHECK(narrowed(ranged(Base::num, Range::clamp, 0, 100), 500, &n) == Fault::none);
  CHECK(n == 100);
  CHECK(narrowed(ranged(Base::integer, Range::clamp, 0, 100), -0.5, &n) == Fault::none);
  CHECK(n == 0);
  CHECK(narrowed(ranged(Base::integer, Range::clamp, 0, 100), 1.5) == Fault::clamp);
  CHECK(narrowed(slot(Base::integer), 1.5) == Fault::clamp);
  CHECK(narrowed(slot(Base::integer), 9007199254740992.0) == Fault::none);
  CHECK(narrowed(slot(Base::integer), 9007199254740994.0) == Fault::clamp);
  CHECK(narrowed(slot(Base::u32), 4294967295.0) == Fault::none);
  CHECK(narrowed(slot(Base::u32), 4294967296.0) == Fault::clamp);
  CHECK(narrowed(slot(Base::u32), -1) == Fault::clamp);
  CHECK(narrowed(slot(Base::text, 3), "abc") == Fault::none);
  CHECK(narrowed(slot(Base::text, 3), "abcd") == Fault::limit);
  CHECK(narrowed(slot(Base::slug), "a b") == Fault::encoding);
  CHECK(narrowed(slot(Base::slug), std::string(65, 'a')) == Fault::encoding);
  CHECK(narrowed(slot(Base::slug), std::string(64, 'a')) == Fault::none);
}

TEST_CASE("a query's text is of a slot's type or is not read") {
  CHECK(read_slot(slot(Base::num), "1e3")->num == 1000);
  CHECK(!read_slot(slot(Base::num), "x"));
  CHECK(!read_slot(slot(Base::integer), "1.5"));
  CHECK(!read_slot(slot(Base::integer), "9007199254740994"));
  CHECK(!read_slot(slot(Base::u32), "-1"));
  CHECK(!read_slot(slot(Base::u32), "4294967296"));
  CHECK(read_slot(slot(Base::u32), "4294967295")->num == 4294967295.0);
  CHECK(read_slot(ranged(Base::integer, Range::in, 0, 5), "6")->num == 6);
  CHECK(read_slot(slot(Base::boolean), "true")->boolean);
  CHECK(!read_slot(slot(Base::boolean), "false")->boolean);
  CHECK(!read_slot(slot(Base::boolean), "1"));
  CHECK(read_slot(slot(Base::slug), "ann")->text() == "ann");
  CHECK(!read_slot(slot(Base::slug), "a b"));
  CHECK(read_slot(slot(Base::text, 1), "long is read")->text() == "long is read");
  CHECK(!read_slot(slot(Base::text, 9), "\xff"));
  CHECK(read_slot(slot(Base::bytes, 9), "\xff")->type == Type::bytes);
}

TEST_CASE("slots are described as they are written") {
  CHECK(describe(ranged(Base::integer, Range::in, 0, 1e6)) == "int in 0..1000000");
  CHECK(describe(ranged(Base::num, Range::clamp, -0.5, 1)) == "num clamp -0.5..1");
  CHECK(describe(maybe(slot(Base::text, 40))) == "text? max 40");
  CHECK(describe(maybe(slot(Base::slug))) == "slug?");
}

TEST_CASE("a module finds what it declares, and knows when it serves objects") {
  Assembler a;
  a.documents(DocumentKind::text);
  const unsigned key = a.input("plus", InputKind::key);
  a.message("show", {}, true);
  a.message("edit", {{"body", slot(Base::text, 100)}}, true);
  a.handler(event_of(key, true), "", {word(Op::done)});
  a.view("one", {}, Type::num, "N", {word_x(Op::integer, 0, 1), word(Op::ret, 0)});
  const auto m = a.build();
  CHECK(m->find_input("plus")->kind == InputKind::key);
  CHECK(m->find_input("minus") == nullptr);
  CHECK(m->find_view("one") == &m->views[0]);
  CHECK(m->find_state("one") == nullptr);
  CHECK(m->find_handler(event_of(key)) == nullptr);
  CHECK(m->find_handler(event_of(key, true))->function == 0);
  CHECK(m->show() != nullptr);
  CHECK(m->edit() != nullptr);
  CHECK(m->remove() == nullptr);
  CHECK(m->serves_objects());
  CHECK(m->functions[0].name == "on plus up");
  CHECK(m->functions[1].name == "view one");
}

TEST_CASE("a show or edit of another form serves no objects") {
  Assembler a;
  a.documents(DocumentKind::bytes);
  a.message("show", {{"n", slot(Base::u32)}}, true);
  a.message("edit", {{"n", slot(Base::u32)}}, true);
  a.message("remove", {}, false);
  const auto m = a.build();
  CHECK(m->show() == nullptr);
  CHECK(m->edit() == nullptr);
  CHECK(m->remove() == nullptr);
  CHECK(!m->serves_objects());
}

TEST_CASE("only a module without state, start and seq may be sharded") {
  const auto done = std::vector<Word>{word(Op::done)};
  Assembler plain;
  plain.documents(DocumentKind::text);
  plain.handler(event_of(plain.message("show", {}, true)), "", done);
  CHECK(plain.build()->why_not_sharded().empty());

  Assembler state;
  state.state("hits", slot(Base::num), Value::number(0));
  CHECK(state.build()->why_not_sharded() == "it has the state `hits`");

  Assembler start;
  start.start("", done);
  CHECK(start.build()->why_not_sharded() == "it has `on start`");

  Assembler seq;
  seq.function("next", "", 'N', "N", {word_x(Op::seq, 0, 0), word(Op::ret, 0)});
  CHECK(seq.build()->why_not_sharded() == "`fn next` reads `seq`");

  Module timer;
  timer.inputs.push_back({"tick", InputKind::timer, false, 0, 1000, {}});
  CHECK(timer.why_not_sharded() == "it has the timer `tick`");
  Module table;
  table.tables.push_back({"item"});
  CHECK(table.why_not_sharded() == "it has the table `item`");
}

TEST_CASE("every instruction has a mnemonic, and no other number does") {
  int known = 0;
  for (unsigned i = 0; i < 256; ++i) known += !mnemonic(static_cast<Op>(i)).empty();
  CHECK(known == 68);
  CHECK(mnemonic(Op::len) == "LEN");
  CHECK(flat_fuel(Op::sets) == 100);
  CHECK(flat_fuel(Op::add) == 1);
}
