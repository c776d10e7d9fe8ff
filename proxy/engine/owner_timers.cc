// Timers on their owner's thread: they run at the beginning of a burst, each at most once, and only as many as leave room
// for requests; the others have their turn in the bursts behind it. Their wake-up is the end of the owner's own wait.
#include "proxy/engine/owner.h"
#include "proxy/log.h"

namespace sluice::proxy {
namespace {
constexpr int kRetryMs = 1;   // when a worker's inbox had no room
constexpr std::uint64_t kSayMs = 60'000;   // how often the log hears that a timer goes on failing
}  // namespace

bool Owner::timers_want() const {
  // Not of a store that has failed or is about to close.
  if (home_.finish.load() || home_.released.load() || home_.environment.failed()) return false;
  return burst_.timers().wants(home_.environment.clock_seen(home_.core->wall_ms()));
}

int Owner::wait_ms() const {
  if (!addressed_.empty()) return kRetryMs;
  if (home_.finish.load() || home_.released.load() || home_.environment.failed()) return -1;
  return burst_.timers().wait_ms(home_.core->wall_ms());
}

void Owner::run_timers() {
  Timers& timers = burst_.timers();
  // Where the burst before had no more room: else the first ones, due again, could keep the last ones from running.
  if (timer_at_ >= timers.size()) timer_at_ = 0;
  for (std::size_t left = timers.size(); left > 0; --left) {
    if (timers.due(timer_at_, burst_.now_ms())) {
      if (!burst_.takes_timer()) break;
      run_timer(timer_at_);
    }
    timer_at_ = timer_at_ + 1 == timers.size() ? 0 : timer_at_ + 1;
  }
  if (!has_asked_timer_.load(std::memory_order_acquire)) return;
  std::string asked;
  {
    const std::lock_guard<std::mutex> hold(mutex_);
    asked = asked_timer_;
  }
  asked_outcome_ = "the module has no timer `" + asked + "`";
  for (std::size_t i = 0; i < timers.size(); ++i)
    if (timers[i].name() == asked) asked_outcome_ = run_timer(i);
}

std::string Owner::run_timer(std::size_t i) {
  std::string why = burst_.run_timer(i);
  Timers::Timer& timer = burst_.timers()[i];
  if (why.empty()) {
    timer.failures = 0;
    return why;
  }
  ++timer.failures;
  Log* const log = home_.core->options.log;
  if (log == nullptr || (timer.failures > 1 && burst_.now_ms() < timer.said_ms + kSayMs)) return why;
  timer.said_ms = burst_.now_ms();
  std::string line = "store `" + home_.environment.name() + "`: timer `" + std::string(timer.name()) + "` failed: " + why;
  if (timer.failures > 1) line += " (" + std::to_string(timer.failures) + " times in a row)";
  log->warn(line);
  return why;
}

Result<void, std::string> Owner::run_timer(std::string_view name) {
  std::unique_lock<std::mutex> hold(mutex_);
  asked_timer_ = name;
  asked_answer_.reset();
  has_asked_timer_.store(true, std::memory_order_release);
  ring();
  timer_heard_.wait(hold, [this] { return asked_answer_.has_value() || ended_.load(); });
  if (!asked_answer_) return std::string("the store has ended");
  if (!asked_answer_->empty()) return *asked_answer_;
  return {};
}

// After its burst.
void Owner::answer_timer() {
  const std::lock_guard<std::mutex> hold(mutex_);
  asked_answer_ = asked_outcome_.value_or("the store cannot be read, or is closed");
  asked_outcome_.reset();
  has_asked_timer_.store(false, std::memory_order_relaxed);
  timer_heard_.notify_one();
}

}  // namespace sluice::proxy
