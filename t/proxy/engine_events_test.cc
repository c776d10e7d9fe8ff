// What one event does and how it is answered, by its owner and on a snapshot.
#include "t/proxy/engine_fixture.h"
#include "t/proxy/engine_modules.h"

using namespace sluice;
using namespace sluice::proxy;

namespace {
void check_failed_as(const Answer& answer, int status, Errc error) {
  CHECK(answer.status == status);
  CHECK(name(answer.error) == name(error));
  CHECK(answer.type == ContentType::text);
  CHECK(answer.body.size() > 0);
}
}  // namespace

TEST_CASE("an input changes a state that a view then shows, here and at the owner") {
  Bench b({{"quota", kQuota}});
  REQUIRE(b.load() == "");
  CHECK(b.view("hits") == "0");
  CHECK(b.evaluated);
  CHECK(b.view("level") == "50");
  CHECK(b.view("motto") == "be kind");
  CHECK(b.view("lamp") == "false");
  const Answer& plus = b.post("plus");
  CHECK(plus.status == 200);
  CHECK(plus.error == Errc::none);
  CHECK(plus.type == ContentType::octets);
  CHECK(plus.body.size() == 0);
  CHECK(b.view("hits") == "1");
  CHECK(b.view("hits", false) == "1");
  CHECK(!b.evaluated);
  CHECK(b.last->answer.type == ContentType::text);
}

TEST_CASE("every kind of reply has its body and type") {
  Bench b({{"quota", kQuota}});
  REQUIRE(b.load() == "");
  const Answer& number = b.post("turn", {{"amount", "500"}});
  CHECK(number.type == ContentType::text);
  CHECK(b.text() == "100");
  b.post("turn", {{"amount", "-0.5"}});
  CHECK(b.text() == "99.5");

  const Answer& borrowed = b.post("say", {}, " hello \xc3\xa9 ");
  CHECK(borrowed.type == ContentType::text);
  CHECK(b.text() == " hello \xc3\xa9 ");
  CHECK(b.last->answer.body.buffer.view().data() == b.last->body.view().data());
  CHECK(b.view("motto") == "hello \xc3\xa9");

  const Answer& bytes = b.post("echo", {{"who", "ann"}}, std::string_view("\xff\x00z", 3));
  CHECK(bytes.type == ContentType::octets);
  CHECK(b.text() == std::string_view("\xff\x00z", 3));
  CHECK(bool(bytes.body.buffer));

  const Answer& slug = b.post("win", {{"who", "ann"}});
  CHECK(slug.type == ContentType::text);
  CHECK(b.text() == "ann");
  CHECK(b.view("winner") == "ann");

  b.world.wall_ms = 1'700'000'000'123;
  const Answer& record = b.post("mark");
  CHECK(record.type == ContentType::json);
  CHECK(b.text() == R"({"stamp":1700000000123,"hits":0,"winner":"ann"})");
  b.post("lose");
  b.post("mark");
  CHECK(b.text() == R"({"stamp":1700000000123,"hits":0,"winner":null})");
}

TEST_CASE("a query must name each field once and nothing else") {
  Bench b({{"quota", kQuota}});
  REQUIRE(b.load() == "");
  check_failed_as(b.post("turn"), 400, Errc::missing_field);
  CHECK(b.text() == "missing: the parameter `amount`; `turn` takes `amount`\n");
  check_failed_as(b.post("turn", {{"amount", "1"}, {"amuont", "1"}}), 400, Errc::query);
  CHECK(b.text() == "there is no parameter `amuont`; `turn` takes `amount`\n");
  check_failed_as(b.post("turn", {{"amount", "1"}, {"amount", "1"}}), 400, Errc::query);
  check_failed_as(b.post("turn", {{"amount", "lots"}}), 400, Errc::query);
  check_failed_as(b.post("turn", {{"amount", ""}}), 400, Errc::query);
  check_failed_as(b.post("win", {{"who", "a b"}}), 400, Errc::query);
  check_failed_as(b.post("plus", {{"x", "1"}}), 400, Errc::query);
  CHECK(b.text() == "there is no parameter `x`; `plus` takes no parameters\n");
  Call view = Bench::call(Verb::view, "plus");
  check_failed_as(b.ask(view), 400, Errc::missing_field);
  const std::vector<Parameter> by{{"more", "2"}};
  view.query = by;
  b.ask(view, true);
  CHECK(b.text() == "2");
  const std::vector<Parameter> wrong{{"more", "x"}};
  view.query = wrong;
  check_failed_as(b.ask(view), 400, Errc::query);
  CHECK(b.view("hits") == "0");
}

TEST_CASE("names that the module does not have are told with those it has") {
  Bench b({{"quota", kQuota}, {"notes", kNotes}});
  REQUIRE(b.load() == "");
  const StorePtr quota = b.store("quota"), notes = b.store("notes");
  Call c = Bench::call(Verb::view, "nothing");
  c.store = quota;
  check_failed_as(b.ask(c), 404, Errc::no_view);
  CHECK(b.text().find("`hits`") != std::string::npos);
  c = Bench::call(Verb::input, "nothing");
  c.store = quota;
  check_failed_as(b.ask(c), 404, Errc::no_input);
  CHECK(b.text().find("`plus`") != std::string::npos);
  c = Bench::call(Verb::input, "edit");
  c.store = notes;
  check_failed_as(b.ask(c), 400, Errc::keyed);
  c = Bench::call(Verb::show, "a");
  c.store = quota;
  check_failed_as(b.ask(c), 404, Errc::route);
  CHECK(quota->has_view("hits"));
  CHECK(!quota->has_view("nothing"));
  CHECK(quota->has_input("say"));
  CHECK(quota->input_takes_body("say"));
  CHECK(!quota->input_takes_body("plus"));
  CHECK(!quota->input_takes_body("nothing"));
  CHECK(!quota->serves_objects());
  CHECK(notes->serves_objects());
  CHECK(notes->has_remove());
  CHECK(b.set->find("nothing") == nullptr);
}

TEST_CASE("bodies are refused where none is taken, when they are not UTF-8, and beyond the field's max") {
  Bench b({{"quota", kQuota}});
  REQUIRE(b.load() == "");
  check_failed_as(b.post("plus", {}, "x"), 400, Errc::body);
  check_failed_as(b.post("turn", {{"amount", "1"}}, "x"), 400, Errc::body);
  Call view = Bench::call(Verb::view, "hits");
  view.body = Buffer::copy("x", nullptr);
  check_failed_as(b.ask(view), 400, Errc::body);
  check_failed_as(b.post("say", {}, "\xff"), 400, Errc::invalid);
  check_failed_as(b.post("say", {}, std::string(41, 'x')), 422, Errc::limit);
  check_failed_as(b.post("add", {{"amount", "11"}}), 422, Errc::clamp);
  CHECK(b.text() == "`amount` must be int in 1..10\n");
  CHECK(b.view("hits") == "0");
}

TEST_CASE("every fault has its status, the module's own words unchanged, and leaves no trace") {
  Bench b({{"quota", kQuota}});
  REQUIRE(b.load() == "");
  b.post("win", {{"who", "first"}});
  const struct { const char* how; int status; Errc error; } faults[] = {
      {"0", 422, Errc::divide},    {"1", 422, Errc::non_finite}, {"2", 422, Errc::clamp},
      {"3", 422, Errc::limit},     {"4", 404, Errc::not_found},  {"5", 422, Errc::encoding},
      {"6", 409, Errc::exists},    {"7", 403, Errc::denied},
  };
  for (const auto& f : faults) {
    check_failed_as(b.post("fails", {{"how", f.how}}), f.status, f.error);
    CHECK(b.text().back() == '\n');
  }
  check_failed_as(b.post("fails", {{"how", "9"}}), 403, Errc::denied);
  CHECK(b.text() == "because 9");
  check_failed_as(b.post("half", {{"part", "0"}}), 422, Errc::divide);
  check_failed_as(b.post("grow"), 422, Errc::non_finite);
  check_failed_as(b.post("say", {}, "   "), 422, Errc::limit);
  CHECK(b.text() == "say something");
  for (const bool here : {true, false}) {
    CHECK(b.view("hits", here) == "0");
    CHECK(b.view("motto", here) == "be kind");
    CHECK(b.view("winner", here) == "first");
    CHECK(b.view("lamp", here) == "false");
    CHECK(b.view("level", here) == "50");
    CHECK(b.view("next", here) == "2");
  }
  CHECK(b.control->counters().faults == 12);
}

TEST_CASE("a view without a value answers no_value") {
  Bench b({{"quota", kQuota}});
  REQUIRE(b.load() == "");
  for (const bool here : {true, false}) {
    check_failed_as(b.ask(Bench::call(Verb::view, "winner"), here), 404, Errc::no_value);
    check_failed_as(b.ask(Bench::call(Verb::view, "broken"), here), 404, Errc::no_value);
  }
}

TEST_CASE("both edges of a key are delivered, and the first fault or else the first reply answers") {
  Bench b({{"quota", kQuota}});
  REQUIRE(b.load() == "");
  b.post("shine");
  CHECK(b.last->answer.status == 200);
  CHECK(b.view("lamp") == "false");
  check_failed_as(b.post("odd"), 422, Errc::limit);
  CHECK(b.text() == "no down");
  CHECK(b.view("hits") == "10");
}

TEST_CASE("seq counts the events that changed something, and now never runs backwards") {
  Bench b({{"quota", kQuota}});
  REQUIRE(b.load() == "");
  CHECK(b.view("next") == "1");   // creating the store with its first values is no event
  b.post("number");
  const std::string first = b.text();
  b.post("fails", {{"how", "1"}});
  b.post("lose");                 // there was no winner: nothing changed
  b.post("number");
  CHECK(std::stoi(b.text()) == std::stoi(first) + 1);
  b.world.wall_ms = 2'000'000'000'000;
  b.post("mark");
  b.world.wall_ms = 1'000'000'000'000;
  CHECK(b.view("time") == "2000000000000");
  b.set.reset();
  b.engine.reset();
  b.control->stop();
  b.control = make_engine(b.world.options());
  b.engine = b.control->worker(0, b.results);
  REQUIRE(b.load() == "");
  CHECK(b.view("time") == "2000000000000");
  CHECK(b.view("time", false) == "2000000000000");
}
