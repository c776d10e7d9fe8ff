#include "vm/chance.h"

#include <bit>

#include "vm/base/check.h"

namespace sluice::vm {
namespace {
std::uint32_t read_u32(const char* p) {
  const auto byte = [&](int i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(p[i])); };
  return byte(0) | byte(1) << 8 | byte(2) << 16 | byte(3) << 24;
}

void quarter(std::uint32_t& a, std::uint32_t& b, std::uint32_t& c, std::uint32_t& d) {
  a += b; d = std::rotl(d ^ a, 16);
  c += d; b = std::rotl(b ^ c, 12);
  a += b; d = std::rotl(d ^ a, 8);
  c += d; b = std::rotl(b ^ c, 7);
}
}  // namespace

void chacha20_block(std::string_view key, std::uint32_t counter, std::string_view nonce,
                    std::array<std::uint8_t, 64>& out) {
  SLUICE_CHECK(key.size() == 32 && nonce.size() == 12);
  std::uint32_t start[16] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574};
  for (int i = 0; i < 8; ++i) start[4 + i] = read_u32(key.data() + 4 * i);
  start[12] = counter;
  for (int i = 0; i < 3; ++i) start[13 + i] = read_u32(nonce.data() + 4 * i);

  std::uint32_t x[16];
  for (int i = 0; i < 16; ++i) x[i] = start[i];
  for (int round = 0; round < 10; ++round) {
    quarter(x[0], x[4], x[8], x[12]);
    quarter(x[1], x[5], x[9], x[13]);
    quarter(x[2], x[6], x[10], x[14]);
    quarter(x[3], x[7], x[11], x[15]);
    quarter(x[0], x[5], x[10], x[15]);
    quarter(x[1], x[6], x[11], x[12]);
    quarter(x[2], x[7], x[8], x[13]);
    quarter(x[3], x[4], x[9], x[14]);
  }
  for (std::size_t i = 0; i < 16; ++i) {
    const std::uint32_t word = x[i] + start[i];
    for (std::size_t k = 0; k < 4; ++k) out[4 * i + k] = static_cast<std::uint8_t>(word >> (8 * k));
  }
}

std::uint8_t Chance::byte() {
  if (at_ == bytes_.size()) {
    char nonce[12] = {};
    for (int i = 0; i < 8; ++i) nonce[i] = static_cast<char>(call_ >> (8 * i));
    chacha20_block(seed_, block_++, {nonce, sizeof nonce}, bytes_);
    at_ = 0;
  }
  return bytes_[at_++];
}

std::uint64_t Chance::below(std::uint64_t n) {
  // Numbers from the last, incomplete run of n are drawn again, or low results would come more often.
  const std::uint64_t surplus = (UINT64_MAX % n + 1) % n;
  while (true) {
    std::uint64_t x = 0;
    for (int i = 0; i < 8; ++i) x |= static_cast<std::uint64_t>(byte()) << (8 * i);
    if (x <= UINT64_MAX - surplus) return x % n;
  }
}

}  // namespace sluice::vm
