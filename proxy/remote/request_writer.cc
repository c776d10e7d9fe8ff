#include "proxy/remote/request_writer.h"

#include <array>
#include <charconv>

#include "proxy/ascii.h"
#include "proxy/remote/fields.h"

namespace sluice::proxy {
namespace {

constexpr std::string_view kName = "sluice";   // in Via

constexpr std::array<bool, 256> plain(std::string_view more) {
  std::array<bool, 256> t{};
  for (int c = '0'; c <= '9'; ++c) t[static_cast<std::size_t>(c)] = true;
  for (int c = 'a'; c <= 'z'; ++c) t[static_cast<std::size_t>(c)] = t[static_cast<std::size_t>(c - 32)] = true;
  for (const char c : more) t[static_cast<unsigned char>(c)] = true;
  return t;
}
// Source: RFC 3986, 3.3 and 3.4; of a query's parts without what parts them, and `+`, which means a space.
constexpr auto kPath = plain("-._~!$&'()*+,;=:@/");
constexpr auto kQueryPart = plain("-._~!$'()*,;:@/?");

void append_encoded(std::string& out, std::string_view text, const std::array<bool, 256>& kept) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (kept[byte]) {
      out.push_back(c);
      continue;
    }
    out.push_back('%');
    out.push_back(digits[byte >> 4]);
    out.push_back(digits[byte & 15]);
  }
}

int hex(char c) { return c >= '0' && c <= '9' ? c - '0' : lower(c) >= 'a' && lower(c) <= 'f' ? lower(c) - 'a' + 10 : -1; }

// One character of an encoded path; how many bytes of it: 0 at its end or where it is malformed.
std::size_t decode_one(std::string_view text, char& c) {
  if (text.empty()) return 0;
  c = text[0];
  if (c != '%') return 1;
  if (text.size() < 3 || hex(text[1]) < 0 || hex(text[2]) < 0) return 0;
  c = static_cast<char>(hex(text[1]) * 16 + hex(text[2]));
  return 3;
}

// The end of the path that a client wrote, which reads as `path`; empty when it does not.
std::string_view written_path(std::string_view whole, std::string_view path) {
  std::size_t characters = 0;
  char c = 0;
  for (std::string_view rest = whole; !rest.empty(); ++characters) {
    const std::size_t n = decode_one(rest, c);
    if (n == 0) return {};
    rest.remove_prefix(n);
  }
  if (characters < path.size()) return {};
  for (std::size_t skip = characters - path.size(); skip > 0; --skip) whole.remove_prefix(decode_one(whole, c));
  std::string_view rest = whole;
  for (const char wanted : path) {
    const std::size_t n = decode_one(rest, c);
    if (n == 0 || c != wanted) return {};
    rest.remove_prefix(n);
  }
  return whole;
}

// Nothing but what a target may be made of: it goes out as it came in.
bool is_printable(std::string_view text) {
  for (const char c : text)
    if (static_cast<unsigned char>(c) <= 0x20 || static_cast<unsigned char>(c) >= 0x7f) return false;
  return true;
}

void append_target(std::string& out, const Request& request, std::string_view path) {
  std::string_view target = request.target;
  // The absolute form names a host that is not the backend's.
  if (const std::size_t scheme = target.find("://"); scheme != target.npos && target.front() != '/') {
    const std::size_t slash = target.find_first_of("/?", scheme + 3);
    target.remove_prefix(slash == target.npos ? target.size() : slash);
  }
  const bool known = !target.empty() && is_printable(target);
  const std::size_t mark = target.find('?');
  const std::string_view written = known ? written_path(target.substr(0, mark), path) : std::string_view();
  if (!written.empty() && written.front() == '/') {
    out.append(written);
  } else {
    if (path.empty() || path.front() != '/') out.push_back('/');
    append_encoded_path(out, path);
  }
  if (!known) append_encoded_query(out, request.query);
  else if (mark != target.npos) out.append(target.substr(mark));
}

bool announces_body(Method m) { return m == Method::post || m == Method::put || m == Method::patch; }

}  // namespace

void append_encoded_path(std::string& out, std::string_view path) { append_encoded(out, path, kPath); }

void append_encoded_query(std::string& out, std::span<const Parameter> query) {
  char before = '?';
  for (const Parameter& p : query) {
    out.push_back(before);
    before = '&';
    append_encoded(out, p.name, kQueryPart);
    out.push_back('=');
    append_encoded(out, p.value, kQueryPart);
  }
}

bool append_request_head(std::string& out, const Request& request, std::string_view path, std::string_view host_line) {
  std::string_view client_host;
  int hops = 0;
  bool connection = false;
  for (const Header& h : request.headers) {
    if (h.name.size() == 3 && same_text(h.name, "via"))
      each_token(h.value, [&hops](std::string_view one) { hops += one.ends_with(kName) ? 1 : 0; });
    else if (h.name.size() == 4 && same_text(h.name, "host")) client_host = h.value;
    else connection = connection || (h.name.size() == 10 && same_text(h.name, "connection"));
  }
  if (hops >= kMostHops) return false;

  out.append(request.method == Method::other ? request.method_text : name(request.method)).push_back(' ');
  append_target(out, request, path);
  out.append(" HTTP/1.1\r\n").append(host_line);
  std::size_t forwarded = 0;   // how many addresses came
  const auto field = [&out](std::string_view its_name, std::string_view value) {
    out.append(its_name).append(": ").append(value).append("\r\n");
  };
  const auto forwarded_for = [&](std::string_view value) { out.append(forwarded++ == 0 ? "X-Forwarded-For: " : ", ").append(value); };
  for (const Header& h : request.headers) {
    if (is_hop_field(h.name) || (connection && named_by_connection(request.headers, h.name))) continue;
    switch (h.name.size()) {
      case 4:
        if (same_text(h.name, "host")) continue;
        break;
      case 6:
        if (same_text(h.name, "expect")) continue;
        break;
      case 14:
        if (same_text(h.name, "content-length")) continue;
        break;
      case 15:
        if (same_text(h.name, "x-forwarded-for")) continue;
        break;
      case 16:
        if (same_text(h.name, "x-forwarded-host") && !client_host.empty()) continue;
        break;
      default: break;
    }
    field(h.name, h.value);
  }
  for (const Header& h : request.headers)
    if (h.name.size() == 15 && same_text(h.name, "x-forwarded-for") && !h.value.empty()) forwarded_for(h.value);
  if (!request.client_ip.empty()) forwarded_for(request.client_ip);
  if (forwarded > 0) out.append("\r\n");
  if (!client_host.empty()) field("X-Forwarded-Host", client_host);
  out.append(request.minor == 0 ? "Via: 1.0 " : "Via: 1.1 ").append(kName).append("\r\n");
  if (request.body.size() > 0 || (announces_body(request.method))) {
    std::array<char, 24> digits{};
    char* const end = std::to_chars(digits.data(), digits.data() + digits.size(), request.body.size()).ptr;
    field("Content-Length", {digits.data(), static_cast<std::size_t>(end - digits.data())});
  }
  out.append("\r\n");
  return true;
}

}  // namespace sluice::proxy
