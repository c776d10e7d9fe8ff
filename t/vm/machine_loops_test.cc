// Loops over rows: what they go over when their bodies change it, and what they cost in memory.
#include <doctest/doctest.h>

#include "t/vm/module_player.h"

namespace sluice::vm {
namespace {
// `on go` and views over a table of rows 1, 2, 3... `fill` makes.
std::string with_rows(std::string_view rest) {
  return R"aup(module loops 1
table t { id: int auto, n: num, tag: text? max 150, key id, index by_n (n desc), unique tags tag, total all sum(n) }
state seen: text max 4096 = ""
message fill { count: u32 }
on fill { for i in 1..count limit 10000 { insert t { n: i % 7, tag: "tag of row number {i}, with a long tail so that keys are long: {pad(text(i), 60, "0")}" } } }
input key go
view seen: text = seen
view rows: num = count(t)
view all: num = total(t.all)
)aup" + std::string(rest);
}
std::string fill(ModulePlayer& m, int count) { return m.post("fill", {{"count", std::to_string(count)}}); }
}  // namespace

TEST_CASE("a loop whose body deletes and inserts goes over the rows there were, less those deleted") {
  ModulePlayer m(with_rows(R"aup(
on go down {
  for r in t limit 100 {
    seen = "{seen} {r.id}"
    if has t[r.id + 1] { delete t[r.id + 1] }
    insert t { n: 0 }
  }
})aup"));
  REQUIRE(fill(m, 5) == "ok");
  CHECK(m.press("go") == "ok");
  CHECK(m.view("seen") == " 1 3 5");
  CHECK(m.view("rows") == "5");
}

TEST_CASE("a loop may change the very order it goes over") {
  ModulePlayer m(with_rows(R"aup(
on go down { for r in t by by_n limit 100 { seen = "{seen} {r.id}"  r.n += 100 } })aup"));
  REQUIRE(fill(m, 5) == "ok");
  CHECK(m.press("go") == "ok");
  CHECK(m.view("seen") == " 5 4 3 2 1");
  CHECK(m.view("all") == "515");
}

TEST_CASE("a row that a loop has left stays what it was in another variable") {
  ModulePlayer m(with_rows(R"aup(
view best: num = first(b.id for b in t by by_n limit 100 where b.n < 3)
on go down {
  for r in t by tags limit 100 {
    let keep = r
    for s in t by tags limit 100 where s.n > keep.n {
      seen = "{seen} {keep.id}<{s.id}"
    }
  }
})aup"));
  REQUIRE(fill(m, 4) == "ok");
  CHECK(m.press("go") == "ok");
  CHECK(m.view("seen") == " 1<2 1<3 1<4 2<3 2<4 3<4");
  CHECK(m.view("best") == "2");
}

TEST_CASE("an instruction on a row that is gone is not_found, and a put brings the row back") {
  ModulePlayer m(R"aup(module gone 1
table t { k: slug, n: num, o: num?, key k }
message put { k: slug, n: num }
message lose { k: slug }
message swap { k: slug }
message peek { k: slug }
message set { k: slug }
on put { put t { k, n } }
on lose { let r = t[k]  delete t[k]  reply r.n }
on peek { let r = t[k]  delete t[k]  reply r.o ?? 1 }
on set { let r = t[k]  delete r  r.n = 1 }
on swap { let r = t[k]  let was = r.n  delete r  put t { k, n: was + 1 }  reply { was, now: r.n, o: r.o } }
view n(k: slug): num = t[k].n
)aup");
  CHECK(m.post("put", {{"k", "a"}, {"n", "1"}}) == "ok");
  CHECK(m.post("lose", {{"k", "a"}}) == "not_found");
  CHECK(m.post("peek", {{"k", "a"}}) == "not_found");
  CHECK(m.post("set", {{"k", "a"}}) == "not_found");
  CHECK(m.post("swap", {{"k", "a"}}) == "ok {\"was\":1,\"now\":2,\"o\":null}");
  CHECK(m.view("n", {{"k", "a"}}) == "2");
}

TEST_CASE("a loop of ten thousand rows over an index takes no memory for each of them") {
  ModulePlayer m(with_rows(R"aup(
view sum: num = sum(r.n for r in t by tags limit 10000)
view twice: num = sum(r.n for r in t by tags limit 10000) + sum(r.n for r in t by by_n limit 10000)
view deep: num = sum(r.id * count(s for s in t by tags limit 3) for r in t by by_n limit 5000)
on go down { for r in t by tags limit 10000 { r.n += 1 } }
)aup"));
  m.fuel = 100'000'000;
  REQUIRE(fill(m, 5000) == "ok");
  CHECK(m.view("sum") == "14997");
  CHECK(m.view("twice") == "29994");
  CHECK(m.view("deep") == "37507500");
  CHECK(m.press("go") == "ok");
  CHECK(m.view("sum") == "19997");
}

TEST_CASE("keys that a loop takes beforehand are the event's memory") {
  ModulePlayer m(R"aup(module wide 1
table t { k: text max 200, n: num = 0, key k, index flat n }
message fill { at: u32 }
on fill { for i in (at)..at + 2500 limit 10000 { insert t { k: pad(text(i), 190, "x") } } }
input key go
input key slim
on go down { for r in t by flat limit 10000 { r.n += 0 } }
on slim down { for r in t by flat limit 4000 { r.n += 0 } }
)aup");
  m.fuel = 100'000'000;
  for (const char* from : {"0", "3000"}) REQUIRE(m.post("fill", {{"at", from}}) == "ok");
  CHECK(m.press("go") == "limit");
  CHECK(m.press("slim") == "ok");
}

TEST_CASE("an event writes at most 10,000 rows and 50,000 records") {
  ModulePlayer m(R"aup(module many 1
table t { id: int auto, a: num = 0, b: num = 0, c: num = 0, d: num = 0, key id, index a a, index b b, index c c }
table u { id: int auto, key id }
table v { id: int auto, a: num = 0, b: num = 0, c: num = 0, key id, index a a, index b b, index c c, total n count }
message more { count: u32 }
on more { for i in 1..count limit 10000 { insert v { } } }
message rows { count: u32 }
message records { count: u32 }
on rows { for i in 1..count limit 10000 { insert u { } }  if count == 10000 { insert u { } } }
on records { for i in 1..count limit 10000 { insert t { } } }
view t: num = count(t)
view u: num = count(u)
)aup");
  m.fuel = 1'000'000'000;
  CHECK(m.post("rows", {{"count", "10000"}}) == "limit");
  CHECK(m.view("u") == "0");
  CHECK(m.post("rows", {{"count", "9999"}}) == "ok");
  CHECK(m.view("u") == "9999");
  // Each is a row, three entries and a count.
  CHECK(m.post("records", {{"count", "10000"}}) == "ok");
  CHECK(m.view("t") == "10000");
  const auto before = m.host().stored().contents();
  CHECK(m.post("more", {{"count", "8334"}}) == "limit");   // six each
  CHECK(m.host().stored().contents() == before);
  CHECK(m.post("more", {{"count", "8333"}}) == "ok");
}

TEST_CASE("an event writes at most 16 MiB of records, whatever its fuel") {
  ModulePlayer m(R"aup(module wide 1
table t { id: int auto, note: text max 64KiB, key id }
message copy { count: u32, note: text max 64KiB }
on copy { for i in 1..count limit 1000 { insert t { note } } }
view rows: num = count(t)
)aup");
  const std::string note(65'000, 'n');
  CHECK(m.post("copy", {{"count", "258"}}, note) == "ok");
  const auto before = m.host().stored().contents();
  CHECK(m.post("copy", {{"count", "259"}}, note) == "limit");
  CHECK(m.host().stored().contents() == before);
  CHECK(m.post("copy", {{"count", "200"}}, note) == "ok");
  CHECK(m.view("rows") == "458");
}

TEST_CASE("a row looked up inside a loop stays that row when the loop goes on, and behind its end") {
  ModulePlayer m(R"aup(module keep 1
table item max 100 { id: int, place: int, key id, index by_place place }
table log max 100 { id: int auto, of: int, key id }
input key fill
on fill down { for i in 1..3 limit 3 { insert item { id: i, place: 4 - i } } }
message read { at: int }
on read {
  var kept = item[1]
  for r in item by by_place { if r.place == at { kept = item[r.id] } }
  reply { id: kept.id, place: kept.place }
}
message write { at: int }
on write {
  var kept = item[1]
  for r in item by by_place { if r.place == at { kept = item[r.id] }  put item { id: r.id, place: r.place } }
  for r in item by by_place desc { insert log { of: r.id } }
  kept.place = 9
  reply kept
}
)aup");
  CHECK(m.press("fill") == "ok");
  CHECK(m.post("read", {{"at", "1"}}) == R"(ok {"id":3,"place":1})");
  CHECK(m.post("read", {{"at", "2"}}) == R"(ok {"id":2,"place":2})");
  CHECK(m.post("write", {{"at", "1"}}) == R"(ok {"id":3,"place":9})");
}

TEST_CASE("with and without static fuel rows answer alike, and never use more than was proven") {
  constexpr std::string_view source = R"aup(module fuel 1
table t max 1000 { id: int auto, n: num, w: text? max 50, key id, index by_n n, total s sum(n) by n }
table log keep 3 { id: int auto, n: num, key id, unique n n }
input key go
fn some(r: t): num = r.n + count(x for x in t by by_n[r.n] limit 3)
on go down {
  var sum = 0
  for r in t by by_n from 1 limit 50 where r.n < 5 { sum += some(r) + total(t.s, r.n) + (t[r.id - 1].n ?? 0) }
  insert t { n: sum % 6 }
  insert log { n: seq }
  if has t[3] { t[3].w = "x{sum}"  t[3].w = none  update t[3] { n: 2, w: "y" } }
  if count(t) > 8 { delete t[first(r.id for r in t limit 1)] }
  reply { sum, rows: count(t), logged: count(log) }
}
)aup";
  ModulePlayer full(source), metered(source);
  const std::uint64_t bound = full.module().facts[full.module().find_handler(event_of(0))->function].fuel;
  metered.fuel = bound - 1;
  std::uint64_t least = bound;
  for (int i = 0; i < 60; ++i) {
    full.seq = metered.seq = i;
    const std::string said = full.press("go");
    CHECK(said.starts_with("ok {"));
    CHECK(metered.press("go") == said);
    CHECK(metered.last().fuel_used <= bound);
    least = std::min(least, metered.last().fuel_used);
  }
  CHECK(full.host().stored().contents() == metered.host().stored().contents());
  full.seq = metered.seq = 60;
  metered.fuel = least - 1;
  const auto before = metered.host().stored().contents();
  CHECK(metered.press("go") == "limit");
  CHECK(metered.host().stored().contents() == before);
}

}  // namespace sluice::vm
