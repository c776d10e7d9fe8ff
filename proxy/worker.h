// A worker: one thread with its listeners, connections and routes, and the messages that control sends it.
//
// The order of things: construct; EngineControl::worker(index, worker.results()); start(); install() at each reload;
// drain(), wait for News::drained of every worker; EngineControl::stop(); end(), join(). Everything that a worker was
// given comes back as News and is destroyed by control.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "proxy/budget.h"
#include "proxy/counters.h"
#include "proxy/cron.h"
#include "proxy/engine.h"
#include "proxy/inbox.h"
#include "proxy/listener.h"
#include "proxy/route.h"
#include "proxy/settings.h"

namespace sluice::proxy {

// What all workers share and take from. Thread: any.
struct ProcessLimits {
  explicit ProcessLimits(const Settings& s) : payload(0), connections(0), active(0) { apply(s); }
  // At start and at each reload. Thread: control.
  void apply(const Settings& s) {
    payload.set_limit(s.payload_budget_bytes);
    connections.set_limit(s.connections);
    active.set_limit(s.active_req_limit ? s.active_req_limit : ~std::uint64_t{0});
    counts_active.store(s.active_req_limit != 0, std::memory_order_relaxed);
  }
  Budget payload;       // bytes
  Budget connections;   // open ones
  Budget active;        // requests in routes
  std::atomic<bool> counts_active{false};   // without a limit nobody touches the shared count
};

class Tls;

// One config's settings and routes for one worker.
// Life: made on control; the worker gives it back when its last exchange and event are done.
struct Generation {
  std::uint64_t number = 0;
  std::shared_ptr<const Settings> settings;
  std::unique_ptr<RouteTable> routes;
};

// What one worker holds of one generation.
struct HeldGeneration {
  std::uint64_t number = 0;
  std::uint64_t exchanges = 0;  // requests begun and not answered by their route
  std::uint64_t events = 0;     // with owners
  std::uint64_t kept = 0;       // routes that go on behind an answer (Services::keep())
  std::uint32_t slots = 0, slots_in_use = 0;
  std::uint64_t memory_bytes = 0;   // of its Lua VM
  std::string oldest;           // the oldest of the requests, "GET /path"; empty: none
  std::uint64_t oldest_us = 0;  // its age
};

// What a worker tells control.
struct News {
  enum class Kind : std::uint8_t {
    installed,          // requests that arrive from here on use `generation.number`
    retired,            // `generation` is nobody's any more: destroy it
    drained,            // no connection, no request, no event left; `generation.number` is the newest that it has
    answered,           // a cron's event: `cron` says how
    held,               // to report(): `held`, the newest generation last
    ended,              // the loop is over: join() returns at once. `retired` came before for each generation
  };
  Kind kind = Kind::installed;
  std::uint16_t worker = 0;
  Generation generation;        // of `installed` the number alone
  CronAnswer cron{};
  std::uint64_t asked = 0;      // of `held`: report()'s number
  std::vector<HeldGeneration> held{};
};

class WorkerLoop;

// Thread: control, but counters() (any).
class Worker {
 public:
  // `limits`, `news` and `counters` outlive the worker.
  Worker(std::uint16_t index, ProcessLimits& limits, Inbox<News>& news, Counters& counters);
  ~Worker();                    // ends and joins when that was not done
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Where owners send answers. Outstanding events are bounded so that it never refuses one.
  Inbox<EventPtr>& results() { return results_; }

  // Begins to serve.
  void start(std::unique_ptr<Engine> engine, std::vector<Listening> listening, Generation first);

  // Switches between two turns of the loop; new connections come from where they came.
  // Errors: Errc::full when 1,000 commands wait, with `next` untouched.
  Result<void> install(Generation&& next);
  // The same, and from now on it accepts from `listening` alone: what waits elsewhere is accepted first. `leaving`: it closes each
  // connection with its next answer, and says News::drained when none is left, unless a later call takes that back.
  Result<void> install(Generation&& next, std::vector<Listening> listening, bool leaving);
  // Only where it accepts. Errors: Errc::full.
  Result<void> listen(std::vector<Listening> listening);
  // Answered by News::held. Errors: Errc::full.
  Result<void> report(std::uint64_t asked);
  // Sends a cron's event; News::answered brings `id` back. Errors: Errc::full, as install(): the caller bounds how many
  // are under way, so that there is room for install().
  Result<void> post(StorePtr store, CronEvent event, std::uint32_t id);
  // Accepts what waits in the listeners' queues, closes them, answers what it has with `Connection: close`, closes idle
  // connections, and says News::drained. Results are still taken.
  void drain();
  // Ends the loop: what is left is dropped. After EngineControl::stop().
  void end();
  void join();

  std::uint16_t index() const { return index_; }
  const Counters& counters() const { return counters_; }

 private:
  friend class WorkerLoop;
  struct Posted {
    StorePtr store;
    CronEvent event;
    std::uint32_t id = 0;
  };
  struct Command {
    enum class Kind : std::uint8_t { install, install_and_listen, listen, report, drain, end, post };
    Kind kind = Kind::install;
    bool leaving = false;
    Generation generation{};
    std::vector<Listening> listening{};
    std::unique_ptr<Posted> posted{};
    std::uint64_t asked = 0;
  };
  void run(std::unique_ptr<Engine> engine, std::vector<Listening> listening, Generation first);
  static void obey(WorkerLoop& loop, Command& command);
  void command(Command::Kind kind);

  const std::uint16_t index_;
  ProcessLimits& limits_;
  Inbox<News>& news_;
  Inbox<EventPtr> results_;
  Inbox<Command> commands_;
  Counters& counters_;
  std::thread thread_;
};

}  // namespace sluice::proxy
