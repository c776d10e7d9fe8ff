// A token bucket, or one per key: `limit` tokens fit, `per_second` come in, and a limiter of N admits N.
//
// Kept as the time at which the bucket will be full again, so that one number is a bucket and nothing has to be refilled.
// Source: the generic cell rate algorithm, ITU-T I.371.
#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::lua {

// Shape: limit 1 to 1e9; per_second 1e-5 to 1e9, and the bucket fills within 30 days; keys 0 (one bucket) to a million.
struct LimitSpec {
  std::uint64_t limit = 0;
  double per_second = 1;
  std::uint32_t keys = 0;
  friend bool operator==(const LimitSpec&, const LimitSpec&) = default;
};

struct Verdict {
  bool admitted = true;
  std::optional<std::uint64_t> wait_us;          // of a refusal: when it would be admitted; nothing: never, it is more than fits
};

// Units: times are microseconds of the monotonic clock.
// Thread: any when it is shared, else the worker's.
class Limiter {
 public:
  Limiter(const LimitSpec& spec, bool shared);
  Limiter(const Limiter&) = delete;
  Limiter& operator=(const Limiter&) = delete;

  const LimitSpec& spec() const { return spec_; }
  // Takes `n` tokens, 1 or more, of the one bucket or of `key`'s. All or none.
  Verdict take(std::uint64_t n, std::uint64_t now_us) { return take({}, n, now_us); }
  Verdict take(std::string_view key, std::uint64_t n, std::uint64_t now_us);

 private:
  // Units: of time here, 1/64 of a nanosecond since base_us_: whole, so that N tokens are exactly N.
  struct Slot {
    std::uint64_t hash = 0, full_at = 0;
    std::uint32_t next = 0, newer = 0, older = 0;   // indices + 1; 0: none
  };
  std::uint64_t& full_at(std::string_view key);
  std::uint32_t& bucket(std::uint64_t hash) { return buckets_[hash & (bucket_count_ - 1)]; }
  void link(std::uint32_t index);
  void unlink(std::uint32_t index);

  const LimitSpec spec_;
  const std::uint64_t seed_;
  const std::uint64_t token_, capacity_;
  std::mutex mutex_;                             // of a shared one: held for one look-up
  const bool shared_;
  std::uint64_t base_us_ = 0;                    // when it was asked first
  std::uint64_t only_ = 0;                       // the bucket without keys
  // The keys' buckets: as many as `keys`, then the one not asked for longest begins anew, as another's.
  std::size_t bucket_count_ = 0;
  std::unique_ptr<std::uint32_t[]> buckets_;
  std::vector<Slot> slots_;
  std::uint32_t newest_ = 0, oldest_ = 0;
};

}  // namespace sluice::lua
