// Many timers that seldom fire: start and stop in constant time, one tick per millisecond.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "proxy/route.h"

namespace sluice::proxy {

// Two wheels: 4,096 slots of 1 ms, 256 slots of 4,096 ms; what is further away is looked at again when it comes near.
// Thread: worker.
class TimerWheel {
 public:
  using Fire = void (*)(void* target, std::uint32_t tag);
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};

  explicit TimerWheel(std::uint64_t now_ms);

  // Fires at the first advance() to `at_ms` or later; at_ms 0: at the next advance(), in the order started. `owner` is for stop_all_of() and may be null.
  TimerId start(std::uint64_t at_ms, void* target, std::uint32_t tag, Fire fire, const void* owner = nullptr);
  // Also good for one that has fired. Leaves `id` empty.
  void stop(TimerId& id);
  void stop_all_of(const void* owner);
  // Fires what is due, each once, and takes its slot back before the call, so that `fire` may start and stop others.
  void advance(std::uint64_t now_ms);
  // When to look again, in ms; kNever: no timer. Never later than the first due one, and seldom earlier.
  std::uint64_t next_ms() const;
  bool has_immediate() const { return lists_[kImmediate] != kNone; }
  std::size_t size() const { return count_; }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  static constexpr std::uint32_t kNear = 4096, kFar = 256;
  static constexpr std::uint32_t kImmediate = kNear + kFar, kFiring = kImmediate + 1;
  struct Node {
    std::uint64_t at_ms = 0;
    void* target = nullptr;
    Fire fire = nullptr;
    const void* owner = nullptr;
    std::uint32_t tag = 0;
    std::uint32_t generation = 1;
    std::uint32_t previous = kNone, next = kNone;
    std::uint32_t list = kNone;         // kNone: free
  };
  void link(std::uint32_t index);
  void push(std::uint32_t index, std::uint32_t list);
  void fire_all(std::uint32_t list);
  void unlink(std::uint32_t index);
  void release(std::uint32_t index);
  void cascade();

  std::uint64_t now_ms_;
  std::size_t count_ = 0;
  std::uint32_t free_ = kNone;
  std::vector<Node> nodes_;
  std::array<std::uint32_t, kFiring + 1> lists_;
  std::array<std::uint64_t, kNear / 64> near_bits_{};
  std::uint32_t near_count_ = 0;
};

}  // namespace sluice::proxy
