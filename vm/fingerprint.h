// A number for a set of records with amounts, equal for equal sets whatever the order, that can be added up row by row.
//
// Over the field of 2^61 - 1 elements: each record has a random place there (a hash of its key), times its amount. Counts of
// groups then come out the same from the rows, one by one, as from the stored counts, and so do exact sums of doubles: 2
// can be divided by in this field, so a double is an element of it. Two such numbers with different hashes leave one
// chance in 2^120 that a difference is not seen.
#pragma once
#include <cstdint>
#include <string_view>

#include "vm/base/hash.h"

namespace sluice::vm {

class Fingerprint {
 public:
  static constexpr std::uint64_t kPrime = (std::uint64_t{1} << 61) - 1;

  // Units: `amount` is an element of the field.
  void add(std::string_view key, std::uint64_t amount) {
    for (std::uint64_t i = 0; i < 2; ++i)
      sum_[i] = (sum_[i] + times(xxh3_64(key, i + 1) % kPrime, amount)) % kPrime;
  }
  // A record with a value of its own, once.
  void add_entry(std::string_view key, std::string_view value) {
    for (std::uint64_t i = 0; i < 2; ++i)
      sum_[i] = (sum_[i] + xxh3_64(key, xxh3_64(value, i + 1)) % kPrime) % kPrime;
  }
  bool operator==(const Fingerprint&) const = default;

  static std::uint64_t times(std::uint64_t a, std::uint64_t b) {
    return static_cast<std::uint64_t>(static_cast<Wide>(a) * b % kPrime);
  }
  // 2 to the n-th, for any n: 2^61 is 1.
  static std::uint64_t power_of_two(std::int64_t n) { return std::uint64_t{1} << (((n % 61) + 61) % 61); }

 private:
  __extension__ typedef unsigned __int128 Wide;
  std::uint64_t sum_[2] = {0, 0};
};

}  // namespace sluice::vm
