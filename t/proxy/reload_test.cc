#include "proxy/reload.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "proxy/module_config.h"
#include "t/proxy/fakes.h"

using namespace sluice;
using namespace sluice::proxy;
using fakes::FakeStore;

namespace {

// What the parts below did, in order, in a word each.
using Journal = std::vector<std::string>;

class JournalTable final : public RouteTable {
 public:
  JournalTable(Journal& journal, std::string its_name) : journal_(journal), name_(std::move(its_name)) {}
  ~JournalTable() override { journal_.push_back("drop " + name_); }
  void attach(Services& services) override {}
  Route* find(Method method, std::string_view path, Match& match) override { return nullptr; }

 private:
  Journal& journal_;
  const std::string name_;
};

class JournalConfig final : public Config {
 public:
  JournalConfig(Journal& journal, Settings its_settings) : journal_(journal), settings_(std::move(its_settings)) {}
  ~JournalConfig() override { journal_.push_back("drop config"); }
  const Settings& settings() const override { return settings_; }
  const std::vector<StoreSpec>& stores() const override { return stores_; }
  bool has_routes() const override { return routes; }
  Result<std::unique_ptr<RouteTable>, std::string> make_routes(std::shared_ptr<const StoreSet> stores,
                                                               std::uint16_t worker) const override {
    if (worker == fails_at) return std::string("c.lua:7: worker " + std::to_string(worker) + " cannot");
    journal_.push_back("make " + std::to_string(worker));
    return std::unique_ptr<RouteTable>(std::make_unique<JournalTable>(journal_, std::to_string(worker)));
  }
  bool routes = true;
  int fails_at = -1;

 private:
  Journal& journal_;
  const Settings settings_;
  const std::vector<StoreSpec> stores_{StoreSpec{.name = "shop", .module_path = "shop.aup", .path = "data"}};
};

class JournalReader final : public ConfigReader {
 public:
  explicit JournalReader(Journal& journal) : journal_(journal) {}
  Result<std::shared_ptr<const Config>, std::string> read(const std::string& path) override {
    journal_.push_back("read " + path);
    if (error) return *error;
    auto config = std::make_shared<JournalConfig>(journal_, settings);
    config->routes = routes;
    config->fails_at = fails_at;
    return std::shared_ptr<const Config>(std::move(config));
  }
  std::optional<std::string> error;
  Settings settings;
  bool routes = true;
  int fails_at = -1;

 private:
  Journal& journal_;
};

class JournalEngine final : public EngineControl {
 public:
  explicit JournalEngine(Journal& journal) : journal_(journal) {
    auto set = std::make_shared<StoreSet>();
    set->stores.push_back(std::make_shared<FakeStore>("shop"));
    set_ = std::move(set);
  }
  Result<std::shared_ptr<const StoreSet>, std::string> check(std::span<const StoreSpec> specs) override {
    journal_.push_back("check " + specs[0].name);
    if (error) return *error;
    return set_;
  }
  Result<std::unique_ptr<StorePlan>, std::string> prepare(std::span<const StoreSpec> specs) override {
    journal_.push_back("plan " + specs[0].name);
    if (error) return *error;
    return std::unique_ptr<StorePlan>(std::make_unique<Plan>(*this));
  }
  std::shared_ptr<const StoreSet> apply(std::unique_ptr<StorePlan> plan) override {
    journal_.push_back("apply");
    static_cast<Plan&>(*plan).applied = true;
    return set_;
  }
  std::unique_ptr<Engine> worker(std::uint16_t index, Inbox<EventPtr>& results) override {
    return std::make_unique<fakes::FakeEngine>();
  }
  void stop() override {}
  Result<void, std::string> run_timer(std::string_view store, std::string_view timer) override {
    return "there is no store `" + std::string(store) + "`";
  }
  EngineCounters counters() const override { return {}; }
  std::optional<std::string> error;

 private:
  struct Plan final : StorePlan {
    explicit Plan(JournalEngine& its_engine) : engine(its_engine) {}
    ~Plan() override {
      if (!applied) engine.journal_.push_back("drop plan");
    }
    std::shared_ptr<const StoreSet> stores() const override { return engine.set_; }
    JournalEngine& engine;
    bool applied = false;
  };
  Journal& journal_;
  std::shared_ptr<const StoreSet> set_;
};

// Both steps of the first phase, for workers 0 .. n - 1.
Result<Prepared, std::string> prepare(Reloader& r, std::uint16_t n) {
  Result<Prepared, std::string> next = r.read_next();
  if (!next) return next;
  std::vector<std::uint16_t> workers;
  for (std::uint16_t w = 0; w < n; ++w) workers.push_back(w);
  if (auto made = r.prepare(*next, workers); !made) return made.error();
  return next;
}

struct House {
  Journal journal;
  JournalReader reader{journal};
  JournalEngine engine{journal};
  Overrides overrides;
  Reloader reloader() { return Reloader(reader, engine, "c.lua", overrides); }
};

}  // namespace

TEST_CASE("a generation is read, planned and made for every worker before anything is applied") {
  House h;
  Reloader r = h.reloader();
  auto ready = prepare(r, 2);
  REQUIRE(ready);
  CHECK(h.journal == Journal{"read c.lua", "plan shop", "make 0", "make 1"});
  CHECK(r.generation() == 0);
  {
    const std::vector<Generation> made = r.apply(*std::move(ready));
    REQUIRE(made.size() == 2);
    CHECK(made[0].number == 1);
    CHECK(made[1].number == 1);
    CHECK(made[0].settings == made[1].settings);
    CHECK(made[0].routes != nullptr);
    CHECK(h.journal.back() == "apply");
  }
  CHECK(r.generation() == 1);
}

TEST_CASE("the routes of a generation go before the config that made them") {
  House h;
  {
    Reloader r = h.reloader();
    auto ready = prepare(r, 1);
    REQUIRE(ready);
    std::vector<Generation> made = r.apply(*std::move(ready));
    REQUIRE(prepare(r, 1));      // dropped at once; the first keeps its own
    CHECK(h.journal.back() == "drop config");
    made.clear();
    CHECK(h.journal.back() == "drop 0");
  }
  CHECK(h.journal.back() == "drop config");
}

TEST_CASE("whatever fails in the first phase leaves nothing behind and applies nothing") {
  House h;
  Reloader r = h.reloader();
  h.reader.error = "c.lua:3: unknown setting `prot`";
  auto failed = prepare(r, 2);
  REQUIRE_FALSE(failed);
  CHECK(failed.error() == "c.lua:3: unknown setting `prot`");
  CHECK(h.journal == Journal{"read c.lua"});

  h.reader.error.reset();
  h.engine.error = "store `shop`: its module is of another shape";
  h.journal.clear();
  failed = prepare(r, 2);
  REQUIRE_FALSE(failed);
  CHECK(failed.error() == "store `shop`: its module is of another shape");
  CHECK(h.journal == Journal{"read c.lua", "plan shop", "drop config"});

  h.engine.error.reset();
  h.reader.fails_at = 1;
  h.journal.clear();
  failed = prepare(r, 2);
  REQUIRE_FALSE(failed);
  CHECK(failed.error() == "c.lua:7: worker 1 cannot");
  // Routes before the plan whose stores they hold.
  CHECK(h.journal == Journal{"read c.lua", "plan shop", "make 0", "drop 0", "drop plan", "drop config"});
  CHECK(r.generation() == 0);
}

TEST_CASE("flags win over the file, also after a reload") {
  House h;
  h.overrides.port = 1;
  h.overrides.budget_bytes = 77;
  h.reader.settings.port = 2;
  Reloader r = h.reloader();
  auto ready = prepare(r, 1);
  REQUIRE(ready);
  CHECK(ready->settings->port == 1);
  r.apply(*std::move(ready));
  h.reader.settings.port = 3;
  h.reader.settings.payload_budget_bytes = 78;
  ready = prepare(r, 1);
  REQUIRE(ready);
  CHECK(ready->settings->port == 1);
  CHECK(ready->settings->payload_budget_bytes == 77);
}

TEST_CASE("every setting changes with a reload, and one that the file names no more has its default again") {
  House h;
  h.reader.settings.connections = 5;
  Reloader r = h.reloader();
  auto ready = prepare(r, 1);
  REQUIRE(ready);
  r.apply(*std::move(ready));
  CHECK(r.settings().connections == 5);

  h.reader.settings = Settings{};
  h.reader.settings.host = "0.0.0.0";
  h.reader.settings.port = 9000;
  h.reader.settings.workers = 4;
  h.reader.settings.pipeline = 3;
  ready = prepare(r, 1);
  REQUIRE(ready);
  CHECK(ready->settings->host == "0.0.0.0");
  CHECK(ready->settings->port == 9000);
  CHECK(ready->settings->workers == 4);
  CHECK(ready->settings->pipeline == 3);
  CHECK(ready->settings->connections == Settings{}.connections);
}

TEST_CASE("the settings are known before anything is planned, and routes are made for the workers that they ask for") {
  House h;
  h.reader.settings.workers = 3;
  Reloader r = h.reloader();
  auto next = r.read_next();
  REQUIRE(next);
  CHECK(next->settings->workers == 3);
  CHECK(h.journal == Journal{"read c.lua"});
  const std::vector<std::uint16_t> workers{0, 1, 2, 7};     // the last one winds down
  REQUIRE(r.prepare(*next, workers));
  CHECK(h.journal == Journal{"read c.lua", "plan shop", "make 0", "make 1", "make 2", "make 7"});
  CHECK(r.apply(*std::move(next)).size() == 4);
}

TEST_CASE("a config without routes gets the module interface") {
  House h;
  h.reader.routes = false;
  Reloader r = h.reloader();
  auto ready = prepare(r, 1);
  REQUIRE(ready);
  Match match;
  Route* route = ready->routes[0]->find(Method::get, "/views/total", match);
  REQUIRE(route != nullptr);
  CHECK(route->is_module());
  CHECK(h.journal == Journal{"read c.lua", "plan shop"});
}

TEST_CASE("a check goes through both stages and opens no store") {
  House h;
  Reloader r = h.reloader();
  CHECK(r.check());
  CHECK(h.journal == Journal{"read c.lua", "check shop", "make 0", "drop 0", "drop config"});
  h.reader.fails_at = 0;
  CHECK(r.check().error() == "c.lua:7: worker 0 cannot");
  h.engine.error = "shop.aup:1:1: error: no module";
  CHECK(r.check().error() == "shop.aup:1:1: error: no module");
  h.reader.error = "c.lua: cannot read it";
  CHECK(r.check().error() == "c.lua: cannot read it");
}

TEST_CASE("a log level that there is not is refused with those that there are") {
  House h;
  h.reader.settings.log_level = "loud";
  Reloader r = h.reloader();
  const auto next = r.read_next();
  REQUIRE_FALSE(next);
  CHECK(next.error() == "c.lua: log_level is one of debug, info, warn, error, off, not `loud`");
}

TEST_CASE("a module without a config is one store that is called like its file") {
  CHECK(store_name("configs/modules/quota.aup") == "quota");
  CHECK(store_name("quota.v2.pmod") == "store");
  CHECK(store_name("quota") == "quota");
  CHECK(store_name("a/views.aup") == "store");
  CHECK(store_name("a/.aup") == "store");
  const auto reader = make_module_reader("data/q");
  const auto config = reader->read("m/quota.aup");
  REQUIRE(config);
  CHECK_FALSE((*config)->has_routes());
  REQUIRE((*config)->stores().size() == 1);
  CHECK((*config)->stores()[0].name == "quota");
  CHECK((*config)->stores()[0].module_path == "m/quota.aup");
  CHECK((*config)->stores()[0].path == "data/q");
}
