// The bytes of request and answer payloads that the whole process may hold (`--budget`).
#pragma once
#include <atomic>
#include <cstdint>

namespace sluice::proxy {

// Thread: any.
class Budget {
 public:
  explicit Budget(std::uint64_t limit_bytes) : limit_(limit_bytes) {}
  // False when that would go beyond the limit; nothing is taken then.
  bool take(std::uint64_t bytes) {
    std::uint64_t held = held_.load(std::memory_order_relaxed);
    do {
      if (bytes > limit_.load(std::memory_order_relaxed) || held > limit_.load(std::memory_order_relaxed) - bytes)
        return false;
    } while (!held_.compare_exchange_weak(held, held + bytes, std::memory_order_relaxed));
    return true;
  }
  void give_back(std::uint64_t bytes) { held_.fetch_sub(bytes, std::memory_order_relaxed); }
  std::uint64_t held() const { return held_.load(std::memory_order_relaxed); }
  std::uint64_t limit() const { return limit_.load(std::memory_order_relaxed); }
  void set_limit(std::uint64_t bytes) { limit_.store(bytes, std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> limit_;
  std::atomic<std::uint64_t> held_{0};
};

}  // namespace sluice::proxy
