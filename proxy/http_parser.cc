#include "proxy/http_parser.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>

#include "proxy/ascii.h"

namespace sluice::proxy {
namespace {

constexpr std::uint32_t kFirstHead = 1024;          // most heads fit
constexpr std::uint32_t kRetainedHead = 16 * 1024;
constexpr std::uint64_t kDropBytes = 64 * 1024;     // of a declined request's body
constexpr std::uint32_t kExtensionBytes = 256;      // of one chunk
constexpr std::uint16_t kEmptyLines = 8;            // before a request line
constexpr std::size_t kFirstBody = 4096;            // of a chunked body, at least

constexpr std::array<bool, 256> token_table() {
  std::array<bool, 256> t{};
  for (int c = '0'; c <= '9'; ++c) t[static_cast<std::size_t>(c)] = true;
  for (int c = 'a'; c <= 'z'; ++c) t[static_cast<std::size_t>(c)] = t[static_cast<std::size_t>(c - 32)] = true;
  for (const char c : std::string_view("!#$%&'*+-.^_`|~")) t[static_cast<unsigned char>(c)] = true;
  return t;
}
constexpr auto kToken = token_table();

bool is_token(std::string_view s) {
  for (const char c : s)
    if (!kToken[static_cast<unsigned char>(c)]) return false;
  return !s.empty();
}

constexpr std::array<bool, 256> host_table() {
  std::array<bool, 256> t{};
  for (std::size_t c = 0x21; c < 0x7f; ++c) t[c] = true;
  for (const char c : std::string_view(",/@#?\\\"<>")) t[static_cast<unsigned char>(c)] = false;
  return t;
}
constexpr auto kHost = host_table();

bool is_host(std::string_view s) {
  for (const char c : s)
    if (!kHost[static_cast<unsigned char>(c)]) return false;
  return true;
}

// What a field's value may hold: all but control bytes, the tab apart.
bool is_field_value(std::string_view s) {
  std::size_t i = 0;
  for (; i + 8 <= s.size(); i += 8) {
    std::uint64_t w = 0;
    std::memcpy(&w, s.data() + i, sizeof w);
    constexpr std::uint64_t ones = 0x0101010101010101, high = ones * 0x80;
    const std::uint64_t below = (w - ones * 0x20) & ~w & high;   // some byte is under 0x20
    const std::uint64_t del = w ^ (ones * 0x7f);
    if (below | ((del - ones) & ~del & high)) break;             // that may be a tab: look at each
  }
  for (; i < s.size(); ++i) {
    const auto c = static_cast<unsigned char>(s[i]);
    if ((c < 0x20 && c != '\t') || c == 0x7f) return false;
  }
  return true;
}

Method method_of(std::string_view s) {
  switch (s.size()) {
    case 3: return s == "GET" ? Method::get : s == "PUT" ? Method::put : Method::other;
    case 4: return s == "HEAD" ? Method::head : s == "POST" ? Method::post : Method::other;
    case 5: return s == "PATCH" ? Method::patch : s == "TRACE" ? Method::trace : Method::other;
    case 6: return s == "DELETE" ? Method::del : Method::other;
    case 7: return s == "OPTIONS" ? Method::options : s == "CONNECT" ? Method::connect : Method::other;
    default: return Method::other;
  }
}

// Makes room for `need` bytes and carries the views over to it.
void grow_head(RequestSlot& slot, std::uint32_t need) {
  std::uint32_t room = slot.head_capacity ? slot.head_capacity : kFirstHead;
  while (room < need) room *= 2;
  std::unique_ptr<char[]> wider(new char[room]);
  if (slot.head_size) std::memcpy(wider.get(), slot.head.get(), slot.head_size);
  const char* const from = slot.head.get();
  const char* const end = from + slot.head_size;
  const auto carry = [&](std::string_view& v) {
    if (v.data() && !std::less<>()(v.data(), from) && std::less<>()(v.data(), end))
      v = std::string_view(wider.get() + (v.data() - from), v.size());
  };
  Request& r = slot.request;
  if (from) {
    carry(r.method_text), carry(r.target), carry(r.path);
    for (Header& h : r.headers) carry(h.name), carry(h.value);
    for (Parameter& p : r.query) carry(p.name), carry(p.value);
  }
  slot.head = std::move(wider);
  slot.head_capacity = room;
}

HttpParser* self(llhttp_t* p) { return static_cast<HttpParser*>(p->data); }

}  // namespace

void RequestSlot::reset() {
  request.method = Method::get;
  request.method_text = request.target = request.path = {};
  request.query.clear();
  request.headers.clear();
  request.body.reset();
  request.has_length = false;
  request.minor = 1;
  head_size = 0;
  if (head_capacity > kRetainedHead) {
    head.reset();
    head_capacity = 0;
  }
}

// The members that no callback needs are null: lines say where names and values are.
constinit const llhttp_settings_t HttpParser::kCallbacks = [] {
  llhttp_settings_t s{};
  s.on_headers_complete = on_headers_complete;
  s.on_chunk_header = on_chunk_header;
  s.on_chunk_extension_name = on_chunk_extension;
  s.on_chunk_extension_value = on_chunk_extension;
  s.on_body = on_body;
  s.on_message_complete = on_message_complete;
  return s;
}();

void HttpParser::begin(RequestSlot& slot, const Settings& limits, Budget* budget) {
  slot_ = &slot;
  limits_ = &limits;
  budget_ = budget;
  refusal_ = {};
  remaining_ = received_ = length_ = 0;
  line_at_ = fed_ = trailer_at_ = extension_bytes_ = 0;
  empty_lines_ = hosts_ = lengths_ = codings_ = trailers_ = 0;
  state_ = State::head;
  stage_ = Stage::head;
  chunked_ = false;
  coding_known_ = true;
  close_ = keep_ = keep_alive_ = false;
  expects_ = expects_other_ = bad_host_ = bad_length_ = false;
  body_started_ = dropping_ = message_done_ = plain_ = false;
}

std::size_t HttpParser::feed(std::string_view bytes) {
  std::size_t taken = 0;
  while (taken < bytes.size() && (state_ == State::head || state_ == State::body)) {
    const std::string_view rest = bytes.substr(taken);
    switch (stage_) {
      case Stage::head: taken += feed_head(rest); break;
      case Stage::sized: taken += feed_sized(rest); break;
      case Stage::chunked: taken += feed_chunked(rest); break;
      case Stage::trailer: taken += feed_trailer(rest); break;
    }
  }
  return taken;
}

void HttpParser::refuse(std::uint16_t status, Errc code, const char* line) {
  refusal_ = {status, code, line, true};
  state_ = State::refused;
}

void HttpParser::decline(const Refusal& why) {
  if (refusal_.status == 0) refusal_ = why;
  dropping_ = true;
}

void HttpParser::keep(const char* bytes, std::size_t size) {
  if (slot_->head_size + size > slot_->head_capacity)
    grow_head(*slot_, static_cast<std::uint32_t>(slot_->head_size + size));
  std::memcpy(slot_->head.get() + slot_->head_size, bytes, size);
  slot_->head_size += static_cast<std::uint32_t>(size);
}

bool HttpParser::execute(std::uint32_t end) {
  if (end == fed_) return true;
  if (fed_ == 0) {
    // A new message, a new parser: nothing of the last one's connection handling is left in it.
    llhttp_init(&llhttp_, HTTP_REQUEST, &kCallbacks);
    llhttp_.data = this;
  }
  const llhttp_errno_t e = llhttp_execute(&llhttp_, slot_->head.get() + fed_, end - fed_);
  fed_ = end;
  if (e == HPE_OK || e == HPE_PAUSED) return true;
  refuse_llhttp(static_cast<int>(e));
  return false;
}

void HttpParser::refuse_llhttp(int error) {
  if (state_ == State::refused) return;   // one of our own callbacks said why
  const bool not_http = llhttp_.method > HTTP_UNLINK;
  if (error == HPE_INVALID_METHOD || (error == HPE_INVALID_CONSTANT && not_http))
    refuse(501, Errc::method, "the method is unknown to HTTP");
  else
    refuse(400, Errc::request, stage_ == Stage::head ? "the request head is malformed" : "the chunked body is malformed");
}

std::size_t HttpParser::feed_head(std::string_view bytes) {
  std::size_t at = 0;
  while (at < bytes.size()) {
    if (slot_->head_size == 0) {
      // Empty lines before a request line are for robustness (RFC 9112, 2.2); a CR or LF alone is not one.
      const bool after_cr = empty_lines_ & 1;
      if (bytes[at] == (after_cr ? '\n' : '\r')) {
        ++at;
        if (++empty_lines_ > 2 * kEmptyLines) return refuse(400, Errc::request, "too many empty lines before a request"), at;
        continue;
      }
      if (after_cr || !kToken[static_cast<unsigned char>(bytes[at])])
        return refuse(400, Errc::request, "the request line is malformed"), at;
    }
    const void* const found = std::memchr(bytes.data() + at, '\n', bytes.size() - at);
    const std::size_t end = found ? static_cast<std::size_t>(static_cast<const char*>(found) - bytes.data()) + 1 : bytes.size();
    if (slot_->head_size + (end - at) > limits_->head_bytes) {
      if (!execute(line_at_)) return at;
      if (line_at_ == 0) refuse(414, Errc::target, "the request line is too long");
      else refuse(431, Errc::headers, "the request head is too large");
      return at;
    }
    keep(bytes.data() + at, end - at);
    at = end;
    if (!found) break;
    const std::string_view line(slot_->head.get() + line_at_, slot_->head_size - line_at_);
    const bool first = line_at_ == 0;
    if (!first && line == "\r\n") {
      // A plain head of lines that passed every check of ours is one that llhttp would pass too; only a chunked body
      // needs it to have seen the head.
      if (plain_ && codings_ == 0) head_done();
      else if (execute(slot_->head_size)) {
        if (llhttp_.method > HTTP_UNLINK) refuse(501, Errc::method, "the method is unknown to HTTP");
        else head_done();
      }
      return at;
    }
    if (!check_line_end(line) || !(first ? request_line(line.substr(0, line.size() - 2)) : header_line(line))) {
      // What stands before it may be wrong in another way: say the first thing, as one piece or many would.
      const Refusal ours = refusal_;
      state_ = State::head;
      if (execute(line_at_)) refusal_ = ours, state_ = State::refused;
      return at;
    }
    line_at_ = slot_->head_size;
  }
  if (!plain_) execute(line_at_);
  return at;
}

bool HttpParser::check_line_end(std::string_view line) {
  if (line.size() >= 2 && line[line.size() - 2] == '\r') {
    // A CR elsewhere in it would end the line for some readers.
    if (std::memchr(line.data(), '\r', line.size() - 2) == nullptr) return true;
  }
  refuse(400, Errc::request, "a line of the head does not end in CR LF");
  return false;
}

bool HttpParser::request_line(std::string_view line) {
  Request& r = slot_->request;
  const std::size_t first = line.find(' ');
  const std::size_t last = line.rfind(' ');
  if (first == line.npos || last == first || !is_token(line.substr(0, first)))
    return refuse(400, Errc::request, "the request line is malformed"), false;
  r.method_text = line.substr(0, first);
  r.target = line.substr(first + 1, last - first - 1);
  const std::string_view version = line.substr(last + 1);
  if (r.target.empty() || r.target.find(' ') != r.target.npos)
    return refuse(400, Errc::request, "the request line is malformed"), false;
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  if (version.size() != 8 || version.substr(0, 5) != "HTTP/" || !digit(version[5]) || version[6] != '.' || !digit(version[7]))
    return refuse(400, Errc::request, "the request line names no HTTP version"), false;
  if (version[5] != '1' || version[7] > '1') return refuse(505, Errc::version, "HTTP/1.0 and HTTP/1.1 are spoken here"), false;
  if (r.target.size() > limits_->target_bytes) return refuse(414, Errc::target, "the request target is too long"), false;
  for (const char c : r.target)
    if (static_cast<unsigned char>(c) <= 0x20 || static_cast<unsigned char>(c) >= 0x7f)
      return refuse(400, Errc::request, "the request target has a byte that must be encoded"), false;
  r.minor = static_cast<std::uint8_t>(version[7] - '0');
  r.method = method_of(r.method_text);
  // The target of CONNECT is no path, and what follows it no HTTP.
  if (r.method == Method::connect) return refuse(501, Errc::method, "CONNECT is not served"), false;
  plain_ = r.method != Method::other && r.target.front() == '/' && r.target.find('#') == r.target.npos;
  return true;
}

bool HttpParser::header_line(std::string_view line) {
  if (line.front() == ' ' || line.front() == '\t') return refuse(400, Errc::request, "a folded header line"), false;
  line.remove_suffix(2);
  const std::size_t colon = line.find(':');
  if (colon == line.npos || !is_token(line.substr(0, colon)))
    return refuse(400, Errc::request, "a header line without a proper field name"), false;
  const std::string_view field = line.substr(0, colon);
  const std::string_view value = trim(line.substr(colon + 1));
  plain_ &= line.back() != '\t';   // llhttp takes no tab behind a Content-Length
  if (!is_field_value(value)) return refuse(400, Errc::request, "a control byte in a header"), false;
  if (stage_ == Stage::trailer) {
    if (++trailers_ > limits_->header_count) return refuse(431, Errc::headers, "too many trailer fields"), false;
    if (same_text(field, "content-length") || same_text(field, "transfer-encoding") || same_text(field, "host"))
      return refuse(400, Errc::request, "a trailer names the framing or the host"), false;
    return true;
  }
  if (slot_->request.headers.size() >= limits_->header_count)
    return refuse(431, Errc::headers, "too many header fields"), false;
  slot_->request.headers.push_back({field, value});
  note_header(field, value);
  return true;
}

void HttpParser::note_header(std::string_view field, std::string_view value) {
  switch (field.size()) {
    case 4:
      if (same_text(field, "host")) ++hosts_, bad_host_ |= !is_host(value);
      break;
    case 6:
      if (same_text(field, "expect")) (same_text(value, "100-continue") ? expects_ : expects_other_) = true;
      break;
    case 10:
      if (same_text(field, "connection"))
        each_token(value, [this](std::string_view token) {
          close_ |= same_text(token, "close");
          keep_ |= same_text(token, "keep-alive");
        });
      break;
    case 14:
      if (same_text(field, "content-length")) {
        ++lengths_;
        bad_length_ |= value.empty() || value.size() > 18;
        length_ = 0;
        for (const char c : value) {
          bad_length_ |= c < '0' || c > '9';
          if (!bad_length_) length_ = length_ * 10 + static_cast<std::uint64_t>(c - '0');
        }
      }
      break;
    case 17:
      if (same_text(field, "transfer-encoding")) {
        ++codings_;
        chunked_ = same_text(value, "chunked");
        coding_known_ &= chunked_;
      }
      break;
    default: break;
  }
}

void HttpParser::head_done() {
  Request& r = slot_->request;
  if (hosts_ > 1) return refuse(400, Errc::request, "more than one Host");
  if (hosts_ == 0 && r.minor == 1) return refuse(400, Errc::request, "Host is missing");
  if (bad_host_) return refuse(400, Errc::request, "Host is malformed");
  if (lengths_ > 1) return refuse(400, Errc::request, "more than one Content-Length");
  if (bad_length_) return refuse(400, Errc::request, "Content-Length is malformed");
  if (codings_ && lengths_) return refuse(400, Errc::request, "both Content-Length and Transfer-Encoding");
  if (codings_ && r.minor == 0) return refuse(400, Errc::request, "Transfer-Encoding in HTTP/1.0");
  if (!coding_known_) return refuse(501, Errc::coding, "the only transfer coding is chunked");
  if (codings_ > 1) return refuse(400, Errc::request, "more than one Transfer-Encoding");
  keep_alive_ = !close_ && (r.minor == 1 || keep_);
  expects_ &= r.minor == 1;
  r.has_length = lengths_ || codings_;

  if (const Refusal wrong = read_target(r, slot_->arena); wrong.status) decline(wrong);
  if (expects_other_) decline({417, Errc::expect, "the only expectation is 100-continue", false});
  if (length_ > limits_->body_bytes) decline({413, Errc::limit, "the body is larger than the limit", false});
  const bool body = codings_ || length_ > 0;
  // A client that waits for leave to send its body may send it or not: there is no telling what follows.
  if (refusal_.status && body && (expects_ || expects_other_ || length_ > kDropBytes)) {
    refusal_.fatal = true;
    state_ = State::refused;
    return;
  }
  if (!body) {
    state_ = State::whole;
    return;
  }
  state_ = State::body;
  if (codings_) {
    stage_ = Stage::chunked;
    llhttp_resume(&llhttp_);
    return;
  }
  stage_ = Stage::sized;
  remaining_ = length_;
  if (!dropping_ && !grow_body(static_cast<std::size_t>(length_)) && (expects_ || length_ > kDropBytes)) {
    refusal_.fatal = true;
    state_ = State::refused;
  }
}

bool HttpParser::grow_body(std::size_t size) {
  Buffer wider = Buffer::make(size, budget_);
  if (!wider) {
    slot_->request.body.reset();
    decline({503, Errc::payload_budget, "too many payload bytes are held now", false});
    return false;
  }
  wider.append(slot_->request.body.view());
  slot_->request.body = std::move(wider);
  return true;
}

bool HttpParser::take_body(const char* bytes, std::size_t size) {
  received_ += size;
  body_started_ = true;
  if (dropping_) return true;
  Buffer& body = slot_->request.body;
  if (size > body.capacity() - body.size()) {
    const std::size_t need = body.size() + size;
    const std::size_t room = std::max({need, body.capacity() * 2, kFirstBody});
    if (!grow_body(std::min<std::size_t>(room, std::max<std::size_t>(need, limits_->body_bytes)))) return true;
  }
  body.append({bytes, size});
  return true;
}

std::size_t HttpParser::feed_sized(std::string_view bytes) {
  const std::size_t n = static_cast<std::size_t>(std::min<std::uint64_t>(remaining_, bytes.size()));
  take_body(bytes.data(), n);
  remaining_ -= n;
  if (remaining_ == 0) state_ = State::whole;
  return n;
}

std::size_t HttpParser::feed_chunked(std::string_view bytes) {
  body_started_ = true;
  const llhttp_errno_t e = llhttp_execute(&llhttp_, bytes.data(), bytes.size());
  if (e == HPE_OK) return bytes.size();
  if (e != HPE_PAUSED) {
    refuse_llhttp(static_cast<int>(e));
    return bytes.size();
  }
  // Paused by the header of the last chunk: trailer lines follow.
  const std::size_t at = static_cast<std::size_t>(llhttp_get_error_pos(&llhttp_) - bytes.data());
  llhttp_resume(&llhttp_);
  stage_ = Stage::trailer;
  line_at_ = fed_ = trailer_at_ = slot_->head_size;
  return at;
}

std::size_t HttpParser::feed_trailer(std::string_view bytes) {
  std::size_t at = 0;
  while (at < bytes.size()) {
    const void* const found = std::memchr(bytes.data() + at, '\n', bytes.size() - at);
    const std::size_t end = found ? static_cast<std::size_t>(static_cast<const char*>(found) - bytes.data()) + 1 : bytes.size();
    if (slot_->head_size - trailer_at_ + (end - at) > limits_->head_bytes) {
      if (execute(line_at_)) refuse(431, Errc::headers, "the trailer is too large");
      return at;
    }
    keep(bytes.data() + at, end - at);
    at = end;
    if (!found) break;
    const std::string_view line(slot_->head.get() + line_at_, slot_->head_size - line_at_);
    const bool last = line == "\r\n";
    if (!last && !(check_line_end(line) && header_line(line))) {
      const Refusal ours = refusal_;
      state_ = State::body;
      if (execute(line_at_)) refusal_ = ours, state_ = State::refused;
      return at;
    }
    line_at_ = slot_->head_size;
    if (!last) continue;
    if (!execute(line_at_)) return at;
    if (message_done_) state_ = State::whole;
    else refuse(400, Errc::request, "the chunked body is malformed");
    return at;
  }
  execute(line_at_);
  return at;
}

int HttpParser::on_headers_complete(llhttp_t* p) {
  p->upgrade = 0;   // Upgrade is ignored: the answer is HTTP/1.1
  return HPE_PAUSED;
}

int HttpParser::on_chunk_header(llhttp_t* p) {
  HttpParser& me = *self(p);
  me.extension_bytes_ = 0;
  const std::uint64_t size = p->content_length;
  if (size == 0) return HPE_PAUSED;
  const std::uint64_t limit = me.dropping_ ? kDropBytes : me.limits_->body_bytes;
  if (size <= limit && me.received_ <= limit - size) return 0;
  if (me.refusal_.status) {
    me.refusal_.fatal = true;
    me.state_ = State::refused;
  } else {
    me.refuse(413, Errc::limit, "the body is larger than the limit");
  }
  return -1;
}

int HttpParser::on_chunk_extension(llhttp_t* p, const char*, std::size_t size) {
  HttpParser& me = *self(p);
  me.extension_bytes_ += static_cast<std::uint32_t>(std::min<std::size_t>(size, kExtensionBytes + 1));
  if (me.extension_bytes_ <= kExtensionBytes) return 0;
  me.refuse(400, Errc::request, "a chunk extension is too long");
  return -1;
}

int HttpParser::on_body(llhttp_t* p, const char* at, std::size_t size) {
  self(p)->take_body(at, size);
  return 0;
}

int HttpParser::on_message_complete(llhttp_t* p) {
  self(p)->message_done_ = true;
  return HPE_PAUSED;
}

}  // namespace sluice::proxy
