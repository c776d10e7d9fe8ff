// A module played in memory answers as the server does.
#include "t/tools/play.h"

namespace sluice::tools {
namespace {

constexpr std::string_view kCounter = R"aup(module counter 1
state n: int in 0..3
state first: slug?
input key plus
input text say max 5
message set { it: int }
message claim { who: slug }
on start { n = 1 }
on plus down { n += 1 }
on plus up { check n < 3 else denied "three is enough"  reply n }
on say (line) { reply line }
on set { n = it  check it != 2 else denied "not two"  reply { n, seq: seq, now: now } }
on claim { check not has first else exists  first = who }
view n: num = n
view first: text = first
view shout(times: u32, what: text): text = "{what} {times}"
)aup";

TEST_CASE("methods, names, queries, bodies and faults are answered as over HTTP") {
  const std::unique_ptr<Player> p = player_of(kCounter);
  CHECK(play_all(*p, R"(
GET /views/n
    200  "1"
POST /inputs/plus
    200  "2"
POST /inputs/plus
    403 denied  "three is enough"
GET /views/n
    200  "3"
POST /inputs/set?it=9
    422 clamp
POST /inputs/set?it=x
    400 query
POST /inputs/set
    400 missing_field
POST /inputs/set?it=1&too=2
    400 query
POST /inputs/set?it=1&it=1
    400 query
POST /inputs/set?it=1   body "x"
    400 body
@77 POST /inputs/set?it=0
    200  {"n":0,"seq":4,"now":77}
POST /inputs/say   body "12345"
    200  "12345"
POST /inputs/say   body "123456"
    422 limit
POST /inputs/say   body b'\xff'
    400 invalid
GET /views/first
    404 no_value
POST /inputs/claim?who=ann
    200
POST /inputs/claim?who=bob
    409 exists
GET /views/first
    200  "ann"
GET /views/shout?what=a+b%21&times=2
    200  "a b! 2"
HEAD /views/first
    200
DELETE /views/first
    405 method
OPTIONS /views/first
    204
GET /views/none
    404 no_view
POST /inputs/none
    404 no_input
GET /objects/a
    404 route
GET /
    404 route
GET /views/..
    400 request
)") == "");
  CHECK(p->seq() == 5);   // start, two keys down, set, claim
}

TEST_CASE("what is answered otherwise is shown with what was expected, and where they differ") {
  const std::unique_ptr<Player> p = player_of(kCounter);
  CHECK(play_all(*p, "GET /views/n\n  200  \"0\"\nPOST /inputs/claim\n  200\n@9 timer t\nGET /views/$X\n  200\n") ==
        "m.calls:1: GET /views/n\n"
        "  expected  200  \"0\"\n"
        "  answered  200  \"1\"\n"
        "                  ^\n"
        "m.calls:3: POST /inputs/claim\n"
        "  expected  200\n"
        "  answered  400 missing_field  (missing: the parameter `who`; `claim` takes `who`)\n"
        "m.calls:5: @9 timer t\n"
        "  expected  200\n"
        "  answered  the module has no such timer\n"
        "m.calls:6: GET /views/$X\n"
        "  expected  200\n"
        "  answered  nothing has come for $X yet\n");
}

TEST_CASE("documents have revisions and conditions") {
  const std::unique_ptr<Player> p = player_of(R"aup(module pages 1
documents json
message show keyed { }
message edit keyed { body: text max 64KiB }
message remove keyed { }
on show { reply doc }
on edit {
  check not starts(body, "-") else exists "no {doc.revision}"
  if has doc { append doc body  delete doc  doc = "[{doc.revision}]"  reply doc }
  doc = body
}
on remove { check doc != "[1]" else limit  delete doc }
)aup");
  CHECK(play_all(*p, R"(
GET /objects/a
    404 not_found
PUT /objects/a   body "1"
    428 condition
PUT /objects/a  If-None-Match: *   body "{}"
    200 ETag "1"
PUT /objects/b  If-None-Match: *   body "nonsense"
    422 encoding
GET /objects/b
    404 not_found
GET /objects/a
    200 ETag "1"  {}
GET /objects/a  If-None-Match: "1"
    304 ETag "1"
PUT /objects/a  If-Match: "1"   body "-"
    412 conflict ETag "1"  "no 1"
PUT /objects/a  If-Match: "7", "1"   body " "
    200 ETag "2"  [1]
DELETE /objects/a  If-Match: "1"
    412 conflict ETag "2"
DELETE /objects/a  If-Match: "2"
    413 limit
PUT /objects/a  If-Match: "2"   body " "
    200 ETag "3"  [2]
DELETE /objects/a  If-Match: "3"
    204
PUT /objects/a  If-None-Match: *   body "5"
    200 ETag "5"
POST /inputs/edit   body "5"
    400 keyed
)") == "");
}

TEST_CASE("chance is the same at every run, and differs from event to event") {
  constexpr std::string_view source = R"aup(module dice 1
message draw { }
on draw { reply token(8) }
)aup";
  const auto draw = [](Player& p) { return p.ask("POST", "/inputs/draw", {}, {}).body; };
  const std::unique_ptr<Player> a = player_of(source), b = player_of(source);
  const std::string first = draw(*a), second = draw(*a);
  CHECK(first.size() == 8);
  CHECK(first != second);
  CHECK(draw(*b) == first);
  CHECK(draw(*b) == second);
}

TEST_CASE("a module whose start fails is not played") {
  const Result<std::unique_ptr<Player>, std::string> player =
      Player::make(module_of("module m 1\nstate n: num\non start { n = 1  fail limit \"not now\" }\n"));
  REQUIRE_FALSE(player);
  CHECK(player.error() == "`on start` fails: limit, not now");
}

TEST_CASE("an event that fails leaves the store as it was") {
  const std::unique_ptr<Player> p = player_of(kCounter);
  p->ask("POST", "/inputs/plus", {}, {});
  const vm::MemoryRecords::Map before = p->store().contents();
  CHECK(p->ask("POST", "/inputs/set?it=4", {}, {}).status == 422);
  CHECK(p->store().contents() == before);
  // This one has written before it fails.
  CHECK(p->ask("POST", "/inputs/set?it=2", {}, {}).body == "not two");
  CHECK(p->store().contents() == before);
}

}  // namespace
}  // namespace sluice::tools
