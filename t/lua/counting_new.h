// Counts what this program's threads take from the heap.
#pragma once
#include <cstdint>

namespace sluice::lua::harness {

// Calls of operator new by this thread so far: the watchdog and the log have their own.
std::uint64_t& allocations();

}  // namespace sluice::lua::harness
