// Answers of backends: what is taken, what is refused, and that it does not matter where the bytes are cut.
#include "proxy/remote/response_reader.h"

#include <doctest/doctest.h>

#include <random>
#include <string>
#include <vector>

#include "t/fuzz/response_outcome.h"

using namespace sluice;
using namespace sluice::proxy;

namespace {

struct Read {
  ResponseReader::State state = ResponseReader::State::head;
  Response response;
  std::string body, why;
  std::size_t taken = 0;
  bool keep_alive = false;
};

Read read(std::string_view bytes, bool head_request = false, bool ends = false, ResponseLimits limits = {}, std::size_t piece = ~std::size_t{0},
          Budget* budget = nullptr) {
  Read out;
  ResponseReader reader;
  reader.begin(out.response, head_request, limits, budget);
  while (out.taken < bytes.size() && reader.state() != ResponseReader::State::whole && reader.state() != ResponseReader::State::refused)
    out.taken += reader.feed(bytes.substr(out.taken, piece));
  if (ends) reader.end();
  out.state = reader.state();
  out.why = reader.why();
  out.keep_alive = reader.keep_alive();
  out.body = out.response.body.flat();
  return out;
}

// The same outcome whole, and byte by byte.
Read both(std::string_view bytes, bool head_request = false, bool ends = false, ResponseLimits limits = {}) {
  Read whole = read(bytes, head_request, ends, limits);
  const Read pieces = read(bytes, head_request, ends, limits, 1);
  CHECK(whole.state == pieces.state);
  CHECK(whole.why == pieces.why);
  CHECK(whole.keep_alive == pieces.keep_alive);
  if (whole.state == ResponseReader::State::whole) {
    CHECK(whole.taken == pieces.taken);
    CHECK(whole.body == pieces.body);
    CHECK(whole.response.headers == pieces.response.headers);
    CHECK(whole.response.status == pieces.response.status);
  }
  return whole;
}

bool refused(std::string_view bytes, bool ends = false, ResponseLimits limits = {}) {
  return both(bytes, false, ends, limits).state == ResponseReader::State::refused;
}
constexpr auto kWhole = ResponseReader::State::whole;

}  // namespace

TEST_CASE("an answer of a length ends there, and what follows is not its own") {
  const std::string bytes = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A: 1\r\n\r\nhello";
  const Read r = both(bytes + "HTTP/1.1");
  CHECK(r.state == kWhole);
  CHECK(r.body == "hello");
  CHECK(r.response.headers == "X-A: 1\r\n");
  CHECK(r.taken == bytes.size());
  CHECK(r.keep_alive);
}

TEST_CASE("a chunked answer, with extensions and a trailer") {
  const std::string bytes = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n6\r\n world\r\n0\r\nX-Sum: 1\r\n\r\n";
  const Read r = both(bytes + "extra");
  CHECK(r.state == kWhole);
  CHECK(r.body == "hello world");
  CHECK(r.taken == bytes.size());
  CHECK(r.response.headers.empty());
  CHECK(r.keep_alive);
}

TEST_CASE("an answer without a length goes on to the end of the connection, which cannot be used again") {
  CHECK(both("HTTP/1.1 200 OK\r\n\r\nall that").state == ResponseReader::State::body);
  const Read r = both("HTTP/1.1 200 OK\r\n\r\nall that", false, true);
  CHECK(r.state == kWhole);
  CHECK(r.body == "all that");
  CHECK_FALSE(r.keep_alive);
}

TEST_CASE("204, 304 and answers to HEAD have no body, whatever their length says") {
  CHECK(both("HTTP/1.1 204 No\r\n\r\n").state == kWhole);
  CHECK(both("HTTP/1.1 304 Not\r\nContent-Length: 9\r\nETag: \"7\"\r\n\r\n").response.revision == 7);
  const Read known = both("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", true);
  CHECK(known.state == kWhole);
  CHECK(known.response.head_length == 9);
  CHECK(both("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", true).response.head_length == Response::kNoLength);
}

TEST_CASE("interim answers are passed over, but not without end, and protocols are not switched") {
  const Read r = both("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  CHECK(r.state == kWhole);
  CHECK(r.body == "ok");
  CHECK(r.response.headers.empty());
  std::string many;
  for (int i = 0; i < 17; ++i) many += "HTTP/1.1 100 Continue\r\n\r\n";
  CHECK(refused(many));
  CHECK(refused("HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n"));
}

TEST_CASE("what belongs to the connection is taken off, and what the writer says itself") {
  const Read r = both("HTTP/1.1 200 OK\r\nConnection: keep-alive, X-Own\r\nX-Own: 1\r\nKeep-Alive: 5\r\nTrailer: X\r\nUpgrade: h2\r\nDate: now\r\n"
                      "Content-Length: 0\r\nServer: s\r\nCache-Control: no-store\r\nSet-Cookie: a\r\nSet-Cookie: b\r\nETag: \"abc\"\r\n\r\n");
  CHECK(r.state == kWhole);
  CHECK(r.response.headers == "Server: s\r\nCache-Control: no-store\r\nSet-Cookie: a\r\nSet-Cookie: b\r\nETag: \"abc\"\r\n");
  CHECK(r.response.revision == 0);
}

TEST_CASE("another node's error and revision are ours, a stranger's word stays a field") {
  const Read ours = both("HTTP/1.1 412 No\r\nX-Pure-Error: conflict\r\nETag: \"41\"\r\nContent-Length: 0\r\n\r\n");
  CHECK(ours.response.error == Errc::conflict);
  CHECK(ours.response.revision == 41);
  CHECK(ours.response.headers.empty());
  CHECK(both("HTTP/1.1 412 No\r\nX-Pure-Error: io\r\nContent-Length: 0\r\n\r\n").response.headers == "X-Pure-Error: io\r\n");
  for (const char* tag : {"\"0\"", "\"01\"", "W/\"4\"", "\"99999999999999999999\"", "\"\""})
    CHECK(both(std::string("HTTP/1.1 200 OK\r\nETag: ") + tag + "\r\nContent-Length: 0\r\n\r\n").response.revision == 0);
}

TEST_CASE("the connection goes on unless the answer says otherwise") {
  CHECK_FALSE(both("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n").keep_alive);
  CHECK_FALSE(both("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n").keep_alive);
  CHECK(both("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n").keep_alive);
}

TEST_CASE("framing that two readers could read differently is refused") {
  CHECK(refused("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"));
  CHECK(refused("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n"));
  CHECK(refused("HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\n"));
  CHECK(refused("HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\n"));
  CHECK(refused("HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n"));
  CHECK(refused("HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n"));
  CHECK(refused("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"));
  CHECK(refused("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"));
  CHECK(refused("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"));
  CHECK(refused("HTTP/1.1 200 OK\nContent-Length: 0\n\n"));
  CHECK(refused("HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 0\r\n\r\n"));
  CHECK(refused("HTTP/1.1 200 OK\r\nX : a\r\n\r\n"));
  CHECK(refused("HTTP/1.1 200 OK\r\nX: a\rb\r\n\r\n"));
  CHECK(refused("HTTP/1.1 200 OK\r\n: a\r\n\r\n"));
  CHECK(refused("\r\nHTTP/1.1 200 OK\r\n\r\n"));
  CHECK(refused("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n"));
  CHECK(refused("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n"));
}

TEST_CASE("what is no answer of HTTP/1 is refused") {
  CHECK(refused("SSH-2.0-OpenSSH\r\n"));
  CHECK(refused("HTTP/2.0 200 OK\r\n\r\n"));
  CHECK(refused("HTTP/1.1 20 OK\r\n\r\n"));
  CHECK(refused("HTTP/1.1 600 OK\r\n\r\n"));
  CHECK(refused("HTTP/1.1 099 OK\r\n\r\n"));
  CHECK(refused("HTTP/1.1  200 OK\r\n\r\n"));
  CHECK(both("HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n").state == kWhole);
}

TEST_CASE("an answer that breaks off is refused") {
  CHECK(refused("", true));
  CHECK(refused("HTTP/1.1 200 OK\r\nContent-Le", true));
  CHECK(refused("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell", true));
  CHECK(refused("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", true));
}

TEST_CASE("heads, trailers and bodies have limits") {
  const ResponseLimits small{256, 10};
  CHECK(refused("HTTP/1.1 200 OK\r\nX: " + std::string(300, 'x') + "\r\n\r\n", false, small));
  CHECK(refused("HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n", false, small));
  CHECK(both("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789", false, false, small).state == kWhole);
  CHECK(refused("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nb\r\n", false, small));
  CHECK(refused("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\n012345\r\n6\r\n", false, small));
  CHECK(refused("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;" + std::string(300, 'x') + "\r\n", false, small));
  CHECK(refused("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: " + std::string(300, 'x') + "\r\n", false, small));
  CHECK(refused("HTTP/1.1 200 OK\r\n\r\n0123456789a", false, small));
  std::string many = "HTTP/1.1 200 OK\r\n";
  for (int i = 0; i < 201; ++i) many += "X: 1\r\n";
  CHECK(refused(many + "\r\n"));
}

TEST_CASE("a large body is held by the budget, and refused when that has no room") {
  Budget budget(100'000);
  const std::string body(50'000, 'b');
  {
    Read sized = read("HTTP/1.1 200 OK\r\nContent-Length: 50000\r\n\r\n" + body, false, false, {}, 1000, &budget);
    CHECK(sized.state == kWhole);
    CHECK(sized.body == body);
    CHECK(budget.held() == 50'000);
    const Read none = read("HTTP/1.1 200 OK\r\nContent-Length: 60000\r\n\r\n" + body, false, false, {}, 1000, &budget);
    CHECK(none.state == ResponseReader::State::refused);
    CHECK(budget.held() == 50'000);
  }
  CHECK(budget.held() == 0);
  const Read open = read("HTTP/1.1 200 OK\r\n\r\n" + body, false, true, {}, 1000, &budget);
  CHECK(open.state == kWhole);
  CHECK(open.body == body);
}

TEST_CASE("a reader says how much is left, so that the rest of an unwanted answer may be read") {
  Response out;
  ResponseReader reader;
  reader.begin(out, false, {}, nullptr);
  CHECK_FALSE(reader.began());
  CHECK(reader.left() == ~std::uint64_t{0});
  reader.feed("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n123");
  CHECK(reader.began());
  CHECK(reader.left() == 7);
}

TEST_CASE("answers that were damaged anywhere mean the same, wherever they are cut") {
  const std::vector<std::string> seeds = {
      "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A: 1\r\n\r\nhello",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n6\r\n world\r\n0\r\nX-Sum: 1\r\n\r\nnext",
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.0 404 No\r\nConnection: keep-alive, X\r\nX: 1\r\nETag: \"3\"\r\n\r\nall",
      "HTTP/1.1 304 Not\r\nX-Pure-Error: none\r\nContent-Length: 9\r\n\r\nHTTP/1.1"};
  const std::string alphabet = "\r\n :;,0159afHT/\"\t\0\x7f\xff";
  std::mt19937 random(20261130);
  const auto draw = [&random](std::size_t n) { return static_cast<std::size_t>(random()) % n; };
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes = seeds[draw(seeds.size())];
    for (std::size_t n = draw(4); n > 0; --n) {
      const std::size_t at = draw(bytes.size());
      switch (draw(4)) {
        case 0: bytes[at] = alphabet[draw(alphabet.size())]; break;
        case 1: bytes.insert(at, 1, alphabet[draw(alphabet.size())]); break;
        case 2: bytes.erase(at, 1 + draw(3)); break;
        default: bytes.insert(at, bytes.substr(draw(bytes.size()), draw(20))); break;
      }
      if (bytes.empty()) bytes = "H";
    }
    const std::string cuts = {static_cast<char>(1 + draw(9)), static_cast<char>(1 + draw(40))};
    test::check_response(bytes, cuts, draw(4) == 0);
  }
}
