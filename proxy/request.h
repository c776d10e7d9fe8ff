// One HTTP request, whole: what a route reads.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/buffer.h"
#include "proxy/engine.h"

namespace sluice::proxy {

enum class Method : std::uint8_t { get, head, post, put, del, options, patch, trace, connect, other };
inline constexpr int kMethods = 10;
std::string_view name(Method m);                       // "GET", ...
inline bool is_safe(Method m) {                        // RFC 9110, 9.2.1
  return m == Method::get || m == Method::head || m == Method::options || m == Method::trace;
}

struct Header {
  std::string_view name, value;                        // name as sent; value without outer white space
};

// Life: views point into `head` and the request's own arena: good until the exchange is answered.
struct Request {
  Method method = Method::get;
  std::string_view method_text;
  std::string_view target;                             // as sent; empty: a route made it, path and query say all
  std::string_view path;                               // percent-decoded once, starts with '/', no dot segments; an encoded
                                                       // slash is refused earlier where it would split a segment
  std::vector<Parameter> query;                        // decoded, in order; repeated names stay
  std::vector<Header> headers;
  Buffer body;
  bool has_length = false;                             // Content-Length or chunked was sent
  std::uint8_t minor = 1;                              // HTTP/1.minor
  std::string_view client_ip;
  std::string_view tls_peer_cn;                        // of a client's certificate that was verified; empty: none
  std::string_view tag;                                // of the listener it came through; empty: none
  int fd = -1;

  // The first field of that name (case does not matter); no value: not there.
  std::optional<std::string_view> header(std::string_view field) const;
  std::optional<std::string_view> parameter(std::string_view query_name) const;
};

}  // namespace sluice::proxy
