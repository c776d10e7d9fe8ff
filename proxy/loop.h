// libevent as one worker uses it: descriptors, one timer, and turns that end where the worker says.
#pragma once
#include <event2/event.h>
#include <event2/event_struct.h>

#include <cstdint>

#include "vm/base/handle.h"

namespace sluice::proxy {

using BasePtr = Handle<event_base, event_base_free>;

// Time as a worker sees it; tests bring their own.
// Thread: any.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual std::uint64_t monotonic_us();
  virtual std::uint64_t wall_ms();
};

// Thread: worker.
class Loop {
 public:
  Loop();
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // Waits until something is ready (or not at all) and runs the callbacks of all that is.
  enum class Wait : std::uint8_t { block, look };
  void turn(Wait wait);
  // The next turn does not wait.
  void poke() { poked_ = true; }
  // A turn ends in `delay_us`, or some milliseconds before: libevent's clock is a coarse one. Replaces the last one.
  void wake_in(std::uint64_t delay_us);
  // False once that turn has ended.
  bool will_wake() const { return will_wake_; }

  event_base* base() const { return base_.get(); }

 private:
  static void on_timer(evutil_socket_t, short, void* self) { static_cast<Loop*>(self)->will_wake_ = false; }
  BasePtr base_;
  event timer_{};
  bool poked_ = false, will_wake_ = false;
};

// A descriptor in a loop, level-triggered. Lives inside its owner: no allocation. Thread: worker.
class FdEvent {
 public:
  using Callback = void (*)(evutil_socket_t fd, short what, void* owner);
  FdEvent() = default;
  ~FdEvent() { stop(); }
  FdEvent(const FdEvent&) = delete;
  FdEvent& operator=(const FdEvent&) = delete;

  // what: EV_READ, EV_WRITE. Costs a system call only when something changes.
  void watch(Loop& loop, int fd, short what, Callback callback, void* owner);
  void stop();
  short watched() const { return watched_; }

 private:
  event event_{};
  short watched_ = 0;
};

}  // namespace sluice::proxy
