// What the server says about itself: one line per event on standard error, written by a thread of its own.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

namespace sluice::proxy {

enum class LogLevel : std::uint8_t { debug, info, warn, error, off };
std::optional<LogLevel> find_log_level(std::string_view name);     // "debug", "info", "warn", "error", "off"
inline constexpr std::string_view kLogLevels = "debug, info, warn, error, off";

// Thread: any. A caller never waits for the disk or the terminal: when lines come faster than they can be written, the
//         oldest of those that wait are dropped, and how many is said.
class Log {
 public:
  virtual ~Log() = default;
  // A line feed inside becomes "\n" and other control bytes "\x1b": one event stays one line, and a terminal is safe.
  virtual void write(LogLevel level, std::string_view line) = 0;
  virtual bool takes(LogLevel level) const = 0;
  virtual void set_level(LogLevel level) = 0;

  void debug(std::string_view line) { write(LogLevel::debug, line); }
  void info(std::string_view line) { write(LogLevel::info, line); }
  void warn(std::string_view line) { write(LogLevel::warn, line); }
  void error(std::string_view line) { write(LogLevel::error, line); }
};

// To the descriptor `fd` (2: standard error), which stays the caller's.
// Life: made after signals are blocked: its thread inherits the mask. Destroying it writes what still waits.
std::unique_ptr<Log> make_log(int fd, LogLevel level);

}  // namespace sluice::proxy
