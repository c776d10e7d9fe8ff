#include "proxy/wake.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace sluice::proxy {

Wake::Wake() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
Wake::~Wake() {
  if (fd_ >= 0) close(fd_);
}

void Wake::ring() const {
  const std::uint64_t one = 1;
  // The counter cannot overflow before a reader takes it; a full one still reads as rung.
  [[maybe_unused]] const auto n = write(fd_, &one, sizeof one);
}

void Wake::quiet() const {
  std::uint64_t n = 0;
  [[maybe_unused]] const auto got = read(fd_, &n, sizeof n);
}

void Wake::wait(int timeout_ms) const {
  pollfd p{fd_, POLLIN, 0};
  if (poll(&p, 1, timeout_ms) > 0) quiet();
}

}  // namespace sluice::proxy
