// Pages of table views.
#include <doctest/doctest.h>

#include <string>

#include "t/vm/module_player.h"

namespace sluice::vm {
namespace {
// 5,000 rows: id 1 to 5000, n their id by 100, in 10 groups by id.
constexpr std::string_view kRows = R"aup(module pages 1
table t {
  id: int auto, g: u32, n: num, odd: bool?
  key id
  index by_n (n desc)
  index odd (odd, id)
  unique both (g, n, id)
}
table grouped max 100 per g { g: u32, k: u32, key (g, k) }
message fill { count: u32 }
on fill {
  for i in 1..count limit 10000 {
    insert t { g: i % 10, n: floor(i / 100) }
    if i % 2 == 1 { t[i].odd = true }
  }
  for i in 1..25 limit 100 { insert grouped { g: i % 3, k: i } }
}
message remove { id: u32 }
on remove { delete t[id] }
view all = for r in t { r.id }
view down = for r in t desc { r.id, row }
view by_n = for r in t by by_n { r.id, r.n }
view odd = for r in t by odd { r.id }
view odd_down = for r in t by odd desc { r.id }
view of(g: num) = for r in t by both[g] { r.id }
view between(a: num, b: num) = for r in t from a to b { r.id }
view some(a: num) = for r in t above a limit 1500 { r.id }
view group(g: num) = for r in grouped[g] { r.k }
view group_desc(g: num) = for r in grouped[g] desc limit 5 { r.k }
view thirds = for r in t limit 3000 where r.id % 3 == 0 { r.id, row }
view bad = for r in t limit 30 where 1 / (r.id - 20) > 0 { r.id }
view far = for r in t above t[99999].n { r.id }
view cells(m: num) = for r in t limit 4 { r.id, d: 12 / (r.id - m), r.odd, text: "{r.id}\"\n", b: r.id > 2 }
view dear = for r in t { r.id, s: sum(x.n for x in t limit 1000) }
view wide = for r in t { a: pad("", 1000, "x") }
view last = for r in t by by_n to max(x.n for x in t by by_n limit 1) - 49 { r.id }
)aup";
std::string items(std::initializer_list<int> ids) {
  std::string out;
  for (const int id : ids) out += (out.empty() ? "{\"id\":" : ",{\"id\":") + std::to_string(id) + "}";
  return out;
}
std::string page(int rows, int from, const std::string& items) {
  return "{\"rows\":" + std::to_string(rows) + ",\"from\":" + std::to_string(from) + ",\"items\":[" + items + "]}";
}
struct Filled : ModulePlayer {
  Filled() : ModulePlayer(kRows) {
    fuel = 100'000'000;
    REQUIRE(post("fill", {{"count", "5000"}}) == "ok");
  }
};
}  // namespace

TEST_CASE("pages of a whole table, near and far, both ways, and beyond its end") {
  Filled m;
  CHECK(m.page("all", {}, 0, 3) == page(5000, 0, items({1, 2, 3})));
  CHECK(m.page("all", {}, 1000, 2) == page(5000, 1000, items({1001, 1002})));
  CHECK(m.page("all", {}, 1001, 2) == page(5000, 1001, items({1002, 1003})));
  CHECK(m.page("all", {}, 4998, 20) == page(5000, 4998, items({4999, 5000})));
  CHECK(m.page("all", {}, 5000, 20) == page(5000, 5000, ""));
  CHECK(m.page("all", {}, 1'000'000, 20) == page(5000, 5000, ""));
  CHECK(m.page("all", {}, 7, 0) == page(5000, 7, ""));
  CHECK(m.page("down", {}, 0, 2) == page(5000, 0, R"({"id":5000,"row":0},{"id":4999,"row":1})"));
  CHECK(m.page("down", {}, 4000, 2) == page(5000, 4000, R"({"id":1000,"row":4000},{"id":999,"row":4001})"));
  CHECK(m.page("down", {}, 4999, 2) == page(5000, 4999, R"({"id":1,"row":4999})"));
  CHECK(m.page("by_n", {}, 0, 2) == page(5000, 0, R"({"id":5000,"n":50},{"id":4900,"n":49})"));
  CHECK(m.page("by_n", {}, 4999, 2) == page(5000, 4999, R"({"id":99,"n":0})"));
  REQUIRE(m.post("remove", {{"id", "1500"}}) == "ok");
  CHECK(m.page("all", {}, 1498, 3) == page(4999, 1498, items({1499, 1501, 1502})));
  CHECK(m.page("all", {}, 4998, 3) == page(4999, 4998, items({5000})));
}

TEST_CASE("a page has at most a thousand rows") {
  Filled m;
  const std::string said = m.page("all", {}, 0, 5000);
  CHECK(said.find("\"id\":1000}") != std::string::npos);
  CHECK(said.find("\"id\":1001}") == std::string::npos);
}

TEST_CASE("pages between bounds count the rows there") {
  Filled m;
  CHECK(m.page("between", {{"a", "10"}, {"b", "3000"}}, 0, 2) == page(2991, 0, items({10, 11})));
  CHECK(m.page("between", {{"a", "10"}, {"b", "3000"}}, 2990, 5) == page(2991, 2990, items({3000})));
  CHECK(m.page("between", {{"a", "10"}, {"b", "9"}}, 0, 5) == page(0, 0, ""));
  CHECK(m.page("between", {{"a", "4999"}, {"b", "99999"}}, 0, 5) == page(2, 0, items({4999, 5000})));
  CHECK(m.page("some", {{"a", "100"}}, 1499, 5) == page(1500, 1499, items({1600})));
  CHECK(m.page("some", {{"a", "4990"}}, 8, 5) == page(10, 8, items({4999, 5000})));
  CHECK(m.page("of", {{"g", "3"}}, 0, 2) == page(500, 0, items({3, 13})));
  CHECK(m.page("of", {{"g", "3.5"}}, 0, 2) == page(0, 0, ""));
  CHECK(m.page("last", {}, 0, 2) == page(199, 0, items({100, 101})));
}

TEST_CASE("a row without a value for an index is not in its pages") {
  Filled m;
  CHECK(m.page("odd", {}, 1, 2) == page(2500, 1, items({3, 5})));
  CHECK(m.page("odd", {}, 2400, 2) == page(2500, 2400, items({4801, 4803})));
  CHECK(m.page("odd_down", {}, 2400, 2) == page(2500, 2400, items({199, 197})));
}

TEST_CASE("pages of a group are counted by the group's count") {
  Filled m;
  m.host().has_orders = false;
  CHECK(m.page("group", {{"g", "1"}}, 7, 5) == page(9, 7, R"({"k":22},{"k":25})"));
  CHECK(m.page("group", {{"g", "9"}}) == page(0, 0, ""));
  CHECK(m.page("group", {{"g", "0.5"}}) == page(0, 0, ""));
  CHECK(m.page("group_desc", {{"g", "1"}}, 3, 5) == page(5, 3, R"({"k":16},{"k":13})"));
}

TEST_CASE("a reader without orders answers near pages of counted rows, and sends the others on") {
  Filled m;
  m.host().has_orders = false;
  CHECK(m.page("all", {}, 1000, 1) == page(5000, 1000, items({1001})));
  CHECK(m.page("all", {}, 1001, 1) == "elsewhere");
  CHECK(m.page("by_n", {}, 0, 1) == page(5000, 0, R"({"id":5000,"n":50})"));
  CHECK(m.page("odd", {}, 0, 1) == "elsewhere");
  CHECK(m.page("between", {{"a", "1"}, {"b", "2"}}) == "elsewhere");
  CHECK(m.page("some", {{"a", "100"}}, 1499, 5) == page(1500, 1499, items({1600})));
  CHECK(m.page("thirds", {}, 999, 5) == page(1000, 999, R"({"id":3000,"row":999})"));
}

TEST_CASE("a condition keeps rows of those that the limit reads, and its fault is the page's") {
  Filled m;
  CHECK(m.page("thirds", {}, 0, 2) == page(1000, 0, R"({"id":3,"row":0},{"id":6,"row":1})"));
  CHECK(m.page("thirds", {}, 998, 20) == page(1000, 998, R"({"id":2997,"row":998},{"id":3000,"row":999})"));
  CHECK(m.page("thirds", {}, 2000, 20) == page(1000, 1000, ""));
  CHECK(m.page("bad") == "divide");
  m.fuel = 3000 * 40;                              // the rows alone
  CHECK(m.page("thirds", {}, 0, 2) == "limit");
}

TEST_CASE("a page whose rows cannot be said has their fault") {
  Filled m;
  CHECK(m.page("far") == "not_found");
}

TEST_CASE("each cell has its own absence and its own faults") {
  Filled m;
  CHECK(m.page("cells", {{"m", "2"}}) ==
        page(4, 0, R"({"id":1,"d":-12,"odd":true,"text":"1\"\u000a","b":false},{"id":2,"d":null,"odd":null,"text":"2\"\u000a","b":false},)"
                   R"({"id":3,"d":12,"odd":true,"text":"3\"\u000a","b":true},{"id":4,"d":6,"odd":null,"text":"4\"\u000a","b":true})"));
}

TEST_CASE("a page ends behind the row with which its cells have used the fuel of an event") {
  Filled m;
  m.fuel = 200'000;
  const std::string said = m.page("dear");
  std::size_t rows = 0;
  for (std::size_t at = said.find("\"id\""); at != std::string::npos; at = said.find("\"id\"", at + 1)) ++rows;
  CHECK(rows > 1);
  CHECK(rows < 20);
  CHECK(said.starts_with("{\"rows\":5000,\"from\":0,"));
  CHECK(said.ends_with("}]}"));
  CHECK(m.last().fuel_used >= 200'000);
  m.fuel = 1000;                                   // less than a cell takes: it has no value, and its row is there
  CHECK(m.page("dear").starts_with(R"({"rows":5000,"from":0,"items":[{"id":1,"s":null})"));
}

TEST_CASE("a page ends behind the row with which its text passes a mebibyte") {
  Filled m;
  const std::string said = m.page("wide");
  CHECK(said.size() > 990 * 1000);
  CHECK(m.page("wide", {}, 0, 1000).size() < 1024 * 1024 + 2000);
  CHECK(said.ends_with("\"}]}"));
}

}  // namespace sluice::vm
