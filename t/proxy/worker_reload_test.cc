// What a reload changes of a worker beside its routes: where it accepts, whether it goes, and what it says that it holds.
#include <arpa/inet.h>
#include <netinet/in.h>

#include "proxy/listener.h"
#include "t/proxy/harness.h"

using namespace sluice;
using namespace sluice::proxy;
using namespace sluice::proxy::test;

namespace {
const std::string kGet = "GET /r/x HTTP/1.1\r\nHost: h\r\n\r\n";

std::unique_ptr<Client> connect_to(std::uint16_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  REQUIRE(::connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0);
  return std::make_unique<Client>(fd);
}

bool drained(const std::vector<News>& news, std::uint64_t number) {
  bool said = false;
  for (const News& n : news) said |= n.kind == News::Kind::drained && n.generation.number == number;
  return said;
}

const News& report(Harness& h, std::vector<News>& news) {
  h.loop.report(5);
  h.turns();
  news = h.heard();
  REQUIRE_FALSE(news.empty());
  REQUIRE(news.back().kind == News::Kind::held);
  CHECK(news.back().asked == 5);
  return news.back();
}
}  // namespace

TEST_CASE("a worker accepts where it is told, and a connection keeps the tag that it came with") {
  Harness h;
  std::vector<std::string> tags;
  h.lua.on_start = [&](Exchange& e, Services&) {
    tags.push_back(std::string(e.request().tag));
    h.lua.answer(e, 200, "x");
  };
  auto one = open_listeners("127.0.0.1", 0, 1), two = open_listeners("127.0.0.1", 0, 1);
  REQUIRE(one);
  REQUIRE(two);
  h.loop.listen({{one->sockets[0], "a", nullptr}, {two->sockets[0], "b", nullptr}});
  const auto first = connect_to(one->port), second = connect_to(two->port);
  h.turns();
  h.roundtrip(*first, kGet), h.roundtrip(*second, kGet);
  h.loop.listen({{one->sockets[0], "c", nullptr}});
  const auto third = connect_to(one->port);
  h.turns();
  h.roundtrip(*third, kGet), h.roundtrip(*first, kGet), h.roundtrip(*second, kGet);
  CHECK(tags == std::vector<std::string>{"a", "b", "c", "a", "b"});
  // Nobody accepts from the second any more.
  const auto fourth = connect_to(two->port);
  h.turns();
  CHECK(h.counters.connections.get() == 3);
}

TEST_CASE("who waits when a worker is told to listen there no more is accepted") {
  Harness h;
  answer_at_once(h.lua, "served");
  auto listeners = open_listeners("127.0.0.1", 0, 1);
  REQUIRE(listeners);
  h.loop.listen(listeners->listening(0));
  const auto waits = connect_to(listeners->port);
  h.loop.listen({});
  const std::uint16_t port = listeners->port;
  listeners->sockets.clear();                   // the last of them
  CHECK(h.counters.connections.get() == 1);
  CHECK(has(h.roundtrip(*waits, kGet), "served"));
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  CHECK(::connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0);
  close(fd);
}

TEST_CASE("a route that goes on without its client still knows where it came from") {
  Harness h;
  auto listeners = open_listeners("127.0.0.1", 0, 1);
  REQUIRE(listeners);
  h.lua.let_go = false;
  h.loop.listen({{listeners->sockets[0], "admin", nullptr}});
  {
    const auto c = connect_to(listeners->port);
    c->send(kGet);
    h.turns();
    const linger reset{1, 0};
    setsockopt(c->fd(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  }
  h.turns();
  REQUIRE(h.lua.gone == 1);
  h.loop.listen({});
  // Another takes its place in the pool.
  const auto other = h.connect();
  other->send(kGet);
  h.turns();
  REQUIRE(h.lua.held.size() == 2);
  CHECK(h.lua.held[0]->request().client_ip == "127.0.0.1");
  CHECK(h.lua.held[0]->request().tag == "admin");
  h.lua.answer(200, "nobody"), h.lua.answer(200, "x");
  h.turns();
}

TEST_CASE("a worker that leaves ends each connection with its next answer, and says when none is left") {
  Harness h;
  const auto idle = h.connect(), busy = h.connect();
  busy->send(kGet);
  h.turns();
  h.install();
  h.loop.leave(true);
  h.turns();
  idle->take();
  CHECK_FALSE(idle->ended);                     // nothing that waits for its next request is cut
  CHECK_FALSE(drained(h.heard(), 2));
  h.lua.answer(200, "begun before");
  h.turns();
  std::string got = busy->take();
  CHECK(has(got, "begun before"));
  CHECK(has(got, "Connection: close\r\n"));
  CHECK(busy->ended);
  answer_at_once(h.lua, "asked after");
  got = h.roundtrip(*idle, kGet);
  CHECK(has(got, "asked after"));
  CHECK(has(got, "Connection: close\r\n"));
  h.turns();
  CHECK(drained(h.heard(), 2));
}

TEST_CASE("a worker that is taken back goes on, and a drain that comes then is said anew") {
  Harness h;
  answer_at_once(h.lua, "x");
  const auto c = h.connect();
  h.loop.leave(true);
  h.turns();
  h.install();
  h.loop.leave(false);
  h.turns();
  CHECK_FALSE(has(h.roundtrip(*c, kGet), "Connection: close"));
  h.loop.leave(true);
  c->leave();
  h.turns();
  CHECK(drained(h.heard(), 2));
  h.loop.drain();
  h.turns();
  CHECK(drained(h.heard(), 2));
}

TEST_CASE("a worker says what it holds of each generation, and which request is the oldest") {
  Harness h;
  FakeTable& first = h.install();
  first.routes = {{"/m/", &h.module}, {"/r/", &h.lua}};
  const auto c = h.connect(), d = h.connect(), e = h.connect();
  c->send("POST /r/first HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n");
  h.turns();
  h.lua.services->submit(h.lua.services->take_event(), nullptr, 0);
  h.lua.services->keep();
  h.pass_ms(500);
  d->send("GET /r/second HTTP/1.1\r\nHost: h\r\n\r\n");
  h.turns();
  h.install();
  e->send("GET /r/ha");                         // of the newest, not whole yet
  h.pass_ms(1'000);
  std::vector<News> news;
  const News* said = &report(h, news);
  REQUIRE(said->held.size() == 2);
  CHECK(said->held[0].number == 2);
  CHECK(said->held[0].exchanges == 2);
  CHECK(said->held[0].events == 1);
  CHECK(said->held[0].kept == 1);
  CHECK(said->held[0].oldest == "POST /r/first");
  CHECK(said->held[0].oldest_us == 1'500'000);
  CHECK(said->held[1].number == 3);
  CHECK(said->held[1].exchanges == 1);
  CHECK(said->held[1].oldest == "a request that is being received");
  h.lua.answer(200, "x");                       // the first
  h.turns();
  said = &report(h, news);
  CHECK(said->held[0].exchanges == 1);
  CHECK(said->held[0].oldest == "GET /r/second");
  h.lua.answer(200, "x");
  REQUIRE(h.results.push(std::move(h.engine->queue.at(0))));
  h.engine->queue.clear();
  h.turns();
  CHECK(h.counters.generations.get() == 2);     // what goes on behind an answer keeps it
  h.lua.services->let_go();
  h.turns();
  said = &report(h, news);
  REQUIRE(said->held.size() == 1);
  CHECK(said->held[0].number == 3);
}

TEST_CASE("what an install does on the worker does not depend on how much the old routes hold") {
  struct Counting final : RouteTable {
    explicit Counting(int& calls) : calls_(calls) {}
    void attach(Services&) override { ++calls_; }
    Route* find(Method, std::string_view, Match&) override { return nullptr; }
    void idle() override { ++calls_; }
    std::uint64_t memory_bytes() const override { return ++calls_, 0; }
    std::uint32_t slots() const override { return ++calls_, 100'000; }
    std::uint32_t slots_in_use() const override { return ++calls_, 100'000; }
    int& calls_;
  };
  Harness h;
  int old_calls = 0, new_calls = 0;
  const auto generation = [&](int& calls) {
    Generation g;
    g.number = ++h.generations;
    g.settings = h.settings;
    g.routes = std::make_unique<Counting>(calls);
    return g;
  };
  h.loop.install(generation(old_calls));
  h.heard();
  old_calls = 0;
  h.loop.install(generation(new_calls));
  CHECK(old_calls == 0);                        // it is not asked anything: it goes back as it is
  CHECK(new_calls == 1);                        // attach()
  const std::vector<News> news = h.heard();
  REQUIRE(news.size() == 2);
  CHECK(news[1].kind == News::Kind::retired);
}
