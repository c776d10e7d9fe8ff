// What must hold of the reader of answers for any bytes, wherever they are cut: shared by the fuzz driver and a unit test.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include "proxy/remote/response_reader.h"
#include "vm/base/check.h"

namespace sluice::proxy::test {

struct ResponseOutcome {
  ResponseReader::State state = ResponseReader::State::head;
  std::size_t taken = 0;
  bool keep_alive = false;
  std::uint16_t status = 0;
  std::string headers, body;
  friend bool operator==(const ResponseOutcome&, const ResponseOutcome&) = default;
};

// Feeds `bytes` in pieces whose sizes `cuts` says, again and again (0: all that is left), then the end of the connection.
inline ResponseOutcome read_response(std::string_view bytes, std::string_view cuts, bool head_request, Budget& budget) {
  ResponseOutcome out;
  Response response;
  ResponseReader reader;
  reader.begin(response, head_request, {512, 4096}, &budget);
  for (std::size_t n = 0; out.taken < bytes.size() && reader.state() <= ResponseReader::State::body; ++n) {
    const std::size_t size = cuts.empty() ? 0 : static_cast<unsigned char>(cuts[n % cuts.size()]);
    const std::string_view piece = bytes.substr(out.taken, size ? size : ~std::size_t{0});
    const std::size_t used = reader.feed(piece);
    SLUICE_CHECK(used <= piece.size());
    SLUICE_CHECK(used == piece.size() || reader.state() > ResponseReader::State::body);
    out.taken += used;
  }
  reader.end();
  out.state = reader.state();
  SLUICE_CHECK(out.state > ResponseReader::State::body);
  if (out.state != ResponseReader::State::whole) {
    out.taken = 0;   // how far it got before it was refused is nobody's concern
    return out;
  }
  out.keep_alive = reader.keep_alive();
  out.status = response.status;
  SLUICE_CHECK(out.status >= 200 && out.status < 600);
  out.headers = response.headers;
  // What goes out as lines is lines, each with a name.
  for (std::string_view rest = out.headers; !rest.empty();) {
    const std::size_t end = rest.find("\r\n");
    SLUICE_CHECK(end != rest.npos && rest.find(": ") < end && rest.substr(0, end).find_first_of("\r\n") == rest.npos);
    rest.remove_prefix(end + 2);
  }
  out.body = response.body.flat();
  SLUICE_CHECK(out.body.size() <= 4096);
  return out;
}

inline void check_response(std::string_view bytes, std::string_view cuts, bool head_request) {
  Budget budget(1 << 20);
  const ResponseOutcome whole = read_response(bytes, {}, head_request, budget);
  SLUICE_CHECK(whole == read_response(bytes, cuts, head_request, budget));
  SLUICE_CHECK(whole == read_response(bytes, "\1", head_request, budget));
  SLUICE_CHECK(budget.held() == 0);
}

}  // namespace sluice::proxy::test
