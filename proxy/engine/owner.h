// The thread of one shard: drains its inbox, applies bursts, has them committed, and only then lets the answers leave.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "proxy/engine/burst.h"
#include "proxy/engine/committer.h"
#include "proxy/engine/core.h"
#include "proxy/engine/environment.h"
#include "proxy/inbox.h"

namespace sluice::proxy {

inline constexpr std::size_t kInboxEvents = 65'536;

struct OwnerCounters {
  std::atomic<std::uint64_t> bursts{0}, events{0}, faults{0};
};

struct Home;

// Thread: made and joined by control; workers push to inbox(); the rest is its own thread.
class Owner final : private CommitListener {
 public:
  Owner(Home& home, std::uint32_t shard, ServedPtr served);
  ~Owner() override;

  // Errors: the states could not be read. Before start().
  Result<void> load();
  void start();
  void join();
  bool ended() const { return ended_.load(std::memory_order_acquire); }

  Inbox<EventPtr>& inbox() { return inbox_; }
  void ring() const { inbox_.wake().ring(); }
  // Serves `served` from its next burst on. Thread: control.
  void swap(ServedPtr served);
  // Has the timer run in the next burst and waits until what it did is durable. Thread: control.
  // Errors: why not, as the end of a sentence.
  Result<void, std::string> run_timer(std::string_view name);
  const OwnerCounters& counters() const { return counters_; }

 private:
  void run();
  void take_orders();
  void drain();
  // Runs the timers that are due, applies and answers what waits, up to where the burst must end.
  void burst();
  Result<void> commit();
  void fail_burst(std::size_t count, Errc error);
  void refuse_all(Errc error);
  void send(EventPtr event);
  void deliver();
  bool reread();
  std::uint64_t seq_stored() const;

  // owner_timers.cc
  bool timers_want() const;
  int wait_ms() const;                 // how long to sleep when nothing is left to do
  void run_timers();
  std::string run_timer(std::size_t i);
  void answer_timer();

  void durable() override;
  void failed(const Error& error) override;

  Home& home_;
  Inbox<EventPtr> inbox_;
  PinnedReader reader_;
  Burst burst_;
  std::vector<EventPtr> pending_;      // drained; from pending_at_ on they wait
  std::size_t pending_at_ = 0;
  std::vector<std::vector<EventPtr>> leaving_;   // answered, by worker
  std::vector<std::uint16_t> addressed_;         // workers that leaving_ has something for
  std::size_t timer_at_ = 0;           // whose turn it is first
  bool reread_ = false;                // the states are not what is stored

  std::mutex mutex_;
  std::condition_variable heard_;
  std::optional<Error> verdict_;       // of the commit under way, code none: durable. Guarded by mutex_
  ServedPtr next_;                     // guarded by mutex_
  std::atomic<bool> has_next_{false};

  std::optional<std::string> asked_outcome_;  // of the timer that was asked for; empty: it ran
  std::condition_variable timer_heard_;
  std::string asked_timer_;            // guarded by mutex_
  std::optional<std::string> asked_answer_;   // guarded by mutex_
  std::atomic<bool> has_asked_timer_{false};

  std::atomic<bool> ended_{false};
  OwnerCounters counters_;
  std::thread thread_;
};

// Everything that belongs to one open store. Life: held by control until its owners are joined, and by whoever holds its
// EnvironmentPtr.
struct Home {
  Home(std::shared_ptr<Core> the_core, std::string name, std::unique_ptr<store::Store> store)
      : core(std::move(the_core)), environment(std::move(name), std::move(store)) {}

  const std::shared_ptr<Core> core;
  Environment environment;
  std::string folder;                      // in its one spelling
  std::unique_ptr<Committer> committer;
  std::vector<std::unique_ptr<Owner>> owners;
  std::atomic<std::uint32_t> running{0};   // owners
  std::atomic<bool> released{false};       // nobody refers to the store any more
  std::atomic<bool> finish{false};         // the process ends: apply what is enqueued, then end

  // Tells the owners. Thread: any.
  void release();
  void end();
  void ring() const;
};
using HomePtr = std::shared_ptr<Home>;

}  // namespace sluice::proxy
