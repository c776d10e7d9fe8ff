// A counter or a histogram of a config's own: written by each worker in a cell of its own, summed by whoever reads.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lua/home.h"
#include "lua/state.h"
#include "proxy/counted.h"

namespace sluice::lua {

// Thread: written by one (its worker, or control for crons), read by any.
struct StatCell {
  // Buckets: eight to each power of two from 2^-32 to 2^32, so that a quantile is at most a sixteenth off. The first also
  // takes what is less, zero and below; the last what is more.
  static constexpr int kPerPower = 8, kLowest = -32, kHighest = 32;
  static constexpr std::size_t kBuckets = static_cast<std::size_t>((kHighest - kLowest) * kPerPower);

  std::atomic<std::int64_t> count{0};            // of a counter: its value; of a histogram: how many were recorded
  std::atomic<double> sum{0}, least{0}, most{0};
  std::unique_ptr<std::array<std::atomic<std::uint64_t>, kBuckets>> buckets;   // of a histogram

  // Neither goes beyond what its type holds: it stays at the end.
  void add(double n);                            // of a counter; whole, at most 2^53 either way
  void record(double value);
  static std::size_t bucket_of(double value);
  static double middle_of(std::size_t bucket);
};

class UserStat {
 public:
  enum class Kind : std::uint8_t { counter, histogram };
  static constexpr std::size_t kCells = 257;     // of workers, and control's
  static constexpr std::uint16_t kControl = 256;

  UserStat(std::string name, Kind kind) : name_(std::move(name)), kind_(kind) {}
  ~UserStat();
  UserStat(const UserStat&) = delete;
  UserStat& operator=(const UserStat&) = delete;

  const std::string& name() const { return name_; }
  Kind kind() const { return kind_; }
  // Made when it is asked for first. Thread: control.
  StatCell& cell(std::uint16_t worker);

  // Thread: any. What is written meanwhile is counted in part.
  proxy::Counted read() const;

 private:
  const std::string name_;
  const Kind kind_;
  std::array<std::atomic<StatCell*>, kCells> cells_{};
};

// sluice.stat(name [, n]) and sluice.server_stats(). Life: both outlive the VM.
void open_stats(lua_State* L, const Home& home, const std::vector<std::shared_ptr<UserStat>>& stats);
// Makes the name known to sluice.stat().
void add_stat(lua_State* L, UserStat& stat, std::uint16_t worker);

}  // namespace sluice::lua
