// Tables that all workers share: values, expiry, room, and what a reload keeps.
#include "lua/shared_table.h"

#include <thread>

#include "t/lua/harness.h"

using namespace sluice::lua::harness;
using sluice::lua::SharedPut;
using sluice::lua::SharedTable;
using sluice::lua::SharedValue;

namespace {

// A config with one shared table `t`, whose route runs `body`.
std::string over_t(std::string_view body, std::string_view size = "64KiB") {
  return "shared { t = '" + std::string(size) + "' } " + route(body, "local t = sluice.shared.t");
}

SharedValue text(std::string_view s) { return {SharedValue::Type::text, 0, s}; }

}  // namespace

TEST_CASE("a shared table keeps strings, numbers and booleans by key") {
  World w(over_t("t:set('s', 'text') t:set('n', 1.5) t:set('y', true) t:set('f', false) t:set(7, 'seven') "
                 "return table.concat({ t:get('s'), t:get('n'), tostring(t:get('y')), tostring(t:get('f')), t:get('7'), tostring(t:get('none')) }, ' ')"));
  CHECK(w.get("/")->body == "text 1.5 true false seven nil");
}

TEST_CASE("add needs an absent key, replace one that is there, and delete says whether there was one") {
  World w(over_t("local out = {} local function say(...) out[#out + 1] = tostring((...)) .. ' ' .. tostring((select(2, ...))) end "
                 "say(t:add('k', 1)) say(t:add('k', 2)) say(t:replace('x', 1)) say(t:replace('k', 3)) say(t:get('k'), 0) "
                 "say(t:delete('k'), 0) say(t:delete('k'), 0) return table.concat(out, ', ')"));
  CHECK(w.get("/")->body == "true nil, false exists, false not found, true nil, 3 0, true 0, false 0");
}

TEST_CASE("incr adds to a number, begins at its initial value, and refuses texts and absent keys") {
  World w(over_t("t:set('text', 'x') local a, why = t:incr('none', 1) local b, what = t:incr('text', 1) "
                 "return table.concat({ tostring(a), why, tostring(b), what, t:incr('n', 2, 40), t:incr('n', -1.5), t:get('n') }, ' ')"));
  CHECK(w.get("/")->body == "nil not found nil not a number 42 40.5 40.5");
}

TEST_CASE("an entry is there until its ttl has passed, and not after") {
  World w(over_t("if r:query('set') then t:set('k', 'v', 2) t:incr('n', 1, 0, 2) t:set('ever', 1) return 'set' end "
                 "if r:query('stay') then return tostring(t:expire('k')) .. tostring(t:ttl('k')) end "
                 "return table.concat({ tostring(t:get('k')), tostring(t:ttl('k')), tostring(t:ttl('ever')), tostring(t:incr('n', 1)) }, ' ')"));
  w.get("/?set=1");
  w.services.pass(500'000);
  CHECK(w.get("/")->body == "v 1.5 0 2");
  w.services.pass(1'499'999);
  CHECK(w.get("/")->body == "v 1e-06 0 3");
  w.services.pass(1);
  CHECK(w.get("/")->body == "nil nil 0 nil");
  w.get("/?set=1");
  CHECK(w.get("/?stay=1")->body == "true0");
  w.services.pass(10'000'000);
  CHECK(w.get("/")->body == "v 0 0 nil");
}

TEST_CASE("when there is no room the least recently used go, and what is larger than the table is refused") {
  World w(over_t("local v = ('x'):rep(1000) for i = 1, 3 do t:set('k' .. i, v) end t:get('k1') t:set('k4', v) "
                 "local good, why = t:set('large', ('x'):rep(5000)) "
                 "return table.concat({ t:get('k1') and 'k1' or '-', t:get('k2') and 'k2' or '-', t:get('k3') and 'k3' or '-', t:get('k4') and 'k4' or '-', "
                 "tostring(good), why, t:stats().evicted, t:stats().entries, t:stats().limit }, ' ')", "4KiB"));
  CHECK(w.get("/")->body == "k1 - k3 k4 false no room 1 3 4096");
}

TEST_CASE("a value that no longer fits leaves the old one") {
  SharedTable t(4096);
  std::string room;
  CHECK(t.put("k", text("old"), SharedTable::When::always, 1, 0) == SharedPut::done);
  CHECK(t.put("k", text(std::string(5000, 'x')), SharedTable::When::always, 1, 0) == SharedPut::no_room);
  CHECK(t.get("k", 1, room)->text == "old");
  CHECK(t.put("k", text(std::string(3000, 'x')), SharedTable::When::always, 1, 0) == SharedPut::done);
  CHECK(t.put("k", text(std::string(3500, 'y')), SharedTable::When::always, 1, 0) == SharedPut::done);
  CHECK(t.get("k", 1, room)->text == std::string(3500, 'y'));
  CHECK(t.stats().entries == 1);
  CHECK(t.remove("k", 1));
  CHECK(t.stats().bytes == 0);
}

TEST_CASE("one large value does not push thousands out in one go") {
  SharedTable t(1 << 20);
  for (int i = 0; i < 9000; ++i) t.put("key" + std::to_string(i), text("v"), SharedTable::When::always, 1, 0);
  const auto before = t.stats();
  CHECK(t.put("large", text(std::string(900'000, 'x')), SharedTable::When::always, 1, 0) == SharedPut::no_room);
  CHECK(t.stats().evicted - before.evicted <= 1000);
  // Each try makes some room, so that it comes in at last.
  int tries = 1;
  while (t.put("large", text(std::string(900'000, 'x')), SharedTable::When::always, 1, 0) != SharedPut::done) ++tries;
  CHECK(tries < 10);
}

TEST_CASE("keys lists the most recently used first, and clear leaves nothing") {
  World w(over_t("for i = 1, 5 do t:set('k' .. i, i) end t:get('k2') local some = table.concat(t:keys(3), ' ') t:clear() "
                 "return some .. '|' .. #t:keys() .. '|' .. t:stats().entries .. '|' .. tostring(t:get('k1')) .. '|' .. tostring(t:add('k1', 1))"));
  CHECK(w.get("/")->body == "k2 k5 k4|0|0|nil|true");
}

TEST_CASE("wrong arguments are errors that name the method") {
  struct Case { const char *call, *says; };
  const Case cases[] = {{"t:set({}, 1)", "set: a key is a string, got a table"},
                        {"t:set('k', {})", "set: a value is a string, a number or a boolean, got a table"},
                        {"t:set('k', nil)", "set: a value is a string, a number or a boolean, got a nil"},
                        {"t:set('k', 1, 0)", "set: a ttl is a number of seconds above 0"},
                        {"t:set('k', 1, 0/0)", "set: a ttl is a number of seconds above 0"},
                        {"t:get(('k'):rep(5000))", "get: a key has at most 4096 bytes"},
                        {"t.get('k')", "a shared table expected before the method"},
                        {"t:keys(2000)", "keys: at most 1024"},
                        {"sluice.shared.u:get('k')", "there is no shared table `u`: declare it"},
                        {"sluice.shared.x = 1", "sluice.shared has the tables that shared{} declares"}};
  for (const Case& c : cases) {
    CAPTURE(c.call);
    World w(over_t(std::string("return select(2, pcall(function() ") + c.call + " end))"));
    CHECK(w.get("/")->body.find(c.says) != std::string::npos);
  }
}

TEST_CASE("a config is refused that declares a shared table wrongly or writes one while it is read") {
  struct Case { std::string text, says; };
  const Case cases[] = {{"shared {\n t = 1 }", "t.lua:2: shared table `t` needs a size from"},
                        {"shared { t = true }", "t.lua:1: shared table `t` needs a size from"},
                        {"shared { ['a b'] = '1MiB' }", "t.lua:1: `a b` is not a shared table's name"},
                        {"shared { t = '1MiB' } shared { t = '1MiB' }", "t.lua:1: shared table `t` is declared twice"},
                        {"shared { t = '1MiB' } sluice.shared.t:set('k', 1)", "t.lua:1: set: a shared table is written by routes and crons"},
                        {"shared { t = '1MiB' } routes { default = route_lua { f = function() sluice.shared.t:add('k', 1) end } }",
                         "t.lua:1: add: a shared table is written by routes and crons"}};
  for (const Case& c : cases) {
    CAPTURE(c.text);
    const std::string why = error_of(c.text);
    CAPTURE(why);
    CHECK(why.find(c.says) == 0);
  }
}

TEST_CASE("workers share a table, a reload keeps it, a new size takes effect with it, and a config without it drops it") {
  TempFile file("shared { t = '64KiB' } routes { default = function(r) return tostring(sluice.shared.t:incr('n', 1, 0)) .. ' ' .. sluice.shared.t:stats().limit end }");
  auto reader = make_config_reader(nullptr);
  TestServices services;
  const auto ask = [&](RouteTable& table) {
    TestExchange x(Method::get, "/");
    Match match;
    table.find(Method::get, "/", match)->start(x, match, services);
    return x.body;
  };
  const auto read = [&] {
    auto config = reader->read(file.path());
    REQUIRE(config);
    return *config;
  };
  const auto table_of = [&](const Config& config, std::uint16_t worker) {
    auto made = config.make_routes(stores_of(config), worker);
    REQUIRE(made);
    (*made)->attach(services);
    return std::move(*made);
  };
  auto config = read();
  auto one = table_of(*config, 0), two = table_of(*config, 1);
  CHECK(ask(*one) == "1 65536");
  CHECK(ask(*two) == "2 65536");
  file.add("t.lua", "shared { t = '8KiB' } routes { default = function(r) return tostring(sluice.shared.t:incr('n', 1, 0)) .. ' ' .. sluice.shared.t:stats().limit end }");
  auto next = read();
  auto prepared = next->make_routes(stores_of(*next), 0);
  REQUIRE(prepared);
  CHECK(ask(*one) == "3 65536");          // the new one is not live yet
  (*prepared)->attach(services);
  CHECK(ask(**prepared) == "4 8192");
  one.reset();
  two.reset();
  config.reset();
  CHECK(ask(**prepared) == "5 8192");
  prepared->reset();
  next.reset();
  auto fresh = read();
  CHECK(ask(*table_of(*fresh, 0)) == "1 8192");
}

TEST_CASE("threads that use one table at once leave it whole") {
  SharedTable t(256 << 10);
  std::vector<std::thread> threads;
  for (int n = 0; n < 4; ++n)
    threads.emplace_back([&t, n] {
      std::string room;
      for (int i = 0; i < 20'000; ++i) {
        double sum = 0;
        t.increment("count", 1, 0, 1, 0, sum);
        const std::string key = "k" + std::to_string((i * 7 + n) % 3000);
        t.put(key, text(std::string(static_cast<std::size_t>(i % 200), 'x')), SharedTable::When::always, 1, i % 3 ? 0 : 2);
        t.get(key, 2, room);
        if (i % 5 == 0) t.remove(key, 1);
        if (i % 5000 == 0) t.keys(100, 1);
      }
    });
  for (auto& thread : threads) thread.join();
  std::string room;
  CHECK(t.get("count", 1, room)->number == 80'000);
  const auto stats = t.stats();
  CHECK(stats.bytes <= stats.limit_bytes);
  CHECK(stats.entries > 100);
}
