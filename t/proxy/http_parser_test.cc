#include "proxy/http_parser.h"

#include <doctest/doctest.h>
#include <llhttp/llhttp.h>

#include <string>
#include <vector>

using namespace sluice;
using namespace sluice::proxy;

namespace {

struct Outcome {
  HttpParser::State state = HttpParser::State::head;
  Refusal refusal;
  std::size_t taken = 0;
  std::string path, body;
  std::vector<std::pair<std::string, std::string>> query;
  bool keep_alive = false;
  bool operator==(const Outcome& o) const {
    return state == o.state && refusal.status == o.refusal.status && refusal.code == o.refusal.code &&
           std::string_view(refusal.line) == o.refusal.line && refusal.fatal == o.refusal.fatal && path == o.path &&
           body == o.body && query == o.query && keep_alive == o.keep_alive &&
           (state == HttpParser::State::refused || taken == o.taken);
  }
};

Outcome parse(std::string_view bytes, std::size_t step, const Settings& settings, Budget* budget = nullptr) {
  RequestSlot slot;
  HttpParser parser;
  parser.begin(slot, settings, budget);
  Outcome out;
  while (out.taken < bytes.size() && parser.state() != HttpParser::State::whole && parser.state() != HttpParser::State::refused) {
    // A fresh copy of each piece: nothing may point back into the input.
    const std::string piece(bytes.substr(out.taken, step));
    out.taken += parser.feed(piece);
  }
  out.state = parser.state();
  out.refusal = parser.refusal();
  out.path = slot.request.path;
  out.body = slot.request.body.view();
  for (const Parameter& p : slot.request.query) out.query.emplace_back(p.name, p.value);
  out.keep_alive = parser.keep_alive();
  if (out.state != HttpParser::State::whole) out.path.clear(), out.body.clear(), out.query.clear(), out.keep_alive = false;
  return out;
}

struct Case {
  std::string bytes;
  int status;                       // 0: whole and accepted; -1: needs more
  Errc code = Errc::none;
};

std::string get(std::string_view target, std::string_view more = "") {
  return "GET " + std::string(target) + " HTTP/1.1\r\nHost: h\r\n" + std::string(more) + "\r\n";
}
std::string post(std::string_view headers, std::string_view body) {
  return "POST /p HTTP/1.1\r\nHost: h\r\n" + std::string(headers) + "\r\n" + std::string(body);
}
const std::string kChunked = "Transfer-Encoding: chunked\r\n";

std::vector<Case> cases() {
  using namespace std::string_literals;
  const auto bad = [](std::string s) { return Case{std::move(s), 400, Errc::request}; };
  const auto good = [](std::string s) { return Case{std::move(s), 0, Errc::none}; };
  const auto more = [](std::string s) { return Case{std::move(s), -1, Errc::none}; };
  return {
      // Heads that are fine.
      good(get("/")), good(get("/a/b?c=d")), good("\r\n\r\n" + get("/")), good(get("http://host/x")), good(get("HTTP://h")),
      good("OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n"), good("GET / HTTP/1.0\r\n\r\n"), good(get("/", "X:\r\n")),
      good(get("/", "X: \t v \t\r\n")), good(get("/", "X: a\x80\xff b\r\n")), good("GET / HTTP/1.1\r\nHost:\r\n\r\n"),
      good("PROPFIND / HTTP/1.1\r\nHost: h\r\n\r\n"), good(get("/", "Upgrade: h2c\r\nConnection: Upgrade\r\n")),
      good("GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n"), good(get("/a%20b")), good(get("/?a=%2F%2e")), good(get("/...")),
      good(get("/a/.b")), good(get("//")),
      // Not whole yet.
      more(""), more("GET / HTTP/1.1\r\n"), more("GET / HTTP/1.1\r\nHost: h\r\n"), more("\r"), more(post("Content-Length: 3\r\n", "ab")),
      more(post(kChunked, "3\r\nabc\r\n")),
      // The request line.
      bad("GET  / HTTP/1.1\r\nHost: h\r\n\r\n"), bad("GET /  HTTP/1.1\r\nHost: h\r\n\r\n"), bad("GET / a HTTP/1.1\r\nHost: h\r\n\r\n"),
      bad(" GET / HTTP/1.1\r\nHost: h\r\n\r\n"), bad("GET /\r\n\r\n"), bad("GET / \r\n\r\n"), bad("GET\r\n\r\n"),
      bad("GET / HTTP/1.1 \r\nHost: h\r\n\r\n"), bad("GET / http/1.1\r\nHost: h\r\n\r\n"), bad("GET / HTTP/11\r\nHost: h\r\n\r\n"),
      bad("GET /\tHTTP/1.1\r\nHost: h\r\n\r\n"), bad("GE(T / HTTP/1.1\r\nHost: h\r\n\r\n"), bad("\x16\x03\x01\x02"),
      bad("GET / HTTP/1.1\nHost: h\r\n\r\n"), bad("GET / HTTP/1.1\r\r\nHost: h\r\n\r\n"), bad("GET / RTSP/1.0\r\n\r\n"),
      bad("SOURCE / ICE/1.0\r\n\r\n"), bad("GET /\x01 HTTP/1.1\r\nHost: h\r\n\r\n"), bad("GET /\xc3\xa4 HTTP/1.1\r\nHost: h\r\n\r\n"),
      bad("GET /\0 HTTP/1.1\r\nHost: h\r\n\r\n"s), bad("GET /\x7f HTTP/1.1\r\nHost: h\r\n\r\n"),
      {"GET / HTTP/2.0\r\nHost: h\r\n\r\n", 505, Errc::version}, {"GET / HTTP/0.9\r\nHost: h\r\n\r\n", 505, Errc::version},
      {"GET / HTTP/1.2\r\nHost: h\r\n\r\n", 505, Errc::version}, {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505, Errc::version},
      {"BREW / HTTP/1.1\r\nHost: h\r\n\r\n", 501, Errc::method}, {"get / HTTP/1.1\r\nHost: h\r\n\r\n", 501, Errc::method},
      {"SOURCE / HTTP/1.1\r\nHost: h\r\n\r\n", 501, Errc::method}, {"DESCRIBE / HTTP/1.1\r\nHost: h\r\n\r\n", 501, Errc::method},
      {"TEARDOWN / HTTP/1.1\r\nHost: h\r\n\r\n", 501, Errc::method}, {"GETX / HTTP/1.1\r\nHost: h\r\n\r\n", 501, Errc::method},
      {"CONNECT h:80 HTTP/1.1\r\nHost: h\r\n\r\n", 501, Errc::method},
      // Between and before requests.
      bad("\n" + get("/")), bad("\r" + get("/")), bad("\r\n\n" + get("/")), bad("\r\r\n" + get("/")),
      bad("\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n"),
      // Header lines.
      bad(get("/", "X: a\r\n b\r\n")), bad(get("/", "X: a\r\n\tb\r\n")), bad("GET / HTTP/1.1\r\n Host: h\r\n\r\n"),
      bad(get("/", ": v\r\n")), bad(get("/", "X : v\r\n")), bad(get("/", "X\t: v\r\n")), bad(get("/", "X\r\n")),
      bad(get("/", "X: a\nY: b\r\n")), bad(get("/", "X: a\rY: b\r\n")), bad(get("/", "X: a\r\r\n")), bad(get("/", "X: \x01\r\n")),
      bad(get("/", "X: a\0b\r\n"s)), bad(get("/", "X\0: b\r\n"s)), bad(get("/", "X: \x7f\r\n")), bad(get("/", "X[: b\r\n")),
      bad("GET / HTTP/1.1\r\nHost: h\r\n\n"), bad("GET / HTTP/1.1\r\nHost: h\n\r\n"), bad(get("/", "\x80: b\r\n")),
      // Host.
      bad("GET / HTTP/1.1\r\n\r\n"), bad(get("/", "Host: h\r\n")), bad(get("/", "HOST: other\r\n")),
      bad("GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n"), bad("GET / HTTP/1.1\r\nHost: a, b\r\n\r\n"),
      bad("GET / HTTP/1.1\r\nHost: a b\r\n\r\n"), bad("GET / HTTP/1.1\r\nHost: u@h\r\n\r\n"), bad("GET / HTTP/1.1\r\nHost: h/x\r\n\r\n"),
      // Targets.
      bad(get("/a#b")), bad(get("/..")), bad(get("/../x")), bad(get("/a/./b")), bad(get("/a/.")), bad(get("/%2e%2E/x")),
      bad(get("/a%2fb")), bad(get("/a%2Fb")), bad(get("/%")), bad(get("/%4")), bad(get("/%zz")), bad(get("/%00")), bad(get("/%0a")),
      bad(get("/%7f")), bad(get("a/b")), bad(get("*")), bad(get("ftp://h/")), bad(get("http:///x")), bad(get("http://u@h/")),
      bad(get("http://h/../x")), {get("/?a=%"), 400, Errc::query}, {get("/?%g0=1"), 400, Errc::query},
      // Sized bodies.
      good(post("Content-Length: 3\r\n", "abc")), good(post("Content-Length: 0\r\n", "")), good(post("content-length: 003\r\n", "abc")),
      bad(post("Content-Length: 3\r\nContent-Length: 3\r\n", "abc")), bad(post("Content-Length: 3\r\nContent-Length: 4\r\n", "abcd")),
      bad(post("Content-Length: 3, 3\r\n", "abc")), bad(post("Content-Length: +3\r\n", "abc")), bad(post("Content-Length: -3\r\n", "abc")),
      bad(post("Content-Length: 0x3\r\n", "abc")), bad(post("Content-Length:\r\n", "")), bad(post("Content-Length: 3 3\r\n", "abc")),
      bad(post("Content-Length: 99999999999999999999\r\n", "")), bad(post("Content-Length: 3\r\n" + kChunked, "0\r\n\r\n")),
      bad(post(kChunked + "Content-Length: 3\r\n", "0\r\n\r\n")), {post("Content-Length: 2000000\r\n", ""), 413, Errc::limit},
      {post("Content-Length: 3\r\nExpect: nonsense\r\n", "abc"), 417, Errc::expect}, {get("/", "Expect: x\r\n"), 417, Errc::expect},
      good(post("Content-Length: 3\r\nExpect: 100-Continue\r\n", "abc")),
      // Chunked bodies.
      good(post(kChunked, "0\r\n\r\n")), good(post(kChunked, "3\r\nabc\r\n0\r\n\r\n")), good(post(kChunked, "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")),
      good(post(kChunked, "3;a=b\r\nabc\r\n0\r\n\r\n")), good(post(kChunked, "03\r\nabc\r\n000\r\n\r\n")), good(post(kChunked, "A\r\n0123456789\r\n0\r\n\r\n")),
      good(post(kChunked, "0\r\nT: v\r\nU: w\r\n\r\n")), good(post("Transfer-Encoding: Chunked\r\n", "0\r\n\r\n")),
      bad(post(kChunked, "3\r\nabcd\r\n0\r\n\r\n")), bad(post(kChunked, "3\r\nab\r\n0\r\n\r\n")), bad(post(kChunked, "3\nabc\r\n0\r\n\r\n")),
      bad(post(kChunked, "3\r\nabc\n0\r\n\r\n")), bad(post(kChunked, "g\r\n\r\n")), bad(post(kChunked, "\r\nabc\r\n")), bad(post(kChunked, "-1\r\n\r\n")),
      bad(post(kChunked, "0x3\r\nabc\r\n0\r\n\r\n")), bad(post(kChunked, " 3\r\nabc\r\n0\r\n\r\n")), bad(post(kChunked, "fffffffffffffffff\r\n")),
      bad(post(kChunked, "3;a\nabc\r\n0\r\n\r\n")), bad(post(kChunked, "3;" + std::string(400, 'a') + "\r\nabc\r\n0\r\n\r\n")),
      bad(post(kChunked, "0\r\nT: v\n\r\n")), bad(post(kChunked, "0\r\nT: v\r\n x\r\n\r\n")), bad(post(kChunked, "0\r\n: v\r\n\r\n")),
      bad(post(kChunked, "0\r\nT : v\r\n\r\n")), bad(post(kChunked, "0\r\nContent-Length: 3\r\n\r\n")), bad(post(kChunked, "0\r\nT: v\r\n\n")),
      bad(post(kChunked + kChunked, "0\r\n\r\n")), {post("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n"), 501, Errc::coding},
      {post("Transfer-Encoding: gzip\r\n", "0\r\n\r\n"), 501, Errc::coding}, {post("Transfer-Encoding: identity\r\n", ""), 501, Errc::coding},
      {post("Transfer-Encoding: xchunked\r\n", ""), 501, Errc::coding}, bad(post("Transfer-Encoding: chunked, chunked\r\n", "")),
      {post("Transfer-Encoding:\r\n", ""), 501, Errc::coding}, bad("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
      {post(kChunked, "ffffff\r\n"), 413, Errc::limit},
      {post(kChunked, "0\r\n" + std::string(9000, 'T') + ": v\r\n\r\n"), 431, Errc::headers},
      // Limits of the head.
      {"GET /" + std::string(5000, 'a') + " HTTP/1.1\r\nHost: h\r\n\r\n", 414, Errc::target},
      {"GET /" + std::string(9000, 'a') + " HTTP/1.1\r\nHost: h\r\n\r\n", 414, Errc::target},
      {"GET /" + std::string(9000, 'a'), 414, Errc::target}, {get("/", "X: " + std::string(9000, 'a') + "\r\n"), 431, Errc::headers},
      {get("/", std::string("X: y\r\n") + [] { std::string s; for (int i = 0; i < 100; ++i) s += "A: b\r\n"; return s; }()), 431, Errc::headers},
  };
}

Settings small() {
  Settings s;
  s.body_bytes = 1'000'000;
  return s;
}

}  // namespace

TEST_CASE("each head and body has the outcome that http.md names") {
  const std::vector<Case> all = cases();
  CHECK(all.size() >= 80);
  for (const Case& c : all) {
    CAPTURE(c.bytes.substr(0, 200));
    const Outcome o = parse(c.bytes, c.bytes.size() + 1, small());
    const bool refused = o.refusal.status != 0;
    CHECK(int{o.refusal.status} == (c.status > 0 ? c.status : 0));
    CHECK(name(o.refusal.code) == name(c.code));
    if (c.status == -1) CHECK((o.state == HttpParser::State::head || o.state == HttpParser::State::body));
    if (c.status == 0) CHECK(o.state == HttpParser::State::whole);
    if (c.status == 0) CHECK(o.taken == c.bytes.size());
    if (refused && o.refusal.fatal) CHECK(o.state == HttpParser::State::refused);
  }
}

// The head alone, by llhttp: does it refuse it?
bool llhttp_refuses(std::string_view head) {
  llhttp_settings_t callbacks{};
  callbacks.on_headers_complete = [](llhttp_t* p) -> int {
    p->upgrade = 0;
    return HPE_PAUSED;
  };
  llhttp_t parser{};
  llhttp_init(&parser, HTTP_REQUEST, &callbacks);
  return llhttp_execute(&parser, head.data(), head.size()) != HPE_PAUSED;
}

TEST_CASE("llhttp refuses no head that we take, whichever byte stands wherever") {
  std::vector<std::string> heads;
  for (const Case& c : cases()) {
    const std::size_t end = c.bytes.find("\r\n\r\n", c.bytes.starts_with("\r\n") ? 4 : 0);
    if (c.status == 0 && end != std::string::npos) heads.push_back(c.bytes.substr(0, end + 4));
  }
  heads.push_back("POST /a?b=c HTTP/1.1\r\nHost: h:1\r\nContent-Length: 12\r\nConnection: close, x\r\nUpgrade: a\r\nX-Y:  z\r\n\r\n");
  std::size_t taken = 0;
  const auto look = [&taken](const std::string& head) {
    const Outcome o = parse(head, head.size(), Settings{});
    if (o.refusal.status || o.state == HttpParser::State::head || o.taken != head.size()) return;
    ++taken;
    CHECK_MESSAGE(!llhttp_refuses(head), head);
  };
  for (const std::string& head : heads)
    for (std::size_t at = 0; at <= head.size(); ++at)
      for (int byte = 0; byte < 256; ++byte) {
        std::string changed = head;
        changed.insert(at, 1, static_cast<char>(byte));
        look(changed);
        if (at == head.size()) continue;
        changed = head;
        changed[at] = static_cast<char>(byte);
        look(changed);
      }
  CHECK(taken > 50'000);
}

TEST_CASE("pieces of any size come to the same outcome as one piece") {
  for (const Case& c : cases()) {
    CAPTURE(c.bytes.substr(0, 200));
    const Outcome one = parse(c.bytes, c.bytes.size() + 1, small());
    for (const std::size_t step : {1u, 2u, 3u, 7u, 64u}) {
      CAPTURE(step);
      const Outcome o = parse(c.bytes, step, small());
      CAPTURE(o.refusal.line);
      CAPTURE(one.refusal.line);
      CHECK(o == one);
    }
  }
}

TEST_CASE("a request's parts are decoded once, and + is a space in the query alone") {
  const Outcome o = parse(get("/a+b%20%2525?x+y=1%2B1&=e&f&g=&h=a=b&%41=%26"), 1000, Settings{});
  REQUIRE(o.state == HttpParser::State::whole);
  CHECK(o.path == "/a+b %25");
  using Pairs = std::vector<std::pair<std::string, std::string>>;
  CHECK(o.query == Pairs{{"x y", "1+1"}, {"", "e"}, {"f", ""}, {"g", ""}, {"h", "a=b"}, {"A", "&"}});
  const Outcome absolute = parse(get("http://host?x=1"), 1000, Settings{});
  CHECK(absolute.path == "/");
  CHECK(absolute.query == Pairs{{"x", "1"}});
}

TEST_CASE("a chunked body is joined, and what follows the request stays") {
  const std::string bytes = post(kChunked, "3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\nT: v\r\n\r\n") + get("/next");
  const Outcome o = parse(bytes, bytes.size(), Settings{});
  REQUIRE(o.state == HttpParser::State::whole);
  CHECK(o.body == "abcdefg");
  CHECK(bytes.substr(o.taken) == get("/next"));
}

TEST_CASE("Connection tokens and the version decide on keep-alive") {
  const auto alive = [](const std::string& s) { return parse(s, s.size(), Settings{}).keep_alive; };
  CHECK(alive(get("/")));
  CHECK_FALSE(alive(get("/", "Connection: close\r\n")));
  CHECK_FALSE(alive(get("/", "Connection: foo, CLOSE\r\n")));
  CHECK_FALSE(alive(get("/", "Connection: keep-alive\r\nConnection: close\r\n")));
  CHECK_FALSE(alive("GET / HTTP/1.0\r\n\r\n"));
  CHECK(alive("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"));
  CHECK_FALSE(alive("GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n"));
}

TEST_CASE("a body beyond the budget is dropped while it is small, and its bytes are given back") {
  Budget budget(1000);
  const std::string small_body = post("Content-Length: 2000\r\n", std::string(2000, 'x'));
  const Outcome o = parse(small_body, 100, Settings{}, &budget);
  CHECK(o.state == HttpParser::State::whole);
  CHECK(o.refusal.status == 503);
  CHECK(o.refusal.code == Errc::payload_budget);
  CHECK_FALSE(o.refusal.fatal);
  const Outcome large = parse(post("Content-Length: 200000\r\n", ""), 1000, Settings{}, &budget);
  CHECK(large.state == HttpParser::State::refused);
  CHECK(large.refusal.fatal);
  const Outcome chunks = parse(post(kChunked, "800\r\n" + std::string(2048, 'y') + "\r\n0\r\n\r\n"), 64, Settings{}, &budget);
  CHECK(chunks.state == HttpParser::State::whole);
  CHECK(chunks.refusal.code == Errc::payload_budget);
  CHECK(budget.held() == 0);
}

TEST_CASE("views follow a head that outgrows its first room") {
  std::string lines;
  for (int i = 0; i < 60; ++i) lines += "Name-" + std::to_string(i) + ": value-" + std::to_string(i) + "-" + std::string(30, 'v') + "\r\n";
  const std::string bytes = get("/path?q=1", lines);
  RequestSlot slot;
  HttpParser parser;
  Settings settings;
  parser.begin(slot, settings, nullptr);
  for (const char c : bytes) parser.feed({&c, 1});
  REQUIRE(parser.state() == HttpParser::State::whole);
  CHECK(slot.request.path == "/path");
  CHECK(slot.request.method_text == "GET");
  CHECK(slot.request.header("NAME-59") == "value-59-" + std::string(30, 'v'));
  CHECK(slot.request.header("host") == "h");
  CHECK_FALSE(slot.request.header("absent"));
  CHECK(slot.request.parameter("q") == "1");
}
