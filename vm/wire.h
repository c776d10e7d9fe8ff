// Bytes in and out of a module file: the few shapes that its sections are made of.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "vm/module.h"

namespace sluice::vm {

inline constexpr std::string_view kMagic = "PMOD";
inline constexpr std::uint16_t kFormat = 1;
inline constexpr std::uint32_t kHeaderBytes = 32;
inline constexpr std::uint32_t kEntryBytes = 12;

enum class Section : std::uint32_t {
  module = 1, constants = 2, states = 3, tables = 4, documents = 5, inputs = 6, descriptors = 7, functions = 8,
  code = 9, handlers = 10, evolution = 11, lines = 12,
};
inline constexpr std::uint32_t kSections = 12;

class Writer {
 public:
  explicit Writer(std::string& out) : out_(out) {}

  void u8(std::uint8_t n) { out_.push_back(static_cast<char>(n)); }
  void u16(std::uint16_t n) { little(n, 2); }
  void u32(std::uint32_t n) { little(n, 4); }
  void u64(std::uint64_t n) { little(n, 8); }
  void f64(double n) { u64(std::bit_cast<std::uint64_t>(n)); }
  // LEB128, shortest.
  void number(std::uint32_t n) {
    for (; n >= 0x80; n >>= 7) u8(static_cast<std::uint8_t>(n | 0x80));
    u8(static_cast<std::uint8_t>(n));
  }
  void count(std::size_t n) { number(static_cast<std::uint32_t>(n)); }
  void text(std::string_view s) {
    count(s.size());
    out_.append(s);
  }

 private:
  void little(std::uint64_t n, int bytes) {
    for (int i = 0; i < bytes; ++i) u8(static_cast<std::uint8_t>(n >> (8 * i)));
  }
  std::string& out_;
};

// Reads from a part of a file. The first thing that is not as it should be makes every later read 0 and ok() false, so
// that callers look once, after a group of reads (and before they trust a count).
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  bool ok() const { return ok_; }
  bool used_up() const { return ok_ && rest_.empty(); }
  std::size_t left() const { return rest_.size(); }

  std::uint8_t u8() { return static_cast<std::uint8_t>(little(1)); }
  std::uint16_t u16() { return static_cast<std::uint16_t>(little(2)); }
  std::uint32_t u32() { return static_cast<std::uint32_t>(little(4)); }
  std::uint64_t u64() { return little(8); }
  double f64() { return std::bit_cast<double>(u64()); }
  std::uint32_t number() {
    std::uint64_t n = 0;
    for (int shift = 0; shift < 35; shift += 7) {
      const std::uint8_t byte = u8();
      n |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) {
        if ((byte == 0 && shift != 0) || n > UINT32_MAX) break;  // longer than needed, or too large
        return ok_ ? static_cast<std::uint32_t>(n) : 0;
      }
    }
    return bad();
  }
  // A number of things that each take at least one byte, so that a wrong one cannot make us reserve memory.
  std::uint32_t count() {
    const std::uint32_t n = number();
    return n <= rest_.size() ? n : bad();
  }
  std::string_view text() {
    const std::uint32_t n = count();
    return bytes(n);
  }
  std::string_view bytes(std::size_t n) {
    if (n > rest_.size()) bad();
    if (!ok_) return {};
    const std::string_view out = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return out;
  }
  std::uint32_t bad() {
    ok_ = false;
    rest_ = {};
    return 0;
  }

 private:
  std::uint64_t little(int bytes) {
    if (rest_.size() < static_cast<std::size_t>(bytes)) return bad();
    std::uint64_t n = 0;
    for (int i = 0; i < bytes; ++i)
      n |= static_cast<std::uint64_t>(static_cast<unsigned char>(rest_[static_cast<std::size_t>(i)])) << (8 * i);
    rest_.remove_prefix(static_cast<std::size_t>(bytes));
    return n;
  }
  std::string_view rest_;
  bool ok_ = true;
};

// What a value of a slot may be, in a file or a constant: finite and never -0.
inline bool is_number(double n) { return std::isfinite(n) && !(n == 0 && std::signbit(n)); }

inline std::uint32_t zigzag(std::int32_t n) {
  return static_cast<std::uint32_t>(n) << 1 ^ static_cast<std::uint32_t>(n >> 31);
}
inline std::int32_t unzigzag(std::uint32_t n) {
  return static_cast<std::int32_t>(n >> 1) ^ -static_cast<std::int32_t>(n & 1);
}

}  // namespace sluice::vm
