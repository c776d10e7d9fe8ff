#include "vm/format.h"

#include <doctest/doctest.h>

#include "t/vm/container.h"
#include "t/vm/refusals.h"
#include "vm/base/hash.h"
#include "vm/wire.h"

using namespace sluice;
using namespace sluice::vm;

namespace {
Assembler everything() {
  Assembler a;
  a.module.version = 300;
  a.number(0.5);
  a.text("h\xc3\xa9");
  a.state("hits", ranged(Base::integer, Range::in, 0, 100), Value::number(3));
  a.state("lamp", slot(Base::boolean), Value::truth(true));
  a.state("level", ranged(Base::num, Range::clamp, 0, 1), Value::number(0.5));
  a.state("motto", slot(Base::text, 40), Value::span("be kind"));
  a.state("winner", maybe(slot(Base::slug)));
  a.documents(DocumentKind::json, 5000);
  const unsigned plus = a.input("plus", InputKind::key);
  const unsigned say = a.input("say", InputKind::text, 40);
  a.message("take", {{"n", ranged(Base::u32, Range::in, 1, 9)}, {"who", slot(Base::slug)}, {"body", slot(Base::bytes, 70000)}});
  a.message("show", {}, true);
  a.function("twice", "N", 'N', "", {word(Op::add, 0, 0, 0), word(Op::ret, 0)});
  a.handler(event_of(plus), "", {word(Op::done)});
  a.handler(event_of(plus, true), "", {word(Op::done)});
  a.handler(event_of(say), "T", {word_x(Op::field, 0, 0), word_x(Op::sets, 0, 3), word(Op::done)});
  a.view("twice", {{"n", slot(Base::num)}, {"t", slot(Base::text, 9)}}, Type::num, "NT", {word(Op::call, 0, 0, 0), word(Op::ret, 0)});
  a.module.lines = {{1, 1}, {}, {7}, {9, 9, 8}, {70000, 2}};
  return a;
}

// Tables with everything they can have, a view of rows, a timer, and a past.
Shop shop() {
  Shop s;
  s.module.inputs[s.input("tick", InputKind::timer)].every_ms = 90000;
  s.handler(event_of(0), "C1R1T", {word_x(Op::textk, 2, 0), word(Op::open, 0, 2, 2), word(Op::next, 1, 0), word_x(Op::absent, 0, 6), word(Op::erase, 1),
                                   word_x(Op::loop, 0, 2), word(Op::done)});
  const Assembler::Cell where{"", Type::boolean, "B", {word(Op::boolean, 2, 1), word(Op::ret, 2)}};
  s.table_view("items", {{"least", slot(Base::num)}}, s.item, "C0", {word(Op::open, 1, 0, 0), word(Op::ret, 1)},
               {{"at", Type::num, "", {word(Op::ret, 2)}}, {"sku", Type::text, "T", {word(Op::col, 3, 1, 0), word(Op::ret, 3)}}}, &where);
  s.state("open", slot(Base::boolean), Value::truth(true));
  s.state("till", slot(Base::num), Value::number(0));
  s.module.states[1].was = "cash";
  s.module.tables[1].was = "basket";
  s.module.tables[0].columns[3].was = "cost";
  s.module.tables[1].columns[2].was = "item";
  s.module.tables[0].drops = {"weight", "colour"};
  s.module.dropped_states = {"z", "a"};
  s.module.dropped_tables = {"old"};
  return s;
}

std::string why(const std::string& file) {
  auto module = load(file);
  return module ? std::string() : module.error();
}
}  // namespace

TEST_CASE("a module comes back from its file as it was, and its file from the module") {
  const Assembler a = everything();
  const auto m = a.build();
  CHECK(m->name == "sample");
  CHECK(m->version == 300);
  CHECK(m->numbers == a.module.numbers);
  CHECK(m->texts == a.module.texts);
  REQUIRE(m->states.size() == 5);
  CHECK(m->states[0].slot == a.module.states[0].slot);
  CHECK(m->states[0].first->num == 3);
  CHECK(m->states[1].first->boolean);
  CHECK(m->states[3].first->text() == "be kind");
  CHECK(!m->states[4].first);
  CHECK(m->documents.kind == DocumentKind::json);
  CHECK(m->documents.max == 5000);
  REQUIRE(m->inputs.size() == 4);
  CHECK(m->inputs[2].fields[2].slot == a.module.inputs[2].fields[2].slot);
  CHECK(m->inputs[3].keyed);
  CHECK(m->functions[0].name == "fn twice");
  CHECK(m->functions[2].name == "on plus up");
  CHECK(m->functions[3].name == "on say");
  CHECK(m->lines == a.module.lines);
  CHECK(m->code_hash == xxh64(*encode(a.module)));
}

TEST_CASE("tables, queries, writes, views of rows and former names come back as they were") {
  const Shop s = shop();
  const auto m = s.build();
  REQUIRE(m->tables.size() == 3);
  for (std::size_t t = 0; t < 3; ++t) {
    const Table &was = s.module.tables[t], &is = m->tables[t];
    CHECK(is.name == was.name);
    CHECK(is.was == was.was);
    CHECK(is.drops == was.drops);
    CHECK(is.size == was.size);
    CHECK(is.rows == was.rows);
    CHECK(is.group_size == was.group_size);
    CHECK(is.group_rows == was.group_rows);
    CHECK(is.per == was.per);
    CHECK(is.key == was.key);
    REQUIRE(is.columns.size() == was.columns.size());
    for (std::size_t i = 0; i < is.columns.size(); ++i) {
      CHECK(is.columns[i].name == was.columns[i].name);
      CHECK(is.columns[i].slot == was.columns[i].slot);
      CHECK(is.columns[i].automatic == was.columns[i].automatic);
      CHECK(is.columns[i].was == was.columns[i].was);
      CHECK(is.columns[i].first.has_value() == was.columns[i].first.has_value());
    }
    REQUIRE(is.indexes.size() == was.indexes.size());
    for (std::size_t i = 0; i < is.indexes.size(); ++i) {
      CHECK(is.indexes[i].name == was.indexes[i].name);
      CHECK(is.indexes[i].parts == was.indexes[i].parts);
      CHECK(is.indexes[i].unique == was.indexes[i].unique);
      CHECK(is.indexes[i].ranked == was.indexes[i].ranked);
    }
    REQUIRE(is.totals.size() == was.totals.size());
    for (std::size_t i = 0; i < is.totals.size(); ++i) {
      CHECK(is.totals[i].name == was.totals[i].name);
      CHECK(is.totals[i].sum == was.totals[i].sum);
      CHECK(is.totals[i].column == was.totals[i].column);
      CHECK(is.totals[i].by == was.totals[i].by);
    }
  }
  CHECK(m->tables[0].columns[3].first->num == 1);
  CHECK(m->scans == s.module.scans);
  CHECK(m->shapes == s.module.shapes);
  CHECK(m->functions[0].registers == s.module.functions[0].registers);
  CHECK(m->functions[1].result == RegisterType(Type::cursor, 0));
  CHECK(m->inputs[0].every_ms == 90000);
  REQUIRE(m->views.size() == 1);
  CHECK(m->views[0].where == 2u);
  REQUIRE(m->views[0].cells.size() == 2);
  CHECK(m->views[0].cells[1].name == "sku");
  CHECK(m->views[0].cells[1].function == 4);
  CHECK(m->states[1].was == "cash");
  CHECK(m->dropped_states == s.module.dropped_states);
  CHECK(m->dropped_tables == s.module.dropped_tables);
}

TEST_CASE("a file of tables cut anywhere, or with any byte changed, is refused") {
  const std::string file = *encode(shop().module);
  for (std::size_t n = 0; n < file.size(); ++n) CHECK(!load(file.substr(0, n)));
  for (std::size_t i = 0; i < file.size(); ++i) {
    std::string other = file;
    other[i] = static_cast<char>(other[i] ^ 0x10);
    CHECK(!load(other));
  }
}

TEST_CASE("sections of tables are written in their one form") {
  const std::string file = *encode(shop().module);
  using namespace std::string_literals;
  const auto refused = [&](std::uint32_t section, const std::string& bytes, std::string_view name) {
    return why(with_section(file, section, bytes)) == "module: section " + std::to_string(section) + " (" + std::string(name) + ") is not well formed";
  };
  // one table `a` of a u32 `k`, of which single bytes are wrong
  const std::string table = "\x01\x01" "a\x00\x00" "\x01\x01k\x02\x00\x00\x00" "\x01\x00" "\x01\x01i\x00\x01\x00\x00" "\x01\x01t\x00\x00"s;
  CHECK(!refused(4, table, "tables"));
  const auto changed = [&](std::size_t at, char to) {
    std::string bytes = table;
    bytes[at] = to;
    return refused(4, bytes, "tables");
  };
  CHECK(changed(3, 3));       // size
  CHECK(changed(4, 3));       // of a group
  CHECK(changed(8, 7));       // base
  CHECK(changed(9, 8));       // flags of the slot
  CHECK(changed(10, 2));      // auto
  CHECK(changed(11, 2));      // has a default
  CHECK(changed(12, 9));      // the key is longer than what is left of it
  CHECK(changed(17, 4));      // flags of the index
  CHECK(changed(20, 2));      // descending
  CHECK(changed(24, 2));      // sum
  CHECK(refused(4, "\x01\x01" "a\x01\x05\x01\x05\x80\x02"s, "tables"));   // a `per` of 256
  CHECK(refused(7, "\x01\x00\x00\x00\x03\x00\x00\x01\x00"s, "scans and row shapes"));
  CHECK(refused(7, "\x01\x00\x00\x00\x00\x03\x00\x01\x00"s, "scans and row shapes"));
  CHECK(refused(7, "\x01\x00\x00\x00\x00\x00\x04\x01\x00"s, "scans and row shapes"));
  CHECK(refused(7, "\x00\x01\x00\x03\x00"s, "scans and row shapes"));
  CHECK(refused(8, "\x01\x00\x07"s, "functions"));
  // former names: of states, tables, columns; dropped: states, tables, columns
  CHECK(refused(11, "\x00\x00\x00\x00\x00\x00"s, "evolution"));               // says nothing
  CHECK(refused(11, "\x01\x02\x01x\x00\x00\x00\x00\x00"s, "evolution"));       // of no state
  CHECK(refused(11, "\x02\x01\x01x\x01\x01y\x00\x00\x00\x00\x00"s, "evolution"));   // twice of one
  CHECK(refused(11, "\x02\x01\x01x\x00\x01y\x00\x00\x00\x00\x00"s, "evolution"));   // falling
  CHECK(refused(11, "\x01\x01\x00\x00\x00\x00\x00\x00"s, "evolution"));        // a name that says nothing
  CHECK(refused(11, "\x00\x01\x03\x01x\x00\x00\x00\x00"s, "evolution"));       // of no table
  CHECK(refused(11, "\x00\x00\x01\x00\x04\x01x\x00\x00\x00"s, "evolution"));   // of no column
  CHECK(refused(11, "\x00\x00\x01\x03\x00\x01x\x00\x00\x00"s, "evolution"));
  CHECK(refused(11, "\x00\x00\x02\x01\x00\x01x\x00\x01\x01y\x00\x00\x00"s, "evolution"));
  CHECK(refused(11, "\x00\x00\x00\x01\x00\x00\x00"s, "evolution"));
  CHECK(refused(11, "\x00\x00\x00\x00\x00\x01\x03\x01x"s, "evolution"));
  CHECK(refused(11, "\x00\x00\x00\x00\x00\x02\x01\x01x\x00\x01y"s, "evolution"));
  CHECK(why(with_section(file, 11, "\x01\x01\x01x\x00\x00\x00\x00\x00"s)).empty());
  CHECK(why(with_section(file, 11, std::nullopt)).empty());
}

TEST_CASE("a file cut anywhere, or with any byte changed, is refused") {
  const std::string file = *encode(everything().module);
  for (std::size_t n = 0; n < file.size(); ++n) CHECK(!load(file.substr(0, n)));
  for (std::size_t i = 0; i < file.size(); ++i) {
    std::string other = file;
    other[i] = static_cast<char>(other[i] ^ 0x10);
    CHECK(!load(other));
  }
  CHECK(why(file + "x") == "module: is not as long as it says");
}

TEST_CASE("the container says in one sentence what is wrong with it") {
  const std::string file = *encode(everything().module);
  const auto changed = [&](std::size_t at, char to, bool seal = true) {
    std::string other = file;
    other[at] = to;
    return why(seal ? sealed(other) : other);
  };
  CHECK(why("") == "module: is not a module file");
  CHECK(changed(0, 'Q') == "module: is not a module file");
  CHECK(changed(4, 2) == "module: has format 2, and this version reads format 1");
  CHECK(changed(6, 1) == "module: has flags that this version does not know");
  CHECK(changed(file.size() - 1, 1, false) == "module: is damaged: its checksum does not match");
  CHECK(changed(21, 1) == "module: has a header that this version does not know");
  CHECK(changed(12, 100) == "module: has more sections than there are");
  CHECK(changed(12, 9) == "module: section 1 (module) is not where the one before it ends");
  CHECK(changed(32, 13) == "module: has a section 13, which there is not");
  CHECK(changed(32 + 12, 1) == "module: has sections out of order");
  CHECK(why(sealed(file + "x")) == "module: goes on behind its last section");
  CHECK(why(sealed(file.substr(0, 40))) == "module: ends within its list of sections");
  CHECK(why(with_section(file, 5, std::nullopt)) == "module: section 5 (documents) is missing");
  std::string large = file;
  large.resize(kFileMax);
  CHECK(why(large) == "module: is too large: a file has less than 131072 bytes");
}

TEST_CASE("every section is well formed, used up, and written in its one form") {
  const std::string file = *encode(everything().module);
  for (std::uint32_t number = 1; number <= kSections; ++number) {
    if (number == 11) continue;
    const std::string broken = why(with_section(file, number, std::string()));
    CHECK_MESSAGE(!broken.empty(), number);
  }
  using namespace std::string_literals;
  CHECK(why(with_section(file, 5, "\x03\x88\x27x"s)) == "module: section 5 (documents) has bytes left over");
  CHECK(why(with_section(file, 5, "\x04\x88\x27"s)) == "module: section 5 (documents) is not well formed");
  CHECK(why(with_section(file, 5, "\x03\x88\xa7\x00"s)) == "module: section 5 (documents) is not well formed");
  CHECK(why(with_section(file, 5, "\x03\xff\xff\xff\xff\x1f"s)) == "module: section 5 (documents) is not well formed");
  CHECK(why(with_section(file, 2, "\xff\xff\xff\xff\x0f"s)) == "module: section 2 (constants) is not well formed");
  CHECK(why(with_section(file, 3, "\x01\x01" "a\x07\x00\x00"s)) == "module: section 3 (states) is not well formed");
  CHECK(why(with_section(file, 3, "\x01\x01" "a\x03\x00\x01\x02"s)) == "module: section 3 (states) is not well formed");
  CHECK(why(with_section(file, 12, std::string(5, '\0'))) == "module: section 12 (lines) is not well formed");
  CHECK(why(with_section(file, 12, "\x02\x01\x02\x01\x00\x00\x00\x00\x00"s)) == "module: section 12 (lines) is not well formed");
}

TEST_CASE("a module in memory that no file could be is not written") {
  Shop defaults;
  defaults.module.tables[0].columns[1].first = Value::truth(true);
  CHECK(defaults.refusal() == "module: table `item`: column `left`: its default is of another type");
  Assembler parameters = everything();
  parameters.module.functions[0].parameters = {Type::text};
  CHECK(parameters.refusal() == "module: fn twice: parameters are not its first registers");
  parameters.module.functions[0].parameters = {Type::num, Type::num};
  CHECK(parameters.refusal() == "module: fn twice: has more parameters than registers");
  Assembler first = everything();
  first.module.states[0].first = Value::truth(true);
  CHECK(first.refusal() == "module: state `hits`: its first value is of another type");
  Assembler lines = everything();
  lines.module.lines.pop_back();
  CHECK(lines.refusal() == "module: lines are not one list per function");
  lines = everything();
  lines.module.lines[0].pop_back();
  CHECK(lines.refusal() == "module: fn twice: lines are not one per word");
  lines = everything();
  lines.module.lines[0][0] = 0x80000000u;
  CHECK(lines.refusal() == "module: fn twice: a line number is too large");
  Assembler large = everything();
  for (int i = 0; i < 3; ++i) large.text(std::string(60000, 'x'));
  CHECK(large.refusal() == "module: is too large: a file has less than 131072 bytes");
}
