// Memory, time, slots and generations: what stays level.
#include "t/lua/harness.h"

using namespace sluice::lua::harness;

TEST_CASE("a loop without end is stopped, logged with its traceback, and the route serves again") {
  World w("settings { lua_time_limit = 0.1 } " + route("if r:query('loop') then while true do end end return 'ok'"));
  auto x = w.get("/?loop=1");
  CHECK(x->status == 500);
  CHECK(w.log.has("stopped: it ran too long"));
  CHECK(w.log.has("stack traceback"));
  CHECK(w.get("/")->body == "ok");
}

TEST_CASE("a loop that catches errors is stopped too") {
  World w("settings { lua_time_limit = 0.1 } " + route("while true do pcall(function() while true do end end) end"));
  CHECK(w.get("/")->status == 500);
}

TEST_CASE("a route over the memory limit fails alone") {
  World w("settings { lua_memory = '8MiB' } " + route("if r:query('much') then local t = {} for i = 1, 1e7 do t[i] = ('x'):rep(1000) .. i end end return 'ok'"));
  auto x = w.get("/?much=1");
  CHECK(x->status == 500);
  CHECK(w.log.has("not enough memory"));
  CHECK(w.get("/")->body == "ok");
  CHECK(w.table->memory_bytes() < (4u << 20));
}

TEST_CASE("memory and slots are level over 100,000 requests, and warm ones take no new events") {
  World w(route("rctx:view(h.a, 'v') rctx:view(h.b, 'v') rctx:view(h.c, 'v') rctx:wait_cond(3) return rctx:result(h.a):body()"));
  w.services.evaluates = true;
  TestExchange x(Method::get, "/");
  const auto run = [&](int n) {
    for (int i = 0; i < n; ++i) {
      w.start(x);
      if (i % 64 == 0) w.table->idle();
    }
  };
  run(2000);
  const auto before = w.table->memory_bytes();
  const int made = w.services.made;
  run(100'000);
  CHECK(w.table->memory_bytes() < before + (512u << 10));
  CHECK(w.services.made == made);
  CHECK(w.table->slots() == 1);
}

TEST_CASE("slots grow with what is asked at once, and shrink when nobody needs them for minutes") {
  World w(route("return rctx:get_and_wait(h.a, 'k')"));
  std::vector<std::unique_ptr<TestExchange>> many;
  for (int i = 0; i < 100; ++i) many.push_back(w.begin(Method::get, "/"));
  CHECK(w.table->slots() == 100);
  CHECK(w.table->slots_in_use() == 100);
  w.services.deliver_all();
  CHECK(w.table->slots_in_use() == 0);
  for (int minute = 0; minute < 12; ++minute) {
    w.table->idle();
    w.services.pass(61'000'000);
  }
  CHECK(w.table->slots() < 3);
  CHECK(w.get("/")->body == "a show k");
}

TEST_CASE("twenty generations are made, used and dropped") {
  for (int i = 0; i < 20; ++i) {
    World w(route("return rctx:get_and_wait(h.a, 'k')"));
    CHECK(w.get("/")->body == "a show k");
  }
}
