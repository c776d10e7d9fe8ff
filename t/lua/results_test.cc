// What a wait leaves behind: classes, the best and the worst, callbacks, and what a route learns of one that it asked.
#include "t/lua/harness.h"

using namespace sluice::lua::harness;

namespace {

// "k503" in a key is answered with that status.
void by_key(Event& e) {
  if (e.key.size() == 4 && e.key[0] == 'k') e.answer.status = static_cast<std::uint16_t>(std::stoi(e.key.substr(1)));
}

// A route that asks `inner`, a route that does `body` over stores a and b, and says what it heard.
std::string asks(std::string_view body, std::string_view wait = "rctx:enqueue_and_wait(r, h.inner)") {
  return "said = 0 routes { map = { ['/'] = route_lua { children = { inner = route_lua { children = { a = 'a', b = 'b' }, f = function(rctx, h) "
         "return function(r) " + std::string(body) + " end end } }, f = function(rctx, h) rctx:handle_set_cb(h.inner, function() said = said + 1 end) "
         "return function(r) local res, late = " + std::string(wait) + " if not res then return 'nothing ' .. tostring(late) end local _, class = rctx:result(h.inner) "
         "return res:status() .. ' ' .. res:error() .. ' ' .. class .. ' ' .. said .. ' ' .. res:backend() end end } } }";
}

}  // namespace

TEST_CASE("best and worst of three results, of every class or not there, in every order") {
  World w(route("for _, n in ipairs { 'a', 'b', 'c' } do if r:query(n) ~= '-' then rctx:get(h[n], r:query(n)) end end rctx:wait_cond(3) "
                "local list = {} for n in r:query('order'):gmatch('.') do list[#list + 1] = h[n] end "
                "local function say(res, class) return res and res:backend() .. class or '-' end "
                "return say(rctx:best_result(list)) .. say(rctx:worst_result(list))"));
  w.services.evaluates = true;
  w.services.answerer = by_key;
  const char* const keys[] = {"-", "k503", "k404", "k200"};      // by class
  for (int all = 0; all < 64; ++all) {
    const int cls[] = {all % 4, all / 4 % 4, all / 16};
    for (const char* order : {"abc", "acb", "bac", "bca", "cab", "cba", "a", "bc", ""}) {
      // First GOOD, else the last OK, else the last error; the worst class, of equal ones the last.
      std::string best = "-", worst = "-";
      int best_class = 0, worst_class = 4;
      for (const char* p = order; *p; ++p) {
        const int c = cls[*p - 'a'];
        const std::string it = std::string(1, *p) + std::to_string(c);
        if (c == 0) continue;
        if (best_class != 3 && c >= best_class) best = it, best_class = c;
        if (c <= worst_class) worst = it, worst_class = c;
      }
      const std::string path = std::string("/?a=") + keys[cls[0]] + "&b=" + keys[cls[1]] + "&c=" + keys[cls[2]] + "&order=" + order;
      CAPTURE(path);
      CHECK(w.get(path)->body == best + worst);
    }
  }
  CHECK(w.table->slots() == 1);
}

TEST_CASE("a callback moves the class up and down, by RES_ANY, RES_OK and RES_GOOD alone; hit() and ok() go by the status") {
  const struct { const char *returns; int cls; } returned[] = {
      {"sluice.RES_ANY", 1}, {"sluice.RES_OK", 2}, {"sluice.RES_GOOD", 3}, {"sluice.WAIT_GOOD", 3}, {"nil", 0}, {"0", 0}, {"4", 0}, {"2.5", 0},
      {"'3'", 0}, {"{}", 0}, {"true", 0}, {"false, false", 0}, {"0/0", 0}, {"error('no')", 0}};
  const struct { const char* key; int cls; const char* says; } statuses[] = {{"k200", 3, "truetrue"}, {"k304", 3, "truetrue"}, {"k404", 2, "falsetrue"},
                                                                            {"k302", 2, "falsetrue"}, {"k503", 1, "falsefalse"}};
  for (const auto& r : returned) {
    World w(route("rctx:get(h.a, r:query('key')) local n = rctx:wait_cond(1, sluice.WAIT_GOOD) local res, class = rctx:result(h.a) "
                  "return n .. ' ' .. class .. ' ' .. tostring(res:hit()) .. tostring(res:ok())",
                  "rctx:handle_set_cb(h.a, function(res, req) req:path() res:status() return " + std::string(r.returns) + " end)"));
    w.services.answerer = by_key;
    for (const auto& s : statuses) {
      CAPTURE(r.returns);
      CAPTURE(s.key);
      const int cls = r.cls != 0 ? r.cls : s.cls;
      CHECK(w.get(std::string("/?key=") + s.key)->body == std::to_string(cls == 3) + " " + std::to_string(cls) + " " + s.says);
    }
  }
}

TEST_CASE("a route that asks another learns what went wrong with it, and its callback hears of all of it") {
  const struct { const char *body, *says; } cases[] = {
      {"return 'a string'", "200 none 3 1 "},
      {"return 201, 'made'", "201 none 3 1 "},
      {"return 409", "409 none 2 1 "},
      {"return { status = 503 }", "503 none 1 1 "},
      {"return rctx:get_and_wait(h.a, 'k')", "200 none 3 1 "},
      {"return rctx:get_and_wait(h.a, 'k404')", "404 none 2 1 "},
      {"return rctx:get_and_wait(h.a, 'refused')", "404 no_view 2 1 "},
      {"return rctx:get_and_wait(h.a, 'no/key')", "404 route 2 1 "},
      {"error('oh')", "500 lua 1 1 "},
      {"error({})", "500 lua 1 1 "},
      {"return", "500 lua 1 1 "},
      {"return true", "500 lua 1 1 "},
      {"return 99", "500 lua 1 1 "},
      {"return r", "500 lua 1 1 "},
      {"rctx.sleep(1)", "500 lua 1 1 "},
      {"coroutine.yield()", "500 lua 1 1 "},
      {"rctx:get(h.a, 'k') error('with one queued')", "500 lua 1 1 "},
      {"rctx:get(h.a, 'k') rctx:wait_cond(0) error('with one in flight')", "500 lua 1 1 "},
      {"rctx:deadline(0.5) rctx:sleep(9)", "504 deadline 1 1 "},
      {"rctx:get(h.a, 'k') rctx:get(h.b, 'k') return 'before its own are in'", "200 none 3 1 "},
  };
  for (const auto& c : cases) {
    CAPTURE(c.body);
    World w(asks(c.body));
    w.services.answerer = by_key;
    auto x = w.begin(Method::get, "/");
    w.services.pass(500'000);
    if (x->times == 0) w.services.deliver_all();
    CHECK(x->body.substr(0, std::string_view(c.says).size()) == c.says);
    w.services.deliver_all();
    CHECK(w.table->slots_in_use() == 0);
    // And the same again in the same slots.
    auto y = w.begin(Method::get, "/");
    w.services.pass(500'000);
    w.services.deliver_all();
    CHECK(y->times == 1);
    w.services.deliver_all();
  }
}

TEST_CASE("a loop in a route that another asks is that one's error; in time the outer one goes on") {
  World w("settings { lua_time_limit = 0.1 } " + asks("while true do end"));
  // The limit is of one stretch, which both are in: the inner one is stopped, and then the outer one at its next step.
  auto x = w.get("/");
  CHECK(x->status == 500);
  CHECK(x->error == sluice::Errc::lua);
  CHECK(w.log.has("stopped: it ran too long"));
}

TEST_CASE("a wait that is over before the route inside answers: nil and true, and then the answer") {
  World w(asks("rctx:sleep(1) return 'slept'", "rctx:enqueue_and_wait(r, h.inner, 0.25) if late then res, late = rctx:wait_handle(h.inner, 0.25) end "
                                              "if late then res, late = rctx:wait_handle(h.inner) end"));
  auto x = w.begin(Method::get, "/");
  for (int i = 0; i < 3; ++i) {
    CHECK(x->times == 0);
    w.services.pass(250'000);
  }
  CHECK(x->times == 0);
  w.services.pass(250'000);
  CHECK(x->body.substr(0, 12) == "200 none 3 1");
  World v(asks("rctx:sleep(1) return 'slept'", "rctx:enqueue_and_wait(r, h.inner, 0.25)"));
  auto y = v.begin(Method::get, "/");
  v.services.pass(250'000);
  CHECK(y->body == "nothing true");
  CHECK(v.table->slots_in_use() == 2);     // what it asked ends by itself
  v.services.pass(750'000);
  CHECK(v.table->slots_in_use() == 0);
}

TEST_CASE("waits in the other order than the answers") {
  World w(route("rctx:get(h.a, 'k') rctx:get(h.b, 'k') rctx:get(h.c, 'k') local c, b, a = rctx:wait_handle(h.c), rctx:wait_handle(h.b), rctx:wait_handle(h.a) "
                "return a:body() .. b:body() .. c:body()"));
  for (const auto& order : {std::array{0, 1, 2}, std::array{2, 1, 0}, std::array{1, 2, 0}, std::array{0, 2, 1}}) {
    auto x = w.begin(Method::get, "/");
    for (const int n : order) {
      CHECK(x->times == 0);
      w.services.deliver(static_cast<std::size_t>(n));
    }
    CHECK(x->body == "a show kb show kc show k");
    w.services.sent.clear();
  }
}

TEST_CASE("wait_cond(0) sends, and a later wait takes what came in between") {
  for (const bool here : {false, true}) {
    CAPTURE(here);
    World w(route("rctx:get(h.a, 'k200') rctx:get(h.b, 'k404') local zero = rctx:wait_cond(0) rctx:sleep(1) "
                  "local one = rctx:wait_cond(1, sluice.WAIT_OK) local two = rctx:wait_cond(1, sluice.WAIT_OK) local three = rctx:wait_cond(1) return zero .. one .. two .. three"));
    w.services.evaluates = here;
    w.services.answerer = by_key;
    auto x = w.begin(Method::get, "/");
    w.services.deliver_all();
    w.services.pass(1'000'000);
    CHECK(x->body == "0110");
  }
}

TEST_CASE("WAIT_GOOD with routes inside that come too late, and then come") {
  const std::string slow = "local function slow(s) return route_lua { f = function(rctx) return function() rctx:sleep(s) return tostring(s) end end } end ";
  World w(slow + "routes { map = { ['/'] = route_lua { children = { slow(1), slow(2), slow(3), route_lua { f = function() return function() error('x') end end } }, "
          "f = function(rctx, h) return function(r) rctx:enqueue(r, h) local n, late = rctx:wait_cond(4, sluice.WAIT_GOOD, 1.5) "
          "local m, again = rctx:wait_cond(2, sluice.WAIT_GOOD, 1) local k = rctx:wait_cond(9, sluice.WAIT_GOOD) "
          "return n .. tostring(late) .. m .. tostring(again) .. k .. rctx:best_result { h[4], h[2] }:body() end end } } }");
  auto x = w.begin(Method::get, "/");
  for (int half = 1; half <= 6; ++half) {
    CHECK(x->times == 0);
    w.services.pass(500'000);
  }
  CHECK(x->body == "1true1true12");
  CHECK(w.services.timers.empty());
}

TEST_CASE("FASTGOOD with errors: they do not count, and when all are in it is over") {
  const auto run = [](const char* a, const char* b, const char* c, int wanted) {
    World w(route("rctx:get(h.a, r:query('a')) rctx:get(h.b, r:query('b')) rctx:get(h.c, r:query('c')) "
                  "return tostring(rctx:wait_cond(" + std::to_string(wanted) + ", sluice.WAIT_FASTGOOD))"));
    w.services.answerer = by_key;
    auto x = w.begin(Method::get, std::string("/?a=") + a + "&b=" + b + "&c=" + c);
    std::string seen;
    for (std::size_t n = 0; n < 3; ++n) {
      w.services.deliver(n);
      seen += x->times ? '1' : '0';
    }
    return x->body + " " + seen;
  };
  CHECK(run("k503", "k503", "k200", 3) == "1 001");
  CHECK(run("k503", "k200", "k404", 3) == "1 011");
  CHECK(run("k404", "k404", "k200", 2) == "2 011");
  CHECK(run("k404", "k200", "k200", 3) == "2 011");
  CHECK(run("k503", "k500", "k504", 1) == "0 001");
  CHECK(run("k200", "k200", "k200", 3) == "1 111");
}

TEST_CASE("what a generator keeps is of its slot alone") {
  World w(route("n = n + 1 rctx:get_and_wait(h.a, 'k') return n .. ' ' .. #seen", "local n, seen = 0, {} rctx:handle_set_cb(h.a, function(res) seen[#seen + 1] = res:status() end)"));
  CHECK(w.get("/")->body == "1 1");
  auto one = w.begin(Method::get, "/"), two = w.begin(Method::get, "/");
  w.services.deliver_all();
  CHECK(one->body == "2 2");
  CHECK(two->body == "1 1");
}

TEST_CASE("a result becomes the request to the next store") {
  World w(route("local res = rctx:get_and_wait(h.a, 'k') local put = rctx:request_new('PUT', '/objects/' .. r:query('to')):set_body(res:body()):set_header('If-None-Match', '*') "
                "rctx:enqueue(put, { h.b, h.c }) put:set_body('later') rctx:wait_cond(2) return rctx:result(h.b):body() .. ';' .. rctx:result(h.c):body()"));
  CHECK(w.get("/?to=copy")->body == "b edit copy [a show k];c edit copy [a show k]");
}
