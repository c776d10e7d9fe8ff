// What does a request cost from socket to route and back, when the route does nothing? A worker with one constant route;
// load it with wrk or perf. Usage: hello_server [PORT [SECONDS]]; prints the port, ends by itself.
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "proxy/listener.h"
#include "proxy/worker.h"
#include "t/proxy/fake_routes.h"

using namespace sluice;
using namespace sluice::proxy;

namespace {
struct Hello final : Route {
  void start(Exchange& e, const Match&, Services&) override {
    response.content_type = "text/plain; charset=utf-8";
    response.body.text = "hello\n";
    e.answer(response);
  }
  Response response;
};
struct Table final : RouteTable {
  void attach(Services&) override {}
  Route* find(Method, std::string_view, Match&) override { return &hello; }
  Hello hello;
};
}  // namespace

int main(int argc, char** argv) {
  const std::uint16_t port = static_cast<std::uint16_t>(argc > 1 ? std::atoi(argv[1]) : 0);
  const int seconds = argc > 2 ? std::atoi(argv[2]) : 10;
  Settings settings;
  ProcessLimits limits(settings);
  Inbox<News> news("control.news", 16);
  auto listeners = open_listeners("127.0.0.1", port, 1);
  if (!listeners) {
    fmt::print(stderr, "{}\n", listeners.error());
    return 1;
  }
  Counters counters;
  Worker worker(0, limits, news, counters);
  Generation g;
  g.number = 1;
  g.settings = std::make_shared<Settings>(settings);
  g.routes = std::make_unique<Table>();
  worker.start(std::make_unique<test::FakeEngine>(), listeners->listening(0), std::move(g));
  fmt::print("{{\"port\":{}}}\n", listeners->port);
  std::fflush(stdout);
  std::this_thread::sleep_for(std::chrono::seconds(seconds));
  worker.end();
  worker.join();
  fmt::print("{{\"requests\":{},\"turns\":{},\"accepted\":{}}}\n", worker.counters().requests.get(),
             worker.counters().turns.get(), worker.counters().accepted.get());
  return 0;
}
