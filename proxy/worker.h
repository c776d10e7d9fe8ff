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
  std::vector<std::shared_ptr<const Tls>> tls{};   // by listener, in their order; null: a plain one
};

// What a worker tells control.
struct News {
  enum class Kind : std::uint8_t {
    installed,          // requests that arrive from here on use `generation.number`
    retired,            // `generation` is nobody's any more: destroy it
    drained,            // no connection, no request, no event left
    answered,           // a cron's event: `cron` says how
    ended,              // the loop is over: join() returns at once. `retired` came before for each generation
  };
  Kind kind = Kind::installed;
  std::uint16_t worker = 0;
  Generation generation;        // of `installed` the number alone
  CronAnswer cron{};
};

class WorkerLoop;

// Thread: control, but counters() (any).
class Worker {
 public:
  // `limits` and `news` outlive the worker.
  Worker(std::uint16_t index, ProcessLimits& limits, Inbox<News>& news);
  ~Worker();                    // ends and joins when that was not done
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Where owners send answers. Outstanding events are bounded so that it never refuses one.
  Inbox<EventPtr>& results() { return results_; }

  // Takes the listening sockets over (proxy/listener.h) and begins to serve. `tags` are the listeners'; those without have none.
  void start(std::unique_ptr<Engine> engine, std::vector<int> listeners, Generation first, std::vector<std::string> tags = {});

  // Switches between two turns of the loop. Errors: Errc::full when 1,000 commands wait, with `next` untouched.
  Result<void> install(Generation&& next);
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
    enum class Kind : std::uint8_t { install, drain, end, post };
    Kind kind = Kind::install;
    Generation generation{};
    std::unique_ptr<Posted> posted{};
  };
  void run(std::unique_ptr<Engine> engine, std::vector<int> listeners, Generation first, std::vector<std::string> tags);
  void command(Command::Kind kind);

  const std::uint16_t index_;
  ProcessLimits& limits_;
  Inbox<News>& news_;
  Inbox<EventPtr> results_;
  Inbox<Command> commands_;
  Counters counters_;
  std::thread thread_;
};

}  // namespace sluice::proxy
