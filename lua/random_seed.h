// A number that nobody outside can know: for hashes whose collisions a client could choose.
#pragma once
#include <sys/random.h>

#include <cstdint>

namespace sluice::lua {

inline std::uint64_t random_seed() {
  std::uint64_t seed = 0;
  // Not there early in a machine's life; an address is better than nothing.
  if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) != static_cast<ssize_t>(sizeof seed)) seed ^= reinterpret_cast<std::uintptr_t>(&seed);
  return seed;
}

}  // namespace sluice::lua
