// Documents: conditions, revisions, edits in pieces, loans.
#include "proxy/engine/answers.h"
#include "t/proxy/engine_fixture.h"
#include "t/proxy/engine_modules.h"

using namespace sluice;
using namespace sluice::proxy;

namespace {
void check_failed_as(const Answer& answer, int status, Errc error, std::uint64_t revision) {
  CHECK(answer.status == status);
  CHECK(name(answer.error) == name(error));
  CHECK(answer.revision == revision);
  CHECK(answer.body.size() > 0);
}
}  // namespace

TEST_CASE("a document is created, replaced, shown and removed under its revision") {
  Bench b({{"notes", kNotes}});
  REQUIRE(b.load() == "");
  check_failed_as(b.get("a"), 404, Errc::not_found, 0);
  check_failed_as(b.put("a", 7, "x"), 412, Errc::conflict, 0);
  CHECK(b.put("a", 0, "one").status == 200);
  CHECK(b.last->answer.revision == 1);
  CHECK(b.last->answer.type == ContentType::text);
  CHECK(b.text() == "one");
  check_failed_as(b.put("a", 0, "two"), 412, Errc::conflict, 1);
  check_failed_as(b.put("a", 2, "two"), 412, Errc::conflict, 1);
  CHECK(b.put("a", 1, "two").revision == 2);
  for (const bool here : {true, false}) {
    const Answer& shown = b.get("a", here);
    CHECK(b.evaluated == here);
    CHECK(shown.status == 200);
    CHECK(shown.revision == 2);
    CHECK(shown.type == ContentType::text);
    CHECK(b.text() == "two");
  }
  check_failed_as(b.remove("a", 1), 412, Errc::conflict, 2);
  const Answer& gone = b.remove("a", 2);
  CHECK(gone.status == 204);
  CHECK(gone.body.size() == 0);
  check_failed_as(b.get("a"), 404, Errc::not_found, 0);
  check_failed_as(b.remove("a", 3), 412, Errc::conflict, 0);
  CHECK(b.put("a", 0, "again").revision == 4);
}

TEST_CASE("a condition is required, one of several revisions is enough, and a foreign tag matches nothing") {
  Bench b({{"notes", kNotes}});
  REQUIRE(b.load() == "");
  Call c = Bench::edit("a", 0, "x");
  c.condition = Condition::none;
  check_failed_as(b.ask(c), 428, Errc::condition, 0);
  Call r = Bench::call(Verb::remove, "a");
  check_failed_as(b.ask(r), 428, Errc::condition, 0);
  r.condition = Condition::absent;
  check_failed_as(b.ask(r), 400, Errc::request, 0);
  b.put("a", 0, "x");
  c = Bench::edit("a", 9, "y");
  c.more.at[0] = 1;
  c.more.count = 1;
  CHECK(b.ask(c).revision == 2);
  c = Bench::edit("a", 0, "z");
  c.condition = Condition::match;
  c.revision = 0;
  check_failed_as(b.ask(c), 412, Errc::conflict, 2);
  c = Bench::edit("b", 0, "z");
  c.condition = Condition::match;
  check_failed_as(b.ask(c), 412, Errc::conflict, 0);
}

TEST_CASE("keys and queries of documents are checked") {
  Bench b({{"notes", kNotes}});
  REQUIRE(b.load() == "");
  for (const std::string& key : {std::string(), std::string("a.b"), std::string("\xc3\xa9"), std::string(65, 'a')})
    check_failed_as(b.get(key), 400, Errc::request, 0);
  CHECK(b.put(std::string(64, 'a'), 0, "x").status == 200);
  Call c = Bench::call(Verb::show, "a");
  const std::vector<Parameter> query{{"x", "1"}};
  c.query = query;
  check_failed_as(b.ask(c), 400, Errc::query, 0);
  c = Bench::call(Verb::show, "a");
  c.body = Buffer::copy("x", nullptr);
  check_failed_as(b.ask(c), 400, Errc::body, 0);
  check_failed_as(b.put("a", 0, "\xff"), 400, Errc::invalid, 0);
  check_failed_as(b.put("a", 0, std::string((1 << 20) + 1, 'x')), 413, Errc::limit, 0);
}

TEST_CASE("faults on documents have the statuses of /objects") {
  Bench b({{"notes", kNotes}});
  REQUIRE(b.load() == "");
  b.put("a", 0, "keep");
  check_failed_as(b.put("a", 1, "taken"), 412, Errc::conflict, 1);
  CHECK(b.text() == "taken already");
  check_failed_as(b.put("a", 1, "no"), 403, Errc::denied, 0);
  check_failed_as(b.put("a", 1, "zero"), 422, Errc::divide, 0);
  check_failed_as(b.put("log-a", 0, "x"), 413, Errc::limit, 0);
  CHECK(b.text() == "end every line");
  check_failed_as(b.remove("a", 1), 403, Errc::denied, 0);
  CHECK(b.text() == "it stays");
  CHECK(b.get("a").revision == 1);
  CHECK(b.text() == "keep");
}

TEST_CASE("a handler may delete, and a removal may answer") {
  Bench b({{"notes", kNotes}});
  REQUIRE(b.load() == "");
  b.put("a", 0, "x");
  const Answer& emptied = b.put("a", 1, "");
  CHECK(emptied.status == 200);
  CHECK(emptied.revision == 0);
  check_failed_as(b.get("a"), 404, Errc::not_found, 0);
  CHECK(b.put("a", 0, "y").revision == 3);
  b.put("told", 0, "x");
  CHECK(b.remove("told", 1).status == 200);
  CHECK(b.text() == "gone");
}

TEST_CASE("appends and splices keep what they do not touch") {
  Bench b({{"notes", kNotes}});
  REQUIRE(b.load() == "");
  std::string all(100'000, 'a');
  all += '\n';
  CHECK(b.put("log-a", 0, all).revision == 1);
  for (std::uint64_t i = 1; i < 20; ++i) {
    const std::string line = "line " + std::to_string(i) + "\n";
    all += line;
    const Answer& answer = b.put("log-a", i, line);
    CHECK(answer.revision == i + 1);
    CHECK(b.text() == all);
    CHECK(bool(answer.body.loan));
  }
  b.get("log-a");
  CHECK(b.text() == all);

  std::string cut(50'000, 'b');
  b.put("cut-a", 0, cut);
  b.put("cut-a", 1, "XYZ");
  cut.replace(1, 2, "XYZ");
  CHECK(b.text() == cut);
  b.get("cut-a", false);
  CHECK(b.text() == cut);
  b.put("cut-b", 0, "abcd");
  b.put("cut-b", 1, "");
  CHECK(b.text() == "ad");
}

TEST_CASE("small documents are copied into the answer and large ones lent, at the owner and here") {
  Bench b({{"notes", kNotes}});
  REQUIRE(b.load() == "");
  const std::string small(kCopyMax, 's'), large(300'000, 'l');
  b.put("small", 0, small);
  b.put("large", 0, large);
  for (const bool here : {true, false}) {
    CHECK(!b.get("small", here).body.loan);
    CHECK(b.text() == small);
    const Answer& lent = b.get("large", here);
    CHECK(bool(lent.body.loan));
    CHECK(lent.body.text.empty());
    CHECK(b.text() == large);
  }
}

TEST_CASE("a lent document stays as it was while others replace and remove it") {
  Bench b({{"notes", kNotes}});
  REQUIRE(b.load() == "");
  const std::string first(200'000, '1');
  b.put("a", 0, first);
  b.get("a");
  const EventPtr held = std::move(b.last);
  for (std::uint64_t i = 1; i < 30; ++i) b.put("a", i, std::string(200'000, static_cast<char>('a' + i % 26)));
  b.remove("a", 30);
  std::string all;
  for (const std::string_view piece : held->answer.body.pieces) all.append(piece);
  CHECK(all == first);
}

TEST_CASE("json documents are JSON at the end of every edit, and answer as it") {
  Bench b({{"docs", R"(module docs 1
documents json max 1KiB
message show keyed { }
message edit keyed { body: text }
message remove keyed { }
on show { reply doc }
on edit {
  if starts(doc.key, "add-") and has doc { append doc body } else { doc = body }
  reply doc
}
on remove { delete doc }
)"}});
  REQUIRE(b.load() == "");
  CHECK(b.put("a", 0, R"({"n":1})").type == ContentType::json);
  CHECK(b.get("a").type == ContentType::json);
  CHECK(b.get("a", false).type == ContentType::json);
  CHECK(b.text() == R"({"n":1})");
  for (const char* bad : {"{", "", "{} {}", R"({"n":01})"}) {
    CAPTURE(bad);
    const Answer& refused = b.put("a", 1, bad);
    CHECK(refused.status == 422);
    CHECK(refused.error == Errc::encoding);
  }
  CHECK(b.get("a").revision == 1);
  b.put("add-1", 0, "1");
  CHECK(b.put("add-1", 1, "2").revision == 2);
  CHECK(b.text() == "12");
  CHECK(b.put("add-1", 2, "x").error == Errc::encoding);
  b.get("add-1");
  CHECK(b.text() == "12");
  const Answer& large = b.put("add-1", 2, std::string(1023, '3'));
  CHECK(large.status == 413);
  CHECK(large.error == Errc::limit);
}

TEST_CASE("documents of bytes take any and answer as octets") {
  Bench b({{"docs", R"(module docs 1
documents bytes max 1KiB
message show keyed { }
message edit keyed { body: bytes }
on show { reply doc }
on edit { doc = body  reply doc }
)"}});
  REQUIRE(b.load() == "");
  const std::string bytes("\xff\x00\xfe", 3);
  CHECK(b.put("a", 0, bytes).type == ContentType::octets);
  CHECK(b.text() == bytes);
  CHECK(b.get("a").type == ContentType::octets);
  CHECK(b.text() == bytes);
  CHECK(b.put("a", 1, "").revision == 2);
  CHECK(b.get("a").revision == 2);
  CHECK(b.text().empty());
  CHECK(b.put("a", 2, std::string(1025, 'x')).status == 413);
}

TEST_CASE("a show that is dear goes to the owner, and one beyond its fuel is refused") {
  Bench b({{"docs", R"(module docs 1
documents text max 1KiB
message show keyed { }
message edit keyed { body: text }
on show {
  var n = 0
  for i in 1..num(doc) limit 10_000 { for j in 1..1_000 limit 1_000 { n += 1 } }
  reply n
}
on edit { doc = body }
)"}});
  REQUIRE(b.load() == "");
  b.put("few", 0, "3");
  b.put("many", 0, "10000");
  CHECK(b.get("few").status == 200);
  CHECK(!b.evaluated);
  CHECK(b.text() == "3000");
  const Answer& beyond = b.get("many");
  CHECK(beyond.status == 413);
  CHECK(beyond.error == Errc::limit);
  // It held nobody up for long, and nothing is left of it.
  CHECK(b.get("few").status == 200);
  CHECK(b.control->counters().faults == 1);
}
