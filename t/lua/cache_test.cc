// route_cache: what is kept, for how long, and that nothing stale is given.
#include "lua/answer_cache.h"
#include "t/lua/harness.h"

using namespace sluice::lua::harness;

namespace {

std::string cached(std::string_view options, std::string_view child = "'a'") {
  return "routes { map = { ['/'] = route_cache { child = " + std::string(child) + ", " + std::string(options) + " } } }";
}

// A child that counts, and answers with headers of its choice.
std::string counting(std::string_view headers) {
  return "(function() local n = 0 return route_lua { f = function() return function(r) n = n + 1 return 200, 'n' .. n, { " +
         std::string(headers) + " } end end } end)()";
}

std::string header_of(const TestExchange& x, std::string_view name) {
  const std::string line = std::string(name) + ": ";
  const std::size_t from = x.headers.find(line);
  if (from == x.headers.npos) return "-";
  return x.headers.substr(from + line.size(), x.headers.find("\r\n", from) - from - line.size());
}

std::unique_ptr<TestExchange> ask(World& w, Method method, const char* path, std::initializer_list<Header> headers = {}) {
  auto x = std::make_unique<TestExchange>(method, path);
  x->edit().headers = headers;
  w.start(*x);
  w.services.deliver_all();
  REQUIRE(x->times == 1);
  return x;
}

// A store that counts its answers.
struct Counting {
  explicit Counting(World& w) {
    w.services.evaluates = true;
    w.services.answerer = [this](Event& e) {
      ++asked;
      e.answer.revision = 7;
      e.answer.body.text = "answer " + std::to_string(asked);
    };
  }
  int asked = 0;
};

}  // namespace

TEST_CASE("an answer is kept until it is as old as the ttl, and says its age") {
  World w(cached("ttl = 10"));
  Counting store(w);
  auto x = ask(w, Method::get, "/objects/k");
  CHECK(x->body == "answer 1");
  CHECK(header_of(*x, "Age") == "-");
  w.services.now_us += 9'999'999;
  x = ask(w, Method::get, "/objects/k");
  CHECK(x->body == "answer 1");
  CHECK(header_of(*x, "Age") == "9");
  CHECK(x->type == "text/plain; charset=utf-8");
  CHECK(store.asked == 1);
  w.services.now_us += 1;
  CHECK(ask(w, Method::get, "/objects/k")->body == "answer 2");
  CHECK(ask(w, Method::get, "/objects/k")->body == "answer 2");
}

TEST_CASE("path, query and the headers named are the key, in whatever way their bytes are cut") {
  World w(cached("ttl = 10, vary = { 'Accept-Language' }"));
  Counting store(w);
  int distinct = 0;
  for (const char* path : {"/views/v", "/views/v?a=1", "/views/v?a=2", "/views/v?a=1&b=2", "/views/v?b=2&a=1", "/views/v?a=&1=b", "/views/w"}) {
    ask(w, Method::get, path);
    CHECK(store.asked == ++distinct);
    ask(w, Method::get, path);
    CHECK(store.asked == distinct);
  }
  for (const char* language : {"de", "en"}) {
    ask(w, Method::get, "/views/v", {{"accept-language", language}});
    CHECK(store.asked == ++distinct);
    ask(w, Method::get, "/views/v", {{"Accept-Language", language}});
    CHECK(store.asked == distinct);
  }
}

TEST_CASE("what is somebody's own passes by, unless the header is part of the key") {
  World w(cached("ttl = 10"));
  Counting store(w);
  ask(w, Method::get, "/views/v");
  int n = 1;
  for (const char* own : {"Authorization", "Cookie", "Range", "If-Match"}) {
    ask(w, Method::get, "/views/v", {{own, "x"}});
    CHECK(store.asked == ++n);
    ask(w, Method::get, "/views/v", {{own, "x"}});
    CHECK(store.asked == ++n);
  }
  CHECK(ask(w, Method::get, "/views/v")->body == "answer 1");
  World v(cached("ttl = 10, vary = { 'authorization' }"));
  Counting other(v);
  ask(v, Method::get, "/views/v", {{"Authorization", "ann"}});
  ask(v, Method::get, "/views/v", {{"Authorization", "ann"}});
  ask(v, Method::get, "/views/v", {{"Authorization", "bob"}});
  CHECK(other.asked == 2);
  World u(cached("ttl = 10, everybody = true"));
  Counting one(u);
  for (const char* name : {"ann", "bob"}) ask(u, Method::get, "/views/v", {{"Authorization", name}, {"Cookie", name}});
  CHECK(one.asked == 1);
}

TEST_CASE("HEAD is answered from what GET left, and leaves nothing itself") {
  World w(cached("ttl = 10"));
  Counting store(w);
  ask(w, Method::head, "/views/v");
  CHECK(ask(w, Method::get, "/views/v")->body == "answer 2");
  CHECK(header_of(*ask(w, Method::head, "/views/v"), "Age") == "0");
  CHECK(store.asked == 2);
}

TEST_CASE("answers that are no 200, too large, or that say so are not kept") {
  World w(cached("ttl = 10, bytes = '64KiB', item = 100"));
  int asked = 0;
  std::uint16_t status = 404;
  std::string body = "x";
  w.services.evaluates = true;
  w.services.answerer = [&](Event& e) {
    ++asked;
    e.answer.status = status;
    e.answer.body.text = body;
  };
  for (const std::uint16_t s : {404, 304, 503, 201}) {
    status = s;
    asked = 0;
    ask(w, Method::get, "/views/v");
    ask(w, Method::get, "/views/v");
    CHECK(asked == 2);
  }
  status = 200;
  body.assign(101, 'x');
  asked = 0;
  ask(w, Method::get, "/views/v");
  ask(w, Method::get, "/views/v");
  CHECK(asked == 2);
  body.assign(100, 'x');
  ask(w, Method::get, "/views/v");
  ask(w, Method::get, "/views/v");
  CHECK(asked == 3);

  struct Case { const char* headers; bool kept; };
  const Case cases[] = {{"['Set-Cookie'] = 'a=b'", false}, {"['Cache-Control'] = 'no-store'", false}, {"['Cache-Control'] = 'public, Private'", false},
                        {"['Cache-Control'] = 'no-cache'", false}, {"['Cache-Control'] = 'max-age=0'", false}, {"['Cache-Control'] = 'max-age=x'", false},
                        {"['Cache-Control'] = 'max-age=5'", true}, {"['Cache-Control'] = 'max-age=0, s-maxage=5'", true}, {"Vary = 'Origin'", false},
                        {"Vary = '*'", false}, {"Vary = 'x-Kind'", true}, {"Age = 10", false}, {"Age = 9", true}, {"['X-Other'] = 'y'", true}};
  for (const Case& c : cases) {
    CAPTURE(c.headers);
    World v(cached("ttl = 10, vary = { 'X-Kind' }", counting(c.headers)), false);
    CHECK(ask(v, Method::get, "/p")->body == "n1");
    CHECK(ask(v, Method::get, "/p")->body == (c.kept ? "n1" : "n2"));
  }
}

TEST_CASE("an answer's own max-age and Age shorten how long it is kept") {
  World w(cached("ttl = 10", counting("['Cache-Control'] = 'max-age=4', Age = 1")), false);
  CHECK(ask(w, Method::get, "/p")->body == "n1");
  w.services.now_us += 2'999'999;
  const auto x = ask(w, Method::get, "/p");
  CHECK(x->body == "n1");
  CHECK(header_of(*x, "Age") == "3");
  CHECK(x->headers.find("Age") == x->headers.rfind("Age"));
  w.services.now_us += 1;
  CHECK(ask(w, Method::get, "/p")->body == "n2");
}

TEST_CASE("a write through the route forgets what was asked for before it is answered, on every worker") {
  World w(cached("ttl = 10"));
  auto made = w.config->make_routes(stores_of(*w.config), 1);
  REQUIRE(made);
  TestServices other;
  (*made)->attach(other);
  const auto from_other = [&] {
    TestExchange x(Method::get, "/views/v");
    Match match;
    (*made)->find(Method::get, "/views/v", match)->start(x, match, other);
    other.deliver_all();
    return x.body;
  };
  int n = 0;
  const auto answer = [&](Event& e) { e.answer.body.text = std::to_string(++n); };
  w.services.answerer = other.answerer = answer;
  CHECK(ask(w, Method::get, "/views/v")->body == "1");
  CHECK(from_other() == "2");
  CHECK(from_other() == "2");
  auto write = w.begin(Method::post, "/inputs/i", "x");
  REQUIRE(w.services.sent.size() == 1);
  // While it is under way what was there before is not given, and what is read is not kept beyond its answer.
  CHECK(from_other() == "3");
  CHECK(from_other() == "3");
  auto read = w.begin(Method::get, "/views/v");
  REQUIRE(w.services.sent.size() == 2);
  w.services.deliver(0);
  CHECK(write->body == "4");
  w.services.deliver(1);
  CHECK(read->body == "5");
  w.services.sent.clear();
  CHECK(ask(w, Method::get, "/views/v")->body == "6");
  CHECK(from_other() == "7");
  CHECK(ask(w, Method::get, "/views/v")->body == "6");
}

TEST_CASE("caches of one name forget together, others do not") {
  World w("routes { map = { ['/x'] = route_cache { child = 'a', ttl = 10, name = 'n' }, ['/y'] = route_cache { child = 'a', ttl = 10, name = 'n' }, "
          "['/z'] = route_cache { child = 'a', ttl = 10 } } }");
  Counting store(w);
  for (const char* path : {"/x/views/v", "/y/views/v", "/z/views/v"}) ask(w, Method::get, path);
  ask(w, Method::post, "/x/inputs/i");
  CHECK(ask(w, Method::get, "/x/views/v")->body == "answer 4");
  CHECK(ask(w, Method::get, "/y/views/v")->body == "answer 5");
  CHECK(ask(w, Method::get, "/z/views/v")->body == "answer 3");
}

TEST_CASE("with revalidate a commit of any store below makes every answer old, and a store that cannot say is asked each time") {
  const TempFile file(std::string(kStores) + "pools { p = { stores = { 'b', 'c' } } } routes { map = { ['/'] = route_cache { revalidate = true, "
                      "child = route_lua { children = { a = 'a', p = 'p' }, f = function(rctx, h) return function(r) "
                      "return rctx:view_and_wait(h.a, 'v'):body() end end } } } }");
  auto reader = make_config_reader(nullptr);
  auto read = reader->read(file.path());
  REQUIRE(read);
  const auto stores = stores_of(**read);
  auto made = (*read)->make_routes(stores, 0);
  if (!made) FAIL(made.error());
  TestServices services;
  (*made)->attach(services);
  services.evaluates = true;
  int n = 0;
  services.answerer = [&](Event& e) { e.answer.body.text = std::to_string(++n); };
  const auto get = [&] {
    TestExchange x(Method::get, "/");
    Match match;
    (*made)->find(Method::get, "/", match)->start(x, match, services);
    return x.body;
  };
  CHECK(get() == "1");
  services.now_us += 3'600'000'000'000;
  CHECK(get() == "1");
  for (const StorePtr& s : stores->stores) {
    ++static_cast<TestStore&>(*s).commits;
    const std::string next = std::to_string(n + 1);
    CHECK(get() == next);
    CHECK(get() == next);
  }
  static_cast<TestStore&>(*stores->stores[2]).commits = 0;
  CHECK(get() == "5");
  CHECK(get() == "6");
}

TEST_CASE("a commit while the child is being asked makes its answer old at once") {
  const TempFile file(std::string(kStores) + cached("revalidate = true"));
  auto reader = make_config_reader(nullptr);
  auto read = reader->read(file.path());
  REQUIRE(read);
  const auto stores = stores_of(**read);
  auto made = (*read)->make_routes(stores, 0);
  REQUIRE(made);
  TestServices services;
  (*made)->attach(services);
  int n = 0;
  services.answerer = [&](Event& e) { e.answer.body.text = std::to_string(++n); };
  const auto get = [&](bool commits) {
    TestExchange x(Method::get, "/views/v");
    Match match;
    (*made)->find(Method::get, "/views/v", match)->start(x, match, services);
    if (commits) ++static_cast<TestStore&>(*stores->stores[0]).commits;
    services.deliver_all();
    return x.body;
  };
  CHECK(get(true) == "1");
  CHECK(get(false) == "2");
  CHECK(get(false) == "2");
}

TEST_CASE("the answer to a client that has left is not kept, whatever the child let go with") {
  World w(cached("ttl = 10"));
  int n = 0;
  w.services.answerer = [&](Event& e) { e.answer.body.text = std::to_string(++n); };
  auto x = w.begin(Method::get, "/views/v");
  x->is_gone = true;
  w.route->client_gone(*x);
  CHECK(x->times == 1);
  w.services.deliver_all();
  CHECK(ask(w, Method::get, "/views/v")->body == "2");
  CHECK(ask(w, Method::get, "/views/v")->body == "2");
  // A write runs on to its end, and what it did is forgotten all the same.
  auto y = w.begin(Method::post, "/inputs/i", "x");
  y->is_gone = true;
  w.route->client_gone(*y);
  CHECK(y->times == 0);
  w.services.deliver_all();
  CHECK(y->times == 1);
  CHECK(ask(w, Method::get, "/views/v")->body == "4");
}

TEST_CASE("what caches do is counted, over workers and reloads") {
  World w("routes { map = { ['/'] = route_cache { child = 'a', ttl = 10, bytes = 4096, name = 'front' }, ['/stats'] = function() "
          "local c = sluice.server_stats('caches').front return c.hits .. ' ' .. c.misses .. ' ' .. c.passed .. ' ' .. c.entries .. ' ' .. c.evicted .. ' ' .. tostring(c.bytes > 300) end, "
          "['/metrics'] = route_stats { format = 'prometheus' } } }");
  Counting store(w);
  for (int i = 0; i < 12; ++i) ask(w, Method::get, ("/objects/k" + std::to_string(i)).c_str());
  ask(w, Method::get, "/objects/k11");
  ask(w, Method::get, "/objects/k11", {{"Cookie", "x"}});
  const std::string counts = ask(w, Method::get, "/stats")->body;
  int hits = 0, misses = 0, passed = 0, entries = 0, evicted = 0;
  char full[8] = "";
  REQUIRE(std::sscanf(counts.c_str(), "%d %d %d %d %d %7s", &hits, &misses, &passed, &entries, &evicted, full) == 6);
  CHECK(hits == 1);
  CHECK(misses == 12);
  CHECK(passed == 1);
  CHECK(entries + evicted == 12);
  CHECK(evicted > 0);
  CHECK(std::string(full) == "true");
  CHECK(ask(w, Method::get, "/metrics")->body.find("sluice_cache_hits{cache=\"front\"} 1\n") != std::string::npos);
  // The next generation begins empty and counts on.
  auto made = w.config->make_routes(stores_of(*w.config), 0);
  REQUIRE(made);
  CHECK(ask(w, Method::get, "/stats")->body == counts);
}

TEST_CASE("a read behind a write of its connection goes past the cache") {
  World w(cached("ttl = 10"));
  Counting store(w);
  ask(w, Method::get, "/views/v");
  auto x = std::make_unique<TestExchange>(Method::get, "/views/v");
  x->is_behind_write = true;
  w.start(*x);
  w.services.deliver_all();
  CHECK(x->body == "answer 2");
}

TEST_CASE("the bound holds by least recent use, and large answers make room for themselves") {
  using sluice::lua::AnswerCache, sluice::lua::CacheShared, sluice::lua::StoredAnswer;
  auto shared = std::make_shared<CacheShared>();
  {
    AnswerCache cache(10 * (StoredAnswer::kOverhead + 101), shared);
    const auto put = [&](const std::string& key, std::size_t bytes) {
      auto a = std::make_shared<StoredAnswer>();
      a->key = key;
      a->body.assign(bytes, 'x');
      cache.put(std::move(a));
    };
    for (char c = 'a'; c < 'k'; ++c) put(std::string(1, c), 100);
    CHECK(shared->totals().entries == 10);
    CHECK(cache.find("a") != nullptr);
    put("k", 100);
    CHECK(cache.find("b") == nullptr);
    CHECK(cache.find("a") != nullptr);
    put("a", 50);
    CHECK(cache.find("a")->body.size() == 50);
    CHECK(shared->totals().entries == 10);
    put("large", 3500);
    CHECK(cache.find("large") != nullptr);
    CHECK(cache.bytes() <= 10 * (StoredAnswer::kOverhead + 101));
    CHECK(shared->totals().evicted >= 9);
    put("large", 100'000);
    CHECK(cache.find("large") == nullptr);
    cache.drop("nobody");
    const auto held = cache.find("a");
    cache.drop("a");
    CHECK((!held || held->body.size() == 50));
  }
  CHECK(shared->totals().entries == 0);
  CHECK(shared->totals().bytes == 0);
  CHECK(shared->totals().evicted >= 9);
}

TEST_CASE("caches that cannot be are refused with a line") {
  struct Case { std::string text, says; };
  const std::string a = "stores { a = { module = 'm', path = 'p' } }\nroutes { default = route_cache { child = 'a',\n";
  const Case cases[] = {
      {a + "} }", "t.lua:2: route_cache needs `ttl`, or `revalidate`"},
      {a + "ttl = 0 } }", "t.lua:3: route_cache: `ttl` is seconds, from 0.001 to a year"},
      {a + "ttl = 1, bytes = 'lots' } }", "t.lua:3: route_cache: `bytes` is a size from \"4KiB\""},
      {a + "ttl = 1, bytes = 100 } }", "t.lua:3: route_cache: `bytes` is a size from \"4KiB\""},
      {a + "ttl = 1, bytes = '4KiB', item = '5KiB' } }", "t.lua:3: route_cache: `item` is a size from 1 to `bytes`"},
      {a + "ttl = 1, bytes = {} } }", "t.lua:3: route_cache: `bytes` is a size such as"},
      {a + "ttl = 1, vary = { 'a b' } } }", "t.lua:3: route_cache: `vary` is a list of names of request headers"},
      {a + "ttl = 1, vary = 'x' } }", "t.lua:3: route_cache: `vary` is a list"},
      {a + "tll = 1 } }", "t.lua:3: route_cache has no option `tll`; did you mean `ttl`?"},
      {a + "ttl = 1 } }\nlocal x = route_cache { ttl = 1, child = route_map { default = route_auth { child = 'a', tls_names = { 'ann' } } } }", "t.lua:4: route_cache stands below route_auth"},
      {a + "ttl = 1 } }\nlocal x = route_cache { ttl = 1, everybody = true, child = route_auth { child = 'a', tokens = { 'a-long-one' } } }", "t.lua:4: route_cache stands below route_auth"},
      {"routes { default = route_cache { revalidate = true, child = route_null {} } }", "t.lua:1: route_cache: `revalidate` knows stores of this process"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.text);
    const std::string why = error_of(c.text);
    CAPTURE(why);
    CHECK(why.find(c.says) == 0);
  }
}
