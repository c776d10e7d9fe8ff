#include "proxy/log.h"

#include <spdlog/async_logger.h>
#include <spdlog/details/null_mutex.h>
#include <spdlog/details/thread_pool.h>
#include <spdlog/fmt/fmt.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <utility>
#include <vector>

namespace sluice::proxy {
namespace {

constexpr std::size_t kWaitingLines = 8192;
constexpr std::size_t kLineBytes = 8192;                      // the rest of a line is left out
constexpr std::array<std::string_view, 5> kNames = {"debug", "info", "warn", "error", "off"};

// A terminal would obey them, and whoever reads lines would see more of them than were written.
bool is_control(char c) { return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f; }

spdlog::level::level_enum spd(LogLevel level) {
  switch (level) {
    case LogLevel::debug: return spdlog::level::debug;
    case LogLevel::info: return spdlog::level::info;
    case LogLevel::warn: return spdlog::level::warn;
    case LogLevel::error: return spdlog::level::err;
    case LogLevel::off: return spdlog::level::off;
  }
  return spdlog::level::off;
}

// Thread: log, the pool's only one.
class Descriptor final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  // Set before the first line.
  void count_dropped_of(std::weak_ptr<spdlog::details::thread_pool> pool) { pool_ = std::move(pool); }

 private:
  void sink_it_(const spdlog::details::log_msg& line) override {
    if (const auto pool = pool_.lock()) {
      const std::size_t dropped = pool->overrun_counter();
      if (dropped != dropped_) put(std::to_string(dropped - std::exchange(dropped_, dropped)) + " log lines dropped\n");
    }
    spdlog::memory_buf_t text;
    formatter_->format(line, text);
    put({text.data(), text.size()});
  }
  void flush_() override {}
  void put(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t n = ::write(fd_, bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return;     // nobody reads: there is no other place to say so
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
  }
  const int fd_;
  std::weak_ptr<spdlog::details::thread_pool> pool_;
  std::size_t dropped_ = 0;
};

class AsyncLog final : public Log {
 public:
  AsyncLog(int fd, LogLevel level)
      : pool_(std::make_shared<spdlog::details::thread_pool>(kWaitingLines, 1)) {
    auto sink = std::make_shared<Descriptor>(fd);
    sink->count_dropped_of(pool_);
    logger_ = std::make_shared<spdlog::async_logger>("sluice", std::move(sink), pool_,
                                                     spdlog::async_overflow_policy::overrun_oldest);
    logger_->set_formatter(std::make_unique<spdlog::pattern_formatter>("%Y-%m-%dT%H:%M:%S.%eZ %l %v",
                                                                       spdlog::pattern_time_type::utc));
    logger_->set_level(spd(level));
  }
  // The pool writes what waits, then ends; only then may the logger and its sink go.
  ~AsyncLog() override { pool_.reset(); }

  void write(LogLevel level, std::string_view line) override {
    if (!takes(level)) return;
    while (!line.empty() && line.back() == '\n') line.remove_suffix(1);
    if (line.size() > kLineBytes) {
      const std::size_t left_out = line.size() - kLineBytes;
      return write(level, fmt::format("{} ... and {} bytes more", line.substr(0, kLineBytes - 40), left_out + 40));
    }
    if (std::none_of(line.begin(), line.end(), is_control)) {
      logger_->log(spd(level), spdlog::string_view_t(line.data(), line.size()));
      return;
    }
    std::string plain;
    for (const char c : line) {
      if (c == '\n') plain += "\\n";
      else if (is_control(c)) plain += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
      else plain += c;
    }
    logger_->log(spd(level), plain);
  }
  bool takes(LogLevel level) const override { return level != LogLevel::off && logger_->should_log(spd(level)); }
  void set_level(LogLevel level) override { logger_->set_level(spd(level)); }

 private:
  std::shared_ptr<spdlog::async_logger> logger_;
  std::shared_ptr<spdlog::details::thread_pool> pool_;
};

}  // namespace

std::optional<LogLevel> find_log_level(std::string_view name) {
  for (std::size_t i = 0; i < kNames.size(); ++i)
    if (kNames[i] == name) return static_cast<LogLevel>(i);
  return std::nullopt;
}

void Log::event(LogLevel level, std::string_view its_name, std::string_view line, std::initializer_list<Field> fields) {
  write(level, line);
  if (!watched(Stream::events)) return;
  std::vector<Field> all{{"event", its_name}, {"text", line}};
  all.insert(all.end(), fields.begin(), fields.end());
  streams_->say(Stream::events, level, Streams::kNoWorker, all);
}

std::unique_ptr<Log> make_log(int fd, LogLevel level) { return std::make_unique<AsyncLog>(fd, level); }

}  // namespace sluice::proxy
