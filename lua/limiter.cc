#include "lua/limiter.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "lua/random_seed.h"
#include "vm/base/hash.h"

namespace sluice::lua {
namespace {

constexpr std::uint64_t kPerUs = 64'000;         // units in a microsecond

}  // namespace

Limiter::Limiter(const LimitSpec& spec, bool shared)
    : spec_(spec),
      seed_(random_seed()),
      token_(std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::ceil(static_cast<double>(kPerUs) * 1e6 / spec.per_second)))),
      capacity_(token_ * spec.limit),
      shared_(shared) {
  if (spec.keys == 0) return;
  bucket_count_ = std::bit_ceil<std::size_t>(spec.keys);
  buckets_.reset(new std::uint32_t[bucket_count_]());
  slots_.reserve(spec.keys);
}

void Limiter::link(std::uint32_t index) {
  Slot& s = slots_[index - 1];
  s.newer = 0;
  s.older = newest_;
  if (newest_ != 0) slots_[newest_ - 1].newer = index;
  newest_ = index;
  if (oldest_ == 0) oldest_ = index;
}

void Limiter::unlink(std::uint32_t index) {
  const Slot& s = slots_[index - 1];
  (s.newer != 0 ? slots_[s.newer - 1].older : newest_) = s.older;
  (s.older != 0 ? slots_[s.older - 1].newer : oldest_) = s.newer;
}

// Two keys whose hashes meet share a bucket: the seed is ours, so nobody can bring that about.
std::uint64_t& Limiter::full_at(std::string_view key) {
  if (spec_.keys == 0) return only_;
  const std::uint64_t hash = xxh3_64(key, seed_);
  std::uint32_t index = bucket(hash);
  while (index != 0 && slots_[index - 1].hash != hash) index = slots_[index - 1].next;
  if (index != 0) {
    if (index != newest_) {
      unlink(index);
      link(index);
    }
    return slots_[index - 1].full_at;
  }
  if (slots_.size() < spec_.keys) {
    slots_.emplace_back();
    index = static_cast<std::uint32_t>(slots_.size());
  } else {
    index = oldest_;
    std::uint32_t* at = &bucket(slots_[index - 1].hash);
    while (*at != index) at = &slots_[*at - 1].next;
    *at = slots_[index - 1].next;
    unlink(index);
    slots_[index - 1] = {};
  }
  Slot& s = slots_[index - 1];
  s.hash = hash;
  s.next = bucket(hash);
  bucket(hash) = index;
  link(index);
  return s.full_at;
}

Verdict Limiter::take(std::string_view key, std::uint64_t n, std::uint64_t now_us) {
  if (n > spec_.limit) return {false, std::nullopt};
  std::unique_lock<std::mutex> hold(mutex_, std::defer_lock);
  if (shared_) hold.lock();
  std::uint64_t& full = full_at(key);
  if (base_us_ == 0) base_us_ = now_us;
  // Clocks of two workers differ by a turn of a loop.
  const std::uint64_t now = now_us > base_us_ ? (now_us - base_us_) * kPerUs : 0;
  const std::uint64_t then = std::max(full, now) + n * token_;
  if (then - now > capacity_) return {false, (then - now - capacity_ + kPerUs - 1) / kPerUs};
  full = then;
  return {true, std::nullopt};
}

}  // namespace sluice::lua
