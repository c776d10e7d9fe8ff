// What a warm request takes from the heap: nothing of ours, and in Lua no object but the strings that it asks for.
#include "t/lua/counting_new.h"
#include "t/lua/harness.h"

using namespace sluice::lua::harness;

namespace {

// How many allocations 1000 requests make once 100 have warmed everything.
std::uint64_t of_warm_requests(World& w, const char* path) {
  w.services.evaluates = true;
  TestExchange x(Method::get, path);
  x.edit().headers = {{"X-User", "ann"}};
  const auto run = [&](int n) {
    for (int i = 0; i < n; ++i) {
      w.start(x);
      w.table->idle();
    }
  };
  const std::uint64_t cold = allocations();
  run(100);
  CHECK(allocations() > cold);   // the count counts
  CHECK(x.status == 200);
  const std::uint64_t before = allocations();
  run(1000);
  CHECK(x.times == 1100);
  return allocations() - before;
}

}  // namespace

TEST_CASE("a warm request of any kind allocates nothing of ours") {
  World w("shared { t = '64KiB' } stats { n = 'counter', h = 'histogram' } local lim = sluice.ratelim_tbf { limit = 1e6, rate = 1e6, keys = 100 } routes { map = { "
          "['/direct'] = 'a', ['/limited'] = route_ratelim { child = 'a', limit = 1e6, rate = 1e6, key = 'header:X-User' }, ['/text'] = function(r) return 'hello' end, "
          "['/merge'] = route_lua { children = { a = 'a', b = 'b', c = 'c' }, f = function(rctx, h) return function(r) rctx:view(h.a, 'v', { x = 1 }) rctx:view(h.b, 'v') rctx:get(h.c, 'k') "
          "rctx:wait_cond(3) return rctx:result(h.b) end end }, "
          "['/failover'] = route_failover { children = { 'a', 'b' } }, ['/fastest'] = route_allfastest { children = { 'a', 'b' } }, ['/match'] = route_match { header = 'X-User', child = 'a', otherwise = 'b' }, "
          "['/nested'] = route_failover { children = { route_failover { children = { 'a' } }, 'b' } }, "
          "['/parts/:id'] = route_lua { f = function(rctx) local ins = sluice.req_inspector_new({ t = 'param', name = 'id' }, { t = 'header', name = 'x-user', map = { ann = 1 } }) "
          "local mut = sluice.req_mutator_new({ t = 'headercopyall', idx = 1 }, { t = 'pathcopy', idx = 1 }) local own = rctx:request_new() "
          "return function(r) ins(r) mut(own, r) lim('k') sluice.stat('n') sluice.stat('h', 0.5) sluice.shared.t:incr('x', 1, 0) sluice.shared.t:get('x') return 'ok' end end } } }");
  for (const char* path : {"/direct/views/v", "/limited/views/v", "/text", "/merge", "/failover/views/v", "/fastest/views/v", "/match/views/v", "/nested/views/v", "/parts/7"}) {
    CAPTURE(path);
    CHECK(of_warm_requests(w, path) == 0);
  }
}

TEST_CASE("accessors and waits make no Lua objects: the memory of a VM stands still while they are called") {
  World w(route("local function all() local res = rctx:result(h.a) r:method() r:path() r:query('q') r:header('x-user') r:key() r:client_ip() res:status() res:hit() res:body() res:header('content-type') "
                "rctx:best_result(hs) rctx:res_ok(h.a) sluice.time_mono_millis() rctx:cancelled() end "
                "rctx:view(h.a, 'v') rctx:view(h.b, 'v') rctx:wait_cond(2) all() local before = collectgarbage('count') for i = 1, 1000 do all() end return tostring(collectgarbage('count') - before)",
                "local hs = { h.a, h.b }"));
  w.services.evaluates = true;
  w.get("/?q=1");
  CHECK(w.get("/?q=1")->body == "0");
}
