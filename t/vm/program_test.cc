// Programs from their text to their answers.
#include "t/vm/module_player.h"

namespace sluice::vm {
namespace {

constexpr std::string_view kQuota = R"aup(// Counters with limits, a key, a text input.
module quota 1

state hits: int in 0..1_000_000
state lamp: bool
state level: num clamp 0..100 = 50    // saturates instead of failing
state motto: text max 40 = "be kind"
state winner: slug?                   // no value until someone wins

input key plus
input key shine
input text say max 40
message take { who: slug }
message turn { amount: num }

on plus down { hits += 1 }
on shine down { lamp = true }
on shine up { lamp = false }

on say (line) {
  check size(trim(line)) > 0 else limit "say something"
  motto = trim(line)
}

on turn { level += amount  reply level }

on take {
  hits += 1
  if hits == 3 { winner = who }
}

view hits: num = hits
view lamp: bool = lamp
view level: num = level
view motto: text = "{upper(motto)} ({chars(motto)})"
view winner: text = winner
)aup";

TEST_CASE(
    "counters, a clamped level, a key with two edges, a text and a state without a value answer as "
    "designed") {
  ModulePlayer m(kQuota);
  CHECK(m.press("plus") == "ok");
  CHECK(m.view("hits") == "1");
  CHECK(m.press("shine") == "ok");
  CHECK(m.view("lamp") == "false");
  CHECK(m.post("say", {}, " hello \xc3\xa9 ") == "ok");
  CHECK(m.view("motto") == "HELLO \xc3\xa9 (7)");
  CHECK(m.post("say", {}, "   ") == "limit say something");
  CHECK(m.view("motto") == "HELLO \xc3\xa9 (7)");
  CHECK(m.post("turn", {{"amount", "500"}}) == "ok 100");
  CHECK(m.post("turn", {{"amount", "-0.5"}}) == "ok 99.5");
  CHECK(m.view("level") == "99.5");
  CHECK(m.view("winner") == "no_value");
  CHECK(m.post("take", {{"who", "ann"}}) == "ok");
  CHECK(m.post("take", {{"who", "ann"}}) == "ok");
  CHECK(m.view("winner") == "ann");
  CHECK(m.view("hits") == "3");
  CHECK(m.post("take") == "missing_field");
  CHECK(m.post("take", {{"who", "a b"}}) == "query");
}

constexpr std::string_view kNotes = R"aup(module notes 1

const LONGEST = 64KiB

documents text max LONGEST

message show keyed { }
message edit keyed { body: text max LONGEST }

fn title(t: text): text? = json_text(t, "/title")
fn version(t: text): num = json_num(t, "/version") ?? 0
fn locked(t: text): bool = (json_num(t, "/locked") ?? 0) > 0

on show { reply doc }

on edit {
  if starts(doc.key, "log-") {
    check size(body) > 0 and ends(body, "\n") else limit "end every line"
    if has doc { append doc body } else { doc = body }
    reply body
  }
  if body == "" { delete doc  reply }
  check json_valid(body) else encoding "a note is JSON"
  check chars(title(body) ?? "") > 0 else not_found "a note needs a title"
  check chars(title(body)) <= 80 else limit "a title has at most 80 characters"
  if has doc {
    check not locked(doc) else denied "\"{title(doc) ?? doc.key}\" is locked"
    check version(body) > version(doc) else exists "version {version(doc)} is here"
  }
  doc = body
  reply body
}
)aup";

TEST_CASE("a document store that checks what it stores answers as designed") {
  ModulePlayer m(kNotes);
  CHECK(m.module().serves_objects());
  CHECK(m.module().why_not_sharded().empty());
  CHECK(m.module().documents.max == 65536);
  CHECK(m.post("show") == "not_found");
  const std::string first = R"({"title":"First","version":1})", second = R"({"title":"First","version":2})";
  CHECK(m.post("edit", {}, first) == "ok " + first);
  CHECK(m.post("edit", {}, second) == "ok " + second);
  CHECK(m.post("show") == "ok " + second);
  CHECK(m.post("edit", {}, second) == "exists version 2 is here");
  CHECK(m.post("edit", {}, R"({"version":3})") == "not_found a note needs a title");
  CHECK(m.post("edit", {}, R"({"title":)") == "encoding a note is JSON");
  const std::string locked = R"({"title":"F","version":3,"locked":1})";
  CHECK(m.post("edit", {}, locked) == "ok " + locked);
  CHECK(m.post("edit", {}, R"({"title":"G","version":4})") == "denied \"F\" is locked");
  CHECK(m.host().document() == locked);
  CHECK(m.post("edit", {}, "") == "ok");
  CHECK_FALSE(m.host().document().has_value());
  CHECK(m.post("edit", {}, "") == "not_found");

  ModulePlayer log(kNotes);
  log.host().key = "log-x";
  CHECK(log.post("edit", {}, "one\n") == "ok one\n");
  CHECK(log.post("edit", {}, "two\n") == "ok two\n");
  CHECK(log.post("edit", {}, "three") == "limit end every line");
  CHECK(log.post("show") == "ok one\ntwo\n");
}

TEST_CASE("fields and documents are replied without a copy") {
  ModulePlayer m(kNotes);
  const std::string note = R"({"title":"a"})";
  m.post("edit", {}, R"({"title":"a","version":1})");
  CHECK(m.last().reply.kind == ReplyKind::field);
  m.post("show");
  CHECK(m.last().reply.kind == ReplyKind::document);
}

TEST_CASE("asking whether there is a document does not read it") {
  ModulePlayer m(R"aup(module m 1
documents text
message show keyed { }
message edit keyed { body: text }
on show { reply doc }
on edit { if has doc { append doc body } else { doc = body } }
)aup");
  m.post("edit", {}, "a");
  m.post("edit", {}, "b");
  CHECK(m.host().document() == "ab");
  CHECK(m.host().documents_read == 0);
}

TEST_CASE("numbers, comparisons and texts of expressions") {
  ModulePlayer m(R"aup(module m 1
const BIG = 1_000_000 * 2
const NAME = "x{BIG}y"
view folded: num = BIG + 10min / 1s
view text: text = NAME
view joined(a: num, b: bool, t: text): text = "{a}/{b}/{t}/{BIG}!"
view order(a: num, b: num): text = "{a < b} {a <= b} {a > b} {a >= b} {a == b} {a != b}"
view words(a: text, b: text): text = "{a < b} {a <= b} {a > b} {a >= b} {a == b} {a != b}"
view truths(a: bool, b: bool): text = "{a and b} {a or b} {not a} {a == b} {a != b}"
view sum(a: num, b: num): num = -(a - b) * 2 / 4 % 3
view pick(a: num): text = if a < 0 then "less" else if a == 0 then "none" else "more"
view least(a: num, b: num): num = clamp(min(a, b), 0, max(a, 10))
view long(a: num): text = "{a}{a}{a}{a}{a}{a}{a}{a}{a}{a}{a}{a}{a}{a}{a}{a}{a}{a}{a}{a}{a}{a}{a}{a}{a}{a}{a}{a}{a}{a}{a}{a}{a}{a}{a}{a}{a}{a}{a}{a}"
view when: num = now + seq
)aup");
  CHECK(m.view("folded") == "2000600");
  CHECK(m.view("text") == "x2000000y");
  CHECK(m.view("joined", {{"a", "1.50"}, {"b", "true"}, {"t", "q"}}) == "1.5/true/q/2000000!");
  CHECK(m.view("order", {{"a", "1"}, {"b", "2"}}) == "true true false false false true");
  CHECK(m.view("order", {{"a", "2"}, {"b", "2"}}) == "false true false true true false");
  CHECK(m.view("words", {{"a", "b"}, {"b", "a"}}) == "false false true true false true");
  CHECK(m.view("truths", {{"a", "true"}, {"b", "false"}}) == "false true false false true");
  CHECK(m.view("truths", {{"a", "false"}, {"b", "false"}}) == "false false true true false");
  CHECK(m.view("sum", {{"a", "1"}, {"b", "9"}}) == "1");
  CHECK(m.view("pick", {{"a", "-1"}}) == "less");
  CHECK(m.view("pick", {{"a", "0"}}) == "none");
  CHECK(m.view("pick", {{"a", "7"}}) == "more");
  CHECK(m.view("least", {{"a", "-5"}, {"b", "3"}}) == "0");
  CHECK(m.view("long", {{"a", "7"}}) == std::string(40, '7'));
  m.now = 1000;
  CHECK(m.view("when") == "1001");
}

TEST_CASE("what has no value goes to the nearest that takes it") {
  ModulePlayer m(R"aup(module m 1
state a: num?
state t: text?
fn half(x: num): num? = if x > 1 then x / 2 else none
fn twice(x: num): num? { let h = half(x)  return h * 4 }
fn first(n: num): num? {
  for i in 1..n limit 10 {
    let h = half(i) ?? 0
    if h > 1 { return half(i) }
    if i == 9 { let never = a  return never }
  }
  return none
}
message set { x: num }
message clear { }
message show { }
message need { }
message choose { x: num }
message run { }
fn effect(): num? { a = 8  return none }
on set { a = x  t = "t{x}" }
on clear { a = none  t = none }
on show { reply { a, t, b: a + 1, c: a ?? -1, d: has a, e: none, f: half(a ?? 0) ?? 9 } }
on need { reply a + 1 }
on choose { a = if x > 0 then x else none }
on run { effect() reply a }
view a: num = a
view sum: num = 1 + (a ?? 2) * 3
view text: text = "<{t}>"
view nested: num = a ?? half(1) ?? 7
view twice(x: num): num = twice(x)
view first(n: num): num = first(n)
view has_both: bool = has a and has t
view has_not: bool = not has a or a > 5
)aup");
  CHECK(m.post("show") == R"(ok {"a":null,"t":null,"b":null,"c":-1,"d":false,"e":null,"f":9})");
  CHECK(m.post("need") == "not_found");
  CHECK(m.view("a") == "no_value");
  CHECK(m.view("sum") == "7");
  CHECK(m.view("text") == "no_value");
  CHECK(m.view("nested") == "7");
  CHECK(m.view("has_both") == "false");
  CHECK(m.view("has_not") == "true");
  CHECK(m.post("set", {{"x", "4"}}) == "ok");
  CHECK(m.post("show") == R"(ok {"a":4,"t":"t4","b":5,"c":4,"d":true,"e":null,"f":2})");
  CHECK(m.post("need") == "ok 5");
  CHECK(m.view("text") == "<t4>");
  CHECK(m.view("has_both") == "true");
  CHECK(m.view("has_not") == "false");
  CHECK(m.view("twice", {{"x", "3"}}) == "6");
  CHECK(m.view("twice", {{"x", "1"}}) == "no_value");
  CHECK(m.view("first", {{"n", "5"}}) == "1.5");
  CHECK(m.view("first", {{"n", "2"}}) == "no_value");
  CHECK(m.view("first", {{"n", "11"}}) == "no_value");
  CHECK(m.post("choose", {{"x", "-1"}}) == "ok");
  CHECK(m.view("a") == "no_value");
  CHECK(m.post("choose", {{"x", "6"}}) == "ok");
  CHECK(m.view("a") == "6");
  CHECK(m.post("clear") == "ok");
  CHECK(m.view("a") == "no_value");
  CHECK(m.post("run") == "ok 8");
}

TEST_CASE("locals change, loops count and are bounded, and everything written is undone by a fault") {
  ModulePlayer m(R"aup(module m 1
state total: num
fn add(n: num) { total += n }
message count { a: num, b: num }
message mix { x: num }
message fail_late { }
on count {
  var sum = 0
  for i in a..b limit 5 {
    if i % 2 == 0 { sum += i } else { add(i) }
  }
  reply { sum, total }
}
on mix {
  var y = x
  y = if y > 3 then y - 1 else y + 1
  let z = y
  y *= 2
  var ok = y > 100 or y == z * 2
  ok = z > 1000 or ok
  y -= 1
  y /= 2
  reply "{y} {z} {ok}"
}
on fail_late { total = 99  check total < 50 else denied "no {total}" }
view total: num = total
)aup");
  CHECK(m.post("count", {{"a", "1"}, {"b", "5"}}) == R"(ok {"sum":6,"total":9})");
  CHECK(m.post("count", {{"a", "1"}, {"b", "6"}}) == "limit");
  CHECK(m.post("count", {{"a", "3"}, {"b", "2"}}) == R"(ok {"sum":0,"total":9})");
  CHECK(m.post("mix", {{"x", "5"}}) == "ok 3.5 4 true");
  CHECK(m.post("mix", {{"x", "1"}}) == "ok 1.5 2 true");
  CHECK(m.post("fail_late") == "denied no 99");
  CHECK(m.view("total") == "9");
}

TEST_CASE("documents of bytes are set, grown, spliced and deleted") {
  ModulePlayer m(R"aup(module m 1
documents bytes max 20
message show keyed { }
message edit keyed { body: bytes }
message cut keyed { at: u32, n: u32, body: bytes }
message remove keyed { }
message size keyed { }
on show { reply doc }
on edit { if has doc { append doc body } else { doc = body } }
on cut { splice doc at at remove n insert body  reply { size: size(doc), key: doc.key, rev: doc.revision } }
on remove { delete doc }
on size { reply if has doc then size(doc) else -1 }
)aup");
  CHECK(m.post("size") == "ok -1");
  CHECK(m.post("cut", {{"at", "0"}, {"n", "0"}}, "x") == "not_found");
  const std::string body("\xff\0" "ab", 4);
  CHECK(m.post("edit", {}, body) == "ok");
  CHECK(m.post("show") == "ok " + body);
  CHECK(m.post("edit", {}, "cdef") == "ok");
  m.host().revision = 3;
  CHECK(m.post("cut", {{"at", "2"}, {"n", "4"}}, "-") == R"(ok {"size":5,"key":"a-key","rev":3})");
  CHECK(m.host().document() == body.substr(0, 2) + "-ef");
  CHECK(m.post("edit", {}, "0123456789abcdef") == "limit");
  CHECK(m.post("size") == "ok 5");
  CHECK(m.post("remove") == "ok");
  CHECK(m.post("remove") == "not_found");
  CHECK(m.post("show") == "not_found");
}

TEST_CASE("every fault a module can name comes out under its name") {
  ModulePlayer m(R"aup(module m 1
message a { n: num }
on a {
  if n == 1 { fail divide }
  if n == 2 { fail non_finite }
  if n == 3 { fail clamp }
  if n == 4 { fail limit }
  if n == 5 { fail not_found }
  if n == 6 { fail encoding }
  if n == 7 { fail exists }
  fail denied "why {n}"
}
)aup");
  const char* names[] = {"divide", "non_finite", "clamp", "limit", "not_found", "encoding", "exists"};
  for (int n = 1; n <= 7; ++n) CHECK(m.post("a", {{"n", std::to_string(n)}}) == names[n - 1]);
  CHECK(m.post("a", {{"n", "8"}}) == "denied why 8");
}

TEST_CASE("chance comes from the event's seed and start runs once") {
  ModulePlayer m(R"aup(module m 1
state seen: num
on start { seen = 7 }
message roll { }
on roll { seen = random(6)  reply token(8) }
view seen: num = seen
)aup");
  CHECK(m.view("seen") == "7");
  const std::string first = m.post("roll");
  CHECK(first.size() == 11);
  CHECK(m.post("roll") == first);
  m.host().seed_bytes = std::string(32, '\x09');
  CHECK(m.post("roll") != first);
}

}  // namespace
}  // namespace sluice::vm
