// An eventfd that tells a thread to look into its inbox.
#pragma once
#include <cstdint>

namespace sluice::proxy {

// Thread: ring() from any; the rest from the reader.
class Wake {
 public:
  Wake();
  ~Wake();
  Wake(const Wake&) = delete;
  Wake& operator=(const Wake&) = delete;

  void ring() const;
  void quiet() const;          // takes what was rung
  void wait(int timeout_ms) const;  // blocks until rung or the time has passed; -1: for ever
  int fd() const { return fd_; }
  bool works() const { return fd_ >= 0; }   // false: the process had no descriptor left; whoever made it has to look

 private:
  int fd_;
};

}  // namespace sluice::proxy
