// What a config file says, and what is said of one that is wrong.
#include "t/lua/harness.h"

using namespace sluice::lua::harness;

namespace {
const std::string kA = "stores { a = { module = 'm', path = 'p' } }\n";
}

TEST_CASE("settings fill every field in its unit, and what is not named keeps its default") {
  World w("settings { listen = '[::1]:99', workers = 3, connections = 7, active_req_limit = 5, payload_budget = '1MiB', head_limit = '4KiB', "
          "header_count = 9, target_limit = 512, body_limit = '1GiB', requests_per_connection = 8, pipeline = 2, head_timeout = 1.5, "
          "body_timeout = 2, body_rate = 3, drain_timeout = 4, drain_rate = 5, idle_timeout = 6, request_timeout = 0.25, lua_memory = '64MiB', "
          "lua_time_limit = 1, lua_jit = false, log_level = 'warn' } " + route("return 'x'"));
  const Settings& s = w.config->settings();
  CHECK(s.host == "::1");
  CHECK(s.port == 99);
  CHECK(s.workers == 3);
  CHECK(s.payload_budget_bytes == 1u << 20);
  CHECK(s.body_bytes == 1u << 30);
  CHECK(s.head_timeout_ms == 1500);
  CHECK(s.request_timeout_ms == 250);
  CHECK(s.lua_time_ms == 1000);
  CHECK(s.log_level == "warn");
  World v(route("return 'x'"));
  CHECK(v.config->settings().pipeline == Settings().pipeline);
}

TEST_CASE("paths count from the file's folder, and a config without routes says so") {
  const TempFile file("stores { a = { module = 'm.aup', path = '/abs', shards = 2, quota = '1GiB' } }");
  sluice::lua::harness::Lines log;
  auto reader = sluice::lua::make_config_reader(&log);
  auto again = reader->read(file.path());
  REQUIRE(again);
  CHECK_FALSE((*again)->has_routes());
  CHECK((*again)->stores()[0].module_path == file.path().substr(0, file.path().size() - 5) + "m.aup");
  CHECK((*again)->stores()[0].path == "/abs");
  CHECK((*again)->stores()[0].shards == 2);
  CHECK((*again)->stores()[0].quota_bytes == 1u << 30);
}

TEST_CASE("every mistake in a config is named with its file and line") {
  struct Case { std::string text, says; };
  const Case cases[] = {
      {"settings {\n  worker = 2,\n}", "t.lua:2: there is no setting `worker`; did you mean `workers`? (in: worker = 2,)"},
      {"settings { workers = 'x' }", "t.lua:1: `workers` is a number, got a string"},
      {"settings { port = 70000 }", "t.lua:1: `port` is 70000, but goes from 0 to 65535"},
      {"settings { body_limit = '3 MB' }", "t.lua:1: `body_limit` is a size such as 4096 or \"64MiB\", got \"3 MB\""},
      {"settings { listen = 'x' }", "t.lua:1: `listen` is \"HOST:PORT\""},
      {"settings { lua_jit = 1 }", "t.lua:1: `lua_jit` is true or false"},
      {"settings { log_level = 'loud' }", "t.lua:1: `log_level` is one of"},
      {"settings 'x'", "t.lua:1: settings takes one table"},
      {"x = = 1", "t.lua:1: unexpected symbol near '='"},
      {"\nerror('mine')", "t.lua:2: mine (in: error('mine'))"},
      {"stores {\n a = { module = 'm' } }", "t.lua:2: store `a` has no `path`"},
      {"stores {\n a = { module = 'm', path = 'p',\n shard = 2 } }", "t.lua:3: a store has no `shard`; did you mean `shards`?"},
      {"stores { views = { module = 'm', path = 'p' } }", "t.lua:1: no store is called `views`"},
      {"stores { a = { module = 'm', path = 'p', shards = 65 } }", "t.lua:1: `shards` of a store is a whole number from 1 to 64"},
      {kA + "stores { a = { module = 'm', path = 'q' } }", "t.lua:2: store `a` is declared twice"},
      {kA + "pools { q = { stores = {} } }", "t.lua:2: pool `q` needs stores"},
      {kA + "pools {\n q = { stores = { 'aa' } } }", "t.lua:3: pool `q`: there is no store `aa`; did you mean `a`?"},
      {kA + "routes { map = { ['/'] = route_diret { child = 'a' } } }", "t.lua:2: there is no handler `route_diret`; did you mean `route_direct`?"},
      {kA + "routes { map = {\n ['/'] = route_direct { chld = 'a' } } }", "t.lua:3: route_direct has no option `chld`; did you mean `child`?"},
      {kA + "routes { map = { ['/'] = route_direct {} } }", "t.lua:2: route_direct needs `child`"},
      {kA + "routes { map = { ['/'] = route_direct { child = 'ab' } } }", "t.lua:2: there is no pool or store `ab`; did you mean `a`?"},
      {kA + "routes {\n map = { ['x'] = 'a' } }", "t.lua:3: a path in `map` starts with `/`: `x`"},
      {kA + "routes { map = {\n ['/:a'] = 'a',\n ['/:b'] = 'a' } }", "t.lua:4: `/:"},
      {kA + "routes { mapp = {} }", "t.lua:2: routes{} has no `mapp`; did you mean `map`?"},
      {kA + "routes { default = cmdmap { GTE = 'a' } }", "t.lua:2: cmdmap: `GTE` is not a method; did you mean `GET`?"},
      {kA + "routes { default = route_lua { f = function() end } }", "t.lua: the generator of route 'default' returned a nil"},
      {kA + "routes { default = route_lua { f = function()\n error('gen') end } }", "t.lua:3: gen"},
      {kA + "routes { default = 'a' } routes { default = 'a' }", "t.lua:2: routes{} is given twice"},
      {"function sluice_config_pools() return { f = function() end } end function sluice_config_routes() end",
       "t.lua: the value of sluice_config_pools().f is a function, which cannot be copied"},
      {"function sluice_config_pools() local t = {} t.t = t return t end function sluice_config_routes() end",
       "t.lua: the value of sluice_config_pools().t contains itself"},
      {"function sluice_config_routes() end", "t.lua: sluice_config_routes() attached nothing"},
      {"function sluice_config_routes() sluice.attach('GTE', function() end) end", "t.lua:1: sluice.attach: 'GTE' is not a method"},
      {"function sluice_config_routes() sluice.attach('GET', sluice.funcgen_new()) end", "t.lua:1: sluice.attach: that function generator is not ready"},
      {"function sluice_config_pools() local p = sluice.pool({}) return p end function sluice_config_routes() end", "t.lua:1: a pool without stores"},
      {"\nsluice.ratelim_tfb { limit = 1 }", "t.lua:2: there is no sluice.ratelim_tfb; did you mean `ratelim_tbf`?"},
      {"\nlocal g = sluice.funcgen_new()", "t.lua:2: sluice.funcgen_new is not there while the file is read"},
      {"function sluice_config_routes()\nsluice.store { name = 'a' } end", "t.lua:2: sluice.store belongs to sluice_config_pools()"},
      {"require('missing')", "t.lua:1: require: no file 'missing.lua' beside the config"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.text);
    const std::string why = error_of(c.text);
    CAPTURE(why);
    CHECK(why.find(c.says) == 0);
  }
}

TEST_CASE("a file that is not there is an error with its name") {
  auto reader = make_config_reader(nullptr);
  auto read = reader->read("/nowhere/t.lua");
  REQUIRE_FALSE(read);
  CHECK(read.error() == "/nowhere/t.lua: No such file or directory");
}

TEST_CASE("require finds files beside the config, and all VMs run the text that was read first") {
  TempFile file("local m = require 'part' function sluice_config_routes() sluice.attach(sluice.ANY, function() return m.word end) end");
  file.add("part.lua", "return { word = 'one' }");
  auto reader = make_config_reader(nullptr);
  auto read = reader->read(file.path());
  REQUIRE(read);
  file.add("part.lua", "return { word = 'two' }");
  auto made = (*read)->make_routes(stores_of(**read), 0);
  REQUIRE(made);
  TestServices services;
  (*made)->attach(services);
  TestExchange x(Method::get, "/");
  Match match;
  (*made)->find(Method::get, "/", match)->start(x, match, services);
  CHECK(x.body == "one");
}
