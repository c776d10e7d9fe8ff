// Changes module texts word by word: bytes alone seldom make another declaration or statement that still reads.
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size, unsigned seed);

namespace {
constexpr std::string_view kWords[] = {
    "module", "const", "state", "table", "documents", "input", "message", "keyed", "on", "fn", "view", "let", "var", "if", "then", "else",
    "for", "in", "by", "from", "above", "to", "below", "where", "desc", "limit", "insert", "put", "update", "delete", "check", "fail",
    "reply", "return", "splice", "append", "has", "and", "or", "not", "true", "false", "none", "key", "index", "unique", "total", "max",
    "keep", "per", "auto", "was", "drop", "ranked", "every", "down", "up", "start", "timer", "text", "num", "int", "u32", "bool", "slug",
    "bytes", "json", "count", "sum", "min", "first", "any", "all", "rank", "now", "seq", "row", "doc", "clamp", "random", "token", "size",
    "{", "}", "(", ")", "[", "]", ",", ":", "=", "+=", "-=", "==", "<", "<=", "??", "?", "..", ".", "-", "*", "/", "%", "0", "1", "2",
    "100", "10_000", "1e308", "5s", "64KiB", "\"x\"", "\"{now}\"", "not_found", "exists", "denied"};

struct Dice {
  std::uint64_t state;
  std::size_t roll(std::size_t sides) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::size_t>(state >> 33) % sides;
  }
};

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Words, and everything else byte by byte: together they are the text.
std::vector<std::string_view> parts_of(std::string_view text) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    std::size_t n = 1;
    if (is_word(text[0]))
      while (n < text.size() && is_word(text[n])) ++n;
    parts.push_back(text.substr(0, n));
    text.remove_prefix(n);
  }
  return parts;
}

// From `at`, to behind the line.
std::size_t line_end(const std::vector<std::string_view>& parts, std::size_t at) {
  while (at < parts.size() && parts[at] != "\n") ++at;
  return at < parts.size() ? at + 1 : at;
}
}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size, unsigned seed) {
  Dice dice{seed};
  if (size == 0 || dice.roll(4) == 0) return LLVMFuzzerMutate(data, size, max_size);
  const std::string text(reinterpret_cast<const char*>(data), size);
  std::vector<std::string_view> parts = parts_of(text);
  for (std::size_t times = 1 + dice.roll(3); times > 0 && !parts.empty(); --times) {
    const std::size_t at = dice.roll(parts.size());
    const auto place = parts.begin() + static_cast<std::ptrdiff_t>(at);
    const std::string_view word = dice.roll(3) == 0 ? parts[dice.roll(parts.size())] : kWords[dice.roll(std::size(kWords))];
    const std::size_t end = line_end(parts, at);
    switch (dice.roll(6)) {
      case 0: *place = word; break;
      case 1: parts.insert(place, {" ", word, " "}); break;
      case 2: parts.erase(place); break;
      case 3: {                              // the rest of the line again, elsewhere
        const std::vector<std::string_view> line(place, parts.begin() + static_cast<std::ptrdiff_t>(end));
        parts.insert(parts.begin() + static_cast<std::ptrdiff_t>(dice.roll(parts.size())), line.begin(), line.end());
        break;
      }
      case 4: parts.erase(place, parts.begin() + static_cast<std::ptrdiff_t>(end)); break;
      default: std::swap(*place, parts[dice.roll(parts.size())]); break;
    }
  }
  std::string out;
  for (const std::string_view part : parts) out += part;
  if (out.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
  std::memcpy(data, out.data(), out.size());
  return out.size();
}
