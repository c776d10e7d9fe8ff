// What clients and configs that mean no good, or have made a mistake, do to handlers, tables, counters and crons.
#include <limits>
#include <set>

#include "lua/credentials.h"
#include "lua/shared_table.h"
#include "lua/user_stat.h"
#include "t/lua/harness.h"

using namespace sluice::lua::harness;
using sluice::lua::Credentials;
using sluice::lua::SharedPut;
using sluice::lua::SharedTable;
using sluice::lua::SharedValue;
using sluice::lua::StatCell;
using sluice::lua::UserStat;

namespace {

std::string at(std::string_view handler) { return "routes { map = { ['/'] = " + std::string(handler) + " } }"; }

// The lines of that name, in any case, in order: "a|b".
std::string all_of(const TestExchange& x, std::string_view name) {
  std::string found;
  std::string_view lines = x.headers;
  while (!lines.empty()) {
    const std::size_t end = lines.find("\r\n");
    const std::string_view line = lines.substr(0, end);
    lines.remove_prefix(end == lines.npos ? lines.size() : end + 2);
    const std::size_t colon = line.find(": ");
    if (colon == line.npos || colon != name.size()) continue;
    bool same = true;
    for (std::size_t i = 0; i < colon; ++i) same &= std::tolower(line[i]) == std::tolower(name[i]);
    if (same) found.append(found.empty() ? "" : "|").append(line.substr(colon + 2));
  }
  return found;
}

SharedValue text(std::string_view t) { return {SharedValue::Type::text, 0, t}; }

}  // namespace

TEST_CASE("a redirect that keeps the path never leads to a host that the path names") {
  World w("routes { map = { ['/go'] = route_redirect { to = '/', keep = true }, ['/on'] = route_redirect { to = '/new', keep = true } } }", false);
  const auto to = [&](const char* path) {
    TestExchange x(Method::get, path);
    x.edit().target = path;
    w.start(x);
    return all_of(x, "Location");
  };
  CHECK(to("/go//evil.example/x") == "/evil.example/x");
  CHECK(to("/go///evil.example") == "/evil.example");
  CHECK(to("/go/\\evil.example") == "/%5Cevil.example");
  CHECK(to("/go/a//b") == "/a//b");
  CHECK(to("/on//evil.example") == "/new//evil.example");
}

TEST_CASE("a redirect inside another route keeps the query that was sent, and takes none out of the path") {
  World w("routes { map = { ['/sub'] = route_match { header = 'x-never', child = 'a', otherwise = route_redirect { to = 'https://x.example', keep = true } } } }");
  TestExchange x(Method::get, "/sub/a");
  x.edit().path = "/sub/a?b";
  x.edit().target = "/sub/a%3Fb?q=1";
  w.start(x);
  CHECK(all_of(x, "Location") == "https://x.example/a%3Fb?q=1");
}

TEST_CASE("a header that follows a response stands in its place, but lists grow") {
  World w("routes { map = { ['/cors'] = route_cors { origins = { 'https://one.example' }, child = route_lua { f = function(rctx) return function(r) "
          "return 200, 'x', { ['access-control-allow-origin'] = '*', Vary = 'Accept', ['X-Own'] = 'kept' } end end } }, "
          "['/etag'] = route_lua { children = { a = 'a' }, f = function(rctx, h) return function(r) return rctx:enqueue_and_wait(r, h.a), { ETag = '\"mine\"', ['Cache-Control'] = 'max-age=5' } end end } } }");
  TestExchange x(Method::get, "/cors");
  x.edit().headers = {{"Origin", "https://one.example"}};
  w.start(x);
  CHECK(all_of(x, "Access-Control-Allow-Origin") == "https://one.example");
  CHECK(all_of(x, "X-Own") == "kept");
  CHECK(all_of(x, "Vary").find("Accept") != std::string::npos);
  CHECK(all_of(x, "Vary").find("Origin") != std::string::npos);
  CHECK(all_of(*w.get("/etag/objects/k"), "ETag") == "\"mine\"");
}

TEST_CASE("a static answer has one type") {
  CHECK(all_of(*World(at("route_static { body = 'x', headers = { ['content-type'] = 'text/html' } }"), false).get("/"), "Content-Type") == "text/html");
  CHECK(all_of(*World(at("route_static { body = 'x', type = 'text/css' }"), false).get("/"), "Content-Type") == "text/css");
  CHECK(error_of(at("route_static { body = 'x', type = 'a/b', headers = { ['content-type'] = 'text/html' } }")).find("route_static: `type` and a header") != std::string::npos);
}

TEST_CASE("credentials are accepted whole, by their own scheme, and by nothing near them") {
  Credentials c;
  for (int i = 0; i < 500; ++i) c.bearer.add("token-number-" + std::to_string(i));
  c.basic.add("YTpi");
  for (const char* good : {"Bearer token-number-0", "BEARER   token-number-499", "basic YTpi"}) {
    CAPTURE(good);
    CHECK(c.accept(good));
  }
  for (const char* bad : {"", "Bearer", "Bearer ", "Bearer token-number-500", "Bearer token-number-", "Bearer token-number-0 ", "Bearer token-number-00", "Bearer YTpi",
                          "Basic token-number-0", "Basic YTp", "Basic YTpi=", "Basic YTpiYTpi", "Basic\tYTpi", "token-number-0", " Bearer token-number-0", "Digest YTpi"}) {
    CAPTURE(bad);
    CHECK_FALSE(c.accept(bad));
  }
}

TEST_CASE("what a handler could only misunderstand is refused when the config loads") {
  struct Case { std::string text, says; };
  const Case cases[] = {
      {"route_cors { child = 'a', origins = { 'https://example.com/' } }", "an origin is such as"},
      {"route_cors { child = 'a', origins = { 'example.com' } }", "an origin is such as"},
      {"route_cors { child = 'a', origins = { '*' }, max_age = 1e308 }", "`max_age` is a whole number of seconds"},
      {"route_cors { child = 'a', origins = { '*' }, max_age = 0.5 }", "`max_age` is a whole number of seconds"},
      {"route_weighted { children = { 'a', 'b' }, weights = { 1e308, 1e308 } }", "the weights' sum is no number"},
      {"route_redirect { to = '/x?y=1', keep = true }", "`to`, which cannot have a query"}};
  for (const Case& c : cases) {
    CAPTURE(c.text);
    const std::string why = error_of(std::string(kStores) + at(c.text));
    CAPTURE(why);
    CHECK(why.find(c.says) != std::string::npos);
  }
  CHECK(error_of("routes { host = 'A.example', default = route_null {} } routes { host = 'a.example.', default = route_null {} }").find("given twice for host") != std::string::npos);
  CHECK(error_of(std::string(kStores) + at("route_cors { child = 'a', origins = { 'HTTPS://Example.com', 'null', '*' }, max_age = 0 }")).empty());
}

TEST_CASE("of ten thousand paths the one that is wrong is named") {
  const std::string many = "local map = {} for i = 1, 10000 do map[('/p%05d'):format(i)] = route_null {} end map['/p07000/'] = route_null {} routes { map = map }";
  CHECK(error_of(many).find("`/p07000/` is given twice") != std::string::npos);
}

TEST_CASE("limiters of the process under one map of methods are the same ones in every worker") {
  // Names of methods have no order of their own in a table.
  World w("routes { map = { ['/'] = cmdmap { GET = route_ratelim { child = 'a', limit = 1, rate = 0.001, global = true }, PUT = route_ratelim { child = 'a', limit = 1, rate = 0.001, global = true }, "
          "DELETE = route_ratelim { child = 'a', limit = 1, rate = 0.001, global = true } } } }");
  const auto ask = [&](RouteTable& table, Method m) {
    TestExchange x(m, "/objects/k", m == Method::put ? "x" : "");
    x.edit().headers = {{"If-Match", "*"}};
    Match match;
    table.find(m, x.request().path, match)->start(x, match, w.services);
    w.services.deliver_all();
    return x.status;
  };
  std::vector<std::unique_ptr<RouteTable>> workers;
  for (std::uint16_t n = 1; n <= 20; ++n) {
    auto made = w.config->make_routes(stores_of(*w.config), n);
    REQUIRE(made);
    workers.push_back(std::move(*made));
    workers.back()->attach(w.services);
  }
  CHECK(ask(*w.table, Method::get) != 429);
  for (const auto& table : workers) CHECK(ask(*table, Method::get) == 429);
  CHECK(ask(*w.table, Method::put) != 429);
  CHECK(ask(*w.table, Method::del) != 429);
}

TEST_CASE("workers do not all draw the same") {
  std::set<std::string> drawn;
  for (int i = 0; i < 3; ++i) drawn.insert(World(route("return tostring(math.random())"), true).get("/")->body);
  CHECK(drawn.size() == 3);
}

TEST_CASE("a host is the target's own when that is a whole URL, and may be an address") {
  World w("local function says(t) return function() return t end end routes { default = says('all') } routes { host = 'inner.example.', default = says('inner') } "
          "routes { host = '[2001:DB8::1]', default = says('six') } routes { host = '192.0.2.1', default = says('four') }", false);
  const auto ask = [&](const char* target, const char* host) {
    TestExchange x(Method::get, "/");
    x.edit().target = target;
    if (*host) x.edit().headers.push_back({"Host", host});
    Match match;
    w.table->find_for(x.request(), match)->start(x, match, w.services);
    return x.body;
  };
  CHECK(ask("http://outer.example/", "inner.example") == "all");
  CHECK(ask("HTTP://Inner.example:80/x?y=http://z/", "outer.example") == "inner");
  CHECK(ask("http://inner.example?q", "") == "inner");
  CHECK(ask("/?u=http://inner.example/", "outer.example") == "all");
  CHECK(ask("*", "inner.example") == "inner");
  CHECK(ask("/", "[2001:db8::1]:8080") == "six");
  CHECK(ask("/", "[2001:db8::1]") == "six");
  CHECK(ask("/", "192.0.2.1:80") == "four");
}

TEST_CASE("fields that are there twice are seen and copied twice") {
  World w(route("local q = rctx:request_new() copy(q, r) local found = tostring(has(r)) .. tostring(has(q)) "
                "local first = rctx:response_new():set_header('Set-Cookie', { 'a=1', 'b=2' }) "
                "local out = rctx:response_new():set_header('Set-Cookie', 'old=0'):body(found) onto(out, first) return out",
                "local copy, onto = sluice.req_mutator_new({ t = 'headercopyall', idx = 1 }), sluice.res_mutator_new({ t = 'headercopyall', idx = 1 }) "
                "local has = sluice.req_inspector_new({ t = 'headertoken', name = 'accept-encoding', str = 'br' })"));
  TestExchange x(Method::get, "/");
  x.edit().headers = {{"Accept-Encoding", "gzip"}, {"accept-encoding", "br"}};
  w.start(x);
  CHECK(x.body == "truetrue");
  CHECK(all_of(x, "Set-Cookie") == "a=1|b=2");
}

TEST_CASE("counters and sums stay at the end of what their type holds") {
  UserStat counter("c", UserStat::Kind::counter), histogram("h", UserStat::Kind::histogram);
  for (std::uint16_t worker = 0; worker < 2; ++worker) {
    for (int i = 0; i < 1100; ++i) counter.cell(worker).add(9007199254740992.0);
    for (int i = 0; i < 3; ++i) histogram.cell(worker).record(1e308);
  }
  CHECK(counter.read().count == std::numeric_limits<std::int64_t>::max());
  CHECK(histogram.read().sum == std::numeric_limits<double>::max());
  World w("stats { h = 'histogram' } routes { map = { ['/add'] = function() sluice.stat('h', 1e308) sluice.stat('h', 1e308) return 'x' end, ['/stats'] = route_stats {} } }", false);
  w.get("/add");
  CHECK(w.get("/stats")->status == 200);
}

TEST_CASE("incr never leaves a number that is none") {
  World w("shared { t = '64KiB' } " + route("local t = sluice.shared.t t:set('n', 1e308) local out = { tostring(t:incr('n', 1e308)), select(2, t:incr('n', 1e308)), t:get('n') == 1e308 and 'kept' or 'lost' } "
                "out[#out + 1] = tostring((pcall(t.incr, t, 'm', 0/0, 1))) .. tostring((pcall(t.incr, t, 'm', 1, 1/0))) .. tostring(t:get('m')) "
                "out[#out + 1] = select(2, t:incr('m', 1e308, 1e308)) return table.concat(out, ' ')"));
  CHECK(w.get("/")->body == "nil too large kept falsefalsenil too large");
}

TEST_CASE("a shared table that is declared larger gets more buckets, and loses nothing on the way") {
  SharedTable t(8192);
  std::string room;
  for (int i = 0; i < 40; ++i) t.put("k" + std::to_string(i), text("v" + std::to_string(i)), SharedTable::When::always, 1, 0);
  const auto before = t.stats().entries;
  CHECK(before == 40);
  t.make_buckets_for(1 << 20);
  t.set_limit(1 << 20);
  // While they move: some are taken away, changed, added.
  CHECK(t.remove("k7", 1));
  CHECK(t.put("k8", text("other"), SharedTable::When::always, 1, 0) == SharedPut::done);
  for (int i = 0; i < 2000; ++i) CHECK(t.put("n" + std::to_string(i), text("w"), SharedTable::When::always, 1, 0) == SharedPut::done);
  t.make_buckets_for(1 << 26);
  for (int i = 0; i < 40; ++i) {
    CAPTURE(i);
    const auto v = t.get("k" + std::to_string(i), 1, room);
    CHECK(v.has_value() == (i != 7));
    if (v) CHECK(v->text == (i == 8 ? "other" : "v" + std::to_string(i)));
  }
  for (int i = 0; i < 2000; ++i) CHECK(t.get("n" + std::to_string(i), 1, room).has_value());
  CHECK(t.stats().entries == 2039);
  CHECK(t.stats().evicted == 0);
}

TEST_CASE("a shared table that is declared smaller takes what comes while it shrinks") {
  SharedTable t(1 << 20);
  for (int i = 0; i < 8000; ++i) t.put("key" + std::to_string(i), text("v"), SharedTable::When::always, 1, 0);
  t.set_limit(SharedTable::kLeastBytes);
  for (int i = 0; i < 20; ++i) CHECK(t.put("new" + std::to_string(i), text("v"), SharedTable::When::always, 1, 0) == SharedPut::done);
  CHECK(t.stats().bytes <= SharedTable::kLeastBytes);
}

TEST_CASE("a shared table of many gigabytes begins without touching them") {
  SharedTable t(std::uint64_t{64} << 30);
  CHECK(t.put("k", text("v"), SharedTable::When::always, 1, 0) == SharedPut::done);
}

namespace {

struct Job {
  explicit Job(std::string_view body) : file(std::string(kStores) + "sluice.register_cron('a', { every = 1, func = function() " + std::string(body) + " end })"), reader(make_config_reader(&log)) {
    auto got = reader->read(file.path());
    if (!got) FAIL(got.error());
    config = *got;
    config->crons()->start(0, nullptr, [this](CronEvent) { return ++sent; });
  }
  Crons::Ran run() { return config->crons()->run(now += 1000); }
  Lines log;
  TempFile file;
  std::unique_ptr<ConfigReader> reader;
  std::shared_ptr<const Config> config;
  std::uint32_t sent = 0;
  std::uint64_t now = 0;
};

}  // namespace

TEST_CASE("a reload that the hearer of an answer asks for is wanted then, and its error is a failure") {
  Job j("sluice.get('a', 'k', function(status) sluice.schedule_config_reload() if status == 500 then error('no') end end)");
  j.run();
  j.run();
  const auto heard = j.config->crons()->answered({1, 200, sluice::Errc::none, ""});
  REQUIRE(heard);
  CHECK(heard->reload_wanted);
  CHECK(heard->failures == 0);
  const auto failed = j.config->crons()->answered({2, 500, sluice::Errc::none, ""});
  REQUIRE(failed);
  CHECK(failed->failures == 1);
  CHECK_FALSE(j.run().reload_wanted);
}

TEST_CASE("a cron reads no files: workers share what was read") {
  Job j("local good, why = pcall(require, 'later') sluice.log(tostring(why)) good, why = pcall(local_zone_from_file, 't.lua') sluice.log(tostring(why))");
  j.file.add("later.lua", "return 1");
  j.run();
  CHECK(j.log.has("require: 'later' was not required while the config was read, and routes and crons read no files"));
  CHECK(j.log.has("`t.lua` was not read with the config"));
}

TEST_CASE("a cron that has eaten all memory once leaves room for the next") {
  Job j("full = not full if full then local t = {} for i = 1, 1e9 do t[i] = ('x'):rep(1000) .. i end end sluice.log('fine')");
  CHECK(j.run().failures == 1);
  CHECK(j.run().failures == 0);
  CHECK(j.log.has("fine"));
}
