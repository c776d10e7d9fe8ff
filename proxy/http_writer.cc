#include "proxy/http_writer.h"

#include <charconv>
#include <cstring>
#include <ctime>

#include "proxy/ascii.h"

namespace sluice::proxy {
namespace {

constexpr std::uint64_t kCopied = 16 * 1024;
constexpr std::size_t kHeadRoom = 640;   // all that we write ourselves, all Allow names included

// Appends to room that was reserved.
class Pen {
 public:
  explicit Pen(char* at) : at_(at), start_(at) {}
  Pen& operator<<(std::string_view s) {
    if (!s.empty()) std::memcpy(at_, s.data(), s.size());
    at_ += s.size();
    return *this;
  }
  Pen& operator<<(std::uint64_t n) {
    at_ = std::to_chars(at_, at_ + 20, n).ptr;
    return *this;
  }
  std::size_t written() const { return static_cast<std::size_t>(at_ - start_); }

 private:
  char* at_;
  char* start_;
};

// Whether whole header lines carry that field. `field` is lower case.
bool has_field(std::string_view lines, std::string_view field) {
  while (!lines.empty()) {
    const std::size_t end = lines.find('\n');
    if (lines.size() > field.size() && lines[field.size()] == ':' && same_text(lines.substr(0, field.size()), field))
      return true;
    if (end == lines.npos) return false;
    lines.remove_prefix(end + 1);
  }
  return false;
}

}  // namespace

std::string_view DateLine::at(std::uint64_t wall_ms) {
  const std::uint64_t second = wall_ms / 1000;
  if (second != second_) {
    second_ = second;
    const std::time_t t = static_cast<std::time_t>(second);
    std::tm utc{};
    gmtime_r(&t, &utc);
    constexpr std::string_view days = "SunMonTueWedThuFriSat";
    constexpr std::string_view months = "JanFebMarAprMayJunJulAugSepOctNovDec";
    Pen pen(text_.data());
    const auto two = [](int n) { return std::array<char, 2>{static_cast<char>('0' + n / 10 % 10), static_cast<char>('0' + n % 10)}; };
    const auto put2 = [&](int n) { const auto d = two(n); pen << std::string_view(d.data(), 2); };
    pen << "Date: " << days.substr(static_cast<std::size_t>(utc.tm_wday) * 3, 3) << ", ";
    put2(utc.tm_mday);
    pen << " " << months.substr(static_cast<std::size_t>(utc.tm_mon) * 3, 3) << " ";
    const int year = utc.tm_year + 1900;
    put2(year / 100), put2(year % 100);
    pen << " ";
    put2(utc.tm_hour), pen << ":", put2(utc.tm_min), pen << ":", put2(utc.tm_sec);
    pen << " GMT\r\n";
    size_ = pen.written();
  }
  return {text_.data(), size_};
}

bool none_match_names(const Request& request, std::uint64_t revision) {
  if (revision == 0) return false;
  std::array<char, 24> mine{};
  Pen pen(mine.data());
  pen << "\"" << revision << "\"";
  const std::string_view tag(mine.data(), pen.written());
  bool named = false;
  for (const Header& h : request.headers) {
    if (h.name.size() != 13 || !same_text(h.name, "if-none-match")) continue;
    if (h.value == "*") return true;
    // Our tags hold no comma, so a tag of somebody else's that is cut at one still matches nothing.
    each_token(h.value, [&](std::string_view token) {
      if (token.starts_with("W/")) token.remove_prefix(2);
      named |= token == tag;
    });
  }
  return named;
}

bool write_response(Output& out, const Response& r, const HeadFacts& facts, std::string_view date_line) {
  const bool bodiless = r.status == 204 || r.status == 304;
  const std::uint64_t body_bytes = r.body.size();
  const bool sends_body = !bodiless && !facts.head_request && body_bytes > 0;
  const bool copied = sends_body && body_bytes <= kCopied;
  Pen pen(out.reserve(kHeadRoom + r.content_type.size() + r.headers.size() + (copied ? body_bytes : 0)));

  if (r.status == 200) pen << "HTTP/1.1 200 OK\r\n";
  else pen << "HTTP/1.1 " << std::uint64_t{r.status} << " " << reason(r.status) << "\r\n";
  pen << date_line;
  if (!r.content_type.empty() && !bodiless) pen << "Content-Type: " << r.content_type << "\r\n";
  if (facts.head_request && r.head_length != Response::kBodyLength) {
    if (r.head_length != Response::kNoLength && !bodiless) pen << "Content-Length: " << r.head_length << "\r\n";
  } else if (!bodiless) {
    pen << "Content-Length: " << body_bytes << "\r\n";
  }
  if (r.headers.empty() || !has_field(r.headers, "x-pure-error")) {
    if (r.error == Errc::none) pen << "X-Pure-Error: none\r\n";
    else pen << "X-Pure-Error: " << name(r.error) << "\r\n";
  }
  if (r.revision) pen << "ETag: \"" << r.revision << "\"\r\n";
  if (r.no_store) pen << "Cache-Control: no-store\r\n";
  if (r.retry_after_s) pen << "Retry-After: " << std::uint64_t{r.retry_after_s} << "\r\n";
  if (r.allow) {
    std::string_view before = "Allow: ";
    for (int m = 0; m < kMethods - 1; ++m)
      if (r.allow & (1u << m)) {
        pen << before << name(static_cast<Method>(m));
        before = ", ";
      }
    pen << "\r\n";
  }
  pen << r.headers;
  if (facts.close) pen << "Connection: close\r\n";
  else if (facts.say_keep_alive) pen << "Connection: keep-alive\r\n";
  pen << "\r\n";
  if (copied) {
    if (r.body.buffer || !r.body.loan) pen << r.body.flat();
    else
      for (const std::string_view piece : r.body.pieces) pen << piece;
  }
  out.commit(pen.written());
  if (!sends_body || copied) return false;
  if (r.body.buffer || !r.body.loan) out.lend(r.body.flat());
  else
    for (const std::string_view piece : r.body.pieces) out.lend(piece);
  return true;
}

}  // namespace sluice::proxy
