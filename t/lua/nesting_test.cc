// What stands in what: routers in routers, lists and sets as children, handlers of the config's own, and those that choose or change.
#include "t/lua/harness.h"

using namespace sluice::lua::harness;

namespace {

std::unique_ptr<TestExchange> ask(World& w, Method method, const char* path, std::string_view body = "", std::initializer_list<Header> headers = {}) {
  auto x = std::make_unique<TestExchange>(method, path, body);
  x->edit().headers = headers;
  w.start(*x);
  for (int i = 0; i < 10 && x->times == 0; ++i) w.services.deliver_all();
  w.services.deliver_all();
  REQUIRE(x->times == 1);
  return x;
}

constexpr std::uint32_t bit(Method m) { return 1u << static_cast<unsigned>(m); }

}  // namespace

TEST_CASE("a router inside a router sees what is behind the path that led to it, and keeps what was captured") {
  World w("local inner = route_map { map = { ['/stock'] = 'a', ['/users/:id'] = function(r) return r:param('tenant') .. ' ' .. r:param('id') .. ' ' .. r:path() end, "
          "['/read'] = cmdmap { GET = 'b' }, ['/deep'] = route_map { map = { ['/er'] = 'c' } } } } "
          "routes { map = { ['/api'] = inner, ['/t/:tenant/*rest'] = inner, ['/limited'] = route_ratelim { child = inner, limit = 100 }, "
          "['/words'] = route_map { mode = 'prefix', stop = ':', of = 'key', map = { u = 'a', v = cmdmap { GET = 'b' } }, default = 'c' } } }");
  CHECK(ask(w, Method::get, "/api/stock/views/v")->body == "a view v");
  CHECK(ask(w, Method::get, "/limited/stock/views/v")->body == "a view v");
  CHECK(ask(w, Method::get, "/t/acme/users/7")->body == "acme 7 /t/acme/users/7");
  CHECK(ask(w, Method::get, "/api/deep/er/views/v")->body == "c view v");
  CHECK(ask(w, Method::head, "/api/read/views/v")->body == "b view v");
  CHECK(ask(w, Method::get, "/words/objects/u:1")->status == 400);   // the store's own word about such a key
  for (const char* path : {"/api/nowhere", "/limited/nowhere", "/api", "/api/deep/nowhere"}) {
    const auto x = ask(w, Method::get, path);
    CHECK(x->status == 404);
    CHECK(x->error == sluice::Errc::route);
  }
  const auto refused = ask(w, Method::post, "/limited/read/inputs/i", "x");
  CHECK(refused->status == 405);
  CHECK(refused->allow == (bit(Method::get) | bit(Method::head) | bit(Method::options)));
  CHECK(ask(w, Method::options, "/api/read/views/v")->status == 204);
}

TEST_CASE("the lower layer's routers are handles, entries and defaults too") {
  World w("function sluice_config_pools() return { a = sluice.store { name = 'a', module = 'm', path = 'p' } } end "
          "function sluice_config_routes(conf) local inner = sluice.router_new { map = { ['/one'] = conf.a } } "
          "local words = sluice.router_new { mode = 'prefix', map = { w = conf.a } } "
          "local g = sluice.funcgen_new() local h, i = g:new_handle(inner), g:new_handle(words) g:ready { f = function(rctx) return function(r) "
          "local q = rctx:request_new('GET', '/one/views/v') return rctx:enqueue_and_wait(q, h):body() .. ' ' .. rctx:enqueue_and_wait(r, h):status() end end } "
          "sluice.attach(sluice.ANY, sluice.router_new { map = { ['/in'] = inner, ['/g'] = g }, default = inner }) end", false);
  CHECK(ask(w, Method::get, "/in/one/views/v")->body == "a view v");
  CHECK(ask(w, Method::get, "/one/views/v")->body == "a view v");
  CHECK(ask(w, Method::get, "/g/x")->body == "a view v 404");
}

TEST_CASE("a client that leaves is heard of by whoever holds its request, behind routers, limits and caches") {
  World w("local slow = route_lua { f = function(rctx) return function(r) rctx:sleep(5) return 'x' end end } "
          "local inner = route_map { map = { ['/slow'] = cmdmap { GET = slow }, ['/a'] = 'a' } } "
          "local guarded = route_ratelim { child = inner, limit = 100 } "
          "routes { map = { ['/m'] = inner, ['/l'] = guarded, ['/c'] = route_cache { child = guarded, ttl = 1 }, "
          "['/lc'] = route_ratelim { limit = 100, child = route_cache { ttl = 1, child = inner } }, ['/mm'] = route_map { map = { ['/x'] = route_cache { ttl = 1, child = inner } } } } }");
  for (const char* path : {"/m/slow", "/l/slow", "/c/slow", "/lc/slow", "/mm/x/slow", "/m/a/objects/k", "/l/a/objects/k", "/c/a/objects/k", "/mm/x/a/objects/k"}) {
    for (const bool own : {false, true}) {
      CAPTURE(path);
      auto x = std::make_unique<TestExchange>(Method::get, path);
      if (own) x->edit().headers = {{"Cookie", "passes=by"}};
      w.start(*x);
      CHECK(x->times == 0);
      x->is_gone = true;
      w.route->client_gone(*x);
      CHECK(x->times == 1);
      w.services.deliver_all();
      CHECK(w.table->slots_in_use() == 0);
    }
  }
}

TEST_CASE("children may be a set, a list in a list, one alone, and a handler of several is one handler for each") {
  World w("pools { set_s = { 'b', 'c' } } local function miss(children) return route_failover { children = children, miss = true } end "
          "routes { map = { ['/one'] = miss('a'), ['/mixed'] = miss { 'c', 'set_s', { 'a', { 'b' } } }, ['/each'] = miss(route_ratelim { child = 'set_s', limit = 100 }), "
          "['/both'] = miss { 'a', route_ratelim { child = { 'c', 'b' }, limit = 100 } }, ['/f'] = miss { function(r) return 404, 'f' end, 'a' }, "
          "['/lua'] = route_lua { children = { x = route_direct { child = 'set_s' }, y = function() return 'y' end }, f = function(rctx, h) return function(r) return #h.x .. rctx:enqueue_and_wait(r, h.y):body() end end } } }");
  std::string asked;
  w.services.evaluates = true;
  w.services.answerer = [&](Event& e) {
    asked += e.store->name();
    e.answer.status = 404;
  };
  const auto order = [&](const char* path) {
    asked.clear();
    ask(w, Method::get, path);
    return asked;
  };
  CHECK(order("/one/objects/k") == "a");
  CHECK(order("/mixed/objects/k") == "cbcab");
  CHECK(order("/each/objects/k") == "bc");
  CHECK(order("/both/objects/k") == "acb");
  CHECK(order("/f/objects/k") == "a");
  CHECK(ask(w, Method::get, "/lua")->body == "2y");
}

TEST_CASE("a cmdmap may stand below what passes on") {
  World w("routes { map = { ['/l'] = route_ratelim { limit = 100, child = cmdmap { GET = 'a', POST = 'b' } }, "
          "['/c'] = route_cache { ttl = 1, child = cmdmap { GET = 'a', POST = 'b' } } } }");
  for (const char* path : {"/l/inputs/i", "/c/inputs/i"}) {
    CHECK(ask(w, Method::post, path, "x")->body == "b input i [x]");
    const auto x = ask(w, Method::put, path, "x");
    CHECK(x->status == 405);
    CHECK(x->allow == (bit(Method::get) | bit(Method::head) | bit(Method::post) | bit(Method::options)));
  }
}

TEST_CASE("a function of the request is the key of a limit, and who has none is not limited") {
  for (const char* more : {"", ", global = true, name = 'g'", ", keys = 10"}) {
    World w(std::string("routes { map = { ['/'] = route_ratelim { child = 'a', limit = 1, rate = 0.5, key = function(r) return r:query('user') end") + more + " } } }");
    CHECK(ask(w, Method::get, "/views/v?user=ann")->status == 200);
    const auto x = ask(w, Method::get, "/views/v?user=ann");
    CHECK(x->status == 429);
    CHECK(x->headers.find("Retry-After: 2\r\n") != std::string::npos);
    CHECK(x->headers.find("X-Pure-Error: rate\r\n") != std::string::npos);
    CHECK(ask(w, Method::get, "/views/v?user=bob")->status == 200);
    for (int i = 0; i < 3; ++i) CHECK(ask(w, Method::get, "/views/v")->status == 200);
    w.services.now_us += 2'000'000;
    CHECK(ask(w, Method::get, "/views/v?user=ann")->status == 200);
  }
}

TEST_CASE("match looks into a body, as text or as JSON") {
  World w("local function m(t) t.child = 'b' t.otherwise = 'a' return route_match(t) end routes { map = { ['/t'] = m { body = 'a.c' }, "
          "['/p'] = m { json = 'user.plan', is = 'gold' }, ['/n'] = m { json = 'n', is = 5 }, ['/b'] = m { json = 'on', is = false }, ['/h'] = m { json = 'user.plan' } } }");
  const auto who = [&](const char* path, std::string_view body) { return ask(w, Method::post, path, body)->body.substr(0, 1); };
  CHECK(who("/t/inputs/i", "xa.cx") == "b");
  CHECK(who("/t/inputs/i", "xabcx") == "a");
  CHECK(who("/t/inputs/i", "a.") == "a");
  CHECK(who("/p/inputs/i", R"({"user":{"plan":"gold"}})") == "b");
  CHECK(who("/p/inputs/i", R"({"user":{"plan":"tin"}})") == "a");
  CHECK(who("/p/inputs/i", R"({"user":"gold"})") == "a");
  CHECK(who("/p/inputs/i", "no json") == "a");
  CHECK(who("/n/inputs/i", R"({"n":5})") == "b");
  CHECK(who("/n/inputs/i", R"({"n":"5"})") == "a");
  CHECK(who("/b/inputs/i", R"({"on":false})") == "b");
  CHECK(who("/b/inputs/i", R"({})") == "a");
  CHECK(who("/h/inputs/i", R"({"user":{"plan":null}})") == "a");
  CHECK(who("/h/inputs/i", R"({"user":{"plan":1}})") == "b");
}

TEST_CASE("ttl sets a field of inputs, or brings it within bounds, and lets nothing else be written") {
  World w("routes { map = { ['/set'] = route_ttl { child = 'a', ttl = 60 }, ['/in'] = route_ttl { child = 'a', field = 'lease', min = 10, max = 100, default = 50, inputs = { 'take' } }, "
          "['/most'] = route_ttl { child = 'a', max = 5 } } }");
  CHECK(ask(w, Method::post, "/set/inputs/i?user=7&ttl=1", "x")->body == "a input i user=7&ttl=60 [x]");
  CHECK(ask(w, Method::post, "/set/inputs/i")->body == "a input i ttl=60");
  CHECK(ask(w, Method::get, "/set/views/v?ttl=1")->body == "a view v ttl=1");
  CHECK(ask(w, Method::post, "/in/inputs/take?lease=5")->body == "a input take lease=10");
  CHECK(ask(w, Method::post, "/in/inputs/take?lease=500")->body == "a input take lease=100");
  CHECK(ask(w, Method::post, "/in/inputs/take?lease=2e1")->body == "a input take lease=2e1");
  CHECK(ask(w, Method::post, "/in/inputs/take")->body == "a input take lease=50");
  CHECK(ask(w, Method::post, "/in/inputs/other?lease=500", "x")->body == "a input other lease=500 [x]");
  CHECK(ask(w, Method::post, "/most/inputs/i", "x")->body == "a input i [x]");
  CHECK(ask(w, Method::post, "/in/inputs/take?lease=x")->status == 400);
  CHECK(ask(w, Method::post, "/in/inputs/take?lease=nan")->status == 400);
  const auto x = ask(w, Method::put, "/set/objects/k", "x");
  CHECK(x->status == 405);
  CHECK(x->headers.find("Allow: GET, HEAD, POST, OPTIONS\r\n") != std::string::npos);
}

TEST_CASE("static has a tag of its bytes, by which a client need not fetch it again") {
  World w("routes { map = { ['/s'] = route_static { body = 'text' }, ['/t'] = route_static { body = 'text', headers = { ETag = '\"mine\"' } } } }", false);
  struct Tagged final : public Exchange {
    explicit Tagged(TestExchange& from) : its(from) {}
    const Request& request() const override { return its.request(); }
    bool gone() const override { return false; }
    void answer(Response& r) override {
      tag = r.revision;
      lent = r.body.loan != nullptr && r.body.text.empty();
      its.answer(r);
    }
    bool behind_write() const override { return false; }
    void hold_writes(bool) override {}
    TestExchange& its;
    std::uint64_t tag = 0;
    bool lent = false;
  };
  const auto tag_of = [&](const char* path) {
    TestExchange x(Method::get, path);
    Tagged tagged(x);
    Match match;
    w.table->find(Method::get, path, match)->start(tagged, match, w.services);
    CHECK(x.body == "text");
    CHECK(tagged.lent);
    return tagged.tag;
  };
  CHECK(tag_of("/s") != 0);
  CHECK(tag_of("/s") == tag_of("/s"));
  CHECK(tag_of("/t") == 0);
}

TEST_CASE("handlers of the config's own have options, children and checks like ours") {
  World w("handlers { route_tagged = { options = { child = 'child!', others = 'children', header = 'string!', times = 'number' }, "
          "check = function(args) if args.times == 13 then return 'not thirteen' end end, "
          "f = function(rctx, h, args) return function(r) local n = h.others and #h.others or 0 "
          "return rctx:enqueue_and_wait(r, h.child), { [args.header] = n .. '/' .. (args.times or 1) } end end } } "
          "routes { map = { ['/x'] = route_tagged { child = 'a', header = 'X-Tag', others = { 'b', 'c' }, times = 3 }, "
          "['/y'] = route_failover { children = route_tagged { child = { 'b', 'c' }, header = 'X-Tag' } } } }");
  auto x = ask(w, Method::get, "/x/views/v");
  CHECK(x->body == "a view v");
  CHECK(x->headers.find("X-Tag: 2/3\r\n") != std::string::npos);
  x = ask(w, Method::get, "/y/views/v");
  CHECK(x->body == "b view v");
  CHECK(x->headers.find("X-Tag: 0/1\r\n") != std::string::npos);
  CHECK(w.config->explain().find("/x  route_tagged header=\"X-Tag\" times=3\n    child  store a\n    others[1]  store b\n") != std::string::npos);
}

TEST_CASE("what cannot stand where it is put is refused with a line") {
  struct Case { std::string text, says; };
  const std::string a = "stores { a = { module = 'm', path = 'p' } }\n";
  const std::string own = a + "handlers { route_own = { options = { child = 'child!' }, f = function() end } }\n";
  const Case cases[] = {
      {a + "routes { default = cmdmap { GET = cmdmap { GET = 'a' } } }", "t.lua:2: cmdmap: `GET` is a map of methods itself"},
      {a + "routes { default = cmdmap { GET = route_lua { methods = { 'GET' }, f = function() return print end } } }", "t.lua:2: cmdmap: `GET` is a map of methods itself"},
      {a + "routes { default = route_map {} }", "t.lua:2: route_map needs map, cmap or default"},
      {a + "routes { default = route_map { map = { x = 'a' } } }", "t.lua:2: a path in `map` starts with `/`: `x`"},
      {a + "routes { default = route_map { mapp = { x = 'a' } } }", "t.lua:2: route_map has no option `mapp`; did you mean `map`?"},
      {a + "routes { default = route_map { map = { ['/x'] = 'b' } } }", "t.lua:2: there is no pool or store `b`"},
      {a + "routes { default = route_map {\nmap = { ['/:x'] = 'a',\n['/:y'] = 'a' } } }", "t.lua:4: `/:"},
      {a + "routes { default = route_map { tag = 'x', default = 'a' } }", "t.lua:2: route_map has no option `tag`"},
      {a + "routes { default = route_map { mode = 'x', default = 'a' } }", "t.lua:2: route_map{}: `mode` is path, prefix or anchor"},
      {a + "routes { default = route_direct { child = { 'a', 'a' } } }", "t.lua:2: one child is needed here"},
      {a + "routes { default = route_allsync { children = { 'a', x = 'a' } } }", "t.lua:2: children are a list here"},
      {a + "routes { default = route_allsync { children = 'b' } }", "t.lua:2: there is no pool or store `b`"},
      {a + "routes { default = route_match { child = 'a', otherwise = 'a', body = '' } }", "t.lua:2: route_match: `body` is a text"},
      {a + "routes { default = route_match { child = 'a', otherwise = 'a', json = '.' } }", "t.lua:2: route_match: `json` names a field"},
      {a + "routes { default = route_match { child = 'a', otherwise = 'a', header = 'x', is = 5 } }", "t.lua:2: route_match: `is` is a string here"},
      {a + "routes { default = route_match { child = 'a', otherwise = 'a', body = 'x', is = 'x' } }", "t.lua:2: route_match: `is` goes with"},
      {a + "routes { default = route_ttl { child = 'a' } }", "t.lua:2: route_ttl needs `ttl`, or `min` or `max`"},
      {a + "routes { default = route_ttl { child = 'a', ttl = 1, max = 2 } }", "t.lua:2: route_ttl: `ttl` is what every request gets"},
      {a + "routes { default = route_ttl { child = 'a', ttl = 1.5 } }", "t.lua:2: route_ttl: `ttl` is a whole number"},
      {a + "routes { default = route_ttl { child = 'a', min = 2, max = 1 } }", "t.lua:2: route_ttl: `min` is above `max`"},
      {a + "routes { default = route_ttl { child = 'a', max = 1, default = 2 } }", "t.lua:2: route_ttl: `default` is not from `min` to `max`"},
      {a + "routes { default = route_ttl { child = 'a', ttl = 1, field = 'a b' } }", "t.lua:2: route_ttl: `field` is the name"},
      {a + "routes { default = route_ttl { child = 'a', ttl = 1, inputs = { 5 } } }", "t.lua:2: route_ttl: `inputs` is a list of names"},
      {a + "handlers { own = { f = function() end } }", "t.lua:2: a handler is called route_NAME"},
      {a + "handlers { route_direct = { f = function() end } }", "t.lua:2: handler `route_direct` is there already"},
      {a + "handlers { route_own = 5 }", "t.lua:2: handlers { route_NAME"},
      {a + "handlers { route_own = {} }", "t.lua:2: route_own: `f` is a function"},
      {a + "handlers { route_own = { f = print, option = {} } }", "t.lua:2: a handler has no `option`; did you mean `options`?"},
      {a + "handlers { route_own = { f = print, options = { child = 'chld' } } }", "t.lua:2: route_own: the kind of `child` is one of boolean, child,"},
      {a + "handlers { route_own = { f = print, options = 5 } }", "t.lua:2: route_own: `options` is a table"},
      {a + "handlers { route_own = { f = print, check = 5 } }", "t.lua:2: route_own: `check` is a function"},
      {own + "routes { default = route_own { chld = 'a' } }", "t.lua:3: route_own has no option `chld`; did you mean `child`?"},
      {own + "routes { default = route_own {} }", "t.lua:3: route_own needs `child`"},
      {own + "routes { default = route_wn { child = 'a' } }", "t.lua:3: there is no handler `route_wn`; did you mean `route_own`?"},
      {a + "handlers { route_own = { check = function() return 'bad luck' end, f = print } } routes {\ndefault = route_own {} }", "t.lua:3: route_own: bad luck"},
      {"\nsetings { workers = 1 }", "t.lua:2: attempt to call global 'setings' (a nil value); did you mean `settings`?"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.text);
    const std::string why = error_of(c.text);
    CAPTURE(why);
    CHECK(why.find(c.says) == 0);
  }
}
