// What tables, queries and table views compile to.
#include <doctest/doctest.h>

#include "vm/compiler.h"
#include "vm/disasm.h"
#include "vm/explain.h"

namespace sluice::vm {
namespace {

constexpr std::string_view kTables =
    "module m 1\n"
    "table t max 100 { id: slug, n: num, w: text? max 50, key id, index by_n n, index by_w w, total held sum(n) by id }\n"
    "table g max 1_000_000, max 50 per user { user: u32, sku: slug, n: int in 0..9 = 0, key (user, sku) }\n"
    "table q { id: int auto, n: num, key id, index by_n (n desc) ranked }\n"
    "message a { s: slug, x: u32 }\n";

std::unique_ptr<Module> compiled(std::string_view source) {
  const std::string whole = std::string(kTables) + std::string(source);
  Compiled c = compile(whole);
  std::string said;
  for (const Diagnostic& d : c.diagnostics) said += render("m.aup", whole, d);
  INFO(said);
  REQUIRE(c.module != nullptr);
  return std::move(c.module);
}

const Function& function(const Module& m, std::string_view name) {
  for (const Function& f : m.functions)
    if (f.name == name) return f;
  FAIL("no such function");
  return m.functions[0];
}

std::string code_of(std::string_view source, std::string_view name) {
  const std::unique_ptr<Module> m = compiled(source);
  std::string out;
  for (Word w : function(*m, name).code) out += (out.empty() ? "" : " ") + std::string(mnemonic(op_of(w)));
  return out;
}
// One after the other, with a space between.
std::string joined(const std::vector<std::uint32_t>& numbers) {
  std::string out;
  for (const std::uint32_t n : numbers) out += (out.empty() ? "" : " ") + std::to_string(n);
  return out;
}

TEST_CASE("a row is found by a key that is computed where it is needed, and its columns are read from it") {
  CHECK(code_of("view v(s: slug): num = t[s].n + 1", "view v") ==
        "ROW ABSENT COL INT ADD RET RETABS");
  // Two parameters side by side are a key already.
  CHECK(code_of("view v(u: u32, s: slug): num = g[u, s].n", "view v") ==
        "ROW ABSENT COL RET RETABS");
  CHECK(code_of("on a { g[x, s].n -= 1 }", "on a") ==
        "FIELD FIELD ROW COL INT SUB SETCOL DONE");
}

TEST_CASE("columns go into their window without moves, and a column that may be none says whether it is") {
  CHECK(code_of("on a { insert g { user: x, sku: s } }", "on a") == "FIELD FIELD INSERT DONE");
  CHECK(code_of("on a { put t { id: s, n: 1, w: none } }", "on a") ==
        "FIELD INT BOOL TEXTK INSERT DONE");
  CHECK(code_of("on a { update t[s] { n: x, w: if x > 5 then s else none } }", "on a") ==
        "FIELD ROW FIELD FIELD INT LTN JF FIELD JMP JMP BOOL JMP BOOL TEXTK UPDATE DONE");
  CHECK(code_of("on a { t[s].w = none }", "on a") == "FIELD ROW CLRCOL DONE");
  CHECK(code_of("on a { let id = insert q { n: x }  reply id }", "on a") ==
        "FIELD INSERT REPLYV");
}

TEST_CASE("equal shapes and equal queries are kept once") {
  const std::unique_ptr<Module> m = compiled(
      "on a {\n"
      "  for r in t from s limit 5 { delete r }\n"
      "  for r in t from \"x\" limit 5 { delete r }\n"
      "  for r in t above s limit 5 { delete r }\n"
      "  insert g { user: x, sku: s }\n"
      "  insert g { user: 1, sku: \"b\" }\n"
      "  put g { user: 1, sku: \"b\" }\n"
      "}\n");
  REQUIRE(m->scans.size() == 2);
  CHECK(m->scans[0] == Scan{0, 0, 0, Bound::including, Bound::none, false, false, 5});
  CHECK(m->scans[1] == Scan{0, 0, 0, Bound::excluding, Bound::none, false, false, 5});
  REQUIRE(m->shapes.size() == 2);
  CHECK(m->shapes[0].writing == Writing::insert);
  CHECK(m->shapes[1].writing == Writing::put);
}

TEST_CASE("a query reads no more than the least of its limit, the table's and the group's size, and its key allow") {
  const std::unique_ptr<Module> m = compiled(
      "view a: num = sum(r.n for r in t)\n"
      "view b: num = sum(r.n for r in t limit 7)\n"
      "view c: num = sum(r.n for r in t limit 700)\n"
      "view d: num = sum(r.n for r in g[1])\n"
      "view e: num = sum(r.n for r in g limit 10_000)\n"
      "view f: num = sum(r.n for r in g[1, \"x\"])\n"
      "view g: num = first(r.n for r in q)\n"
      "view h: num = first(r.n for r in q limit 9 where r.n > 1)\n");
  std::vector<std::uint32_t> limits;
  for (const Scan& s : m->scans) limits.push_back(s.limit);
  CHECK(joined(limits) == "100 7 50 10000 1 1 9");
}

TEST_CASE("a count that the table keeps is read, any other is made by going over the rows") {
  CHECK(code_of("view v: num = count(q)", "view v") == "COUNT RET");
  CHECK(code_of("view v: num = count(r for r in q by by_n desc)", "view v") == "COUNT RET");
  CHECK(code_of("view v: num = count(q limit 50)", "view v") == "COUNT INT BUILTIN RET");
  CHECK(code_of("view v(u: u32): num = count(g[u])", "view v") == "GCOUNT RET");
  const std::string loop = "INT INT OPEN NEXT ABSENT ADD LOOP RET";
  // Rows without a value are not in the index.
  CHECK(code_of("view v: num = count(t by by_w)", "view v") == loop);
  CHECK(code_of("view v(k: slug): num = count(t from k)", "view v") == loop);
}

TEST_CASE("a loop streams unless something in it writes rows, be it in a function") {
  const std::unique_ptr<Module> m = compiled(
      "state n: num\n"
      "fn gone(r: t) { delete r }\n"
      "fn seen(r: t) { n += r.n }\n"
      "on a {\n"
      "  for r in t limit 1 { seen(r) }\n"
      "  for r in t limit 2 { gone(r) }\n"
      "  for r in t limit 3 { r.n = 1 }\n"
      "  for r in t limit 4 { for k in q limit 5 { insert q { n: 1 } } }\n"
      "  let y = sum(r.n for r in t limit 6)\n"
      "  for r in t limit 7 { n = 1 }\n"
      "}\n");
  std::vector<bool> streams(8);
  for (const Scan& s : m->scans) streams[s.limit] = s.streams;
  CHECK(streams == std::vector<bool>{false, true, false, false, false, false, true, true});
}

TEST_CASE("aggregates stop looking, though no jump leaves their loop") {
  CHECK(code_of("view v: bool = any(r.n > 1 for r in t)", "view v") ==
        "BOOL OPEN NEXT ABSENT JT COL INT LTN JF BOOL LOOP RET");
  CHECK(code_of("view v: num = max(r.n for r in t)", "view v") ==
        "INT BOOL OPEN NEXT ABSENT COL JF LTN JF MOVE BOOL LOOP JF RET RETABS");
  // Of a single row nothing is compared.
  CHECK(code_of("view v: num = max(r.n for r in t limit 1)", "view v") ==
        "INT BOOL OPEN NEXT ABSENT COL BOOL LOOP JF RET RETABS");
}

TEST_CASE("a table view is a function of its rows, one of its condition, and one of each cell") {
  const std::unique_ptr<Module> m = compiled(
      "view v(u: u32) = for r in g[u] limit 20 where r.n > u { r.sku, at: row + u, w: t[r.sku].w }\n");
  REQUIRE(m->views.size() == 1);
  const View& v = m->views[0];
  CHECK(v.type == Type::cursor);
  REQUIRE(v.where.has_value());
  REQUIRE(v.cells.size() == 3);
  const RegisterType row{Type::row, 1};
  const Function& rows = m->functions[v.function];
  CHECK(rows.parameters == std::vector<RegisterType>{Type::num});
  CHECK(rows.result == RegisterType{Type::cursor, 1});
  CHECK(m->functions[*v.where].parameters == std::vector<RegisterType>{Type::num, row});
  CHECK(m->functions[*v.where].result == RegisterType{Type::boolean});
  for (const ViewCell& c : v.cells)
    CHECK(m->functions[c.function].parameters == std::vector<RegisterType>{Type::num, row, Type::num});
  CHECK_FALSE(m->functions[v.cells[0].function].partial);
  CHECK(m->functions[v.cells[2].function].partial);
  CHECK(m->scans[0].limit == 20);
}

TEST_CASE("pages need no limit: few rows are counted, and of many the positions are known") {
  const std::unique_ptr<Module> m = compiled(
      "view a = for r in q { r.n }\n"
      "view b(u: u32) = for r in g[u] { r.n }\n"
      "view c(n: num) = for r in t by by_n[n] { r.id }\n"
      "view d(n: num) = for r in q by by_n from n { r.id }\n"
      "view e = for r in q limit 5 { r.n }\n");
  std::vector<std::uint32_t> limits;
  for (const Scan& s : m->scans) limits.push_back(s.limit);
  CHECK(joined(limits) == "0 0 100 0 5");
}

TEST_CASE("what was and what is gone stand in the module") {
  const std::unique_ptr<Module> m = compiled(
      "state b: num was a\n"
      "table u was v { id: u32, n: num = 5 was m, drop o, key id }\n"
      "drop state old\ndrop table older\n");
  CHECK(m->states[0].was == "a");
  const Table* u = m->find_table("u");
  REQUIRE(u != nullptr);
  CHECK(u->was == "v");
  CHECK(u->columns[1].was == "m");
  CHECK(u->columns[1].first->num == 5);
  CHECK(u->drops == std::vector<std::string>{"o"});
  CHECK(m->dropped_states == std::vector<std::string>{"old"});
  CHECK(m->dropped_tables == std::vector<std::string>{"older"});
}

TEST_CASE("a timer is an input with a period") {
  const std::unique_ptr<Module> m = compiled("input timer sweep every 1min\non sweep { for r in t { delete r } }\n");
  const Input* sweep = m->find_input("sweep");
  REQUIRE(sweep != nullptr);
  CHECK(sweep->kind == InputKind::timer);
  CHECK(sweep->every_ms == 60'000);
  CHECK(m->why_not_sharded().size() > 0);
}

TEST_CASE("bounds are printed for handlers, views, conditions and cells") {
  const std::unique_ptr<Module> m = compiled(
      "on a { for r in t limit 10 { delete r } }\n"
      "view v = for r in q limit 9 where r.n > 1 { r.n, place: rank(r by by_n) }\n");
  const std::string said = explain("m.aup", *m);
  INFO(said);
  CHECK(said.find("m.aup: on a             6 instructions, at most   6,612 fuel,  10 rows read,    10 written\n") !=
        std::string::npos);
  CHECK(said.find("m.aup: view v where     4 instructions, at most       5 fuel") != std::string::npos);
  CHECK(said.find("m.aup: view v.place     2 instructions, at most     801 fuel,   1 rows read,     0 written, ranks\n") !=
        std::string::npos);
}

TEST_CASE("each limit on tables and their code has its sentence") {
  auto many = [](int n, auto line) {
    std::string out = "module m 1\n";
    for (int i = 0; i < n; ++i) out += line(std::to_string(i)) + "\n";
    return out;
  };
  auto says = [](const std::string& source) {
    const Compiled c = compile(source);
    return c.diagnostics.empty() ? std::string() : c.diagnostics[0].message;
  };
  using S = std::string;
  CHECK(says(many(65, [](const S& i) { return "table t" + i + " { id: u32, key id }"; })) ==
        "a module has at most 64 tables");
  CHECK(says(many(64, [](const S& i) { return "table t" + i + " { id: u32, key id }"; })).empty());
  CHECK(says(many(33, [](const S& i) {
          S out = "table t" + i + " { id: u32, key id";
          for (int n = 0; n < 8; ++n) out += ", total a" + std::to_string(n) + " count";
          return out + " }";
        })) == "a module has at most 256 totals");
  const S table = "table t { id: u32, n: num, key id }\n";
  auto lines = [&](int n, auto line) {
    S out = "module m 1\n" + table + "message a { x: u32 }\non a {\n";
    for (int i = 0; i < n; ++i) out += line(i) + "\n";
    return out + "}\n";
  };
  CHECK(says(lines(257, [](int i) { return "for r in t limit " + std::to_string(i + 1) + " { delete r }"; })) ==
        "a module has at most 256 different queries");
  CHECK(says(lines(256, [](int i) { return "for r in t limit " + std::to_string(i + 1) + " { delete r }"; })).starts_with("`on a` may need"));
  // Every set of nine columns is another shape.
  S wide = "module m 1\ntable t { id: u32";
  for (int c = 0; c < 9; ++c) wide += ", c" + std::to_string(c) + ": num?";
  wide += ", key id }\nmessage a { x: u32 }\non a {\n";
  for (int i = 0; i < 257; ++i) {
    wide += "insert t { id: x";
    for (int c = 0; c < 9; ++c)
      if ((i >> c & 1) != 0) wide += ", c" + std::to_string(c) + ": 1";
    wide += " }\n";
  }
  CHECK(says(wide + "}\n") == "a module writes rows in at most 256 different ways");
  S cells = "module m 1\n" + table;
  for (int v = 0; v < 27; ++v) {
    cells += "view v" + std::to_string(v) + " = for r in t { ";
    for (int c = 0; c < 18; ++c) cells += "c" + std::to_string(c) + ": r.n, ";
    cells += "}\n";
  }
  CHECK(says(cells) == "a module has at most 512 views and cells together");
  S code = "module m 1\n" + table;
  for (int f = 0; f < 256; ++f) code += "fn f" + std::to_string(f) + "(): num = 1\n";
  for (int v = 0; v < 257; ++v) code += "view v" + std::to_string(v) + ": num = 1\n";
  CHECK(says(code) == "a module has at most 512 functions, handlers, views and cells together");
}

}  // namespace
}  // namespace sluice::vm
