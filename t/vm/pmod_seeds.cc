// Writes the seed corpus of the module file's fuzz driver, or checks that a folder holds it: pmod_seeds [--check] FOLDER
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "vm/builtin.h"
#include "vm/format.h"
#include "vm/module.h"

using namespace sluice;
using namespace sluice::vm;

namespace {
Slot slot(Base base, std::uint32_t max = 0) {
  Slot s;
  s.base = base;
  s.max = base == Base::slug ? kSlugMax : max;
  return s;
}
unsigned add(Module& m, FunctionKind kind, std::string name, std::vector<RegisterType> parameters, std::vector<RegisterType> others, Type result,
             std::vector<Word> code, bool writes) {
  Function f;
  f.kind = kind;
  f.name = std::move(name);
  f.parameters = parameters;
  f.registers = std::move(parameters);
  f.registers.insert(f.registers.end(), others.begin(), others.end());
  f.result = result;
  f.code = std::move(code);
  f.writes = writes;
  m.functions.push_back(std::move(f));
  return static_cast<unsigned>(m.functions.size() - 1);
}
constexpr Type N = Type::num, T = Type::text, B = Type::boolean, Y = Type::bytes;

Module named(const char* name) {
  Module m;
  m.name = name;
  return m;
}

// States of every slot, a key with both edges, a text input, a loop, calls, a partial function, views.
Module counters() {
  Module m = named("counters");
  m.numbers = {0.5, 1e300};
  m.texts = {"say something", "hits", "lamp", "motto", "none"};
  m.text_pool.emplace_back("be kind");
  Slot hits = slot(Base::integer), level = slot(Base::num), winner = slot(Base::slug);
  hits.range = Range::in;
  hits.high = 1000;
  level.range = Range::clamp;
  level.high = 100;
  winner.optional = true;
  m.states = {{"hits", hits, Value::number(0)}, {"level", level, Value::number(50)}, {"lamp", slot(Base::boolean), Value::truth(false)},
              {"motto", slot(Base::text, 40), Value::span(m.text_pool.back())}, {"winner", winner, std::nullopt}};
  m.inputs = {{"plus", InputKind::key, false, 0, 0, {}},
              {"say", InputKind::text, false, 40, 0, {}},
              {"turn", InputKind::message, false, 0, 0, {{"amount", slot(Base::num)}, {"who", slot(Base::slug)}}},
              {"blob", InputKind::message, false, 0, 0, {{"n", slot(Base::u32)}, {"body", slot(Base::bytes, 100)}}}};
  const unsigned half = add(m, FunctionKind::function, "half", {N}, {N, B}, N,
                            {word_x(Op::integer, 1, 0), word(Op::eqn, 2, 0, 1), word_x(Op::jf, 2, 4), word(Op::retabs),
                             word_x(Op::numk, 1, 0), word(Op::mul, 1, 0, 1), word(Op::ret, 1)}, false);
  m.functions[half].partial = true;
  const unsigned start = add(m, FunctionKind::handler, "", {}, {N, N, N}, Type::none,
      {word_x(Op::integer, 0, 1), word_x(Op::integer, 1, 7), word_x(Op::integer, 2, 0), word_x(Op::forp, 0, 10), word_x(Op::forl, 0, 10),
       word_x(Op::absent, 0, 8), word(Op::add, 2, 2, 0), word_x(Op::loop, 0, 4), word_x(Op::sets, 2, 0), word(Op::done)}, true);
  const unsigned down = add(m, FunctionKind::handler, "", {}, {N, N, B}, Type::none,
      {word_x(Op::gets, 0, 0), word_x(Op::integer, 1, 1), word(Op::add, 0, 0, 1), word_x(Op::sets, 0, 0), word(Op::boolean, 2, 1),
       word_x(Op::sets, 2, 2), word(Op::done)}, true);
  const unsigned up = add(m, FunctionKind::handler, "", {}, {B}, Type::none,
      {word(Op::boolean, 0, 0), word_x(Op::sets, 0, 2), word_x(Op::clrs, 0, 4), word(Op::done)}, true);
  const unsigned say = add(m, FunctionKind::handler, "", {}, {T, N, N, B}, Type::none,
      {word_x(Op::field, 0, 0), word(Op::builtin, 0, 0, 15), word(Op::builtin, 1, 0, 10), word_x(Op::integer, 2, 0), word(Op::ltn, 3, 2, 1),
       word_x(Op::jt, 3, 8), word_x(Op::textk, 0, 0), word(Op::fail, 0, 4), word_x(Op::sets, 0, 3), word(Op::replyf, 0)}, true);
  const unsigned turn = add(m, FunctionKind::handler, "", {}, {N, N, T, B}, Type::none,
      {word_x(Op::gets, 0, 1), word_x(Op::field, 1, 0), word(Op::call, 1, 1, half), word_x(Op::absent, 0, 5), word_x(Op::jmp, 0, 6),
       word_x(Op::integer, 1, 1), word(Op::add, 0, 0, 1), word_x(Op::sets, 0, 1), word_x(Op::field, 2, 1), word_x(Op::sets, 2, 4),
       word(Op::jbeg), word_x(Op::jfld, 0, 1), word_x(Op::gets, 2, 4), word_x(Op::absent, 0, 16), word_x(Op::jfld, 2, 3),
       word_x(Op::jmp, 0, 17), word_x(Op::jnul, 0, 3), word_x(Op::gets, 3, 2), word_x(Op::jfld, 3, 2), word(Op::replyj)}, true);
  const unsigned blob = add(m, FunctionKind::handler, "", {}, {Y, N, T}, Type::none,
      {word_x(Op::field, 0, 1), word(Op::builtin, 1, 0, 11), word(Op::builtin, 2, 0, 27), word(Op::replyv, 2)}, false);
  m.handlers = {{0, start}, {1, down}, {2, up}, {3, say}, {5, turn}, {7, blob}};
  const unsigned motto = add(m, FunctionKind::view, "", {}, {T, T, N}, T,
      {word_x(Op::gets, 0, 3), word(Op::builtin, 2, 0, 12), word(Op::builtin, 0, 0, 13), word(Op::builtin, 1, 2, 25),
       word(Op::concat, 0, 0, 2), word(Op::ret, 0)}, false);
  const unsigned more = add(m, FunctionKind::view, "", {N, T, B}, {N}, B,
      {word_x(Op::now, 3, 0), word(Op::ltn, 2, 0, 3), word(Op::ret, 2)}, false);
  m.views = {{"motto", T, {}, motto},
             {"more", B, {{"n", slot(Base::u32)}, {"t", slot(Base::text, 50)}, {"b", slot(Base::boolean)}}, more}};
  m.lines.resize(m.functions.size());
  m.lines[start].assign(m.functions[start].code.size(), 9);
  return m;
}

// Every way to use a document of a kind.
Module documents(DocumentKind kind) {
  constexpr const char* names[] = {"", "notes", "blobs", "records"};
  Module m = named(names[static_cast<int>(kind)]);
  m.texts = {"locked"};
  m.documents = {kind, 60};
  const Type c = kind == DocumentKind::bytes ? Y : T;
  const Slot body = slot(c == Y ? Base::bytes : Base::text, 50);
  m.inputs = {{"show", InputKind::message, true, 0, 0, {}},
              {"edit", InputKind::message, true, 0, 0, {{"body", body}}},
              {"add", InputKind::message, true, 0, 0, {{"body", body}}},
              {"cut", InputKind::message, true, 0, 0, {{"at", slot(Base::u32)}, {"n", slot(Base::u32)}, {"body", body}}},
              {"remove", InputKind::message, true, 0, 0, {}}};
  const auto handler = [&](std::uint32_t input, std::vector<RegisterType> registers, std::vector<Word> code, bool writes) {
    m.handlers.push_back({event_of(input), add(m, FunctionKind::handler, "", {}, std::move(registers), Type::none, std::move(code), writes)});
  };
  handler(0, {}, {word(Op::replyd)}, false);
  handler(1, {c, T, N}, {word_x(Op::field, 0, 0), word_x(Op::dockey, 1, 0), word_x(Op::docrev, 2, 0), word(Op::docset, 0), word(Op::replyd)}, true);
  handler(2, {c, c}, {word_x(Op::field, 0, 0), word(Op::doc, 1, 1), word_x(Op::absent, 0, 5), word(Op::docapp, 0), word(Op::replyd),
                      word(Op::docset, 0), word(Op::replyd)}, true);
  handler(3, {N, N, c}, {word_x(Op::field, 0, 0), word_x(Op::field, 1, 1), word_x(Op::field, 2, 2), word(Op::docspl, 0), word(Op::doc, 2),
                         word(Op::replyv, 2)}, true);
  handler(4, {}, {word(Op::docdel), word(Op::done)}, true);
  return m;
}

// Tables: rows made, replaced, changed and removed; what is kept about them; loops that stream and loops that take their
// keys; views of all rows, of some, and of those that a condition keeps; a timer; a past.
Module shop() {
  Module m = named("shop");
  m.version = 3;
  m.texts = {"gone", "sku", "left"};
  const auto optional = [](Slot one) {
    one.optional = true;
    return one;
  };
  Slot left = slot(Base::integer);
  left.range = Range::in;
  left.high = 1000;
  Table item{"item", Size::max, 20, Size::none, 0, 0,
             {{"sku", slot(Base::slug)}, {"left", left}, {"note", optional(slot(Base::text, 20))}, {"price", slot(Base::num), false, Value::number(1)},
              {"ok", optional(slot(Base::boolean))}},
             {0},
             {{"by_price", {{3, true}, {1}}, false, true}, {"by_note", {{2}}, true}},
             {{"worth", true, 3, {}}, {"stock", true, 1, {}}, {"alike", false, 0, {1}}}};
  item.drops = {"weight"};
  item.columns[3].was = "cost";
  Table cart{"cart", Size::none, 0, Size::max, 3, 1,
             {{"user", slot(Base::slug)}, {"line", slot(Base::integer), true}, {"sku", slot(Base::slug)}, {"n", slot(Base::u32), false, Value::number(1)}},
             {0, 1}, {{"by_sku", {{2}, {3, true}}}}, {{"wanted", true, 3, {2}}}};
  cart.was = "basket";
  Table entry{"entry", Size::keep, 4, Size::none, 0, 0, {{"id", slot(Base::integer), true}, {"said", slot(Base::text, 30)}}, {0}};
  Table last{"last", Size::none, 0, Size::keep, 2, 1, {{"who", slot(Base::slug)}, {"at", slot(Base::num)}, {"due", slot(Base::num)}}, {0, 1}, {{"by_due", {{2}}}}};
  m.tables.push_back(std::move(item));
  m.tables.push_back(std::move(cart));
  m.tables.push_back(std::move(entry));
  m.tables.push_back(std::move(last));
  m.dropped_tables = {"old"};
  m.dropped_states = {"total", "count"};
  const Bound no = Bound::none, in = Bound::including, ex = Bound::excluding;
  m.scans = {{0, 0, 0, no, no, false, true, 20},   // item
             {0, 1, 0, in, ex, false, false, 5},   // item by by_price from, below
             {1, 0, 1, no, no, true, false, 3},    // cart[user] desc
             {0, 0, 0, no, no, false, true, 0},    // item, paged
             {1, 1, 1, in, no, true, true, 0},     // cart by by_sku[sku] from desc, paged
             {3, 1, 0, no, in, false, false, 10},  // last by by_due to
             {2, 0, 0, ex, no, false, true, 4}};   // entry above
  m.shapes = {{0, Writing::insert, {0, 1, 2}}, {0, Writing::put, {0, 1, 4}}, {0, Writing::update, {2, 3}},
              {1, Writing::insert, {0, 2}}, {2, Writing::insert, {1}}, {3, Writing::put, {0, 1, 2}}};
  m.inputs = {{"stock", InputKind::message, false, 0, 0, {{"sku", slot(Base::slug)}, {"left", slot(Base::integer)}, {"note", slot(Base::text, 20)}}},
              {"replace", InputKind::message, false, 0, 0, {{"sku", slot(Base::slug)}, {"left", slot(Base::integer)}}},
              {"add", InputKind::message, false, 0, 0, {{"user", slot(Base::slug)}, {"sku", slot(Base::slug)}}},
              {"buy", InputKind::message, false, 0, 0, {{"user", slot(Base::slug)}}},
              {"price", InputKind::message, false, 0, 0, {{"sku", slot(Base::slug)}, {"price", slot(Base::num)}}},
              {"remove", InputKind::message, false, 0, 0, {{"sku", slot(Base::slug)}}},
              {"sweep", InputKind::timer, false, 0, 60000, {}},
              {"say", InputKind::text, false, 30, 0, {}}};
  const RegisterType item_row{Type::row, 0}, cart_row{Type::row, 1}, last_row{Type::row, 3};
  const unsigned cost = add(m, FunctionKind::function, "cost", {cart_row}, {T, item_row, N, N}, N,
      {word(Op::col, 1, 0, 2), word(Op::row, 2, 1, 0), word_x(Op::absent, 0, 7), word(Op::col, 3, 2, 3), word(Op::col, 4, 0, 3),
       word(Op::mul, 3, 3, 4), word(Op::ret, 3), word(Op::retabs)}, false);
  m.functions[cost].partial = true;
  const unsigned clear = add(m, FunctionKind::function, "clear", {T}, {{Type::cursor, 1}, cart_row}, Type::none,
      {word(Op::open, 1, 0, 2), word(Op::next, 2, 1), word_x(Op::absent, 0, 5), word(Op::erase, 2), word_x(Op::loop, 0, 1), word(Op::ret, kNoRegister)}, true);
  const auto handler = [&](std::uint32_t event, std::vector<RegisterType> registers, std::vector<Word> code) {
    m.handlers.push_back({event, add(m, FunctionKind::handler, "", {}, std::move(registers), Type::none, std::move(code), true)});
  };
  handler(event_of(0), {T, N, B, T, item_row},
          {word_x(Op::field, 0, 0), word_x(Op::field, 1, 1), word_x(Op::field, 3, 2), word(Op::builtin, 1, 1, 0), word(Op::eqt, 2, 0, 3),
           word(Op::logical_not, 2, 2), word(Op::insert, kNoRegister, 0, 0), word(Op::row, 4, 0, 0), word(Op::replyr, 4)});
  handler(event_of(1), {T, N, B, B}, {word_x(Op::field, 0, 0), word_x(Op::field, 1, 1), word(Op::boolean, 2, 1), word(Op::boolean, 3, 0),
                                      word(Op::insert, kNoRegister, 0, 1), word(Op::done)});
  handler(event_of(2), {T, T, N, item_row}, {word_x(Op::field, 0, 0), word_x(Op::field, 1, 1), word(Op::row, 3, 1, 0), word(Op::insert, 2, 0, 3), word(Op::replyv, 2)});
  handler(event_of(3), {T, {Type::cursor, 1}, cart_row, T, item_row, N, N, N, N},
          {word_x(Op::field, 0, 0), word_x(Op::integer, 8, 0), word(Op::open, 1, 0, 2), word(Op::next, 2, 1), word_x(Op::absent, 0, 16), word(Op::col, 3, 2, 2),
           word(Op::row, 4, 3, 0), word(Op::col, 5, 4, 1), word(Op::col, 6, 2, 3), word(Op::sub, 5, 5, 6), word(Op::setcol, 4, 1, 5), word(Op::call, 7, 2, cost),
           word_x(Op::absent, 0, 14), word(Op::add, 8, 8, 7), word(Op::erase, 2), word_x(Op::loop, 0, 3), word(Op::call, kNoRegister, 0, clear),
           word(Op::jbeg), word_x(Op::jfld, 8, 2), word(Op::replyj)});
  handler(event_of(4), {T, item_row, B, T, N, N, N},
          {word_x(Op::field, 0, 0), word(Op::row, 1, 0, 0), word_x(Op::absent, 0, 13), word(Op::boolean, 2, 0), word_x(Op::textk, 3, 0), word_x(Op::field, 4, 1),
           word(Op::update, 1, 2, 2), word(Op::rank, 5, 1, 0), word_x(Op::absent, 0, 11), word(Op::total, 6, 0, 0), word(Op::replyv, 5), word(Op::clrcol, 1, 2),
           word(Op::replyr, 1), word_x(Op::textk, 3, 0), word(Op::fail, 3, 5)});
  handler(event_of(5), {T, item_row}, {word_x(Op::field, 0, 0), word(Op::row, 1, 0, 0), word(Op::erase, 1), word(Op::replyr, 1)});
  handler(event_of(6), {N, {Type::cursor, 3}, last_row, N, N, T},
          {word_x(Op::now, 0, 0), word(Op::open, 1, 0, 5), word(Op::next, 2, 1), word_x(Op::absent, 0, 8), word(Op::col, 3, 2, 2), word(Op::add, 3, 3, 0),
           word(Op::setcol, 2, 2, 3), word_x(Op::loop, 0, 2), word_x(Op::textk, 5, 1), word(Op::insert, 4, 5, 4), word(Op::done)});
  handler(event_of(7), {T, N, N, N, T, N, N},
          {word_x(Op::field, 0, 0), word(Op::insert, 1, 0, 4), word_x(Op::count, 2, 2), word(Op::add, 1, 1, 2), word_x(Op::textk, 4, 2), word(Op::move, 5, 1),
           word_x(Op::now, 6, 0), word(Op::insert, kNoRegister, 4, 5), word(Op::gcount, 3, 4, 3), word(Op::add, 1, 1, 3), word(Op::replyv, 1)});
  const auto view = [&](std::vector<RegisterType> parameters, std::vector<RegisterType> others, RegisterType result, std::vector<Word> code, bool partial = false) {
    const unsigned f = add(m, FunctionKind::view, "", std::move(parameters), std::move(others), result.type, std::move(code), false);
    m.functions[f].result = result;
    m.functions[f].partial = partial;
    return f;
  };
  // sum(i.left for i in item where i.price < 100), or of a dearer part
  const unsigned worth = view({N, N}, {{Type::cursor, 0}, item_row, N, N}, N,
      {word_x(Op::integer, 4, 0), word(Op::open, 2, 0, 1), word(Op::next, 3, 2), word_x(Op::absent, 0, 7), word(Op::col, 5, 3, 1), word(Op::add, 4, 4, 5),
       word_x(Op::loop, 0, 2), word(Op::open, 2, 0, 0), word(Op::next, 3, 2), word_x(Op::absent, 0, 13), word(Op::col, 5, 3, 3), word(Op::add, 4, 4, 5),
       word_x(Op::loop, 0, 8), word(Op::ret, 4)});
  const unsigned alike = view({N}, {N}, N, {word(Op::total, 1, 0, 2), word(Op::ret, 1)});
  const unsigned wanted = view({T}, {N, N}, N, {word(Op::total, 1, 0, 3), word(Op::gcount, 2, 0, 1), word(Op::add, 1, 1, 2), word(Op::ret, 1)});
  const unsigned place = view({T}, {item_row, N}, N, {word(Op::row, 1, 0, 0), word_x(Op::absent, 0, 5), word(Op::rank, 2, 1, 0), word_x(Op::absent, 0, 5),
                                                     word(Op::ret, 2), word(Op::retabs)}, true);
  m.views = {{"worth", N, {{"low", slot(Base::num)}, {"high", slot(Base::num)}}, worth}, {"alike", N, {{"left", slot(Base::integer)}}, alike},
             {"wanted", N, {{"who", slot(Base::slug)}}, wanted}, {"place", N, {{"sku", slot(Base::slug)}}, place}};
  const auto rows = [&](const char* name, std::vector<Parameter> parameters, unsigned table, unsigned scan, bool where) {
    std::vector<RegisterType> takes;
    for (const Parameter& parameter : parameters) takes.push_back(type_of(parameter.slot.base));
    const auto n = static_cast<unsigned>(takes.size());
    View one{name, Type::cursor, parameters, view(takes, {{Type::cursor, table}}, {Type::cursor, table}, {word(Op::open, n, 0, scan), word(Op::ret, n)})};
    takes.push_back({Type::row, table});
    if (where) one.where = view(takes, {N, B}, B, {word(Op::col, n + 1, n, 1), word_x(Op::now, n + 1, 0), word(Op::eqn, n + 2, n + 1, n + 1), word(Op::ret, n + 2)});
    takes.push_back(N);
    one.cells.push_back({"at", view(takes, {}, N, {word(Op::ret, n + 1)})});
    if (table == 0)
      one.cells.push_back({"note", view(takes, {T}, T, {word(Op::col, n + 2, n, 2), word_x(Op::absent, 0, 3), word(Op::ret, n + 2), word(Op::retabs)}, true)});
    m.views.push_back(std::move(one));
  };
  rows("items", {}, 0, 3, false);
  rows("some", {}, 0, 0, true);
  rows("between", {{"low", slot(Base::num)}, {"high", slot(Base::num)}}, 0, 1, false);
  rows("wants", {{"sku", slot(Base::slug)}, {"n", slot(Base::u32)}}, 1, 4, false);
  rows("said", {{"id", slot(Base::integer)}}, 2, 6, false);
  return m;
}

// Every language function once, over the fields of one message.
Module functions() {
  Module m = named("functions");
  m.inputs = {{"go", InputKind::message, false, 0, 0, {{"a", slot(Base::num)}, {"b", slot(Base::num)}, {"c", slot(Base::num)},
                                                      {"body", slot(Base::text, 200)}}}};
  m.texts = {"/title", "a", "x"};
  for (std::uint8_t i = 0; i < kBuiltins; ++i) {
    const Builtin& one = builtin(i);
    std::vector<RegisterType> registers;
    std::vector<Word> code;
    for (unsigned k = 0; k < one.arity; ++k) {
      registers.push_back(one.arguments[k]);
      switch (one.arguments[k]) {
        case Type::num: code.push_back(word_x(Op::field, k, k)); break;
        case Type::boolean: code.push_back(word(Op::boolean, k, 1)); break;
        default: code.push_back(k == 0 ? word_x(Op::field, 0, 3) : word_x(Op::textk, k, k == 1 ? (i >= 33 ? 0 : 1) : 2)); break;
      }
    }
    registers.push_back(one.result);
    code.push_back(word(Op::builtin, one.arity, 0, i));
    code.push_back(word(Op::replyv, one.arity));
    const bool bytes = one.arguments[0] == Type::bytes;
    Input input = m.inputs[0];
    input.name = "f" + std::to_string(i);
    if (bytes) input.fields.back().slot = slot(Base::bytes, 200);
    m.inputs.push_back(input);
    const unsigned f = add(m, FunctionKind::handler, "", {}, registers, Type::none, code, one.chance);
    m.handlers.push_back({event_of(static_cast<std::uint32_t>(m.inputs.size() - 1)), f});
  }
  return m;
}
}  // namespace

int main(int argc, char** argv) {
  const bool check = argc == 3 && std::string_view(argv[1]) == "--check";
  if (argc != 2 && !check) {
    std::fprintf(stderr, "usage: pmod_seeds [--check] FOLDER\n");
    return 2;
  }
  const std::string folder = argv[argc - 1];
  std::vector<std::pair<std::string, Module>> seeds;
  seeds.emplace_back("counters", counters());
  seeds.emplace_back("notes", documents(DocumentKind::text));
  seeds.emplace_back("blobs", documents(DocumentKind::bytes));
  seeds.emplace_back("records", documents(DocumentKind::json));
  seeds.emplace_back("functions", functions());
  seeds.emplace_back("empty", named("empty"));
  seeds.emplace_back("shop", shop());
  for (const auto& [name, module] : seeds) {
    const auto file = encode(module);
    const std::string why = !file ? file.error() : !load(*file) ? load(*file).error() : std::string();
    if (!why.empty()) {
      std::fprintf(stderr, "%s: %s\n", name.c_str(), why.c_str());
      return 1;
    }
    const std::string path = folder + "/" + name + ".pmod";
    if (check) {
      std::ifstream in(path, std::ios::binary);
      if (std::string{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()} != *file) {
        std::fprintf(stderr, "%s is not what is written now; run pmod_seeds %s\n", path.c_str(), folder.c_str());
        return 1;
      }
    } else {
      std::ofstream(path, std::ios::binary) << *file;
    }
  }
  return 0;
}
