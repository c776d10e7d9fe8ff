#include "vm/base/hash.h"

#include <xxhash.h>

#include <array>

namespace sluice {

std::uint64_t xxh64(std::string_view bytes, std::uint64_t seed) { return XXH64(bytes.data(), bytes.size(), seed); }

std::uint64_t xxh3_64(std::string_view bytes, std::uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

namespace {
constexpr std::array<std::uint32_t, 256> crc_table() {
  std::array<std::uint32_t, 256> t{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t c = i;
    for (int k = 0; k < 8; ++k) c = (c & 1) ? (c >> 1) ^ 0x82F63B78u : c >> 1;
    t[i] = c;
  }
  return t;
}
constexpr auto kCrc = crc_table();
}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t c = ~0u;
  for (char b : bytes) c = kCrc[(c ^ static_cast<unsigned char>(b)) & 0xff] ^ (c >> 8);
  return ~c;
}

std::uint32_t jump_hash(std::uint64_t hash, std::uint32_t buckets) {
  std::int64_t b = -1, j = 0;
  while (j < static_cast<std::int64_t>(buckets)) {
    b = j;
    hash = hash * 2862933555777941757ull + 1;
    j = static_cast<std::int64_t>(static_cast<double>(b + 1) *
                                  (static_cast<double>(1ll << 31) / static_cast<double>((hash >> 33) + 1)));
  }
  return static_cast<std::uint32_t>(b);
}

}  // namespace sluice
