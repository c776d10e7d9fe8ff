// What queries, aggregates and rows answer, from their text to their values.
#include "t/vm/module_player.h"

namespace sluice::vm {
namespace {

constexpr std::string_view kRows = R"aup(module m 1
table t max 100 {
  id: u32, n: num, w: text? max 50, lit: bool = false
  key id
  index by_n (n desc)
  index by_w w
  total sum_n sum(n)
  total per_lit count by lit
}
table q { id: int auto, n: num, key id }
state o: num?

message set { id: u32, n: num, w: text }
message one { id: u32, x: text }
message x { x: num }
message none { }

fn big(r: t): bool = r.n > 6
fn nth(n: num): num? {
  for r in t { if r.n == n { return r.id } }
  return none
}
fn word(n: num): text? {
  for r in t { if r.n == n { return r.w } }
  return "nothing"
}
fn same(n: num): num = n

on set { put t { id, n, w: if w == "" then none else w, lit: n > 5 } }
)aup";

// With four rows in it: 1, 5, "a"; 2, 9, none; 3, 1, "c"; 4, 7, "b".
class Rows : public ModulePlayer {
 public:
  explicit Rows(std::string_view source) : ModulePlayer(std::string(kRows) + std::string(source)) {
    set("1", "5", "a");
    set("2", "9", "");
    set("3", "1", "c");
    set("4", "7", "b");
  }

 private:
  void set(std::string_view id, std::string_view n, std::string_view w) {
    REQUIRE(post("set", {{"id", std::string(id)}, {"n", std::string(n)}}, w) == "ok");
  }
};

TEST_CASE("sum, min, max, first, any and all go over the rows of a query in its order") {
  Rows m(R"aup(
view sum: num = sum(r.n for r in t)
view least: num = min(r.n for r in t)
view most: num = max(r.n for r in t)
view most_text: text = max(r.w ?? "" for r in t)
view first_below: num = first(r.id for r in t by by_n where r.n < 9)
view last: num = first(r.id for r in t desc)
view up_to: num = first(r.id for r in t to 3 desc)
view any: bool = any(r.n == 9 for r in t)
view none_is: bool = any(r.n == 8 for r in t)
view all: bool = all(r.n > 0 for r in t)
view not_all: bool = all(r.n > 1 for r in t)
view nested: num = sum(sum(s.n for s in t from r.id) for r in t)
view of_function: num = count(r for r in t where big(r))
view between: num = count(t from 2 below 4)
view beyond: num = count(t above 2 to 4)
view words: num = count(t by by_w)
view at_most: num = count(t limit 3)
view there: num = count(t)
view kept: num = total(t.sum_n)
view kept_lit: num = total(t.per_lit, true)
view group: num = sum(r.n for r in t by by_w["b"])
)aup");
  CHECK(m.view("sum") == "22");
  CHECK(m.view("least") == "1");
  CHECK(m.view("most") == "9");
  CHECK(m.view("most_text") == "c");
  CHECK(m.view("first_below") == "4");
  CHECK(m.view("last") == "4");
  CHECK(m.view("up_to") == "3");
  CHECK(m.view("any") == "true");
  CHECK(m.view("none_is") == "false");
  CHECK(m.view("all") == "true");
  CHECK(m.view("not_all") == "false");
  CHECK(m.view("nested") == "54");
  CHECK(m.view("of_function") == "2");
  CHECK(m.view("between") == "2");
  CHECK(m.view("beyond") == "2");
  CHECK(m.view("words") == "3");
  CHECK(m.view("at_most") == "3");
  CHECK(m.view("there") == "4");
  CHECK(m.view("kept") == "22");
  CHECK(m.view("kept_lit") == "2");
  CHECK(m.view("group") == "7");
}

TEST_CASE("over rows, what has no value makes the whole have none, but only if it is looked at") {
  Rows m(R"aup(
view of_none: num = min(r.n for r in t where r.n > 100)
view of_none_else: num = min(r.n for r in t where r.n > 100) ?? -1
view has_none: bool = has first(r.n for r in t where r.n > 100)
view sum: num = sum(size(r.w) for r in t)
view sum_else: num = sum(size(r.w) for r in t) ?? 99
view sum_there: num = sum(size(r.w) for r in t where has r.w)
view any_before: bool = any(r.w == "a" for r in t)
view any_behind: bool = any(r.w == "c" for r in t) ?? false
view first_absent: text = first(r.w for r in t where r.n > 5) ?? "absent"
view first_there: text = first(r.w for r in t where r.n > 1)
view where_absent: num = count(r for r in t where size(r.w) > 0) ?? -5
view most: text = max(r.w for r in t) ?? "absent"
view one: text = max(r.w for r in t from 2 limit 1) ?? "absent"
view bound: num = sum(r.n for r in t from o) ?? -7
)aup");
  CHECK(m.view("of_none") == "no_value");
  CHECK(m.view("of_none_else") == "-1");
  CHECK(m.view("has_none") == "false");
  CHECK(m.view("sum") == "no_value");
  CHECK(m.view("sum_else") == "99");
  CHECK(m.view("sum_there") == "3");
  CHECK(m.view("any_before") == "true");
  CHECK(m.view("any_behind") == "false");
  CHECK(m.view("first_absent") == "absent");
  CHECK(m.view("first_there") == "a");
  CHECK(m.view("where_absent") == "-5");
  CHECK(m.view("most") == "absent");
  CHECK(m.view("one") == "absent");
  CHECK(m.view("bound") == "-7");
}

TEST_CASE("a function ends inside a loop over rows, with a value or without one") {
  Rows m(R"aup(
view nth(n: num): num = nth(n)
view word(n: num): text = word(n)
)aup");
  CHECK(m.view("nth", {{"n", "7"}}) == "4");
  CHECK(m.view("nth", {{"n", "8"}}) == "no_value");
  CHECK(m.view("word", {{"n", "5"}}) == "a");
  CHECK(m.view("word", {{"n", "9"}}) == "no_value");
  CHECK(m.view("word", {{"n", "8"}}) == "nothing");
}

TEST_CASE("a row in a name shows what was written meanwhile, and a `?` column takes a value or none") {
  Rows m(R"aup(
on one {
  let r = t[id]
  r.n += 1
  update r { lit: not r.lit, w: if x == "" then none else x }
  reply { n: r.n, w: r.w, lit: r.lit }
}
message word { id: u32, x: text }
on word { t[id].w = if x == "" then none else x  reply t[id] }
message clear { id: u32 }
on clear { t[id].w = none  reply t[id].w ?? "cleared" }
message copy { id: u32, other: u32 }
on copy { insert t { id: other, n: t[id].n, w: if has t[id].w then t[id].w else none }  reply t[other] }
)aup");
  CHECK(m.post("one", {{"id", "1"}}, "new") == R"(ok {"n":6,"w":"new","lit":true})");
  CHECK(m.post("one", {{"id", "1"}}, "") == R"(ok {"n":7,"w":null,"lit":false})");
  CHECK(m.post("one", {{"id", "9"}}, "") == "not_found");
  CHECK(m.post("word", {{"id", "1"}}, "w") == R"(ok {"id":1,"n":7,"w":"w","lit":false})");
  CHECK(m.post("word", {{"id", "1"}}, "") == R"(ok {"id":1,"n":7,"w":null,"lit":false})");
  CHECK(m.post("word", {{"id", "9"}}, "w") == "not_found");
  CHECK(m.post("clear", {{"id", "3"}}) == "ok cleared");
  CHECK(m.post("copy", {{"id", "4"}, {"other", "5"}}) == R"(ok {"id":5,"n":7,"w":"b","lit":false})");
  CHECK(m.post("copy", {{"id", "2"}, {"other", "6"}}) == R"(ok {"id":6,"n":9,"w":null,"lit":false})");
  CHECK(m.post("copy", {{"id", "2"}, {"other", "6"}}) == "exists");
  CHECK(m.post("copy", {{"id", "9"}, {"other", "7"}}) == "not_found");
}

TEST_CASE("names for rows: chosen, changed, passed on, and of no use when the row is gone") {
  Rows m(R"aup(
on none {
  var best = t[1]
  for r in t { if r.n > best.n { best = r } }
  reply best
}
message pick { id: u32 }
on pick {
  let r = t[id] ?? t[1]
  let s = if big(r) then r else t[4]
  reply "{r.id} {s.id}"
}
message gone { id: u32 }
on gone { let r = t[id]  delete r  reply r.n }
message swept { }
on swept { for r in t where big(r) { delete r }  reply count(t) }
message failed { }
on failed { for r in t { r.n = 0 }  check sum(r.n for r in t) > 0 else denied "{count(t)}" }
on x { o = same(if x > 0 then x else none)  reply o }
view o: num = o
view sum: num = sum(r.n for r in t)
)aup");
  CHECK(m.post("none") == R"(ok {"id":2,"n":9,"w":null,"lit":true})");
  CHECK(m.post("pick", {{"id", "2"}}) == "ok 2 2");
  CHECK(m.post("pick", {{"id", "9"}}) == "ok 1 4");
  CHECK(m.post("gone", {{"id", "1"}}) == "not_found");
  CHECK(m.post("failed") == "denied 4");
  CHECK(m.view("sum") == "22");
  CHECK(m.post("swept") == "ok 2");
  CHECK(m.view("sum") == "6");
  CHECK(m.post("x", {{"x", "3"}}) == "ok 3");
  // A `none` on its way into a function fails the event; it clears only what it is assigned to.
  CHECK(m.post("x", {{"x", "-3"}}) == "not_found");
  CHECK(m.view("o") == "3");
}

TEST_CASE("a numbered row tells its number, to a name that may change too") {
  Rows m(R"aup(
on none { var id = insert q { n: 1 }  id += 10  reply id }
message two { }
on two { insert q { n: 2 }  let id = insert q { n: 3 }  reply { id, n: q[id].n, before: q[id - 1].n } }
)aup");
  CHECK(m.post("none") == "ok 11");
  CHECK(m.post("two") == R"(ok {"id":3,"n":3,"before":2})");
}

TEST_CASE("pages show rows in the order of their query, and a cell that fails is null") {
  Rows m(R"aup(
view from(n: num) = for r in t by by_n from n { place: row + 1, r.id, r.w, x: 1 / (r.n - 7) }
view rising = for r in t by by_n desc { r.id }
view big = for r in t where big(r) { r.id, at: row }
view above(n: u32) = for r in t above n limit 2 { r.id, more: count(t above r.id) }
)aup");
  CHECK(m.page("from", {{"n", "5"}}) ==
        R"({"rows":3,"from":0,"items":[{"place":1,"id":2,"w":null,"x":0.5},{"place":2,"id":4,"w":"b","x":null},)"
        R"({"place":3,"id":1,"w":"a","x":-0.5}]})");
  CHECK(m.page("from", {{"n", "5"}}, 1, 1) ==
        R"({"rows":3,"from":1,"items":[{"place":2,"id":4,"w":"b","x":null}]})");
  CHECK(m.page("rising") == R"({"rows":4,"from":0,"items":[{"id":3},{"id":1},{"id":4},{"id":2}]})");
  CHECK(m.page("big") == R"({"rows":2,"from":0,"items":[{"id":2,"at":0},{"id":4,"at":1}]})");
  CHECK(m.page("above", {{"n", "1"}}) == R"({"rows":2,"from":0,"items":[{"id":2,"more":2},{"id":3,"more":1}]})");
}

}  // namespace
}  // namespace sluice::vm
