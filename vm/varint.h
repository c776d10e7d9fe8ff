// LEB128 in stored records: seven bits a byte, lowest first.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sluice::vm {

inline constexpr std::size_t kVarintMax = 10;   // bytes

// Shape: room for kVarintMax bytes at `out`. Returns how many it took.
inline std::size_t put_varint(char* out, std::uint64_t n) {
  std::size_t size = 0;
  for (; n >= 0x80; n >>= 7) out[size++] = static_cast<char>(n | 0x80);
  out[size++] = static_cast<char>(n);
  return size;
}
inline std::size_t varint_size(std::uint64_t n) {
  std::size_t size = 1;
  for (; n >= 0x80; n >>= 7) ++size;
  return size;
}
// Takes one off the front of `bytes`. False: it has no end there.
inline bool take_varint(std::string_view& bytes, std::uint64_t& n) {
  n = 0;
  for (unsigned shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    n |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

// Signed numbers as unsigned ones: 0, -1, 1, -2, ... become 0, 1, 2, 3, ...
inline std::uint64_t zigzag(std::int64_t n) {
  return (static_cast<std::uint64_t>(n) << 1) ^ static_cast<std::uint64_t>(n >> 63);
}
inline std::int64_t unzigzag(std::uint64_t n) {
  return static_cast<std::int64_t>(n >> 1) ^ -static_cast<std::int64_t>(n & 1);
}

}  // namespace sluice::vm
