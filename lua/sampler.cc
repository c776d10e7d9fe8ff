#include "lua/sampler.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>

#include "lua/state.h"

namespace sluice::lua {
namespace {

constexpr std::string_view kOutside = "(outside of Lua)", kLeft = "(C functions that a route called in its return)";
// A sample costs about 2 us: so many in a second are at most a percent, and beyond them each stands for twice as much.
constexpr std::uint32_t kMostSamples = 4096;
constexpr std::uint64_t kOutsideBytes = 64 * 1024;

std::uint64_t now_ms() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1000 + static_cast<std::uint64_t>(t.tv_nsec) / 1'000'000;
}

void on_hook(lua_State* L, lua_Debug* at) {
  if (Sampler* sampler = Vm::sampler_of(L)) sampler->take(L, at);
}

}  // namespace

Sampler::Sampler(Watch& watch, std::shared_ptr<proxy::RouteRecord> record, std::uint64_t order)
    : watch_(watch), record_(std::move(record)), order_(order), kind_(proxy::RouteProfile::kind_of(order)),
      every_(proxy::RouteProfile::every_of(order)), since_ms_(now_ms()) {
  next_due();
  watch_.ticks.store(0, std::memory_order_relaxed);
  watch_.idle_ticks.store(0, std::memory_order_relaxed);
  if (kind_ != Kind::time) return;
  watch_.sample.store(on_hook, std::memory_order_relaxed);
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = Watchdog::kSignal;
  event.sigev_value.sival_ptr = &watch_;
  event._sigev_un._tid = gettid();
  itimerspec each{};
  each.it_interval.tv_sec = static_cast<time_t>(every_ / 1'000'000);
  each.it_interval.tv_nsec = static_cast<long>(every_ % 1'000'000 * 1000);
  each.it_value = each.it_interval;
  // Of this thread's time on a processor: a thread that waits is not woken.
  timed_ = timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer_) == 0;
  if (timed_) timer_settime(timer_, 0, &each, nullptr);
}

Sampler::~Sampler() {
  if (timed_) timer_delete(timer_);
  watch_.sample.store(nullptr, std::memory_order_relaxed);
  add_outside();
}

// Around `every_`, by chance: what allocates in a rhythm must not always meet the same function.
void Sampler::next_due() {
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  due_ = every_ < 2 ? 1 : every_ / 2 + random_ % every_;
}

void Sampler::allocated(std::uint64_t bytes, bool in_lua) {
  if (kind_ != Kind::memory) return;
  if (!in_lua) {
    outside_bytes_ += bytes;
    ++outside_count_;
    if (outside_bytes_ >= kOutsideBytes) add_outside();
    return;
  }
  bytes_ += bytes;
  ++count_;
  if (bytes_ >= due_) ask_for_sample(watch_, on_hook);
}

void Sampler::take(lua_State* L, lua_Debug* at) {
  sample_taken(watch_, L);
  if (lua_getinfo(L, "nS", at) == 0) return call_over();
  place_ = at->short_src;
  place_ += ':';
  place_ += std::to_string(at->linedefined);
  const bool file = at->what != nullptr && std::string_view(at->what) == "main";
  const std::string_view name = file ? "the file itself" : at->name ? std::string_view(at->name) : std::string_view();
  if (kind_ == Kind::memory) {
    add(name, place_, bytes_, count_);
    bytes_ = count_ = 0;
    next_due();
    slow_down();
  } else if (const std::uint64_t n = watch_.ticks.exchange(0, std::memory_order_relaxed); n != 0) {
    add(name, place_, n * every_, n);
  }
}

void Sampler::call_over() {
  if (kind_ == Kind::memory) {
    add({}, kLeft, bytes_, count_);
    bytes_ = count_ = 0;
    next_due();
    slow_down();
  } else if (const std::uint64_t n = watch_.ticks.exchange(0, std::memory_order_relaxed); n != 0) {
    add({}, kLeft, n * every_, n);
  }
}

void Sampler::slow_down() {
  if (++samples_ < kMostSamples) return;
  const std::uint64_t now = now_ms();
  if (now - since_ms_ < 1000) every_ = std::min<std::uint64_t>(every_ * 2, proxy::RouteProfile::kMostBytes);
  samples_ = 0;
  since_ms_ = now;
}

void Sampler::add(std::string_view function, std::string_view place, std::uint64_t weight, std::uint64_t count) {
  record_->profile.add(order_, function, place, weight, count);
  if (kind_ == Kind::time) add_outside();
}

void Sampler::add_outside() {
  std::uint64_t weight = outside_bytes_, count = outside_count_;
  if (kind_ == Kind::time) {
    count = watch_.idle_ticks.exchange(0, std::memory_order_relaxed);
    weight = count * every_;
  }
  outside_bytes_ = outside_count_ = 0;
  if (count != 0) record_->profile.add(order_, {}, kOutside, weight, count);
}

}  // namespace sluice::lua
