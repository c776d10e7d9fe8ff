#include "proxy/engine/owner.h"

#include <utility>

#include "proxy/engine/answers.h"

namespace sluice::proxy {
namespace {
// Beyond so many waiting events the inbox is left alone: it is what bounds the memory of a store that falls behind.
constexpr std::size_t kPendingMax = kBurstEvents;
constexpr std::uint64_t kHoldMs = 1'000;   // until timers try again after the store could not read or save
}  // namespace

void Home::ring() const {
  for (const auto& owner : owners) owner->ring();
}
void Home::release() {
  released.store(true);
  ring();
}
void Home::end() {
  finish.store(true);
  ring();
}

Owner::Owner(Home& home, std::uint32_t shard, ServedPtr served)
    : home_(home),
      inbox_("owner." + home.environment.name() + "." + std::to_string(shard) + ".events", kInboxEvents),
      reader_(home.environment),
      burst_(home.environment, std::move(served)) {
  burst_.timers().run_by_themselves(home.core->options.timers);
}

Owner::~Owner() { SLUICE_CHECK(!thread_.joinable()); }

Result<void> Owner::load() {
  const Result<const store::Snapshot*> snapshot = reader_.renew();
  if (!snapshot) return snapshot.error();
  Result<void> loaded = burst_.load(**snapshot, seq_stored(), home_.environment.clock(home_.core->wall_ms()));
  reader_.rest();
  return loaded;
}

// Only a module of a single shard can read it; with several, the clock is the committer's thread's.
std::uint64_t Owner::seq_stored() const { return home_.owners.size() > 1 ? 0 : home_.committer->clock().seq; }

void Owner::start() {
  home_.running.fetch_add(1);
  thread_ = std::thread([this] { run(); });
}

void Owner::join() {
  if (thread_.joinable()) thread_.join();
}

void Owner::swap(ServedPtr served) {
  {
    const std::lock_guard<std::mutex> hold(mutex_);
    next_ = std::move(served);
    has_next_.store(true, std::memory_order_release);
  }
  ring();
}

void Owner::take_orders() {
  if (!has_next_.load(std::memory_order_acquire)) return;
  ServedPtr next;
  {
    const std::lock_guard<std::mutex> hold(mutex_);
    next = std::move(next_);
    next_.reset();
    has_next_.store(false, std::memory_order_relaxed);
  }
  burst_.swap(std::move(next), home_.environment.clock(home_.core->wall_ms()));
}

void Owner::drain() {
  // What has been answered is cut off also when the owner never catches up, as with a key that everybody writes: its
  // bursts end early, so something waits at each look, and the list would only grow.
  if (pending_at_ == pending_.size() || pending_at_ >= kPendingMax) {
    pending_.erase(pending_.begin(), pending_.begin() + static_cast<std::ptrdiff_t>(pending_at_));
    pending_at_ = 0;
  }
  if (pending_.size() - pending_at_ < kPendingMax)
    inbox_.drain([this](EventPtr&& event) { pending_.push_back(std::move(event)); });
}

void Owner::run() {
  Environment& environment = home_.environment;
  for (;;) {
    // The end is looked for before the inbox: what was enqueued before it was asked for is then seen by the drain.
    const bool finish = home_.finish.load();
    const bool released = home_.released.load();
    drain();
    // After the drain: an event that was resolved against a newer module finds it here.
    take_orders();
    const bool asked = has_asked_timer_.load(std::memory_order_acquire);
    if (pending_at_ < pending_.size() || asked || timers_want()) {
      if (environment.failed()) refuse_all(Errc::stopped);
      else burst();
      if (asked || asked_outcome_) answer_timer();
      deliver();
      continue;
    }
    reader_.rest();
    deliver();
    if (addressed_.empty()) {
      if (finish) break;
      if (released) environment.start_closing();
    }
    const bool closed = environment.closing() && environment.try_close();
    if (released && closed && addressed_.empty()) {
      home_.ring();   // for the other shards' owners, who wait for the same
      break;
    }
    inbox_.wake().wait(wait_ms());
  }
  if (home_.running.fetch_sub(1) == 1) {
    // The last owner: nothing is submitted any more.
    home_.committer->stop();
    environment.start_closing();
    environment.set_bell(nullptr);
    environment.try_close();
  }
  const std::lock_guard<std::mutex> hold(mutex_);
  ended_.store(true, std::memory_order_release);
  timer_heard_.notify_one();
}

void Owner::burst() {
  if (reread_ && !reread()) return refuse_all(Errc::stopped);
  const Result<const store::Snapshot*> snapshot = reader_.renew();
  const std::uint64_t now_ms = home_.environment.clock(home_.core->wall_ms());
  if (!snapshot) {
    burst_.timers().hold_until(now_ms + kHoldMs);
    return fail_burst(pending_.size() - pending_at_, snapshot.error().code);
  }
  burst_.begin(**snapshot, now_ms);
  run_timers();
  std::size_t end = pending_at_;
  while (end < pending_.size() && burst_.takes(*pending_[end])) burst_.apply(*pending_[end++]);
  const std::size_t count = end - pending_at_;
  add(counters_.bursts, 1);
  add(counters_.events, count);
  add(counters_.faults, burst_.faults());

  if (burst_.changed()) {
    if (const Result<void> done = commit(); !done) {
      reread_ = true;
      const bool lost = burst_.events_changed() > 0;
      burst_.fail();
      burst_.timers().hold_until(now_ms + kHoldMs);
      const Errc error = done.error().code;
      if (asked_outcome_) asked_outcome_->assign("what it did could not be saved: ").append(name(error));
      if (error != Errc::durability_unknown && error != Errc::stopped) {
        if (lost) return fail_burst(count, error);
        // It was the module's own that could not be saved: what was only read holds.
        for (std::size_t i = 0; i < count; ++i) send(std::move(pending_[pending_at_++]));
        return;
      }
      home_.environment.set_failed();
      // What waits behind it shares its fate: it was enqueued in the belief that what is before it holds.
      drain();
      refuse_all(error);
      reader_.rest();
      home_.environment.start_closing();
      return home_.ring();
    }
    burst_.committed();
    if (burst_.lends_after()) {
      if (const Result<const store::Snapshot*> newest = reader_.renew()) burst_.lend(**newest);
      else burst_.lend_nothing(newest.error().code);
    }
  }
  burst_.end();
  // LMDB gives nothing any more in a transaction that has met a broken page.
  if (burst_.unread()) reader_.rest();
  for (std::size_t i = 0; i < count; ++i) send(std::move(pending_[pending_at_++]));
}

bool Owner::reread() {
  const Result<const store::Snapshot*> snapshot = reader_.renew();
  const std::uint64_t now_ms = home_.environment.clock(home_.core->wall_ms());
  if (!snapshot || !burst_.load(**snapshot, seq_stored(), now_ms)) {
    // What the store holds cannot be read: nothing may be answered from memory that does not agree with it.
    home_.environment.set_failed();
    reader_.rest();
    home_.environment.start_closing();
    home_.ring();
    return false;
  }
  reread_ = false;
  return true;
}

Result<void> Owner::commit() {
  Staged staged;
  staged.batch = &burst_.stage();
  staged.changed = burst_.events_changed();
  staged.now_ms = burst_.now_ms();
  {
    const std::lock_guard<std::mutex> hold(mutex_);
    verdict_.reset();
  }
  home_.committer->submit(staged, *this);
  std::unique_lock<std::mutex> hold(mutex_);
  heard_.wait(hold, [this] { return verdict_.has_value(); });
  if (verdict_->code == Errc::none) return {};
  return *verdict_;
}

void Owner::durable() {
  const std::lock_guard<std::mutex> hold(mutex_);
  verdict_ = Error{};
  heard_.notify_one();
}

void Owner::failed(const Error& error) {
  const std::lock_guard<std::mutex> hold(mutex_);
  verdict_ = error;
  heard_.notify_one();
}

void Owner::fail_burst(std::size_t count, Errc error) {
  for (std::size_t i = 0; i < count; ++i) {
    EventPtr event = std::move(pending_[pending_at_++]);
    event->answer.reset();
    answer_store_error(event->answer, error);
    send(std::move(event));
  }
}

void Owner::refuse_all(Errc error) { fail_burst(pending_.size() - pending_at_, error); }

void Owner::send(EventPtr event) {
  const std::uint16_t worker = event->worker;
  if (worker >= leaving_.size()) leaving_.resize(worker + std::size_t{1});
  if (leaving_[worker].empty()) addressed_.push_back(worker);
  leaving_[worker].push_back(std::move(event));
}

void Owner::deliver() {
  std::size_t still = 0;
  for (const std::uint16_t worker : addressed_) {
    Inbox<EventPtr>* results = home_.core->workers[worker].results.load(std::memory_order_acquire);
    SLUICE_CHECK(results != nullptr);
    results->push_all(leaving_[worker]);
    if (!leaving_[worker].empty()) addressed_[still++] = worker;
  }
  addressed_.resize(still);
}

}  // namespace sluice::proxy
