// A Response as the bytes of HTTP/1.1: the head, and the body by copy or by reference.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

#include "proxy/output.h"
#include "proxy/request.h"
#include "proxy/response.h"

namespace sluice::proxy {

// The Date line, made once per second. Thread: worker.
class DateLine {
 public:
  // "Date: Mon, 30 Nov 2026 15:00:00 GMT\r\n"
  std::string_view at(std::uint64_t wall_ms);

 private:
  std::uint64_t second_ = ~std::uint64_t{0};
  std::array<char, 40> text_{};
  std::size_t size_ = 0;
};

// Whether an If-None-Match of `request` names `revision` (a list, `*`, weak comparison).
// Source: RFC 9110, 13.1.2 and 8.8.3.2.
bool none_match_names(const Request& request, std::uint64_t revision);

struct HeadFacts {
  bool head_request = false;      // HEAD: no body
  bool close = false;             // this answer ends the connection
  bool say_keep_alive = false;    // to a client of HTTP/1.0
};

// Appends the answer. True: `response.body` was lent to `out` and has to stay until it is written.
// Bodies up to 16 KiB are copied, since a copy is cheaper than a piece of writev and frees its owner at once.
bool write_response(Output& out, const Response& response, const HeadFacts& facts, std::string_view date_line);

}  // namespace sluice::proxy
