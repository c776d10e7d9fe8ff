#include "proxy/listener.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "vm/base/handle.h"

namespace sluice::proxy {
namespace {

constexpr int kBacklog = 4096;          // the kernel caps it at net.core.somaxconn
using AddressPtr = Handle<addrinfo, freeaddrinfo>;

int open_socket(const addrinfo& a) {
  const int fd = socket(a.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  const int on = 1;
  if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (fd >= 0 && a.ai_family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  return fd;
}

std::uint16_t bound_port(int fd) {
  sockaddr_storage at{};
  socklen_t size = sizeof at;
  getsockname(fd, reinterpret_cast<sockaddr*>(&at), &size);
  return ntohs(at.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(at).sin6_port
                                        : reinterpret_cast<sockaddr_in&>(at).sin_port);
}

void set_port(addrinfo& a, std::uint16_t port) {
  if (a.ai_family == AF_INET6) reinterpret_cast<sockaddr_in6*>(a.ai_addr)->sin6_port = htons(port);
  else reinterpret_cast<sockaddr_in*>(a.ai_addr)->sin_port = htons(port);
}

}  // namespace

Result<Listeners, std::string> open_listeners(const std::string& host, std::uint16_t port, std::uint16_t count) {
  const auto where = [&] { return host + ":" + std::to_string(port); };
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  if (const int e = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found); e != 0)
    return "cannot listen on " + where() + ": " + gai_strerror(e);
  const AddressPtr address(found);
  Listeners out;
  const auto failed = [&](int error) {
    for (const int fd : out.fds) close(fd);
    if (error == EADDRINUSE) return "cannot listen on " + where() + ": port " + std::to_string(port) + " is in use";
    return "cannot listen on " + where() + ": " + std::strerror(error);
  };
  const int on = 1;
  for (std::uint16_t i = 0; i < count; ++i) {
    const int fd = open_socket(*address);
    if (fd < 0) return failed(errno);
    out.fds.push_back(fd);
    // The first is bound without SO_REUSEPORT: with it, another process of the same user would share the port unseen.
    // It is set afterwards, so that the port is never free in between and the others may join.
    if (i > 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) != 0) return failed(errno);
    if (bind(fd, address->ai_addr, address->ai_addrlen) != 0) return failed(errno);
    if (i == 0) {
      if (setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) != 0) return failed(errno);
      out.port = bound_port(fd);
      set_port(*address, out.port);
    }
  }
  for (const int fd : out.fds)
    if (listen(fd, kBacklog) != 0) return failed(errno);
  return out;
}

}  // namespace sluice::proxy
