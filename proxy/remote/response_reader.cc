#include "proxy/remote/response_reader.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "proxy/ascii.h"
#include "proxy/remote/fields.h"

namespace sluice::proxy {
namespace {

constexpr std::size_t kRetainedHead = 16 * 1024;
constexpr std::size_t kMostFields = 200;
constexpr std::uint8_t kMostInterim = 16;             // 1xx answers before the one that counts
constexpr std::uint64_t kSmallBody = kBodyKept;       // stays in the Response's own room
constexpr std::uint64_t kFirstLarge = 64 * 1024;
constexpr std::uint64_t kMostLength = 18;             // digits

ResponseReader* self(llhttp_t* p) { return static_cast<ResponseReader*>(p->data); }

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// What another node says went wrong there; nothing when it is no word of ours.
std::optional<Errc> errc_of(std::string_view wanted) {
  for (auto code = static_cast<std::uint8_t>(Errc::none); code <= static_cast<std::uint8_t>(Errc::version); ++code)
    if (name(static_cast<Errc>(code)) == wanted) return static_cast<Errc>(code);
  return std::nullopt;
}

// A revision of ours: "REV" as Sluice writes it.
std::uint64_t revision_of(std::string_view tag) {
  if (tag.size() < 3 || tag.front() != '"' || tag.back() != '"' || tag[1] == '0') return 0;
  std::uint64_t n = 0;
  const auto read = std::from_chars(tag.data() + 1, tag.data() + tag.size() - 1, n);
  return read.ec == std::errc() && read.ptr == tag.data() + tag.size() - 1 ? n : 0;
}

}  // namespace

constinit const llhttp_settings_t ResponseReader::kCallbacks = [] {
  llhttp_settings_t s{};
  s.on_headers_complete = on_headers_complete;
  s.on_chunk_header = on_chunk_header;
  s.on_chunk_extension_name = s.on_chunk_extension_value = on_small_print;
  s.on_header_field = s.on_header_value = on_small_print;   // of the trailer: the head does not count there
  s.on_body = on_body;
  s.on_message_complete = on_message_complete;
  return s;
}();

void ResponseReader::begin(Response& out, bool head_request, const ResponseLimits& limits, Budget* budget) {
  out_ = &out;
  out.reset();
  limits_ = limits;
  budget_ = budget;
  large_.reset();
  head_request_ = head_request;
  began_ = keep_alive_ = false;
  interim_ = 0;
  code_ = Errc::none;
  why_ = "";
  remaining_ = received_ = 0;
  begin_head();
}

void ResponseReader::begin_head() {
  if (head_.capacity() > kRetainedHead) std::string().swap(head_);
  else head_.clear();
  fields_.clear();
  line_at_ = 0;
  length_ = small_print_ = 0;
  status_ = lengths_ = codings_ = 0;
  minor_ = 1;
  state_ = State::head;
  stage_ = Stage::head;
  close_ = keep_ = chunked_ = done_ = false;
}

std::uint64_t ResponseReader::left() const {
  if (state_ == State::whole) return 0;
  return state_ == State::body && stage_ == Stage::sized ? remaining_ : ~std::uint64_t{0};
}

void ResponseReader::refuse(const char* why, Errc code) {
  if (state_ == State::refused) return;
  state_ = State::refused;
  code_ = code;
  why_ = why;
  keep_alive_ = false;
  large_.reset();
}

std::size_t ResponseReader::feed(std::string_view bytes) {
  std::size_t taken = 0;
  began_ |= !bytes.empty();
  while (taken < bytes.size() && (state_ == State::head || state_ == State::body)) {
    const std::string_view rest = bytes.substr(taken);
    switch (stage_) {
      case Stage::head: taken += feed_head(rest); break;
      case Stage::sized: taken += feed_sized(rest); break;
      case Stage::chunked: taken += feed_chunked(rest); break;
      case Stage::to_the_end:
        if (take_body(rest)) taken += rest.size();
        break;
    }
  }
  return taken;
}

std::size_t ResponseReader::feed_head(std::string_view bytes) {
  std::size_t at = 0;
  while (at < bytes.size()) {
    const std::size_t found = bytes.find('\n', at);
    const std::size_t end = found == bytes.npos ? bytes.size() : found + 1;
    if (head_.size() + (end - at) > limits_.head_bytes) {
      refuse("the head of the backend's answer is too large", Errc::limit);
      return at;
    }
    head_.append(bytes.substr(at, end - at));
    at = end;
    if (found == bytes.npos) return at;
    const std::string_view line = std::string_view(head_).substr(line_at_);
    if (line.size() < 2 || line[line.size() - 2] != '\r') {
      refuse("a line of the backend's answer does not end with CR and LF");
      return at;
    }
    const std::string_view text = line.substr(0, line.size() - 2);
    if (text.empty() && line_at_ > 0) {
      head_done();
      return at;
    }
    if (!(line_at_ == 0 ? status_line(text) : field_line(text))) {
      refuse("the head of the backend's answer is malformed");
      return at;
    }
    line_at_ = head_.size();
  }
  return at;
}

// HTTP/1.1 200 OK
bool ResponseReader::status_line(std::string_view line) {
  if (line.size() < 12 || !line.starts_with("HTTP/1.") || (line[7] != '0' && line[7] != '1') || line[8] != ' ') return false;
  if (line.size() > 12 && line[12] != ' ') return false;
  if (!is_digit(line[9]) || !is_digit(line[10]) || !is_digit(line[11]) || !is_field_text(line)) return false;
  minor_ = static_cast<std::uint8_t>(line[7] - '0');
  status_ = static_cast<std::uint16_t>((line[9] - '0') * 100 + (line[10] - '0') * 10 + (line[11] - '0'));
  return status_ >= 100 && status_ < 600;
}

// A continuation line begins with white space, which is no name.
bool ResponseReader::field_line(std::string_view line) {
  const std::size_t colon = line.find(':');
  return colon != line.npos && is_field_name(line.substr(0, colon)) && is_field_text(line.substr(colon + 1));
}

bool ResponseReader::note_framing(const Header& f) {
  switch (f.name.size()) {
    case 10:
      if (same_text(f.name, "connection"))
        each_token(f.value, [this](std::string_view token) {
          close_ |= same_text(token, "close");
          keep_ |= same_text(token, "keep-alive");
        });
      break;
    case 14:
      if (same_text(f.name, "content-length")) {
        ++lengths_;
        if (f.value.empty() || f.value.size() > kMostLength) return false;
        length_ = 0;
        for (const char c : f.value) {
          if (!is_digit(c)) return false;
          length_ = length_ * 10 + static_cast<std::uint64_t>(c - '0');
        }
      }
      break;
    case 17:
      if (same_text(f.name, "transfer-encoding")) {
        ++codings_;
        chunked_ = same_text(f.value, "chunked");
        if (!chunked_) return false;
      }
      break;
    default: break;
  }
  return true;
}

void ResponseReader::head_done() {
  // The head does not move any more: now its fields can be looked at.
  std::string_view rest = head_;
  rest.remove_prefix(rest.find('\n') + 1);
  for (;;) {
    const std::size_t end = rest.find('\r');
    if (end == 0) break;
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end + 2);
    const std::size_t colon = line.find(':');
    fields_.push_back({line.substr(0, colon), trim(line.substr(colon + 1))});
    if (fields_.size() > kMostFields) return refuse("the backend's answer has too many fields", Errc::limit);
    if (!note_framing(fields_.back())) return refuse("the framing of the backend's answer is malformed");
  }
  if (lengths_ > 1 || codings_ > 1 || (lengths_ && codings_) || (codings_ && minor_ == 0))
    return refuse("the framing of the backend's answer is ambiguous");
  llhttp_init(&llhttp_, HTTP_RESPONSE, &kCallbacks);
  llhttp_.data = this;
  if (llhttp_execute(&llhttp_, head_.data(), head_.size()) != HPE_PAUSED)
    return refuse("the head of the backend's answer is malformed");
  if (status_ < 200) {
    if (status_ == 101) return refuse("the backend switches protocols unasked");
    if (++interim_ > kMostInterim) return refuse("the backend does not come to its answer");
    return begin_head();
  }
  keep_alive_ = !close_ && (minor_ == 1 || keep_);
  out_->status = status_;
  keep_fields();
  if (head_request_) {
    out_->head_length = lengths_ ? length_ : Response::kNoLength;
    return finish();
  }
  if (status_ == 204 || status_ == 304 || (lengths_ && length_ == 0)) return finish();
  state_ = State::body;
  if (codings_) {
    stage_ = Stage::chunked;
    small_print_ = 0;
    llhttp_resume(&llhttp_);
  } else if (lengths_) {
    stage_ = Stage::sized;
    remaining_ = length_;
    room_for(length_);
  } else {
    stage_ = Stage::to_the_end;
    keep_alive_ = false;
  }
}

// What goes on to the client, or to the route: all but what belongs to the connection, and what the writer says itself.
void ResponseReader::keep_fields() {
  bool tagged = false;
  for (const Header& f : fields_) {
    if (is_hop_field(f.name) || named_by_connection(fields_, f.name)) continue;
    switch (f.name.size()) {
      case 4:
        if (same_text(f.name, "date")) continue;
        // A revision of ours is one for routes too.
        if (same_text(f.name, "etag") && !tagged) {
          tagged = true;
          if ((out_->revision = revision_of(f.value)) != 0) continue;
        }
        break;
      case 12:
        if (same_text(f.name, "x-pure-error"))
          if (const std::optional<Errc> known = errc_of(f.value)) {
            out_->error = *known;
            continue;
          }
        break;
      case 14:
        if (same_text(f.name, "content-length")) continue;
        break;
      default: break;
    }
    out_->headers.append(f.name).append(": ").append(f.value).append("\r\n");
  }
}

bool ResponseReader::room_for(std::uint64_t more) {
  const std::uint64_t need = received_ + more;
  if (need > limits_.body_bytes) return refuse("the backend's answer is larger than the limit", Errc::limit), false;
  if (need <= kSmallBody) return true;
  if (large_ && need <= large_.capacity()) return true;
  // Of a known length all at once; else twice as much each time.
  const std::uint64_t room = stage_ == Stage::sized
                                 ? length_
                                 : std::min(limits_.body_bytes, std::max({need, std::uint64_t{2} * large_.capacity(), kFirstLarge}));
  Buffer wider = Buffer::make(static_cast<std::size_t>(room), budget_);
  if (!wider) return refuse("too many payload bytes are held now", Errc::payload_budget), false;
  wider.append(large_ ? large_.view() : std::string_view(out_->body.text));
  out_->body.text.clear();
  large_ = std::move(wider);
  return true;
}

bool ResponseReader::take_body(std::string_view bytes) {
  if (!room_for(bytes.size())) return false;
  if (large_) large_.append(bytes);
  else out_->body.text.append(bytes);
  received_ += bytes.size();
  return true;
}

std::size_t ResponseReader::feed_sized(std::string_view bytes) {
  const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(remaining_, bytes.size()));
  if (!take_body(bytes.substr(0, n))) return 0;
  remaining_ -= n;
  if (remaining_ == 0) finish();
  return n;
}

std::size_t ResponseReader::feed_chunked(std::string_view bytes) {
  const llhttp_errno_t e = llhttp_execute(&llhttp_, bytes.data(), bytes.size());
  if (e == HPE_OK) return bytes.size();
  if (e == HPE_PAUSED && done_) {
    const auto at = static_cast<std::size_t>(llhttp_get_error_pos(&llhttp_) - bytes.data());
    finish();
    return at;
  }
  refuse("the chunked body of the backend's answer is malformed");
  return bytes.size();
}

void ResponseReader::end() {
  if (state_ == State::body && stage_ == Stage::to_the_end) return finish();
  if (state_ == State::head || state_ == State::body)
    refuse(began_ ? "the backend closed the connection within its answer" : "the backend closed the connection without an answer");
}

void ResponseReader::finish() {
  state_ = State::whole;
  if (!large_) return;
  out_->body.buffer_at = 0;
  out_->body.buffer_size = large_.size();
  out_->body.buffer = std::move(large_);
}

int ResponseReader::on_headers_complete(llhttp_t*) { return HPE_PAUSED; }

int ResponseReader::on_chunk_header(llhttp_t* p) {
  ResponseReader& me = *self(p);
  me.small_print_ = 0;
  if (p->content_length <= me.limits_.body_bytes && me.received_ <= me.limits_.body_bytes - p->content_length) return 0;
  me.refuse("the backend's answer is larger than the limit", Errc::limit);
  return -1;
}

// Chunk extensions and trailer fields are dropped, but read: they are bounded as a head is.
int ResponseReader::on_small_print(llhttp_t* p, const char*, std::size_t size) {
  ResponseReader& me = *self(p);
  if (me.stage_ != Stage::chunked) return 0;
  me.small_print_ += size;
  if (me.small_print_ <= me.limits_.head_bytes) return 0;
  me.refuse("the trailer of the backend's answer is too large", Errc::limit);
  return -1;
}

int ResponseReader::on_body(llhttp_t* p, const char* at, std::size_t size) {
  return self(p)->take_body({at, size}) ? 0 : -1;
}

int ResponseReader::on_message_complete(llhttp_t* p) {
  self(p)->done_ = true;
  return HPE_PAUSED;
}

}  // namespace sluice::proxy
