// The connection's promises, seen from a client's end of a socket pair.
#include "proxy/connection.h"

#include "t/proxy/harness.h"

using namespace sluice;
using namespace sluice::proxy;
using namespace sluice::proxy::test;

TEST_CASE("an answer has a status line, a date, its length and its name of error") {
  Harness h;
  answer_at_once(h.lua, "hello");
  const auto c = h.connect();
  const std::string answer = h.roundtrip(*c, get("/r/x"));
  CHECK(answer == "HTTP/1.1 200 OK\r\nDate: Sun, 30 Nov 2025 15:16:40 GMT\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n"
                  "X-Pure-Error: none\r\n\r\nhello");
  CHECK(h.counters.requests.get() == 1);
  CHECK(h.counters.answers.get() == 1);
  CHECK(h.counters.active.get() == 0);
}

TEST_CASE("answers leave in the order of the requests, each as soon as those before it are ready") {
  Harness h;
  const auto c = h.connect();
  c->send(get("/r/1") + get("/r/2") + get("/r/3"));
  h.turns();
  REQUIRE(h.lua.held.size() == 3);
  Exchange* const first = h.lua.held[0];
  Exchange* const second = h.lua.held[1];
  Exchange* const third = h.lua.held[2];
  h.lua.answer(*second, 200, "two");
  h.turns();
  CHECK(c->take().empty());
  h.lua.answer(*first, 200, "one");
  h.turns();
  const std::string both = c->take();
  CHECK(both.find("one") < both.find("two"));
  CHECK(count_of(both, "HTTP/1.1 200") == 2);
  h.lua.answer(*third, 200, "three");
  h.turns();
  CHECK(body_of(c->take()) == "three");
}

TEST_CASE("pipelined requests start together, but behind an unsafe one as http.md says") {
  Harness h;
  SUBCASE("safe ones do not wait") {
    const auto c = h.connect();
    c->send(get("/r/1") + get("/m/2") + get("/r/3") + get("/m/4"));
    h.turns();
    CHECK(h.lua.started.size() == 2);
    CHECK(h.module.started.size() == 2);
  }
  SUBCASE("module requests do not wait for module writes, and know that they are behind one") {
    std::vector<bool> behind;
    h.module.on_start = [&](Exchange& e, Services&) {
      behind.push_back(e.behind_write());
      if (!is_safe(e.request().method)) e.hold_writes(true);
    };
    const auto c = h.connect();
    c->send(get("/m/1") + post("/m/2", "x") + get("/m/3"));
    h.turns();
    CHECK(behind == std::vector<bool>{false, false, true});
    // The one before the write is asked again: what came later is not before it.
    CHECK_FALSE(h.module.held[0]->behind_write());
    h.module.answer(*h.module.held[1], 200, "written");
    CHECK_FALSE(h.module.held[1]->behind_write());
    h.module.answer(200, "a"), h.module.answer(200, "b");
    h.turns();
    CHECK(count_of(c->take(), "HTTP/1.1 200") == 3);
  }
  SUBCASE("a route waits for a module write, a module request behind it does not") {
    const auto c = h.connect();
    c->send(post("/m/1", "x") + get("/r/2") + get("/m/3"));
    h.turns();
    CHECK(h.module.started == std::vector<std::string>{"/m/1", "/m/3"});
    CHECK(h.lua.started.empty());
    h.module.answer(200, "done");
    h.turns();
    CHECK(h.lua.started == std::vector<std::string>{"/r/2"});
  }
  SUBCASE("everything waits for an unsafe route") {
    const auto c = h.connect();
    c->send(post("/r/1", "x") + get("/m/2") + post("/r/3", "x") + get("/m/4"));
    h.turns();
    CHECK(h.module.started.empty());
    CHECK(h.lua.started == std::vector<std::string>{"/r/1"});
    h.lua.answer(200, "one");
    h.turns();
    CHECK(h.module.started == std::vector<std::string>{"/m/2"});
    CHECK(h.lua.started == std::vector<std::string>{"/r/1", "/r/3"});
    h.lua.answer(200, "three");
    h.module.answer(200, "two");
    h.turns();
    CHECK(h.module.started == std::vector<std::string>{"/m/2", "/m/4"});
    h.module.answer(200, "four");
    h.turns();
    const std::string all = c->take();
    CHECK(count_of(all, "HTTP/1.1 200") == 4);
    CHECK((all.find("one") < all.find("two") && all.find("two") < all.find("three") && all.find("three") < all.find("four")));
  }
  SUBCASE("another connection waits for nobody") {
    const auto a = h.connect(), b = h.connect();
    a->send(post("/r/1", "x"));
    b->send(get("/r/2"));
    h.turns();
    CHECK(h.lua.started.size() == 2);
  }
}

TEST_CASE("more requests in flight than the limit wait unread, and all are answered") {
  Settings s;
  s.pipeline = 4;
  Harness h(s);
  const auto c = h.connect();
  std::string all;
  for (int i = 0; i < 50; ++i) all += get("/r/" + std::to_string(i));
  c->send(all);
  h.turns();
  CHECK(h.lua.held.size() == 4);
  std::string got;
  for (int i = 0; i < 50; ++i) {
    REQUIRE_FALSE(h.lua.held.empty());
    CHECK(h.lua.held.size() <= 4);
    h.lua.answer(200, "n" + std::to_string(i) + ";");
    h.turns();
    got += c->take();
  }
  CHECK(count_of(got, "HTTP/1.1 200") == 50);
  CHECK(got.find("n48;") < got.find("n49;"));
  answer_at_once(h.lua, "");
  CHECK(count_of(h.roundtrip(*c, all), "HTTP/1.1 200") == 50);
}

TEST_CASE("HEAD has the head of GET and no body") {
  Harness h;
  answer_at_once(h.lua, "hello");
  const auto c = h.connect();
  const std::string answer = h.roundtrip(*c, "HEAD /r/ HTTP/1.1\r\nHost: h\r\n\r\n");
  CHECK(has(answer, "Content-Length: 5\r\n"));
  CHECK(body_of(answer).empty());
  CHECK(has(h.roundtrip(*c, get("/r/")), "hello"));
}

TEST_CASE("If-None-Match with the revision is 304, for lists, * and weak tags, and only for a 200 of GET or HEAD") {
  Harness h;
  std::uint16_t status = 200;
  h.lua.on_start = [&](Exchange& e, Services&) {
    Response r;
    r.status = status;
    r.revision = 42;
    r.content_type = "text/plain";
    r.no_store = true;
    r.body.text = "document";
    h.lua.answer(e, r);
  };
  const auto c = h.connect();
  for (const char* tag : {"\"42\"", "W/\"42\"", "*", "\"1\", \"42\"", "W/\"7\" , W/\"42\""}) {
    const std::string answer = h.roundtrip(*c, get("/r/", std::string("If-None-Match: ") + tag + "\r\n"));
    CAPTURE(tag);
    CHECK(answer.starts_with("HTTP/1.1 304 Not Modified\r\n"));
    CHECK(has(answer, "ETag: \"42\"\r\n"));
    CHECK(has(answer, "Cache-Control: no-store\r\n"));
    CHECK_FALSE(has(answer, "Content-"));
    CHECK(body_of(answer).empty());
  }
  for (const char* tag : {"\"4\"", "42", "\"42", "\"420\"", "\"*\""})
    CHECK(h.roundtrip(*c, get("/r/", std::string("If-None-Match: ") + tag + "\r\n")).starts_with("HTTP/1.1 200"));
  CHECK(h.roundtrip(*c, post("/r/", "", "If-None-Match: *\r\n")).starts_with("HTTP/1.1 200"));
  status = 201;
  CHECK(h.roundtrip(*c, get("/r/", "If-None-Match: *\r\n")).starts_with("HTTP/1.1 201"));
}

TEST_CASE("100 Continue is sent when the body is waited for, and only behind the answers before it") {
  Harness h;
  const std::string head = "POST /m/x HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n";
  SUBCASE("alone") {
    const auto c = h.connect();
    CHECK(h.roundtrip(*c, head) == "HTTP/1.1 100 Continue\r\n\r\n");
    c->send("abc");
    h.turns();
    REQUIRE(h.module.held.size() == 1);
    CHECK(h.module.held[0]->request().body.view() == "abc");
  }
  SUBCASE("not when the body came with the head") {
    const auto c = h.connect();
    CHECK(h.roundtrip(*c, head + "abc").empty());
    CHECK(h.module.held.size() == 1);
  }
  SUBCASE("behind an answer that is not ready") {
    const auto c = h.connect();
    CHECK(h.roundtrip(*c, get("/r/") + head).empty());
    h.lua.answer(200, "first");
    h.turns();
    const std::string got = c->take();
    CHECK(got.ends_with("firstHTTP/1.1 100 Continue\r\n\r\n"));
  }
  SUBCASE("another expectation is 417") {
    const auto c = h.connect();
    const std::string got = h.roundtrip(*c, get("/m/", "Expect: magic\r\n") + get("/m/"));
    CHECK(got.starts_with("HTTP/1.1 417 "));
    CHECK(has(got, "X-Pure-Error: expect\r\n"));
    CHECK(h.module.held.size() == 1);
  }
}

TEST_CASE("what a route cannot be found for is answered here") {
  Harness h;
  const auto c = h.connect();
  const std::string none = h.roundtrip(*c, get("/nowhere"));
  CHECK(none.starts_with("HTTP/1.1 404 "));
  CHECK(has(none, "X-Pure-Error: route\r\n"));
  CHECK(body_of(none) == "no such path\n");
  const std::string method = h.roundtrip(*c, "PATCH /m/ HTTP/1.1\r\nHost: h\r\n\r\n");
  CHECK(method.starts_with("HTTP/1.1 405 "));
  CHECK(has(method, "Allow: GET, HEAD, OPTIONS\r\n"));
  const std::string star = h.roundtrip(*c, "OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n");
  CHECK(star.starts_with("HTTP/1.1 204 "));
  CHECK(has(star, "Allow: GET, HEAD, POST, PUT, DELETE, OPTIONS\r\n"));
  CHECK_FALSE(has(star, "Content-Length"));
}

TEST_CASE("a refused head is answered and the connection closed") {
  Harness h;
  const auto c = h.connect();
  const std::string got = h.roundtrip(*c, "GET / HTTP/1.1\r\n\r\n" + get("/m/"));
  CHECK(got.starts_with("HTTP/1.1 400 Bad Request\r\n"));
  CHECK(has(got, "Connection: close\r\n"));
  CHECK(c->ended);
  CHECK(h.module.started.empty());
  h.pass_ms(2000);
  CHECK(h.counters.connections.get() == 0);
}

TEST_CASE("a body over the limit is 413, over the budget 503, and a small rest is dropped") {
  Settings s;
  s.body_bytes = 1000;
  s.payload_budget_bytes = 500;
  Harness h(s);
  answer_at_once(h.module, "ok");
  const auto c = h.connect();
  CHECK(h.roundtrip(*c, post("/m/", std::string(2000, 'x'))).starts_with("HTTP/1.1 413 "));
  const std::string busy = h.roundtrip(*c, post("/m/", std::string(600, 'x')));
  CHECK(busy.starts_with("HTTP/1.1 503 "));
  CHECK(has(busy, "X-Pure-Error: payload_budget\r\n"));
  CHECK(has(busy, "Retry-After: 1\r\n"));
  CHECK(h.roundtrip(*c, post("/m/", std::string(400, 'x'))).starts_with("HTTP/1.1 200 "));
  CHECK(h.limits.payload.held() == 0);
  const std::string last = h.roundtrip(*c, "POST /m/ HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\n");
  CHECK(last.starts_with("HTTP/1.1 413 "));
  CHECK(has(last, "Connection: close\r\n"));
}

TEST_CASE("chunked bodies arrive whole, in any pieces") {
  Harness h;
  h.module.on_start = [&](Exchange& e, Services&) { h.module.answer(e, 200, std::string(e.request().body.view())); };
  const auto c = h.connect();
  const std::string bytes = "POST /m/ HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n";
  for (const char b : bytes) {
    c->send({&b, 1});
    h.turns(1);
  }
  h.turns();
  CHECK(body_of(c->take()) == "hello world");
}

TEST_CASE("HTTP/1.0 is answered and closed unless it asks to keep alive") {
  Harness h;
  answer_at_once(h.lua, "x");
  const auto a = h.connect();
  CHECK(has(h.roundtrip(*a, "GET /r/ HTTP/1.0\r\n\r\n"), "Connection: close\r\n"));
  CHECK(a->ended);
  const auto b = h.connect();
  const std::string kept = h.roundtrip(*b, "GET /r/ HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  CHECK(has(kept, "Connection: keep-alive\r\n"));
  CHECK_FALSE(b->ended);
  const auto c = h.connect();
  CHECK(count_of(h.roundtrip(*c, get("/r/", "Connection: close\r\n") + get("/r/")), "HTTP/1.1 200") == 1);
  CHECK(c->ended);
}

TEST_CASE("a connection serves as many requests as the setting says") {
  Settings s;
  s.requests_per_connection = 2;
  Harness h(s);
  answer_at_once(h.lua, "x");
  const auto c = h.connect();
  CHECK_FALSE(has(h.roundtrip(*c, get("/r/")), "Connection: close"));
  CHECK(has(h.roundtrip(*c, get("/r/")), "Connection: close"));
  CHECK(c->ended);
}

TEST_CASE("lent pieces are written where they are and let go when they have left") {
  Harness h;
  auto document = std::make_shared<std::string>(3'000'000, 'd');
  (*document)[1'500'000] = '!';
  const std::weak_ptr<std::string> watch = document;
  h.module.on_start = [&](Exchange& e, Services&) {
    Response r;
    r.body.loan = document;
    for (std::size_t at = 0; at < document->size(); at += 10'000) r.body.pieces.push_back(std::string_view(*document).substr(at, 10'000));
    document.reset();
    h.module.answer(e, r);
  };
  const auto c = h.connect(16384);
  c->send(get("/m/doc"));
  h.turns();
  CHECK_FALSE(watch.expired());
  std::string got;
  for (int i = 0; i < 10'000 && !(got.size() > 3'000'000 && watch.expired()); ++i) {
    got += c->take();
    h.turns(1);
  }
  got += c->take();
  const std::string body = body_of(got);
  CHECK(body.size() == 3'000'000);
  CHECK(body[1'500'000] == '!');
  CHECK(watch.expired());
}

TEST_CASE("a route's own headers stand, and its X-Pure-Error replaces ours") {
  Harness h;
  h.lua.on_start = [&](Exchange& e, Services&) {
    Response r;
    r.status = 409;
    r.headers = "X-Mine: 1\r\nx-pure-error: exists\r\n";
    r.retry_after_s = 7;
    r.close = true;
    h.lua.answer(e, r);
    CHECK(r.headers.empty());
    CHECK(r.status == 200);
  };
  const auto c = h.connect();
  const std::string got = h.roundtrip(*c, get("/r/") + get("/r/"));
  CHECK(count_of(got, "HTTP/1.1 409 Conflict\r\n") == 1);
  CHECK(has(got, "X-Mine: 1\r\nx-pure-error: exists\r\n"));
  CHECK_FALSE(has(got, "X-Pure-Error"));
  CHECK(has(got, "Retry-After: 7\r\n"));
  CHECK(has(got, "Connection: close\r\n"));
  CHECK(c->ended);
}

TEST_CASE("a status that HTTP does not have is 500, not broken framing") {
  Harness h;
  h.lua.on_start = [&](Exchange& e, Services&) { h.lua.answer(e, 100, "x"); };
  const auto c = h.connect();
  CHECK(h.roundtrip(*c, get("/r/")).starts_with("HTTP/1.1 500 "));
}
