// Timers: when they run, what of it is kept, and that they stand in nobody's way.
#include <doctest/doctest.h>

#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "proxy/log.h"
#include "t/proxy/engine_fixture.h"

using namespace sluice;
using namespace sluice::proxy;

namespace {

constexpr const char* kTicks = R"(module ticks 1
state slow: num
state quick: num
state at: num
input timer slow every 10s
input timer quick every 1s
input timer idle every 1s
input key touch
on slow { slow += 1 }
on quick { quick += 1  at = now }
on touch down { }
view slow: num = slow
view quick: num = quick
view at: num = at
view next: num = seq
)";

constexpr const char* kFailing = R"(module ticks 1
state runs: num
state good: num
state broken: bool = true
input timer bad every 1s
input timer good every 1s
input key mend
on bad { runs += 1  check not broken else denied "not {runs}" }
on good { good += 1 }
on mend down { broken = false }
view runs: num = runs
view good: num = good
)";

class Lines final : public Log {
 public:
  void write(LogLevel, std::string_view line) override {
    const std::lock_guard<std::mutex> hold(mutex_);
    lines_.emplace_back(line);
  }
  bool takes(LogLevel) const override { return true; }
  void set_level(LogLevel) override {}
  std::vector<std::string> all() const {
    const std::lock_guard<std::mutex> hold(mutex_);
    return lines_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
};

void restart(Bench& b, const EngineOptions& options) {
  b.set.reset();
  b.engine.reset();
  b.control->stop();
  b.control = make_engine(options);
  b.engine = b.control->worker(0, b.results);
}

// The owner looks at the clock when it is asked for something.
std::string seen(Bench& b, std::string_view view) { return b.view(view, false); }

}  // namespace

TEST_CASE("a timer runs a period after the store was made, and then a period after its last run") {
  Bench b({{"ticks", kTicks}});
  REQUIRE(b.load().empty());
  CHECK(seen(b, "quick") == "0");
  b.world.wall_ms += 999;
  CHECK(seen(b, "quick") == "0");
  b.world.wall_ms += 1;
  CHECK(seen(b, "quick") == "1");
  CHECK(seen(b, "at") == "1700000001000");
  CHECK(seen(b, "quick") == "1");
  CHECK(seen(b, "slow") == "0");
  b.world.wall_ms += 1500;
  CHECK(seen(b, "quick") == "2");
  b.world.wall_ms += 999;      // 1000 since it should have run, 999 since it did
  CHECK(seen(b, "quick") == "2");
  b.world.wall_ms += 1;
  CHECK(seen(b, "quick") == "3");
}

TEST_CASE("ticks that were missed come once") {
  Bench b({{"ticks", kTicks}});
  REQUIRE(b.load().empty());
  b.world.wall_ms += 3'600'000;
  CHECK(seen(b, "quick") == "1");
  CHECK(seen(b, "slow") == "1");
  CHECK(seen(b, "quick") == "1");
}

TEST_CASE("the last run is kept over a restart, and a tick that was missed meanwhile comes then") {
  Bench b({{"ticks", kTicks}});
  REQUIRE(b.load().empty());
  b.world.wall_ms += 10'000;
  CHECK(seen(b, "slow") == "1");
  restart(b, b.world.options());
  b.world.wall_ms += 9'999;
  REQUIRE(b.load().empty());
  CHECK(seen(b, "slow") == "1");
  b.world.wall_ms += 1;
  CHECK(seen(b, "slow") == "2");
  restart(b, b.world.options());
  b.world.wall_ms += 50'000;
  REQUIRE(b.load().empty());
  CHECK(seen(b, "slow") == "3");
  CHECK(seen(b, "slow") == "3");
}

TEST_CASE("a timer that has never run counts over a restart from when it was first seen") {
  Bench b({{"ticks", kTicks}});
  REQUIRE(b.load().empty());
  b.world.wall_ms += 900;
  restart(b, b.world.options());
  REQUIRE(b.load().empty());
  b.world.wall_ms += 99;
  CHECK(seen(b, "quick") == "0");
  b.world.wall_ms += 1;
  CHECK(seen(b, "quick") == "1");
}

TEST_CASE("a timer that changes nothing makes no commit and no number") {
  Bench b({{"ticks", "module ticks 1\nstate n: num\ninput timer idle every 1s\non idle { if n > 5 { n = 0 } }\n"
                     "view n: num = n\nview next: num = seq\n"}});
  REQUIRE(b.load().empty());
  const int commits = b.world.commits.load();
  const std::string next = seen(b, "next");
  for (int i = 0; i < 5; ++i) {
    b.world.wall_ms += 1000;
    CHECK(seen(b, "n") == "0");
  }
  CHECK(b.world.commits.load() == commits);
  CHECK(seen(b, "next") == next);
}

TEST_CASE("a timer's event is one event: what it changed is numbered") {
  Bench b({{"ticks", kTicks}});
  REQUIRE(b.load().empty());
  CHECK(seen(b, "next") == "1");
  b.world.wall_ms += 1000;
  CHECK(seen(b, "next") == "2");
}

TEST_CASE("a timer that fails leaves no trace, is logged, and runs again a period later") {
  Bench b({{"ticks", kFailing}});
  Lines log;
  EngineOptions options = b.world.options();
  options.log = &log;
  restart(b, options);
  REQUIRE(b.load().empty());
  for (int i = 0; i < 3; ++i) {
    b.world.wall_ms += 1000;
    CHECK(seen(b, "runs") == "0");
  }
  CHECK(seen(b, "good") == "3");
  REQUIRE(log.all().size() == 1);
  CHECK(log.all()[0] == "store `ticks`: timer `bad` failed: denied at line 8, not 1");
  b.world.wall_ms += 60'000;
  CHECK(seen(b, "good") == "4");
  REQUIRE(log.all().size() == 2);
  CHECK(log.all()[1] == "store `ticks`: timer `bad` failed: denied at line 8, not 1 (4 times in a row)");
  CHECK(b.post("mend").status == 200);
  b.world.wall_ms += 1000;
  CHECK(seen(b, "runs") == "1");
  restart(b, b.world.options());   // the log goes before the engine
}

TEST_CASE("that a timer goes on failing is known also after a commit that failed, so that the log hears of it no more often") {
  Bench b({{"ticks", kFailing}});
  Lines log;
  EngineOptions options = b.world.options();
  options.log = &log;
  restart(b, options);
  REQUIRE(b.load().empty());
  b.world.wall_ms += 1000;
  CHECK(seen(b, "good") == "1");
  CHECK(log.all().size() == 1);
  b.world.before_commit.store(ENOSPC);
  b.world.wall_ms += 1000;
  CHECK(b.ask(Bench::call(Verb::view, "good"), false).status == 507);
  b.world.before_commit.store(0);
  b.world.wall_ms += 1000;
  CHECK(seen(b, "good") == "2");
  CHECK(log.all().size() == 1);
  b.world.wall_ms += 60'000;
  CHECK(seen(b, "good") == "3");
  REQUIRE(log.all().size() == 2);
  CHECK(log.all()[1] == "store `ticks`: timer `bad` failed: denied at line 8, not 1 (4 times in a row)");
  restart(b, b.world.options());   // the log goes before the engine
}

TEST_CASE("timers that are due all at once leave room for requests: those that do not fit run in the bursts behind") {
  std::string text = "module ticks 1\nstate n: num\nstate done: num\nview done: num = done\n";
  for (int i = 0; i < 12; ++i) {
    const std::string name = "t" + std::to_string(i);
    text += "input timer " + name + " every 1h\n";
    text += "on " + name + " { for i in 1..9000 limit 9000 { n += 1 }  done += 1 }\n";
  }
  Bench b({{"ticks", text.c_str()}});
  REQUIRE(b.load() == "");
  const std::uint64_t bursts = b.control->counters().bursts;
  b.world.wall_ms += 3'600'000;
  CHECK(seen(b, "done") == "3");         // each about 950,000 fuel
  while (seen(b, "done") != "12") REQUIRE(b.control->counters().bursts < bursts + 20);
  CHECK(b.control->counters().bursts >= bursts + 4);
  CHECK(seen(b, "done") == "12");
}

TEST_CASE("timers follow their module: kept ones by name, new ones from now, gone ones forgotten") {
  Bench b({{"ticks", kTicks}});
  REQUIRE(b.load().empty());
  b.world.wall_ms += 9'000;
  CHECK(seen(b, "quick") == "1");
  const std::string without = [] {
    std::string text = kTicks;
    text.replace(text.find("input timer quick every 1s"), 26, "input timer fresh every 1s");
    text.replace(text.find("on quick"), 8, "on fresh");
    return text;
  }();
  b.folder.write("ticks.aup", without);
  REQUIRE(b.load().empty());
  CHECK(seen(b, "quick") == "1");
  b.world.wall_ms += 999;
  CHECK(seen(b, "quick") == "1");
  CHECK(seen(b, "slow") == "0");
  b.world.wall_ms += 1;
  CHECK(seen(b, "quick") == "2");
  CHECK(seen(b, "slow") == "1");
  // It was forgotten, so that it counts from here when it comes back.
  b.folder.write("ticks.aup", kTicks);
  REQUIRE(b.load().empty());
  CHECK(seen(b, "quick") == "2");
  restart(b, b.world.options());
  REQUIRE(b.load().empty());
  b.world.wall_ms += 999;
  CHECK(seen(b, "quick") == "2");
  b.world.wall_ms += 1;
  CHECK(seen(b, "quick") == "3");
}

TEST_CASE("what a timer did that could not be saved is tried again after a pause") {
  Bench b({{"ticks", kTicks}});
  REQUIRE(b.load().empty());
  b.world.before_commit.store(ENOSPC);
  b.world.wall_ms += 1000;
  CHECK(b.ask(Bench::call(Verb::view, "quick"), false).status == 507);
  const int commits = b.world.commits.load();
  CHECK(seen(b, "quick") == "0");
  CHECK(b.world.commits.load() == commits);
  b.world.before_commit.store(0);
  b.world.wall_ms += 999;
  CHECK(seen(b, "quick") == "0");
  b.world.wall_ms += 1;
  CHECK(seen(b, "quick") == "1");
}

TEST_CASE("a run that could not be saved is made up for after the pause, not a period later, and nobody has to ask") {
  Bench b({{"ticks", "module ticks 1\nstate n: num\ninput timer tick every 1h\non tick { n += 1 }\nview n: num = n\n"}});
  REQUIRE(b.load().empty());
  b.world.before_commit.store(ENOSPC);
  b.world.wall_ms += 3'600'000;
  CHECK(b.ask(Bench::call(Verb::view, "n"), false).status == 507);
  const int commits = b.world.commits.load();
  b.world.before_commit.store(0);
  b.world.wall_ms += 1000;
  b.world.commits.wait(commits);
  CHECK(seen(b, "n") == "1");
}

TEST_CASE("an owner wakes up for its timers by itself, and stops with its store") {
  Bench b({{"ticks", "module ticks 1\nstate n: num\ninput timer tick every 1ms\non tick { n += 1 }\nview n: num = n\n"}});
  EngineOptions options = b.world.options();
  options.wall_ms = nullptr;
  restart(b, options);
  REQUIRE(b.load().empty());
  // Nobody asks for anything: only a wait that ends by itself makes these.
  for (int n = b.world.commits.load(); n < 5; n = b.world.commits.load()) b.world.commits.wait(n);
  b.specs.clear();
  REQUIRE(b.load().empty());
  b.last.reset();
  while (b.control->counters().owners != 0) std::this_thread::yield();
}

TEST_CASE("timers that do not run by themselves run when they are asked for, durably") {
  Bench b({{"ticks", kFailing}});
  b.world.timers = false;
  restart(b, b.world.options());
  REQUIRE(b.load().empty());
  b.world.wall_ms += 100'000;
  CHECK(seen(b, "good") == "0");
  CHECK(b.control->run_timer("ticks", "good"));
  CHECK(b.view("good") == "1");
  CHECK(b.control->run_timer("ticks", "good"));
  CHECK(b.view("good") == "2");
  CHECK(b.control->run_timer("ticks", "bad").error() == "timer `bad` of the store `ticks`: denied at line 8, not 1");
  CHECK(b.control->run_timer("ticks", "none").error() == "timer `none` of the store `ticks`: the module has no timer `none`");
  CHECK(b.control->run_timer("nobody", "good").error() == "there is no store `nobody`");
  b.world.before_commit.store(EIO);
  CHECK(b.control->run_timer("ticks", "good").error() == "timer `good` of the store `ticks`: what it did could not be saved: storage");
  b.world.before_commit.store(0);
  CHECK(b.control->run_timer("ticks", "good"));
  CHECK(b.view("good") == "3");
  b.world.commit.store(store::Faults::Commit::lost);
  CHECK_FALSE(b.control->run_timer("ticks", "good"));
  CHECK(b.control->run_timer("ticks", "good").error() == "timer `good` of the store `ticks`: the store cannot be read, or is closed");
}
