// Listening sockets: several on one address, so that each worker accepts on one of its own, and no second process on it
// unseen.
#pragma once
#include <sys/socket.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "vm/base/result.h"

namespace sluice::proxy {

// Where a socket is or will be bound.
struct Address {
  sockaddr_storage at{};
  socklen_t size = 0;
  std::uint16_t port() const;
  void set_port(std::uint16_t port);
  friend bool operator==(const Address& a, const Address& b);
};

// `host` is a numeric address, or a name that resolves. Errors: one sentence with the address and the reason.
// Thread: control: may look a name up.
Result<Address, std::string> find_address(const std::string& host, std::uint16_t port);

// Thread: any. Life: shared by control and the worker that accepts on it; closed with the last of them, which resets what
// waits in its queue.
class ListenSocket {
 public:
  explicit ListenSocket(int fd) : fd_(fd) {}
  ~ListenSocket();
  ListenSocket(const ListenSocket&) = delete;
  ListenSocket& operator=(const ListenSocket&) = delete;

  int fd() const { return fd_; }
  // Drops what asks for a new connection, so that clients ask again a second later, while those half made get ready to be
  // accepted: closing the socket after that resets nobody.
  void refuse_new() const;
  void take_new() const;               // ends that

 private:
  const int fd_;
};
using ListenSocketPtr = std::shared_ptr<const ListenSocket>;

class Tls;

// What a worker accepts on, and what the connections have that come from there.
struct Listening {
  ListenSocketPtr socket;
  std::string tag;                     // empty: none
  std::shared_ptr<const Tls> tls;      // null: they are plain
};

// Binds `address` (port 0: the kernel picks, and `address` says which) `count` times with SO_REUSEPORT and listens there.
// The first is bound plainly, which fails when another process listens there, unless we `share` the port with sockets of
// our own. `where` is how errors call the address.
// Errors: one sentence ("cannot listen on 127.0.0.1:80: Permission denied").
Result<std::vector<ListenSocketPtr>, std::string> open_sockets(const std::string& where, Address& address, std::size_t count,
                                                               bool share);

// Both for one address. Thread: control.
struct Listeners {
  std::uint16_t port = 0;                 // the one that was bound
  std::vector<ListenSocketPtr> sockets;
  // Of the n-th, without a tag.
  std::vector<Listening> listening(std::size_t n) const { return {{sockets[n], {}, nullptr}}; }
};
Result<Listeners, std::string> open_listeners(const std::string& host, std::uint16_t port, std::size_t count);

}  // namespace sluice::proxy
