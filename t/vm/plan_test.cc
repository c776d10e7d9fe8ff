#include "vm/plan.h"

#include <doctest/doctest.h>

#include "t/vm/schema.h"

using namespace sluice;
using namespace sluice::vm;

namespace {
// What shop 1 has to go through to be served by what `change` makes of it, as version 2.
template <class Change>
Plan planned(Change change, std::uint32_t version = 2) {
  Schema s = shop();
  const Catalog now = first_catalog(*s.module());
  s.version = version;
  change(s);
  return plan_upgrade(now, *s.module());
}
template <class Change>
std::string text(Change change, std::uint32_t version = 2) {
  return planned(change, version).text();
}
void nothing(Schema&) {}
}  // namespace

TEST_CASE("the same module, other code, a higher version and a lower one need no step when the shape stays") {
  CHECK(text(nothing, 1).empty());
  CHECK(text(nothing, 2).empty());
  CHECK(text([](Schema& s) { s.code = 77; }, 1).empty());
  Schema s = shop();
  s.version = 5;
  const Catalog now = first_catalog(*s.module());
  s.version = 3;
  const Plan back = plan_upgrade(now, *s.module());
  CHECK(back.text().empty());
  CHECK(back.hot());
  CHECK(back.next.version == 5);        // a version of another shape has to rise above all that served
}

TEST_CASE("another module's store is refused, and a lower version that would change the shape") {
  CHECK(text([](Schema& s) { s.name = "cafe"; }) == "  refuse   the store is of the module `shop`, not `cafe`\n");
  Schema s = shop();
  s.version = 5;
  const Catalog now = first_catalog(*s.module());
  s.version = 3;
  s.add("item", "color", optionally(of(Base::text, 9)));
  CHECK(plan_upgrade(now, *s.module()).text() ==
        "  free     item.color: new, old rows read none\n"
        "  refuse   the store has version 5 of `shop`, and this is version 3; going back works only where the data keeps its shape\n");
}

TEST_CASE("a changed shape needs a higher version") {
  CHECK(text([](Schema& s) { s.add("item", "color", optionally(of(Base::text, 9))); }, 1) ==
        "  free     item.color: new, old rows read none\n"
        "  refuse   the data changes shape, so the version must rise above 1\n");
}

TEST_CASE("new things are free: states, tables, columns with a default or none, documents") {
  CHECK(text([](Schema& s) {
          s.documents = {DocumentKind::text, 100};
          s.state("total", of(Base::num), Value::number(5));
          s.state("last", optionally(of(Base::slug)));
          s.state("title", of(Base::text, 9), Value::span("hi"));
          s.add("item", "color", optionally(of(Base::text, 9)));
          s.add("item", "sold", of(Base::integer), Value::number(0));
          s.add("item", "kind", of(Base::slug), Value::span("tea"));
          s.add("item", "open", of(Base::boolean), Value::truth(true));
          Table log;
          log.name = "log";
          s.tables.push_back(log);
          s.add("log", "at", of(Base::num));
          s.table("log").key = {0};
        }) ==
        "  free     documents text: new\n"
        "  free     state total: new, it begins as 5\n"
        "  free     state last: new, it begins without a value\n"
        "  free     state title: new, it begins as \"hi\"\n"
        "  free     item.color: new, old rows read none\n"
        "  free     item.sold: new, old rows read 0\n"
        "  free     item.kind: new, old rows read \"tea\"\n"
        "  free     item.open: new, old rows read true\n"
        "  free     table log: new\n");
}

TEST_CASE("a new column that old rows have no value for is refused") {
  CHECK(text([](Schema& s) { s.add("item", "color", of(Base::text, 9)); }) ==
        "  refuse   item.color: new, and old rows have no value; give it a default, or make it a `text?`\n");
  CHECK(text([](Schema& s) { s.add("item", "id", of(Base::integer)).automatic = true; }) ==
        "  refuse   item.id: new, and old rows have no number; an `auto` column comes with its table\n");
}

TEST_CASE("a column keeps its number over renames, and its first default over later ones") {
  Schema s = shop();
  const Catalog first = first_catalog(*s.module());
  s.version = 2;
  s.add("item", "grade", of(Base::integer), Value::number(3));
  const Catalog second = plan_upgrade(first, *s.module()).next;
  s.version = 3;
  Column& grade = s.column("item", "grade");
  grade.name = "stars";
  grade.was = "grade";
  grade.first = Value::number(5);
  const auto module = s.module();
  const Plan plan = plan_upgrade(second, *module);
  CHECK(plan.text() == "  free     item.stars: was grade\n");
  const Layout layout = layout_of(plan.next);
  CHECK(layout.tables[0].columns == std::vector<std::uint16_t>{0, 1, 2, 3, 4});
  REQUIRE(layout.tables[0].before[4]);
  CHECK(layout.tables[0].before[4]->num == 3);
  CHECK(layout.tables[0].shapes.size() == 2);
  CHECK(layout.tables[0].shape == 1);
  // The default alone is no change of shape.
  s.column("item", "stars").first = Value::number(1);
  CHECK(plan_upgrade(plan.next, *s.module()).steps.empty());
}

TEST_CASE("indexes, uniques, totals and groups that are new are built from the rows") {
  const Plan plan = planned([](Schema& s) {
    s.index("item", "by_price", {"price"});
    s.index("item", "one_note", {"note"}, true);
    s.total("item", "goods", "", {"left"});
    s.total("item", "kinds", "", {"sku"});
    s.table("cart").per = 2;
  });
  CHECK(plan.text() ==
        "  build    item index by_price: built from the rows\n"
        "  check    item unique one_note: no two rows may agree in it\n"
        "  check    item.note: no text may have U+0000, as it comes into a key\n"
        "  build    item unique one_note: built from the rows\n"
        "  build    item total goods: counted from the rows\n"
        "  build    item total kinds: counted from the rows\n"
        "  check    table cart per user, sku: no group may have more than 50 rows\n"
        "  build    table cart per user, sku: counted from the rows\n");
  REQUIRE(plan.tables.size() == 2);
  CHECK(plan.tables[0].indexes == std::vector<std::uint8_t>{1, 2});
  CHECK(plan.tables[0].distinct == std::vector<std::uint8_t>{2});
  CHECK(plan.tables[0].keys == std::vector<std::uint8_t>{3});
  CHECK(plan.tables[0].totals == std::vector<std::uint8_t>{1, 2});
  CHECK(plan.tables[1].counts);
  CHECK(plan.tables[1].groups);
  CHECK(!plan.hot());
  // The groups by user alone lie among the new ones: slug, and no more.
  CHECK(plan.next.erases == std::vector<Erase>{{"\x13\x01", std::string("\0", 1)}});
}

TEST_CASE("removed indexes and totals are erased, which is free; ranks are nothing that is stored") {
  const Plan plan = planned([](Schema& s) {
    s.table("item").indexes.clear();
    s.table("item").totals.clear();
    s.table("cart").per = 0;
    s.table("cart").group_size = Size::none;
  });
  CHECK(plan.text() ==
        "  free     item index by_left: gone, its records are erased\n"
        "  free     item total worth: gone, its records are erased\n"
        "  free     table cart per user: gone, its counts are erased\n");
  CHECK(plan.hot());
  using std::string_literals::operator""s;
  CHECK(plan.next.erases == std::vector<Erase>{{"\x11\x00\x00"s, {}}, {"\x12\x00\x00"s, {}}, {"\x13\x01", "\0"s}});
  CHECK(text([](Schema& s) { s.table("item").indexes[0].ranked = true; }, 1).empty());
}

TEST_CASE("an index that changes is built again under a number of its own; one that only changes its name is not") {
  const Plan plan = planned([](Schema& s) { s.table("item").indexes[0].parts[0].descending = false; });
  CHECK(plan.text() == "  build    item index by_left: built again from the rows\n");
  CHECK(plan.next.tables[0].indexes[0].number == 1);
  CHECK(plan.next.tables[0].next_index == 2);
  CHECK(plan.next.erases.size() == 1);
  const Plan renamed = planned([](Schema& s) {
    s.table("item").indexes[0].name = "by_stock";
    s.table("item").totals[0].name = "value";
  });
  CHECK(renamed.text() == "  free     item index by_stock: was by_left\n  free     item total value: was worth\n");
  CHECK(renamed.next.tables[0].indexes[0].number == 0);
  CHECK(renamed.next.erases.empty());
}

TEST_CASE("renames with `was` are free and keep numbers: states, tables, columns") {
  const Plan plan = planned([](Schema& s) {
    s.states[0].name = "count";
    s.states[0].was = "hits";
    s.table("item").was = "item";           // says nothing
    s.table("cart").was = "cart";
    s.table("cart").name = "basket";
    s.column("basket", "qty").was = "qty";
    s.column("basket", "qty").name = "pieces";
  });
  CHECK(plan.text() ==
        "  free     state count: was hits\n"
        "  free     table basket: was cart\n"
        "  free     basket.pieces: was qty\n");
  CHECK(plan.next.states[0].number == 0);
  CHECK(plan.next.tables[1].number == 1);
  CHECK(plan.next.tables[1].shapes.size() == 1);
}

TEST_CASE("`was` and `drop` that were done before are not done again by a restart") {
  Schema s = shop();
  const Catalog first = first_catalog(*s.module());
  s.version = 2;
  s.column("item", "price").was = "price";
  s.column("item", "price").name = "cost";
  s.table("item").drops = {"note"};
  s.remove("item", "note");
  const auto second = s.module();
  const Plan plan = plan_upgrade(first, *second);
  CHECK(plan.text() == "  free     item.cost: was price\n  destroy  item.note: its values are lost\n");
  CHECK(plan_upgrade(plan.next, *second).text().empty());
  // A later version has columns of the old names: other columns, with numbers of their own.
  s.version = 3;
  s.add("item", "price", of(Base::integer), Value::number(1));
  s.add("item", "note", optionally(of(Base::num)));
  const auto third = s.module();
  const Plan later = plan_upgrade(plan.next, *third);
  CHECK(later.text() == "  free     item.price: new, old rows read 1\n  free     item.note: new, old rows read none\n");
  CHECK(later.next.tables[0].columns[3].number == 4);
  CHECK(later.next.tables[0].columns[4].number == 5);
  CHECK(plan_upgrade(later.next, *third).text().empty());
  // Then what is still written there could be meant either way.
  s.version = 4;
  CHECK(plan_upgrade(later.next, *s.module()).text() ==
        "  refuse   item.cost was `price`, but the store has both; take out the `was`, or rename in one version and take over in the next\n"
        "  refuse   item.note is declared and dropped; take out the `drop`, or drop it in one version and declare it in the next\n");
  // From the first version straight to the third: `price` there is a new one, `note` would be both.
  s.version = 3;
  CHECK(plan_upgrade(first, *third).text() ==
        "  free     item.cost: was price\n"
        "  refuse   item.note is declared and dropped; take out the `drop`, or drop it in one version and declare it in the next\n"
        "  free     item.price: new, old rows read 1\n"
        "  refuse   item.note: a text does not become a num; add a column and fill it\n");
}

TEST_CASE("two columns cannot take over the same one") {
  CHECK(text([](Schema& s) {
          s.column("item", "note").name = "memo";
          s.column("item", "memo").was = "note";
          s.add("item", "hint", optionally(of(Base::text, 9))).was = "note";
        }) ==
        "  free     item.memo: was note\n"
        "  refuse   item.note cannot become two; write `was note` once\n"
        "  free     item.hint: new, old rows read none\n");
}

TEST_CASE("wider is free: numbers, texts, ranges, `?`, sizes, documents") {
  CHECK(text([](Schema& s) {
          s.states[0].slot = of(Base::num);
          s.states[1].slot.max = 50;
          s.column("item", "sku").slot = of(Base::text, 64);
          s.column("item", "left").slot = of(Base::integer);
          s.column("item", "price").slot = optionally(of(Base::num));
          s.column("item", "note").slot.max = 200;
          s.table("item").rows = 2000;
          s.table("cart").group_rows = 60;
        }) ==
        "  free     state hits: int in 0..100 to num\n"
        "  free     state motto: text? max 40 to text? max 50\n"
        "  free     item.sku: slug to text max 64\n"
        "  free     item.left: int in 0..1000 to int\n"
        "  free     item.price: num to num?\n"
        "  free     item.note: text? max 100 to text? max 200\n"
        "  free     table item: 1000 rows to 2000 rows\n"
        "  free     table cart per user: 50 rows to 60 rows\n");
  CHECK(text([](Schema& s) { s.table("item").size = Size::none; }) == "  free     table item: 1000 rows to any number of rows\n");
  // Whether the last row is refused or the first removed is no matter of what is stored.
  CHECK(text([](Schema& s) { s.table("item").size = Size::keep; }, 1).empty());
  CHECK(text([](Schema& s) { s.column("item", "left").slot.range = Range::clamp; }, 1).empty());
  // A range can make a narrower type wide enough.
  CHECK(text([](Schema& s) { s.column("item", "left").slot = of(Base::u32); }) == "  free     item.left: int in 0..1000 to u32\n"
        "  build    item index by_left: built again from the rows\n");
}

TEST_CASE("a number that is kept otherwise in a key builds indexes, totals and states again, and is refused in the key") {
  Schema s;
  Table t;
  t.name = "t";
  t.per = 1;
  s.tables.push_back(t);
  s.state("n", of(Base::integer), Value::number(0));
  s.add("t", "a", of(Base::u32));
  s.add("t", "b", of(Base::u32));
  s.table("t").key = {0};
  s.index("t", "by_b", {"b", "a"});
  s.total("t", "by_b", "", {"b"});
  s.total("t", "all_b", "b");
  s.total("t", "rows", "");
  const Catalog now = first_catalog(*s.module());
  s.version = 2;
  Schema key = s, num = s;
  s.column("t", "b").slot = of(Base::integer);
  CHECK(plan_upgrade(now, *s.module()).text() ==
        "  free     t.b: u32 to int\n"
        "  build    t index by_b: built again from the rows\n"
        "  build    t total by_b: counted again from the rows\n");
  num.column("t", "b").slot = of(Base::num);
  num.states[0].slot = of(Base::num);
  const Plan plan = plan_upgrade(now, *num.module());
  CHECK(plan.text() ==
        "  free     state n: int to num\n"
        "  free     t.b: u32 to num\n"
        "  build    t index by_b: built again from the rows\n"
        "  build    t total by_b: counted again from the rows\n");
  REQUIRE(plan.states.size() == 1);
  CHECK(plan.states[0].rewrite);
  CHECK(plan.states[0].before == of(Base::integer));
  CHECK(plan.next.tables[0].totals[0].number == 3);
  CHECK(plan.next.tables[0].totals[1].number == 1);
  key.column("t", "a").slot = of(Base::integer);
  CHECK(plan_upgrade(now, *key.module()).text() ==
        "  refuse   t.a: in a key a u32 does not become an int; add a table and fill it\n"
        "  build    t index by_b: built again from the rows\n");
}

TEST_CASE("narrower is checked: numbers, texts, ranges, values that must be there, sizes") {
  const Plan plan = planned([](Schema& s) {
    s.states[0].slot.high = 50;
    s.states[1].slot.optional = false;
    s.column("item", "left").slot.low = 1;
    s.column("item", "price").slot = of(Base::integer);
    s.column("item", "note").slot = of(Base::slug);
    s.table("item").rows = 999;
    s.table("cart").group_rows = 49;
    s.table("cart").size = Size::keep;
    s.table("cart").rows = 7;
  });
  CHECK(plan.text() ==
        "  check    state hits: int in 0..100 to int in 0..50, its value must fit\n"
        "  check    state motto: text? max 40 to text max 40, its value must fit\n"
        "  check    item.left: int in 0..1000 to int in 1..1000, every row must fit\n"
        "  check    item.price: num to int, every row must fit\n"
        "  check    item.note: text? max 100 to slug, every row must fit\n"
        "  check    table item: 1000 rows to 999 rows, it must have no more\n"
        "  check    table cart: any number of rows to 7 rows, it must have no more\n"
        "  check    table cart per user: 50 rows to 49 rows, no group may have more\n");
  REQUIRE(plan.tables.size() == 2);
  CHECK(plan.tables[0].fits == std::vector<std::uint8_t>{1, 2, 3});
  CHECK(plan.tables[0].rows);
  CHECK(plan.tables[1].rows);
  CHECK(plan.tables[1].groups);
  CHECK(plan.states.size() == 2);
  CHECK(text([](Schema& s) { s.column("item", "note").slot.max = 99; }) ==
        "  check    item.note: text? max 100 to text? max 99, every row must fit\n");
}

TEST_CASE("what is gone is destroyed with `drop`, and refused without") {
  const auto take_away = [](Schema& s) {
    s.states.erase(s.states.begin());
    s.remove("item", "note");
    s.tables.pop_back();
  };
  CHECK(text(take_away) ==
        "  refuse   state hits is gone; write `drop state hits` to lose its value, or `was hits` on the state that takes it over\n"
        "  refuse   item.note is gone; write `drop note` in the table to lose its values, or `was note` on the column that takes it over\n"
        "  refuse   table cart is gone; write `drop table cart` to lose its rows, or `was cart` on the table that takes it over\n");
  const Plan plan = planned([&](Schema& s) {
    take_away(s);
    s.dropped_states = {"hits"};
    s.table("item").drops = {"note"};
    s.dropped_tables = {"cart"};
  });
  CHECK(plan.text() ==
        "  destroy  state hits: its value is lost\n"
        "  destroy  item.note: its values are lost\n"
        "  destroy  table cart: its rows are lost\n");
  CHECK(!plan.refused());
  CHECK(!plan.hot());
  CHECK(plan.why_not(true).empty());
  CHECK(plan.why_not(false) ==
        "state hits: its value is lost; item.note: its values are lost; table cart: its rows are lost; start with --allow-destroy to agree");
  using std::string_literals::operator""s;
  CHECK(plan.next.erases == std::vector<Erase>{{"\x02\x00"s, {}}, {"\x10\x01", {}}, {"\x11\x01", {}}, {"\x12\x01", {}}, {"\x13\x01", {}}, {"\x14\x01", {}}});
  CHECK(plan.next.states[0].number == 1);
  CHECK(plan.next.next_state == 2);
}

TEST_CASE("another type and another key are refused") {
  CHECK(text([](Schema& s) { s.column("cart", "qty").slot = of(Base::text, 9); }, 1) ==
        "  refuse   cart.qty: a u32 does not become a text; add a column and fill it\n"
        "  refuse   the data changes shape, so the version must rise above 1\n");
  CHECK(text([](Schema& s) { s.states[0].slot = of(Base::boolean); }) ==
        "  refuse   state hits: an int does not become a bool; add a state and fill it\n");
  CHECK(text([](Schema& s) { s.table("cart").key = {1, 0}; }) ==
        "  refuse   table cart: its key was `user, sku` and is `sku, user`; add a table and fill it\n");
  const Plan plan = planned([](Schema& s) { s.table("cart").key = {0, 1, 2}; });
  CHECK(plan.why_not(true) == "table cart: its key was `user, sku` and is `user, sku, qty`; add a table and fill it");
}

TEST_CASE("a value in a sentence is written as a module writes it, and cut when it is long") {
  const auto begins = [](std::string_view first) {
    return text([first](Schema& s) { s.state("t", of(Base::text, 900), Value::span(first)); });
  };
  using std::string_literals::operator""s;
  CHECK(begins("a\"b\\c\n\x01"s) == "  free     state t: new, it begins as \"a\\\"b\\\\c\\n\\u{01}\"\n");
  CHECK(begins(std::string(39, 'x') + "\u00e9tc") == "  free     state t: new, it begins as \"" + std::string(39, 'x') + "...\"\n");
}

TEST_CASE("documents may only widen") {
  Schema s;
  s.documents = {DocumentKind::json, 100};
  const Catalog now = first_catalog(*s.module());
  const auto with = [&](DocumentKind kind, std::uint32_t max) {
    s.version = 2;
    s.documents = {kind, max};
    return plan_upgrade(now, *s.module()).text();
  };
  CHECK(with(DocumentKind::json, 100).empty());
  CHECK(with(DocumentKind::bytes, 200) == "  free     documents json to documents bytes\n  free     documents max: 100 to 200\n");
  CHECK(with(DocumentKind::json, 99) == "  refuse   the store's documents have up to 100 bytes, the module's 99\n");
  CHECK(with(DocumentKind::none, 0) == "  refuse   the store has documents json, the module no documents\n");
  s.documents = {DocumentKind::bytes, 100};
  const Catalog bytes = first_catalog(*s.module());
  s.version = 3;
  s.documents = {DocumentKind::text, 100};
  CHECK(plan_upgrade(bytes, *s.module()).text() == "  refuse   the store has documents bytes, the module documents text\n");
}

TEST_CASE("a column that becomes `auto` finds its next number; one that is no longer `auto` is free") {
  Schema s = shop();
  Table log;
  log.name = "log";
  s.tables.push_back(log);
  s.add("log", "id", of(Base::integer));
  s.table("log").key = {0};
  const Catalog now = first_catalog(*s.module());
  s.version = 2;
  s.column("log", "id").automatic = true;
  const Plan plan = plan_upgrade(now, *s.module());
  CHECK(plan.text() == "  build    log.id: `auto`, its next number comes from the rows\n");
  CHECK(plan.tables[0].numbers);
  s.version = 3;
  s.column("log", "id").automatic = false;
  CHECK(plan_upgrade(plan.next, *s.module()).text() == "  free     log.id: no longer `auto`\n");
}

TEST_CASE("inputs and views are free, and no change of shape") {
  Schema s = shop();
  const Catalog now = first_catalog(*s.module());
  Module m;
  m.name = s.name;
  m.states = s.states;
  m.tables = s.tables;
  Input timer;
  timer.name = "tick";
  timer.kind = InputKind::timer;
  timer.every_ms = 1000;
  m.inputs.push_back(timer);
  CHECK(plan_upgrade(now, m).text().empty());
}

TEST_CASE("numbers are never given twice, and a store that has given all of them says so") {
  Schema s = shop();
  Catalog now = first_catalog(*s.module());
  now.next_state = 65'535;
  s.version = 2;
  s.state("one_more", of(Base::num), Value::number(0));
  CHECK(plan_upgrade(now, *s.module()).why_not(true) ==
        "the store has given away all of its 65,535 numbers of one kind; copy its rows into a new store");
}

TEST_CASE("a table that goes back to an earlier shape writes rows in that shape again") {
  Schema s = shop();
  const Catalog first = first_catalog(*s.module());
  s.version = 2;
  s.column("item", "left").slot = of(Base::num);
  const Catalog second = plan_upgrade(first, *s.module()).next;
  CHECK(second.tables[0].shape == 1);
  s.version = 3;
  s.column("item", "left").slot = of(Base::integer);
  const Catalog third = plan_upgrade(second, *s.module()).next;
  CHECK(third.tables[0].shape == 0);
  CHECK(third.tables[0].shapes.size() == 2);
}
