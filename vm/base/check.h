// What to do when Sluice itself is wrong: say where, and stop.
#pragma once

namespace sluice {
[[noreturn]] void check_failed(const char* what, const char* file, int line);
}

// Where going on would corrupt data: always on.
#define SLUICE_CHECK(x) ((x) ? static_cast<void>(0) : ::sluice::check_failed(#x, __FILE__, __LINE__))

// Debug builds only.
#ifdef NDEBUG
#define SLUICE_ASSERT(x) static_cast<void>(0)
#else
#define SLUICE_ASSERT(x) SLUICE_CHECK(x)
#endif
