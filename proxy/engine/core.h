// What workers and owners share: where each worker's answers go, and counters that are summed when read.
#pragma once
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>

#include "proxy/engine/options.h"
#include "proxy/event.h"
#include "proxy/inbox.h"

namespace sluice::proxy {

inline constexpr std::size_t kMostWorkers = 1024;

// Thread: `results` and `turns` are written by control before the worker starts, the counters then by the worker alone.
struct alignas(64) WorkerSlot {
  static constexpr std::uint64_t kEnded = ~std::uint64_t{0};   // of `turns`: nobody looks at anything
  std::atomic<Inbox<EventPtr>*> results{nullptr};
  std::atomic<std::uint64_t> turns{0};        // of its loop: what it looked at before its last one it has let go of
  std::atomic<std::uint64_t> evaluated{0};
};

// Shape: one more than what is registered is never looked at.
struct Core {
  EngineOptions options;
  std::array<WorkerSlot, kMostWorkers> workers;

  std::uint64_t wall_ms() const {
    if (options.wall_ms != nullptr) return options.wall_ms(options.context);
    using namespace std::chrono;
    return static_cast<std::uint64_t>(duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count());
  }
};

// For a counter that one thread writes and others read.
inline void add(std::atomic<std::uint64_t>& counter, std::uint64_t n) {
  counter.store(counter.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
}

}  // namespace sluice::proxy
