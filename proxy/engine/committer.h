// Who makes finished batches durable: the owner itself, or one thread for all shards of an environment.
//
// An owner submits what a burst has staged and hears once: durable or failed. Answers hang on that and on nothing else.
// Source: design store.md, decision 6 and 2.4.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "proxy/engine/environment.h"
#include "store/batch.h"
#include "vm/base/result.h"
#include "vm/image.h"

namespace sluice::proxy {

// What one burst has staged. Life: the owner's, until it hears.
struct Staged {
  store::Batch* batch = nullptr;
  std::uint64_t changed = 0;          // events that changed something
  std::uint64_t now_ms = 0;           // the burst's reading of the clock
};

// Thread: whichever the committer runs on.
class CommitListener {
 public:
  virtual ~CommitListener() = default;
  virtual void durable() = 0;
  // full, storage: nothing was stored, go on; durability_unknown, stopped: the store serves no more.
  virtual void failed(const Error& error) = 0;
};

class Committer {
 public:
  virtual ~Committer() = default;
  // Thread: owners. The listener hears once, perhaps before this returns.
  virtual void submit(const Staged& staged, CommitListener& listener) = 0;
  // Ends its thread, when it has one. No owner submits any more.
  virtual void stop() {}
  std::uint64_t commits() const { return commits_.load(std::memory_order_relaxed); }
  // The sequence as stored. Thread: the one that commits; before the owners start, any.
  const vm::Clock& clock() const { return clock_; }

 protected:
  Committer(Environment& environment, const vm::Clock& clock) : environment_(environment), clock_(clock) {}
  // One store commit of all of them, with the clock moved on.
  Result<void> commit(const std::vector<const store::Batch*>& batches, std::uint64_t changed, std::uint64_t now_ms);

 private:
  Environment& environment_;
  vm::Clock clock_;                   // as the last commit stored it
  store::Batch clock_batch_;
  std::vector<const store::Batch*> all_;
  std::atomic<std::uint64_t> commits_{0};
};

// A single shard: commits on the owner's thread.
class OwnCommitter final : public Committer {
 public:
  OwnCommitter(Environment& environment, const vm::Clock& clock) : Committer(environment, clock) {}
  void submit(const Staged& staged, CommitListener& listener) override;

 private:
  std::vector<const store::Batch*> one_;
};

// Several shards: what waits when a commit ends goes into the next one together.
class GroupCommitter final : public Committer {
 public:
  GroupCommitter(Environment& environment, const vm::Clock& clock);
  ~GroupCommitter() override;
  void submit(const Staged& staged, CommitListener& listener) override;
  void stop() override;

 private:
  struct Waiting {
    Staged staged;
    CommitListener* listener = nullptr;
  };
  void run();

  std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<Waiting> waiting_;      // guarded by mutex_
  bool stop_ = false;                 // guarded by mutex_
  std::thread thread_;
};

}  // namespace sluice::proxy
