// The shapes that routes over routes have, each played answer by answer: when the client is answered, with what, and that
// every slot is free once the last answer is in.
//
// Three children a, b and c, each a route over one store, stand between: what is waited for are routes.
#include "t/lua/harness.h"

using namespace sluice::lua::harness;

namespace {

std::string shape(std::string_view body, std::string_view setup = "") {
  return "local function over(store) return route_lua { children = { s = store }, f = function(rctx, h) return function(r) return rctx:enqueue_and_wait(r, h.s) end end } end "
         "routes { map = { ['/'] = route_lua { children = { a = over('a'), b = over('b'), c = over('c') }, f = function(rctx, h) " + std::string(setup) +
         " return function(r) local all = { h.a, h.b, h.c } " + std::string(body) + " end end } } }";
}

// Plays one request: `course` has a step for each answer: store, status. Says behind which of them the client was answered.
struct Played {
  int answered_behind = -1;
  std::uint16_t status = 0;
  std::string body;
};
struct Step { char store; std::uint16_t status; };

Played play(World& w, const std::vector<Step>& course, std::string path = "/objects/k") {
  auto x = w.begin(Method::get, std::move(path));
  Played p;
  int n = 0;
  if (x->times) p.answered_behind = 0;
  for (const Step& s : course) {
    std::size_t at = 0;
    while (at < w.services.sent.size() && !(w.services.sent[at].event && w.services.sent[at].event->store->name()[0] == s.store)) ++at;
    CAPTURE(s.store);
    REQUIRE(at < w.services.sent.size());
    w.services.answerer = [&s](Event& e) { e.answer.status = s.status; };
    w.services.deliver(at);
    ++n;
    if (x->times && p.answered_behind < 0) p.answered_behind = n;
  }
  CHECK(x->times == 1);
  CHECK(w.table->slots_in_use() == 0);
  CHECK(w.services.kept == 0);
  CHECK(w.services.timers.empty());
  w.services.sent.clear();
  p.status = x->status;
  p.body = x->body;
  return p;
}

}  // namespace

TEST_CASE("first: the first answer of any kind") {
  World w(shape("rctx:enqueue(r, all) rctx:wait_cond(1) for _, x in ipairs(all) do local res = rctx:res_any(x) if res then return res end end"));
  Played p = play(w, {{'b', 200}, {'a', 200}, {'c', 200}});
  CHECK(p.answered_behind == 1);
  CHECK(p.body == "b show k");
  p = play(w, {{'c', 503}, {'a', 200}, {'b', 404}});
  CHECK(p.answered_behind == 1);
  CHECK(p.status == 503);
  CHECK(w.table->slots() == 4);
}

TEST_CASE("partial: two of three that are OK") {
  World w(shape("rctx:enqueue(r, all) return tostring(rctx:wait_cond(2, sluice.WAIT_OK))"));
  CHECK(play(w, {{'a', 200}, {'b', 404}, {'c', 200}}).answered_behind == 2);
  Played p = play(w, {{'a', 503}, {'b', 404}, {'c', 200}});
  CHECK(p.answered_behind == 3);
  CHECK(p.body == "2");
  p = play(w, {{'a', 503}, {'b', 503}, {'c', 200}});
  CHECK(p.answered_behind == 3);
  CHECK(p.body == "1");
}

TEST_CASE("all: everything, whatever it is") {
  World w(shape("rctx:enqueue(r, all) return tostring(rctx:wait_cond(3)) .. rctx:worst_result(all):status() .. rctx:best_result(all):status()"));
  const Played p = play(w, {{'c', 200}, {'b', 404}, {'a', 503}});
  CHECK(p.answered_behind == 3);
  CHECK(p.body == "3503200");
}

TEST_CASE("fastgood: the first hit, or what two answered") {
  World w(shape("rctx:enqueue(r, all) local n = rctx:wait_cond(2, sluice.WAIT_FASTGOOD) return rctx:best_result(all)"));
  CHECK(play(w, {{'b', 200}, {'a', 200}, {'c', 200}}).answered_behind == 1);
  Played p = play(w, {{'b', 404}, {'a', 200}, {'c', 404}});
  CHECK(p.answered_behind == 2);
  CHECK(p.status == 200);
  p = play(w, {{'b', 503}, {'a', 404}, {'c', 404}});
  CHECK(p.answered_behind == 3);
  CHECK(p.status == 404);
}

TEST_CASE("blocker: one has to be there before the others count") {
  World w(shape("rctx:enqueue(r, all) local b = rctx:wait_handle(h.b) if not b:hit() then return b end "
                "local n = rctx:wait_cond(1, sluice.WAIT_GOOD) return 200, n .. tostring(rctx:res_good(h.a) ~= nil) .. tostring(rctx:res_good(h.c) ~= nil)"));
  Played p = play(w, {{'a', 200}, {'c', 404}, {'b', 200}});
  CHECK(p.answered_behind == 3);
  CHECK(p.body == "1truefalse");           // a was in before: it counts now
  p = play(w, {{'b', 200}, {'a', 404}, {'c', 200}});
  CHECK(p.answered_behind == 3);
  CHECK(p.body == "1falsetrue");
  p = play(w, {{'b', 404}, {'a', 200}, {'c', 200}});
  CHECK(p.answered_behind == 1);
  CHECK(p.status == 404);
}

TEST_CASE("failover: the next when it is no hit, and the last answer when none is") {
  World w(shape("local res for _, x in ipairs(all) do res = rctx:enqueue_and_wait(r, x) if res:hit() then break end end return res"));
  CHECK(play(w, {{'a', 200}}).body == "a show k");
  CHECK(play(w, {{'a', 503}, {'b', 200}}).body == "b show k");
  CHECK(play(w, {{'a', 503}, {'b', 404}, {'c', 503}}).status == 503);
}

TEST_CASE("split: one answers, the others are sent all the same") {
  World w(shape("rctx:enqueue(r, all) return (rctx:wait_handle(h.a))"));
  Played p = play(w, {{'a', 200}, {'b', 503}, {'c', 200}});
  CHECK(p.answered_behind == 1);
  CHECK(p.body == "a show k");
  p = play(w, {{'b', 503}, {'c', 200}, {'a', 404}});
  CHECK(p.answered_behind == 3);
  CHECK(p.status == 404);
}

TEST_CASE("summary: what each said, in one text, and callbacks that counted") {
  World w(shape("classes = {} rctx:enqueue(r, all) rctx:wait_cond(3) local out = {} for i, x in ipairs(all) do local res, class = rctx:result(x) "
                "out[i] = res:backend() .. '=' .. res:status() .. '/' .. class .. '/' .. tostring(classes[x]) end return table.concat(out, ' ')",
                "local classes for _, x in ipairs { h.a, h.b, h.c } do rctx:handle_set_cb(x, function(res) classes[x] = res:status() end) end"));
  CHECK(play(w, {{'b', 404}, {'c', 503}, {'a', 201}}).body.find("=201/3/201") != std::string::npos);
  CHECK(play(w, {{'b', 404}, {'c', 503}, {'a', 201}}).body.find("=503/1/503") != std::string::npos);
}

TEST_CASE("locality: the near one, and the far ones at once when it does not know") {
  World w(shape("local near = rctx:enqueue_and_wait(r, h.b) if near:hit() then return near end local far = { h.a, h.c } "
                "rctx:enqueue(r, far) rctx:wait_cond(2, sluice.WAIT_FASTGOOD) return rctx:best_result(far)"));
  CHECK(play(w, {{'b', 200}}).body == "b show k");
  Played p = play(w, {{'b', 404}, {'c', 200}, {'a', 200}});
  CHECK(p.answered_behind == 2);
  CHECK(p.body == "c show k");
  CHECK(play(w, {{'b', 404}, {'c', 404}, {'a', 503}}).status == 404);
}

TEST_CASE("late first answers win: the one that came while the second was asked") {
  World w(shape("local res = rctx:enqueue_and_wait(r, h.a, 0.5) if not res then rctx:enqueue(r, h.b) rctx:wait_cond(1, sluice.WAIT_GOOD) res = rctx:best_result { h.a, h.b } end return res"));
  auto x = w.begin(Method::get, "/objects/k");
  w.services.pass(500'000);
  CHECK(w.services.sent.size() == 2);
  w.services.deliver(0);
  CHECK(x->body == "a show k");
  w.services.deliver(1);
  w.services.sent.clear();
  auto y = w.begin(Method::get, "/objects/k");
  w.services.pass(500'000);
  w.services.deliver(1);
  CHECK(y->body == "b show k");
  w.services.deliver(0);
  CHECK(w.table->slots_in_use() == 0);
}

TEST_CASE("sleep before, behind and between waits, twice, and in a route inside") {
  World w(shape("rctx:sleep(1) rctx:enqueue(r, h.a) rctx:sleep(1) rctx:sleep(1) local sent = rctx:result(h.a) rctx:wait_cond(0) rctx:sleep(1) "
                "local res = rctx:wait_handle(h.a, 0) return tostring(sent) .. res:body()"));
  auto x = w.begin(Method::get, "/objects/k");
  for (int i = 0; i < 3; ++i) {
    CHECK(w.services.sent.empty());        // a sleep sends nothing
    w.services.pass(1'000'000);
  }
  REQUIRE(w.services.sent.size() == 1);
  w.services.deliver(0);
  CHECK(x->times == 0);                    // it wakes nobody either
  w.services.pass(1'000'000);
  CHECK(x->body == "nila show k");
}

TEST_CASE("slots: as many as run at once, of one, two and three routes deep, and back to one of each") {
  const std::string leaf = "local function leaf() return route_lua { children = { 'a' }, f = function(rctx, h) return function(r) return rctx:enqueue_and_wait(r, h[1]) end end } end "
                           "local function over(child) return route_lua { children = { child }, f = function(rctx, h) return function(r) return rctx:enqueue_and_wait(r, h[1]) end end } end ";
  const char* trees[] = {"leaf()", "over(leaf())", "over(over(leaf()))"};
  for (std::uint32_t depth = 1; depth <= 3; ++depth) {
    CAPTURE(depth);
    World w(leaf + "routes { map = { ['/'] = " + trees[depth - 1] + " } }");
    CHECK(w.table->slots() == depth);      // each has its first: a mistake in it is one of the config
    for (int round = 0; round < 3; ++round) {
      std::vector<std::unique_ptr<TestExchange>> many;
      for (int i = 0; i < 100; ++i) many.push_back(w.begin(Method::get, "/objects/k"));
      CHECK(w.table->slots() == 100 * depth);
      CHECK(w.table->slots_in_use() == 100 * depth);
      w.services.deliver_all();
      for (const auto& x : many) CHECK(x->body == "a show k");
      CHECK(w.table->slots_in_use() == 0);
    }
    const auto full = w.table->memory_bytes();
    for (int minute = 0; minute < 10; ++minute) {
      for (std::uint32_t i = 0; i < depth; ++i) w.table->idle();
      w.services.pass(61'000'000);
    }
    for (int i = 0; i < 500; ++i) w.table->idle();
    CHECK(w.table->slots() == depth);
    CHECK(w.table->memory_bytes() <= full);
    CHECK(w.get("/objects/k")->body == "a show k");
  }
}

TEST_CASE("slots that are needed every minute stay") {
  World w("routes { map = { ['/'] = route_lua { children = { 'a' }, f = function(rctx, h) return function(r) return rctx:enqueue_and_wait(r, h[1]) end end } } }");
  for (int minute = 0; minute < 10; ++minute) {
    std::vector<std::unique_ptr<TestExchange>> many;
    for (int i = 0; i < 64; ++i) many.push_back(w.begin(Method::get, "/objects/k"));
    w.table->idle();
    w.services.deliver_all();
    w.table->idle();
    w.services.pass(61'000'000);
  }
  CHECK(w.table->slots() == 64);
}
