// Waits: every mode, what completes them, and that none hangs.
#include "t/lua/harness.h"

using namespace sluice::lua::harness;

namespace {

// "k503" in a key is answered with that status.
void by_key(Event& e) {
  if (e.key.size() == 4 && e.key[0] == 'k') e.answer.status = static_cast<std::uint16_t>(std::stoi(e.key.substr(1)));
}

std::string three(std::string_view ka, std::string_view kb, std::string_view kc, std::string_view wait) {
  return route("rctx:get(h.a, '" + std::string(ka) + "') rctx:get(h.b, '" + std::string(kb) + "') rctx:get(h.c, '" + std::string(kc) +
               "') local n, late = " + std::string(wait) +
               " local function c(x) local _, k = rctx:result(x) return tostring(k) end "
               "return tostring(n) .. tostring(late) .. ' ' .. c(h.a) .. c(h.b) .. c(h.c)");
}

}  // namespace

TEST_CASE("wait_cond counts by mode and returns when nothing is left") {
  struct Case { const char *a, *b, *c, *wait, *says; };
  const Case cases[] = {
      {"k200", "k404", "k503", "rctx:wait_cond(3)", "3nil 321"},
      {"k200", "k404", "k503", "rctx:wait_cond(3, sluice.WAIT_OK)", "2nil 321"},
      {"k200", "k404", "k503", "rctx:wait_cond(3, sluice.WAIT_GOOD)", "1nil 321"},
      {"k304", "k412", "k302", "rctx:wait_cond(9, sluice.WAIT_ANY)", "3nil 322"},
      {"k503", "k404", "k200", "rctx:wait_cond(1, sluice.WAIT_GOOD)", "1nil 123"},
  };
  for (const bool here : {false, true})
    for (const Case& c : cases) {
      CAPTURE(c.says);
      World w(three(c.a, c.b, c.c, c.wait));
      w.services.evaluates = here;
      w.services.answerer = by_key;
      CHECK(w.get("/")->body == c.says);
    }
}

TEST_CASE("wait_cond resumes at the count, and FASTGOOD at the first GOOD") {
  World w(three("k404", "k200", "k200", "rctx:wait_cond(3, sluice.WAIT_FASTGOOD)"));
  w.services.answerer = by_key;
  auto x = w.begin(Method::get, "/");
  CHECK(w.services.sent.size() == 3);
  w.services.deliver(0);
  CHECK(x->times == 0);
  w.services.deliver(1);
  CHECK(x->body == "2nil 23nil");
  CHECK(w.table->slots_in_use() == 1);   // until the last answer is in
  w.services.deliver(2);
  CHECK(w.table->slots_in_use() == 0);
}

TEST_CASE("a wait for nothing dispatches and returns at once") {
  World w(three("k200", "k200", "k200", "rctx:wait_cond(0)"));
  auto x = w.begin(Method::get, "/");
  CHECK(x->body == "0nil nilnilnil");
  CHECK(w.services.sent.size() == 3);
  w.services.deliver_all();
}

TEST_CASE("waits that nothing can complete return at once, or raise") {
  World w(route("local n = rctx:wait_cond(5) local ok, why = pcall(rctx.wait_handle, rctx, h.a) "
                "local one = rctx:get_and_wait(h.a, 'k') local again = rctx:wait_handle(h.a) "
                "return n .. tostring(ok) .. why:match('nothing was enqueued') .. tostring(one == again)"));
  CHECK(w.get("/")->body == "0falsenothing was enqueuedtrue");
}

TEST_CASE("a handle in flight cannot be enqueued again, and can when its result is in") {
  World w(route("rctx:get(h.a, 'k') local ok, why = pcall(rctx.get, rctx, h.a, 'k') rctx:wait_handle(h.a) "
                "local second = rctx:get_and_wait(h.a, 'j') return tostring(ok) .. why:match('in flight') .. second:body()"));
  CHECK(w.get("/")->body == "falsein flighta show j");
}

TEST_CASE("two results of one handle are two objects") {
  World w(route("local one = rctx:get_and_wait(h.a, 'x') local two = rctx:get_and_wait(h.a, 'y') return one:body() .. two:body()"));
  CHECK(w.get("/")->body == "a show xa show y");
}

TEST_CASE("timeouts: nil and true, and the late result is there for a later wait") {
  World w(route("local res, late = rctx:get_and_wait(h.a, 'k', 0.5) local n, late2 = rctx:wait_cond(1, sluice.WAIT_ANY, 0.5) "
                "local third = rctx:wait_handle(h.a) return tostring(res) .. tostring(late) .. n .. tostring(late2) .. third:body()"));
  auto x = w.begin(Method::get, "/");
  w.services.pass(500'000);
  CHECK(x->times == 0);
  w.services.pass(500'000);
  CHECK(x->times == 0);
  w.services.deliver_all();
  CHECK(x->body == "niltrue0truea show k");
  CHECK(w.services.timers.empty());
}

TEST_CASE("sleep returns true after its time, and sends nothing") {
  World w(route("rctx:get(h.a, 'k') local slept = rctx:sleep(2) return tostring(slept)"));
  auto x = w.begin(Method::get, "/");
  CHECK(w.services.sent.empty());
  w.services.pass(1'999'999);
  CHECK(x->times == 0);
  w.services.pass(1);
  CHECK(x->body == "true");
  w.services.deliver_all();
}

TEST_CASE("best and worst results follow the classes") {
  World w(route("local before = rctx:best_result({ h.a, h.b }) rctx:get(h.a, r:query('a')) rctx:get(h.b, r:query('b')) rctx:wait_cond(2) "
                "local best, bc = rctx:best_result({ h.a, h.b }) local worst, wc = rctx:worst_result({ h.a, h.b }) "
                "return tostring(before) .. best:backend() .. bc .. worst:backend() .. wc .. "
                "tostring(rctx:res_good(h.a)) .. tostring(rctx:res_ok(h.a) ~= nil) .. tostring(rctx:res_any(h.a) ~= nil)"));
  w.services.answerer = by_key;
  CHECK(w.get("/?a=k404&b=k200")->body == "nilb3a2niltruetrue");
  CHECK(w.get("/?a=k503&b=k503")->body == "nilb1b1nilfalsetrue");
  CHECK(w.get("/?a=k503&b=k404")->body == "nilb2a1nilfalsetrue");
}

TEST_CASE("a callback may change the class, up and down, and resume the waiter") {
  World w(route("rctx:get(h.a, 'k404') rctx:get(h.b, 'k200') local n = rctx:wait_cond(2, sluice.WAIT_GOOD) "
                "local _, a = rctx:result(h.a) local _, b = rctx:result(h.b) return n .. tostring(a) .. tostring(b)",
                "rctx:handle_set_cb(h.a, function(res, req) return sluice.WAIT_GOOD end) "
                "rctx:handle_set_cb(h.b, function(res, req) return sluice.WAIT_OK, sluice.WAIT_RESUME end)"));
  w.services.answerer = by_key;
  auto x = w.begin(Method::get, "/");
  w.services.deliver(1);
  CHECK(x->body == "0nil2");
  w.services.deliver(0);
}

TEST_CASE("a callback that fails, waits or enqueues is logged, and the result stays") {
  for (const char* cb : {"error('oh')", "rctx:sleep(1)", "rctx:get(h.b, 'k')"}) {
    World w(route("local res = rctx:get_and_wait(h.a, 'k') return res:body()",
                  "rctx:handle_set_cb(h.a, function() " + std::string(cb) + " end)"));
    CHECK(w.get("/")->body == "a show k");
    CHECK(w.log.has("t.lua:1:"));
  }
}

TEST_CASE("a route that returns with events queued and in flight answers once and keeps its slot until they are in") {
  World w(route("rctx:get(h.a, 'k') rctx:wait_cond(0) rctx:post(h.b, 'say', nil, 'x') return 'now'"));
  auto x = w.begin(Method::get, "/");
  CHECK(x->body == "now");
  CHECK(w.services.sent.size() == 2);
  CHECK(w.table->slots_in_use() == 1);
  w.services.deliver_all();
  CHECK(x->times == 1);
  CHECK(w.table->slots_in_use() == 0);
}

TEST_CASE("a route that fails with events in flight releases its slot when they are in") {
  World w(route("rctx:get(h.a, 'k') rctx:wait_cond(0) rctx:get(h.b, 'k') error('oh')"));
  auto x = w.begin(Method::get, "/");
  CHECK(x->status == 500);
  CHECK(w.services.sent.size() == 1);
  w.services.deliver_all();
  CHECK(w.table->slots_in_use() == 0);
}

TEST_CASE("a request is frozen when it is enqueued") {
  World w(route("local e = rctx:event(h.a, 'say'):set('n', 1):body('one') rctx:enqueue(e, h.a) e:set('n', 2):body('two') "
                "rctx:enqueue(e, h.b) rctx:wait_cond(2) return rctx:result(h.a):body() .. ';' .. rctx:result(h.b):body()"));
  CHECK(w.get("/")->body == "a input say n=1 [one];b input say n=2 [two]");
}

TEST_CASE("a stray yield is a Lua error with a position; coroutines of one's own work, but do not wait") {
  World w(route("local ok, why = pcall(coroutine.yield, 1) local co = coroutine.wrap(function() coroutine.yield('y') return 'z' end) "
                "local a, b = co(), co() local ok2, why2 = coroutine.resume(coroutine.create(function() rctx:get_and_wait(h.a, 'k') end)) "
                "return tostring(ok) .. why:match('coroutine.yield outside') .. a .. b .. tostring(ok2) .. why2:match('of your own')"));
  CHECK(w.get("/")->body == "falsecoroutine.yield outsideyzfalseof your own");
}

TEST_CASE("a wait passes through pcall, and not through sort, where it is an error") {
  World w(route("local _, res = pcall(rctx.get_and_wait, rctx, h.a, 'k') "
                "local ok, why = pcall(table.sort, { 1, 2 }, function() rctx:get_and_wait(h.b, 'k') return true end) "
                "return res:body() .. tostring(ok) .. why:match('C%-call')"));
  auto x = w.begin(Method::get, "/");
  w.services.deliver_all();
  w.services.deliver_all();
  CHECK(x->body == "a show kfalseC-call");
}

TEST_CASE("handles of another generator are an error") {
  World w("routes { map = { ['/1'] = route_lua { children = { a = 'a' }, f = function(rctx, h) other = h.a return function() return '1' end end }, "
          "['/2'] = route_lua { children = { a = 'a' }, f = function(rctx, h) return function(r) local ok, why = pcall(function() rctx:get(other, 'k') end) "
          "return tostring(ok) .. why end end } } }");
  CHECK(w.get("/2")->body.find("falset.lua:1: rctx:get: not a handle of route") == 0);
}

TEST_CASE("a client that leaves frees the slot of a GET at once, and a POST runs on") {
  World w(route("local res = rctx:post_and_wait(h.a, 'say', nil, 'x') seen = rctx:cancelled() return res:body()"));
  auto x = w.begin(Method::get, "/");
  x->is_gone = true;
  w.route->client_gone(*x);
  CHECK(x->times == 1);
  CHECK(w.table->slots_in_use() == 0);
  w.services.deliver_all();              // finds nobody
  auto y = w.begin(Method::post, "/");
  y->is_gone = true;
  w.route->client_gone(*y);
  CHECK(y->times == 0);
  w.services.deliver_all();
  CHECK(y->times == 1);
  CHECK(y->body == "a input say [x]");
  CHECK(w.get("/")->body == "a input say [x]");
}

TEST_CASE("a deadline answers 504 and frees the slot; what comes late is dropped") {
  World w(route("rctx:deadline(1) rctx:get_and_wait(h.a, 'k') return 'never'"));
  auto x = w.begin(Method::get, "/");
  w.services.pass(1'000'000);
  CHECK(x->status == 504);
  CHECK(x->error == sluice::Errc::deadline);
  CHECK(w.table->slots_in_use() == 0);
  auto y = w.begin(Method::get, "/");
  w.services.deliver_all();
  CHECK(y->body == "never");
  CHECK(x->times == 1);
  CHECK(w.services.timers.empty());
}

TEST_CASE("reads are answered in place, but not behind a write of the same route or connection") {
  World w(route("local v = rctx:view_and_wait(h.a, 'v', { user = 7 }) rctx:post(h.b, 'say') rctx:view(h.c, 'v') rctx:wait_cond(2) return v:body()"));
  w.services.evaluates = true;
  CHECK(w.get("/")->body == "a view v user=7");
  CHECK(w.services.evaluated == 2);
  World v(route("rctx:put(h.a, 'k', 'doc') rctx:wait_cond(0) local held = rctx:get_and_wait(h.b, 'k') return held:body()",  "", "a = 'a', b = 'a'"));
  v.services.evaluates = true;
  auto x = v.begin(Method::get, "/");
  CHECK(x->holds);
  CHECK(v.services.evaluated == 0);
  CHECK(v.services.sent.size() == 2);
  v.services.deliver_all();
  CHECK(x->body == "a show k");
  CHECK_FALSE(x->holds);
}

TEST_CASE("a read is not answered in place while a write of a route that it asked may change its store") {
  World w("routes { map = { ['/'] = route_lua { children = { b = 'b', inner = route_lua { children = { 'b' }, f = function(rctx, h) return function() "
          "rctx:post(h[1], 'say') rctx:wait_cond(0) if rctx:cancelled() then return 'x' end rctx:sleep(1) return 'early' end end } }, "
          "f = function(rctx, h) return function(r) rctx:enqueue(r, h.inner) rctx:get(h.b, 'k') rctx:wait_cond(2) "
          "local before = rctx:result(h.b):body() return rctx:result(h.inner):body() .. before .. rctx:get_and_wait(h.b, 'j'):body() end end } } }");
  w.services.evaluates = true;
  auto x = w.begin(Method::get, "/");
  CHECK(w.services.evaluated == 0);
  CHECK(w.services.sent.size() == 2);
  CHECK(x->holds);
  w.services.deliver(1);
  w.services.pass(1'000'000);   // it answers, its write still under way: nobody waits for that any more
  CHECK(w.services.evaluated == 1);
  CHECK(x->body == "earlyb show kb show j");
  w.services.deliver(0);
}

TEST_CASE("shorthands say what the module interface needs") {
  World w(route("rctx:put_and_wait(h.a, 'k', 'v') rctx:put_and_wait(h.a, 'k', 'v', 3) rctx:delete_and_wait(h.a, 'k', 4) "
                "local bad = rctx:get_and_wait(h.a, 'no/key') local refused = rctx:view_and_wait(h.a, 'refused') "
                "return bad:status() .. refused:error()"));
  std::string seen;
  w.services.answerer = [&](Event& e) { seen += std::to_string(static_cast<int>(e.condition)) + ":" + std::to_string(e.revision) + " "; };
  CHECK(w.get("/")->body == "404no_view");
  CHECK(seen == "1:0 2:3 2:4 ");
}

TEST_CASE("without room in the budget an enqueue is answered 503") {
  World w(route("local res = rctx:put_and_wait(h.a, 'k', ('x'):rep(1000)) return res"));
  w.services.the_budget.set_limit(10);
  auto x = w.get("/");
  CHECK(x->status == 503);
  CHECK(x->error == sluice::Errc::payload_budget);
}
