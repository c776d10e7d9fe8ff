// What a path leads to. `proxy` never asks what a route is made of; `lua` and proxy/module_route.cc implement it.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/engine.h"
#include "proxy/request.h"
#include "proxy/response.h"
#include "proxy/settings.h"

namespace sluice::proxy {

// Who waits for an event or a timer. Thread: worker.
class Waiter {
 public:
  virtual ~Waiter() = default;
  virtual void answered(std::uint32_t tag, EventPtr event) = 0;
  virtual void timed_out(std::uint32_t tag) = 0;
};

struct TimerId {
  std::uint32_t slot = 0, generation = 0;       // generation 0: no timer
};

struct Backend;                                 // proxy/remote/
class BackendClient;

// What a route may use of its worker. Thread: worker.
class Services {
 public:
  virtual ~Services() = default;
  virtual Engine& engine() = 0;
  // Pooled events: take, fill by engine().prepare(), then submit or recycle.
  virtual EventPtr take_event() = 0;
  virtual void recycle(EventPtr event) = 0;
  // Sends the event; `waiter` hears of it with `tag`, once, unless forget() comes first. waiter == nullptr: nobody waits.
  // It comes back through answered() also when it was refused (503 store_busy, overload), never before this call returns.
  virtual Ticket submit(EventPtr event, Waiter* waiter, std::uint32_t tag) = 0;
  virtual void forget(const Ticket& ticket) = 0;

  // For what goes on behind an answer with no event under way, such as a route inside another that sleeps: keeps the
  // generation, and a drain waiting. One let_go() for each keep().
  virtual void keep() {}
  virtual void let_go() {}

  // This worker's connections to a remote backend, kept as long as the generation lives; those of a backend that the last
  // generation had as well go on. nullptr: this worker has no remote backends (tests).
  virtual BackendClient* use(const std::shared_ptr<Backend>& backend) { return nullptr; }

  virtual TimerId start_timer(std::uint64_t delay_us, Waiter* waiter, std::uint32_t tag) = 0;   // 0: the next turn
  virtual void stop_timer(TimerId& id) = 0;     // also good for one that has fired

  virtual std::uint64_t monotonic_us() = 0;     // read once per turn of the loop
  virtual std::uint64_t wall_ms() = 0;
  virtual std::uint16_t worker_index() = 0;
  virtual Budget& budget() = 0;
  virtual const Settings& settings() = 0;
};

class Route;

// A request on its way to its answer. The connection owns its place in the order of answers; the route owns when.
// Thread: worker. Life: until answer() is called; the route may keep the pointer so long, also when the client has gone.
class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual const Request& request() const = 0;
  virtual bool gone() const = 0;                // the client has left: the answer goes nowhere
  // Exactly once. `response` is left reset, so that its buffers can be used again. The exchange is dead after it.
  virtual void answer(Response& response) = 0;
  // True while an earlier request of the same connection may still change `store`: then reads go to the owner.
  virtual bool behind_write() const = 0;
  // What a pool is to hash, when the sender said so; empty: what the request itself has.
  virtual std::string_view own_key() const { return {}; }
  // The route's own word while it holds the exchange: where it keeps what belongs to it, for client_gone().
  std::uint32_t route_slot = 0;
  // The route that holds it, when the one it was given to only chose (choosing_route.h): whom client_gone() is for.
  Route* passed_to = nullptr;
  // For `behind_write` of those that follow: a write to a store was submitted and is not answered yet.
  virtual void hold_writes(bool held) = 0;
};

// How the path was matched. Life: views are the request's.
struct Match {
  std::string_view rest;                        // the path behind a trimmed prefix; starts with '/' or is empty
  struct Captured { std::string_view name, value; };
  std::vector<Captured> captured;
  std::uint32_t allow = 0;                      // when no route takes the method: those that would
};

// Thread: worker.
class Route {
 public:
  virtual ~Route() = default;
  // Takes the exchange over; answers it now or later. `match` is good for this call only.
  virtual void start(Exchange& exchange, const Match& match, Services& services) = 0;
  // The client of an exchange that this route holds has gone. A safe method's route lets go at once and answers (into
  // nothing); others run on to their end. Default: run on.
  virtual void client_gone(Exchange& exchange) {}
  // True: one request to a store, submitted by start(), so that pipelined ones reach it in the order sent. Such a route
  // starts behind unanswered writes; others wait for them (design http.md, "Connections").
  virtual bool is_module() const { return false; }
};

struct RouteRecord;

// The routes of one generation on one worker. Made on control, then handed to the worker; destroyed on control.
class RouteTable {
 public:
  virtual ~RouteTable() = default;
  // Called on the worker when it takes the table over, before any request.
  virtual void attach(Services& services) = 0;
  // nullptr: no route; `match.allow` says whether another method would have one (405) or none (404).
  virtual Route* find(Method method, std::string_view path, Match& match) = 0;
  // The same for a whole request: tables that also look at its host or its listener's tag.
  virtual Route* find_for(const Request& request, Match& match) { return find(request.method, request.path, match); }
  // Between turns of the loop, when idle: a step of garbage collection.
  virtual void idle() {}
  virtual std::uint64_t memory_bytes() const { return 0; }
  // Request contexts made and in use, all routes together.
  virtual std::uint32_t slots() const { return 0; }
  virtual std::uint32_t slots_in_use() const { return 0; }
  // What they hold, for any thread (proxy/route_record.h), and where a profile is asked for; nullptr: they have none.
  virtual std::shared_ptr<RouteRecord> record() const { return nullptr; }
};

}  // namespace sluice::proxy
