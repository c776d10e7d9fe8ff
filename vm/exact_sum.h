// Sums of doubles without any rounding, until they are read.
//
// A fixed-point number in two's complement, wide enough for 2^63 of the largest doubles and fine enough for the
// smallest: what was added can be taken back, and any order of additions gives the same bytes. So a kept total is what
// a fresh sum of its rows would be.
//
// Stored: a varint, the zigzag of where the first byte stands (0: it holds the units; 1 more is 8 bits more), then the
// bytes, lowest first, without zero bytes in front and without bytes behind that only repeat the sign. Zero is nothing.
// Whole numbers up to 127 take two bytes.
// Source: design module.md 4.4; Kulisch, "The long accumulator".
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace sluice::vm {

class ExactSum {
 public:
  static constexpr std::size_t kEncodedMax = 2 + 272;   // bytes

  // Shape: finite.
  void add(double n) { accumulate(n, false); }
  void subtract(double n) { accumulate(n, true); }
  void add(const ExactSum& other);
  void subtract(const ExactSum& other);

  bool is_zero() const;
  bool operator==(const ExactSum&) const = default;

  // To nearest, halves to even; absent beyond the largest double.
  std::optional<double> value() const;

  // Shape: room for kEncodedMax bytes at `out`. Returns how many it took, 0 for zero.
  std::size_t encode(char* out) const;
  // False: these bytes are no sum; then it is zero.
  bool decode(std::string_view bytes);

 private:
  static constexpr std::size_t kLimbs = 34;   // of 64 bits
  static constexpr int kPoint = 1088;         // the bit of the units

  void accumulate(double n, bool negative);
  void add_at(std::size_t limb, std::uint64_t low, std::uint64_t high);
  void subtract_at(std::size_t limb, std::uint64_t low, std::uint64_t high);

  std::uint64_t limbs_[kLimbs] = {};          // lowest first
};

}  // namespace sluice::vm
