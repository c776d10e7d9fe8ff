// Stand-ins for what a route is given: a store, an engine, a worker's services, an exchange.
//
// They do what the contracts in proxy/*.h say and record what they were asked.
#pragma once
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "proxy/engine.h"
#include "proxy/request.h"
#include "proxy/response.h"
#include "proxy/route.h"
#include "proxy/settings.h"

namespace sluice::proxy::fakes {

class FakeStore final : public Store {
 public:
  explicit FakeStore(std::string name, bool objects = true, bool remove = true)
      : name_(std::move(name)), objects_(objects), remove_(remove) {}
  std::string_view name() const override { return name_; }
  bool serves_objects() const override { return objects_; }
  bool has_remove() const override { return remove_; }
  std::uint32_t shards() const override { return 1; }
  bool has_view(std::string_view view) const override { return view == "total"; }
  bool has_input(std::string_view input) const override { return input == "say" || input == "plus"; }
  bool input_takes_body(std::string_view input) const override { return input == "say"; }

 private:
  const std::string name_;
  const bool objects_, remove_;
};

// Answers every event with "STORE VERB NAME"; a view called "refused" is refused by prepare().
class FakeEngine final : public Engine {
 public:
  bool prepare(Event& event, const Call& call) override {
    event.verb = call.verb;
    event.writes = call.verb == Verb::input || call.verb == Verb::edit || call.verb == Verb::remove;
    event.key = call.name;
    event.store = call.store;
    event.body = call.body;
    event.condition = call.condition;
    event.revision = call.revision;
    event.more = call.more;
    if (call.name != "refused") return true;
    event.answer.status = 404;
    event.answer.error = Errc::no_view;
    event.answer.body.text = "no such view\n";
    return false;
  }
  bool evaluate(Event& event) override {
    if (!evaluates) return false;
    ++evaluated;
    fill(event);
    return true;
  }
  void enqueue(EventPtr event) override { queued.push_back(std::move(event)); }
  void flush(const std::function<void(EventPtr)>& refused) override {}

  static void fill(Event& event) {
    event.answer.status = 200;
    event.answer.type = ContentType::text;
    event.answer.body.text = std::string(event.store->name()) + " " + std::to_string(static_cast<int>(event.verb)) +
                             " " + event.key;
  }

  bool evaluates = true;
  int evaluated = 0;
  std::vector<EventPtr> queued;
};

// What an exchange was answered with, kept after it is dead.
struct Answered {
  int times = 0;
  std::uint16_t status = 0;
  Errc error = Errc::none;
  std::uint32_t allow = 0;
  bool no_store = false;
  std::string body;
};

class FakeExchange final : public Exchange {
 public:
  FakeExchange(Method method, std::string_view path) {
    request_.method = method;
    request_.path = path;
  }
  const Request& request() const override { return request_; }
  bool gone() const override { return is_gone; }
  void answer(Response& response) override {
    ++answered.times;
    answered.status = response.status;
    answered.error = response.error;
    answered.allow = response.allow;
    answered.no_store = response.no_store;
    answered.body = std::string(response.body.flat());
    response.reset();
  }
  bool behind_write() const override { return is_behind_write; }
  void hold_writes(bool held) override { holds_writes = held; }

  Request& edit() { return request_; }
  Answered answered;
  bool is_gone = false, is_behind_write = false, holds_writes = false;

 private:
  Request request_;
};

// Gives events to the engine's queue and answers them when told to.
class FakeServices final : public Services {
 public:
  Engine& engine() override { return the_engine; }
  EventPtr take_event() override {
    ++taken;
    return std::make_unique<Event>();
  }
  void recycle(EventPtr event) override { ++recycled; }
  Ticket submit(EventPtr event, Waiter* waiter, std::uint32_t tag) override {
    const Ticket ticket{static_cast<std::uint32_t>(waits.size()), 1, tag};
    waits.push_back({waiter, tag, std::move(event)});
    return ticket;
  }
  void forget(const Ticket& ticket) override { waits[ticket.slot].waiter = nullptr; }
  TimerId start_timer(std::uint64_t delay_us, Waiter* waiter, std::uint32_t tag) override { return {}; }
  void stop_timer(TimerId& id) override {}
  std::uint64_t monotonic_us() override { return 0; }
  std::uint64_t wall_ms() override { return 0; }
  std::uint16_t worker_index() override { return 0; }
  Budget& budget() override { return the_budget; }
  const Settings& settings() override { return the_settings; }

  // The owner answers the n-th submitted event.
  void deliver(std::size_t n) {
    EventPtr event = std::move(waits[n].event);
    FakeEngine::fill(*event);
    if (waits[n].waiter) waits[n].waiter->answered(waits[n].tag, std::move(event));
  }

  struct Wait {
    Waiter* waiter;
    std::uint32_t tag;
    EventPtr event;
  };
  FakeEngine the_engine;
  Budget the_budget{1u << 20};
  Settings the_settings;
  std::vector<Wait> waits;
  int taken = 0, recycled = 0;
};

}  // namespace sluice::proxy::fakes
