// Memory that is seen and kept level: the collector between turns, what slots and generators hold, profiles by function.
#include <map>

#include "lua/sandbox.h"
#include "lua/state.h"
#include "proxy/route_profile.h"
#include "proxy/route_record.h"
#include "t/lua/harness.h"

using namespace sluice::lua::harness;
using sluice::lua::push;
using sluice::lua::text_at;
using sluice::lua::Vm;
using Kind = RouteProfile::Kind;

namespace {

// A VM that runs text, and answers with what it returns.
struct Bare {
  explicit Bare(std::uint64_t limit_bytes = 0) {
    auto made = Vm::make(limit_bytes, false, nullptr);
    REQUIRE(made.has_value());
    vm = std::move(*made);
    sluice::lua::open_sandbox(vm->main(), sources, nullptr);
    vm->collect_all();
  }
  bool run(const std::string& text) {
    lua_State* L = vm->main();
    const sluice::lua::StackGuard guard(L);
    REQUIRE(luaL_loadstring(L, text.c_str()) == 0);
    const bool good = vm->call(L, 0, 1);
    result = lua_tostring(L, -1) ? lua_tostring(L, -1) : "";
    return good;
  }
  sluice::lua::Sources sources;
  std::unique_ptr<Vm> vm;
  std::string result;
};

// The first row whose place or function has that in it.
const RouteProfile::Row* find(const std::vector<RouteProfile::Row>& rows, std::string_view part) {
  for (const RouteProfile::Row& r : rows)
    if (r.place.find(part) != r.place.npos || r.function == part) return &r;
  return nullptr;
}

struct TestStats final : ServerStats {
  void each(const std::function<void(std::string_view, std::uint64_t)>& f) const override { f("threads", 1); }
  RouteRecords records() const override { return book.get(); }
  RecordBook book;
};

}  // namespace

TEST_CASE("a cycle of the collector that is under way does not go on inside a call") {
  Bare b;
  b.run("kept = {} for i = 1, 20000 do kept[i] = { i } end");
  b.run("for i = 1, 20000 do local garbage = { i } end");
  b.vm->collect_step();
  const auto under_way = b.vm->collector();
  CHECK(under_way.steps == 1);
  CHECK(under_way.cycles == 0);
  // What was garbage before is still there, and so is all that the call leaves.
  const std::uint64_t before = b.vm->used_bytes();
  b.run("for i = 1, 500 do local s = ('x'):rep(1000) .. i end");
  CHECK(b.vm->used_bytes() >= before + 500 * 1000);
  for (int i = 0; i < 1000 && b.vm->collector().cycles == 0; ++i) b.vm->collect_step();
  CHECK(b.vm->collector().cycles == 1);
  CHECK(b.vm->used_bytes() < before);
  CHECK(b.vm->collector().longest_us > 0);
}

TEST_CASE("a call that allocates much more than there is meets the collector") {
  Bare b;
  b.run("for i = 1, 200000 do local s = ('x'):rep(1000) .. i end");   // 200 MB in all
  CHECK(b.vm->used_bytes() < (16u << 20));
}

TEST_CASE("a call that leaves garbage near its limit meets the collector before the limit") {
  Bare b(8u << 20);
  REQUIRE(b.run("kept = {} for i = 1, 4000 do kept[i] = ('x'):rep(1000) .. i end"));   // half of the limit
  for (int i = 0; i < 1000; ++i) b.vm->collect_step();
  CHECK(b.run("for i = 1, 20000 do local s = ('y'):rep(1000) .. i end return 'done'"));
  CHECK(b.result == "done");
  CHECK(b.vm->refused() == 0);
}

TEST_CASE("the collector keeps up with calls that each leave a lot") {
  Bare b;
  b.run("kept = {} for i = 1, 20000 do kept[i] = { i } end");
  std::uint64_t most = 0;
  for (int turn = 0; turn < 500; ++turn) {
    // 1 MB a turn, of texts that were not there before: a dead one that is made again costs nothing.
    b.run("for i = 1, 1000 do local s = ('x'):rep(1000) .. i .. '/" + std::to_string(turn) + "' end");
    b.vm->collect_step();
    most = std::max(most, b.vm->used_bytes());
  }
  CHECK(b.vm->collector().cycles > 10);
  CHECK(most < (12u << 20));
}

TEST_CASE("records say what each generator holds, and the numbers come back when its slots go") {
  World w("routes { map = { ['/'] = route_lua { children = { 'a' }, f = function(rctx, h) local own = {} for i = 1, 4096 do own[i] = i end "
          "return function(r) return rctx:get_and_wait(h[1], own[1] .. 'k') end end }, ['/small'] = function() return 'x' end } }");
  const auto record = w.table->record();
  REQUIRE(record != nullptr);
  const auto of = [&record](std::uint64_t least_bytes, std::uint64_t most_bytes) -> const GeneratorRecord* {
    for (const auto& g : record->generators)
      if (g->bytes.get() >= least_bytes && g->bytes.get() <= most_bytes) return g.get();
    return nullptr;
  };
  CHECK(record->worker == 0);
  CHECK(record->memory_bytes.get() > 10'000);
  CHECK(record->memory_limit.get() == 256u << 20);
  CHECK(record->generators.size() == 2);
  const GeneratorRecord* large = of(32'000, 100'000);
  const GeneratorRecord* small = of(1000, 16'000);
  REQUIRE(large != nullptr);
  REQUIRE(small != nullptr);
  CHECK(large->slots.get() == 1);
  const std::uint64_t each = large->bytes.get();
  {
    std::vector<std::unique_ptr<TestExchange>> many;
    for (int i = 0; i < 50; ++i) many.push_back(w.begin(Method::get, "/"));
    CHECK(large->slots.get() == 50);
    CHECK(large->in_use.get() == 50);
    CHECK(large->bytes.get() >= 40 * each);
    CHECK(large->bytes.get() <= 60 * each);
    CHECK(small->slots.get() == 1);
    w.services.deliver_all();
  }
  CHECK(large->in_use.get() == 0);
  for (int minute = 0; minute < 24; ++minute) {
    w.table->idle();
    w.services.pass(61'000'000);
  }
  CHECK(large->slots.get() < 3);
  CHECK(large->bytes.get() < 3 * each);
}

TEST_CASE("a generator that leaves garbage is measured without what collections take away meanwhile") {
  World w("made = 0 routes { map = { ['/'] = route_lua { children = { 'a' }, f = function(rctx, h) local own = {} for i = 1, 1000 do own[i] = i end "
          "for i = 1, 200 do local s = ('x'):rep(10000) .. i end "
          "return function(r) return rctx:get_and_wait(h[1], own[1] .. 'k') end end } } }");
  const auto record = w.table->record();
  std::vector<std::unique_ptr<TestExchange>> many;
  for (int i = 0; i < 100; ++i) many.push_back(w.begin(Method::get, "/"));
  CHECK(record->generators[0]->bytes.get() >= 100 * 8'000);   // never less than what stays
  w.services.deliver_all();
}

TEST_CASE("server_stats has a section of routes: VMs, and generators of all workers by name") {
  TestStats stats;
  World w("routes { map = { ['/'] = function() local s = sluice.server_stats('routes') local names = {} for n, g in pairs(s.generators) do "
          "names[#names + 1] = n .. '=' .. g.slots .. '/' .. g.in_use .. '/' .. tostring(g.bytes > 1000) end table.sort(names) local v = s.workers[2] "
          "return #s.workers .. ' ' .. v.worker .. ' ' .. tostring(v.bytes > 10000) .. ' ' .. v.limit .. ' ' .. v.refused .. ' ' .. v.collections .. ' ' .. table.concat(names, ' ') end, "
          "['/other'] = route_failover { children = { 'a' } } } }");
  w.reader->set_stats(&stats);   // for the next generation
  auto again = w.reader->read(w.file.path());
  REQUIRE(again.has_value());
  std::vector<std::unique_ptr<RouteTable>> tables;
  for (std::uint16_t i = 0; i < 2; ++i) tables.push_back(*(*again)->make_routes(stores_of(**again), i));
  stats.book.set({tables[0]->record(), tables[1]->record()});
  tables[0]->attach(w.services);
  TestExchange x(Method::get, "/");
  tables[0]->find(Method::get, "/", w.match)->start(x, w.match, w.services);
  CHECK(x.body.starts_with("2 1 true 268435456 0 0 "));
  CHECK(x.body.find("=2/1/true") != x.body.npos);
  CHECK(x.body.find("=2/0/true") != x.body.npos);
}

TEST_CASE("a profile of memory says which function allocates, exactly when every allocation is a sample") {
  World w("local function many() local t = {} for i = 1, 100 do t[i] = ('x'):rep(10000) .. i end return #t end\n"
          "local function few() return { 1, 2, 3 } end\n"
          "local function none(a) return a + 1 end\n" +
          route("many() few() none(1) return 'done'"));
  const auto record = w.table->record();
  w.get("/");
  CHECK(record->profile.rows().empty());
  record->profile.start(Kind::memory, 1);
  w.table->idle();
  w.get("/");
  const std::vector<RouteProfile::Row> rows = record->profile.stop();
  const RouteProfile::Row* many = find(rows, "many");
  const RouteProfile::Row* few = find(rows, "few");
  REQUIRE(many != nullptr);
  REQUIRE(few != nullptr);
  CHECK(many->place == "t.lua:1");
  CHECK(few->place == "t.lua:2");
  CHECK(many->weight > 100 * 10'000);
  CHECK(many->weight < 100 * 10'000 * 4);
  CHECK(many->count >= 100);
  CHECK(few->weight < 1000);
  CHECK(find(rows, "none") == nullptr);
  CHECK(rows[0].place == many->place);      // the largest first
  // Ended: nothing is counted, by whoever still samples.
  w.get("/");
  CHECK(record->profile.rows().empty());
  w.table->idle();
  w.get("/");
  CHECK(record->profile.rows().empty());
}

TEST_CASE("samples of every 4 KiB stand for all bytes that were allocated, in coroutines of a route's own too") {
  World w("local function makes() for i = 1, 1000 do local s = ('x'):rep(500) .. i end end\n"
          "local function inside() for i = 1, 3000 do local s = ('x'):rep(500) .. i end end\n" +
          route("makes() coroutine.wrap(inside)() return 'done'"));
  const auto record = w.table->record();
  record->profile.start(Kind::memory, 0);
  w.table->idle();
  for (int i = 0; i < 5; ++i) w.get("/");
  const auto rows = record->profile.stop();
  const RouteProfile::Row* makes = find(rows, "t.lua:1");
  const RouteProfile::Row* inside = find(rows, "t.lua:2");
  REQUIRE(makes != nullptr);
  REQUIRE(inside != nullptr);
  const double ratio = static_cast<double>(inside->weight) / static_cast<double>(makes->weight);
  CHECK(ratio > 2.5);
  CHECK(ratio < 3.5);
}

TEST_CASE("what a C function allocates counts for the Lua function that called it, and in a return for nobody") {
  World w("local function joins(t) local s = table.concat(t, ('x'):rep(1000)) return s end\n" +
          route("if r:query('tail') then return ('y'):rep(50000) end local t = {} for i = 1, 100 do t[i] = 'z' end joins(t) return 'done'"));
  const auto record = w.table->record();
  record->profile.start(Kind::memory, 1);
  w.table->idle();
  w.get("/?tail=1");
  const RouteProfile::Row left = *find(record->profile.rows(), "(C functions that a route called in its return)");
  CHECK(left.weight >= 50'000);
  w.get("/");
  const auto rows = record->profile.stop();
  CHECK(find(rows, "t.lua:1")->weight >= 100'000);
}

TEST_CASE("a profile leaves a route that is stopped, fails or runs out of memory as it was") {
  World w("settings { lua_time_limit = 0.1, lua_memory = '8MiB' } " +
          route("if r:query('loop') then while true do local t = {} end end if r:query('much') then local t = {} for i = 1, 1e7 do t[i] = ('x'):rep(1000) .. i end end "
                "if r:query('bad') then error({}) end return rctx:get_and_wait(h.a, 'k')"));
  const auto record = w.table->record();
  record->profile.start(Kind::memory, 1);
  w.table->idle();
  CHECK(w.get("/?loop=1")->status == 500);
  CHECK(w.log.has("stopped: it ran too long"));
  CHECK(w.get("/?much=1")->status == 500);
  CHECK(w.log.has("not enough memory"));
  CHECK(w.get("/?bad=1")->status == 500);
  CHECK(w.get("/")->body == "a show k");
  w.table->idle();
  CHECK(record->stopped.get() == 1);
  CHECK(record->refused.get() > 0);
  CHECK(!record->profile.stop().empty());
}

TEST_CASE("a profile of time says which function the processor was with") {
  World w("local function spins() local n = 0 for i = 1, 3e6 do n = n + i % 7 end return n end\n"
          "local function rests() return 1 end\n" +
          route("rests() spins() return 'done'"));
  const auto record = w.table->record();
  record->profile.start(Kind::time, 1000);
  w.table->idle();
  // As long as it takes: ticks come with the kernel's.
  for (int i = 0; i < 1000 && find(record->profile.rows(), "spins") == nullptr; ++i) w.get("/");
  const auto rows = record->profile.stop();
  REQUIRE(find(rows, "spins") != nullptr);
  CHECK(find(rows, "spins")->place == "t.lua:1");
  CHECK(find(rows, "spins")->weight >= 1000);
  CHECK(find(rows, "spins")->weight == find(rows, "spins")->count * 1000);
}

TEST_CASE("profiles of workers are merged and printed, and one that was replaced is dropped") {
  RouteProfile one, two;
  one.start(Kind::memory, 1);
  const std::uint64_t stale = one.order();
  one.add(stale, "", "t.lua:1", 10, 1);
  one.start(Kind::memory, 5u << 20);
  CHECK(RouteProfile::every_of(one.order()) == RouteProfile::kMostBytes);
  one.add(stale, "", "t.lua:1", 10, 1);      // of the one before
  one.add(one.order(), "f", "t.lua:1", 100, 2);
  two.start(Kind::memory, 0);
  CHECK(RouteProfile::every_of(two.order()) == RouteProfile::kUsualBytes);
  two.add(two.order(), "f", "t.lua:1", 100, 2);
  two.add(two.order(), "g", "t.lua:9", 600, 1);
  two.add(two.order(), "", "(outside of Lua)", 200, 1);
  const auto rows = merge({one.stop(), two.stop()});
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].function == "g");
  CHECK(rows[1].place == "(outside of Lua)");
  CHECK(rows[2].weight == 200);
  CHECK(rows[2].count == 4);
  CHECK(profile_table(Kind::memory, rows, 2) ==
        "          bytes   part  allocations  function\n"
        "            600  60.0%            1  g (t.lua:9)\n"
        "            200  20.0%            1  (outside of Lua)\n"
        "            200  20.0%            4  (1 more)\n"
        "           1000 100.0%            6  total\n");
  RouteProfile timed;
  timed.start(Kind::time, 1);
  CHECK(RouteProfile::every_of(timed.order()) == RouteProfile::kLeastUs);
  for (int i = 0; i < 20'000; ++i) timed.add(timed.order(), "f", "t.lua:" + std::to_string(i), 1, 1);
  CHECK(timed.rows().size() == 10'001);
  CHECK(timed.stop()[0].place == "(others)");
}
