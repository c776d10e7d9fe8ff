#include "proxy/listener.h"

#include <linux/filter.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "vm/base/handle.h"

namespace sluice::proxy {
namespace {

constexpr int kBacklog = 4096;          // the kernel caps it at net.core.somaxconn
using AddressPtr = Handle<addrinfo, freeaddrinfo>;

int open_socket(const Address& a) {
  const int fd = socket(a.at.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  const int on = 1;
  if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (fd >= 0 && a.at.ss_family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  return fd;
}

bool bind_to(int fd, Address& address, bool plainly) {
  const int on = 1;
  if (!plainly && setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) != 0) return false;
  if (bind(fd, reinterpret_cast<const sockaddr*>(&address.at), address.size) != 0) return false;
  // Set afterwards, so that the port is never free in between and others may join.
  if (plainly && setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) != 0) return false;
  socklen_t size = sizeof address.at;
  return getsockname(fd, reinterpret_cast<sockaddr*>(&address.at), &size) == 0;
}

std::string cannot(const std::string& where, const char* why) { return "cannot listen on " + where + ": " + why; }

}  // namespace

std::uint16_t Address::port() const {
  return ntohs(at.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(at).sin6_port
                                        : reinterpret_cast<const sockaddr_in&>(at).sin_port);
}

void Address::set_port(std::uint16_t port) {
  if (at.ss_family == AF_INET6) reinterpret_cast<sockaddr_in6&>(at).sin6_port = htons(port);
  else reinterpret_cast<sockaddr_in&>(at).sin_port = htons(port);
}

bool operator==(const Address& a, const Address& b) {
  if (a.at.ss_family != b.at.ss_family || a.port() != b.port()) return false;
  if (a.at.ss_family == AF_INET6) {
    const auto& x = reinterpret_cast<const sockaddr_in6&>(a.at);
    const auto& y = reinterpret_cast<const sockaddr_in6&>(b.at);
    return std::memcmp(&x.sin6_addr, &y.sin6_addr, sizeof x.sin6_addr) == 0 && x.sin6_scope_id == y.sin6_scope_id;
  }
  return reinterpret_cast<const sockaddr_in&>(a.at).sin_addr.s_addr == reinterpret_cast<const sockaddr_in&>(b.at).sin_addr.s_addr;
}

Result<Address, std::string> find_address(const std::string& host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  if (const int e = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found); e != 0)
    return cannot(host + ":" + std::to_string(port), gai_strerror(e));
  const AddressPtr first(found);
  Address address;
  std::memcpy(&address.at, first->ai_addr, first->ai_addrlen);
  address.size = first->ai_addrlen;
  return address;
}

ListenSocket::~ListenSocket() { close(fd_); }

// Source: man 7 socket, SO_ATTACH_FILTER; a TCP socket's filter sees segments from their header on, and byte 13 has the
// flags. Connections that are accepted meanwhile keep the filter: none of their segments is a SYN alone.
void ListenSocket::refuse_new() const {
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 13),
      BPF_STMT(BPF_ALU | BPF_AND | BPF_K, TH_SYN | TH_ACK),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, TH_SYN, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, 0),
      BPF_STMT(BPF_RET | BPF_K, 0xffff'ffff),
  };
  const sock_fprog program{static_cast<unsigned short>(std::size(code)), code};
  // Where filters are not allowed, those who come in the very last moment are reset.
  setsockopt(fd_, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
}

void ListenSocket::take_new() const {
  const int none = 0;
  setsockopt(fd_, SOL_SOCKET, SO_DETACH_FILTER, &none, sizeof none);
}

Result<std::vector<ListenSocketPtr>, std::string> open_sockets(const std::string& where, Address& address, std::size_t count,
                                                               bool share) {
  std::vector<ListenSocketPtr> out;
  const auto failed = [&](int error) {
    if (error == EADDRINUSE) return cannot(where, ("port " + std::to_string(address.port()) + " is in use").c_str());
    return cannot(where, std::strerror(error));
  };
  for (std::size_t i = 0; i < count; ++i) {
    const int fd = open_socket(address);
    if (fd < 0) return failed(errno);
    out.push_back(std::make_shared<const ListenSocket>(fd));
    // With SO_REUSEPORT from the start, another process of the same user would share the port unseen.
    if (!bind_to(fd, address, i == 0 && !share)) return failed(errno);
  }
  for (const ListenSocketPtr& socket : out)
    if (listen(socket->fd(), kBacklog) != 0) return failed(errno);
  return out;
}

Result<Listeners, std::string> open_listeners(const std::string& host, std::uint16_t port, std::size_t count) {
  Result<Address, std::string> address = find_address(host, port);
  if (!address) return std::move(address).error();
  Result<std::vector<ListenSocketPtr>, std::string> sockets = open_sockets(host + ":" + std::to_string(port), *address, count, false);
  if (!sockets) return std::move(sockets).error();
  return Listeners{address->port(), *std::move(sockets)};
}

}  // namespace sluice::proxy
