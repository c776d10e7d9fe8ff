// A worker and its backends, with a clock that stands still: deadlines, waits and retries to the millisecond.
#include "proxy/remote/backend_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "proxy/remote/backend_route.h"
#include "t/proxy/harness.h"

using namespace sluice;
using namespace sluice::proxy;
using namespace sluice::proxy::test;

namespace {

// A listening socket of this thread's.
class Listener {
 public:
  Listener() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(bind(fd_, reinterpret_cast<sockaddr*>(&address_), sizeof address_) == 0);
    socklen_t size = sizeof address_;
    getsockname(fd_, reinterpret_cast<sockaddr*>(&address_), &size);
    start();
  }
  ~Listener() { close(fd_); }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  void start() { REQUIRE(listen(fd_, 16) == 0); }
  std::string place() const { return "127.0.0.1:" + std::to_string(ntohs(address_.sin_port)); }
  // nullptr: nobody connects.
  std::unique_ptr<Client> accept() {
    const int fd = ::accept(fd_, nullptr, nullptr);
    return fd < 0 ? nullptr : std::make_unique<Client>(fd);
  }

 private:
  int fd_;
  sockaddr_in address_{};
};

BackendPtr backend_at(const std::string& place, BackendOptions options) {
  BackendSpec spec;
  spec.place = *read_place(place);
  spec.label = "b";
  spec.options = options;
  spec.addresses = *resolve(spec.place);
  return std::make_shared<Backend>(spec, std::make_shared<BackendStats>(), nullptr);
}

class RemoteTable final : public RouteTable {
 public:
  explicit RemoteTable(BackendPtr backend)
      : route_(std::make_shared<const BackendPool>(*BackendPool::make("p", {std::move(backend)}, {}))) {}
  void attach(Services& services) override { route_.attach(services); }
  Route* find(Method, std::string_view path, Match& match) override {
    match.rest = path;
    return &route_;
  }

 private:
  BackendRoute route_;
};

struct World : Harness {
  explicit World(BackendOptions options = {}) : backend(backend_at(listener.place(), options)) { use(backend); }
  void use(const BackendPtr& b) {
    Generation g;
    g.number = ++generations;
    g.settings = settings;
    g.routes = std::make_unique<RemoteTable>(b);
    loop.install(std::move(g));
  }
  // What the server has connected, after some turns; the request that is there is read.
  std::unique_ptr<Client> accepted() {
    std::unique_ptr<Client> peer;
    for (int i = 0; i < 100 && !peer; ++i) {
      turns();
      peer = listener.accept();
    }
    REQUIRE(peer);
    turns();
    return peer;
  }
  // Bytes over loopback may take a moment of another processor's.
  std::string until(Client& c, std::string_view part) {
    std::string got;
    for (int i = 0; i < 10'000 && !has(got, part) && !c.ended; ++i) {
      turns(1);
      got += c.take();
    }
    return got;
  }
  std::uint64_t counted(std::string_view name) {
    std::uint64_t n = 0;
    backend->stats->each([&](std::string_view its, std::uint64_t value) { if (its == name) n = value; });
    return n;
  }

  Listener listener;
  BackendPtr backend;
};

constexpr std::string_view kOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

}  // namespace

TEST_CASE("a deadline counts from the sending, whatever drips in") {
  World w;
  const auto c = w.connect();
  c->send(get("/x"));
  const auto peer = w.accepted();
  CHECK(has(w.until(*peer, "\r\n\r\n"), "GET /x HTTP/1.1\r\n"));
  peer->send("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n");
  for (int i = 0; i < 49; ++i) {
    w.pass_ms(100);
    peer->send("x");
    w.turns();
  }
  w.pass_ms(99);
  CHECK(c->take().empty());
  w.pass_ms(1);
  CHECK(has(w.until(*c, "in time\n"), "HTTP/1.1 504 "));
  w.until(*peer, "never");
  CHECK(peer->ended);
  CHECK(w.counted("timeouts") == 1);
  CHECK(w.counters.backend_in_flight.get() == 0);
}

TEST_CASE("a request that is sent again has the rest of its time, not a new one") {
  World w;
  const auto c = w.connect();
  c->send(get("/x"));
  auto peer = w.accepted();
  w.until(*peer, "\r\n\r\n");
  w.pass_ms(3000);
  peer.reset();
  peer = w.accepted();
  w.until(*peer, "\r\n\r\n");
  CHECK(w.counted("retries") == 1);
  w.pass_ms(1999);
  CHECK(c->take().empty());
  w.pass_ms(1);
  CHECK(has(w.until(*c, "in time\n"), "HTTP/1.1 504 "));
}

TEST_CASE("one that is down is tried when its wait is over, a quarter earlier or later, and without a request") {
  BackendOptions o;
  o.failure_limit = 1;
  World w(o);
  const auto c = w.connect();
  c->send(get("/x"));
  auto peer = w.accepted();
  w.until(*peer, "\r\n\r\n");
  w.pass_ms(5000);
  CHECK(has(w.until(*c, "in time\n"), "HTTP/1.1 504 "));
  CHECK(w.counters.backends_down.get() == 1);
  c->send(get("/y"));
  CHECK(has(w.until(*c, "is down\n"), "Retry-After: "));
  w.pass_ms(2249);
  CHECK_FALSE(w.listener.accept());
  w.pass_ms(1502);
  peer = w.accepted();
  CHECK(w.counters.backends_down.get() == 0);
  c->send(get("/z"));
  CHECK(has(w.until(*peer, "\r\n\r\n"), "GET /z "));
  CHECK(w.counters.backends_down.get() == 1);
  peer->send(kOk);
  CHECK(has(w.until(*c, "\r\n\r\nok"), "HTTP/1.1 200 "));
  CHECK(w.counters.backends_down.get() == 0);
}

TEST_CASE("an idle connection ends when its time is over, and not before") {
  World w;
  const auto c = w.connect();
  std::unique_ptr<Client> peer;
  for (int i = 0; i < 3; ++i) {
    c->send(get("/x"));
    if (i == 0) peer = w.accepted();
    w.until(*peer, "\r\n\r\n");
    peer->send(kOk);
    w.until(*c, "ok");
    w.pass_ms(14'999);
    CHECK(peer->take().empty());
    CHECK_FALSE(peer->ended);
    if (i < 2) continue;
    w.pass_ms(1);
    w.until(*peer, "never");
    CHECK(peer->ended);
  }
  CHECK(w.counted("connects") == 1);
  CHECK(w.counted("connections") == 0);
}

TEST_CASE("a new generation with the same backend goes on with its connection; with another, the old one ends with the old generation") {
  World w;
  const auto c = w.connect();
  c->send(get("/1"));
  const auto peer = w.accepted();
  w.until(*peer, "\r\n\r\n");
  peer->send(kOk);
  w.until(*c, "ok");
  w.use(w.backend);
  c->send(get("/2"));
  CHECK(has(w.until(*peer, "\r\n\r\n"), "GET /2 "));
  BackendOptions other;
  other.read_timeout_ms = 7000;
  w.use(backend_at(w.listener.place(), other));
  const auto d = w.connect();
  d->send(get("/3"));
  const auto next = w.accepted();
  CHECK(has(w.until(*next, "\r\n\r\n"), "GET /3 "));
  CHECK_FALSE(peer->ended);
  peer->send(kOk);
  CHECK(has(w.until(*c, "ok"), "HTTP/1.1 200 "));
  w.until(*peer, "never");
  CHECK(peer->ended);
  next->send(kOk);
  CHECK(has(w.until(*d, "ok"), "HTTP/1.1 200 "));
}

TEST_CASE("a worker that ends lets its calls go without a word") {
  World w;
  const auto c = w.connect();
  c->send(post("/x", "body"));
  const auto peer = w.accepted();
  w.until(*peer, "body");
  w.loop.end();
  CHECK(w.counted("in_flight") == 0);
  CHECK(w.counted("connections") == 0);
}
