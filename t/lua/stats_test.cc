// Counters and histograms of a config's own, and the lines about requests that a route writes.
#include "lua/user_stat.h"

#include <algorithm>
#include <random>

#include "t/lua/harness.h"

using namespace sluice::lua::harness;
using sluice::lua::StatCell;
using sluice::lua::UserStat;

TEST_CASE("every value is in a bucket whose middle is at most a sixteenth off") {
  for (double v = 1e-9; v < 1e9; v *= 1.013) {
    const double middle = StatCell::middle_of(StatCell::bucket_of(v));
    CAPTURE(v);
    CHECK(std::fabs(middle - v) <= v / 16 + 1e-18);
  }
  CHECK(StatCell::bucket_of(0) == 0);
  CHECK(StatCell::bucket_of(-5) == 0);
  CHECK(StatCell::bucket_of(1e300) == StatCell::kBuckets - 1);
  CHECK(StatCell::bucket_of(1e-300) == 0);
}

TEST_CASE("quantiles of many workers are those of all that was recorded") {
  UserStat stat("t", UserStat::Kind::histogram);
  std::mt19937 random(7);
  std::vector<double> all;
  for (int i = 0; i < 20'000; ++i) {
    const double v = std::exp(std::normal_distribution<double>(-6, 2)(random));
    all.push_back(v);
    stat.cell(static_cast<std::uint16_t>(i % 3)).record(v);
  }
  std::sort(all.begin(), all.end());
  const sluice::proxy::Counted s = stat.read();
  CHECK(s.count == 20'000);
  CHECK(s.least == all.front());
  CHECK(s.most == all.back());
  CHECK(s.quantiles[0] == doctest::Approx(all[9'999]).epsilon(0.07));
  CHECK(s.quantiles[2] == doctest::Approx(all[19'799]).epsilon(0.07));
}

TEST_CASE("routes count and record, and server_stats shows it") {
  World w("stats { sold = 'counter', wait = 'histogram' } " +
          route("if r:query('add') then sluice.stat('sold') sluice.stat('sold', 4) sluice.stat('sold', -2) sluice.stat('wait', 0.25) return 'x' end "
                "local u = sluice.server_stats('user') return u.sold .. ' ' .. u.wait.count .. ' ' .. u.wait.sum .. ' ' .. u.wait.min .. ' ' .. u.wait.p99 "
                ".. ' ' .. tostring(sluice.server_stats().user.sold == u.sold) .. ' ' .. type(sluice.server_stats('server'))"));
  CHECK(w.get("/")->body == "0 0 0 0 0 true table");
  w.get("/?add=1");
  w.get("/?add=1");
  CHECK(w.get("/")->body == "6 2 0.5 0.25 0.25 true table");
}

TEST_CASE("what cannot be counted is an error that says why") {
  struct Case { const char *call, *says; };
  const Case cases[] = {{"sluice.stat('sols')", "sluice.stat: there is no `sols`: declare it"},
                        {"sluice.stat(1)", "sluice.stat: a name expected, got a number"},
                        {"sluice.stat('sold', 0.5)", "what is added to a counter is a whole number"},
                        {"sluice.stat('sold', 0/0)", "what is added to a counter is a whole number"},
                        {"sluice.stat('wait', 1/0)", "what is recorded is a finite number"},
                        {"sluice.server_stats('all')", "the sections are server, user, caches, backends and routes"}};
  for (const Case& c : cases) {
    CAPTURE(c.call);
    World w("stats { sold = 'counter', wait = 'histogram' } " + route(std::string("return select(2, pcall(function() ") + c.call + " end))"));
    CHECK(w.get("/")->body.find(c.says) != std::string::npos);
  }
  CHECK(error_of("stats {\n sold = 'gauge' }").find("t.lua:2: `sold` is \"counter\" or \"histogram\"") == 0);
  CHECK(error_of("stats { ['a b'] = 'counter' }").find("t.lua:1: `a b` is not the name of a counter") == 0);
  CHECK(error_of("sluice.add_stat('x') sluice.add_stat('x')").find("t.lua:1: `x` is counted twice") == 0);
  CHECK(error_of("stats { sold = 'counter' } sluice.stat('sold')").find("t.lua:1: sluice.stat: routes and crons count") == 0);
}

TEST_CASE("a reload goes on counting under the same name, and begins anew for another kind") {
  const auto text = [](const char* kind) {
    return std::string("stats { n = '") + kind + "' } routes { default = function() sluice.stat('n', 2) local n = sluice.server_stats('user').n "
           "return tostring(type(n) == 'table' and 'h' .. n.count or n) end }";
  };
  TempFile file(text("counter"));
  auto reader = make_config_reader(nullptr);
  TestServices services;
  const auto table = [&](std::uint16_t worker) {
    auto config = reader->read(file.path());
    REQUIRE(config);
    auto made = (*config)->make_routes(stores_of(**config), worker);
    REQUIRE(made);
    (*made)->attach(services);
    return std::move(*made);
  };
  const auto ask = [&](RouteTable& t) {
    TestExchange x(Method::get, "/");
    Match match;
    t.find(Method::get, "/", match)->start(x, match, services);
    return x.body;
  };
  auto one = table(0), two = table(1);
  CHECK(ask(*one) == "2");
  CHECK(ask(*two) == "4");
  auto three = table(0);
  one.reset();
  two.reset();
  CHECK(ask(*three) == "6");
  file.add("t.lua", text("histogram"));
  CHECK(ask(*table(0)) == "h1");
}

TEST_CASE("route_stats answers JSON, or Prometheus' text") {
  World w("stats { sold = 'counter', wait = 'histogram' } routes { map = { ['/json'] = route_stats {}, ['/metrics'] = route_stats { format = 'prometheus' }, "
          "['/add'] = function() sluice.stat('sold', 3) sluice.stat('wait', 2) return 'x' end } }", false);
  w.get("/add");
  CHECK(w.get("/json")->body.find("\"sold\":3") != std::string::npos);
  const std::string text = w.get("/metrics")->body;
  for (const char* line : {"sluice_user_sold 3\n", "sluice_user_wait_count 1\n", "sluice_user_wait_sum 2\n", "sluice_user_wait{quantile=\"0.99\"} 2\n"})
    CHECK(text.find(line) != std::string::npos);
  CHECK(error_of("routes { default = route_stats { format = 'xml' } }").find("t.lua:1: route_stats: `format` is json or prometheus") == 0);
}

TEST_CASE("log_req writes one line about a request and its answer") {
  World w(route("local res = rctx:get_and_wait(h.a, 'k') sluice.log_req(r, res, 'two words', rctx:cfd()) sluice.log_req(r) return res"));
  w.get("/x y?q=1");
  CHECK(w.log.has("req method=GET path=/x+y status=200 class=good error=none elapsed=0.000000 backend=a client=192.0.2.7 cfd=42 detail=two words"));
  CHECK(w.log.lines.back() == "req method=GET path=/x+y client=192.0.2.7");
}

TEST_CASE("log_reqsample writes what is slow, what failed, and one of so many") {
  World w(route("local res = rctx:get_and_wait(h.a, 'k') local n = 0 "
                "for i = 1, 1000 do if sluice.log_reqsample(0, 10, false, r, res) then n = n + 1 end end "
                "return tostring(sluice.log_reqsample(5, 0, false, r, res)) .. ' ' .. tostring(sluice.log_reqsample(0, 0, true, r, res)) .. ' ' .. "
                "tostring(sluice.log_reqsample(0, 0, false, r, res)) .. ' ' .. tostring(sluice.log_reqsample(0, 0, true, r)) .. ' ' .. n"));
  std::uint16_t status = 200;
  std::uint64_t delay_us = 0;
  w.services.answerer = [&](Event& e) {
    e.answer.status = status;
    w.services.now_us += delay_us;
  };
  const std::string fast = w.get("/")->body;
  CHECK(fast.substr(0, 22) == "false false false true");
  const int sampled = std::atoi(fast.c_str() + 23);
  CHECK(sampled > 50);
  CHECK(sampled < 160);
  delay_us = 6000;
  CHECK(w.get("/")->body.substr(0, 22) == "true false false true ");
  delay_us = 0;
  status = 503;
  CHECK(w.get("/")->body.substr(0, 22) == "false true false true ");
}
