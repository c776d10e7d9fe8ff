// Listening sockets: one per worker on the same port, and no second process on it unseen.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "vm/base/result.h"

namespace sluice::proxy {

struct Listeners {
  std::uint16_t port = 0;                 // the one that was bound
  std::vector<int> fds;                   // one per worker; non-blocking; the caller's to close or to hand to a worker
};

// Binds `host` (a numeric address, or a name that resolves) and `port` (0: the kernel picks) `count` times with
// SO_REUSEPORT, after a plain bind that fails when another process listens there.
// Errors: one sentence with the address and the reason ("port 8767 is in use").
// Thread: control, at start: may look a name up.
Result<Listeners, std::string> open_listeners(const std::string& host, std::uint16_t port, std::uint16_t count);

}  // namespace sluice::proxy
