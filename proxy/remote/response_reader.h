// A push parser of the answers of backends: bytes in pieces of any size, one Response or one refusal out.
//
// The head is taken line by line and checked here (line ends, names, values, framing), then given to llhttp (strict) as a
// second reader: framing that two readers could read differently is never guessed at. Chunked bodies are llhttp's, bodies
// of a length are counted here. What an answer means does not depend on where the pieces were cut.
#pragma once
#include <llhttp/llhttp.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/budget.h"
#include "proxy/request.h"
#include "proxy/response.h"

namespace sluice::proxy {

struct ResponseLimits {
  std::uint32_t head_bytes = 32u << 10;       // status line and fields; of a trailer the same
  std::uint64_t body_bytes = 16u << 20;
};

// Thread: worker. One per connection, used again for each answer.
class ResponseReader {
 public:
  enum class State : std::uint8_t { head, body, whole, refused };

  // Starts an answer that goes into `out`, which is reset. `head_request`: to HEAD. `budget` may be null.
  void begin(Response& out, bool head_request, const ResponseLimits& limits, Budget* budget);
  // Takes bytes until the answer is whole or refused; returns how many.
  std::size_t feed(std::string_view bytes);
  // The backend has closed: whole, when the body goes on to the end of the connection; else refused.
  void end();

  State state() const { return state_; }
  // Some byte has come.
  bool began() const { return began_; }
  // Another request may follow on this connection. Known once it is whole.
  bool keep_alive() const { return keep_alive_; }
  // Bytes of the body that are still to come; ~0: that is not known.
  std::uint64_t left() const;
  // Of a refusal: Errc::backend, limit or payload_budget (ours, and not the backend's fault), and a literal without a line feed.
  Errc code() const { return code_; }
  const char* why() const { return why_; }

 private:
  enum class Stage : std::uint8_t { head, sized, chunked, to_the_end };
  void begin_head();
  std::size_t feed_head(std::string_view bytes);
  std::size_t feed_sized(std::string_view bytes);
  std::size_t feed_chunked(std::string_view bytes);
  bool status_line(std::string_view line);
  bool field_line(std::string_view line);
  void head_done();
  bool note_framing(const Header& field);
  void keep_fields();
  bool take_body(std::string_view bytes);
  bool room_for(std::uint64_t more);
  void refuse(const char* why, Errc code = Errc::backend);
  void finish();
  static int on_headers_complete(llhttp_t* p);
  static int on_chunk_header(llhttp_t* p);
  static int on_small_print(llhttp_t* p, const char* at, std::size_t size);
  static int on_body(llhttp_t* p, const char* at, std::size_t size);
  static int on_message_complete(llhttp_t* p);
  static const llhttp_settings_t kCallbacks;

  llhttp_t llhttp_{};
  Response* out_ = nullptr;
  ResponseLimits limits_;
  Budget* budget_ = nullptr;
  std::string head_;
  std::vector<Header> fields_;                // views into head_
  Buffer large_;                              // a body that outgrew the Response's own text
  std::size_t line_at_ = 0;
  std::uint64_t length_ = 0, remaining_ = 0, received_ = 0, small_print_ = 0;
  const char* why_ = "";
  std::uint16_t status_ = 0, lengths_ = 0, codings_ = 0;
  std::uint8_t minor_ = 1, interim_ = 0;
  Errc code_ = Errc::none;
  State state_ = State::head;
  Stage stage_ = Stage::head;
  bool head_request_ = false, began_ = false, keep_alive_ = false;
  bool close_ = false, keep_ = false, chunked_ = false, done_ = false;
};

}  // namespace sluice::proxy
