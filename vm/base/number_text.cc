// Shortest digits from std::to_chars, laid out by the rules of ECMAScript.
#include "vm/base/number_text.h"

#include <charconv>
#include <cmath>
#include <cstring>

#include "vm/base/check.h"

namespace sluice {
namespace {
bool is_digit(char c) { return c >= '0' && c <= '9'; }

char* put(char* out, const char* from, int count) {
  std::memcpy(out, from, static_cast<std::size_t>(count));
  return out + count;
}
char* zeros(char* out, int count) {
  std::memset(out, '0', static_cast<std::size_t>(count));
  return out + count;
}
}  // namespace

std::size_t write_number(char* out, double value) {
  SLUICE_ASSERT(std::isfinite(value));
  char* const start = out;
  if (value == 0) {
    *out = '0';
    return 1;
  }
  // Small whole numbers are nearly all that is ever printed: no shortest-digit search for them.
  if (std::fabs(value) < 9007199254740992.0 && value == std::trunc(value)) {
    const auto end = std::to_chars(out, out + 32, static_cast<std::int64_t>(value));
    return static_cast<std::size_t>(end.ptr - start);
  }
  if (value < 0) {
    *out++ = '-';
    value = -value;
  }
  // "d.ddde+XX": the digits and the exponent are what the layout below needs.
  char text[32];
  const char* const end = std::to_chars(text, text + sizeof text, value, std::chars_format::scientific).ptr;
  char digits[24];
  int k = 0;
  const char* p = text;
  for (; p != end && *p != 'e'; ++p)
    if (*p != '.') digits[k++] = *p;
  int exponent = 0;
  ++p;
  if (*p == '+') ++p;
  std::from_chars(p, end, exponent);
  const int n = exponent + 1;  // the value is 0.digits times 10^n

  if (k <= n && n <= 21) {
    out = put(out, digits, k);
    out = zeros(out, n - k);
  } else if (0 < n && n <= 21) {
    out = put(out, digits, n);
    *out++ = '.';
    out = put(out, digits + n, k - n);
  } else if (-6 < n && n <= 0) {
    *out++ = '0';
    *out++ = '.';
    out = zeros(out, -n);
    out = put(out, digits, k);
  } else {
    *out++ = digits[0];
    if (k > 1) {
      *out++ = '.';
      out = put(out, digits + 1, k - 1);
    }
    *out++ = 'e';
    *out++ = n - 1 < 0 ? '-' : '+';
    out = std::to_chars(out, out + 4, n - 1 < 0 ? 1 - n : n - 1).ptr;
  }
  return static_cast<std::size_t>(out - start);
}

void append_number(std::string& out, double value) {
  char buffer[32];
  out.append(buffer, write_number(buffer, value));
}

std::optional<double> read_number(std::string_view text) {
  std::size_t i = 0;
  const auto digits = [&] {
    const std::size_t from = i;
    while (i < text.size() && is_digit(text[i])) ++i;
    return i > from;
  };
  if (i < text.size() && text[i] == '-') ++i;
  if (!digits()) return std::nullopt;
  if (i < text.size() && text[i] == '.') {
    ++i;
    if (!digits()) return std::nullopt;
  }
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    ++i;
    if (i < text.size() && (text[i] == '+' || text[i] == '-')) ++i;
    if (!digits()) return std::nullopt;
  }
  if (i != text.size()) return std::nullopt;

  double value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec == std::errc::result_out_of_range) {
    // from_chars says the same of too large and too small, and leaves no value: the order of magnitude tells them apart.
    // Beyond the range of doubles by so much that no digit count can matter, an overlong exponent included.
    std::string_view mantissa = text;
    std::int64_t exponent = 0;
    if (const std::size_t e = text.find_first_of("eE"); e != std::string_view::npos) {
      mantissa = text.substr(0, e);
      std::string_view digits_of = text.substr(e + 1);
      const bool negative = digits_of.front() == '-';
      if (negative || digits_of.front() == '+') digits_of.remove_prefix(1);
      for (char c : digits_of)
        if (exponent < 1'000'000'000) exponent = exponent * 10 + (c - '0');
      if (negative) exponent = -exponent;
    }
    if (!mantissa.empty() && mantissa.front() == '-') mantissa.remove_prefix(1);
    const std::size_t dot = std::min(mantissa.find('.'), mantissa.size());
    std::int64_t leading = static_cast<std::int64_t>(dot);  // digits before the point, less leading zeros
    for (char c : mantissa) {
      if (c == '.') continue;
      if (c != '0') break;
      --leading;
    }
    if (leading + exponent > 0) return std::nullopt;
    return 0.0;
  }
  if (read.ec != std::errc{} || read.ptr != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value == 0 ? 0.0 : value;
}

}  // namespace sluice
