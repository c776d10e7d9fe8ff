// Which functions of routes take memory, or time: asked for by control, sampled by the worker that runs them.
#pragma once
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace sluice::proxy {

// Thread: start(), stop() and rows() from any; the rest from the worker whose routes they are.
class RouteProfile {
 public:
  enum class Kind : std::uint8_t { none, memory, time };
  struct Row {
    std::string function, place;   // "handler", "shop.lua:12"; the place is empty where no function of a config ran
    std::uint64_t weight = 0;      // Units: bytes, or microseconds of the processor
    std::uint64_t count = 0;       // of allocations; of time: samples
  };
  // The least and the most that a sample may stand for.
  static constexpr std::uint32_t kLeastBytes = 1, kMostBytes = 1u << 20, kUsualBytes = 4096;
  static constexpr std::uint32_t kLeastUs = 500, kMostUs = 1'000'000, kUsualUs = 1000;

  // What was collected before is forgotten. Units: `every` in bytes or microseconds; 0: the usual.
  // The worker begins at the end of its next turn that ran a route.
  void start(Kind kind, std::uint32_t every);
  // Ends it. By weight, the largest first.
  std::vector<Row> stop();
  std::vector<Row> rows() const;

  // What is wanted, in one word, so that a look at it costs one load: changes with each start() and stop().
  std::uint64_t order() const { return order_.load(std::memory_order_acquire); }
  static Kind kind_of(std::uint64_t order) { return static_cast<Kind>(order & 3); }
  static std::uint32_t every_of(std::uint64_t order) { return static_cast<std::uint32_t>(order >> 2) & 0x1fffffu; }
  // Shape: `order` is the one that the sample was taken for; what comes for an older one is dropped.
  void add(std::uint64_t order, std::string_view function, std::string_view place, std::uint64_t weight, std::uint64_t count);

 private:
  static constexpr std::size_t kMostRows = 10'000;   // then all others are one
  struct Sum {
    std::string function;
    std::uint64_t weight = 0, count = 0;
  };
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  std::vector<Row> sorted() const;

  std::atomic<std::uint64_t> order_{0};
  mutable std::mutex mutex_;         // the worker takes it once for each sample
  std::unordered_map<std::string, Sum, Hash, std::equal_to<>> sums_;   // by place; guarded by mutex_
  std::uint64_t serial_ = 0;         // guarded by mutex_
};

// The rows of several workers as one list.
std::vector<RouteProfile::Row> merge(const std::vector<std::vector<RouteProfile::Row>>& lists);
// A table for a person: weight, its part of the whole, count, function and place; `most` rows.
std::string profile_table(RouteProfile::Kind kind, const std::vector<RouteProfile::Row>& rows, std::size_t most);

}  // namespace sluice::proxy
