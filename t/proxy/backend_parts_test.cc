// The parts of remote backends that know no sockets: health, distribution, request heads, places.
#include <doctest/doctest.h>

#include <array>
#include <set>
#include <string>
#include <vector>

#include "proxy/remote/backend_pool.h"
#include "proxy/remote/fields.h"
#include "proxy/remote/health.h"
#include "proxy/remote/request_writer.h"

using namespace sluice;
using namespace sluice::proxy;

namespace {

constexpr std::uint64_t kSecond = 1'000'000;
constexpr std::uint64_t kStart = 1000 * kSecond;

BackendPtr backend(const std::string& label) {
  BackendSpec spec;
  spec.label = label;
  return std::make_shared<Backend>(spec, std::make_shared<BackendStats>(), nullptr);
}

BackendPool pool(std::size_t n, BackendPoolOptions options, std::vector<std::uint32_t> weights = {}) {
  std::vector<BackendPtr> all;
  for (std::size_t i = 0; i < n; ++i) all.push_back(backend("b" + std::to_string(i)));
  auto made = BackendPool::make("p", std::move(all), std::move(options), std::move(weights));
  REQUIRE(made.has_value());
  return *std::move(made);
}

std::vector<std::size_t> picks(const BackendPool& p, int keys = 20'000) {
  std::vector<std::size_t> out;
  for (int i = 0; i < keys; ++i) out.push_back(p.pick("key-" + std::to_string(i)));
  return out;
}

std::vector<double> shares(const BackendPool& p) {
  std::vector<double> out(p.backends().size());
  const auto all = picks(p);
  for (const std::size_t i : all) out[i] += 1.0 / static_cast<double>(all.size());
  return out;
}

// Fails so often, from `at` on, that it goes down. When that is.
std::uint64_t take_down(Health& h, std::uint64_t at, std::uint32_t limit, double chance = 0.5) {
  for (std::uint32_t i = 0; i < limit; ++i, at += Health::kSpacing_us)
    if (h.failed(at, false, chance)) return at;
  FAIL("it is not down");
  return 0;
}

}  // namespace

TEST_CASE("failures at one instant are one: a refusing port does not use up the limit") {
  BackendOptions o;
  Health h(o);
  for (int i = 0; i < 1000; ++i) CHECK_FALSE(h.failed(kStart, false, 0.5));
  CHECK(h.state() == Health::State::up);
  CHECK_FALSE(h.failed(kStart + Health::kSpacing_us, false, 0.5));
  CHECK(h.failed(kStart + 2 * Health::kSpacing_us, false, 0.5));
  CHECK(h.state() == Health::State::down);
}

TEST_CASE("an answer in between begins the count anew, and a limit of 0 is none") {
  BackendOptions o;
  Health h(o);
  for (std::uint64_t i = 0; i < 20; ++i) {
    CHECK_FALSE(h.failed(kStart + i * kSecond, false, 0.5));
    if (i % 2 == 1) h.succeeded(kStart + i * kSecond);
  }
  o.failure_limit = 0;
  Health never(o);
  for (std::uint64_t i = 0; i < 100; ++i) CHECK_FALSE(never.failed(kStart + i * kSecond, false, 0.5));
}

TEST_CASE("one that is down takes nothing, is tried once its wait is over, and then takes one request") {
  BackendOptions o;
  Health h(o);
  bool trial = false;
  CHECK(h.admit(trial));
  CHECK_FALSE(trial);
  const std::uint64_t down = take_down(h, kStart, o.failure_limit);
  CHECK(h.retry_at_us() == down + 3 * kSecond);
  CHECK_FALSE(h.admit(trial));
  h.try_again();
  CHECK_FALSE(h.admit(trial));
  CHECK(h.bad());
  h.connected();
  CHECK_FALSE(h.bad());
  CHECK(h.admit(trial));
  CHECK(trial);
  CHECK_FALSE(h.admit(trial));                       // one at a time
  CHECK(h.bad());
  h.undecided();                                     // its client left: the next one finds out
  CHECK(h.admit(trial));
  CHECK(h.succeeded(down + 4 * kSecond));
  CHECK(h.state() == Health::State::up);
}

TEST_CASE("waits grow with each failed trial up to the most, and spread") {
  BackendOptions o;
  o.flap_backoff_max_ms = 20'000;
  Health h(o);
  std::uint64_t at = take_down(h, kStart, o.failure_limit);
  for (const std::uint64_t seconds : {6, 12, 20, 20}) {
    at = h.retry_at_us();
    h.try_again();
    CHECK(h.failed(at, true, 0.5));
    CHECK(h.wait_us() == seconds * kSecond);
  }
  Health early(o), late(o);
  take_down(early, kStart, o.failure_limit, 0);
  take_down(late, kStart, o.failure_limit, 1);
  CHECK(early.wait_us() == 2'250'000);
  CHECK(late.wait_us() == 3'750'000);
}

TEST_CASE("one that flaps waits longer each time, until it stays up for a while") {
  BackendOptions o;
  Health h(o);
  std::uint64_t at = take_down(h, kStart, o.failure_limit);
  const auto up_for = [&](std::uint64_t us) {
    at = h.retry_at_us();
    h.try_again();
    h.connected();
    h.succeeded(at);
    at = take_down(h, at + us, o.failure_limit);
  };
  up_for(kSecond);
  CHECK(h.wait_us() == 6 * kSecond);
  up_for(kSecond);
  CHECK(h.wait_us() == 12 * kSecond);
  up_for(11 * kSecond);
  CHECK(h.wait_us() == 3 * kSecond);
}

TEST_CASE("what was sent before says nothing about a trial, but an answer is an answer") {
  BackendOptions o;
  Health h(o);
  take_down(h, kStart, o.failure_limit);
  CHECK_FALSE(h.failed(kStart + kSecond, false, 0.5));
  h.try_again();
  CHECK_FALSE(h.failed(kStart + 5 * kSecond, false, 0.5));
  CHECK(h.state() == Health::State::trying);
  CHECK(h.succeeded(kStart + 5 * kSecond));
}

TEST_CASE("jump hash: even, and a backend at the end moves only its share") {
  const BackendPool five = pool(5, {}), six = pool(6, {});
  for (const double s : shares(five)) CHECK(s == doctest::Approx(0.2).epsilon(0.08));
  const auto before = picks(five), after = picks(six);
  std::size_t moved = 0;
  for (std::size_t i = 0; i < before.size(); ++i)
    if (before[i] != after[i]) {
      ++moved;
      CHECK(after[i] == 5);
    }
  CHECK(moved / 20'000.0 == doctest::Approx(1.0 / 6).epsilon(0.1));
}

TEST_CASE("a ring: shares by weight, and taking one out moves only its keys") {
  BackendPoolOptions ring;
  ring.distribution = Distribution::ring;
  const BackendPool even = pool(4, ring);
  for (const double s : shares(even)) CHECK(s == doctest::Approx(0.25).epsilon(0.3));
  const auto weighted = shares(pool(3, ring, {1, 1, 4}));
  CHECK(weighted[2] == doctest::Approx(4.0 / 6).epsilon(0.15));
  std::vector<BackendPtr> without;
  for (const char* label : {"b0", "b2", "b3"}) without.push_back(backend(label));
  const auto made = BackendPool::make("p", std::move(without), ring);
  REQUIRE(made.has_value());
  const auto before = picks(even), after = picks(*made);
  const std::array<std::size_t, 3> was{0, 2, 3};
  for (std::size_t i = 0; i < before.size(); ++i)
    if (before[i] != 1) CHECK(was[after[i]] == before[i]);
}

TEST_CASE("the distribution is part of the contract: it does not change from one version to the next") {
  BackendPoolOptions ring;
  ring.distribution = Distribution::ring;
  ring.seed = 7;
  std::string jump, around;
  const BackendPool a = pool(4, {}), b = pool(4, ring);
  for (int i = 0; i < 24; ++i) {
    jump += static_cast<char>('0' + a.pick("key-" + std::to_string(i)));
    around += static_cast<char>('0' + b.pick("key-" + std::to_string(i)));
  }
  CHECK(jump == "112031022222230202112201");
  CHECK(around == "030020013201221030122123");
}

TEST_CASE("filters: keys that share the part that counts go to one place") {
  const KeyFilter stop{KeyFilter::Kind::stop, "|#|"}, tags{KeyFilter::Kind::tags, "{}"};
  CHECK(stop.apply("user:1|#|name") == "user:1");
  CHECK(stop.apply("user:1") == "user:1");
  CHECK(stop.apply("|#|x").empty());
  CHECK(tags.apply("a{b}c") == "b");
  CHECK(tags.apply("a{}c") == "a{}c");
  CHECK(tags.apply("a{bc") == "a{bc");
  CHECK(tags.apply("a}b{c") == "a}b{c");
  CHECK(tags.apply("{") == "{");
  BackendPoolOptions o;
  o.filter = tags;
  const BackendPool p = pool(7, o);
  std::set<std::size_t> seen;
  for (int i = 0; i < 100; ++i) seen.insert(p.pick("x" + std::to_string(i) + "{same}"));
  CHECK(seen.size() == 1);
}

TEST_CASE("pools that cannot be are refused with a sentence") {
  const auto error = [](std::vector<BackendPtr> all, BackendPoolOptions o, std::vector<std::uint32_t> weights) {
    const auto made = BackendPool::make("p", std::move(all), std::move(o), std::move(weights));
    return made ? std::string() : made.error();
  };
  BackendPoolOptions ring;
  ring.distribution = Distribution::ring;
  CHECK(error({}, {}, {}) == "pool `p` has no backends");
  CHECK(error({backend("a"), backend("a")}, {}, {}) == "pool `p`: backend `a` is in it twice; give one a `label`");
  CHECK(error({backend("a")}, {}, {2}) == "pool `p`: backend `a` has a weight, which goes with dist = \"ring\"");
  CHECK(error({backend("a"), backend("b")}, ring, {400, 10}) == "pool `p`: the weights of a ring are 409 at most, all together");
}

TEST_CASE("the target goes out as the client wrote it, else encoded anew") {
  Request r;
  const auto target = [&r](std::string_view path) {
    std::string out;
    REQUIRE(append_request_head(out, r, path, "Host: b\r\n"));
    return out.substr(0, out.find('\r'));
  };
  r.target = "/shop/a%20b;v=%41?x=%41+b&y";
  r.path = "/shop/a b;v=A";
  CHECK(target("/a b;v=A") == "GET /a%20b;v=%41?x=%41+b&y HTTP/1.1");
  CHECK(target("") == "GET /?x=%41+b&y HTTP/1.1");
  CHECK(target("/other") == "GET /other?x=%41+b&y HTTP/1.1");
  r.target = "http://example.com/shop/a?q";
  CHECK(target("/a") == "GET /a?q HTTP/1.1");
  r.target = "http://example.com";
  CHECK(target("/") == "GET / HTTP/1.1");
  r.target = {};
  r.query = {{"a b", "c&d=\xc3\xa9"}, {"e", ""}};
  CHECK(target("/p q/\xc3\xa9%") == "GET /p%20q/%C3%A9%25?a%20b=c%26d%3D%C3%A9&e= HTTP/1.1");
  CHECK(target("no-slash") == "GET /no-slash?a%20b=c%26d%3D%C3%A9&e= HTTP/1.1");
}

TEST_CASE("a body's length is said anew, and none where none is meant") {
  Request r;
  r.path = "/x";
  const auto head = [&r] {
    std::string out;
    REQUIRE(append_request_head(out, r, "/x", "Host: b\r\n"));
    return out;
  };
  r.headers = {{"Content-Length", "9"}, {"Transfer-Encoding", "chunked"}, {"Expect", "100-continue"}, {"Host", ""}};
  CHECK(head() == "GET /x HTTP/1.1\r\nHost: b\r\nVia: 1.1 sluice\r\n\r\n");
  r.method = Method::post;
  CHECK(head() == "POST /x HTTP/1.1\r\nHost: b\r\nVia: 1.1 sluice\r\nContent-Length: 0\r\n\r\n");
  r.body = Buffer::copy("abc", nullptr);
  r.method = Method::del;
  CHECK(head() == "DELETE /x HTTP/1.1\r\nHost: b\r\nVia: 1.1 sluice\r\nContent-Length: 3\r\n\r\n");
  r.method = Method::other;
  r.method_text = "PURGE";
  CHECK(head().starts_with("PURGE /x HTTP/1.1\r\n"));
}

TEST_CASE("a request that goes round in a circle of nodes is not sent on") {
  Request r;
  std::string via = "1.1 other";
  for (int i = 0; i < kMostHops - 1; ++i) via += ", 1.1 sluice";
  r.headers = {{"Via", via}};
  std::string out;
  CHECK(append_request_head(out, r, "/", "Host: b\r\n"));
  r.headers.push_back({"via", "1.0 sluice"});
  out.clear();
  CHECK_FALSE(append_request_head(out, r, "/", "Host: b\r\n"));
  CHECK(out.empty());
}

TEST_CASE("places are read, and what is none is refused") {
  const auto text = [](std::string_view place) {
    const auto read = read_place(place);
    return read ? read->text() : "error";
  };
  for (const char* good : {"127.0.0.1:80", "[::1]:8767", "example.com:1", "unix:/run/x.sock"}) CHECK(text(good) == good);
  for (const char* bad : {"", "host", ":80", "host:", "host:0", "host:65536", "host:8x", "::1:80", "unix:", "a b:80"}) CHECK(text(bad) == "error");
  const auto found = resolve(*read_place("127.0.0.1:8767"));
  REQUIRE(found.has_value());
  REQUIRE(found->size() == 1);
  CHECK(found->front().text == "127.0.0.1:8767");
  CHECK(resolve(*read_place("[::1]:80"))->front().text == "[::1]:80");
  CHECK_FALSE(resolve(*read_place("no-such-name.invalid:80")).has_value());
  CHECK_FALSE(resolve(*read_place("unix:/" + std::string(200, 'x'))).has_value());
  CHECK(resolve(*read_place("unix:/x"))->front().family() == AF_UNIX);
}

TEST_CASE("a description's key tells what is different, but not the order of its addresses") {
  BackendSpec a;
  a.label = "x";
  a.place = *read_place("h:80");
  SocketAddress one, two;
  one.text = "10.0.0.1:80";
  two.text = "10.0.0.2:80";
  a.addresses = {one, two};
  BackendSpec b = a;
  b.addresses = {two, one};
  CHECK(a.key() == b.key());
  b.addresses = {one};
  CHECK(a.key() != b.key());
  const auto differs = [&a](auto&& change) {
    BackendSpec c = a;
    change(c);
    CHECK(a.key() != c.key());
  };
  differs([](BackendSpec& c) { c.label = "y"; });
  differs([](BackendSpec& c) { c.prefix = "p"; });
  differs([](BackendSpec& c) { c.host_field = "p"; });
  differs([](BackendSpec& c) { c.options.connections = 1; });
  differs([](BackendSpec& c) { c.options.read_timeout_ms = 1; });
  differs([](BackendSpec& c) { c.options.flap_backoff_ramp = 3; });
  differs([](BackendSpec& c) { c.options.down = true; });
}

TEST_CASE("counters of all workers are summed") {
  BackendStats stats;
  stats.cell(0).requests.add(2);
  stats.cell(3).requests.add(5);
  CHECK(&stats.cell(3) == &stats.cell(3));
  std::uint64_t requests = 0, others = 0;
  stats.each([&](std::string_view name, std::uint64_t n) { (name == "requests" ? requests : others) += n; });
  CHECK(requests == 7);
  CHECK(others == 0);
}
