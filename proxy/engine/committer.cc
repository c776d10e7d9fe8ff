#include "proxy/engine/committer.h"

#include <algorithm>

namespace sluice::proxy {
namespace {
// What one transaction takes together; LMDB holds 131,071 dirty pages, and a batch alone may have 10,000 records.
constexpr std::size_t kRecordsMax = 20'000;
constexpr std::size_t kBytesMax = std::size_t{32} << 20;
}  // namespace

Result<void> Committer::commit(const std::vector<const store::Batch*>& batches, std::uint64_t changed,
                               std::uint64_t now_ms) {
  vm::Clock next = clock_;
  next.seq += changed;
  next.now_ms = std::max(next.now_ms, now_ms);
  clock_batch_.clear();
  clock_batch_.put(vm::kClockKey, vm::encode_clock(next));
  all_.assign(batches.begin(), batches.end());
  all_.push_back(&clock_batch_);
  Result<void> done = environment_.store().commit(all_);
  if (!done) return done;
  clock_ = next;
  commits_.store(commits_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  return done;
}

void OwnCommitter::submit(const Staged& staged, CommitListener& listener) {
  one_.assign(1, staged.batch);
  if (const Result<void> done = commit(one_, staged.changed, staged.now_ms)) listener.durable();
  else listener.failed(done.error());
}

GroupCommitter::GroupCommitter(Environment& environment, const vm::Clock& clock)
    : Committer(environment, clock), thread_([this] { run(); }) {}

GroupCommitter::~GroupCommitter() { stop(); }

void GroupCommitter::submit(const Staged& staged, CommitListener& listener) {
  const std::lock_guard<std::mutex> hold(mutex_);
  waiting_.push_back({staged, &listener});
  arrived_.notify_one();
}

void GroupCommitter::stop() {
  {
    const std::lock_guard<std::mutex> hold(mutex_);
    stop_ = true;
    arrived_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
}

void GroupCommitter::run() {
  std::vector<Waiting> taken;
  std::vector<const store::Batch*> batches;
  for (;;) {
    {
      std::unique_lock<std::mutex> hold(mutex_);
      arrived_.wait(hold, [this] { return stop_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      std::size_t records = 0, bytes = 0, n = 0;
      while (n < waiting_.size() && (n == 0 || (records < kRecordsMax && bytes < kBytesMax))) {
        records += waiting_[n].staged.batch->records();
        bytes += waiting_[n].staged.batch->bytes();
        taken.push_back(waiting_[n++]);
      }
      waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(n));
    }
    std::uint64_t changed = 0, now_ms = 0;
    batches.clear();
    for (const Waiting& w : taken) {
      batches.push_back(w.staged.batch);
      changed += w.staged.changed;
      now_ms = std::max(now_ms, w.staged.now_ms);
    }
    const Result<void> done = commit(batches, changed, now_ms);
    for (const Waiting& w : taken) {
      if (done) w.listener->durable();
      else w.listener->failed(done.error());
    }
    taken.clear();
  }
}

}  // namespace sluice::proxy
