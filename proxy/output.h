// What waits to be written to one socket: heads and small bodies in one run of bytes, large bodies where they are.
#pragma once
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "proxy/buffer.h"

namespace sluice::proxy {

class ConnectionExchange;

// Thread: worker. One is enough for a whole worker as long as sockets take everything at once; a connection keeps one
// only while its reader is slow.
class Output {
 public:
  // Room for `n` more bytes of our own; then commit() what was used of it. Life: until the next call.
  char* reserve(std::size_t n) {
    if (size_ + n > capacity_) grow(size_ + n);
    return bytes_.get() + size_;
  }
  void commit(std::size_t n) { size_ += n; }
  void append(std::string_view bytes) {
    char* const to = reserve(bytes.size());
    if (!bytes.empty()) __builtin_memcpy(to, bytes.data(), bytes.size());
    size_ += bytes.size();
  }
  // Bytes that stay where they are until keeper() or the holder lets go.
  void lend(std::string_view bytes);
  // Copies what is left of the lent bytes into room of `budget`'s, so that whoever lent them may go; held() is the
  // caller's to empty. False: the budget has no room, and nothing has changed.
  bool take_over(Budget& budget);
  // An exchange whose body was lent: recycled by whoever empties this.
  void hold(ConnectionExchange* exchange) { held_.push_back(exchange); }
  std::vector<ConnectionExchange*>& held() { return held_; }

  std::size_t own_bytes() const { return size_; }
  bool empty() const { return size_ == 0 && lent_.empty(); }
  std::uint64_t left() const { return size_ + lent_bytes_ - written_; }
  std::size_t lent_count() const { return lent_.size(); }
  // One system call. Returns what the socket took, or -1 with errno as writev(2) left it.
  ssize_t write_to(int fd);
  bool done() const { return left() == 0; }
  // For who takes the bytes elsewhere than to a socket: the next of what is left that lie in one piece, and that so many
  // of what is left were taken.
  std::string_view front() const;
  void advance(std::size_t n);
  // Keeps room up to 64 KiB. held() is to be empty.
  void reset();

 private:
  struct Lent {
    std::size_t behind;               // own bytes before it
    std::string_view bytes;
  };
  void grow(std::size_t need);

  std::unique_ptr<char[]> bytes_;
  std::size_t size_ = 0, capacity_ = 0;
  std::vector<Lent> lent_;
  Buffer copied_;                     // what take_over() made of them
  std::uint64_t lent_bytes_ = 0, written_ = 0;
  std::vector<ConnectionExchange*> held_;
  // Where writing stands: own bytes and lent pieces that are behind it.
  std::size_t own_at_ = 0, lent_at_ = 0, piece_at_ = 0;
};

}  // namespace sluice::proxy
