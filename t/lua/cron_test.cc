// Crons: when they run, what they send and hear, and what a reload keeps of them.
#include "t/lua/harness.h"

using namespace sluice::lua::harness;

namespace {

// Two crons at different intervals that say what they do in the log.
struct Clockwork {
  explicit Clockwork(std::string_view text) : file(std::string(kStores) + std::string(text)), reader(make_config_reader(&log)) { read(); }
  void read(std::string_view text = {}) {
    if (!text.empty()) file.add("t.lua", std::string(kStores) + std::string(text));
    auto got = reader->read(file.path());
    if (!got) FAIL(got.error());
    before = std::move(config);
    config = *got;
    Crons* const old = before ? before->crons() : nullptr;
    REQUIRE(config->crons() != nullptr);
    config->crons()->start(now, old, [this](CronEvent e) {
      if (full) return 0u;
      events.push_back(std::move(e));
      return static_cast<std::uint32_t>(events.size());
    });
    if (old) old->stop();
  }
  Crons::Ran at(std::uint64_t ms) {
    now = ms;
    return config->crons()->run(now);
  }
  int said(std::string_view line) const {
    int n = 0;
    for (const std::string& l : log.lines) n += l == line;
    return n;
  }

  Lines log;
  TempFile file;
  std::unique_ptr<ConfigReader> reader;
  std::shared_ptr<const Config> config, before;
  std::vector<CronEvent> events;
  std::uint64_t now = 1000;
  bool full = false;
};

}  // namespace

TEST_CASE("a cron runs when it is due, keeps step, and is told what it missed") {
  Clockwork c("sluice.register_cron('a', { every = 1, func = function(missed) sluice.log('a ' .. missed) end }) "
              "sluice.register_cron('b', { every = 2.5, func = function() sluice.log('b') end })");
  CHECK(c.config->crons()->next_ms() == 2000);
  CHECK(c.at(1999).runs == 0);
  CHECK(c.at(2000).runs == 1);
  CHECK(c.at(2001).runs == 0);
  CHECK(c.at(3100).runs == 1);
  CHECK(c.config->crons()->next_ms() == 3500);
  CHECK(c.at(6500).runs == 2);
  CHECK(c.said("a 0") == 2);
  CHECK(c.said("a 2") == 1);
  CHECK(c.said("b") == 1);
  CHECK(c.config->crons()->next_ms() == 7000);
}

TEST_CASE("a reload keeps the time of a cron with the same name and interval, and ends what it does not have") {
  Clockwork c("sluice.register_cron('a', { every = 10, func = function() sluice.log('old a') end }) "
              "sluice.register_cron('gone', { every = 10, func = function() sluice.log('gone') end })");
  c.now = 9000;
  c.read("sluice.register_cron('a', { every = 10, func = function() sluice.log('new a') end }) sluice.register_cron('new', { every = 10, func = function() end })");
  CHECK(c.config->crons()->next_ms() == 11'000);
  CHECK(c.before->crons()->next_ms() == Crons::kNever);
  CHECK(c.at(11'000).runs == 1);
  CHECK(c.said("new a") == 1);
  CHECK(c.said("old a") == 0);
  c.read("sluice.register_cron('a', { every = 5, func = function() end })");
  CHECK(c.config->crons()->next_ms() == 16'000);
}

TEST_CASE("rerun = false is once after each reload") {
  const char* text = "sluice.register_cron('a', { every = 1, rerun = false, func = function() sluice.log('once') end })";
  Clockwork c(text);
  CHECK(c.at(2000).runs == 1);
  CHECK(c.config->crons()->next_ms() == Crons::kNever);
  CHECK(c.at(9000).runs == 0);
  c.read(text);
  CHECK(c.at(10'000).runs == 1);
  CHECK(c.said("once") == 2);
}

TEST_CASE("a cron sends events with fields and bodies and hears the answers") {
  Clockwork c("sluice.register_cron('a', { every = 1, func = function() "
              "sluice.post('a', 'turn', { n = 2, by = 'x' }, 'body', function(status, body, error) sluice.log('turn ' .. status .. body .. error) end) "
              "sluice.view('b', 'left', { n = true }, function(status, body) sluice.log('view ' .. body) error('in it') end) "
              "sluice.get('a', 'key') end })");
  c.at(2000);
  REQUIRE(c.events.size() == 3);
  CHECK(c.events[0].store == "a");
  CHECK(c.events[0].method == Method::post);
  CHECK(c.events[0].path == "/inputs/turn");
  REQUIRE(c.events[0].fields.size() == 2);
  CHECK(c.events[0].fields[0] == std::pair<std::string, std::string>("by", "x"));
  CHECK(c.events[0].fields[1] == std::pair<std::string, std::string>("n", "2"));
  CHECK(c.events[0].body == "body");
  CHECK(c.events[1].path == "/views/left");
  CHECK(c.events[1].fields[0].second == "true");
  CHECK(c.events[2].path == "/objects/key");
  Crons& crons = *c.config->crons();
  CHECK(crons.answered({1, 200, sluice::Errc::none, "!"}));
  CHECK(c.said("turn 200!none") == 1);
  CHECK_FALSE(crons.answered({1, 200, sluice::Errc::none, "!"}));
  CHECK(crons.answered({2, 200, sluice::Errc::none, "7"}));
  CHECK(c.said("view 7") == 1);
  CHECK(c.log.has("cron 'a': t.lua:1: in it"));
  CHECK(crons.answered({3, 503, sluice::Errc::store_busy, ""}));
  CHECK(c.log.has("cron 'a': its event was answered 503 store_busy"));
}

TEST_CASE("a cron's event to a pool goes to the store that a client's with the same key meets") {
  const std::string pools = "pools { p = { stores = { 'a', 'b', 'c' }, seed = 5 } } ";
  Clockwork c(pools + "sluice.register_cron('a', { every = 1, func = function() for i = 1, 20 do sluice.post('p', 'turn', { user = i }) sluice.get('p', 'k' .. i) end "
                      "sluice.post('pp', 'turn') end })");
  c.at(2000);
  REQUIRE(c.events.size() == 40);
  World w(pools + "routes { default = 'p' }");
  std::map<std::string, int> met;
  for (const CronEvent& e : c.events) {
    ++met[e.store];
    const std::string fields = e.fields.empty() ? "" : "?" + e.fields[0].first + "=" + e.fields[0].second;
    auto x = w.begin(e.method, e.path + fields, e.method == Method::post ? "x" : "");
    REQUIRE(w.services.sent.size() == 1);
    CHECK(w.services.sent[0].event->store->name() == e.store);
    w.services.deliver_all();
  }
  CHECK(met.size() == 3);
  CHECK(c.log.has("there is no store or pool `pp`; did you mean `p`?"));
}

TEST_CASE("when too many events are under way a cron is told, and nothing is kept") {
  Clockwork c("sluice.register_cron('a', { every = 1, func = function() sluice.log(tostring(sluice.post('a', 'turn', nil, nil, function() end))) end })");
  c.full = true;
  c.at(2000);
  CHECK(c.said("false") == 1);
  c.full = false;
  c.at(3000);
  CHECK(c.said("true") == 1);
}

TEST_CASE("mistakes of crons are logged and counted, and the next one runs") {
  Clockwork c("settings { lua_time_limit = 0.1 } sluice.register_cron('a', { every = 1, func = function() error('on purpose') end }) "
              "sluice.register_cron('b', { every = 1, func = function() while true do end end }) sluice.register_cron('c', { every = 1, func = function() sluice.post('none', 'x') end }) "
              "sluice.register_cron('d', { every = 1, func = function() sluice.log('d ran') end })");
  const auto ran = c.at(2000);
  CHECK(ran.runs == 4);
  CHECK(ran.failures == 3);
  CHECK(c.log.has("cron 'a': t.lua:1: on purpose"));
  CHECK(c.log.has("stopped: it ran too long"));
  CHECK(c.log.has("cron 'c': t.lua:1: sluice.post: there is no store or pool `none`"));
  CHECK(c.said("d ran") == 1);
}

TEST_CASE("a cron may ask for a reload, write shared tables and count") {
  Clockwork c("shared { t = '8KiB' } stats { n = 'counter' } local lim = sluice.ratelim_tbf { limit = 1, rate = 0.001 } sluice.register_cron('a', { every = 1, func = function() "
              "sluice.shared.t:incr('n', 1, 0) sluice.stat('n', 5) sluice.log(tostring(lim()) .. sluice.shared.t:get('n') .. sluice.server_stats('user').n) sluice.schedule_config_reload() end })");
  CHECK(c.at(2000).reload_wanted);
  CHECK_FALSE(c.at(2001).reload_wanted);
  CHECK(c.said("true15") == 1);
  c.at(3000);
  CHECK(c.said("false210") == 1);
}

TEST_CASE("crons that cannot be are refused with a line") {
  struct Case { std::string text, says; };
  const Case cases[] = {
      {"\nsluice.register_cron('a', { every = 0, func = print })", "t.lua:2: sluice.register_cron: `every` is seconds, from 0.05 to a year"},
      {"\nsluice.register_cron('a', { evry = 1, func = print })", "t.lua:2: sluice.register_cron: a cron has no `evry`; did you mean `every`?"},
      {"\nsluice.register_cron('a', { every = 1 })", "t.lua:2: sluice.register_cron: a cron needs `every` and `func`"},
      {"\nsluice.register_cron('a', { every = 1, func = 1 })", "t.lua:2: sluice.register_cron: `func` is a function"},
      {"\nsluice.register_cron('a b', { every = 1, func = print })", "t.lua:2: sluice.register_cron: `a b` is not a name"},
      {"\nfor i = 1, 2 do sluice.register_cron('a', { every = 1, func = print }) end", "t.lua:2: sluice.register_cron: `a` is registered twice"},
      {"\nsluice.post('a', 'b')", "t.lua:2: sluice.post: crons send events, not a config that is read"},
      {"\nsluice.schedule_config_reload()", "t.lua:2: sluice.schedule_config_reload: crons ask for it"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.text);
    const std::string why = error_of(c.text);
    CAPTURE(why);
    CHECK(why.find(c.says) == 0);
  }
}
