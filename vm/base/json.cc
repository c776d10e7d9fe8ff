// A checker and a pointer walk over JSON text as it is: nothing is copied, built or kept.
//
// A parser that builds an index would hold several times the text in every thread that ever read a large document, and
// would read numbers by its own rule; modules ask for one value of a text they already hold, so a walk is enough.
#include "vm/base/json.h"

#include <array>
#include <cstdint>
#include <cstring>

#include "vm/base/number_text.h"
#include "vm/base/utf8.h"

namespace sluice {
namespace {
constexpr std::size_t kDepth = 1024;  // open arrays and objects
constexpr std::string_view kHex = "0123456789abcdef";

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
int hex_value(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// A place in a text. Every step says whether the text went on as the grammar wants; none reads past the end.
struct Walk {
  const char* at;
  const char* end;

  bool more() const { return at != end; }
  void spaces() {
    while (more() && is_space(*at)) ++at;
  }
  bool take(char c) {
    if (!more() || *at != c) return false;
    ++at;
    return true;
  }
  bool take(std::string_view word) {
    if (static_cast<std::size_t>(end - at) < word.size() || std::memcmp(at, word.data(), word.size()) != 0) return false;
    at += word.size();
    return true;
  }
  // The four digits of a u-escape; -1 when they are not there.
  int unit() {
    if (end - at < 4) return -1;
    int code = 0;
    for (int i = 0; i < 4; ++i) {
      const int digit = hex_value(*at++);
      if (digit < 0) return -1;
      code = code * 16 + digit;
    }
    return code;
  }
  bool escape() {
    if (!more()) return false;
    const char c = *at++;
    if (std::string_view("\"\\/bfnrt").find(c) != std::string_view::npos) return true;
    if (c != 'u') return false;
    const int code = unit();
    if (code < 0 || (code >= 0xdc00 && code <= 0xdfff)) return false;
    if (code < 0xd800 || code > 0xdbff) return true;
    if (!take("\\u")) return false;
    const int low = unit();
    return low >= 0xdc00 && low <= 0xdfff;
  }
  bool string() {
    if (!take('"')) return false;
    while (more()) {
      const char c = *at++;
      if (c == '"') return true;
      if (c == '\\') {
        if (!escape()) return false;
      } else if (static_cast<unsigned char>(c) < 0x20) {
        return false;
      }
    }
    return false;
  }
  bool digits() {
    const char* const from = at;
    while (more() && is_digit(*at)) ++at;
    return at != from;
  }
  bool number() {
    take('-');
    if (!take('0') && !digits()) return false;
    if (take('.') && !digits()) return false;
    if (more() && (*at == 'e' || *at == 'E')) {
      ++at;
      if (more() && (*at == '+' || *at == '-')) ++at;
      if (!digits()) return false;
    }
    return true;
  }
  bool scalar() {
    if (!more()) return false;
    switch (*at) {
      case '"': return string();
      case 't': return take("true");
      case 'f': return take("false");
      case 'n': return take("null");
      default: return number();
    }
  }
  bool name() {
    spaces();
    if (!string()) return false;
    spaces();
    return take(':');
  }
  // One value and nothing around it.
  bool value() {
    std::array<std::uint64_t, kDepth / 64> objects{};  // a bit for each open one: is it an object?
    std::size_t depth = 0;
    const auto in_object = [&] { return (objects[(depth - 1) / 64] >> ((depth - 1) % 64) & 1) != 0; };
    while (true) {
      spaces();
      bool closed = true;
      if (more() && (*at == '[' || *at == '{')) {
        if (depth == kDepth) return false;
        const bool is_object = *at++ == '{';
        ++depth;
        const std::uint64_t bit = std::uint64_t{1} << ((depth - 1) % 64);
        std::uint64_t& bits = objects[(depth - 1) / 64];
        bits = is_object ? bits | bit : bits & ~bit;
        spaces();
        closed = take(is_object ? '}' : ']');
        if (closed) --depth;
        else if (is_object && !name()) return false;
      } else if (!scalar()) {
        return false;
      }
      while (closed) {
        if (depth == 0) return true;
        spaces();
        if (take(',')) {
          closed = false;
          if (in_object() && !name()) return false;
        } else if (take(in_object() ? '}' : ']')) {
          --depth;
        } else {
          return false;
        }
      }
    }
  }
};

char* put_code_point(char* out, std::uint32_t code) {
  const auto byte = [&](std::uint32_t b) { *out++ = static_cast<char>(b); };
  if (code < 0x80) {
    byte(code);
  } else if (code < 0x800) {
    byte(0xc0 | code >> 6);
    byte(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    byte(0xe0 | code >> 12);
    byte(0x80 | (code >> 6 & 0x3f));
    byte(0x80 | (code & 0x3f));
  } else {
    byte(0xf0 | code >> 18);
    byte(0x80 | (code >> 12 & 0x3f));
    byte(0x80 | (code >> 6 & 0x3f));
    byte(0x80 | (code & 0x3f));
  }
  return out;
}

// Reads a checked string's content, one character (of at most 4 bytes) at a time.
struct Characters {
  Walk walk;
  // 0 at the end.
  int next(char* out) {
    if (!walk.more()) return 0;
    const char c = *walk.at++;
    if (c != '\\') {
      *out = c;
      return 1;
    }
    switch (const char e = *walk.at++; e) {
      case 'b': *out = '\b'; return 1;
      case 'f': *out = '\f'; return 1;
      case 'n': *out = '\n'; return 1;
      case 'r': *out = '\r'; return 1;
      case 't': *out = '\t'; return 1;
      case 'u': break;
      default: *out = e; return 1;
    }
    auto code = static_cast<std::uint32_t>(walk.unit());
    if (code >= 0xd800 && code <= 0xdbff) {
      walk.at += 2;
      code = 0x10000 + ((code - 0xd800) << 10) + (static_cast<std::uint32_t>(walk.unit()) - 0xdc00);
    }
    return static_cast<int>(put_code_point(out, code) - out);
  }
};
Characters characters(std::string_view raw) {
  return {{raw.data() + 1, raw.data() + raw.size() - 1}};
}

// Whether the checked string `raw` is the pointer's token, whose ~1 and ~0 stand for / and ~.
bool is_token(std::string_view raw, std::string_view token) {
  Characters text = characters(raw);
  char piece[4];
  std::size_t i = 0;
  while (const int length = text.next(piece)) {
    for (int k = 0; k < length; ++k) {
      if (i == token.size()) return false;
      char c = token[i++];
      if (c == '~') c = token[i++] == '0' ? '~' : '/';
      if (c != piece[k]) return false;
    }
  }
  return i == token.size();
}

bool is_pointer(std::string_view pointer) {
  if (!pointer.empty() && pointer.front() != '/') return false;
  for (std::size_t i = 0; i < pointer.size(); ++i)
    if (pointer[i] == '~' && (i + 1 == pointer.size() || (pointer[i + 1] != '0' && pointer[i + 1] != '1'))) return false;
  return true;
}

// An array index by RFC 6901: digits without a leading zero. Absent for everything else, "-" included.
std::optional<std::uint64_t> index_of(std::string_view token) {
  if (token.empty() || token.size() > 10 || (token.size() > 1 && token.front() == '0')) return std::nullopt;
  std::uint64_t index = 0;
  for (char c : token) {
    if (!is_digit(c)) return std::nullopt;
    index = index * 10 + static_cast<std::uint64_t>(c - '0');
  }
  return index;
}

// Moves `walk` from the start of a checked value to the member that `token` names.
bool enter(Walk& walk, std::string_view token) {
  if (walk.take('{')) {
    walk.spaces();
    while (walk.more() && *walk.at == '"') {
      const char* const from = walk.at;
      walk.string();
      const bool found = is_token({from, static_cast<std::size_t>(walk.at - from)}, token);
      walk.spaces();
      walk.take(':');
      walk.spaces();
      if (found) return true;
      walk.value();
      walk.spaces();
      walk.take(',');
      walk.spaces();
    }
    return false;
  }
  if (!walk.take('[')) return false;
  const auto index = index_of(token);
  if (!index) return false;
  walk.spaces();
  for (std::uint64_t i = 0; walk.more() && *walk.at != ']'; ++i) {
    if (i == *index) return true;
    walk.value();
    walk.spaces();
    walk.take(',');
    walk.spaces();
  }
  return false;
}
}  // namespace

void append_json_string(std::string& out, std::string_view text) {
  out.push_back('"');
  std::size_t from = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c >= 0x20 && c != '"' && c != '\\') continue;
    out.append(text, from, i - from);
    from = i + 1;
    out.push_back('\\');
    if (c >= 0x20) {
      out.push_back(static_cast<char>(c));
    } else {
      out.append("u00");
      out.push_back(kHex[c >> 4]);
      out.push_back(kHex[c & 15]);
    }
  }
  out.append(text, from, text.size() - from);
  out.push_back('"');
}

bool json_valid(std::string_view json) {
  Walk walk{json.data(), json.data() + json.size()};
  if (!walk.value()) return false;
  walk.spaces();
  return !walk.more() && valid_utf8(json);
}

std::optional<std::string_view> json_find(std::string_view json, std::string_view pointer) {
  if (!is_pointer(pointer) || !json_valid(json)) return std::nullopt;
  Walk walk{json.data(), json.data() + json.size()};
  walk.spaces();
  while (!pointer.empty()) {
    pointer.remove_prefix(1);
    const std::size_t length = std::min(pointer.find('/'), pointer.size());
    if (!enter(walk, pointer.substr(0, length))) return std::nullopt;
    pointer.remove_prefix(length);
  }
  const char* const from = walk.at;
  walk.value();
  return std::string_view(from, static_cast<std::size_t>(walk.at - from));
}

std::size_t json_decode(std::string_view raw, char* out) {
  Characters text = characters(raw);
  const char* const start = out;
  char piece[4];
  while (const int length = text.next(piece)) {
    std::memcpy(out, piece, static_cast<std::size_t>(length));
    out += length;
  }
  return static_cast<std::size_t>(out - start);
}

std::string json_unquote(std::string_view raw) {
  std::string text(raw.size(), '\0');
  text.resize(json_decode(raw, text.data()));
  return text;
}

bool json_each(std::string_view json, const std::function<void(std::string_view name, std::string_view raw)>& f) {
  if (!json_valid(json)) return false;
  Walk walk{json.data(), json.data() + json.size()};
  walk.spaces();
  const bool is_object = walk.take('{');
  if (!is_object && !walk.take('[')) return false;
  walk.spaces();
  const auto since = [&walk](const char* from) { return std::string_view(from, static_cast<std::size_t>(walk.at - from)); };
  while (*walk.at != '}' && *walk.at != ']') {
    std::string member;
    if (is_object) {
      const char* const from = walk.at;
      walk.string();
      member = json_unquote(since(from));
      walk.spaces();
      walk.take(':');
      walk.spaces();
    }
    const char* const from = walk.at;
    walk.value();
    f(member, since(from));
    walk.spaces();
    walk.take(',');
    walk.spaces();
  }
  return true;
}

std::optional<std::string> json_text(std::string_view json, std::string_view pointer) {
  const auto raw = json_find(json, pointer);
  if (!raw || !json_is_text(*raw)) return std::nullopt;
  return json_unquote(*raw);
}

std::optional<double> json_number(std::string_view json, std::string_view pointer) {
  const auto raw = json_find(json, pointer);
  if (!raw) return std::nullopt;
  return read_number(*raw);
}

}  // namespace sluice
