// What a warm request takes from the heap: nothing of ours, and in Lua no object but the strings that it asks for.
#include <fcntl.h>
#include <sys/socket.h>

#include "t/lua/counting_new.h"
#include "proxy/worker_loop.h"
#include "t/lua/harness.h"
#include "t/proxy/fake_routes.h"

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
      if (!w.services.sent.empty()) w.services.deliver_all();
      w.table->idle();
    }
  };
  const std::uint64_t cold = allocations();
  run(100);
  CHECK(allocations() > cold);   // the count counts
  CHECK(x.status / 100 == 2);
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
          "['/event'] = route_lua { children = { a = 'a', b = 'b' }, f = function(rctx, h) local say = rctx:event(h.a, 'say'):set('n', 1) local both = { h.a, h.b } return function(r) "
          "say:set('n', 2) rctx:enqueue(say, both) rctx:wait_cond(2, sluice.WAIT_FASTGOOD) return rctx:worst_result(both) end end }, "
          "['/inner'] = route_lua { children = { inner = route_lua { children = { 'a' }, f = function(rctx, h) rctx:handle_set_cb(h[1], function(res) return res:status() == 404 and sluice.RES_ANY or nil end) "
          "return function(r) return rctx:view_and_wait(h[1], 'v', nil, 1) end end } }, f = function(rctx, h) return function(r) rctx:view(h.inner, 'x', { n = 1 }) rctx:wait_handle(h.inner) return (rctx:result(h.inner)) end end }, "
          "['/made'] = route_lua { f = function(rctx) local made = rctx:response_new():set_header('X-A', 'b'):set_body('made') return function(r) made:set_status(201) "
          "sluice.log_reqsample(1000, 0, true, r, made) return made end end }, "
          "['/split'] = route_split { child_a = 'a', child_b = 'b' }, ['/all'] = route_allsync { children = { 'a', 'b' } }, ['/hedge'] = route_hedge { children = { 'a', 'b' }, delay = 1 }, "
          "['/dice'] = route_random { children = { 'a', 'b' } }, ['/static'] = route_static { body = 'x' }, ['/cors'] = route_cors { child = 'a', origins = { '*' } }, "
          "['/parts/:id'] = route_lua { f = function(rctx) local ins = sluice.req_inspector_new({ t = 'param', name = 'id' }, { t = 'header', name = 'x-user', map = { ann = 1 } }) "
          "local mut = sluice.req_mutator_new({ t = 'headercopyall', idx = 1 }, { t = 'pathcopy', idx = 1 }) local own = rctx:request_new() "
          "return function(r) ins(r) mut(own, r) lim('k') sluice.stat('n') sluice.stat('h', 0.5) sluice.shared.t:incr('x', 1, 0) sluice.shared.t:get('x') return 'ok' end end } } }");
  for (const char* path : {"/direct/views/v", "/limited/views/v", "/text", "/merge", "/failover/views/v", "/fastest/views/v", "/match/views/v", "/nested/views/v", "/parts/7",
                           "/event", "/inner", "/made", "/split/views/v", "/all/views/v", "/hedge/views/v", "/dice/views/v", "/static", "/cors/views/v"}) {
    CAPTURE(path);
    CHECK(of_warm_requests(w, path) == 0);
  }
}

TEST_CASE("accessors and waits make no Lua objects: the memory of a VM stands still while they are called") {
  World w("shared { t = '64KiB' } stats { n = 'counter', h = 'histogram' } " +
          route("local function all() local res = rctx:result(h.a) r:method() r:path() r:full_path() r:target() r:param(1) r:query('q') r:header('x-user') r:body() r:key() r:tag() r:client_ip() r:http_version() "
                "res:ok() res:hit() res:status() res:header('content-type') res:body() res:vlen() res:revision() res:error() res:elapsed() res:backend() "
                "rctx:best_result(hs) rctx:worst_result(hs) rctx:res_ok(h.a) rctx:res_good(h.a) rctx:res_any(h.b) rctx:cfd() rctx:client_ip() rctx:cancelled() "
                "sluice.time_mono_millis() sluice.time_real_millis() sluice.stat('n') sluice.stat('h', 2) lim('k') ins(r) look(res) mut(own, r, 'text') edit(answer, res, 201) "
                "own:set_path('/objects/k') own:set_header('X-A', 'b') own:set_query('n', 1) own:set_body('text') own:set_method('PUT') own:ltrimpath(8) answer:set_status(200) "
                "sluice.shared.t:incr('x', 1, 0) sluice.shared.t:get('x') sluice.shared.t:set('y', 'text') sluice.shared.t:get('y') sluice.shared.t:ttl('y') sluice.log_reqsample(1000, 0, true, r, res) end "
                "rctx:view(h.a, 'v') rctx:view(h.b, 'v') rctx:wait_cond(2) all() local before = collectgarbage('count') for i = 1, 1000 do all() end return tostring(collectgarbage('count') - before)",
                "local hs, own, answer, lim = { h.a, h.b }, rctx:request_new(), rctx:response_new(), made "
                "local ins = sluice.req_inspector_new({ t = 'pathsegment', n = 1 }, { t = 'queryint', name = 'q' }, { t = 'headeris', name = 'x', str = 'y' }) "
                "local look = sluice.res_inspector_new({ t = 'statusclass' }, { t = 'header', name = 'content-type' }) "
                "local mut = sluice.req_mutator_new({ t = 'pathcopy', idx = 1 }, { t = 'headerset', name = 'X-B', str = 'c' }, { t = 'bodycopy', idx = 2 }) "
                "local edit = sluice.res_mutator_new({ t = 'statuscopy', idx = 2 }, { t = 'headercopyall', idx = 1 })").insert(0, "local made = sluice.ratelim_tbf { limit = 1e9, rate = 1e9, keys = 100 } "));
  w.services.evaluates = true;
  w.get("/?q=1");
  CHECK(w.get("/?q=1")->body == "0");
}

TEST_CASE("a warm request allocates nothing on its way through the whole worker, from the socket and back") {
  const TempFile file(std::string(kStores) + "routes { map = { ['/text'] = function(r) return 'hello' end, ['/direct'] = 'a', "
                      "['/merge'] = route_lua { children = { a = 'a', b = 'b' }, f = function(rctx, h) return function(r) rctx:view(h.a, 'v') rctx:view(h.b, 'v') rctx:wait_cond(2) return rctx:result(h.b) end end }, "
                      "['/failover'] = route_failover { children = { 'a', 'b' } }, ['/auth'] = route_auth { child = 'a', tokens = { 'a-long-secret' } } } }");
  auto reader = make_config_reader(nullptr);
  auto config = reader->read(file.path());
  REQUIRE(config.has_value());
  sluice::proxy::test::FakeClock clock;
  const auto settings = std::make_shared<Settings>((*config)->settings());
  ProcessLimits limits(*settings);
  Inbox<EventPtr> results("test.results", 65'536);
  Inbox<News> news("test.news", 100);
  Counters counters;
  auto engine = std::make_unique<TestServices>();
  engine->evaluates = true;
  WorkerLoop loop(0, limits, results, news, counters, std::move(engine), clock);
  Generation g;
  g.number = 1;
  g.settings = settings;
  auto routes = (*config)->make_routes(stores_of(**config), 0);
  if (!routes) FAIL(routes.error());
  g.routes = std::move(*routes);
  loop.install(std::move(g));
  int fds[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
  fcntl(fds[0], F_SETFL, O_NONBLOCK);
  loop.adopt(fds[0], "192.0.2.1");
  char answer[4096];
  for (const char* path : {"/text", "/direct/views/v", "/merge", "/failover/views/v", "/auth/views/v"}) {
    CAPTURE(path);
    const std::string request = "GET " + std::string(path) + " HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer a-long-secret\r\n\r\n";
    std::string got;
    const auto run = [&](int n) {
      int good = 0;
      for (int i = 0; i < n; ++i) {
        if (send(fds[1], request.data(), request.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(request.size())) return good;
        loop.turn(Loop::Wait::look);
        loop.turn(Loop::Wait::look);
        const ssize_t size = recv(fds[1], answer, sizeof answer, MSG_DONTWAIT);
        if (size > 12 && std::string_view(answer, 12) == "HTTP/1.1 200") ++good;
      }
      return good;
    };
    CHECK(run(200) == 200);
    const std::uint64_t before = allocations();
    const int good = run(1000);
    CHECK(allocations() - before == 0);
    CHECK(good == 1000);
  }
  close(fds[1]);
  loop.end();
  news.drain([](News) {});
}
