// Rate limiters: a limiter of N admits N, refills by its rate, and knows when to come back.
#include "lua/limiter.h"

#include <atomic>
#include <cmath>
#include <thread>

#include "t/lua/harness.h"

using namespace sluice::lua::harness;
using sluice::lua::Limiter;
using sluice::lua::LimitSpec;

namespace {
int admitted(Limiter& l, int tries, std::uint64_t now_us, std::string_view key = {}) {
  int n = 0;
  for (int i = 0; i < tries; ++i) n += l.take(key, 1, now_us).admitted;
  return n;
}
}  // namespace

TEST_CASE("a limiter of N admits N at once, and then as many as its rate brings in") {
  for (const double rate : {1.0, 3.0, 7.5, 1000.0, 1e6}) {
    CAPTURE(rate);
    Limiter l({5, rate, 0}, false);
    CHECK(admitted(l, 20, 1000) == 5);
    const auto per_token_us = static_cast<std::uint64_t>(std::ceil(1e6 / rate));
    CHECK(admitted(l, 20, 1000 + per_token_us) == 1);
    CHECK(admitted(l, 20, 1'000'000'000) == 5);
  }
}

TEST_CASE("a refusal says when it would be admitted, and that is so") {
  Limiter l({10, 4, 0}, false);
  CHECK(l.take(10, 1'000).admitted);
  const auto v = l.take(3, 101'000);
  CHECK_FALSE(v.admitted);
  REQUIRE(v.wait_us);
  CHECK(*v.wait_us == 650'000);
  CHECK_FALSE(l.take(3, 101'000 + *v.wait_us - 1).admitted);
  CHECK(l.take(3, 101'000 + *v.wait_us).admitted);
  CHECK_FALSE(l.take(11, 1'000'000'000).wait_us);
}

TEST_CASE("keys have a bucket each, and the one not asked for longest is forgotten") {
  Limiter l({2, 0.001, 3}, false);
  for (const char* key : {"a", "b", "c"}) CHECK(admitted(l, 5, 0, key) == 2);
  CHECK(admitted(l, 5, 0, "a") == 0);
  CHECK(admitted(l, 5, 0, "d") == 2);      // in b's place
  CHECK(admitted(l, 5, 0, "a") == 0);
  CHECK(admitted(l, 5, 0, "b") == 2);      // in c's
  CHECK(admitted(l, 5, 0, "d") == 0);
}

TEST_CASE("many keys are kept apart") {
  Limiter l({1, 0.001, 1000}, false);
  for (int round = 0; round < 2; ++round)
    for (int i = 0; i < 1000; ++i) CHECK(l.take("key" + std::to_string(i), 1, 0).admitted == (round == 0));
  for (int i = 0; i < 5000; ++i) CHECK(l.take("other" + std::to_string(i), 1, 0).admitted);
}

TEST_CASE("threads that ask one limiter are admitted N times together") {
  Limiter l({1000, 0.001, 0}, true);
  std::atomic<int> total{0};
  std::vector<std::thread> threads;
  for (int n = 0; n < 4; ++n) threads.emplace_back([&] { total += admitted(l, 1000, 0); });
  for (auto& t : threads) t.join();
  CHECK(total == 1000);
}

TEST_CASE("Lua asks a limiter for tokens, with and without keys") {
  World w("local one, many function sluice_config_routes() one = sluice.ratelim_tbf { limit = 2, rate = 1 } "
          "many = sluice.ratelim_tbf { limit = 1, fillrate = 1, tickrate = 1000, keys = 10 } "
          "sluice.attach(sluice.ANY, function(r) local a, wait = one() local k, its = many(r:path()) "
          "local _, never = one(3) return tostring(a) .. ' ' .. tostring(wait) .. ' ' .. tostring(k) .. ' ' .. tostring(its) .. ' ' .. tostring(never) end) end", false);
  CHECK(w.get("/a")->body == "true nil true nil nil");
  CHECK(w.get("/a")->body == "true nil false 1 nil");
  CHECK(w.get("/b")->body == "false 1 true nil nil");
  w.services.pass(1'000'000);
  CHECK(w.get("/a")->body == "true nil true nil nil");
}

TEST_CASE("route_ratelim answers 429 with Retry-After beyond its limit, and passes on what is within") {
  World w("routes { map = { ['/a'] = route_ratelim { child = 'a', limit = 2, rate = 0.1 }, ['/ip'] = route_ratelim { child = 'a', limit = 1, rate = 1, key = 'client_ip' }, "
          "['/h'] = route_ratelim { child = route_lua { f = function() return function(r) return r:path() end end }, limit = 1, rate = 1, key = 'header:X-User' }, "
          "['/q'] = route_ratelim { child = 'a', limit = 1, rate = 1, key = 'query:user' }, ['/k'] = route_ratelim { child = 'a', limit = 1, rate = 1, key = 'key' } } }");
  CHECK(w.get("/a/views/v")->body == "a view v");
  CHECK(w.get("/a/views/v")->status == 200);
  auto x = w.begin(Method::get, "/a/views/v");
  CHECK(x->status == 429);
  CHECK(x->error == sluice::Errc::rate);
  CHECK(x->retry_after_s == 10);
  w.services.pass(10'000'000);
  CHECK(w.get("/a/views/v")->status == 200);

  CHECK(w.get("/ip/views/v")->status == 200);
  CHECK(w.begin(Method::get, "/ip/views/v")->status == 429);
  const auto with = [&](const char* user) {
    TestExchange y(Method::get, "/h/x");
    y.edit().headers.push_back({"x-user", user});
    w.start(y);
    return std::to_string(y.status) + y.body;
  };
  CHECK(with("ann") == "200/x");
  CHECK(with("ann").substr(0, 3) == "429");
  CHECK(with("bob") == "200/x");
  CHECK(w.get("/q/views/v?user=1")->status == 200);
  CHECK(w.begin(Method::get, "/q/views/v?user=1")->status == 429);
  CHECK(w.get("/q/views/v?user=2")->status == 200);
  CHECK(w.get("/k/objects/one")->status == 200);
  CHECK(w.begin(Method::get, "/k/objects/one")->status == 429);
  CHECK(w.get("/k/objects/two")->status == 200);
}

TEST_CASE("a global limiter is one for all workers, outlives a reload, and begins anew when it is changed") {
  const auto text = [](const char* limit) {
    return std::string("function sluice_config_pools() return { l = sluice.ratelim_global_tbf { limit = ") + limit + ", rate = 0.001 } } end "
           "function sluice_config_routes(conf) local named = sluice.ratelim_global_tbf { name = 'n', limit = 3, rate = 0.001 } "
           "sluice.attach(sluice.ANY, function() return tostring((conf.l())) .. tostring((named())) end) end";
  };
  TempFile file(text("3"));
  auto reader = make_config_reader(nullptr);
  TestServices services;
  const auto table = [&] {
    auto config = reader->read(file.path());
    REQUIRE(config);
    auto made = (*config)->make_routes(stores_of(**config), 0);
    if (!made) FAIL(made.error());
    (*made)->attach(services);
    return std::move(*made);
  };
  const auto ask = [&](RouteTable& t) {
    TestExchange x(Method::get, "/");
    Match match;
    t.find(Method::get, "/", match)->start(x, match, services);
    return x.body;
  };
  auto one = table(), two = table();
  CHECK(ask(*one) == "truetrue");
  CHECK(ask(*two) == "truetrue");
  auto reloaded = table();
  one.reset();
  two.reset();
  CHECK(ask(*reloaded) == "truetrue");
  CHECK(ask(*reloaded) == "falsefalse");
  file.add("t.lua", text("2"));
  auto changed = table();
  CHECK(ask(*changed) == "truefalse");
}

TEST_CASE("limiters that cannot be are refused with a line") {
  struct Case { std::string text, says; };
  const auto low = [](const char* spec) { return std::string("function sluice_config_routes()\nsluice.ratelim_tbf ") + spec + " end"; };
  const Case cases[] = {
      {low("{}"), "t.lua:2: sluice.ratelim_tbf: a rate limiter needs a `limit`"},
      {low("{ limit = 0 }"), "t.lua:2: sluice.ratelim_tbf: `limit` is a whole number from 1"},
      {low("{ limt = 1 }"), "t.lua:2: sluice.ratelim_tbf: a rate limiter has no `limt`; did you mean `limit`?"},
      {low("{ limit = 1, rate = 0 }"), "t.lua:2: sluice.ratelim_tbf: `rate` is a number per second"},
      {low("{ limit = 1, rate = 1, tickrate = 5 }"), "t.lua:2: sluice.ratelim_tbf: `rate` and `fillrate`"},
      {low("{ limit = 1e9, rate = 1 }"), "t.lua:2: sluice.ratelim_tbf: a limiter that takes more than 30 days"},
      {low("{ limit = 1, keys = 2e6 }"), "t.lua:2: sluice.ratelim_tbf: `keys` is how many are kept apart"},
      {"function sluice_config_routes()\nsluice.ratelim_global_tbf { limit = 1 } end", "t.lua:2: sluice.ratelim_global_tbf: here it needs a `name`"},
      {"function sluice_config_pools()\nsluice.ratelim_global_tbf { limit = 'x' } end function sluice_config_routes() end", "t.lua:2: sluice.ratelim_global_tbf: `limit` is"},
      {"\nlocal l = sluice.ratelim_tbf { limit = 1 } l()", "t.lua:2: a rate limiter is asked by routes and crons"},
      {"function sluice_config_routes()\nlocal l = sluice.ratelim_tbf { limit = 1 } l() end", "t.lua:2: a rate limiter is asked by routes and crons"},
      {"stores { a = { module = 'm', path = 'p' } }\nroutes { default = route_ratelim { child = 'a', limit = 1, key = 'ip' } }", "t.lua:2: route_ratelim: `key` is client_ip, key"},
      {"stores { a = { module = 'm', path = 'p' } }\nroutes { default = route_ratelim { child = 'a' } }", "t.lua:2: route_ratelim needs `limit`"},
      {"stores { a = { module = 'm', path = 'p' } }\nroutes { default = route_ratelim { child = 'a', limit = 0, key = function() end } }", "t.lua:2: route_ratelim: `limit` is a whole number from 1"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.text);
    const std::string why = error_of(c.text);
    CAPTURE(why);
    CHECK(why.find(c.says) == 0);
  }
}
