#include "vm/exact_sum.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace sluice::vm {
namespace {
constexpr double kMax = std::numeric_limits<double>::max();
constexpr double kTiny = std::numeric_limits<double>::denorm_min();

ExactSum sum_of(const std::vector<double>& numbers) {
  ExactSum sum;
  for (const double n : numbers) sum.add(n);
  return sum;
}
double value_of(const std::vector<double>& numbers) { return sum_of(numbers).value().value_or(-1); }
std::string bytes(const ExactSum& sum) {
  char out[ExactSum::kEncodedMax];
  return std::string(out, sum.encode(out));
}
ExactSum from(std::string_view stored) {
  ExactSum sum;
  REQUIRE(sum.decode(stored));
  return sum;
}
}  // namespace

TEST_CASE("an exact sum of one double is that double") {
  std::mt19937_64 random(1);
  for (int i = 0; i < 20000; ++i) {
    const auto n = std::bit_cast<double>(random());
    if (!std::isfinite(n)) continue;
    REQUIRE(value_of({n}) == n);
    ExactSum back = sum_of({n});
    back.subtract(n);
    REQUIRE(back.is_zero());
  }
  for (const double n : {0.0, kTiny, -kTiny, kMax, -kMax, 1.0, -1.0, 0.1, std::numeric_limits<double>::min()})
    CHECK(value_of({n}) == n);
}

TEST_CASE("an exact sum rounds once, to nearest and halves to even") {
  CHECK(value_of({0.1, 0.2, -0.3}) == std::ldexp(1.0, -55));   // what adding in doubles loses or doubles
  CHECK(value_of({1e300, 1, -1e300}) == 1);
  const double half = std::ldexp(1.0, -53);
  CHECK(value_of({1, half}) == 1);
  CHECK(value_of({1, half, kTiny}) == 1 + 2 * half);
  CHECK(value_of({1, 2 * half, half}) == 1 + 4 * half);
  CHECK(value_of({-1, -half}) == -1);
  CHECK(value_of({-1, -half, -kTiny}) == -1 - 2 * half);
  CHECK(value_of({kTiny, kTiny, kTiny}) == 3 * kTiny);
  CHECK(value_of({9007199254740992, 1}) == 9007199254740992);
  CHECK(value_of({9007199254740992, 1, 9007199254740992, 1}) == 18014398509481984);
}

TEST_CASE("an exact sum beyond the largest double has no value until it comes back") {
  ExactSum sum = sum_of({kMax, kMax});
  CHECK_FALSE(sum.value());
  sum.subtract(kMax);
  CHECK(sum.value() == kMax);
  sum.add(kTiny);
  CHECK_FALSE(sum.value());                        // by the smallest amount there is
  sum.subtract(kTiny);
  CHECK(sum.value() == kMax);
  for (int i = 0; i < 1000; ++i) sum.subtract(kMax);
  CHECK_FALSE(sum.value());
  CHECK(bytes(from(bytes(sum))) == bytes(sum));
}

TEST_CASE("what was added in any order and taken back leaves the bytes of a fresh sum") {
  std::mt19937_64 random(2);
  for (int round = 0; round < 300; ++round) {
    std::vector<double> kept, gone;
    const auto number = [&] {
      double n;
      do n = random() % 2 == 0 ? std::bit_cast<double>(random()) : static_cast<double>(random() % 100000) / 100 - 300;
      while (!std::isfinite(n));
      return n;
    };
    for (int i = 0; i < 20; ++i) (i % 2 == 0 ? kept : gone).push_back(number());
    ExactSum sum;
    for (int i = 0; i < 10; ++i) {
      sum = from(bytes(sum));                      // through what is stored each time
      sum.add(kept[static_cast<std::size_t>(i)]);
      sum.add(sum_of({gone[static_cast<std::size_t>(i)]}));
    }
    for (int i = 10; i-- > 0;) sum.subtract(gone[static_cast<std::size_t>(i)]);
    std::shuffle(kept.begin(), kept.end(), random);
    REQUIRE(bytes(sum) == bytes(sum_of(kept)));
    REQUIRE(sum == from(bytes(sum)));
  }
}

TEST_CASE("exact sums are stored in as few bytes as they need") {
  CHECK(bytes(sum_of({})).empty());
  CHECK(bytes(sum_of({3, -3})).empty());
  CHECK(bytes(sum_of({1})) == std::string("\0\x01", 2));
  CHECK(bytes(sum_of({-1})) == std::string("\0\xff", 2));
  CHECK(bytes(sum_of({127})) == std::string("\0\x7f", 2));
  CHECK(bytes(sum_of({128})) == std::string("\0\x80\0", 3));
  CHECK(bytes(sum_of({-128})) == std::string("\0\x80", 2));
  CHECK(bytes(sum_of({256})) == std::string("\x02\x01", 2));
  CHECK(bytes(sum_of({0.5})) == std::string("\x01\x80\0", 3));
  CHECK(bytes(sum_of({65535})).size() == 4);
}

TEST_CASE("bytes that are no exact sum are refused") {
  ExactSum sum;
  CHECK(sum.decode(""));
  CHECK_FALSE(sum.decode("\x80"));                               // a place without an end
  CHECK_FALSE(sum.decode(std::string_view("\0", 1)));            // a place and no bytes
  CHECK_FALSE(sum.decode(std::string("\xff\x7f\x01", 3)));       // before the first byte
  CHECK_FALSE(sum.decode(std::string("\x90\x02\x01", 3)));       // behind the last
  CHECK_FALSE(sum.decode(std::string("\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01\x01", 11)));   // far behind it
  CHECK_FALSE(sum.decode(std::string(1, '\0') + std::string(200, 'x')));
  CHECK(sum.is_zero());
}

}  // namespace sluice::vm
