// One worker loop in the test's own thread, clients over socket pairs, and a clock that stands still.
#pragma once
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "proxy/worker_loop.h"
#include "t/proxy/fake_routes.h"

namespace sluice::proxy::test {

class Client {
 public:
  explicit Client(int fd) : fd_(fd) {}
  ~Client() { leave(); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  void send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return;
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
  }
  // What has come; sets `ended` at the end of the stream.
  std::string take(std::size_t most = ~std::size_t{0}) {
    std::string out;
    char piece[16384];
    while (out.size() < most) {
      const ssize_t n = ::recv(fd_, piece, std::min(sizeof piece, most - out.size()), MSG_DONTWAIT);
      if (n == 0) ended = true;
      if (n < 0 && errno != EAGAIN) ended = true;
      if (n <= 0) break;
      out.append(piece, static_cast<std::size_t>(n));
    }
    return out;
  }
  void half_close() { shutdown(fd_, SHUT_WR); }
  void leave() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }
  int fd() const { return fd_; }
  bool ended = false;

 private:
  int fd_;
};

struct Harness {
  explicit Harness(const Settings& s = {})
      : settings(std::make_shared<Settings>(s)),
        limits(s),
        results("test.results", 65536),
        news("test.news", 100),
        engine(new FakeEngine),
        loop(0, limits, results, news, counters, std::unique_ptr<Engine>(engine), clock) {
    install();
  }
  FakeTable& install() {
    auto table = std::make_unique<FakeTable>();
    table->routes = {{"/m/", &module}, {"/r/", &lua}};
    FakeTable& out = *table;
    Generation g;
    g.number = ++generations;
    g.settings = settings;
    g.routes = std::move(table);
    loop.install(std::move(g));
    return out;
  }
  std::unique_ptr<Client> connect(int send_buffer = 0) {
    int fds[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
    fcntl(fds[0], F_SETFL, O_NONBLOCK);
    if (send_buffer) setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &send_buffer, sizeof send_buffer);
    loop.adopt(fds[0], "192.0.2.1");
    return std::make_unique<Client>(fds[1]);
  }
  // Enough turns for whatever is ready.
  void turns(int n = 4) {
    for (int i = 0; i < n; ++i) loop.turn(Loop::Wait::look);
  }
  void pass_ms(std::uint64_t ms) {
    clock.now_us += ms * 1000;
    turns();
  }
  std::string roundtrip(Client& c, std::string_view bytes) {
    c.send(bytes);
    turns();
    return c.take();
  }
  std::vector<News> heard() {
    std::vector<News> out;
    news.drain([&](News n) { out.push_back(std::move(n)); });
    return out;
  }

  FakeClock clock;
  std::shared_ptr<Settings> settings;
  ProcessLimits limits;
  Inbox<EventPtr> results;
  Inbox<News> news;
  Counters counters;
  FakeRoute module{true}, lua{false};
  FakeEngine* engine;
  std::uint64_t generations = 0;
  WorkerLoop loop;
};

inline std::size_t count_of(std::string_view text, std::string_view piece) {
  std::size_t n = 0;
  for (std::size_t at = text.find(piece); at != text.npos; at = text.find(piece, at + piece.size())) ++n;
  return n;
}
inline bool has(std::string_view text, std::string_view piece) { return text.find(piece) != text.npos; }

inline std::string get(std::string_view target, std::string_view more = "") {
  return "GET " + std::string(target) + " HTTP/1.1\r\nHost: h\r\n" + std::string(more) + "\r\n";
}
inline std::string post(std::string_view target, std::string_view body, std::string_view more = "") {
  return "POST " + std::string(target) + " HTTP/1.1\r\nHost: h\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" +
         std::string(more) + "\r\n" + std::string(body);
}
inline std::string body_of(std::string_view answer) {
  const std::size_t at = answer.find("\r\n\r\n");
  return at == answer.npos ? std::string("no answer") : std::string(answer.substr(at + 4));
}
inline void answer_at_once(FakeRoute& route, std::string body) {
  route.on_start = [&route, body](Exchange& e, Services&) { route.answer(e, 200, body.empty() ? e.request().path : body); };
}
}  // namespace sluice::proxy::test
