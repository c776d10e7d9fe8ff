#include "proxy/engine/seed.h"

#include <sys/random.h>

#include "vm/base/check.h"

namespace sluice::proxy {

std::string_view Seed::bytes() {
  if (!drawn_) {
    // So few bytes come whole; before the system's generator is ready the call waits, at boot only.
    SLUICE_CHECK(getrandom(bytes_.data(), bytes_.size(), 0) == static_cast<ssize_t>(bytes_.size()));
    drawn_ = true;
  }
  return {bytes_.data(), bytes_.size()};
}

}  // namespace sluice::proxy
