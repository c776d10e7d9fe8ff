#include "t/lua/counting_new.h"

#include <cstdlib>
#include <new>

namespace sluice::lua::harness {

std::uint64_t& allocations() {
  thread_local std::uint64_t count = 0;
  return count;
}

}  // namespace sluice::lua::harness

// In a file of its own: where the compiler sees both, it takes a free() behind a new for a mistake.
void* operator new(std::size_t n) {
  ++sluice::lua::harness::allocations();
  if (void* p = std::malloc(n ? n : 1)) return p;
  std::abort();
}
void* operator new[](std::size_t n) { return operator new(n); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t) noexcept { std::free(p); }
