#include "vm/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace sluice {

void check_failed(const char* what, const char* file, int line) {
  std::fprintf(stderr, "sluice: internal error: %s at %s:%d\n", what, file, line);
  std::abort();
}

}  // namespace sluice
