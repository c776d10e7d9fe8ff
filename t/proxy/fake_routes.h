// Routes, an engine and a clock that tests steer: what a worker's loop is run against.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/loop.h"
#include "proxy/route.h"
#include "proxy/worker.h"

namespace sluice::proxy::test {

class FakeClock final : public Clock {
 public:
  std::uint64_t monotonic_us() override { return now_us; }
  std::uint64_t wall_ms() override { return 1'764'514'800'000 + now_us / 1000; }
  std::uint64_t now_us = 1'000'000'000;
};

// Keeps what it is given until the test answers it.
class FakeEngine final : public Engine {
 public:
  bool prepare(Event&, const Call&) override { return true; }
  bool evaluate(Event&) override { return false; }
  void enqueue(EventPtr e) override { queue.push_back(std::move(e)); }
  void flush(const std::function<void(EventPtr)>& refused) override {
    ++flushes;
    if (!refuse) return;
    for (EventPtr& e : queue) refused(std::move(e));
    queue.clear();
  }
  std::vector<EventPtr> queue;
  int flushes = 0;
  bool refuse = false;
};

// Each start is recorded; `on_start` answers, or the test does later.
class FakeRoute final : public Route {
 public:
  explicit FakeRoute(bool module) : module_(module) {}
  void start(Exchange& e, const Match&, Services& s) override {
    services = &s;
    held.push_back(&e);
    started.push_back(std::string(e.request().target));
    if (on_start) on_start(e, s);
  }
  void client_gone(Exchange& e) override {
    ++gone;
    if (let_go && is_safe(e.request().method)) answer(e, 200, "nobody");
  }
  bool is_module() const override { return module_; }
  void answer(Exchange& e, std::uint16_t status, std::string_view body) {
    Response r;
    r.status = status;
    r.content_type = "text/plain";
    r.body.text = body;
    answer(e, r);
  }
  void answer(Exchange& e, Response& r) {
    std::erase(held, &e);
    e.answer(r);
  }
  // The oldest one that is held.
  void answer(std::uint16_t status, std::string_view body) { answer(*held.front(), status, body); }

  std::function<void(Exchange&, Services&)> on_start;
  Services* services = nullptr;
  std::vector<Exchange*> held;
  std::vector<std::string> started;
  int gone = 0;
  bool let_go = true;

 private:
  const bool module_;
};

// Longest prefix wins. The routes are the test's.
class FakeTable final : public RouteTable {
 public:
  void attach(Services&) override { ++attached; }
  Route* find(Method method, std::string_view path, Match& match) override {
    for (auto it = routes.rbegin(); it != routes.rend(); ++it)
      if (path.starts_with(it->first)) {
        if (method == Method::patch) {
          match.allow = 1u << static_cast<unsigned>(Method::get);
          return nullptr;
        }
        match.rest = path.substr(it->first.size());
        return it->second;
      }
    return nullptr;
  }
  std::map<std::string, Route*, std::less<>> routes;
  int attached = 0;
};

}  // namespace sluice::proxy::test
