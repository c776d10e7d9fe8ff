// The route library over the lower layer, routers, pools and routes inside routes.
#include "t/lua/harness.h"

using namespace sluice::lua::harness;

TEST_CASE("prefixes, patterns, methods and the default lead where they say") {
  World w("routes { map = { ['/a'] = route_direct { child = 'a' }, ['/n/:x'] = function(r) return r:param('x') end, ['/s'] = 'b', "
          "['/m'] = cmdmap { GET = route_direct { child = 'c' }, POST = function() return 'posted' end } }, "
          "cmap = { DELETE = route_null {} }, default = function(r) return 'default ' .. r:path() end }");
  CHECK(w.get("/a/views/left")->body == "a view left");
  CHECK(w.get("/n/seven")->body == "seven");
  CHECK(w.get("/s/objects/k")->body == "b show k");
  CHECK(w.get("/m/views/v")->body == "c view v");
  CHECK(w.begin(Method::post, "/m")->body == "posted");
  CHECK(w.get("/else")->body == "default /else");
  CHECK(w.begin(Method::del, "/x")->error == sluice::Errc::route);
  CHECK(w.table->find(Method::put, "/m", w.match) == nullptr);
  CHECK((w.match.allow & (1u << static_cast<unsigned>(Method::head))) != 0);
}

TEST_CASE("failover asks the next on errors, on misses when told to, and on timeouts") {
  World w("routes { map = { ['/f'] = route_failover { children = { 'a', 'b', 'c' }, wait = 1 }, "
          "['/m'] = route_failover { children = { 'a', 'b' }, miss = true } } }");
  w.services.answerer = [](Event& e) { if (e.store->name() == "a") e.answer.status = 503; else if (e.store->name() == "b") e.answer.status = 404; };
  CHECK(w.get("/f/objects/k")->body == "b show k");
  CHECK(w.get("/m/objects/k")->status == 404);
  auto x = w.begin(Method::get, "/f/objects/k");
  for (int i = 0; i < 3; ++i) w.services.pass(1'000'000);
  CHECK(x->status == 504);
  w.services.deliver_all();
}

TEST_CASE("allsync asks all at once and answers the worst") {
  World w("routes { map = { ['/'] = route_allsync { children = { 'a', 'b', 'c' } } } }");
  w.services.answerer = [](Event& e) { if (e.store->name() == "b" && e.key == "k") e.answer.status = 412; };
  CHECK(w.get("/objects/k")->body == "b show k");
  CHECK(w.get("/objects/j")->body == "c show j");
}

TEST_CASE("a pool sends a key always to the same store, and keys to all of them") {
  World w("pools { p = { stores = { 'a', 'b' } } } routes { map = { ['/'] = route_direct { child = 'p' }, "
          "['/l/:k'] = route_lua { children = { p = 'p' }, f = function(rctx, h) return function(r) return rctx:get_and_wait(h.p, r:param('k')) end end } } }");
  int of_a = 0;
  for (int i = 0; i < 64; ++i) {
    const std::string key = "k" + std::to_string(i);
    const std::string direct = w.get("/objects/" + key)->body;
    CHECK(direct == w.get("/l/" + key)->body);
    of_a += direct[0] == 'a';
  }
  CHECK(of_a > 10);
  CHECK(of_a < 54);
}

TEST_CASE("routes inside routes: answers, errors, methods, parameters and slots") {
  World w("local function inner(name) return route_lua { children = { x = name }, f = function(rctx, h) return function(r) "
          "if r:query('bad') then error('oh') end local res = rctx:enqueue_and_wait(r, h.x) return res:status(), 'in ' .. res:body() .. tostring(r:param('p')) end end } end "
          "routes { map = { ['/o/:p/*rest'] = route_lua { children = { inner('a'), inner('b'), cmdmap { POST = 'c' } }, f = function(rctx, h) return function(r) "
          "rctx:enqueue(r, { h[1], h[2], h[3] }) rctx:wait_cond(3) return rctx:result(h[1]):body() .. rctx:result(h[2]):body() .. rctx:result(h[3]):status() end end } } }");
  CHECK(w.get("/o/q/objects/k")->body == "in a show kqin b show kq405");
  CHECK(w.table->slots_in_use() == 0);
  auto x = w.get("/o/q/objects/k?bad=1");
  CHECK(x->status == 200);
  CHECK(x->body.find("the route failed") == 0);
  CHECK(w.log.has("oh"));
  auto y = w.begin(Method::get, "/o/q/objects/k");
  CHECK(w.table->slots_in_use() == 3);
  w.route->client_gone(*y);
  CHECK(w.table->slots_in_use() == 0);
  w.services.deliver_all();
}

TEST_CASE("the lower layer: two stages, plain values between them, generators and hooks") {
  World w("function sluice_config_pools(old) local s = sluice.store { name = 'x', module = 'm', path = 'p' } "
          "return { one = s, two = sluice.pool({ s }), n = 7, list = { 'y', true } } end "
          "function sluice_config_routes(conf) local g = sluice.funcgen_new() local one, two = g:new_handle(conf.one), g:new_handle(conf.two) "
          "g:ready { n = 'low', a = conf.n, u = 2, f = function(rctx, n) local made = rctx:request_new() rctx:request_new() "
          "assert(not pcall(rctx.request_new, rctx)) return function(r) "
          "rctx:enqueue(r, { one, two }) rctx:wait_cond(2) return rctx:result(two):body() .. n .. conf.list[1] .. tostring(conf.list[2]) end end } "
          "sluice.attach('GET', g) sluice.attach('POST', function(r) return 'p' end) end", false);
  CHECK(w.get("/objects/k")->body == "x show k7ytrue");
  CHECK(w.begin(Method::post, "/any")->body == "p");
  CHECK(w.table->find(Method::del, "/", w.match) == nullptr);
  CHECK(w.match.allow != 0);
}

TEST_CASE("what builds routes is refused to a running route") {
  World w(route("local all = {} for _, f in ipairs { sluice.funcgen_new, function() sluice.attach('GET', function() end) end, "
                "function() routes { map = {} } end, function() settings {} end, function() require('x') end } do "
                "local ok, why = pcall(f) all[#all + 1] = tostring(ok) end return table.concat(all, ' ')"));
  CHECK(w.get("/")->body == "false false false false false");
}

TEST_CASE("the sandbox has nothing that reaches the process or the disk") {
  World w(route("local found = {} for _, n in ipairs { 'io', 'dofile', 'loadfile', 'package', 'jit', 'newproxy', 'ffi' } do if rawget(_G, n) then found[#found + 1] = n end end "
                "for _, n in ipairs { 'exit', 'execute', 'remove' } do if os[n] then found[#found + 1] = n end end if debug.sethook or debug.getregistry or string.dump then found[#found + 1] = 'debug' end "
                "if load('\\27LJ') then found[#found + 1] = 'bytecode' end if not pcall(require, 'ffi') then return table.concat(found, ' ') .. load('return 4')() end return 'ffi'"));
  CHECK(w.get("/")->body == "4");
}
