// A process of its own for one test: what it does may end in a signal, or is ended by one.
#pragma once
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace sluice::store {

// Thread: the test's. The child must not use what the parent has open of a store.
class Child {
 public:
  // Runs `body` with the writing end of a pipe, in a fork; its result is the exit status.
  template <class Body>
  explicit Child(Body&& body) {
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    pid_ = fork();
    REQUIRE(pid_ >= 0);
    if (pid_ == 0) {
      close(ends[0]);
      // The test runner's handlers would report the child's end as the parent's.
      for (int number : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTERM}) signal(number, SIG_DFL);
      _exit(body(ends[1]));
    }
    close(ends[1]);
    out_ = ends[0];
  }
  ~Child() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      wait();
    }
    close(out_);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }
  int out() const { return out_; }
  void end() { kill(pid_, SIGKILL); }
  // The wait status.
  int wait() {
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {}
    pid_ = -1;
    return status;
  }

 private:
  pid_t pid_ = -1;
  int out_ = -1;
};

}  // namespace sluice::store
