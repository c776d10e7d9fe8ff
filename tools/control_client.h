// One connection to the control socket of a running server: a line there, lines back (proxy/control_socket.h).
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "vm/base/result.h"

namespace sluice::tools {

class ControlClient {
 public:
  // Errors: "PATH: why", and for the usual reasons what to do.
  static Result<std::unique_ptr<ControlClient>, std::string> connect(const std::string& path);
  ~ControlClient();
  ControlClient(const ControlClient&) = delete;
  ControlClient& operator=(const ControlClient&) = delete;

  // False: the server has gone.
  bool send(std::string_view line);
  enum class Heard { line, end, late };
  // The next line without its line feed. Units: milliseconds; -1: waits for ever.
  Heard hear(std::string& line, int timeout_ms);

 private:
  explicit ControlClient(int fd) : fd_(fd) {}
  const int fd_;
  std::string in_;
  std::size_t at_ = 0;                           // of in_: what was not handed out yet
};

}  // namespace sluice::tools
