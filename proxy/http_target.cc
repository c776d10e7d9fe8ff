#include "proxy/http_target.h"

#include <array>
#include <cstring>

#include "proxy/ascii.h"

namespace sluice::proxy {
namespace {

constexpr std::array<signed char, 256> hex_table() {
  std::array<signed char, 256> t{};
  for (auto& v : t) v = -1;
  for (int i = 0; i < 10; ++i) t[static_cast<std::size_t>('0' + i)] = static_cast<signed char>(i);
  for (int i = 0; i < 6; ++i) {
    t[static_cast<std::size_t>('a' + i)] = static_cast<signed char>(10 + i);
    t[static_cast<std::size_t>('A' + i)] = static_cast<signed char>(10 + i);
  }
  return t;
}
constexpr auto kHex = hex_table();

int hex(char c) { return kHex[static_cast<unsigned char>(c)]; }

// Appends the decoded `raw` and sets `out` to it; `out` is `raw` itself where nothing was encoded. False: `%` without
// two digits.
bool decode(std::string_view raw, bool plus_is_space, std::string& arena, std::string_view& out) {
  const bool encoded = raw.find('%') != raw.npos || (plus_is_space && raw.find('+') != raw.npos);
  if (!encoded) {
    out = raw;
    return true;
  }
  const std::size_t at = arena.size();
  for (std::size_t i = 0; i < raw.size(); ++i) {
    char c = raw[i];
    if (c == '%') {
      if (raw.size() - i < 3) return false;
      const int high = hex(raw[i + 1]), low = hex(raw[i + 2]);
      if (high < 0 || low < 0) return false;
      c = static_cast<char>(high * 16 + low);
      i += 2;
    } else if (c == '+' && plus_is_space) {
      c = ' ';
    }
    arena.push_back(c);
  }
  out = std::string_view(arena).substr(at);
  return true;
}

// `.` or `..` between slashes or at the end.
bool has_dot_segment(std::string_view path) {
  for (std::size_t at = path.find("/."); at != path.npos; at = path.find("/.", at + 1)) {
    std::string_view rest = path.substr(at + 2);
    if (!rest.empty() && rest.front() == '.') rest.remove_prefix(1);
    if (rest.empty() || rest.front() == '/') return true;
  }
  return false;
}

bool has_encoded_slash(std::string_view raw) {
  for (std::size_t at = raw.find('%'); at != raw.npos; at = raw.find('%', at + 1))
    if (raw.size() - at >= 3 && raw[at + 1] == '2' && (raw[at + 2] == 'F' || raw[at + 2] == 'f')) return true;
  return false;
}

bool has_control(std::string_view path) {
  for (const char c : path)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return true;
  return false;
}

// Whether a target holds none of the bytes that mean something in it: then it is its own path.
constexpr std::array<bool, 256> special_table() {
  std::array<bool, 256> t{};
  for (const char c : std::string_view("%?#.*")) t[static_cast<unsigned char>(c)] = true;
  return t;
}
constexpr auto kSpecial = special_table();
bool is_simple(std::string_view target) {
  bool special = target.front() != '/';
  for (const char c : target) special |= kSpecial[static_cast<unsigned char>(c)];
  return !special;
}

Refusal bad(const char* line) { return {400, Errc::request, line, false}; }

Refusal read_query(std::string_view raw, Request& r, std::string& arena) {
  while (!raw.empty()) {
    const std::size_t end = raw.find('&');
    const std::string_view item = raw.substr(0, end);
    raw = end == raw.npos ? std::string_view() : raw.substr(end + 1);
    if (item.empty()) continue;
    const std::size_t eq = item.find('=');
    Parameter p;
    if (!decode(item.substr(0, eq), true, arena, p.name) ||
        (eq != item.npos && !decode(item.substr(eq + 1), true, arena, p.value)))
      return {400, Errc::query, "a % in the query is not followed by two hex digits", false};
    r.query.push_back(p);
  }
  return {};
}

}  // namespace

Refusal read_target(Request& r, std::string& arena) {
  std::string_view raw = r.target;
  r.query.clear();
  arena.clear();
  if (is_simple(raw)) {
    r.path = raw;
    return {};
  }
  arena.reserve(raw.size());
  if (raw == "*") {
    if (r.method != Method::options) return bad("the target * is for OPTIONS");
    r.path = raw;
    return {};
  }
  if (raw.find('#') != raw.npos) return bad("a request target has no fragment");
  if (raw.front() != '/') {
    const std::size_t scheme = raw.size() > 7 && same_text(raw.substr(0, 7), "http://")    ? 7
                               : raw.size() > 8 && same_text(raw.substr(0, 8), "https://") ? 8
                                                                                           : 0;
    if (scheme == 0) return bad("the request target is neither a path nor an http URL");
    raw.remove_prefix(scheme);
    const std::size_t authority = raw.find_first_of("/?");
    const std::string_view host = raw.substr(0, authority);
    if (host.empty() || host.find('@') != host.npos) return bad("the request target's host is empty or has user data");
    raw = authority == raw.npos ? std::string_view() : raw.substr(authority);
  }
  const std::size_t mark = raw.find('?');
  const std::string_view path = raw.substr(0, mark);
  if (path.empty()) {
    r.path = "/";
  } else {
    if (has_encoded_slash(path)) return bad("an encoded slash in the path");
    if (!decode(path, false, arena, r.path)) return bad("a % in the path is not followed by two hex digits");
    // Only what was encoded can be a control byte here: the parser lets none pass.
    if (r.path.data() != path.data() && has_control(r.path)) return bad("an encoded control byte in the path");
    if (has_dot_segment(r.path)) return bad("a dot segment in the path");
  }
  return mark == raw.npos ? Refusal{} : read_query(raw.substr(mark + 1), r, arena);
}

}  // namespace sluice::proxy
