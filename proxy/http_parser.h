// A push parser: bytes in pieces of any size, one HTTP/1 request or one refusal out.
//
// llhttp (strict) reads heads and chunks; around it stand the checks that it leaves open. Our checks of a plain head (a
// common method, a path as target, no transfer coding) leave it nothing to refuse, so such heads do not go to it at all.
// Others go in whole lines, and every limit counts bytes from the head's start, so the outcome never depends on where
// the pieces were cut.
#pragma once
#include <llhttp/llhttp.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "proxy/http_target.h"
#include "proxy/request.h"
#include "proxy/settings.h"

namespace sluice::proxy {

// A request and the bytes that its views point into; both keep their room over requests.
struct RequestSlot {
  Request request;
  std::unique_ptr<char[]> head;     // as received, without empty lines before it
  std::uint32_t head_capacity = 0;
  std::uint32_t head_size = 0;
  std::string arena;                // what was percent-encoded

  void reset();                     // empties; keeps room up to 16 KiB
};

// Thread: worker. One per connection; it points nowhere between requests.
class HttpParser {
 public:
  enum class State : std::uint8_t {
    head,       // more bytes of the head are needed
    body,       // the head is whole, more bytes of the body are needed
    whole,      // a request; refusal() may still say that it is not to be served
    refused,    // refusal() says why; the connection's framing is lost
  };

  // Starts a request in `slot`, which outlives it. `budget` may be null.
  void begin(RequestSlot& slot, const Settings& limits, Budget* budget);
  // Takes bytes until the request is whole or refused; returns how many.
  std::size_t feed(std::string_view bytes);

  State state() const { return state_; }
  const Refusal& refusal() const { return refusal_; }
  // Some byte of the head has come, empty lines apart.
  bool started() const { return slot_ && (slot_->head_size > 0 || state_ != State::head); }
  // The head asks for `100 Continue` and no byte of the body has come.
  bool awaits_continue() const { return expects_ && state_ == State::body && !body_started_; }
  // By version and Connection field. Known once the head is whole.
  bool keep_alive() const { return keep_alive_; }
  std::uint64_t body_received() const { return received_; }

 private:
  enum class Stage : std::uint8_t { head, sized, chunked, trailer };
  std::size_t feed_head(std::string_view bytes);
  std::size_t feed_sized(std::string_view bytes);
  std::size_t feed_chunked(std::string_view bytes);
  std::size_t feed_trailer(std::string_view bytes);
  // Appends to the head's bytes.
  void keep(const char* bytes, std::size_t size);
  bool request_line(std::string_view line);
  bool header_line(std::string_view line);
  bool check_line_end(std::string_view line);
  void note_header(std::string_view field, std::string_view value);
  // Gives llhttp what is kept up to `end`. False: it refused.
  bool execute(std::uint32_t end);
  void head_done();
  bool take_body(const char* bytes, std::size_t size);
  bool grow_body(std::size_t size);
  void refuse(std::uint16_t status, Errc code, const char* line);
  void refuse_llhttp(int error);
  // Keeps the framing: the rest of the request is read and dropped when it is small.
  void decline(const Refusal& why);

  static int on_headers_complete(llhttp_t* p);
  static int on_chunk_header(llhttp_t* p);
  static int on_chunk_extension(llhttp_t* p, const char* at, std::size_t size);
  static int on_body(llhttp_t* p, const char* at, std::size_t size);
  static int on_message_complete(llhttp_t* p);
  static const llhttp_settings_t kCallbacks;

  llhttp_t llhttp_{};
  RequestSlot* slot_ = nullptr;
  const Settings* limits_ = nullptr;
  Budget* budget_ = nullptr;
  Refusal refusal_;
  std::uint64_t remaining_ = 0;      // of a sized body
  std::uint64_t received_ = 0;       // body bytes
  std::uint64_t length_ = 0;         // Content-Length
  std::uint32_t line_at_ = 0;        // where the line being received starts
  std::uint32_t fed_ = 0;            // what llhttp has had
  std::uint32_t trailer_at_ = 0;     // where the trailer starts
  std::uint32_t extension_bytes_ = 0;
  std::uint16_t empty_lines_ = 0;
  std::uint16_t hosts_ = 0, lengths_ = 0, codings_ = 0, trailers_ = 0;
  State state_ = State::head;
  Stage stage_ = Stage::head;
  bool chunked_ = false, coding_known_ = true;
  bool close_ = false, keep_ = false, keep_alive_ = false;
  bool expects_ = false, expects_other_ = false, bad_host_ = false, bad_length_ = false;
  bool body_started_ = false, dropping_ = false, message_done_ = false;
  bool plain_ = false;               // the request line is of a kind that needs no llhttp
};

}  // namespace sluice::proxy
