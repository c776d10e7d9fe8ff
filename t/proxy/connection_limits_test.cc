// The connection's limits of time, number and bytes, and what a client that leaves leaves behind.
#include "proxy/connection.h"

#include "t/proxy/harness.h"

using namespace sluice;
using namespace sluice::proxy;
using namespace sluice::proxy::test;

TEST_CASE("a slow head is 408 by its first byte, a silent connection is closed without a word") {
  Harness h;
  const auto c = h.connect();
  c->send("GET / HT");
  h.turns();
  h.pass_ms(6000);
  c->send("T");
  h.turns();
  CHECK(c->take().empty());
  h.pass_ms(4001);
  const std::string got = c->take();
  CHECK(got.starts_with("HTTP/1.1 408 "));
  CHECK(has(got, "X-Pure-Error: timeout\r\n"));
  const auto silent = h.connect();
  h.pass_ms(59'000);
  silent->take();
  CHECK_FALSE(silent->ended);
  h.pass_ms(1'100);
  CHECK(silent->take().empty());
  CHECK(silent->ended);
  CHECK(h.counters.timeouts.get() == 1);
}

TEST_CASE("idle time is counted from the last answer") {
  Harness h;
  answer_at_once(h.lua, "x");
  const auto c = h.connect();
  h.pass_ms(50'000);
  CHECK(has(h.roundtrip(*c, get("/r/")), "200 OK"));
  h.pass_ms(50'000);
  c->take();
  CHECK_FALSE(c->ended);
  h.pass_ms(10'100);
  c->take();
  CHECK(c->ended);
}

TEST_CASE("a body has to keep a rate after its grace") {
  Harness h;
  const auto c = h.connect();
  c->send("POST /m/ HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\n");
  h.turns();
  for (int i = 0; i < 20; ++i) {   // 2,000 bytes a second are enough
    c->send(std::string(2000, 'x'));
    h.pass_ms(1000);
  }
  CHECK(c->take().empty());
  h.pass_ms(40'000);
  CHECK(c->take().starts_with("HTTP/1.1 408 "));
  CHECK(h.limits.payload.held() == 0);
}

TEST_CASE("a reader that takes nothing is cut off, one that keeps the rate is not") {
  Harness h;
  answer_at_once(h.lua, std::string(2'000'000, 'z'));
  const auto stuck = h.connect(16384), slow = h.connect(16384);
  stuck->send(get("/r/"));
  slow->send(get("/r/"));
  h.turns();
  std::size_t got = 0;
  for (int i = 0; i < 25; ++i) {
    got += slow->take(20'000).size();
    h.pass_ms(1000);
  }
  CHECK(h.counters.timeouts.get() == 1);
  CHECK(h.counters.connections.get() == 1);
  while (got < 2'000'000) {
    const std::size_t n = slow->take().size();
    got += n;
    h.turns();
    if (n == 0) break;
  }
  CHECK(got > 2'000'000);
}

TEST_CASE("a request that takes too long is 504 and its late answer goes nowhere") {
  Harness h;
  h.lua.let_go = false;
  const auto c = h.connect();
  c->send(get("/r/slow") + get("/r/next"));
  h.turns();
  h.lua.answer(*h.lua.held[1], 200, "next");
  h.pass_ms(30'001);
  const std::string got = c->take();
  CHECK(got.starts_with("HTTP/1.1 504 "));
  CHECK(has(got, "X-Pure-Error: deadline\r\n"));
  CHECK(got.ends_with("next"));
  CHECK(h.lua.gone == 1);
  REQUIRE(h.lua.held.size() == 1);
  CHECK(h.lua.held[0]->gone());
  h.lua.answer(200, "late");
  h.turns();
  CHECK(c->take().empty());
  CHECK(h.counters.expired.get() == 1);
  CHECK(h.counters.deadlines.get() == 1);
  CHECK(h.counters.active.get() == 0);
  // A route that lets go at once is the same to the client.
  h.lua.let_go = true;
  c->send(get("/r/again"));
  h.turns();
  h.pass_ms(30'001);
  CHECK(c->take().starts_with("HTTP/1.1 504 "));
  CHECK(h.lua.held.empty());
}

TEST_CASE("a request that waited for its turn until the deadline never starts") {
  Harness h;
  const auto c = h.connect();
  c->send(post("/r/1", "x") + get("/m/2"));
  h.turns();
  h.pass_ms(30'001);
  CHECK(count_of(c->take(), "HTTP/1.1 504 ") == 2);
  CHECK(h.module.started.empty());
  // The write was answered with 504 and may still happen: what follows knows.
  c->send(get("/m/3"));
  h.turns();
  REQUIRE(h.module.held.size() == 1);
  CHECK_FALSE(h.module.held[0]->behind_write());
}

TEST_CASE("a write that goes on behind its 504 keeps later reads behind it") {
  Harness h;
  h.module.on_start = [](Exchange& e, Services&) {
    if (!is_safe(e.request().method)) e.hold_writes(true);
  };
  const auto c = h.connect();
  c->send(post("/m/1", "x"));
  h.turns();
  h.pass_ms(30'001);
  CHECK(c->take().starts_with("HTTP/1.1 504 "));
  c->send(get("/m/2"));
  h.turns();
  REQUIRE(h.module.held.size() == 2);
  CHECK(h.module.held[1]->behind_write());
}

TEST_CASE("a client that leaves is told to its routes, at each stage, and nothing is kept") {
  Harness h;
  SUBCASE("in a head") {
    const auto c = h.connect();
    c->send("GET / HTTP/1.1\r\nHo");
    h.turns();
    c->leave();
    h.turns();
  }
  SUBCASE("in a body") {
    const auto c = h.connect();
    c->send("POST /m/ HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nabc");
    h.turns();
    CHECK(h.limits.payload.held() == 10);
    c->leave();
    h.turns();
  }
  SUBCASE("while a safe route runs") {
    const auto c = h.connect();
    c->send(get("/r/1") + get("/r/2"));
    h.turns();
    c->leave();
    h.turns();
    h.pass_ms(1'100);
    CHECK(h.lua.gone == 2);
    CHECK(h.lua.held.empty());
    CHECK(h.counters.clients_gone.get() == 1);
  }
  SUBCASE("while an unsafe route runs, which goes on") {
    const auto c = h.connect();
    c->send(post("/r/1", "x"));
    h.turns();
    c->leave();
    h.turns();
    h.pass_ms(1'100);
    CHECK(h.lua.gone == 1);
    REQUIRE(h.lua.held.size() == 1);
    CHECK(h.lua.held[0]->gone());
    CHECK(h.counters.active.get() == 1);
    h.lua.answer(200, "into nothing");
    h.turns();
    CHECK(h.counters.expired.get() == 1);
  }
  SUBCASE("before a blocked request started") {
    const auto c = h.connect();
    c->send(post("/r/1", "x") + get("/m/2"));
    h.turns();
    c->leave();
    h.turns();
    h.pass_ms(1'100);
    h.lua.answer(200, "x");
    h.turns();
    CHECK(h.module.started.empty());
  }
  SUBCASE("while a large answer is on its way") {
    answer_at_once(h.lua, std::string(3'000'000, 'z'));
    const auto c = h.connect();
    c->send(get("/r/"));
    h.turns();
    c->leave();
    h.turns();
  }
  h.turns();
  CHECK(h.counters.connections.get() == 0);
  CHECK(h.counters.active.get() == 0);
  CHECK(h.limits.payload.held() == 0);
  CHECK(h.limits.connections.held() == 0);
}

TEST_CASE("a client that has said it sends no more still gets its answers") {
  Harness h;
  const auto c = h.connect();
  c->send(get("/m/1") + get("/m/2"));
  c->half_close();
  h.turns();
  REQUIRE(h.module.held.size() == 2);
  h.module.answer(200, "a"), h.module.answer(200, "b");
  h.turns();
  CHECK(count_of(c->take(), "HTTP/1.1 200") == 2);
  CHECK(c->ended);
  CHECK(h.counters.connections.get() == 0);
}

TEST_CASE("over the limit of connections a client hears 503 and is closed") {
  Settings s;
  s.connections = 1;
  Harness h(s);
  answer_at_once(h.lua, "x");
  const auto a = h.connect(), b = h.connect();
  h.turns();
  const std::string got = b->take();
  CHECK(got.starts_with("HTTP/1.1 503 "));
  CHECK(has(got, "X-Pure-Error: overload\r\n"));
  CHECK(b->ended);
  CHECK(has(h.roundtrip(*a, get("/r/")), "200 OK"));
  a->leave();
  h.turns();
  const auto d = h.connect();
  CHECK(has(h.roundtrip(*d, get("/r/")), "200 OK"));
  CHECK(h.counters.refused_connections.get() == 1);
}

TEST_CASE("the limit of requests at once admits that many and refuses the excess") {
  Settings s;
  s.active_req_limit = 2;
  Harness h(s);
  const auto c = h.connect();
  c->send(get("/r/1") + get("/r/2") + get("/r/3"));
  h.turns();
  CHECK(h.lua.held.size() == 2);
  h.lua.answer(200, "a"), h.lua.answer(200, "b");
  h.turns();
  const std::string got = c->take();
  CHECK(count_of(got, "HTTP/1.1 200") == 2);
  CHECK(has(got, "X-Pure-Error: overload\r\n"));
  CHECK(h.limits.active.held() == 0);
}

TEST_CASE("an answer that waits is charged to the budget until it has left, and refused beyond it") {
  Settings s;
  s.payload_budget_bytes = 300'000;
  Harness h(s);
  answer_at_once(h.lua, std::string(200'000, 'z'));
  const auto slow = h.connect(4096), other = h.connect(4096);
  slow->send(get("/r/"));
  h.turns();
  CHECK(h.limits.payload.held() == 200'000);
  const std::string refused = h.roundtrip(*other, get("/r/"));
  CHECK(refused.starts_with("HTTP/1.1 503 "));
  CHECK(has(refused, "X-Pure-Error: payload_budget\r\n"));
  CHECK(has(refused, "Retry-After: 1\r\n"));
  CHECK(h.counters.refused_budget.get() == 1);
  std::size_t got = 0;
  for (int i = 0; i < 1000 && got < 200'000; ++i) {
    got += slow->take().size();
    h.turns(1);
  }
  CHECK(got > 200'000);
  h.turns();
  CHECK(h.limits.payload.held() == 0);
  other->send(get("/r/"));
  h.turns();
  CHECK(h.limits.payload.held() == 200'000);
  other->leave();
  h.turns();
  CHECK(h.limits.payload.held() == 0);
}

TEST_CASE("a request's body is given back when its answer is known, not when that has left") {
  Harness h;
  const auto c = h.connect();
  c->send(get("/r/first") + post("/m/second", std::string(10'000, 'b')));
  h.turns();
  CHECK(h.limits.payload.held() == 10'000);
  REQUIRE(h.module.held.size() == 1);
  h.module.answer(200, "done");
  h.turns();
  CHECK(h.limits.payload.held() == 0);
  h.lua.answer(200, "first");
  h.turns();
  CHECK(count_of(c->take(), "HTTP/1.1 200") == 2);
}

namespace {
// Answers with a document of 3,000,000 bytes in pieces, lent by whoever holds `document`.
struct Lender {
  explicit Lender(Harness& h) {
    h.module.on_start = [this, &h](Exchange& e, Services&) {
      Response r;
      r.body.loan = document;
      for (std::size_t at = 0; at < document->size(); at += 10'000)
        r.body.pieces.push_back(std::string_view(*document).substr(at, 10'000));
      h.module.answer(e, r);
    };
    for (std::size_t i = 0; i < document->size(); ++i) (*document)[i] = static_cast<char>('a' + i * i % 23);
  }
  long loans() const { return document.use_count() - 1; }
  const std::shared_ptr<std::string> document = std::make_shared<std::string>(3'000'000, 'd');
};
}  // namespace

TEST_CASE("a reader that takes its time gets a copy, and the store its snapshot back") {
  Harness h;
  Lender lender(h);
  const auto c = h.connect(16384);
  c->send(get("/m/one") + get("/m/two"));
  h.turns();
  std::string got = c->take(5'000);
  h.turns();
  CHECK(lender.loans() == 2);
  CHECK(h.limits.payload.held() == 0);
  h.pass_ms(2'100);
  CHECK(lender.loans() == 0);
  CHECK(h.limits.payload.held() > 5'000'000);
  for (int i = 0; i < 10'000 && got.size() < 6'000'000; ++i) {
    got += c->take();
    h.turns(1);
  }
  h.turns();
  got += c->take();
  CHECK(h.limits.payload.held() == 0);
  CHECK(h.counters.connections.get() == 1);
  const std::size_t second = got.find("HTTP/1.1 200", 1);
  REQUIRE(second != got.npos);
  CHECK(body_of(got.substr(0, second)) == *lender.document);
  CHECK(body_of(got.substr(second)) == *lender.document);
}

TEST_CASE("without room for a copy a slow reader keeps its loan for a while, and is then cut off") {
  Settings s;
  s.payload_budget_bytes = 1'000'000;
  Harness h(s);
  Lender lender(h);
  const auto slow = h.connect(16384), gone = h.connect(16384);
  slow->send(get("/m/"));
  gone->send(get("/m/"));
  h.turns();
  for (int second = 0; second < 29; ++second) {
    slow->take(20'000);
    h.pass_ms(1000);
  }
  CHECK(lender.loans() == 1);   // the other took nothing at all
  CHECK(h.counters.connections.get() == 1);
  h.pass_ms(3000);
  CHECK(lender.loans() == 0);
  CHECK(h.counters.connections.get() == 0);
  CHECK(h.counters.refused_budget.get() == 1);
  CHECK(h.limits.payload.held() == 0);
}
