#include "vm/base/number_text.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

using namespace sluice;

namespace {
std::string text(double n) {
  std::string out;
  append_number(out, n);
  return out;
}
std::string text_of_bits(std::uint64_t bits) { return text(std::bit_cast<double>(bits)); }
}  // namespace

TEST_CASE("numbers print as RFC 8785, appendix B, shows them") {
  CHECK(text_of_bits(0x0000000000000000) == "0");
  CHECK(text_of_bits(0x8000000000000000) == "0");
  CHECK(text_of_bits(0x0000000000000001) == "5e-324");
  CHECK(text_of_bits(0x8000000000000001) == "-5e-324");
  CHECK(text_of_bits(0x7fefffffffffffff) == "1.7976931348623157e+308");
  CHECK(text_of_bits(0xffefffffffffffff) == "-1.7976931348623157e+308");
  CHECK(text_of_bits(0x4340000000000000) == "9007199254740992");
  CHECK(text_of_bits(0xc340000000000000) == "-9007199254740992");
  CHECK(text_of_bits(0x4430000000000000) == "295147905179352830000");
  CHECK(text_of_bits(0x44b52d02c7e14af5) == "9.999999999999997e+22");
  CHECK(text_of_bits(0x44b52d02c7e14af6) == "1e+23");
  CHECK(text_of_bits(0x44b52d02c7e14af7) == "1.0000000000000001e+23");
  CHECK(text_of_bits(0x444b1ae4d6e2ef4e) == "999999999999999700000");
  CHECK(text_of_bits(0x444b1ae4d6e2ef4f) == "999999999999999900000");
  CHECK(text_of_bits(0x444b1ae4d6e2ef50) == "1e+21");
  CHECK(text_of_bits(0x3eb0c6f7a0b5ed8c) == "9.999999999999997e-7");
  CHECK(text_of_bits(0x3eb0c6f7a0b5ed8d) == "0.000001");
  CHECK(text_of_bits(0x41b3de4355555553) == "333333333.3333332");
  CHECK(text_of_bits(0x41b3de4355555554) == "333333333.33333325");
  CHECK(text_of_bits(0x41b3de4355555555) == "333333333.3333333");
  CHECK(text_of_bits(0x41b3de4355555556) == "333333333.3333334");
  CHECK(text_of_bits(0x41b3de4355555557) == "333333333.33333343");
  CHECK(text_of_bits(0xbecbf647612f3696) == "-0.0000033333333333333333");
  CHECK(text_of_bits(0x43143ff3c1cb0959) == "1424953923781206.2");
}

TEST_CASE("everyday numbers are plain") {
  CHECK(text(1000000) == "1000000");
  CHECK(text(-0.5) == "-0.5");
  CHECK(text(99.5) == "99.5");
  CHECK(text(1.5e300) == "1.5e+300");
  CHECK(text(0.1 + 0.2) == "0.30000000000000004");
  CHECK(text(123456789012345680000.0) == "123456789012345680000");
}

TEST_CASE("what is printed reads back as the same number, and is at most 25 bytes") {
  std::mt19937_64 random(7);
  for (int i = 0; i < 200000; ++i) {
    const double n = std::bit_cast<double>(random());
    if (!(n - n == 0)) continue;
    char buffer[32];
    const std::size_t length = write_number(buffer, n);
    CHECK(length <= 25);
    const auto back = read_number({buffer, length});
    REQUIRE(back);
    CHECK(*back == n);
  }
}

TEST_CASE("reading takes only digits, fraction and exponent") {
  CHECK(read_number("12") == 12);
  CHECK(read_number("-0.5e1") == -5);
  CHECK(read_number("1E+2") == 100);
  CHECK(read_number("007") == 7);
  for (const char* bad : {"", "-", "+1", " 1", "1 ", ".5", "5.", "1e", "1e+", "0x10", "inf", "nan", "-inf", "1_000", "--1", "1.5.2"})
    CHECK_MESSAGE(!read_number(bad), bad);
}

TEST_CASE("too large is no number, too small is 0, and -0 is 0") {
  CHECK(!read_number("1e309"));
  CHECK(!read_number("-1e99999999999999999999"));
  CHECK(!read_number("1" + std::string(400, '0')));
  CHECK(read_number("0.0000001e310") == 1e303);
  CHECK(read_number("1e-400") == 0);
  CHECK(read_number("-1e-400") == 0);
  CHECK(read_number("0e999999") == 0);
  CHECK(read_number("0." + std::string(400, '0') + "1") == 0);
  CHECK(read_number("1e-99999999999999999999") == 0);
  CHECK(!std::signbit(*read_number("-0")));
  CHECK(!std::signbit(*read_number("-1e-400")));
  CHECK(read_number("123456789012345678901234567890") == 123456789012345678901234567890.0);
}
