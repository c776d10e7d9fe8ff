// The handlers of the route library that ask several children, choose one, or answer by themselves.
#include <cstdlib>

#include "t/lua/harness.h"

using namespace sluice::lua::harness;

namespace {

std::string at(std::string_view handler) { return "routes { map = { ['/'] = " + std::string(handler) + " } }"; }

std::string header_of(const TestExchange& x, std::string_view name) {
  const std::string line = std::string(name) + ": ";
  const std::size_t from = x.headers.find(line);
  if (from == x.headers.npos) return "-";
  return x.headers.substr(from + line.size(), x.headers.find("\r\n", from) - from - line.size());
}

std::unique_ptr<TestExchange> ask(World& w, Method method, const char* path, std::initializer_list<Header> headers) {
  auto x = std::make_unique<TestExchange>(method, path);
  x->edit().headers = headers;
  w.start(*x);
  w.services.deliver_all();
  REQUIRE(x->times == 1);
  return x;
}

}  // namespace

TEST_CASE("allfastest answers with the first that is OK, with miss the first that is GOOD, else the best that came") {
  for (const bool miss : {false, true}) {
    CAPTURE(miss);
    World w(at(std::string("route_allfastest { children = { 'a', 'b', 'c' }, wait = 1, miss = ") + (miss ? "true }" : "false }")));
    w.services.answerer = [](Event& e) { e.answer.status = e.store->name() == "a" ? 503 : e.store->name() == "b" ? 404 : 200; };
    auto x = w.begin(Method::get, "/objects/k");
    REQUIRE(w.services.sent.size() == 3);
    w.services.deliver(0);
    CHECK(x->times == 0);
    w.services.deliver(1);
    CHECK(x->times == (miss ? 0 : 1));
    w.services.deliver(2);
    CHECK(x->status == (miss ? 200 : 404));
    w.services.sent.clear();
    // Nobody in time, or only one of them.
    x = w.begin(Method::get, "/objects/k");
    w.services.deliver(0);
    w.services.pass(1'000'000);
    CHECK(x->status == 503);
    w.services.deliver_all();
    x = w.begin(Method::get, "/objects/k");
    w.services.pass(1'000'000);
    CHECK(x->status == 504);
    CHECK(header_of(*x, "X-Pure-Error") == "deadline");
    w.services.deliver_all();
  }
}

TEST_CASE("allasync answers before anybody has, and all get it") {
  World w(at("route_allasync { children = { 'a', 'b' } }"));
  auto x = w.begin(Method::post, "/inputs/turn", "x");
  CHECK(x->status == 202);
  CHECK(w.services.sent.size() == 2);
  w.services.deliver_all();
}

TEST_CASE("hedge asks the next one after the delay or an error, and writes go to the first alone") {
  World w(at("route_hedge { children = { 'a', 'b', 'c' }, delay = 0.1 }"));
  auto x = w.begin(Method::get, "/objects/k");
  CHECK(w.services.sent.size() == 1);
  w.services.pass(99'000);
  CHECK(w.services.sent.size() == 1);
  w.services.pass(2'000);
  CHECK(w.services.sent.size() == 2);
  w.services.deliver(1);
  CHECK(x->body == "b show k");
  w.services.deliver_all();

  w.services.answerer = [](Event& e) { e.answer.status = e.store->name() == "c" ? 404 : 503; };
  x = w.begin(Method::get, "/objects/k");
  w.services.deliver(0);
  CHECK(w.services.sent.size() == 2);
  w.services.deliver(1);
  CHECK(w.services.sent.size() == 3);
  w.services.deliver(2);
  CHECK(x->status == 404);
  w.services.sent.clear();

  x = w.begin(Method::post, "/inputs/turn", "x");
  w.services.pass(1'000'000);
  CHECK(w.services.sent.size() == 1);
  w.services.deliver_all();
  CHECK(x->status == 503);
}

TEST_CASE("split answers with a's, shadow copies its percentage aside") {
  World w("routes { map = { ['/s'] = route_split { child_a = 'a', child_b = 'b' }, ['/all'] = route_shadow { child = 'a', shadow = 'b' }, "
          "['/none'] = route_shadow { child = 'a', shadow = 'b', percent = 0 }, ['/half'] = route_shadow { child = 'a', shadow = 'b', percent = 50 } } }");
  const auto sent = [&](const char* path) {
    auto x = w.begin(Method::get, path);
    const std::size_t n = w.services.sent.size();
    w.services.deliver_all();
    CHECK(x->body == "a show k");
    return n;
  };
  CHECK(sent("/s/objects/k") == 2);
  CHECK(sent("/all/objects/k") == 2);
  CHECK(sent("/none/objects/k") == 1);
  std::size_t copies = 0;
  for (int i = 0; i < 400; ++i) copies += sent("/half/objects/k") - 1;
  CHECK(copies > 130);
  CHECK(copies < 270);
}

TEST_CASE("random and weighted spread over their children") {
  World w("routes { map = { ['/r'] = route_random { children = { 'a', 'b' } }, ['/w'] = route_weighted { children = { 'a', 'b', 'c' }, weights = { 1, 0, 3 } } } }");
  std::map<char, int> random, weighted;
  for (int i = 0; i < 400; ++i) {
    ++random[w.get("/r/objects/k")->body[0]];
    ++weighted[w.get("/w/objects/k")->body[0]];
  }
  CHECK(random['a'] > 130);
  CHECK(random['b'] > 130);
  CHECK(weighted['a'] > 50);
  CHECK(weighted['a'] < 150);
  CHECK(weighted['b'] == 0);
  CHECK(weighted['c'] > 250);
}

TEST_CASE("match chooses by a header, its token, a query field or a function") {
  World w("local function m(t) t.child = 'b' t.otherwise = 'a' return route_match(t) end routes { map = { ['/h'] = m { header = 'X-Beta' }, ['/i'] = m { header = 'X-Beta', is = '1' }, "
          "['/t'] = m { header = 'Accept', token = 'text/html' }, ['/q'] = m { query = 'user', is = '7' }, ['/f'] = m { f = function(r) return r:path():find('beta') end } } }");
  CHECK(ask(w, Method::get, "/h/objects/k", {{"x-beta", "0"}})->body == "b show k");
  CHECK(ask(w, Method::get, "/h/objects/k", {})->body == "a show k");
  CHECK(ask(w, Method::get, "/i/objects/k", {{"x-beta", "0"}})->body == "a show k");
  CHECK(ask(w, Method::get, "/i/objects/k", {{"x-beta", "1"}})->body == "b show k");
  CHECK(ask(w, Method::get, "/t/objects/k", {{"Accept", "text/plain, text/html;q=0.5"}})->body == "b show k");
  CHECK(ask(w, Method::get, "/q/views/v?user=7", {})->body == "b view v user=7");
  CHECK(ask(w, Method::get, "/q/views/v?user=8", {})->body == "a view v user=8");
  CHECK(ask(w, Method::get, "/f/objects/beta", {})->body == "b show beta");
}

TEST_CASE("static answers the same again and again, from the config or a file beside it") {
  TempFile file("routes { map = { ['/b'] = route_static { body = 'text', status = 203, type = 'text/css', headers = { ['X-One'] = 1 } }, ['/f'] = route_static { file = 'page.html', type = 'text/html' } } }");
  file.add("page.html", "<p>one");
  auto reader = make_config_reader(nullptr);
  auto read = reader->read(file.path());
  REQUIRE(read);
  file.add("page.html", "<p>two");
  auto made = (*read)->make_routes(stores_of(**read), 0);
  REQUIRE(made);
  TestServices services;
  (*made)->attach(services);
  const auto get = [&](const char* path) {
    auto x = std::make_unique<TestExchange>(Method::get, path);
    Match match;
    (*made)->find(Method::get, path, match)->start(*x, match, services);
    return x;
  };
  for (int i = 0; i < 3; ++i) {
    const auto x = get("/b");
    CHECK(x->status == 203);
    CHECK(x->body == "text");
    CHECK(header_of(*x, "Content-Type") == "text/css");
    CHECK(header_of(*x, "X-One") == "1");
    CHECK(get("/f")->body == "<p>one");
  }
}

TEST_CASE("redirect goes where it says, with path and query when they are kept") {
  World w("routes { map = { ['/a'] = route_redirect { to = 'https://example.com/x' }, ['/b'] = route_redirect { to = 'https://example.com/', status = 308, keep = true } } }", false);
  auto x = w.get("/a/y?z=1");
  CHECK(x->status == 302);
  CHECK(header_of(*x, "Location") == "https://example.com/x");
  TestExchange y(Method::get, "/b/one two?q=a b&r");
  y.edit().target = "/b/one%20two?q=a%20b&r";
  w.start(y);
  CHECK(y.status == 308);
  CHECK(header_of(y, "Location") == "https://example.com/one%20two?q=a%20b&r");
}

TEST_CASE("auth lets in who shows a token or a password, and tells the others how") {
  World w(at("route_auth { child = 'a', tokens = { 'secret-token' }, users = { Aladdin = 'open sesame' }, realm = 'cave' }"));
  const auto with = [&](const char* value) { return ask(w, Method::get, "/objects/k", {{"Authorization", value}})->status; };
  CHECK(with("Bearer secret-token") == 200);
  CHECK(with("bearer  secret-token") == 200);
  CHECK(with("Bearer secret-tokem") == 401);
  CHECK(with("Basic secret-token") == 401);
  CHECK(with("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==") == 200);
  CHECK(with("Bearer QWxhZGRpbjpvcGVuIHNlc2FtZQ==") == 401);
  CHECK(with("secret-token") == 401);
  const auto x = ask(w, Method::get, "/objects/k", {});
  CHECK(x->headers.find("WWW-Authenticate: Bearer realm=\"cave\"\r\n") != std::string::npos);
  CHECK(x->headers.find("WWW-Authenticate: Basic realm=\"cave\", charset=\"UTF-8\"\r\n") != std::string::npos);
  CHECK(header_of(*x, "X-Pure-Error") == "unauthorized");
}

TEST_CASE("cors answers preflights and adds its headers to answers") {
  World w("routes { map = { ['/some'] = route_cors { child = 'a', origins = { 'https://one.example', 'https://two.example' }, headers = { 'X-Key' }, max_age = 60, credentials = true }, "
          "['/any'] = route_cors { child = 'a', origins = { '*' }, expose = { 'ETag' } } } }");
  auto x = ask(w, Method::options, "/some/objects/k", {{"Origin", "https://two.example"}, {"Access-Control-Request-Method", "PUT"}});
  CHECK(x->status == 204);
  CHECK(header_of(*x, "Access-Control-Allow-Origin") == "https://two.example");
  CHECK(header_of(*x, "Access-Control-Allow-Methods") == "GET, HEAD, POST, PUT, DELETE");
  CHECK(header_of(*x, "Access-Control-Allow-Headers") == "X-Key");
  CHECK(header_of(*x, "Access-Control-Max-Age") == "60");
  CHECK(header_of(*x, "Access-Control-Allow-Credentials") == "true");
  CHECK(header_of(*x, "Vary") == "Origin");
  x = ask(w, Method::options, "/some/objects/k", {{"Origin", "https://evil.example"}, {"Access-Control-Request-Method", "PUT"}});
  CHECK(x->status == 403);
  CHECK(header_of(*x, "Access-Control-Allow-Origin") == "-");
  x = ask(w, Method::get, "/some/objects/k", {{"Origin", "https://one.example"}});
  CHECK(x->body == "a show k");
  CHECK(header_of(*x, "Access-Control-Allow-Origin") == "https://one.example");
  x = ask(w, Method::get, "/some/objects/k", {});
  CHECK(header_of(*x, "Access-Control-Allow-Origin") == "-");
  CHECK(header_of(*x, "Vary") == "Origin");
  x = ask(w, Method::get, "/any/objects/k", {{"Origin", "https://x.example"}});
  CHECK(header_of(*x, "Access-Control-Allow-Origin") == "*");
  CHECK(header_of(*x, "Access-Control-Expose-Headers") == "ETag");
  CHECK(header_of(*x, "Vary") == "-");
}

TEST_CASE("a route may add headers to a result that it passes on") {
  World w(route("local res = rctx:get_and_wait(h.a, 'k') if r:query('bad') then return res, 'x' end return res, { ['X-More'] = { 'a', 'b' }, ['Content-Type'] = 'text/x' }"));
  const auto x = w.get("/");
  CHECK(x->body == "a show k");
  CHECK(x->headers.find("X-More: a\r\nX-More: b\r\n") != std::string::npos);
  CHECK(x->type.empty());
  CHECK(w.get("/?bad=1")->status == 500);
  CHECK(w.log.has("a route returned a response and a string"));
}

TEST_CASE("handlers refuse options that cannot be") {
  struct Case { std::string text, says; };
  const std::string a = "stores { a = { module = 'm', path = 'p' } }\nroutes { default = ";
  const Case cases[] = {
      {a + "route_hedge { children = { 'a' } } }", "t.lua:2: route_hedge needs `delay`"},
      {a + "route_shadow { child = 'a', shadow = 'a', percent = 101 } }", "t.lua:2: route_shadow: `percent` goes from 0 to 100"},
      {a + "route_weighted { children = { 'a' }, weights = { 1, 2 } } }", "t.lua:2: route_weighted: there are 1 children and 2 weights"},
      {a + "route_weighted { children = { 'a' }, weights = { 0 } } }", "t.lua:2: route_weighted: all weights are 0"},
      {a + "route_weighted { children = { 'a' }, weights = { 'x' } } }", "t.lua:2: route_weighted: a weight is a number from 0"},
      {a + "route_match { child = 'a', otherwise = 'a' } }", "t.lua:2: route_match needs one of `header`, `query`, `body`, `json` and `f`"},
      {a + "route_match { child = 'a', otherwise = 'a', query = 'x', token = 'y' } }", "t.lua:2: route_match: `token` goes with `header`"},
      {a + "route_static {} }", "t.lua:2: route_static needs `body` or `file`"},
      {a + "route_static { file = 'none.txt' } }", "t.lua:2: route_static: "},
      {a + "route_static { body = 'x', status = 99 } }", "t.lua:2: route_static: a status is 200 to 599"},
      {a + "route_static { body = 'x', headers = { Date = 'x' } } }", "t.lua:2: route_static: 'Date' is the server's own"},
      {a + "route_redirect { to = '/x', status = 200 } }", "t.lua:2: route_redirect: `status` is 301"},
      {a + "route_redirect { to = 'a b' } }", "t.lua:2: route_redirect: `to` is an address without spaces"},
      {a + "route_auth { child = 'a' } }", "t.lua:2: route_auth needs `tokens`, `users` or `tls_names`"},
      {a + "route_auth { child = 'a', tokens = { 'short' } } }", "t.lua:2: route_auth: a token is a text of at least 8 bytes"},
      {a + "route_auth { child = 'a', users = { ['a:b'] = 'x' } } }", "t.lua:2: route_auth: `users` is a table"},
      {a + "route_cors { child = 'a', origins = { '*' }, credentials = true } }", "t.lua:2: route_cors: `credentials` goes not with"},
      {a + "route_cors { child = 'a', origins = {} } }", "t.lua:2: route_cors: `origins` is a list"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.text);
    const std::string why = error_of(c.text);
    CAPTURE(why);
    CHECK(why.find(c.says) == 0);
  }
}

TEST_CASE("a set is a list of children, and of one by zones the local zone comes first") {
  const auto order = [](std::string_view before, std::string_view options = "") {
    World w("pools { set_flat = { 'c', 'a' }, set_zoned = { east = { 'b' }, west = { 'c', 'a' } } } " + std::string(before) +
            " routes { map = { ['/'] = route_failover { children = 'set_zoned', miss = true" + std::string(options) + " }, ['/flat'] = route_failover { children = 'set_flat', miss = true }, "
            "['/lua'] = route_lua { children = { all = 'set_flat', one = 'b' }, f = function(rctx, h) return function(r) rctx:enqueue(rctx:request_new('GET', '/views/v'), h.all) "
            "return #h.all .. ' ' .. rctx:wait_cond(2) end end } } }");
    std::string asked;
    w.services.answerer = [&](Event& e) {
      asked += e.store->name();
      e.answer.status = 404;
    };
    w.get("/objects/k");
    asked += " ";
    w.get("/flat/objects/k");
    CHECK(w.get("/lua")->body == "2 2");
    return asked.substr(0, 6);
  };
  CHECK(order("") == "bca ca");
  CHECK(order("local_zone 'west'") == "cab ca");
  CHECK(order("local_zone 'west'", ", local_zone = 'east'") == "bca ca");
  CHECK(order("local_zone 'nowhere'") == "bca ca");
}

TEST_CASE("the local zone may come from the environment or a file") {
  setenv("SLUICE_TEST_ZONE", "west", 1);
  const std::string text = std::string(kStores) + "pools { set_z = { east = { 'a' }, west = { 'b' } } } routes { map = { ['/'] = route_failover { children = 'set_z' } } } ";
  for (const char* how : {"local_zone_from_env 'SLUICE_TEST_ZONE'", "local_zone_from_file 'zone.txt'"}) {
    TempFile file(text + how);
    file.add("zone.txt", "west\n");
    auto reader = make_config_reader(nullptr);
    auto read = reader->read(file.path());
    if (!read) FAIL(read.error());
    auto made = (*read)->make_routes(stores_of(**read), 0);
    REQUIRE(made);
    TestServices services;
    (*made)->attach(services);
    services.evaluates = true;
    TestExchange x(Method::get, "/views/v");
    Match match;
    (*made)->find(Method::get, "/views/v", match)->start(x, match, services);
    CHECK(x.body == "b view v");
  }
  unsetenv("SLUICE_TEST_ZONE");
}

TEST_CASE("sets and zones that cannot be are refused") {
  struct Case { std::string text, says; };
  const std::string a = "stores { a = { module = 'm', path = 'p' } }\n";
  const Case cases[] = {
      {a + "pools { set_x = {} }", "t.lua:2: set `set_x` is a list of stores and pools"},
      {a + "pools { set_x = { 'b' } }", "t.lua:2: set `set_x`: there is no store or pool `b`"},
      {a + "pools { set_x = { east = { 'aa' } } }", "t.lua:2: set `set_x`: there is no store or pool `aa`; did you mean `a`?"},
      {a + "pools { set_x = { east = 'a' } }", "t.lua:2: set `set_x` is a list of stores and pools"},
      {a + "pools { set_x = { { stores = { 'a' } } } }", "t.lua:2: set `set_x`: its lists have names"},
      {a + "pools { set_x = { 'a' } }\nroutes { default = route_direct { child = 'set_x' } }", "t.lua:3: `set_x` is a set: it is all of a `children`"},
      {a + "pools { set_x = { 'a' } }\nroutes { default = route_allsync { children = 'set_y' } }", "t.lua:3: there is no set `set_y`; did you mean `set_x`?"},
      {a + "pools { set_x = { 'a' } }\nroutes { default = route_failover { children = 'set_x', local_zone = 'z' } }", "t.lua:3: set `set_x` has no zone `z`"},
      {a + "routes { default = route_failover { children = { 'a' }, local_zone = 'z' } }", "t.lua:2: `local_zone` goes with"},
      {a + "local_zone(5)", "t.lua:2: local_zone: a zone is a name"},
      {a + "local_zone 'x' local_zone 'y'", "t.lua:2: the local zone is said twice"},
      {a + "local_zone_from_env 'SLUICE_NO_SUCH_VARIABLE'", "t.lua:2: local_zone_from_env: a zone is a name"},
      {a + "local_zone_from_file 'none.txt'", "t.lua:2: local_zone_from_file: "},
  };
  for (const Case& c : cases) {
    CAPTURE(c.text);
    const std::string why = error_of(c.text);
    CAPTURE(why);
    CHECK(why.find(c.says) == 0);
  }
}
