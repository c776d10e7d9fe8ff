// How a test of a module moves its time: a Unix datagram socket that sets the clock of all stores and runs timers.
//
//   clock MS            the clock of all stores is MS, in ms since 1970; it starts at 0, and moves only so and forward
//   timer STORE NAME    runs the timer now; the answer comes when what it did is durable
//
// Each datagram is answered to the address it came from: "ok", or "error: " and a sentence.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "proxy/engine.h"
#include "proxy/unix_socket.h"
#include "vm/base/result.h"

namespace sluice::proxy {

// Thread: control; the clock any.
class TestControl {
 public:
  // Binds `path`, for this user alone; a socket that a dead process left there is replaced. Errors: a sentence.
  static Result<std::unique_ptr<TestControl>, std::string> open(const std::string& path);
  TestControl(const TestControl&) = delete;
  TestControl& operator=(const TestControl&) = delete;

  const std::atomic<std::uint64_t>& clock_ms() const { return clock_ms_; }
  int fd() const { return socket_->fd(); }               // readable when somebody asks
  // Does and answers what was asked. Never waits but for the timers it runs.
  void hear(EngineControl& engine);

 private:
  explicit TestControl(std::unique_ptr<UnixSocket> socket) : socket_(std::move(socket)) {}
  std::string answer(std::string_view line, EngineControl& engine);

  const std::unique_ptr<UnixSocket> socket_;
  std::atomic<std::uint64_t> clock_ms_{0};
};

}  // namespace sluice::proxy
