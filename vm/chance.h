// Chance that can be replayed: one ChaCha20 key stream per call of `random` or `token`.
//
// Key: the event's 32 secret bytes. Nonce: the number of the call in the event. So answers depend on the event alone.
// Source: RFC 8439, 2.3.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

namespace sluice::vm {

// Shape: key is 32 bytes, nonce 12; `out` gets the 64 bytes of the key stream's block `counter`.
void chacha20_block(std::string_view key, std::uint32_t counter, std::string_view nonce,
                    std::array<std::uint8_t, 64>& out);

class Chance {
 public:
  Chance(std::string_view seed, std::uint64_t call) : seed_(seed), call_(call) {}
  std::uint8_t byte();
  // Shape: 0..n-1, each as likely; 1 <= n <= 2^53.
  std::uint64_t below(std::uint64_t n);

 private:
  std::string_view seed_;
  std::uint64_t call_;
  std::uint32_t block_ = 0;
  std::size_t at_ = 64;
  std::array<std::uint8_t, 64> bytes_{};
};

}  // namespace sluice::vm
