#include "vm/exact_sum.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "vm/varint.h"

namespace sluice::vm {
namespace {
constexpr int kMantissaBits = 53;
constexpr int kLowest = 1074;         // a double is a whole multiple of 2^-1074

static_assert(std::endian::native == std::endian::little, "limbs are stored as they lie in memory");

bool add_with_carry(std::uint64_t& to, std::uint64_t n, bool carry) {
  const std::uint64_t sum = to + n;
  const std::uint64_t with = sum + (carry ? 1 : 0);
  const bool over = sum < to || with < sum;
  to = with;
  return over;
}
bool subtract_with_borrow(std::uint64_t& from, std::uint64_t n, bool borrow) {
  const std::uint64_t rest = from - n;
  const std::uint64_t with = rest - (borrow ? 1 : 0);
  const bool under = from < n || rest < with;
  from = with;
  return under;
}
}  // namespace

void ExactSum::accumulate(double n, bool negative) {
  const auto bits = std::bit_cast<std::uint64_t>(n);
  const auto exponent = static_cast<int>(bits >> 52 & 0x7ff);
  std::uint64_t mantissa = bits & ((1ULL << 52) - 1);
  if (exponent != 0) mantissa |= 1ULL << 52;
  if (mantissa == 0) return;
  const int at = kPoint - kLowest + (exponent == 0 ? 0 : exponent - 1);
  const auto limb = static_cast<std::size_t>(at / 64);
  const int shift = at % 64;
  const std::uint64_t low = mantissa << shift;
  const std::uint64_t high = shift == 0 ? 0 : mantissa >> (64 - shift);
  if (negative != (bits >> 63 != 0)) {
    subtract_at(limb, low, high);
  } else {
    add_at(limb, low, high);
  }
}

void ExactSum::add_at(std::size_t limb, std::uint64_t low, std::uint64_t high) {
  bool carry = add_with_carry(limbs_[limb], low, false);
  carry = add_with_carry(limbs_[limb + 1], high, carry);
  for (std::size_t i = limb + 2; carry && i < kLimbs; ++i) carry = ++limbs_[i] == 0;
}

void ExactSum::subtract_at(std::size_t limb, std::uint64_t low, std::uint64_t high) {
  bool borrow = subtract_with_borrow(limbs_[limb], low, false);
  borrow = subtract_with_borrow(limbs_[limb + 1], high, borrow);
  for (std::size_t i = limb + 2; borrow && i < kLimbs; ++i) borrow = limbs_[i]-- == 0;
}

void ExactSum::add(const ExactSum& other) {
  bool carry = false;
  for (std::size_t i = 0; i < kLimbs; ++i) carry = add_with_carry(limbs_[i], other.limbs_[i], carry);
}

void ExactSum::subtract(const ExactSum& other) {
  bool borrow = false;
  for (std::size_t i = 0; i < kLimbs; ++i) borrow = subtract_with_borrow(limbs_[i], other.limbs_[i], borrow);
}

bool ExactSum::is_zero() const {
  for (const std::uint64_t limb : limbs_)
    if (limb != 0) return false;
  return true;
}

std::optional<double> ExactSum::value() const {
  const bool negative = limbs_[kLimbs - 1] >> 63 != 0;
  ExactSum magnitude;
  if (negative) {
    magnitude.subtract(*this);
  } else {
    magnitude = *this;
  }
  const std::uint64_t* const limbs = magnitude.limbs_;
  std::size_t top_limb = kLimbs;
  while (top_limb > 0 && limbs[top_limb - 1] == 0) --top_limb;
  if (top_limb == 0) return 0.0;
  const int top = static_cast<int>(top_limb) * 64 - std::countl_zero(limbs[top_limb - 1]);   // bits in all

  // The lowest bit that the result keeps: 53 from the top, but none finer than doubles have.
  const int lowest = std::max(top - kMantissaBits, kPoint - kLowest);
  const auto limb = static_cast<std::size_t>(lowest / 64);
  const int shift = lowest % 64;
  std::uint64_t mantissa = limbs[limb] >> shift;
  if (shift != 0 && limb + 1 < kLimbs) mantissa |= limbs[limb + 1] << (64 - shift);

  bool half = false, rest = false;
  if (lowest > 0) {
    const int below = lowest - 1;
    half = (limbs[below / 64] >> (below % 64) & 1) != 0;
    rest = (limbs[below / 64] & ((1ULL << (below % 64)) - 1)) != 0;
    for (int i = 0; !rest && i < below / 64; ++i) rest = limbs[i] != 0;
  }
  const int exponent = lowest - kPoint;
  constexpr std::uint64_t kFullMantissa = (1ULL << kMantissaBits) - 1;
  constexpr int kTopExponent = std::numeric_limits<double>::max_exponent - kMantissaBits;
  if (exponent > kTopExponent) return std::nullopt;
  if (exponent == kTopExponent && mantissa == kFullMantissa && (half || rest)) return std::nullopt;
  if (half && (rest || (mantissa & 1) != 0)) ++mantissa;
  const double result = std::ldexp(static_cast<double>(mantissa), exponent);
  return negative ? -result : result;
}

std::size_t ExactSum::encode(char* out) const {
  const char* const bytes = reinterpret_cast<const char*>(limbs_);
  constexpr int size = kLimbs * 8, units = kPoint / 8;
  int first = 0;
  while (first < size && limbs_[first / 8] == 0) first += 8;
  if (first == size) return 0;
  while (bytes[first] == 0) ++first;
  const char sign = limbs_[kLimbs - 1] >> 63 != 0 ? '\xff' : '\0';
  int end = size;
  // A byte that only repeats the sign goes, if the one before it says the sign as well.
  while (end - 1 > first && bytes[end - 1] == sign && ((bytes[end - 2] ^ sign) & 0x80) == 0) --end;
  const std::size_t head = put_varint(out, zigzag(first - units));
  std::memcpy(out + head, bytes + first, static_cast<std::size_t>(end - first));
  return head + static_cast<std::size_t>(end - first);
}

bool ExactSum::decode(std::string_view stored) {
  std::memset(limbs_, 0, sizeof limbs_);
  if (stored.empty()) return true;
  std::uint64_t place = 0;
  constexpr std::int64_t size = kLimbs * 8, units = kPoint / 8;
  if (!take_varint(stored, place) || place > std::uint64_t{2 * kLimbs * 8}) return false;
  const std::int64_t first = unzigzag(place) + units;
  if (stored.empty() || first < 0 || first >= size || stored.size() > static_cast<std::size_t>(size - first)) return false;
  char* const bytes = reinterpret_cast<char*>(limbs_);
  std::memcpy(bytes + first, stored.data(), stored.size());
  const std::size_t end = static_cast<std::size_t>(first) + stored.size();
  if ((stored.back() & 0x80) != 0) std::memset(bytes + end, 0xff, static_cast<std::size_t>(size) - end);
  return true;
}

}  // namespace sluice::vm
