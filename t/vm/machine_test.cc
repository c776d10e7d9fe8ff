#include "vm/machine.h"

#include <doctest/doctest.h>

#include "t/vm/assembler.h"
#include "vm/slot.h"

using namespace sluice;
using namespace sluice::vm;

namespace {
// A loaded module with a store and a machine.
struct Run {
  explicit Run(const Assembler& a) : module(a.build()), host(*module) {}
  Outcome event(std::uint32_t number, std::vector<Value> fields = {}, std::uint64_t fuel = kFuel) {
    const Handler* handler = module->find_handler(number);
    REQUIRE(handler != nullptr);
    kept = std::move(fields);
    return host.event([&] { return machine.handle(*module, *handler, {kept, 1700000000000, 5, fuel}, host); });
  }
  std::string reply(std::uint32_t number, std::vector<Value> fields = {}) { return show(event(number, std::move(fields))); }
  std::string view(std::string_view name, std::vector<Value> fields = {}) {
    kept = std::move(fields);
    return show(machine.view(*module, *module->find_view(name), {kept, 1700000000000, 5, kFuel}, host));
  }
  static std::string show(const Outcome& o) {
    if (o.fault != Fault::none) return std::string(name(o.fault)) + (o.text.empty() ? "" : ": " + std::string(o.text));
    return std::string(o.reply.text);
  }
  std::unique_ptr<const Module> module;
  MemoryHost host;
  Machine machine;
  std::vector<Value> kept;
};

// A handler of `on start` that replies what the code leaves in register 0.
std::string answer(std::string_view registers, std::vector<Word> code) {
  Assembler a;
  code.push_back(word(Op::replyv, 0));
  a.start(registers, std::move(code));
  return Run(a).reply(0);
}
std::string arithmetic(Op op, double left, double right) {
  Assembler a;
  a.start("NNN", {word_x(Op::numk, 1, a.number(left)), word_x(Op::numk, 2, a.number(right)), word(op, 0, 1, 2),
                  word(Op::replyv, 0)});
  return Run(a).reply(0);
}
std::string comparison(Op op, double left, double right) {
  Assembler a;
  a.start("BNN", {word_x(Op::numk, 1, a.number(left)), word_x(Op::numk, 2, a.number(right)), word(op, 0, 1, 2),
                  word(Op::replyv, 0)});
  return Run(a).reply(0);
}
std::string comparison(Op op, std::string_view left, std::string_view right) {
  Assembler a;
  a.start("BTT", {word_x(Op::textk, 1, a.text(left)), word_x(Op::textk, 2, a.text(right)), word(op, 0, 1, 2),
                  word(Op::replyv, 0)});
  return Run(a).reply(0);
}
}  // namespace

TEST_CASE("arithmetic is IEEE, finite, and never -0") {
  CHECK(arithmetic(Op::add, 0.1, 0.2) == "0.30000000000000004");
  CHECK(arithmetic(Op::add, 1e308, 1e308) == "non_finite");
  CHECK(arithmetic(Op::sub, 1, 1) == "0");
  CHECK(arithmetic(Op::sub, -1e308, 1e308) == "non_finite");
  CHECK(arithmetic(Op::mul, -1, 0) == "0");
  CHECK(arithmetic(Op::mul, 1e200, 1e200) == "non_finite");
  CHECK(arithmetic(Op::div, 1, 3) == "0.3333333333333333");
  CHECK(arithmetic(Op::div, 0, -5) == "0");
  CHECK(arithmetic(Op::div, 1, 0) == "divide");
  CHECK(arithmetic(Op::mod, -7, 3) == "2");
  CHECK(arithmetic(Op::mod, 7, -3) == "-2");
  CHECK(arithmetic(Op::mod, -6, 3) == "0");
  CHECK(arithmetic(Op::mod, 1, 0) == "divide");
  CHECK(answer("NN", {word_x(Op::integer, 1, 0), word(Op::neg, 0, 1)}) == "0");
  CHECK(answer("NN", {word_x(Op::integer, 1, 0xffff), word(Op::neg, 0, 1)}) == "1");
}

TEST_CASE("numbers compare by value, texts by bytes") {
  CHECK(comparison(Op::eqn, 1, 1) == "true");
  CHECK(comparison(Op::ltn, 1, 1) == "false");
  CHECK(comparison(Op::len, 1, 1) == "true");
  CHECK(comparison(Op::eqt, "a", "a") == "true");
  CHECK(comparison(Op::eqt, "", "") == "true");
  CHECK(comparison(Op::ltt, "a", "ab") == "true");
  CHECK(comparison(Op::ltt, "Z", "a") == "true");
  CHECK(comparison(Op::ltt, "\xc3\xa9", "z") == "false");
  CHECK(comparison(Op::let, "b", "a") == "false");
  CHECK(answer("BBB", {word(Op::boolean, 1, 1), word(Op::logical_not, 2, 1), word(Op::eqb, 0, 1, 2)}) == "false");
}

TEST_CASE("jumps, moves and joined texts") {
  Assembler a;
  const unsigned hi = a.text("hi "), there = a.text("there");
  a.start("TTTB", {word(Op::boolean, 3, 1), word_x(Op::textk, 1, hi), word_x(Op::jf, 3, 5), word_x(Op::textk, 2, there),
                   word_x(Op::jmp, 0, 6), word(Op::move, 2, 1), word(Op::concat, 0, 1, 2), word(Op::replyv, 0)});
  CHECK(Run(a).reply(0) == "hi there");
}

TEST_CASE("a function is called with its window, and its absence is control flow") {
  Assembler a;
  // fn half(n, d): num? = if d == 0 then none else n / d
  a.function("half", "NN", 'N', "NB", {word_x(Op::integer, 2, 0), word(Op::eqn, 3, 1, 2), word_x(Op::jf, 3, 4),
                                       word(Op::retabs), word(Op::div, 2, 0, 1), word(Op::ret, 2)});
  a.module.functions[0].partial = true;
  const unsigned m = a.message("go", {{"n", slot(Base::num)}, {"d", slot(Base::num)}});
  const unsigned strict = a.message("strict", {{"n", slot(Base::num)}, {"d", slot(Base::num)}});
  a.handler(event_of(m), "NNN", {word_x(Op::field, 1, 0), word_x(Op::field, 2, 1), word(Op::call, 0, 1, 0),
                                 word_x(Op::absent, 0, 5), word(Op::replyv, 0), word_x(Op::integer, 0, 0xffff), word(Op::replyv, 0)});
  a.handler(event_of(strict), "NNN", {word_x(Op::field, 1, 0), word_x(Op::field, 2, 1), word(Op::call, 0, 1, 0), word(Op::replyv, 0)});
  Run run(a);
  CHECK(run.reply(event_of(m), {Value::number(9), Value::number(2)}) == "4.5");
  CHECK(run.reply(event_of(m), {Value::number(9), Value::number(0)}) == "-1");
  CHECK(run.reply(event_of(strict), {Value::number(9), Value::number(0)}) == "not_found");
}

TEST_CASE("a function without a result is called for its effects, seven deep") {
  Assembler a;
  a.state("hits", slot(Base::integer), Value::number(0));
  a.function("f0", "", '-', "NN", {word_x(Op::gets, 0, 0), word_x(Op::integer, 1, 1), word(Op::add, 0, 0, 1),
                                   word_x(Op::sets, 0, 0), word(Op::ret, kNoRegister)});
  for (unsigned i = 1; i < 7; ++i)
    a.function("f" + std::to_string(i), "", '-', "", {word(Op::call, kNoRegister, 0, i - 1), word(Op::done)});
  for (Function& f : a.module.functions) f.writes = true;
  a.start("", {word(Op::call, kNoRegister, 0, 6), word(Op::done)});
  Run run(a);
  CHECK(run.event(0).wrote);
  CHECK(run.host.number_of(0) == 1);
}

TEST_CASE("a loop goes over its numbers, and more than its limit is a fault") {
  Assembler a;
  const unsigned m = a.message("sum", {{"from", slot(Base::num)}, {"to", slot(Base::num)}});
  // r2 += i for i in r0..r1 limit 5
  a.handler(event_of(m), "NNN", {word_x(Op::field, 0, 0), word_x(Op::field, 1, 1), word_x(Op::integer, 2, 0),
                                 word_x(Op::forp, 0, 5), word_x(Op::forl, 0, 5), word_x(Op::absent, 0, 8),
                                 word(Op::add, 2, 2, 0), word_x(Op::loop, 0, 4), word(Op::replyv, 2)});
  Run run(a);
  const auto sum = [&](double from, double to) { return run.reply(event_of(m), {Value::number(from), Value::number(to)}); };
  CHECK(sum(1, 5) == "15");
  CHECK(sum(3, 3) == "3");
  CHECK(sum(3, 2) == "0");
  CHECK(sum(0.5, 2) == "2");
  CHECK(sum(1, 6) == "limit");
  CHECK(sum(-1e308, 1e308) == "limit");
  CHECK(sum(9007199254740994.0, 9007199254740994.0) == "9007199254740994");
}

TEST_CASE("loops nest, and continue by jumping to their LOOP") {
  Assembler a;
  // for i in 1..3 { for j in 1..3 { if i == j { continue }; n += 1 } }
  a.start("NNNNNB", {word_x(Op::integer, 4, 0),
                     word_x(Op::integer, 0, 1), word_x(Op::integer, 1, 3), word_x(Op::forp, 0, 3), word_x(Op::forl, 0, 3), word_x(Op::absent, 0, 17),
                     word_x(Op::integer, 2, 1), word_x(Op::integer, 3, 3), word_x(Op::forp, 2, 3), word_x(Op::forl, 2, 3), word_x(Op::absent, 0, 16),
                     word(Op::eqn, 5, 0, 2), word_x(Op::jt, 5, 15), word_x(Op::integer, 5 - 5 + 3 - 3 + 4, 7), word(Op::nop),
                     word_x(Op::loop, 0, 9), word_x(Op::loop, 0, 4), word(Op::replyv, 4)});
  CHECK(Run(a).reply(0) == "7");
}

TEST_CASE("states are read, narrowed and cleared; a fault leaves them as they were") {
  Assembler a;
  const unsigned level = a.state("level", ranged(Base::num, Range::clamp, 0, 100), Value::number(50));
  const unsigned hits = a.state("hits", ranged(Base::integer, Range::in, 0, 2), Value::number(0));
  const unsigned winner = a.state("winner", maybe(slot(Base::slug)));
  const unsigned set = a.message("set", {{"who", slot(Base::slug)}});
  const unsigned turn = a.message("turn", {{"by", slot(Base::num)}});
  const unsigned plus = a.input("plus", InputKind::key);
  const unsigned clear = a.input("clear", InputKind::key);
  a.handler(event_of(set), "T", {word_x(Op::field, 0, 0), word_x(Op::sets, 0, winner), word(Op::done)});
  a.handler(event_of(turn), "NN", {word_x(Op::gets, 0, level), word_x(Op::field, 1, 0), word(Op::add, 0, 0, 1),
                                   word_x(Op::sets, 0, level), word_x(Op::gets, 0, level), word(Op::replyv, 0)});
  a.handler(event_of(plus), "NN", {word_x(Op::gets, 0, hits), word_x(Op::integer, 1, 1), word(Op::add, 0, 0, 1),
                                   word_x(Op::sets, 1, level), word_x(Op::sets, 0, hits), word(Op::done)});
  a.handler(event_of(clear), "", {word_x(Op::clrs, 0, winner), word(Op::done)});
  a.view("winner", {}, Type::text, "T", {word_x(Op::gets, 0, winner), word(Op::ret, 0)});
  Run run(a);
  CHECK(run.view("winner") == "not_found");
  CHECK(run.reply(event_of(set), {Value::span("ann")}) == "");
  CHECK(run.view("winner") == "ann");
  CHECK(run.reply(event_of(clear)) == "");
  CHECK(run.view("winner") == "not_found");
  CHECK(run.reply(event_of(turn), {Value::number(500)}) == "100");
  CHECK(run.reply(event_of(turn), {Value::number(-0.5)}) == "99.5");
  CHECK(run.event(event_of(plus)).fault == Fault::none);
  CHECK(run.host.number_of(1) == 1);
  CHECK(run.event(event_of(plus)).fault == Fault::none);
  CHECK(run.reply(event_of(turn), {Value::number(5)}) == "6");
  CHECK(run.event(event_of(plus)).fault == Fault::clamp);
  CHECK(run.host.number_of(1) == 2);
  CHECK(run.host.number_of(0) == 6);
}

TEST_CASE("the event gives fields, time, number and chance") {
  Assembler a;
  const unsigned say = a.input("say", InputKind::text, 40);
  const unsigned any = a.message("any", {});
  a.handler(event_of(say), "T", {word_x(Op::field, 0, 0), word(Op::replyv, 0)});
  a.handler(event_of(any), "NNN", {word_x(Op::now, 0, 0), word_x(Op::seq, 1, 0), word(Op::add, 2, 0, 1), word(Op::replyv, 2)});
  const unsigned dice = a.message("dice", {});
  a.handler(event_of(dice), "NN", {word_x(Op::integer, 1, 6), word(Op::builtin, 0, 1, 36), word(Op::replyv, 0)});
  Run run(a);
  CHECK(run.reply(event_of(say), {Value::span("hello")}) == "hello");
  CHECK(run.reply(event_of(any)) == "1700000000005");
  CHECK(run.reply(event_of(dice)) == run.reply(event_of(dice)));
  CHECK(run.module->facts[1].reads_now);
  CHECK(run.module->facts[1].reads_seq);
  CHECK(run.module->facts[2].chance);
}

TEST_CASE("fail gives the fault and the module's words") {
  Assembler a;
  const unsigned words = a.text("say something");
  a.start("T", {word_x(Op::textk, 0, words), word(Op::fail, 0, 4)});
  CHECK(Run(a).reply(0) == "limit: say something");
  Assembler bare;
  bare.start("", {word(Op::fail, kNoRegister, 8)});
  CHECK(Run(bare).reply(0) == "denied");
}

TEST_CASE("records are JSON in the written order") {
  Assembler a;
  const unsigned n = a.text("n"), who = a.text("wh\"o"), on = a.text("on"), none = a.text("none");
  a.start("NTB", {word_x(Op::integer, 0, 7), word_x(Op::textk, 1, a.text("a\"b")), word(Op::boolean, 2, 1), word(Op::jbeg),
                  word_x(Op::jfld, 0, n), word_x(Op::jfld, 1, who), word_x(Op::jfld, 2, on), word_x(Op::jnul, 0, none),
                  word(Op::replyj)});
  Run run(a);
  const Outcome o = run.event(0);
  CHECK(o.reply.text == "{\"n\":7,\"wh\\\"o\":\"a\\\"b\",\"on\":true,\"none\":null}");
  CHECK(o.reply.kind == ReplyKind::owned);
  CHECK(o.reply.type == ContentType::json);
  Assembler empty;
  empty.start("", {word(Op::jbeg), word(Op::replyj)});
  CHECK(Run(empty).reply(0) == "{}");
}

TEST_CASE("replies carry their content type, and fields are borrowed") {
  Assembler a;
  const unsigned put = a.message("put", {{"name", slot(Base::slug)}, {"body", slot(Base::bytes, 100)}});
  const unsigned same = a.message("same", {{"name", slot(Base::slug)}, {"body", slot(Base::bytes, 100)}});
  const unsigned line = a.input("line", InputKind::text, 10);
  const unsigned none = a.input("none", InputKind::key);
  a.handler(event_of(put), "", {word(Op::replyf, 1)});
  a.handler(event_of(same), "Y", {word_x(Op::field, 0, 1), word(Op::replyv, 0)});
  a.handler(event_of(line), "", {word(Op::replyf, 0)});
  a.handler(event_of(none), "", {word(Op::done)});
  Run run(a);
  const std::vector<Value> fields{Value::span("x"), Value::span("\xff", Type::bytes)};
  Outcome o = run.event(event_of(put), fields);
  CHECK(o.reply.kind == ReplyKind::field);
  CHECK(o.reply.field == 1);
  CHECK(o.reply.type == ContentType::octets);
  o = run.event(event_of(same), fields);
  CHECK(o.reply.kind == ReplyKind::owned);
  CHECK(o.reply.type == ContentType::octets);
  CHECK(o.reply.text == "\xff");
  o = run.event(event_of(line), {Value::span("x")});
  CHECK(o.reply.kind == ReplyKind::field);
  CHECK(o.reply.type == ContentType::text);
  o = run.event(event_of(none));
  CHECK(o.reply.kind == ReplyKind::none);
  CHECK(o.reply.type == ContentType::octets);
  CHECK(!o.wrote);
}

namespace {
// Messages over a document: show, edit (set), add (append), cut (splice), gone (delete), has, read.
struct Keyed {
  Assembler a;
  unsigned show, edit, add, cut, gone, has, read, key;
  explicit Keyed(DocumentKind kind, std::uint32_t max = 100) {
    a.documents(kind, max);
    const bool bytes = kind == DocumentKind::bytes;
    const Slot body = slot(bytes ? Base::bytes : Base::text, 1000);
    const char r = bytes ? 'Y' : 'T';
    const std::string one(1, r), cuts = std::string("NN") + r, asked = one + "B";
    show = a.message("show", {}, true);
    edit = a.message("edit", {{"body", body}}, true);
    add = a.message("add", {{"body", body}}, true);
    cut = a.message("cut", {{"at", slot(Base::num)}, {"n", slot(Base::num)}, {"body", body}}, true);
    gone = a.message("remove", {}, true);
    has = a.message("has", {}, true);
    read = a.message("read", {}, true);
    key = a.message("key", {}, true);
    a.handler(event_of(show), "", {word(Op::replyd)}, false);
    a.handler(event_of(edit), one, {word_x(Op::field, 0, 0), word(Op::docset, 0), word(Op::replyd)});
    a.handler(event_of(add), one, {word_x(Op::field, 0, 0), word(Op::docapp, 0), word(Op::done)});
    a.handler(event_of(cut), cuts, {word_x(Op::field, 0, 0), word_x(Op::field, 1, 1), word_x(Op::field, 2, 2),
                                    word(Op::docspl, 0), word(Op::done)});
    a.handler(event_of(gone), "", {word(Op::docdel), word(Op::done)});
    a.handler(event_of(has), asked, {word(Op::doc, 0, 1), word_x(Op::absent, 0, 4), word(Op::boolean, 1, 1),
                                     word(Op::replyv, 1), word(Op::boolean, 1, 0), word(Op::replyv, 1)}, false);
    a.handler(event_of(read), one, {word(Op::doc, 0), word(Op::replyv, 0)}, false);
    a.handler(event_of(key), "TN", {word_x(Op::dockey, 0, 0), word_x(Op::docrev, 1, 0), word(Op::replyv, 0)}, false);
  }
};
}  // namespace

TEST_CASE("a document is set, shown, added to, cut and deleted") {
  Keyed d(DocumentKind::text);
  Run run(d.a);
  CHECK(run.reply(event_of(d.show)) == "not_found");
  CHECK(run.reply(event_of(d.read)) == "not_found");
  CHECK(run.reply(event_of(d.add), {Value::span("x")}) == "not_found");
  CHECK(run.reply(event_of(d.gone)) == "not_found");
  CHECK(run.reply(event_of(d.has)) == "false");
  Outcome o = run.event(event_of(d.edit), {Value::span("h\xc3\xa9llo")});
  CHECK(o.reply.kind == ReplyKind::document);
  CHECK(o.reply.type == ContentType::text);
  CHECK(o.wrote);
  CHECK(run.host.document() == "h\xc3\xa9llo");
  run.host.documents_read = 0;
  CHECK(run.reply(event_of(d.has)) == "true");
  CHECK(run.event(event_of(d.show)).reply.kind == ReplyKind::document);
  CHECK(run.host.documents_read == 0);
  CHECK(run.reply(event_of(d.add), {Value::span("!")}) == "");
  CHECK(run.reply(event_of(d.read)) == "h\xc3\xa9llo!");
  const auto cut = [&](double at, double n, std::string_view in) {
    return run.reply(event_of(d.cut), {Value::number(at), Value::number(n), Value::span(in)});
  };
  CHECK(cut(1, 2, "e") == "");
  CHECK(run.host.document() == "hello!");
  CHECK(cut(6, 0, "\xc3\xa9") == "");
  CHECK(cut(7, 0, "x") == "encoding");
  CHECK(cut(6, 1, "x") == "encoding");
  CHECK(cut(9, 0, "x") == "clamp");
  CHECK(cut(0, 9, "x") == "clamp");
  CHECK(cut(-1, 0, "x") == "clamp");
  CHECK(cut(0.5, 0, "x") == "clamp");
  CHECK(cut(0, 0, std::string(93, 'x')) == "limit");
  CHECK(run.host.document() == "hello!\xc3\xa9");
  CHECK(run.reply(event_of(d.add), {Value::span(std::string(93, 'x'))}) == "limit");
  const std::string big(101, 'x');
  CHECK(run.reply(event_of(d.edit), {Value::span(big)}) == "limit");
  CHECK(run.host.document() == "hello!\xc3\xa9");
  CHECK(run.reply(event_of(d.key)) == "a-key");
  CHECK(run.reply(event_of(d.gone)) == "");
  CHECK(!run.host.document());
}

TEST_CASE("a document of bytes is octets and is cut anywhere") {
  Keyed d(DocumentKind::bytes);
  Run run(d.a);
  CHECK(run.event(event_of(d.edit), {Value::span("\xc3\xa9", Type::bytes)}).reply.type == ContentType::octets);
  CHECK(run.reply(event_of(d.cut), {Value::number(1), Value::number(1), Value::span("\xff", Type::bytes)}) == "");
  CHECK(run.host.document() == "\xc3\xff");
  const Outcome o = run.event(event_of(d.read));
  CHECK(o.reply.type == ContentType::octets);
  CHECK(o.reply.text == "\xc3\xff");
}

TEST_CASE("a json document is JSON at the end of its event, however it came to be") {
  Keyed d(DocumentKind::json);
  Run run(d.a);
  CHECK(run.reply(event_of(d.edit), {Value::span("{\"a\":")}) == "encoding");
  CHECK(!run.host.document());
  const Outcome o = run.event(event_of(d.edit), {Value::span("{\"a\":1}")});
  CHECK(o.fault == Fault::none);
  CHECK(o.reply.type == ContentType::json);
  CHECK(run.reply(event_of(d.add), {Value::span("]")}) == "encoding");
  CHECK(run.reply(event_of(d.add), {Value::span(" \n")}) == "");
  CHECK(run.reply(event_of(d.cut), {Value::number(5), Value::number(1), Value::span("[1,2]")}) == "");
  CHECK(run.host.document() == "{\"a\":[1,2]} \n");
  CHECK(run.reply(event_of(d.cut), {Value::number(0), Value::number(1), Value::span("")}) == "encoding");
  CHECK(run.reply(event_of(d.gone)) == "");
}

TEST_CASE("views take parameters and give number, text or bool") {
  Assembler a;
  a.view("twice", {{"n", slot(Base::num)}}, Type::num, "NN", {word(Op::add, 1, 0, 0), word(Op::ret, 1)});
  a.view("same", {{"t", slot(Base::text, 9)}}, Type::text, "T", {word(Op::ret, 0)});
  a.view("yes", {{"b", slot(Base::boolean)}}, Type::boolean, "B", {word(Op::ret, 0)});
  a.view("never", {}, Type::num, "", {word(Op::retabs)});
  a.module.functions[3].partial = true;
  a.view("broken", {}, Type::num, "N", {word_x(Op::integer, 0, 0), word(Op::div, 0, 0, 0), word(Op::ret, 0)});
  Run run(a);
  CHECK(run.view("twice", {Value::number(2.5)}) == "5");
  CHECK(run.view("same", {Value::span("ab")}) == "ab");
  CHECK(run.view("yes", {Value::truth(true)}) == "true");
  CHECK(run.view("never") == "not_found");
  CHECK(run.view("broken") == "divide");
}

TEST_CASE("fuel: a bound under the budget charges bytes alone, one above is charged as it runs") {
  Assembler a;
  const unsigned m = a.message("go", {{"n", slot(Base::num)}, {"body", slot(Base::text, 100000)}});
  // for i in 1..n limit 10000 { }; t = body + body
  a.handler(event_of(m), "NNTTT", {word_x(Op::integer, 0, 1), word_x(Op::field, 1, 0), word_x(Op::forp, 0, 10000),
                                   word_x(Op::forl, 0, 10000), word_x(Op::absent, 0, 7), word(Op::nop), word_x(Op::loop, 0, 3),
                                   word_x(Op::field, 2, 1), word_x(Op::field, 3, 1), word(Op::concat, 4, 2, 2), word(Op::done)});
  Run run(a);
  const std::uint64_t bound = run.module->facts[0].fuel;
  // 3 before, (FORL ABSENT) 10001 times, (NOP LOOP) 10000 times, 9 behind
  CHECK(bound == 3 + 2 * 10001 + 2 * 10000 + 2 + 6 + 1);
  const std::string body(3200, 'x');
  const auto go = [&](double n, std::uint64_t fuel) {
    return run.event(event_of(m), {Value::number(n), Value::span(body)}, fuel);
  };
  CHECK(go(1, kFuel).fuel_used == bound + 200);
  CHECK(go(1, bound + 200).fault == Fault::none);
  CHECK(go(1, bound + 199).fault == Fault::limit);
  const Outcome small = go(1, bound - 1);
  CHECK(small.fault == Fault::none);
  CHECK(small.fuel_used == 3 + 2 * 2 + 2 + 2 + 6 + 1 + 200);
  CHECK(go(10000, bound - 1).fault == Fault::limit);
  CHECK(go(1, 100).fault == Fault::limit);
  CHECK(go(1, 0).fault == Fault::limit);
}

TEST_CASE("memory: more than 1 MiB of built texts or record is the fault limit") {
  Assembler a;
  const unsigned m = a.message("go", {{"body", slot(Base::text, kBytesMax)}});
  const unsigned j = a.message("json", {{"body", slot(Base::text, kBytesMax)}});
  const unsigned v = a.message("same", {{"body", slot(Base::text, kBytesMax)}});
  const unsigned name = a.text("b");
  a.handler(event_of(m), "TTT", {word_x(Op::field, 0, 0), word(Op::move, 1, 0), word(Op::concat, 2, 0, 2), word(Op::replyv, 2)});
  a.handler(event_of(j), "T", {word_x(Op::field, 0, 0), word(Op::jbeg), word_x(Op::jfld, 0, name), word(Op::replyj)});
  a.handler(event_of(v), "T", {word_x(Op::field, 0, 0), word(Op::replyv, 0)});
  Run run(a);
  const auto size = [&](unsigned input, const std::string& body) {
    const Outcome o = run.event(event_of(input), {Value::span(body)});
    return o.fault == Fault::none ? std::to_string(o.reply.text.size()) : std::string(vm::name(o.fault));
  };
  const std::string half(kArenaBytes / 2, 'x'), more(kArenaBytes / 2 + 1, 'x'), controls(kArenaBytes / 2, '\1'), large(3 * kArenaBytes, 'x');
  CHECK(size(m, half) == std::to_string(kArenaBytes));
  CHECK(size(m, more) == "limit");
  CHECK(size(j, half) == std::to_string(kArenaBytes / 2 + 8));
  CHECK(size(j, controls) == "limit");
  CHECK(size(j, large) == "limit");
  CHECK(size(v, large) == std::to_string(3 * kArenaBytes));
  CHECK(size(v, "x") == "1");
}

TEST_CASE("an event writes at most 10,000 times") {
  Assembler a;
  a.state("n", slot(Base::num), Value::number(0));
  // for i in 1..101 { for j in 1..100 { n = j } }
  a.start("NNNN", {word_x(Op::integer, 0, 1), word_x(Op::integer, 1, 101), word_x(Op::forp, 0, 200), word_x(Op::forl, 0, 200),
                   word_x(Op::absent, 0, 13), word_x(Op::integer, 2, 1), word_x(Op::integer, 3, 100), word_x(Op::forp, 2, 200),
                   word_x(Op::forl, 2, 200), word_x(Op::absent, 0, 12), word_x(Op::sets, 2, 0), word_x(Op::loop, 0, 8),
                   word_x(Op::loop, 0, 3), word(Op::done)});
  Run run(a);
  CHECK(run.event(0, {}, 100'000'000).fault == Fault::limit);
  CHECK(run.host.number_of(0) == 0);
}

TEST_CASE("a fault names its line when the module carries lines") {
  Assembler a;
  a.start("N", {word_x(Op::integer, 0, 0), word(Op::div, 0, 0, 0), word(Op::done)});
  a.module.lines = {{3, 4, 5}};
  CHECK(Run(a).event(0).line == 4);
  a.module.lines.clear();
  CHECK(Run(a).event(0).line == 0);
}

TEST_CASE("one machine serves many modules, one after the other") {
  Assembler first, second;
  first.start("N", {word_x(Op::integer, 0, 1), word(Op::replyv, 0)});
  second.start("T", {word_x(Op::textk, 0, second.text("two")), word(Op::replyv, 0)});
  Run one(first), two(second);
  Machine machine;
  for (int i = 0; i < 3; ++i) {
    CHECK(machine.handle(*one.module, one.module->handlers[0], {}, one.host).reply.text == "1");
    CHECK(machine.handle(*two.module, two.module->handlers[0], {}, two.host).reply.text == "two");
  }
}
