#include "t/fuzz/http_outcome.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "proxy/http_parser.h"

namespace sluice::proxy::test {
namespace {

void append(std::string& out, std::string_view label, std::string_view value) {
  out.append(label).append(":").append(std::to_string(value.size())).append(":").append(value).append("\n");
}

[[noreturn]] void report(const char* what, std::string_view one, std::string_view two) {
  std::fprintf(stderr, "%s\n--- whole\n%.*s\n--- in pieces\n%.*s\n", what, static_cast<int>(one.size()), one.data(),
               static_cast<int>(two.size()), two.data());
  std::abort();
}

}  // namespace

std::string http_outcome(std::string_view bytes, std::string_view pieces) {
  Settings settings;
  settings.head_bytes = 512;       // small limits are met by small inputs
  settings.target_bytes = 100;
  settings.header_count = 8;
  settings.body_bytes = 2000;
  RequestSlot slot;
  HttpParser parser;
  std::string out;
  std::size_t at = 0, cut = 0;
  parser.begin(slot, settings, nullptr);
  while (at < bytes.size()) {
    std::size_t step = bytes.size() - at;
    if (!pieces.empty()) step = std::min<std::size_t>(step, std::max<std::size_t>(1, static_cast<unsigned char>(pieces[cut++ % pieces.size()])));
    const std::string piece(bytes.substr(at, step));   // freed after the call: views into it would be seen
    const std::size_t taken = parser.feed(piece);
    if (taken > piece.size()) std::abort();
    at += taken;
    if (parser.state() == HttpParser::State::head || parser.state() == HttpParser::State::body) continue;
    const Refusal& refusal = parser.refusal();
    append(out, "refusal", std::to_string(refusal.status) + " " + std::string(name(refusal.code)) + " " + refusal.line + (refusal.fatal ? " fatal" : ""));
    if (parser.state() == HttpParser::State::refused) return out;
    const Request& r = slot.request;
    append(out, "method", r.method_text);
    append(out, "target", r.target);
    append(out, "end", std::to_string(at));
    if (!refusal.status) {
      append(out, "path", r.path);
      if (r.path != "*" && (r.path.empty() || r.path.front() != '/')) std::abort();
      if ((std::string(r.path) + "/").find("/../") != std::string::npos || (std::string(r.path) + "/").find("/./") != std::string::npos) std::abort();
      for (const char c : r.path)
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) std::abort();
      for (const Parameter& p : r.query) append(out, p.name, p.value);
      append(out, "body", r.body.view());
    }
    for (const Header& h : r.headers) append(out, h.name, h.value);
    append(out, "alive", parser.keep_alive() ? "yes" : "no");
    slot.reset();
    parser.begin(slot, settings, nullptr);
  }
  append(out, "state", parser.state() == HttpParser::State::head ? "head" : "body");
  return out;
}

void check_http(std::string_view bytes, std::string_view pieces) {
  const std::string one = http_outcome(bytes, {});
  const std::string two = http_outcome(bytes, pieces.empty() ? std::string_view("\1") : pieces);
  if (one != two) report("cutting the stream changed its meaning", one, two);
}

}  // namespace sluice::proxy::test
