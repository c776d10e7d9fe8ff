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
      static constexpr const char* kNames[] = {"num",    "bool",  "none",     "text",      "joined", "name",
                                               "member", "index", "call",     "aggregate", "count",  "rank",
                                               "neg",    "not",
                                               "has",    "bin",   "coalesce", "and",       "or",     "if"};
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

TEST_CASE("the whole grammar of tables is read, so that it can be refused by name") {
  std::vector<Complaint> complaints;
  parse(R"(module m 1
table t max 10, max 5 per a { a: u32 was b, id: int auto, key (a, id), index i (a desc) ranked, total n count by a }
input timer sweep every 10s
fn f(r: t): num = sum(x.n for x in t[1] desc limit 5 where x.n > 1) + count(t by i from 1 to 2) + rank(t[1] by i)
on sweep { for r in t by i[1] from 2 limit 5 where r.n < 3 { delete r  update r { a: 1 } } let id = insert t { a: 1 } put t { a } t[1].n += 1 }
view v(a: u32) = for r in t[a] { r.a, row, x: r.n + 1 }
)",
        complaints);
  for (const Complaint& c : complaints) MESSAGE(c.message);
  CHECK(complaints.empty());
}

}  // namespace
}  // namespace sluice::vm
