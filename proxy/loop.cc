#include "proxy/loop.h"

#include <ctime>

#include "vm/base/check.h"

namespace sluice::proxy {
namespace {
std::uint64_t read_clock(clockid_t id, std::uint64_t per_second) {
  timespec t{};
  clock_gettime(id, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * per_second +
         static_cast<std::uint64_t>(t.tv_nsec) / (1'000'000'000u / per_second);
}

BasePtr make_base() {
  const Handle<event_config, event_config_free> config(event_config_new());
  SLUICE_CHECK(config);
  // One thread, no locks; what the environment says about backends is not for a server.
  event_config_set_flag(config.get(), EVENT_BASE_FLAG_NOLOCK | EVENT_BASE_FLAG_IGNORE_ENV);
  return BasePtr(event_base_new_with_config(config.get()));
}
}  // namespace

std::uint64_t Clock::monotonic_us() { return read_clock(CLOCK_MONOTONIC, 1'000'000); }
std::uint64_t Clock::wall_ms() { return read_clock(CLOCK_REALTIME_COARSE, 1000); }

Loop::Loop() : base_(make_base()) {
  SLUICE_CHECK(base_);
  event_assign(&timer_, base_.get(), -1, 0, on_timer, this);
}

Loop::~Loop() { event_del(&timer_); }

void Loop::turn(Wait wait) {
  const bool look = wait == Wait::look || poked_;
  poked_ = false;
  event_base_loop(base_.get(), look ? EVLOOP_ONCE | EVLOOP_NONBLOCK : EVLOOP_ONCE);
}

void Loop::wake_in(std::uint64_t delay_us) {
  const timeval tv{static_cast<time_t>(delay_us / 1'000'000), static_cast<suseconds_t>(delay_us % 1'000'000)};
  event_add(&timer_, &tv);
  will_wake_ = true;
}

void FdEvent::watch(Loop& loop, int fd, short what, Callback callback, void* owner) {
  if (what == watched_) return;
  if (watched_) event_del(&event_);
  watched_ = what;
  if (!what) return;
  event_assign(&event_, loop.base(), fd, static_cast<short>(what | EV_PERSIST), callback, owner);
  SLUICE_CHECK(event_add(&event_, nullptr) == 0);
}

void FdEvent::stop() {
  if (watched_) event_del(&event_);
  watched_ = 0;
}

}  // namespace sluice::proxy
