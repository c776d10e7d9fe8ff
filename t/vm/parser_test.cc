#include <doctest/doctest.h>

#include "vm/parser.h"

namespace sluice::vm {
namespace {

std::string shape(const Expr& e) {
  switch (e.kind) {
    case ExprKind::number:
      return std::to_string(static_cast<int>(e.number));
    case ExprKind::name:
      return e.text;
    default: {
      static constexpr const char* kNames[] = {
          "num",   "bool", "none", "text", "joined", "name", "member",   "index", "call", "aggregate",
          "count", "rank", "neg",  "not",  "has",    "bin",  "coalesce", "and",   "or",   "if"};
      std::string out = "(";
      out += kNames[static_cast<int>(e.kind)];
      if (e.kind == ExprKind::binary) out += std::to_string(static_cast<int>(e.op));
      for (const ExprPtr& a : e.args) out += ' ' + shape(*a);
      return out + ')';
    }
  }
}

std::string shape_of(std::string_view expression) {
  std::vector<Complaint> complaints;
  const Syntax s = parse("module m 1\nconst A = " + std::string(expression), complaints);
  REQUIRE(complaints.empty());
  REQUIRE(s.consts.size() == 1);
  return shape(*s.consts[0].value);
}

TEST_CASE("operators bind as the grammar says") {
  CHECK(shape_of("1 + 2 * 3") == "(bin0 1 (bin2 2 3))");
  CHECK(shape_of("1 - 2 - 3") == "(bin1 (bin1 1 2) 3)");
  CHECK(shape_of("a ?? b ?? c") == "(coalesce a (coalesce b c))");
  CHECK(shape_of("not a and b or c") == "(or (and (not a) b) c)");
  CHECK(shape_of("a or b ?? c") == "(coalesce (or a b) c)");
  CHECK(shape_of("-a * b") == "(bin2 (neg a) b)");
  CHECK(shape_of("not a == b") == "(not (bin5 a b))");
  CHECK(shape_of("has a.b and c") == "(and (has (member a)) c)");
  CHECK(shape_of("if a then b else c + 1") == "(if a b (bin0 c 1))");
}

TEST_CASE("a long chain and deep nesting are refused, not followed") {
  for (const char* unit :
       {"1 + ", "- ", "not ", "(", "a ?? ", "if a then b else ", "f(", "\"{", "a.b and "}) {
    std::string text = "module m 1\nconst A = ";
    for (int i = 0; i < 100'000; ++i) text += unit;
    std::vector<Complaint> complaints;
    parse(text, complaints);
    CHECK(complaints.size() == 1);
  }
  std::string blocks = "module m 1\nmessage a { }\non a {";
  for (int i = 0; i < 100'000; ++i) blocks += "if a { ";
  std::vector<Complaint> complaints;
  parse(blocks, complaints);
  CHECK(complaints.size() == 1);
  std::string chain = "module m 1\nmessage a { }\non a { if a { }";
  for (int i = 0; i < 100'000; ++i) chain += " else if a { }";
  complaints.clear();
  parse(chain + "}", complaints);
  CHECK(complaints.size() == 1);
}

TEST_CASE("one error per declaration, and reading goes on at the next one") {
  std::vector<Complaint> complaints;
  const Syntax s = parse(
      "module m 1\nstate a num\nstate b: num\non x { if { }\nstate c: num\nview v: num = = 1\n", complaints);
  CHECK(complaints.size() == 3);
  CHECK(s.states.size() == 2);
}

TEST_CASE("a bare reply ends before the next statement") {
  std::vector<Complaint> complaints;
  const Syntax s =
      parse("module m 1\non x { if a { delete doc  reply } reply { a, b: 2, c.d } }", complaints);
  CHECK(complaints.empty());
  REQUIRE(s.handlers.size() == 1);
  const Block& b = s.handlers[0].body.block;
  REQUIRE(b.size() == 2);
  CHECK(b[0]->body[1]->kind == StmtKind::reply_nothing);
  REQUIRE(b[1]->cells.size() == 3);
  CHECK(b[1]->cells[2].name.text == "d");
}

Syntax good(std::string_view text) {
  std::vector<Complaint> complaints;
  Syntax s = parse(text, complaints);
  for (const Complaint& c : complaints) MESSAGE(c.message << " at " << c.span.offset);
  REQUIRE(complaints.empty());
  return s;
}

std::string names(const std::vector<PartSyntax>& parts) {
  std::string out;
  for (const PartSyntax& p : parts) out += p.column.text + (p.desc_at.length != 0 ? "- " : " ");
  return out;
}

TEST_CASE("a table is read with all it can say") {
  const Syntax s = good(R"(module m 1
table line was row_of max 1000, keep 5 * 40 per (room, day) {
  room: slug, day: u32
  id: int auto
  left: num? in 0..5 = 3 was rest,
  max: num clamp 0..1 was min
  key (room, day, id)
  index top (max desc, left) ranked, index by_left left
  unique once (left, max)
  total lines count by (room, day)
  total all sum(max)
  drop old drop key
}
drop state a
drop table b
state c: num = 1 was d)");
  REQUIRE(s.tables.size() == 1);
  const TableSyntax& t = s.tables[0];
  CHECK(t.name.text == "line");
  CHECK(t.was->text == "row_of");
  REQUIRE(t.sizes.size() == 2);
  CHECK(t.sizes[0].size == Size::max);
  CHECK(t.sizes[0].per.empty());
  CHECK(t.sizes[1].size == Size::keep);
  CHECK(shape(*t.sizes[1].rows) == "(bin2 5 40)");
  REQUIRE(t.sizes[1].per.size() == 2);
  CHECK(t.sizes[1].per[1].text == "day");
  REQUIRE(t.columns.size() == 5);
  CHECK(t.columns[2].auto_at.length == 4);
  CHECK(t.columns[3].slot.optional);
  CHECK(shape(*t.columns[3].first) == "3");
  CHECK(t.columns[3].was->text == "rest");
  CHECK(t.columns[4].name.text == "max");
  CHECK(t.columns[4].slot.range == Range::clamp);
  REQUIRE(t.keys.size() == 1);
  CHECK(names(t.keys[0].parts) == "room day id ");
  REQUIRE(t.indexes.size() == 3);
  CHECK(names(t.indexes[0].parts) == "max- left ");
  CHECK(t.indexes[0].ranked_at.length == 6);
  CHECK(t.indexes[1].ranked_at.length == 0);
  CHECK(names(t.indexes[1].parts) == "left ");
  CHECK(t.indexes[2].unique);
  REQUIRE(t.totals.size() == 2);
  CHECK_FALSE(t.totals[0].sum);
  CHECK(names(t.totals[0].by) == "room day ");
  CHECK(t.totals[1].sum->text == "max");
  CHECK(t.totals[1].by.empty());
  REQUIRE(t.drops.size() == 2);
  CHECK(t.drops[1].text == "key");
  REQUIRE(s.drops.size() == 2);
  CHECK_FALSE(s.drops[0].table);
  CHECK(s.drops[1].name.text == "b");
  CHECK(s.states[0].was->text == "d");
}

TEST_CASE("columns may be called as the words that clauses are made of") {
  const Syntax s = good(R"(module m 1
table t max 5 { key: int, index: num = 1 or: num = 2 and: num, max: num in: num in 0..1 clamp: num auto: int auto
  was: num was was was2: num desc: num ranked: num, key (key, desc) index i index ranked unique u in total t count by max
  by: u32, drop drop })");
  CHECK(s.tables[0].columns.size() == 13);
  CHECK(s.tables[0].keys[0].parts.size() == 2);
  CHECK(s.tables[0].indexes[0].ranked_at.length != 0);
  CHECK(s.tables[0].totals[0].by[0].column.text == "max");
}

std::string shape(const Query& q) {
  std::string out = q.table.text;
  if (q.index) out += " by " + q.index->text;
  for (const ExprPtr& g : q.group) out += " [" + shape(*g);
  if (q.low) out += (q.low_excluded ? " above " : " from ") + shape(*q.low);
  if (q.high) out += (q.high_excluded ? " below " : " to ") + shape(*q.high);
  if (q.desc_at.length != 0) out += " desc";
  if (q.limit) out += " limit " + shape(*q.limit);
  if (q.where) out += " where " + shape(*q.where);
  return out;
}

std::string query_of(std::string_view query) {
  const Syntax s = good("module m 1\nview v = for r in " + std::string(query) + " { r.a }");
  CHECK(s.views[0].row.text == "r");
  CHECK(s.views[0].cells.size() == 1);
  return shape(*s.views[0].query);
}

TEST_CASE("a query is read with its order, group, bounds, direction, limit and condition") {
  CHECK(query_of("t") == "t");
  CHECK(query_of("t[1, a]") == "t [1 [a");
  CHECK(query_of("t by i") == "t by i");
  CHECK(query_of("t by i[1] from 2 below 3 desc limit 4 where r.a > 1") ==
        "t by i [1 from 2 below 3 desc limit 4 where (bin9 (member r) 1)");
  CHECK(query_of("t desc to 5 above x - 1") == "t above (bin1 x 1) to 5 desc");
  CHECK(query_of("t limit N where a and b") == "t limit N where (and a b)");
}

TEST_CASE("what goes over rows holds its query") {
  const Syntax s = good(R"(module m 1
const A = sum(r.n * 2 for r in t[1] limit 5)
const B = count(t)
const C = count(t[1, 2] from 3)
const D = count(r for r in t where r.n > 1)
const E = rank(t[1].row by top) + 1
const F = total(t.tally, a, b)
const G = first("{l.who}: {l.body}" for l in line desc limit 1)
const H = count(a.b))");
  const auto value = [&](int i) -> const Expr& { return *s.consts[static_cast<std::size_t>(i)].value; };
  CHECK(value(0).kind == ExprKind::aggregate);
  CHECK(value(0).text == "sum");
  CHECK(value(0).row.text == "r");
  CHECK(shape(value(0)) == "(aggregate (bin2 (member r) 2))");
  CHECK(shape(*value(0).query) == "t [1 limit 5");
  CHECK(value(1).kind == ExprKind::count);
  CHECK(shape(*value(1).query) == "t");
  CHECK(shape(*value(2).query) == "t [1 [2 from 3");
  CHECK(value(3).kind == ExprKind::aggregate);
  CHECK(value(3).args.empty());
  CHECK(value(3).row.text == "r");
  CHECK(shape(value(4)) == "(bin0 (rank (member (index 1))) 1)");
  CHECK(value(4).args[0]->row.text == "top");
  CHECK(shape(value(5)) == "(call (member t) a b)");
  CHECK(shape(*value(6).query) == "line desc limit 1");
  CHECK(value(7).kind == ExprKind::call);
}

TEST_CASE("a function called count hides the one of the language") {
  const Syntax s =
      good("module m 1\nfn count(n: num): num = n\nview v: num = count(v) + count(r for r in t)");
  CHECK(shape(*s.views[0].body.value) == "(bin0 (call v) (aggregate))");
}

TEST_CASE("statements on rows are told apart") {
  const Syntax s = good(R"(module m 1
on a {
  insert t { id: 1, n, r.m }
  let id = insert t { n: 1 }
  var last = insert t { n: 1 }
  put t { n }
  update t[1] { a: 1, b: none }
  delete t[1]
  delete r
  delete doc
  t[1].n += 1
  r.n = none
  for r in t by i[2] limit 5 where r.n > 1 { delete r }
  for i in (t[1].n)..5 limit 5 { }
  for i in n..5 limit 5 { }
})");
  const Block& b = s.handlers[0].body.block;
  REQUIRE(b.size() == 13);
  const StmtKind kinds[] = {StmtKind::insert,     StmtKind::insert,          StmtKind::insert,
                            StmtKind::put,        StmtKind::update,          StmtKind::delete_row,
                            StmtKind::delete_row, StmtKind::delete_document, StmtKind::assign,
                            StmtKind::assign,     StmtKind::row_loop,        StmtKind::count_loop,
                            StmtKind::count_loop};
  for (std::size_t i = 0; i < b.size(); ++i) CHECK(b[i]->kind == kinds[i]);
  CHECK(b[0]->table.text == "t");
  CHECK(b[0]->name.text.empty());
  REQUIRE(b[0]->cells.size() == 3);
  CHECK(b[0]->cells[2].name.text == "m");
  CHECK(b[1]->name.text == "id");
  CHECK_FALSE(b[1]->changeable);
  CHECK(b[2]->changeable);
  CHECK(b[4]->target->kind == ExprKind::index);
  CHECK(b[4]->cells[1].value->kind == ExprKind::none);
  CHECK(shape(*b[10]->query) == "t by i [2 limit 5 where (bin9 (member r) 1)");
  CHECK(b[10]->body.size() == 1);
}

TEST_CASE("a timer and a table view are read") {
  const Syntax s = good(
      "module m 1\ninput timer every every 5min\nview v(a: u32) = for p in t[a] { place: row + 1, p.on }\n"
      "fn f(r: t): num = r.n");
  CHECK(s.inputs[0].kind == InputKind::timer);
  CHECK(s.inputs[0].every->number == 300'000);
  CHECK(s.views[0].of_rows);
  CHECK(s.views[0].parameters.size() == 1);
  CHECK(s.views[0].cells[1].name.text == "on");
  CHECK(s.functions[0].parameters[0].type.text == "t");
}

TEST_CASE("queries nest no deeper than expressions") {
  for (const char* unit : {"sum(", "count(t[", "sum(1 for r in t where ", "count(t from "}) {
    std::string text = "module m 1\nconst A = ";
    for (int i = 0; i < 100'000; ++i) text += unit;
    std::vector<Complaint> complaints;
    parse(text, complaints);
    CHECK(complaints.size() == 1);
  }
  std::string text = "module m 1\nconst A = ";
  for (int i = 0; i < 90; ++i) text += "sum(1 for r in t where ";
  text += '1' + std::string(90, ')');
  const Syntax s = good(text);
  CHECK(s.consts[0].value->depth == 91);
}

}  // namespace
}  // namespace sluice::vm
