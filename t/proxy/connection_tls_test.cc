#include "t/proxy/harness.h"
#include "t/proxy/tls_fixture.h"

using namespace sluice;
using namespace sluice::proxy;
using namespace sluice::proxy::test;

namespace {

constexpr int kVersions[] = {TLS1_2_VERSION, TLS1_3_VERSION};

// A worker, and one client of TLS whose bytes go over a socket pair.
struct World {
  explicit World(const Settings& settings = {}) : h(settings) { tls = m.tls(); }
  void connect(const TlsClient::Wish& wish = {}, int send_buffer = 0) {
    int fds[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
    fcntl(fds[0], F_SETFL, O_NONBLOCK);
    if (send_buffer) setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &send_buffer, sizeof send_buffer);
    h.loop.adopt(fds[0], "192.0.2.1", {}, tls);
    wire = std::make_unique<Client>(fds[1]);
    client = std::make_unique<TlsClient>(wish);
  }
  // What the socket takes; the worker turns where it is full. False: it stays full.
  bool send(std::string_view bytes) {
    for (int full = 0; !bytes.empty() && full < 50;) {
      const ssize_t n = ::send(wire->fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n < 0 && errno != EAGAIN) return false;
      full = n < 0 ? full + 1 : 0;
      if (n > 0) bytes.remove_prefix(static_cast<std::size_t>(n));
      h.turns();
    }
    return bytes.empty();
  }
  // Until nobody has anything more to say.
  void carry() {
    for (int quiet = 0; quiet < 2;) {
      const std::string there = client->give();
      send(there);
      h.turns();
      const std::string back = wire->take();
      client->take(back);
      quiet = there.empty() && back.empty() ? quiet + 1 : 0;
    }
  }
  void meet(const TlsClient::Wish& wish = {}, int send_buffer = 0) {
    connect(wish, send_buffer);
    carry();
    REQUIRE_MESSAGE(client->open(), client->error());
  }
  std::string ask(std::string_view bytes) {
    client->say(bytes);
    carry();
    return client->heard();
  }

  Materials m;
  std::shared_ptr<const Tls> tls;
  Harness h;
  std::unique_ptr<Client> wire;
  std::unique_ptr<TlsClient> client;
};

std::string sized(std::size_t n) {
  std::string out(n, '\0');
  for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<char>('a' + i * 7 % 26);
  return out;
}

}  // namespace

TEST_CASE("requests over TLS: one after the other, pipelined, with bodies, and the last one") {
  for (const int version : kVersions) {
    World w;
    answer_at_once(w.h.lua, "");
    w.meet({.version = version});
    CHECK(body_of(w.ask(get("/r/a"))) == "/r/a");
    const std::string three = w.ask(get("/r/1") + get("/r/2") + get("/r/3"));
    CHECK(count_of(three, "HTTP/1.1 200 OK") == 3);
    CHECK(three.find("/r/1") < three.find("/r/2"));
    const std::string body = sized(300'000);
    std::string got;
    w.h.lua.on_start = [&](Exchange& e, Services&) {
      got = e.request().body.view();
      Response r;
      r.body.text = body;
      w.h.lua.answer(e, r);
    };
    CHECK(body_of(w.ask(post("/r/large", body))) == body);
    CHECK(got == body);
    CHECK(has(w.ask(get("/r/last", "Connection: close\r\n")), "Connection: close"));
    CHECK(w.client->ended());                    // close_notify, so that an end is no cut
    CHECK(w.h.counters.tls_handshakes.get() == 1);
    CHECK(w.h.counters.tls_failures.get() == 0);
    w.client->bye();
    w.carry();
    CHECK(w.wire->ended);
    w.wire->leave();
    w.h.turns();
    CHECK(w.h.counters.connections.get() == 0);
  }
}

TEST_CASE("a slow reader of a lent document over TLS: all of it arrives, and the worker does not spin") {
  World w;
  w.meet({}, 4096);
  const std::string document = sized(1'000'000);
  w.h.lua.on_start = [&](Exchange& e, Services&) {
    Response r;
    r.body.loan = std::make_shared<int>(1);
    r.body.pieces = {std::string_view(document).substr(0, 333'333), std::string_view(document).substr(333'333)};
    w.h.lua.answer(e, r);
  };
  w.client->say(get("/r/doc"));
  w.send(w.client->give());
  w.h.turns();
  std::string got;
  for (int i = 0; i < 100'000 && body_of(got).size() < document.size(); ++i) {
    w.client->take(w.wire->take(1000));
    got += w.client->heard();
    w.h.turns(1);
  }
  CHECK(body_of(got) == document);
  CHECK(w.h.limits.payload.held() == 0);
}

TEST_CASE("a reader that does not read is given up, and what it was lent is given back") {
  Settings s;
  s.drain_timeout_ms = 500;
  World w(s);
  w.meet({}, 4096);
  const std::string document = sized(1'000'000);
  auto loan = std::make_shared<int>(1);
  w.h.lua.on_start = [&](Exchange& e, Services&) {
    Response r;
    r.body.loan = loan;
    r.body.pieces = {document};
    w.h.lua.answer(e, r);
  };
  w.client->say(get("/r/doc"));
  w.send(w.client->give());
  w.h.turns();
  CHECK(loan.use_count() == 2);
  w.h.pass_ms(501);                              // what the socket took at first counts in the first window
  w.h.pass_ms(501);
  CHECK(loan.use_count() == 1);
  CHECK(w.h.counters.timeouts.get() == 1);
  CHECK(w.h.counters.connections.get() == 0);
}

TEST_CASE("HTTP in the clear is told so in the clear") {
  World w;
  w.connect();
  w.wire->send(get("/r/a"));
  w.h.turns();
  const std::string answer = w.wire->take();
  CHECK_MESSAGE(answer.starts_with("HTTP/1.1 400 Bad Request\r\n"), answer);
  CHECK(has(answer, "X-Pure-Error: request\r\n"));
  CHECK(has(answer, "Connection: close\r\n"));
  CHECK(has(body_of(answer), "https"));
  CHECK(w.h.lua.started.empty());
  CHECK(w.h.counters.tls_failures.get() == 1);
  w.wire->half_close();
  w.h.turns();
  CHECK(w.h.counters.connections.get() == 0);
}

TEST_CASE("a handshake that stalls ends at head_timeout, wherever it stalls") {
  Settings s;
  s.head_timeout_ms = 300;
  for (const int cut : {0, 1, 5, 100, 100'000}) {
    World w(s);
    w.connect();
    const std::string hello = w.client->give();
    w.wire->send(std::string_view(hello).substr(0, std::min<std::size_t>(hello.size(), static_cast<std::size_t>(cut))));
    w.h.turns();
    w.h.pass_ms(299);
    CHECK(w.h.counters.connections.get() == 1);
    w.h.pass_ms(2);
    CHECK(w.h.counters.connections.get() == 0);
    CHECK(w.h.counters.timeouts.get() == 1);
    CHECK(w.h.counters.tls_failures.get() == 1);
  }
}

TEST_CASE("a client that vanishes in the handshake is one failure, and nothing stays") {
  for (const int steps : {0, 1, 2}) {
    World w;
    w.connect();
    for (int i = 0; i < steps; ++i) {
      w.send(w.client->give());
      w.h.turns();
      if (i + 1 < steps) w.client->take(w.wire->take());
    }
    w.wire->leave();
    w.h.turns();
    CHECK(w.h.counters.connections.get() == 0);
    CHECK(w.h.counters.tls_failures.get() == (w.h.counters.tls_handshakes.get() ? 0 : 1));
  }
}

TEST_CASE("garbage gets an alert and an end, with room for the client to read it") {
  World w;
  w.connect();
  w.wire->send(std::string_view("\x16\x03\x01\x00\x05hello and more", 19));
  w.h.turns();
  const std::string alert = w.wire->take();
  REQUIRE(alert.size() == 7);
  CHECK(alert[0] == 21);                         // an alert
  CHECK(alert[5] == 2);                          // fatal
  CHECK(w.wire->ended);                          // no more from us
  CHECK(w.h.counters.tls_failures.get() == 1);
  CHECK(w.h.counters.connections.get() == 1);    // lingering
  w.wire->send(std::string(1000, 'x'));
  w.h.turns();
  w.h.pass_ms(1001);
  CHECK(w.h.counters.connections.get() == 0);
}

TEST_CASE("a record that is broken between requests ends the connection; routes that run are told") {
  World w;
  w.meet();
  w.client->say(get("/r/slow"));
  w.carry();
  REQUIRE(w.h.lua.held.size() == 1);
  w.client->say(get("/r/second"));
  std::string cipher = w.client->give();
  cipher.back() ^= 1;
  w.wire->send(cipher);
  w.h.turns();
  CHECK(w.h.lua.gone == 1);
  CHECK(w.h.counters.tls_failures.get() == 1);
  CHECK(w.h.counters.clients_gone.get() == 1);
  w.wire->leave();
  w.h.turns();
  CHECK(w.h.counters.connections.get() == 0);
}

TEST_CASE("the name of a client's certificate goes with its requests, also when the client has gone") {
  World w;
  const Identity alice = make_identity({.cn = "alice", .signer = &w.m.authority});
  TlsSettings s = w.m.settings();
  s.client_ca = w.m.ca;
  s.verify = TlsSettings::Verify::optional;
  w.tls = w.m.tls(s);
  w.h.lua.let_go = false;
  w.meet({.identity = &alice});
  w.client->say(post("/r/x", "body"));
  w.carry();
  REQUIRE(w.h.lua.held.size() == 1);
  const Request& request = w.h.lua.held[0]->request();
  CHECK(request.tls_peer_cn == "alice");
  w.wire->leave();
  w.h.turns();
  w.h.pass_ms(1001);                             // a write is waited for while the client may still read
  CHECK(w.h.counters.connections.get() == 0);
  // The next client takes the same place, with another name, or none.
  w.meet();
  w.client->say(post("/r/y", "body"));
  w.carry();
  REQUIRE(w.h.lua.held.size() == 2);
  CHECK(w.h.lua.held[1]->request().tls_peer_cn == "");
  CHECK(request.tls_peer_cn == "alice");
  CHECK(request.client_ip == "192.0.2.1");
  w.h.lua.answer(200, "");
  w.h.lua.answer(200, "");
}

TEST_CASE("requests in flight, with the client's farewell behind them, are all answered") {
  Settings s;
  s.pipeline = 2;
  World w(s);
  w.meet();
  std::string all;
  for (int i = 0; i < 10; ++i) all += get("/r/" + std::to_string(i));
  w.client->say(all);
  w.client->bye();
  w.carry();
  std::string got;
  for (int i = 0; i < 10; ++i) {
    REQUIRE_FALSE(w.h.lua.held.empty());
    w.h.lua.answer(200, std::to_string(i));
    w.carry();
    got += w.client->heard();
  }
  CHECK(count_of(got, "HTTP/1.1 200 OK") == 10);
  CHECK(w.wire->ended);
  CHECK(w.h.counters.connections.get() == 0);
}

TEST_CASE("over the limit of connections: 503 comes by TLS") {
  Settings s;
  s.connections = 1;
  World w(s);
  const auto first = w.h.connect();
  w.meet();
  CHECK(has(w.client->heard(), "HTTP/1.1 503 Service Unavailable\r\n"));
  CHECK(w.client->ended());
}

TEST_CASE("draining: what is under way is answered, idle ones hear a farewell, a handshake may end and ask once") {
  for (const int version : kVersions) {
    World w;
    answer_at_once(w.h.lua, "");
    w.meet({.version = version});
    CHECK(body_of(w.ask(get("/r/a"))) == "/r/a");
    auto idle = std::move(w.client);
    auto idle_wire = std::move(w.wire);
    w.connect({.version = version});
    w.send(w.client->give());
    w.h.turns();
    w.h.loop.drain();
    idle->take(idle_wire->take());
    CHECK(idle->ended());
    CHECK(idle_wire->ended);
    w.client->take(w.wire->take());
    w.carry();
    CHECK(w.client->open());
    const std::string answer = w.ask(get("/r/b"));
    CHECK(body_of(answer) == "/r/b");
    CHECK(has(answer, "Connection: close"));
    CHECK(w.client->ended());
    w.wire->leave();
    w.h.turns();
    CHECK(w.h.counters.connections.get() == 0);
  }
  World w;
  w.meet();
  w.h.loop.drain();
  w.h.turns();
  CHECK(w.h.counters.connections.get() == 1);    // behind a handshake there is a second for the first request
  w.h.pass_ms(1001);
  CHECK(w.h.counters.connections.get() == 0);
}

TEST_CASE("an idle connection over TLS ends in time, with a farewell") {
  Settings s;
  s.idle_timeout_ms = 1000;
  World w(s);
  w.meet();
  w.h.pass_ms(999);
  CHECK(w.h.counters.connections.get() == 1);
  w.h.pass_ms(2);
  w.carry();
  CHECK(w.client->ended());
  CHECK(w.h.counters.connections.get() == 0);
}

TEST_CASE("a client that changes its keys for ever and reads nothing is given up") {
  World w;
  w.meet({.version = TLS1_3_VERSION}, 4096);
  for (int i = 0; i < 20'000 && w.h.counters.connections.get() == 1; ++i) {
    w.client->change_keys();
    w.send(w.client->give());
  }
  CHECK(w.h.counters.connections.get() == 0);
}

TEST_CASE("a resumed session is counted") {
  World w;
  w.meet();
  REQUIRE(w.client->session());
  SSL_SESSION* const session = w.client->session();
  SSL_SESSION_up_ref(session);
  w.meet({.resume = session});
  SSL_SESSION_free(session);
  CHECK(w.client->resumed());
  CHECK(w.h.counters.tls_handshakes.get() == 2);
  CHECK(w.h.counters.tls_resumptions.get() == 1);
}
