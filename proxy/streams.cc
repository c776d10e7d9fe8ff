#include "proxy/streams.h"

#include <time.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <utility>

#include "proxy/log.h"
#include "vm/base/json.h"
#include "vm/base/utf8.h"

namespace sluice::proxy {
namespace {

constexpr std::size_t kTextBytes = 8192;                      // of one field; the rest is left out
constexpr std::array<std::string_view, 5> kLevels = {"debug", "info", "warn", "error", "off"};

std::uint64_t wall_ms() {
  timespec t{};
  clock_gettime(CLOCK_REALTIME, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1000 + static_cast<std::uint64_t>(t.tv_nsec) / 1'000'000;
}

void append_number(std::string& out, std::uint64_t n) {
  char digits[20];
  out.append(digits, std::to_chars(digits, digits + sizeof digits, n).ptr);
}

// How many bytes the character that begins `text` has; 0: it is none.
std::size_t character(std::string_view text) {
  for (std::size_t n = 1; n <= std::min<std::size_t>(4, text.size()); ++n)
    if (valid_utf8(text.substr(0, n))) return n;
  return 0;
}

}  // namespace

std::optional<Stream> find_stream(std::string_view name) {
  for (std::size_t i = 0; i < kStreams.size(); ++i)
    if (kStreams[i] == name) return static_cast<Stream>(i);
  return std::nullopt;
}

void append_json_text(std::string& out, std::string_view text) {
  if (valid_utf8(text)) return append_json_string(out, text);
  std::string whole;
  while (!text.empty()) {
    const std::size_t n = character(text);
    if (n == 0) whole.append("\xef\xbf\xbd");
    else whole.append(text, 0, n);
    text.remove_prefix(std::max<std::size_t>(n, 1));
  }
  append_json_string(out, whole);
}

std::string time_text(std::uint64_t ms) {
  const auto seconds = static_cast<time_t>(ms / 1000);
  tm utc{};
  gmtime_r(&seconds, &utc);
  char text[40];
  const std::size_t n = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &utc);
  std::snprintf(text + n, sizeof text - n, ".%03uZ", static_cast<unsigned>(ms % 1000));
  return text;
}

void Streams::say(Stream s, LogLevel level, int worker, std::span<const Field> fields) {
  if (!watched(s)) return;
  const auto which = static_cast<std::size_t>(s);
  std::string line;
  line.reserve(512);
  line.push_back(static_cast<char>('0' + which));
  line.append("{\"stream\":\"").append(kStreams[which]).append("\",\"time\":\"").append(time_text(wall_ms()));
  line.append("\",\"level\":\"").append(kLevels[static_cast<std::size_t>(level)]).append("\"");
  if (worker != kNoWorker) {
    line.append(",\"worker\":");
    append_number(line, static_cast<std::uint64_t>(worker));
  }
  for (const Field& f : fields) {
    line.push_back(',');
    append_json_string(line, f.name);
    line.push_back(':');
    if (f.kind == Field::Kind::number) append_number(line, f.number);
    else if (f.kind == Field::Kind::raw) line.append(f.text);
    else append_json_text(line, f.text.substr(0, kTextBytes));
  }
  line.append("}\n");

  bool ring = false;
  {
    const std::lock_guard<std::mutex> hold(mutex_);
    if (lines_.size() + line.size() > capacity_) ++lost_[which];
    else lines_.append(line);
    ring = waits_;
    waits_ = false;
  }
  if (ring) wake_.ring();
}

void Streams::watch(Stream s, bool wanted) {
  const std::uint32_t bit = 1u << static_cast<unsigned>(s);
  const std::uint32_t before = watched_.load(std::memory_order_relaxed);
  const std::uint32_t now = wanted ? before | bit : before & ~bit;
  if (now == before) return;
  const std::lock_guard<std::mutex> hold(mutex_);
  watched_.store(now, std::memory_order_relaxed);
  if (wanted) lost_[static_cast<std::size_t>(s)] = 0;
  if (now != 0) return;
  lines_ = {};                               // the room too: it was for those who watched
  batch_ = {};
  lost_ = {};
  waits_ = true;
}

bool Streams::swap(std::array<std::uint64_t, kStreams.size()>& lost) {
  const std::lock_guard<std::mutex> hold(mutex_);
  waits_ = lines_.empty() && std::all_of(lost_.begin(), lost_.end(), [](std::uint64_t n) { return n == 0; });
  if (waits_) return false;
  batch_.swap(lines_);
  lost = std::exchange(lost_, {});
  return true;
}

}  // namespace sluice::proxy
