// Whether a backend is worth asking: what failed attempts add up to, and when one that is down is tried again.
//
//   up --failures, spread over time--> down --its wait is over--> trying --connected--> ready --a request--> on_trial
//   ^---------------- a whole answer, from wherever ----------------------------------------------------------/
//   trying and on_trial fall back to down, and wait longer
#pragma once
#include <cstdint>

#include "proxy/remote/options.h"

namespace sluice::proxy {

// Knows no sockets and no clock: times are handed in.
// Units:  microseconds. `chance` is a random number, 0 to 1: it spreads the waits of many workers and nodes.
// Thread: worker.
class Health {
 public:
  enum class State : std::uint8_t { up, down, trying, ready, on_trial };
  // Failures closer together than this are one: a burst of requests that all meet a refusing port is one attempt.
  static constexpr std::uint64_t kSpacing_us = 250'000;

  explicit Health(const BackendOptions& options) : options_(options) {}

  State state() const { return state_; }
  // True while it is known to be bad.
  bool bad() const { return state_ == State::down || state_ == State::trying || state_ == State::on_trial; }
  // May a request go to it now? One that is `ready` takes a single one: on true, `trial` says whether this is it.
  bool admit(bool& trial);
  // A connection was made.
  void connected() { if (state_ == State::trying) state_ = State::ready; }
  // A whole answer came. True: it is up again.
  bool succeeded(std::uint64_t now_us);
  // Not connected, broken off, too late. `trial`: of the attempt that admit() or try_again() gave out. True: it is down
  // from now on, or still; try it at retry_at_us().
  bool failed(std::uint64_t now_us, bool trial, double chance);
  // The trial ended without a word: its client left.
  void undecided() { if (state_ == State::on_trial) state_ = State::ready; }
  // The wait is over: one connection is to be made.
  void try_again() { state_ = State::trying; }

  std::uint64_t retry_at_us() const { return retry_at_us_; }
  std::uint64_t wait_us() const { return wait_us_; }

 private:
  void go_down(std::uint64_t now_us, double chance);

  const BackendOptions& options_;
  State state_ = State::up;
  bool was_down_ = false;
  std::uint32_t failures_ = 0, level_ = 0;
  std::uint64_t counted_at_us_ = 0, up_since_us_ = 0, retry_at_us_ = 0, wait_us_ = 0;
};

}  // namespace sluice::proxy
