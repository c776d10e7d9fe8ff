// The secret bytes that an event's `random` and `token` are drawn from.
#pragma once
#include <array>
#include <cstddef>
#include <string_view>

namespace sluice::proxy {

// Drawn from the system when first asked for, the same until the next event.
// Thread: its owner's.
class Seed {
 public:
  void next_event() { drawn_ = false; }
  std::string_view bytes();   // 32 of them

 private:
  std::array<char, 32> bytes_{};
  bool drawn_ = false;
};

}  // namespace sluice::proxy
