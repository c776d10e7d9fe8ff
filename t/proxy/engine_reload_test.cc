// Opening, swapping, removing and ending stores.
#include <algorithm>
#include <cerrno>

#include "t/proxy/engine_fixture.h"
#include "t/proxy/engine_modules.h"

using namespace sluice;
using namespace sluice::proxy;

namespace {

constexpr const char* kCounter = R"(module counter 1
state n: int
key_goes_here
view n: num = n
)";

std::string counter(std::string_view rest) { return "module counter 1\nstate n: int\nview n: num = n\n" + std::string(rest); }

bool exists(const std::string& path) { return std::filesystem::exists(path); }

}  // namespace

TEST_CASE("what cannot be served is refused with a sentence that names the store") {
  Bench b({{"counter", kCounter}});
  CHECK(b.load().find("counter.aup:3:1: error:") != std::string::npos);
  CHECK(!exists(b.specs[0].path));
  b.specs[0].module_path = b.folder / "nothing.aup";
  CHECK(b.load() == "store `counter`: " + b.specs[0].module_path + ": No such file or directory");
  b.specs[0].module_path = b.folder.write("damaged.pmod", "PMOD and nothing else");
  CHECK(b.load().find("store `counter`: ") == 0);
  b.specs[0].module_path = b.folder.write("counter.aup", counter("input key up\non up down { n += 1 }\n"));
  b.specs[0].name = "objects";
  CHECK(b.load().find("store `objects`: ") == 0);
  b.specs[0].name = "a b";
  CHECK(b.load().find("store `a b`: ") == 0);
  b.specs[0].name = "counter";
  b.specs[0].shards = 2;
  CHECK(b.load().find("cannot run on 2 shards") != std::string::npos);
  b.specs[0].shards = 65;
  CHECK(b.load() == "store `counter`: shards are 1 to 64");
  b.specs[0].shards = 1;
  b.specs.push_back(b.specs[0]);
  CHECK(b.load() == "store `counter`: there are two stores of this name");
  b.specs[1].name = "other";
  CHECK(b.load().find("its folder is also that of the store `counter`") != std::string::npos);
  CHECK(!exists(b.specs[0].path));
  b.specs.pop_back();
  REQUIRE(b.load() == "");
  CHECK(b.view("n") == "0");
}

TEST_CASE("check loads modules and creates nothing") {
  Bench b({{"quota", kQuota}, {"notes", kNotes}});
  auto set = b.control->check(b.specs);
  REQUIRE(set);
  CHECK((*set)->stores.size() == 2);
  CHECK((*set)->find("notes")->serves_objects());
  CHECK(!exists(b.specs[0].path));
  // Such a store takes no events.
  Event e;
  Call c = Bench::call(Verb::view, "hits");
  c.store = (*set)->find("quota");
  CHECK(!b.engine->prepare(e, c));
  CHECK(e.answer.status == 503);
  b.specs[1].path = b.specs[0].path;
  CHECK(!b.control->check(b.specs));
}

TEST_CASE("on start runs once in a store's life, and a store whose start fails is not created") {
  const std::string started = counter("on start { n = 41  n += 1 }\n");
  Bench b({{"counter", started.c_str()}});
  REQUIRE(b.load() == "");
  CHECK(b.view("n") == "42");
  b.set.reset();
  b.engine.reset();
  b.control->stop();
  b.control = make_engine(b.world.options());
  b.engine = b.control->worker(0, b.results);
  REQUIRE(b.load() == "");
  CHECK(b.view("n") == "42");

  const std::string failing = counter("on start { n = 1  fail denied \"not today\" }\n");
  Bench f({{"counter", failing.c_str()}});
  CHECK(f.load() == "store `counter`: `on start` failed: denied at line 4, not today");
  CHECK(!exists(f.specs[0].path));
}

TEST_CASE("a store of another module, or of another shape, is refused") {
  const std::string one = counter("");
  Bench b({{"counter", one.c_str()}});
  REQUIRE(b.load() == "");
  b.folder.write("counter.aup", "module other 1\nstate n: int\nview n: num = n\n");
  CHECK(b.load().find("store `counter`: ") == 0);
  b.folder.write("counter.aup", "module counter 2\nstate m: int\nview n: num = m\n");
  CHECK(b.load().find("store `counter`: ") == 0);
  CHECK(b.view("n") == "0");
  b.set.reset();
  b.engine.reset();
  b.control->stop();
  b.control = make_engine(b.world.options());
  b.engine = b.control->worker(0, b.results);
  CHECK(b.load().find("store `counter`: ") == 0);
  b.folder.write("counter.aup", one);
  REQUIRE(b.load() == "");
  CHECK(b.view("n") == "0");
}

TEST_CASE("a reload that changes nothing leaves the store running") {
  Bench b({{"quota", kQuota}});
  REQUIRE(b.load() == "");
  b.post("plus");
  const StorePtr before = b.store();
  REQUIRE(b.load() == "");
  CHECK(b.store() == before);
  CHECK(b.view("hits") == "1");
  CHECK(b.control->counters().owners == 1);
  b.specs[0].quota_bytes = 1 << 30;
  CHECK(b.load().find("by a restart") != std::string::npos);
  b.specs[0].quota_bytes = 0;
  b.specs[0].name = "renamed";
  CHECK(b.load().find("renamed by a restart") != std::string::npos);
}

TEST_CASE("a changed module is swapped between two bursts, and events under way are resolved again by name") {
  const std::string old_text = counter(
      "message add { a: int, b: int }\nmessage going { }\ninput key up\nview sum(a: num, b: num): num = n + a + b\n"
      "on add { n += a - b  reply n }\non going { reply \"old\" }\non up down { n += 1 }\n");
  const std::string new_text = counter(
      "input key up\nmessage other { }\nmessage add { b: int, a: int in 0..5 }\nview sum(b: num, a: num): num = a - b\n"
      "on add { n += 100 * (a - b)  reply n }\non other { reply \"new\" }\non up down { n += 2 }\n");
  Bench b({{"counter", old_text.c_str()}});
  REQUIRE(b.load() == "");
  const StorePtr store = b.store();
  // Resolved against the old module, enqueued only after the swap.
  const std::vector<Parameter> fits{{"a", "5"}, {"b", "2"}}, outside{{"a", "6"}, {"b", "2"}};
  std::vector<EventPtr> events;
  const auto prepare = [&](Verb verb, std::string_view name, const std::vector<Parameter>& query) {
    Call c = Bench::call(verb, name);
    c.store = store;
    c.query = query;
    events.push_back(std::make_unique<Event>());
    REQUIRE(b.engine->prepare(*events.back(), c));
  };
  prepare(Verb::input, "add", fits);
  prepare(Verb::input, "add", outside);
  prepare(Verb::input, "going", {});
  prepare(Verb::view, "sum", fits);
  prepare(Verb::input, "up", {});
  b.folder.write("counter.aup", new_text);
  REQUIRE(b.load() == "");
  CHECK(b.store() == store);
  CHECK(store->has_input("other"));
  CHECK(!store->has_input("going"));
  for (EventPtr& e : events) b.engine->enqueue(std::move(e));
  b.flush();
  const std::vector<EventPtr> answers = b.wait(5);
  CHECK(answers[0]->answer.body.text == "300");
  CHECK(answers[1]->answer.status == 422);
  CHECK(answers[2]->answer.status == 404);
  CHECK(name(answers[2]->answer.error) == name(Errc::no_input));
  CHECK(answers[3]->answer.body.text == "3");
  CHECK(answers[4]->answer.status == 200);
  CHECK(b.view("n") == "302");
  b.post("other");
  CHECK(b.text() == "new");
  // Many swaps, events all the while: nothing is lost.
  for (int i = 0; i < 20; ++i) {
    b.folder.write("counter.aup", i % 2 == 0 ? old_text : new_text);
    REQUIRE(b.send(Bench::call(Verb::input, "up")));
    b.flush();
    REQUIRE(b.load() == "");
    CHECK(b.wait(1).front()->answer.status == 200);
  }
  const int n = std::stoi(b.view("n"));
  CHECK(n >= 322);
  CHECK(n <= 342);
}

TEST_CASE("a plan that is dropped leaves nothing behind") {
  Bench b({{"quota", kQuota}});
  REQUIRE(b.load() == "");
  StoreSpec more;
  more.name = "notes";
  more.module_path = b.folder.write("notes.aup", kNotes);
  more.path = b.folder / "notes.db";
  b.specs.push_back(more);
  b.folder.write("quota.aup", std::string(kQuota) + "view more: num = hits + 1000\n");
  std::shared_ptr<const StoreSet> never;
  {
    auto plan = b.control->prepare(b.specs);
    REQUIRE(plan);
    never = (*plan)->stores();
    CHECK(never->stores.size() == 2);
    CHECK(exists(more.path));
  }
  CHECK(!exists(more.path));
  CHECK(!b.store()->has_view("more"));
  Event e;
  Call c = Bench::call(Verb::show, "a");
  c.store = never->find("notes");
  CHECK(!b.engine->prepare(e, c));
  CHECK(e.answer.status == 503);
  e.reset();
  c.store.reset();
  b.flush();
  REQUIRE(b.load() == "");
  CHECK(b.store("quota")->has_view("more"));
  CHECK(exists(more.path));
}

TEST_CASE("a removed store answers what was accepted, closes with its last reference, and can be opened again") {
  Bench b({{"quota", kQuota}, {"notes", kNotes}});
  REQUIRE(b.load() == "");
  StorePtr notes = b.store("notes");
  Call c = Bench::edit("a", 0, "one");
  c.store = notes;
  const StoreSpec kept = b.specs[1];
  auto event = std::make_unique<Event>();
  REQUIRE(b.engine->prepare(*event, c));
  c.store.reset();
  b.specs.pop_back();
  REQUIRE(b.load() == "");
  CHECK(b.store("notes") == nullptr);
  CHECK(b.control->counters().owners == 2);
  b.engine->enqueue(std::move(event));
  b.flush();
  std::vector<EventPtr> answers = b.wait(1);
  CHECK(answers[0]->answer.revision == 1);

  // Wanted again while it is still referred to: it goes on as it is.
  b.specs.push_back(kept);
  REQUIRE(b.load() == "");
  CHECK(b.store("notes") == notes);
  b.specs.pop_back();
  REQUIRE(b.load() == "");
  answers.clear();
  notes.reset();
  b.flush();
  b.specs.push_back(kept);
  REQUIRE(b.load() == "");
  c = Bench::call(Verb::show, "a");
  c.store = b.store("notes");
  CHECK(b.ask(c, true).revision == 1);
  CHECK(b.text() == "one");
}

TEST_CASE("documents are spread over shards and found again with another number of them") {
  Bench b({{"notes", kNotes}}, 4);
  REQUIRE(b.load() == "");
  CHECK(b.store()->shards() == 4);
  CHECK(b.control->counters().owners == 4);
  constexpr std::uint32_t kKeys = 300;
  for (std::uint32_t i = 0; i < kKeys; ++i)
    REQUIRE(b.send(Bench::edit("key-" + std::to_string(i), 0, "text " + std::to_string(i)), i));
  b.flush();
  std::vector<bool> seen(kKeys);
  for (const EventPtr& e : b.wait(kKeys)) {
    CHECK(e->answer.revision == 1);
    seen[e->ticket.tag] = true;
  }
  CHECK(std::count(seen.begin(), seen.end(), true) == kKeys);
  b.post("ping", {}, "x");
  CHECK(b.text() == "pong x");
  b.specs[0].shards = 2;
  CHECK(b.load().find("the number of shards changes by a restart") != std::string::npos);
  b.set.reset();
  b.engine.reset();
  b.control->stop();
  b.control = make_engine(b.world.options());
  b.engine = b.control->worker(0, b.results);
  REQUIRE(b.load() == "");
  for (std::uint32_t i = 0; i < kKeys; ++i) {
    b.get("key-" + std::to_string(i), i % 2 == 0);
    CHECK(b.text() == "text " + std::to_string(i));
  }
}

TEST_CASE("a failed commit of several shards fails each of them and the store is opened again") {
  Bench b({{"notes", kNotes}}, 4);
  REQUIRE(b.load() == "");
  const auto edit_all = [&](std::uint64_t revision) {
    for (int i = 0; i < 40; ++i) REQUIRE(b.send(Bench::edit("key-" + std::to_string(i), revision, "x")));
    b.flush();
    return b.wait(40);
  };
  b.world.before_commit = EIO;
  for (const EventPtr& e : edit_all(0)) CHECK(name(e->answer.error) == name(Errc::storage));
  b.world.before_commit = 0;
  for (const EventPtr& e : edit_all(0)) CHECK(e->answer.revision == 1);
  b.world.commit = store::Faults::Commit::lost;
  for (const EventPtr& e : edit_all(1)) {
    const bool told = e->answer.error == Errc::durability_unknown || e->answer.error == Errc::stopped;
    CHECK(told);
  }
  b.world.commit = store::Faults::Commit::none;
  CHECK(b.get("key-1", false).status == 503);
  REQUIRE(b.load() == "");
  for (const EventPtr& e : edit_all(1)) CHECK(e->answer.revision == 2);
}

TEST_CASE("stop applies, commits and answers everything that was enqueued") {
  for (const std::uint32_t shards : {1u, 3u}) {
    Bench b({{"notes", kNotes}}, shards);
    REQUIRE(b.load() == "");
    constexpr std::size_t kEvents = 2000;
    for (std::size_t i = 0; i < kEvents; ++i) REQUIRE(b.send(Bench::edit("k" + std::to_string(i), 0, "x")));
    b.flush();
    b.set.reset();
    b.engine.reset();
    b.control->stop();
    std::size_t answered = 0;
    b.results.drain([&](EventPtr&& e) { answered += e->answer.revision == 1; });
    CHECK(answered == kEvents);
    CHECK(b.control->counters().owners == 0);
    CHECK(b.control->counters().burst_events == kEvents);
    b.control = make_engine(b.world.options());
    b.engine = b.control->worker(0, b.results);
    REQUIRE(b.load() == "");
    b.get("k1999");
    CHECK(b.text() == "x");
  }
}
