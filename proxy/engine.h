// All that the rest of the proxy knows of stores: a handful of calls. proxy/engine/ implements them over vm and store;
// tests hand workers a fake.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/event.h"
#include "proxy/inbox.h"
#include "vm/base/result.h"

namespace sluice::proxy {

// A store as routes see it. Frozen.
class Store {
 public:
  virtual ~Store() = default;
  virtual std::string_view name() const = 0;
  virtual bool serves_objects() const = 0;
  virtual bool has_remove() const = 0;          // else DELETE on /objects is 405
  virtual std::uint32_t shards() const = 0;
  // For 405 and 404 before anything is built: is there such a view, an input?
  virtual bool has_view(std::string_view name) const = 0;
  virtual bool has_input(std::string_view name) const = 0;
  // Whether POST to that input carries a body (411 without a length); false for unknown names.
  virtual bool input_takes_body(std::string_view name) const = 0;
  // Grows with every commit, before the answers that depend on it leave: what was read at one number is what there is as
  // long as the number stands. 0: not known. Thread: any.
  virtual std::uint64_t changes() const { return 0; }
};
using StorePtr = std::shared_ptr<Store>;

// The stores of one generation of config, sorted by name. Frozen.
struct StoreSet {
  std::vector<StorePtr> stores;
  StorePtr find(std::string_view name) const {
    for (const StorePtr& s : stores)
      if (s->name() == name) return s;
    return nullptr;
  }
};

struct Parameter {
  std::string_view name, value;                 // decoded
};

// A module request in the words of the HTTP contract, before its names are resolved.
// Life: views are the caller's; prepare() copies what it keeps.
struct Call {
  StorePtr store;
  Verb verb = Verb::view;
  std::string_view name;                        // of the view or input, or the object's key
  std::span<const Parameter> query;
  Buffer body;                                  // an empty Buffer: no body, or one of length 0
  Condition condition = Condition::none;
  std::uint64_t revision = 0;
  MoreRevisions more;                           // prepare() copies it; the owner asks Event::matches()
};

// One worker's way to the stores. Thread: that worker.
class Engine {
 public:
  virtual ~Engine() = default;

  // Resolves names, checks the query against what the view or input takes, and fills `event`. False: event.answer says
  // why (no_view, no_input, query, missing_field, body, keyed, invalid, ...) and the event goes nowhere.
  virtual bool prepare(Event& event, const Call& call) = 0;

  // Answers a read here, from what is committed, when that gives the same answer as the owner would; false: enqueue it.
  // The caller sees to it that none of its own writes to that store is unanswered.
  virtual bool evaluate(Event& event) = 0;

  // Hands the event to its owner with the next flush(). The answer comes to the results inbox.
  virtual void enqueue(EventPtr event) = 0;

  // Once per turn of the loop: each owner gets all of this turn's events with one wake-up. Events that an owner had no
  // room for come back at once, answered 503 store_busy, through `refused`.
  virtual void flush(const std::function<void(EventPtr)>& refused) = 0;
};

struct StoreSpec {
  std::string name;
  std::string module_path;                      // .aup or .pmod
  std::string path;                             // of the folder
  std::uint32_t shards = 1;                     // 1..64
  std::uint64_t fuel = 1'000'000;               // per event
  std::uint64_t quota_bytes = 0;                // 0: what the disk has
  std::uint64_t map_bytes = 0;                  // 0: the default
  bool allow_destroy = false;                   // its module may drop what the store has
  std::string place{};                             // "FILE:LINE" of its declaration, for errors; empty when there is none

  // How an error about it begins.
  std::string said() const { return (place.empty() ? "" : place + ": ") + "store `" + name + "`: "; }
};

struct EngineCounters {
  std::uint64_t bursts = 0, burst_events = 0, commits = 0, faults = 0, evaluated = 0;
  std::uint32_t owners = 0;                     // threads
};

// Of one store that is open, all shards together, since it was opened.
struct StoreCounters {
  std::string name;
  std::uint32_t shards = 1;
  std::uint64_t bursts = 0, burst_events = 0, commits = 0, faults = 0;
};

// What reload has made ready and nobody uses yet. Dropping it undoes everything.
class StorePlan {
 public:
  virtual ~StorePlan() = default;
  // The set as it will be: routes are built against it before it is switched to.
  virtual std::shared_ptr<const StoreSet> stores() const = 0;
};

// The control side. Thread: control.
class EngineControl {
 public:
  virtual ~EngineControl() = default;

  // Loads and checks the modules of `specs`, and opens, creates or changes no store (`--check`). The set answers what
  // stores are asked about themselves; routes are built against it, but it takes no events.
  // Errors: one sentence, naming the store; of a module, its diagnostics.
  virtual Result<std::shared_ptr<const StoreSet>, std::string> check(std::span<const StoreSpec> specs) = 0;

  // Opens new stores, loads and checks changed modules, finds removed ones; changes nothing that serves.
  // Errors: one sentence, naming the store.
  virtual Result<std::unique_ptr<StorePlan>, std::string> prepare(std::span<const StoreSpec> specs) = 0;
  // Switches to the plan; cannot fail. Removed stores close when their last event and reference are gone.
  virtual std::shared_ptr<const StoreSet> apply(std::unique_ptr<StorePlan> plan) = 0;

  // Makes worker `index`'s way in, whose answers go to `results`. Before that worker starts; again when one of that number has
  // ended and another is to start.
  virtual std::unique_ptr<Engine> worker(std::uint16_t index, Inbox<EventPtr>& results) = 0;

  // Finishes what was enqueued, answers it, ends the owners, closes the stores. After the workers have enqueued their
  // last event; they must go on draining their results until it returns.
  virtual void stop() = 0;
  // Runs a timer of a store that serves, now, and returns when what it did is durable. For tests of modules.
  // Errors: a sentence; also when the timer failed.
  virtual Result<void, std::string> run_timer(std::string_view store, std::string_view timer) = 0;
  virtual EngineCounters counters() const = 0;   // Thread: any
  // Each store that is open, those that a reload removed and that requests still hold too.
  virtual void each_store(const std::function<void(const StoreCounters&)>& f) const {}
};

class Log;

// What an engine is given.
struct EngineParts {
  Log* log = nullptr;                           // null: it says nothing
  // For tests of modules: stores read their clock here, in ms since 1970, and timers run only by run_timer().
  const std::atomic<std::uint64_t>* test_clock_ms = nullptr;
  bool allow_destroy = false;                   // modules may drop what their stores have
};
std::unique_ptr<EngineControl> make_engine(const EngineParts& parts = {});     // proxy/engine/

}  // namespace sluice::proxy
