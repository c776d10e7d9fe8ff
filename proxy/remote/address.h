// Where a backend is: "HOST:PORT", "[::1]:PORT" or "unix:PATH", and the socket addresses of it.
#pragma once
#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "vm/base/result.h"

namespace sluice::proxy {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
  std::string text;                           // "10.0.0.1:8767", "[::1]:8767", "unix:/run/x.sock"
  int family() const { return storage.ss_family; }
};

// Shape: `path` of a Unix socket, or `host` and `port`.
struct BackendPlace {
  std::string host, path;
  std::uint16_t port = 0;
  std::string text() const;                   // as it is written in a config
};

// Errors: a sentence.
Result<BackendPlace, std::string> read_place(std::string_view text);

// All addresses of a place, in the order in which to try them.
// Errors:  a sentence: an unknown name, a path that is too long.
// Thread:  control: a name is looked up, which may take seconds.
// Source:  getaddrinfo(3); RFC 6724 orders them.
Result<std::vector<SocketAddress>, std::string> resolve(const BackendPlace& place);

}  // namespace sluice::proxy
