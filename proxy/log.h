// What the server says about itself: one line per event on standard error, written by a thread of its own; and on the
// streams that somebody follows.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string_view>

#include "proxy/streams.h"

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

  // Something that happened to the server: the line for the log, and for who watches `events` also a name (snake_case:
  // "reloaded", "backend_bad") and what it was about: {"event":NAME,"text":LINE,...}. Watchers hear it at any level.
  //   log.event(LogLevel::warn, "backend_bad", "backend east-1 is bad: refused", {{"backend", label}, {"failures", n}});
  void event(LogLevel level, std::string_view name, std::string_view line, std::initializer_list<Field> fields = {});

  // Events without a name of their own.
  void debug(std::string_view line) { event(LogLevel::debug, "log", line); }
  void info(std::string_view line) { event(LogLevel::info, "log", line); }
  void warn(std::string_view line) { event(LogLevel::warn, "log", line); }
  void error(std::string_view line) { event(LogLevel::error, "log", line); }

  // Null: nobody can watch. Set before other threads write; outlives them.
  void set_streams(Streams* streams) { streams_ = streams; }
  Streams* streams() const { return streams_; }
  bool watched(Stream s) const { return streams_ != nullptr && streams_->watched(s); }

 private:
  Streams* streams_ = nullptr;
};

// To the descriptor `fd` (2: standard error), which stays the caller's.
// Life: made after signals are blocked: its thread inherits the mask. Destroying it writes what still waits.
std::unique_ptr<Log> make_log(int fd, LogLevel level);

}  // namespace sluice::proxy
