// The signals that the process is told things by, as something that a loop can wait for.
#pragma once
#include <optional>

namespace sluice::proxy {

// Takes SIGHUP, SIGINT and SIGTERM for itself and ignores SIGPIPE.
// Thread: control. Life: made before any other thread, which inherits the mask.
class Signals {
 public:
  Signals();
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  int fd() const { return fd_; }        // readable when next() has one
  std::optional<int> next();            // never waits
  // From here on SIGINT and SIGTERM end the process as they do by themselves, also while control is busy. One that is
  // waiting already counts.
  void let_next_end_us();

 private:
  int fd_;
};

}  // namespace sluice::proxy
