// Bursts: what commits together, what leaves when, and what is left when the commit fails.
#include <cerrno>
#include <thread>

#include "t/proxy/engine_fixture.h"
#include "t/proxy/engine_modules.h"

using namespace sluice;
using namespace sluice::proxy;

TEST_CASE("events that arrive together are one burst and one commit, applied in order") {
  Bench b({{"quota", kQuota}});
  REQUIRE(b.load() == "");
  const EngineCounters before = b.control->counters();
  for (std::uint32_t i = 0; i < 1000; ++i) {
    Call c = Bench::call(Verb::input, "add");
    const std::vector<Parameter> query{{"amount", "1"}};
    c.query = query;
    REQUIRE(b.send(c, i));
  }
  b.flush();
  const std::vector<EventPtr> answers = b.wait(1000);
  for (std::uint32_t i = 0; i < 1000; ++i) {
    CHECK(answers[i]->ticket.tag == i);
    CHECK(answers[i]->answer.body.text == std::to_string(i + 1));
  }
  const EngineCounters after = b.control->counters();
  CHECK(after.bursts - before.bursts == 1);
  CHECK(after.burst_events - before.burst_events == 1000);
  CHECK(after.commits - before.commits == 1);
  CHECK(after.owners == 1);
}

TEST_CASE("a burst that changes nothing makes no commit") {
  Bench b({{"quota", kQuota}});
  REQUIRE(b.load() == "");
  b.post("plus");
  const EngineCounters before = b.control->counters();
  const int commits = b.world.commits;
  b.view("hits", false);
  b.post("fails", {{"how", "1"}});
  b.post("lose");
  b.post("turn", {{"amount", "0"}});
  CHECK(b.control->counters().commits == before.commits);
  CHECK(b.world.commits == commits);
  CHECK(b.control->counters().bursts == before.bursts + 4);
}

TEST_CASE("a burst ends when what it removed is stepped over again and again, and the queue goes on where it was") {
  Bench b({{"queue", "module queue 1\n"
                     "table job max 5000 { id: int auto, key id }\n"
                     "input key push\ninput key pop\n"
                     "on push down { insert job { } }\n"
                     "on pop down { for j in job limit 1 { let id = j.id  delete j  reply \"{id}\" } }\n"}});
  REQUIRE(b.load() == "");
  constexpr std::uint32_t kJobs = 1500;
  const auto all = [&](std::string_view name) {
    for (std::uint32_t i = 0; i < kJobs; ++i) REQUIRE(b.send(Bench::call(Verb::input, name), i));
    b.flush();
    return b.wait(kJobs);
  };
  all("push");
  const EngineCounters before = b.control->counters();
  const std::vector<EventPtr> answers = all("pop");
  for (std::uint32_t i = 0; i < kJobs; ++i) CHECK(answers[i]->answer.body.text == std::to_string(i + 1));
  // Pop n steps over n rows that are gone: 200,000 steps are 632 pops.
  CHECK(b.control->counters().bursts - before.bursts == 3);
}

TEST_CASE("a burst ends before a written document's key repeats, so that each edit sees the one before") {
  Bench b({{"notes", kNotes}});
  REQUIRE(b.load() == "");
  const EngineCounters before = b.control->counters();
  REQUIRE(b.send(Bench::edit("a", 0, "one")));
  REQUIRE(b.send(Bench::call(Verb::show, "b")));
  REQUIRE(b.send(Bench::edit("b", 0, "b")));
  REQUIRE(b.send(Bench::edit("a", 1, "two")));
  REQUIRE(b.send(Bench::call(Verb::show, "a")));
  b.flush();
  const std::vector<EventPtr> answers = b.wait(5);
  CHECK(answers[0]->answer.revision == 1);
  CHECK(answers[1]->answer.status == 404);
  CHECK(answers[2]->answer.revision == 1);
  CHECK(answers[3]->answer.revision == 2);
  CHECK(answers[4]->answer.body.text == "two");
  const EngineCounters after = b.control->counters();
  CHECK(after.bursts - before.bursts == 3);
  CHECK(after.commits - before.commits == 2);
}

TEST_CASE("nothing leaves before the commit, reads of the burst included") {
  Bench b({{"quota", kQuota}});
  REQUIRE(b.load() == "");
  b.world.hold = true;
  const int commits = b.world.commits;
  REQUIRE(b.send(Bench::call(Verb::input, "plus")));
  REQUIRE(b.send(Bench::call(Verb::view, "hits")));
  b.flush();
  while (b.world.commits == commits) std::this_thread::yield();
  std::size_t early = 0;
  b.results.drain([&](EventPtr&&) { ++early; });
  CHECK(early == 0);
  b.send(Bench::call(Verb::view, "hits"), 0, true);
  CHECK(b.text() == "0");
  b.flush();
  b.world.let_go();
  const std::vector<EventPtr> answers = b.wait(2);
  CHECK(answers[1]->answer.body.text == "1");
}

TEST_CASE("when saving fails the whole burst fails, and the store goes on as it was") {
  Bench b({{"quota", kQuota}});
  REQUIRE(b.load() == "");
  b.post("plus");
  const struct { int error; int status; Errc code; } failures[] = {{EIO, 500, Errc::storage}, {ENOSPC, 507, Errc::full}};
  for (const auto& f : failures) {
    b.world.before_commit = f.error;
    for (int i = 0; i < 3; ++i) REQUIRE(b.send(Bench::call(Verb::input, "plus")));
    Call say = Bench::call(Verb::input, "say");
    say.body = Buffer::copy("lost", nullptr);
    REQUIRE(b.send(say));
    REQUIRE(b.send(Bench::call(Verb::view, "hits")));
    b.flush();
    for (const EventPtr& e : b.wait(5)) {
      CHECK(e->answer.status == f.status);
      CHECK(name(e->answer.error) == name(f.code));
      CHECK(!e->answer.body.buffer);
    }
    b.world.before_commit = 0;
    for (const bool here : {true, false}) {
      CHECK(b.view("hits", here) == "1");
      CHECK(b.view("motto", here) == "be kind");
      CHECK(b.view("next", here) == "2");
    }
  }
  b.post("plus");
  CHECK(b.last->answer.status == 200);
  CHECK(b.view("hits") == "2");
}

TEST_CASE("a commit of unknown outcome fails what waits behind it and stops the store until it is opened again") {
  Bench b({{"notes", kNotes}});
  REQUIRE(b.load() == "");
  b.put("a", 0, "one");
  b.put("big", 0, std::string(100'000, 'b'));
  b.get("big");
  EventPtr lent = std::move(b.last);
  b.world.commit = store::Faults::Commit::lost;
  REQUIRE(b.send(Bench::edit("a", 1, "two")));
  REQUIRE(b.send(Bench::edit("a", 2, "three")));
  REQUIRE(b.send(Bench::call(Verb::show, "a")));
  b.flush();
  for (const EventPtr& e : b.wait(3)) {
    CHECK(e->answer.status == 500);
    CHECK(name(e->answer.error) == name(Errc::durability_unknown));
  }
  b.world.commit = store::Faults::Commit::none;
  for (const bool here : {true, false}) {
    CHECK(b.get("a", here).status == 503);
    CHECK(name(b.last->answer.error) == name(Errc::stopped));
  }
  // The bytes that are on their way to a client stay good, and the store cannot be opened as long.
  CHECK(b.load().find("still closing") != std::string::npos);
  std::string all;
  for (const std::string_view piece : lent->answer.body.pieces) all.append(piece);
  CHECK(all == std::string(100'000, 'b'));
  lent.reset();
  REQUIRE(b.load() == "");
  CHECK(b.get("a").revision == 1);
  CHECK(b.text() == "one");
  CHECK(b.put("a", 1, "two").revision == 2);
}

TEST_CASE("a commit that was reported as failed but is on disk is found when the store is opened again") {
  Bench b({{"quota", kQuota}});
  REQUIRE(b.load() == "");
  b.world.commit = store::Faults::Commit::stored;
  CHECK(b.post("plus").status == 500);
  b.world.commit = store::Faults::Commit::none;
  CHECK(b.post("plus").status == 503);
  REQUIRE(b.load() == "");
  CHECK(b.view("hits") == "1");
}

TEST_CASE("an owner without room refuses, and the events come back at once") {
  Bench b({{"quota", kQuota}});
  REQUIRE(b.load() == "");
  b.world.hold = true;
  const int commits = b.world.commits;
  REQUIRE(b.send(Bench::call(Verb::input, "plus")));
  b.flush();
  while (b.world.commits == commits) std::this_thread::yield();
  for (std::size_t i = 0; i < kInboxEvents + 10; ++i) REQUIRE(b.send(Bench::call(Verb::input, "plus")));
  b.flush();
  CHECK(b.refused.size() == 10);
  for (const EventPtr& e : b.refused) {
    CHECK(e->answer.status == 503);
    CHECK(name(e->answer.error) == name(Errc::store_busy));
  }
  b.world.let_go();
  b.wait(kInboxEvents + 1);
  CHECK(b.view("hits") == std::to_string(kInboxEvents + 1));
}

TEST_CASE("what was answered is seen by every read that starts after it, on any worker") {
  Bench b({{"quota", kQuota}, {"notes", kNotes}});
  REQUIRE(b.load() == "");
  std::atomic<int> answered{0};
  std::atomic<bool> done{false};
  std::atomic<int> reads{0};
  std::thread reader([&] {
    Inbox<EventPtr> inbox("worker.1.results", 16);
    const std::unique_ptr<Engine> engine = b.control->worker(1, inbox);
    const StorePtr quota = b.store("quota"), notes = b.store("notes");
    Event e;
    while (!done) {
      const int least = answered.load();
      Call c = Bench::call(Verb::view, "hits");
      c.store = quota;
      e.reset();
      SLUICE_CHECK(engine->prepare(e, c) && engine->evaluate(e));
      SLUICE_CHECK(std::stoi(e.answer.body.text) >= least);
      Call d = Bench::call(Verb::show, "n");
      d.store = notes;
      e.reset();
      SLUICE_CHECK(engine->prepare(e, d) && engine->evaluate(e));
      SLUICE_CHECK(least == 0 || e.answer.revision >= static_cast<std::uint64_t>(least));
      engine->flush([](EventPtr) {});
      reads.fetch_add(1);
    }
  });
  for (int i = 1; i <= 100; ++i) {
    Call d = Bench::edit("n", static_cast<std::uint64_t>(i - 1), "text " + std::to_string(i));
    d.store = b.store("notes");
    CHECK(b.ask(d).revision == static_cast<std::uint64_t>(i));
    Call c = Bench::call(Verb::input, "plus");
    c.store = b.store("quota");
    CHECK(b.ask(c).status == 200);
    answered = i;
  }
  while (reads == 0) std::this_thread::yield();
  done = true;
  reader.join();
}
