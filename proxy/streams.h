// Lines that somebody follows as they happen (`sluicectl watch`): a bounded queue from all threads to control.
//
// Each line is one JSON object, made by the thread that says it:
//
//   {"stream":"user","time":"2026-11-30T21:50:01.123Z","level":"info","worker":0,"text":"..."}
//
// `stream`, `time` (UTC) and `level` are in every line, `worker` in those of a worker, then the line's own fields in their
// order. When the queue is full a line is dropped and counted; who says it never waits.
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "proxy/wake.h"

namespace sluice::proxy {

enum class LogLevel : std::uint8_t;

enum class Stream : std::uint8_t { requests, events, user };
inline constexpr std::array<std::string_view, 3> kStreams = {"requests", "events", "user"};
std::optional<Stream> find_stream(std::string_view name);

// One field of a line. Life: of the call it is handed to.
struct Field {
  enum class Kind : std::uint8_t { text, number, raw };
  Field() = default;
  Field(std::string_view its_name, std::string_view its_text) : name(its_name), text(its_text) {}
  Field(std::string_view its_name, const char* its_text) : name(its_name), text(its_text) {}
  Field(std::string_view its_name, const std::string& its_text) : name(its_name), text(its_text) {}
  Field(std::string_view its_name, std::uint64_t its_number) : name(its_name), number(its_number), kind(Kind::number) {}
  // A value that is JSON already.
  static Field raw(std::string_view its_name, std::string_view json) {
    Field f(its_name, json);
    f.kind = Kind::raw;
    return f;
  }
  std::string_view name, text;
  std::uint64_t number = 0;
  Kind kind = Kind::text;
};

// `text` as a JSON string; bytes that are no UTF-8 become U+FFFD.
void append_json_text(std::string& out, std::string_view text);
// Milliseconds since 1970 as "2026-11-30T21:50:01.123Z".
std::string time_text(std::uint64_t wall_ms);

// Thread: watched() and say() any; the rest control.
class Streams {
 public:
  static constexpr int kNoWorker = -1;
  explicit Streams(std::size_t capacity_bytes = 512u << 10) : capacity_(capacity_bytes) {}
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;

  // Asked before a line's parts are put together: when nobody watches, that is all it costs.
  bool watched(Stream s) const { return (watched_.load(std::memory_order_relaxed) >> static_cast<unsigned>(s) & 1) != 0; }
  void say(Stream s, LogLevel level, int worker, std::span<const Field> fields);
  void say(Stream s, LogLevel level, int worker, std::initializer_list<Field> fields) {
    say(s, level, worker, std::span<const Field>(fields.begin(), fields.size()));
  }

  // What is said before somebody watches, or after, is nobody's.
  void watch(Stream s, bool wanted);
  // Hands each waiting line (with its line feed) to `line(stream, text)`, oldest first, and then how many of a stream the
  // queue had no room for to `dropped(stream, count)`. False: there was nothing, and the next line rings wake(); until
  // then nobody is woken, so that whoever drains looks again by itself.
  template <class Line, class Dropped>
  bool drain(Line&& line, Dropped&& dropped) {
    std::array<std::uint64_t, kStreams.size()> lost{};
    if (!swap(lost)) return false;
    for (std::size_t at = 0; at < batch_.size();) {
      const std::size_t end = batch_.find('\n', at) + 1;
      line(static_cast<Stream>(batch_[at] - '0'), std::string_view(batch_).substr(at + 1, end - at - 1));
      at = end;
    }
    batch_.clear();
    for (std::size_t i = 0; i < lost.size(); ++i)
      if (lost[i] != 0) dropped(static_cast<Stream>(i), lost[i]);
    return true;
  }
  const Wake& wake() const { return wake_; }

 private:
  bool swap(std::array<std::uint64_t, kStreams.size()>& lost);

  const std::size_t capacity_;
  Wake wake_;
  std::atomic<std::uint32_t> watched_{0};      // a bit for each
  std::mutex mutex_;                           // held to append one line, or for a swap
  std::string lines_;                          // guarded by mutex_: the stream's digit, the line, a line feed; again
  std::array<std::uint64_t, kStreams.size()> lost_{};   // guarded by mutex_
  bool waits_ = true;                          // guarded by mutex_: the reader sleeps until it is rung
  std::string batch_;                          // the reader's
};

}  // namespace sluice::proxy
