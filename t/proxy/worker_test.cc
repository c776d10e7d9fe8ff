// Events, timers, generations and draining: what a worker's loop does beside connections.
#include "proxy/worker.h"

#include <arpa/inet.h>
#include <malloc.h>
#include <netinet/in.h>

#include <algorithm>
#include <thread>

#include "proxy/listener.h"
#include "t/proxy/harness.h"

using namespace sluice;
using namespace sluice::proxy;
using namespace sluice::proxy::test;

namespace {
const std::string kGet = "GET /r/x HTTP/1.1\r\nHost: h\r\n\r\n";

struct FakeWaiter final : Waiter {
  void answered(std::uint32_t tag, EventPtr event) override {
    answers.push_back(tag);
    last = std::move(event);
    if (on_answer) on_answer();
  }
  void timed_out(std::uint32_t tag) override { timeouts.push_back(tag); }
  std::vector<std::uint32_t> answers, timeouts;
  EventPtr last;
  std::function<void()> on_answer;
};
}  // namespace

TEST_CASE("events go to owners with one flush a turn, and answers find who waits") {
  Harness h;
  FakeWaiter w;
  h.lua.on_start = [&](Exchange& e, Services& s) {
    for (std::uint32_t tag = 1; tag <= 3; ++tag) s.submit(s.take_event(), &w, tag);
    CHECK(w.answers.empty());
    h.lua.answer(e, 200, "x");
  };
  const auto c = h.connect();
  h.roundtrip(*c, kGet);
  CHECK(h.engine->flushes == 1);
  REQUIRE(h.engine->queue.size() == 3);
  CHECK(h.counters.outstanding.get() == 3);
  for (EventPtr& e : h.engine->queue) REQUIRE(h.results.push(std::move(e)));
  h.engine->queue.clear();
  h.turns();
  CHECK(w.answers == std::vector<std::uint32_t>{1, 2, 3});
  CHECK(h.counters.outstanding.get() == 0);
}

TEST_CASE("a forgotten ticket's answer is dropped, and one cannot be answered twice") {
  Harness h;
  FakeWaiter w;
  Ticket kept, dropped;
  h.lua.on_start = [&](Exchange& e, Services& s) {
    kept = s.submit(s.take_event(), &w, 1);
    dropped = s.submit(s.take_event(), &w, 2);
    s.forget(dropped);
    s.forget(Ticket{});
    h.lua.answer(e, 200, "x");
  };
  const auto c = h.connect();
  h.roundtrip(*c, kGet);
  for (EventPtr& e : h.engine->queue) REQUIRE(h.results.push(std::move(e)));
  h.engine->queue.clear();
  h.turns();
  CHECK(w.answers == std::vector<std::uint32_t>{1});
  // The slot has a new generation: the old ticket names nobody.
  h.lua.services->forget(kept);
  const Ticket again = h.lua.services->submit(h.lua.services->take_event(), &w, 9);
  CHECK((again.slot != kept.slot || again.generation != kept.generation));
  h.turns();
}

TEST_CASE("an event that its owner has no room for comes back as 503 store_busy, not before submit returns") {
  Harness h;
  h.engine->refuse = true;
  FakeWaiter w;
  h.lua.on_start = [&](Exchange& e, Services& s) {
    s.submit(s.take_event(), &w, 5);
    CHECK(w.answers.empty());
  };
  w.on_answer = [&] { h.lua.answer(w.last->answer.status, name(w.last->answer.error)); };
  const auto c = h.connect();
  c->send(kGet);
  h.turns(1);
  const std::string got = c->take();
  CHECK(got.starts_with("HTTP/1.1 503 "));
  CHECK(got.ends_with("store_busy"));
  CHECK(h.counters.refused_busy.get() == 1);
}

TEST_CASE("no more events are under way than the results inbox can hold") {
  Harness h;
  FakeWaiter w;
  h.lua.on_start = [&](Exchange& e, Services& s) {
    for (std::uint32_t i = 0; i < 65'536; ++i) s.submit(s.take_event(), nullptr, 0);
    s.submit(s.take_event(), &w, 7);
    h.lua.answer(e, 200, "x");
  };
  const auto c = h.connect();
  h.roundtrip(*c, kGet);
  CHECK(h.engine->queue.size() == 65'536);
  REQUIRE(w.last);
  CHECK(w.last->answer.error == Errc::overload);
  for (EventPtr& e : h.engine->queue) REQUIRE(h.results.push(std::move(e)));
  h.engine->queue.clear();
  h.turns();
  CHECK(h.counters.outstanding.get() == 0);
}

TEST_CASE("timers fire once, not early, and a stopped one never") {
  Harness h;
  FakeWaiter w;
  const auto c = h.connect();
  c->send(kGet);
  h.turns();
  Services& s = *h.lua.services;
  s.start_timer(5'000, &w, 5);
  s.start_timer(2'000, &w, 2);
  TimerId stopped = s.start_timer(3'000, &w, 3);
  s.start_timer(0, &w, 0);
  s.start_timer(0, &w, 1);
  s.stop_timer(stopped);
  CHECK(stopped.generation == 0);
  s.stop_timer(stopped);
  CHECK(w.timeouts.empty());
  h.turns(1);
  CHECK(w.timeouts == std::vector<std::uint32_t>{0, 1});
  h.clock.now_us += 1'999;
  h.turns(1);
  CHECK(w.timeouts.size() == 2);
  h.clock.now_us += 1'001;
  h.turns(1);
  CHECK(w.timeouts == std::vector<std::uint32_t>{0, 1, 2});
  h.pass_ms(100);
  CHECK(w.timeouts == std::vector<std::uint32_t>{0, 1, 2, 5});
}

TEST_CASE("a wake-up that comes before the timer is due is set again, with nothing else to end the wait") {
  Harness h;
  FakeWaiter w;
  auto c = h.connect();
  c->send(kGet);
  h.turns();
  h.lua.services->start_timer(3'000, &w, 7);
  alarm(20);                             // a wait that never ends is what this is about
  do {
    h.loop.turn(Loop::Wait::block);
  } while (h.loop.loop().will_wake());   // until libevent's clock says that it is time; the worker's does not
  CHECK(w.timeouts.empty());
  h.clock.now_us += 10'000;
  for (int i = 0; i < 100 && w.timeouts.empty(); ++i) h.loop.turn(Loop::Wait::block);
  alarm(0);
  CHECK(w.timeouts == std::vector<std::uint32_t>{7});
}

TEST_CASE("the wheel fires thousands of timers in their order of time, near and far") {
  TimerWheel wheel(1'000);
  std::vector<std::uint32_t> fired;
  const auto fire = [](void* t, std::uint32_t tag) { static_cast<std::vector<std::uint32_t>*>(t)->push_back(tag); };
  std::vector<TimerId> ids;
  std::uint32_t seed = 7;
  std::vector<std::uint32_t> expected;
  for (int i = 0; i < 3'000; ++i) {
    seed = seed * 1'664'525 + 1'013'904'223;
    const std::uint32_t delay = 1 + (seed >> 8) % 3'000'000;   // up to 50 minutes: beyond the far wheel
    ids.push_back(wheel.start(1'000 + delay, &fired, delay, fire));
    if (i % 3) expected.push_back(delay);
  }
  for (std::size_t i = 0; i < ids.size(); i += 3) wheel.stop(ids[i]);
  CHECK(wheel.size() == expected.size());
  std::sort(expected.begin(), expected.end());
  std::uint64_t now = 1'000;
  while (wheel.size() > 0) {
    const std::uint64_t next = wheel.next_ms();
    REQUIRE(next > now);
    REQUIRE(next != TimerWheel::kNever);
    now = next;
    const std::size_t before = fired.size();
    wheel.advance(now);
    for (std::size_t i = before; i < fired.size(); ++i) REQUIRE(fired[i] + 1'000 == now);
  }
  CHECK(fired == expected);
}

TEST_CASE("an exchange goes on with the generation it began with, which comes back when the last is done") {
  Harness h;
  const auto c = h.connect();
  c->send(kGet);
  h.turns();
  h.heard();
  h.install();
  h.turns();
  std::vector<News> news = h.heard();
  REQUIRE(news.size() == 1);
  CHECK(news[0].kind == News::Kind::installed);
  CHECK(news[0].generation.number == 2);
  CHECK(h.counters.generations.get() == 2);
  c->send(kGet);
  h.turns();
  REQUIRE(h.lua.held.size() == 2);
  h.lua.answer(200, "old");
  h.turns();
  news = h.heard();
  REQUIRE(news.size() == 1);
  CHECK(news[0].kind == News::Kind::retired);
  CHECK(news[0].generation.number == 1);
  CHECK(news[0].generation.routes != nullptr);
  h.lua.answer(200, "new");
  h.turns();
  CHECK(count_of(c->take(), "HTTP/1.1 200") == 2);
}

TEST_CASE("a generation with an event under way waits for it, and its timers end with it") {
  Harness h;
  FakeWaiter w;
  h.lua.on_start = [&](Exchange& e, Services& s) {
    s.submit(s.take_event(), &w, 1);
    s.start_timer(1'000'000, &w, 2);
    h.lua.answer(e, 200, "x");
  };
  const auto c = h.connect();
  h.roundtrip(*c, kGet);
  h.heard();
  h.install();
  h.turns();
  CHECK(h.counters.generations.get() == 2);
  REQUIRE(h.results.push(std::move(h.engine->queue.at(0))));
  h.engine->queue.clear();
  h.turns();
  CHECK(w.answers.size() == 1);
  CHECK(h.counters.generations.get() == 1);
  h.pass_ms(2'000);
  CHECK(w.timeouts.empty());
}

TEST_CASE("draining answers what was accepted with Connection: close, closes the idle, and says so") {
  Harness h;
  const auto idle = h.connect(), busy = h.connect(), unread = h.connect();
  busy->send(kGet);
  h.turns();
  unread->send(kGet);   // in the socket, not read yet
  h.loop.drain();
  idle->take();
  CHECK(idle->ended);
  h.turns();
  h.heard();
  CHECK(h.lua.held.size() == 2);
  h.lua.answer(200, "a"), h.lua.answer(200, "b");
  h.turns();
  for (Client* c : {busy.get(), unread.get()}) {
    const std::string got = c->take();
    CHECK(has(got, "200 OK"));
    CHECK(has(got, "Connection: close\r\n"));
    CHECK(c->ended);
  }
  const std::vector<News> news = h.heard();
  REQUIRE(news.size() == 1);
  CHECK(news[0].kind == News::Kind::drained);
}

TEST_CASE("draining waits for a route whose client has gone, and for events without a waiter") {
  Harness h;
  const auto c = h.connect();
  c->send("POST /r/x HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n");
  h.turns();
  h.lua.services->submit(h.lua.services->take_event(), nullptr, 0);
  c->leave();
  h.pass_ms(1'100);
  h.loop.drain();
  h.turns();
  h.heard();
  h.lua.answer(200, "x");
  h.turns();
  CHECK(h.heard().empty());
  REQUIRE(h.results.push(std::move(h.engine->queue.at(0))));
  h.engine->queue.clear();
  h.turns();
  CHECK(h.heard().size() == 1);
}

TEST_CASE("the end gives every generation back, whatever is under way") {
  Harness h;
  const auto c = h.connect();
  c->send(kGet);
  h.turns();
  h.install();
  h.heard();
  h.loop.end();
  const std::vector<News> news = h.heard();
  REQUIRE(news.size() == 3);
  CHECK(news[0].kind == News::Kind::retired);
  CHECK(news[1].kind == News::Kind::retired);
  CHECK(news[2].kind == News::Kind::ended);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE("an idle connection keeps its own object alone: no request, no buffer, no output") {
  Harness h;
  h.lua.on_start = [&](Exchange& e, Services&) { h.lua.answer(e, 200, std::string(20'000, 'x')); };
  std::vector<std::unique_ptr<Client>> clients;
  const auto serve = [&](int n) {
    for (int i = 0; i < n; ++i) {
      clients.push_back(h.connect());
      clients.back()->send(kGet);
      for (int t = 0; t < 3; ++t) h.turns(1), clients.back()->take();
    }
  };
  clients.reserve(300);
  serve(50);
  const std::size_t before = mallinfo2().uordblks;
  serve(200);
  const std::size_t each = (mallinfo2().uordblks - before) / 200;
  CAPTURE(each);
  CHECK(h.counters.connections.get() == 250);
  CHECK(each < 1'500);
}

TEST_CASE("after a crowd of requests only a spare number of their objects is kept") {
  Harness h;
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 60; ++i) clients.push_back(h.connect());
  const auto crowd = [&](int each) {
    for (auto& c : clients)
      for (int i = 0; i < each; ++i) c->send(kGet);
    h.turns(8);
    CHECK(h.lua.held.size() == 60u * static_cast<unsigned>(each));
    while (!h.lua.held.empty()) h.lua.answer(200, std::string(1'000, 'x'));
    for (int t = 0; t < 20; ++t) {
      h.turns();
      for (auto& c : clients) c->take();
    }
    CHECK(h.counters.active.get() == 0);
  };
  crowd(1);
  const std::size_t before = mallinfo2().uordblks;
  crowd(64);
  const std::size_t kept = mallinfo2().uordblks - before;
  CAPTURE(kept);
  CHECK(kept < 5'000'000);   // 1,024 of 3,840
  crowd(1);
}
#endif

TEST_CASE("one port is listened on by every worker, and a second process is told that it is in use") {
  const auto first = open_listeners("127.0.0.1", 0, 2);
  REQUIRE(first);
  CHECK(first->port != 0);
  CHECK(first->sockets.size() == 2);
  const auto second = open_listeners("127.0.0.1", first->port, 2);
  REQUIRE_FALSE(second);
  CHECK(second.error() == "cannot listen on 127.0.0.1:" + std::to_string(first->port) + ": port " + std::to_string(first->port) + " is in use");
  const auto nowhere = open_listeners("192.0.2.1", 0, 1);
  REQUIRE_FALSE(nowhere);
  CHECK(has(nowhere.error(), "cannot listen on 192.0.2.1:0: "));
}

TEST_CASE("a worker serves on its own thread, switches generations, drains and ends") {
  struct Echo final : Route {
    explicit Echo(std::string words) : text(std::move(words)) {}
    void start(Exchange& e, const Match&, Services&) override {
      Response r;
      r.body.text = text;
      e.answer(r);
    }
    std::string text;
  };
  struct Table final : RouteTable {
    explicit Table(std::string text) : echo(std::move(text)) {}
    void attach(Services&) override {}
    Route* find(Method, std::string_view, Match&) override { return &echo; }
    Echo echo;
  };
  const auto generation = [](std::uint64_t n) {
    Generation g;
    g.number = n;
    g.settings = std::make_shared<Settings>();
    g.routes = std::make_unique<Table>("generation " + std::to_string(n));
    return g;
  };
  Settings settings;
  ProcessLimits limits(settings);
  Inbox<News> news("control.news", 100);
  const auto wait_for = [&](News::Kind kind) {
    for (;;) {
      bool seen = false;
      news.drain([&](News n) { seen |= n.kind == kind; });
      if (seen) return;
      news.wake().wait(10'000);
    }
  };
  auto listeners = open_listeners("127.0.0.1", 0, 1);
  REQUIRE(listeners);
  const auto connect = [&] {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(listeners->port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(::connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0);
    return fd;
  };
  const auto ask = [](int fd) {
    REQUIRE(send(fd, kGet.data(), kGet.size(), 0) == static_cast<ssize_t>(kGet.size()));
    char buffer[4096];
    const ssize_t n = recv(fd, buffer, sizeof buffer, 0);
    return std::string(buffer, static_cast<std::size_t>(n > 0 ? n : 0));
  };
  Counters counters;
  Worker worker(0, limits, news, counters);
  worker.start(std::make_unique<FakeEngine>(), listeners->listening(0), generation(1));
  wait_for(News::Kind::installed);
  const int fd = connect();
  CHECK(has(ask(fd), "generation 1"));
  REQUIRE(worker.install(generation(2)));
  wait_for(News::Kind::retired);
  CHECK(has(ask(fd), "generation 2"));
  worker.drain();
  wait_for(News::Kind::drained);
  char end = 0;
  CHECK(recv(fd, &end, 1, 0) == 0);
  close(fd);
  worker.end();
  wait_for(News::Kind::ended);
  worker.join();
  CHECK(worker.counters().requests.get() == 2);
}
