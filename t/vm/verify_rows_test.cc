// What the loader proves about tables, queries, writes and views of rows, each with a module that breaks it.
#include <doctest/doctest.h>

#include "t/vm/refusals.h"

using namespace sluice;
using namespace sluice::vm;

namespace {
// Why a shop is refused after `change`, without its beginning.
template <class Change>
std::string shop(Change change) {
  Shop s;
  change(s);
  const std::string why = s.refusal();
  return why.starts_with("module: ") ? why.substr(8) : why;
}
// The same, of its items.
template <class Change>
std::string item(Change change) {
  const std::string why = shop([&](Shop& s) {
    s.module.scans.clear();
    s.module.shapes.clear();
    change(s.module.tables[s.item]);
  });
  return why.starts_with("table `item`: ") ? why.substr(14) : why;
}
template <class Change>
std::string column(std::uint8_t i, Change change) {
  return item([&](Table& t) { change(t.columns[i]); });
}
}  // namespace

TEST_CASE("a shop is a module as it should be") {
  CHECK(shop([](Shop&) {}).empty());
  const auto m = Shop().build();
  CHECK(m->total_at(2).table == 0);
  CHECK(m->total_at(3).table == 1);
  CHECK(m->total_at(3).total == 0);
  CHECK(m->total_number(1, 0) == 3);
  CHECK(m->find_table("cart") == &m->tables[1]);
  CHECK(m->find_table("cars") == nullptr);
}

TEST_CASE("tables, columns, indexes and totals have names of their own and are few") {
  CHECK(shop([](Shop& s) { s.module.tables[1].name = "item"; }) == "there are two of the table `item`");
  CHECK(shop([](Shop& s) { s.module.tables[1].name = "i tem"; }) == "the name of a table is not 1 to 64 of A-Z a-z 0-9 - _");
  CHECK(column(1, [](Column& c) { c.name = "sku"; }) == "there are two of the column `sku`");
  CHECK(item([](Table& t) { t.indexes[1].name = "by_price"; }) == "there are two of the index `by_price`");
  CHECK(item([](Table& t) { t.totals[1].name = "worth"; }) == "there are two of the total `worth`");
  CHECK(shop([](Shop& s) {
          for (int i = 0; i < 62; ++i) s.table("t" + std::to_string(i), {{"id", slot(Base::u32)}}, {0});
        }) == "there are more than 64 tables");
  CHECK(item([](Table& t) {
          for (int i = 0; i < 29; ++i) t.columns.push_back({"c" + std::to_string(i), maybe(slot(Base::num))});
        }) == "has more than 32 columns");
  CHECK(item([](Table& t) { t.columns.clear(); }) == "has no columns");
  CHECK(item([](Table& t) {
          for (int i = 0; i < 7; ++i) t.indexes.push_back({"i" + std::to_string(i), {{Shop::left}}});
        }) == "has more than 8 indexes");
  CHECK(item([](Table& t) {
          for (int i = 0; i < 6; ++i) t.totals.push_back({"t" + std::to_string(i)});
        }) == "has more than 8 totals");
  const auto totals = [](int last) {
    return shop([&](Shop& s) {
      s.module.tables.clear();
      s.module.scans.clear();
      s.module.shapes.clear();
      for (int i = 0; i < 33; ++i) {
        Table& t = s.module.tables[s.table("t" + std::to_string(i), {{"id", slot(Base::u32)}}, {0})];
        for (int k = 0; k < (i < 32 ? 8 : last); ++k) t.totals.push_back({"n" + std::to_string(k)});
      }
    });
  };
  CHECK(totals(0).empty());
  CHECK(totals(1) == "there are more than 256 totals");
}

TEST_CASE("columns store what a table can hold, and their defaults fit") {
  CHECK(column(2, [](Column& c) { c.slot = slot(Base::bytes, 9); }) == "column `note`: bytes are not stored in tables");
  CHECK(column(2, [](Column& c) { c.slot.max = 65537; }) == "column `note`: has a max that is not 1 to 65536");
  CHECK(column(1, [](Column& c) { c.slot.low = 2000; }) == "column `left`: has a range that holds nothing");
  CHECK(column(3, [](Column& c) { c.first = Value::number(-0.0); }) == "column `price`: its default is not a number");
  CHECK(column(1, [](Column& c) { c.first = Value::number(1001); }) == "column `left`: its default is not int in 0..1000");
  CHECK(column(2, [](Column& c) { c.first = Value::span("\xff"); }) == "column `note`: its default is not UTF-8");
  CHECK(column(2, [](Column& c) { c.first = Value::span("x"); }).empty());
  CHECK(column(3, [](Column& c) { c.first = Value::truth(true); }) == "column `price`: its default is of another type");
}

TEST_CASE("one column at most is numbered, and it is a plain int") {
  const auto numbered = [](Slot s) { return column(1, [&](Column& c) { c.slot = s; c.automatic = true; }); };
  const std::string why = "column `left`: is numbered, but is not an int that takes each number or refuses it";
  CHECK(numbered(slot(Base::integer)).empty());
  CHECK(numbered(ranged(Base::integer, Range::in, 1, 9)).empty());
  CHECK(numbered(ranged(Base::integer, Range::clamp, 1, 9)) == why);
  CHECK(numbered(slot(Base::num)) == why);
  CHECK(numbered(maybe(slot(Base::integer))) == why);
  CHECK(column(1, [](Column& c) { c.automatic = true; c.first = Value::number(1); }) == "column `left`: is numbered, but has a default");
  CHECK(item([](Table& t) {
          t.columns[1].automatic = true;
          t.columns.push_back({"other", slot(Base::integer), true});
        }) == "column `other`: is the second one that is numbered");
}

TEST_CASE("a key has one to four columns, each once and always there") {
  const auto key = [](std::vector<std::uint8_t> columns) { return item([&](Table& t) { t.key = std::move(columns); }); };
  CHECK(key({}) == "its key has not 1 to 4 columns");
  CHECK(key({0, 1, 3, 2, 0}) == "its key has not 1 to 4 columns");
  CHECK(key({0, 0}) == "key: names the column `sku` twice");
  CHECK(key({4}) == "key: there is no column 4");
  CHECK(key({2}) == "key: the column `note` may be absent");
  CHECK(column(0, [](Column& c) { c.slot = slot(Base::text, 201); }) == "key: the column `sku` is too long: up to 201 bytes");
  CHECK(column(0, [](Column& c) { c.slot = slot(Base::text, 200); }).empty());
}

TEST_CASE("no default has U+0000 where its column is in a key, an index or a group") {
  const auto null = Value::span(std::string_view("a\0", 2));
  const std::string why = "its default has U+0000, which no key has";
  const auto key = [&](Value first) {
    return column(0, [&](Column& c) {
      c.slot = slot(Base::text, 20);
      c.first = first;
    });
  };
  CHECK(key(null) == "key: the column `sku`: " + why);
  CHECK(key(Value::span("a")).empty());
  CHECK(column(2, [&](Column& c) { c.first = null; }) == "index `by_note`: the column `note`: " + why);
  const auto grouped = [&](bool by_it) {
    return item([&](Table& t) {
      t.columns.push_back({"kind", slot(Base::text, 20)});
      t.columns.back().first = null;
      if (by_it) t.totals.push_back({"kinds", false, 0, {static_cast<std::uint8_t>(t.columns.size() - 1)}});
    });
  };
  CHECK(grouped(true) == "total `kinds`: the column `kind`: " + why);
  CHECK(grouped(false).empty());
}

TEST_CASE("encoded keys have at most 500 bytes, numbers of table and index and the row's key included") {
  // 1 for the kind, 3 for the table, and three texts with their ends
  const auto wide = [](std::uint32_t last) {
    return item([&](Table& t) {
      t.columns = {{"a", slot(Base::text, 200)}, {"b", slot(Base::text, 200)}, {"c", slot(Base::text, last)}};
      t.key = {0, 1, 2};
      t.indexes.clear();
      t.totals.clear();
    });
  };
  CHECK(wide(93).empty());
  CHECK(wide(94) == "key: takes up to 501 bytes, more than the 500 of a key");
  const auto index = [](std::uint32_t last, bool unique) {
    return item([&](Table& t) {
      t.columns = {{"a", slot(Base::text, 200)}, {"b", slot(Base::text, 200)}, {"c", maybe(slot(Base::text, last))}};
      t.key = {0};
      t.indexes = {{"i", {{1}, {2}}, unique}};
      t.totals.clear();
    });
  };
  CHECK(index(90, false).empty());
  CHECK(index(91, false) == "index `i`: takes up to 501 bytes, more than the 500 of a key");
  CHECK(index(200, true).empty());
  CHECK(item([](Table& t) {
          t.columns = {{"a", slot(Base::text, 200)}, {"b", slot(Base::text, 200)}, {"c", slot(Base::text, 91)}};
          t.key = {0};
          t.indexes.clear();
          t.totals = {{"n", false, 0, {0, 1, 2}}};
        }) == "total `n`: takes up to 501 bytes, more than the 500 of a key");
}

TEST_CASE("a table and its groups hold some rows, and groups are a leading part of the key") {
  CHECK(item([](Table& t) { t.rows = 0; }) == "holds no rows");
  CHECK(item([](Table& t) { t.size = Size::none; }) == "holds no rows");
  CHECK(item([](Table& t) { t.group_size = Size::keep; }) == "holds no rows of a group");
  CHECK(item([](Table& t) { t.group_size = Size::keep; t.group_rows = 2; }) == "bounds groups without saying of what");
  CHECK(item([](Table& t) { t.per = 1; }) == "bounds groups without saying of what");
  CHECK(item([](Table& t) { t.group_size = Size::keep; t.group_rows = 2; t.per = 2; }) == "has groups of more columns than its key");
  CHECK(item([](Table& t) { t.group_size = Size::keep; t.group_rows = 2; t.per = 1; }).empty());
}

TEST_CASE("indexes and totals name columns that they can order, sum and group by") {
  const auto index = [](std::vector<KeyPart> parts) { return item([&](Table& t) { t.indexes[0].parts = std::move(parts); }); };
  CHECK(index({}) == "index `by_price`: has not 1 to 8 columns");
  CHECK(index({{0}, {1}, {2}, {3}, {0}, {1}, {2}, {3}, {0}}) == "index `by_price`: has not 1 to 8 columns");
  CHECK(index({{3}, {3, true}}) == "index `by_price`: names the column `price` twice");
  CHECK(index({{9}}) == "index `by_price`: there is no column 9");
  CHECK(column(2, [](Column& c) { c.slot.max = 201; }) == "index `by_note`: the column `note` is too long: up to 201 bytes");
  CHECK(item([](Table& t) { t.indexes[1].ranked = true; }) == "index `by_note`: is unique, so it is not ranked");
  CHECK(item([](Table& t) { t.totals[0].column = 4; }) == "total `worth`: there is no column 4");
  CHECK(item([](Table& t) { t.totals[0].column = 0; }) == "total `worth`: sums what is no number");
  CHECK(item([](Table& t) { t.totals[2].column = 1; }) == "total `alike`: counts rows, but names a column");
  CHECK(item([](Table& t) { t.totals[2].by = {2}; }) == "total `alike`: the column `note` may be absent");
  CHECK(item([](Table& t) { t.totals[2].by = {1, 1}; }) == "total `alike`: names the column `left` twice");
  CHECK(item([](Table& t) { t.totals[2].by = {1, 3, 0, 1, 3, 0, 1, 3, 0}; }) == "total `alike`: has more than 8 columns");
}

TEST_CASE("former names are told once, of nothing that is there") {
  CHECK(shop([](Shop& s) { s.module.tables[1].was = "basket"; }).empty());
  CHECK(shop([](Shop& s) { s.module.tables[1].was = "item"; }) == "the table `item` is there, but is said to be gone");
  CHECK(shop([](Shop& s) { s.module.tables[1].was = "a b"; }) == "the former name of a table is not 1 to 64 of A-Z a-z 0-9 - _");
  CHECK(shop([](Shop& s) {
          s.module.tables[0].was = "basket";
          s.module.tables[1].was = "basket";
        }) == "the table `basket` is said to be gone twice");
  CHECK(shop([](Shop& s) { s.module.dropped_tables = {"old", "old"}; }) == "the table `old` is said to be gone twice");
  CHECK(shop([](Shop& s) { s.module.dropped_tables = {"item"}; }) == "the table `item` is there, but is said to be gone");
  CHECK(shop([](Shop& s) { s.module.dropped_states = {""}; }) == "the former name of a state is not 1 to 64 of A-Z a-z 0-9 - _");
  CHECK(shop([](Shop& s) {
          s.state("n", slot(Base::num), Value::number(0));
          s.module.states[0].was = "m";
          s.module.dropped_states = {"m"};
        }) == "the state `m` is said to be gone twice");
  CHECK(column(1, [](Column& c) { c.was = "note"; }) == "the column `note` is there, but is said to be gone");
  CHECK(item([](Table& t) { t.drops = {"colour", "price"}; }) == "the column `price` is there, but is said to be gone");
}

TEST_CASE("a scan gives no more than its order has") {
  const auto scan = [](Scan one) { return shop([&](Shop& s) { s.module.scans[0] = one; }); };
  CHECK(scan({3, 0, 0, Bound::none, Bound::none, false, false, 1}) == "scan 0: there is no table 3");
  CHECK(scan({0, 3, 0, Bound::none, Bound::none, false, false, 1}) == "scan 0: there is no index 2");
  CHECK(scan({0, 0, 2, Bound::none, Bound::none, false, false, 1}) == "scan 0: gives more columns than its order has");
  CHECK(scan({0, 0, 1, Bound::including, Bound::none, false, false, 1}) == "scan 0: gives more columns than its order has");
  CHECK(scan({0, 0, 1, Bound::none, Bound::excluding, false, false, 1}) == "scan 0: gives more columns than its order has");
  CHECK(scan({0, 0, 0, Bound::none, Bound::none, false, false, 10001}) == "scan 0: reads more than 10000 rows");
  CHECK(scan({1, 0, 1, Bound::including, Bound::excluding, true, true, 10000}).empty());
  CHECK(shop([](Shop& s) { s.module.scans.resize(257); }) == "there are more than 256 scans");
}

TEST_CASE("a new row is complete, its number its own, and its key stays") {
  const auto shape = [](RowShape one) { return shop([&](Shop& s) { s.module.shapes[0] = std::move(one); }); };
  CHECK(shape({3, Writing::insert, {}}) == "row shape 0: there is no table 3");
  CHECK(shape({0, Writing::insert, {0, 1, 4}}) == "row shape 0: there is no column 4");
  CHECK(shape({0, Writing::insert, {0, 1, 0}}) == "row shape 0: gives the column `sku` twice");
  CHECK(shape({0, Writing::insert, {0, 2}}) == "row shape 0: does not give the column `left`");
  CHECK(shape({0, Writing::put, {1}}) == "row shape 0: does not give the column `sku`");
  CHECK(shape({0, Writing::put, {1, 0}}).empty());
  CHECK(shape({1, Writing::insert, {0, 1, 2}}) == "row shape 0: gives the column `line`, which is numbered");
  CHECK(shape({0, Writing::update, {0}}) == "row shape 0: changes the column `sku` of the key");
  CHECK(shape({0, Writing::update, {}}) == "row shape 0: changes no column");
  CHECK(shop([](Shop& s) { s.module.shapes.resize(257, {0, Writing::put, {0, 1}}); }) == "there are more than 256 row shapes");
}

namespace {
constexpr Word kRet0 = word(Op::ret, 0);
// Items, all of them or those that a condition keeps, of a view with a parameter.
Shop items(const Assembler::Cell* where = nullptr) {
  Shop s;
  const unsigned paged = s.scan({0, 0, 0, Bound::none, Bound::none, false, true, 0});
  s.table_view("items", {{"least", slot(Base::num)}}, s.item, "C0", {word(Op::open, 1, 0, where == nullptr ? paged : s.all), word(Op::ret, 1)},
               {{"sku", Type::text, "T", {word(Op::col, 3, 1, Shop::sku), word(Op::ret, 3)}},
                {"at", Type::num, "", {word(Op::ret, 2)}},
                {"note", Type::text, "T", {word(Op::col, 3, 1, Shop::note), word_x(Op::absent, 0, 3), word(Op::ret, 3), word(Op::retabs)}, true}},
               where);
  return s;
}
const Assembler::Cell kLeft{"", Type::boolean, "NB", {word(Op::col, 2, 1, Shop::left), word(Op::len, 3, 0, 2), word(Op::ret, 3)}};
template <class Change>
std::string view(Change change, const Assembler::Cell* where = nullptr) {
  Shop s = items(where);
  change(s.module);
  const std::string why = s.refusal();
  return why.starts_with("module: ") ? why.substr(8) : why;
}
}  // namespace

TEST_CASE("a view of rows has functions for its rows, its condition and each cell") {
  CHECK(view([](Module&) {}).empty());
  CHECK(view([](Module&) {}, &kLeft).empty());
  const auto loaded = items(&kLeft).build();
  CHECK(loaded->functions[0].name == "view items");
  CHECK(loaded->functions[1].name == "view items where");
  CHECK(loaded->functions[2].name == "view items.sku");
  CHECK(loaded->facts[0].rows_read == 100);
  CHECK(loaded->facts[0].tables_read == 1);
  CHECK(!loaded->facts[0].ranks);

  CHECK(view([](Module& m) { m.views[0].cells.clear(); }) == "view `items`: has no cells");
  CHECK(view([](Module& m) { m.views[0].cells[1].name = "sku"; }) == "view `items`: there are two of the cell `sku`");
  CHECK(view([](Module& m) { m.views[0].cells[1].name = ""; }) == "view `items`: the name of a cell is not 1 to 64 of A-Z a-z 0-9 - _");
  CHECK(view([](Module& m) { m.views[0].cells[1].function = 9; }) == "view `items`: cell `at`: there is no function 9");
  CHECK(view([](Module& m) { m.views[0].cells[1].function = 1; }) == "view `items`: cell `at`: function 1 is another view's too");
  CHECK(view([](Module& m) { m.functions[2].kind = FunctionKind::function; m.functions[2].name = "fn f"; }) ==
        "view `items`: cell `at`: function 2 is no view");
  CHECK(view([](Module& m) { m.functions[2].parameters.pop_back(); m.functions[2].code = {kRet0}; }) ==
        "view `items`: cell `at`: its function takes other parameters");
  CHECK(view([](Module& m) {
          for (RegisterType* t : {&m.functions[2].parameters[1], &m.functions[2].registers[1]}) t->table = 1;
        }) == "view `items`: cell `at`: its function takes other parameters");
  CHECK(view([](Module& m) {
          m.functions[2].registers.push_back(Type::bytes);
          m.functions[2].result = Type::bytes;
        }) == "view `items`: cell `at`: is of no type that a cell has");
  CHECK(view([](Module& m) { m.views[0].where = 9; }) == "view `items`: there is no function 9");
  CHECK(view([](Module& m) { m.functions[1].result = Type::num; }, &kLeft) == "view `items`: its condition is no bool");
  CHECK(view([](Module& m) { m.functions[1].partial = true; }, &kLeft) == "view `items`: its condition may be absent");
  CHECK(view([](Module& m) { m.functions[1].parameters.pop_back(); }, &kLeft) == "view `items`: its condition takes other parameters");
  CHECK(view([](Module& m) { m.functions[0].result.table = 1; }) == "view `items`: cell `sku`: its function takes other parameters");
  CHECK(view([](Module& m) { m.functions[0].partial = true; }) == "function 0: gives a cursor, but not for the rows of a view");
  CHECK(view([](Module& m) { m.functions[0].result = Type::num; }) == "view `items`: its function gives another type");
  CHECK(view([](Module& m) { m.views[0].type = Type::num; }) == "view `items`: its function gives another type");
  CHECK(view([](Module& m) {
          m.views[0].type = Type::num;
          m.functions[0].result = Type::num;
          m.functions[0].code = {kRet0};
        }) == "view `items`: has cells, but no rows");
  CHECK(view([](Module& m) {
          for (int i = 0; i < 512; ++i) m.views[0].cells.push_back({"c" + std::to_string(i), 1});
        }) == "there are more than 512 views and cells");
}

TEST_CASE("the rows of a view are what was opened last, with a limit when a condition sifts them") {
  const auto rows = [](std::vector<Word> code, const Assembler::Cell* where = nullptr) {
    return view([&](Module& m) { m.functions[0].code = std::move(code); }, where);
  };
  const Word paged = word(Op::open, 1, 0, 3), limited = word(Op::open, 1, 0, 0), ret = word(Op::ret, 1);
  CHECK(rows({limited, ret}).empty());
  CHECK(rows({paged, word(Op::nop), ret}) == "view items at 0: no NEXT of its own follows");
  CHECK(rows({word(Op::open, 1, 0, 2), ret}) == "view items at 0: register 0 is N, not T");
  CHECK(rows({ret}) == "view items at 0: register 1 may have no value");
  CHECK(rows({paged, ret}, &kLeft) == "view items at 0: rows with a condition need a limit");
  CHECK(rows({limited, ret}, &kLeft).empty());
  // a way to RET past its OPEN, and a second cursor
  const auto jumping = [](std::string_view more, std::vector<Word> code) {
    return view([&](Module& m) {
      for (const RegisterType& type : Assembler::types(more)) m.functions[0].registers.push_back(type);
      m.functions[0].code = std::move(code);
    });
  };
  CHECK(jumping("B", {word(Op::boolean, 2, 1), word_x(Op::jt, 2, 3), limited, ret}) ==
        "view items at 2: a jump leads between OPEN and what follows");
  CHECK(jumping("B", {word(Op::boolean, 2, 1), word_x(Op::jt, 2, 4), limited, ret, paged, ret}).empty());
  CHECK(jumping("R0C0", {word(Op::open, 3, 0, 0), word(Op::next, 2, 3), word_x(Op::absent, 0, 4), word_x(Op::loop, 0, 1), limited, ret}).empty());
  CHECK(jumping("R0", {limited, word(Op::next, 2, 1), word_x(Op::absent, 0, 4), word_x(Op::loop, 0, 1), ret}) ==
        "view items at 4: gives a cursor that was not opened just before");
}

TEST_CASE("pages whose number of rows is not kept need positions") {
  const auto ranks = [](Scan scan, std::string_view registers, std::vector<Word> before) {
    Shop s;
    const unsigned n = s.scan(scan);
    std::vector<Word> code = std::move(before);
    const auto cursor = static_cast<unsigned>(Assembler::types(registers).size());
    code.push_back(word(Op::open, cursor, 0, n));
    code.push_back(word(Op::ret, cursor));
    s.table_view("v", {}, scan.table, std::string(registers) + "C" + std::to_string(scan.table), std::move(code),
                 {{"at", Type::num, "", {word(Op::ret, 1)}}});
    return s.build()->facts[0].ranks;
  };
  const std::vector<Word> x{word_x(Op::textk, 0, 0)}, one{word_x(Op::integer, 0, 1)};
  const Bound no = Bound::none;
  CHECK(!ranks({0, 0, 0, no, no, true, true, 0}, "", {}));
  CHECK(!ranks({0, 1, 0, no, no, false, true, 0}, "", {}));
  CHECK(ranks({0, 2, 0, no, no, false, true, 0}, "", {}));              // rows without a note are not in it
  CHECK(!ranks({1, 0, 1, no, no, false, true, 0}, "T", x));             // a group
  CHECK(ranks({0, 0, 0, Bound::including, no, false, true, 0}, "T", x));
  CHECK(ranks({0, 1, 1, no, no, false, true, 0}, "N", one));
  CHECK(!ranks({0, 1, 1, no, no, false, true, 5}, "N", one));
}

TEST_CASE("rows go into functions, and cursors go nowhere") {
  const auto function = [](std::string_view parameters, char result, std::string_view others, std::vector<Word> code) {
    Shop s;
    s.function("f", parameters, result, others, std::move(code));
    const std::string why = s.refusal();
    return why.starts_with("module: ") ? why.substr(8) : why;
  };
  CHECK(function("R0", 'N', "N", {word(Op::col, 1, 0, Shop::left), word(Op::ret, 1)}).empty());
  CHECK(function("C0", '-', "", {word(Op::done)}) == "function 0: takes a cursor");
  CHECK(function("R3", '-', "", {word(Op::done)}) == "function 0: there is no table 3");
  CHECK(function("", '-', "C7", {word(Op::done)}) == "function 0: there is no table 7");
  const auto gives = [](RegisterType result, FunctionKind kind, std::vector<RegisterType> registers, RegisterType odd = Type::num) {
    Shop s;
    Function f;
    f.kind = kind;
    f.name = "fn f";
    f.result = result;
    f.registers = std::move(registers);
    f.registers.push_back(odd);
    f.code = {word(Op::done)};
    s.module.functions.push_back(std::move(f));
    return s.refusal();
  };
  CHECK(gives({Type::row, 0}, FunctionKind::function, {}) == "module: function 0: gives a row");
  CHECK(gives({Type::cursor, 0}, FunctionKind::function, {}) == "module: function 0: gives a cursor, but not for the rows of a view");
  CHECK(gives({Type::cursor, 0}, FunctionKind::handler, {}) == "module: function 0: gives a cursor, but not for the rows of a view");
  CHECK(gives({}, FunctionKind::function, {}, {Type::num, 1}) == "module: function 0: names the table of what is no row");
}
