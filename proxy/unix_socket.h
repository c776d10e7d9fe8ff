// A Unix socket at a path, for this user alone: bound where a dead server left one, never where a live one has one.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>

#include "vm/base/result.h"

namespace sluice::proxy {

// Thread: control.
class UnixSocket {
 public:
  enum class Kind : std::uint8_t { stream, datagram };    // a stream listens

  // Binds and, of a stream, listens; mode 0600. A socket that nobody answers at is replaced; a path may be as long as the
  // file system takes (the kernel's 107 bytes are those of its last part).
  // Errors: "PATH: why"; of a live one with the process that has it.
  static Result<std::unique_ptr<UnixSocket>, std::string> open(const std::string& path, Kind kind);
  // Closes, and removes the file unless it is another's by now.
  ~UnixSocket();
  UnixSocket(const UnixSocket&) = delete;
  UnixSocket& operator=(const UnixSocket&) = delete;

  int fd() const { return fd_; }                // does not block
  bool there() const;                           // its file is still where it was bound
  const std::string& path() const { return path_; }

 private:
  UnixSocket(std::string path, int fd, dev_t device, ino_t inode) : path_(std::move(path)), fd_(fd), device_(device), inode_(inode) {}
  const std::string path_;
  const int fd_;
  const dev_t device_;
  const ino_t inode_;
};

// A connected stream, which blocks. Errors: "PATH: why".
Result<int, std::string> connect_unix(const std::string& path);

}  // namespace sluice::proxy
