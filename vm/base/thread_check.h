// Aborts when a struct is used by a thread that does not own it; compiled away unless `thread_checks` is on.
#pragma once
#include "vm/base/check.h"
#if defined(SLUICE_THREAD_CHECKS)
#include <atomic>
#include <thread>
#endif

namespace sluice {

// Thread: bound to the first thread that calls check(), or to the caller of adopt().
class ThreadCheck {
 public:
#if defined(SLUICE_THREAD_CHECKS)
  void adopt() { home_.store(std::this_thread::get_id()); }
  void check() const {
    std::thread::id none{};
    const std::thread::id me = std::this_thread::get_id();
    if (!home_.compare_exchange_strong(none, me)) SLUICE_CHECK(none == me);
  }
  // The struct goes to another thread: the next check() binds it anew.
  void release() { home_.store(std::thread::id{}); }

 private:
  mutable std::atomic<std::thread::id> home_{};
#else
  void adopt() {}
  void check() const {}
  void release() {}
#endif
};

}  // namespace sluice
