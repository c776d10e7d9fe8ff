// The engine over a store on disk and the player over one in memory answer alike, and end with the same records.
//
// The engine runs many requests in one burst, over what the burst staged and what earlier bursts committed; the player
// runs each by itself over one map. So this compares two ways to the same answers.
#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "t/proxy/engine_fixture.h"
#include "t/tools/play.h"
#include "t/tools/random_requests.h"

namespace sluice::tools {
namespace {

// One store of a real engine, with the test in a worker's place.
class Real {
 public:
  Real(const std::string& name, const std::string& source) {
    world_.timers = false;
    world_.wall_ms = 0;
    control_ = proxy::make_engine(world_.options());
    engine_ = control_->worker(0, results_);
    proxy::StoreSpec spec;
    spec.name = name;
    spec.module_path = folder_.write(name + ".aup", source);
    spec.path = folder_ / "store";
    auto plan = control_->prepare({&spec, 1});
    REQUIRE_MESSAGE(plan.has_value(), (plan ? std::string() : plan.error()));
    set_ = control_->apply(std::move(*plan));
  }
  ~Real() { stop(); }
  Real(const Real&) = delete;
  Real& operator=(const Real&) = delete;

  // All in one turn of the loop, so that they come to their owner together. `here`: reads on a snapshot where that may be.
  std::vector<Answer> ask(const std::vector<Request>& requests, bool here) {
    std::vector<proxy::EventPtr> answered(requests.size());
    std::size_t waiting = 0;
    for (std::size_t i = 0; i < requests.size(); ++i)
      over_http(requests[i], [&](const proxy::Call& call, proxy::Answer&) {
        auto event = std::make_unique<proxy::Event>();
        event->ticket.tag = static_cast<std::uint32_t>(i);
        if (!engine_->prepare(*event, call) || (here && engine_->evaluate(*event))) {
          answered[i] = std::move(event);
          return;
        }
        engine_->enqueue(std::move(event));
        ++waiting;
      });
    engine_->flush([](proxy::EventPtr) { FAIL("an owner was too busy"); });
    while (waiting > 0) {
      results_.drain([&](proxy::EventPtr&& event) {
        --waiting;
        answered[event->ticket.tag] = std::move(event);
      });
      if (waiting > 0) results_.wake().wait(-1);
    }
    std::vector<Answer> out;
    for (std::size_t i = 0; i < requests.size(); ++i)
      out.push_back(over_http(requests[i], [&](const proxy::Call&, proxy::Answer& answer) {
        std::swap(answer, answered[i]->answer);
      }));
    return out;
  }
  bool fire(const std::string& timer) { return control_->run_timer(set_->stores[0]->name(), timer).has_value(); }
  void set_clock(std::uint64_t ms) { world_.wall_ms = ms; }

  // What the closed store keeps of states and tables.
  vm::MemoryRecords::Map records() {
    stop();
    vm::MemoryRecords::Map out;
    auto opened = store::Store::open(folder_ / "store", world_.options().store);
    REQUIRE_MESSAGE(opened.has_value(), (opened ? std::string() : opened.error()));
    store::Reader reader(**opened);
    const Result<store::Snapshot> snapshot = reader.snapshot();
    REQUIRE(snapshot);
    std::string from("\x02");
    std::array<store::Entry, 64> entries;
    for (std::size_t n = entries.size(); n == entries.size();) {
      const Result<std::size_t> got = snapshot->scan({from, {}}, entries);
      REQUIRE(got);
      n = *got;
      for (std::size_t i = 0; i < n; ++i) out.emplace(entries[i].key, entries[i].value);
      if (n > 0) from = std::string(entries[n - 1].key) + '\0';
    }
    return out;
  }

 private:
  Answer over_http(const Request& request, const Answering& answering) {
    return call_over_http(request.method, request.target, request.headers, request.body, set_->stores[0], own_words_, answering);
  }
  void stop() {
    if (!control_) return;
    set_.reset();
    engine_.reset();
    control_->stop();
    control_.reset();
  }

  proxy::Folder folder_;
  proxy::World world_;
  proxy::Inbox<proxy::EventPtr> results_{"worker.0.results", 10'000};
  std::unique_ptr<proxy::EngineControl> control_;
  std::unique_ptr<proxy::Engine> engine_;
  std::shared_ptr<const proxy::StoreSet> set_;
  const bool own_words_ = true;
};

std::string read(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  REQUIRE_MESSAGE(in.good(), path.string());
  std::ostringstream all;
  all << in.rdbuf();
  return all.str();
}

std::string said(const Answer& a) {
  return std::to_string(a.status) + " " + a.name + " " + std::to_string(a.revision) + " " + a.body;
}

bool uses_chance(const vm::Module& module) {
  return std::any_of(module.facts.begin(), module.facts.end(), [](const vm::Facts& f) { return f.chance; });
}

void compare(const std::filesystem::path& path, int turns) {
  const std::string source = read(path);
  const std::unique_ptr<Player> player = player_of(source, path.string());
  if (uses_chance(player->module())) return;
  Real real(path.stem().string(), source);
  std::filesystem::path calls = path;
  calls.replace_extension(".calls");
  Result<std::vector<Step>, std::string> steps = parse_calls(read(calls));
  REQUIRE(steps);
  RandomRequests requests(player->module(), *steps, 3);
  Random random(4);
  for (int turn = 0; turn < turns; ++turn) {
    std::vector<Request> together(1 + random.below(24));
    for (Request& request : together) request = requests.next();
    // A timer runs by itself.
    while (together.size() > 1 && std::any_of(together.begin(), together.end(), [](const Request& r) { return !r.timer.empty(); }))
      together.pop_back();
    const std::uint64_t clock_ms = together.back().clock_ms;
    player->set_clock(clock_ms);
    real.set_clock(clock_ms);
    if (!together[0].timer.empty()) {
      bool found = false;
      INFO(path.filename().string() << ", turn " << turn << ": timer " << together[0].timer);
      const bool good = player->fire(together[0].timer, found).status == 200;
      CHECK(good == real.fire(together[0].timer));
      continue;
    }
    const std::vector<Answer> answers = real.ask(together, together.size() == 1);
    for (std::size_t i = 0; i < together.size(); ++i) {
      const Request& r = together[i];
      INFO(path.filename().string() << ", turn " << turn << ", " << i << ": " << r.method << ' ' << r.target << " body " << r.body);
      const Answer expected = player->ask(r.method, r.target, r.headers, r.body);
      CHECK(said(answers[i]) == said(expected));
      CHECK(answers[i].json == expected.json);
      requests.learn(r, expected);
    }
  }
  vm::MemoryRecords::Map kept;
  for (const auto& [key, value] : player->store().contents())
    if (key[0] >= 0x02 && key[0] <= 0x14) kept.emplace(key, value);
  const vm::MemoryRecords::Map stored = real.records();
  INFO(path.filename().string() << ": " << stored.size() << " records on disk, " << kept.size() << " in memory");
  CHECK((stored == kept));
  CHECK(stored.empty() == (player->module().states.empty() && player->module().tables.empty()));
}

TEST_CASE("a store on disk and one in memory answer alike, and end with the same records") {
  int modules = 0;
  for (const auto& entry : std::filesystem::directory_iterator(SLUICE_MODULES)) {
    if (entry.path().extension() != ".aup") continue;
    compare(entry.path(), 40);
    ++modules;
  }
  CHECK(modules >= 12);
}

}  // namespace
}  // namespace sluice::tools
