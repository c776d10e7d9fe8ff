// What leaves for a client, before it is written as HTTP.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "proxy/body.h"
#include "proxy/event.h"
#include "vm/base/errc.h"

namespace sluice::proxy {

// Shape: `headers` are whole lines, each "Name: value\r\n", already checked (no control bytes, none of the fields that
// the writer owns: Content-Length, Transfer-Encoding, Connection, Date, Keep-Alive).
struct Response {
  std::uint16_t status = 200;
  Errc error = Errc::none;                    // X-Pure-Error, unless `headers` carry one
  std::string_view content_type;              // static or in `headers`' life; empty: none is sent
  std::uint64_t revision = 0;                 // ETag: "REV"; 0: none
  std::uint32_t retry_after_s = 0;
  std::uint32_t allow = 0;                    // bit per Method; not 0: an Allow line
  bool no_store = false;                      // Cache-Control: no-store
  bool close = false;                         // end the connection after it
  std::uint64_t head_length = kBodyLength;    // what the Content-Length of an answer to HEAD says
  std::string_view backend;                   // the label of the remote backend that gave it. Life: its generation's
  std::string headers;
  Body body;
  static constexpr std::uint64_t kBodyLength = ~std::uint64_t{0};   // the body's
  static constexpr std::uint64_t kNoLength = kBodyLength - 1;       // it is not known: no such line
  void reset();
  friend void swap(Response& a, Response& b) noexcept {
    std::swap(a.status, b.status);
    std::swap(a.error, b.error);
    std::swap(a.content_type, b.content_type);
    std::swap(a.revision, b.revision);
    std::swap(a.retry_after_s, b.retry_after_s);
    std::swap(a.allow, b.allow);
    std::swap(a.no_store, b.no_store);
    std::swap(a.close, b.close);
    std::swap(a.head_length, b.head_length);
    std::swap(a.backend, b.backend);
    if (!a.headers.empty() || !b.headers.empty()) a.headers.swap(b.headers);
    swap(a.body, b.body);
  }
};

std::string_view text_of(ContentType type);   // "text/plain; charset=utf-8", ...
std::string_view reason(std::uint16_t status);  // "OK"

// Fills `out` from an engine's answer, taking its body: status, X-Pure-Error, type, ETag, no-store, Retry-After.
void respond(Response& out, Answer& answer);
// An error of our own with one plain line as its body. `line` has no line feed.
void respond_error(Response& out, std::uint16_t status, Errc error, std::string_view line);

}  // namespace sluice::proxy
