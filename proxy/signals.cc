#include "proxy/signals.h"

#include <pthread.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>

#include "vm/base/check.h"

namespace sluice::proxy {
namespace {

sigset_t set_of(std::initializer_list<int> signals) {
  sigset_t set;
  sigemptyset(&set);
  for (const int s : signals) sigaddset(&set, s);
  return set;
}

}  // namespace

Signals::Signals() {
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);    // a file at its limit (ulimit -f) is then a write that fails, and the store is full
  const sigset_t set = set_of({SIGHUP, SIGINT, SIGTERM});
  // A signal that was ignored when we were started (nohup, a background job of a plain shell) is dropped, not queued.
  for (const int s : {SIGHUP, SIGINT, SIGTERM}) signal(s, SIG_DFL);
  SLUICE_CHECK(pthread_sigmask(SIG_BLOCK, &set, nullptr) == 0);
  fd_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  SLUICE_CHECK(fd_ >= 0);
}

Signals::~Signals() { close(fd_); }

std::optional<int> Signals::next() {
  signalfd_siginfo info;
  if (read(fd_, &info, sizeof info) != static_cast<ssize_t>(sizeof info)) return std::nullopt;
  return static_cast<int>(info.ssi_signo);
}

void Signals::let_next_end_us() {
  const sigset_t set = set_of({SIGINT, SIGTERM});
  SLUICE_CHECK(pthread_sigmask(SIG_UNBLOCK, &set, nullptr) == 0);
}

}  // namespace sluice::proxy
