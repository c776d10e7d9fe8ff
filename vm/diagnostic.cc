// How an error reads.
#include <algorithm>

#include "vm/compiler.h"

namespace sluice::vm {
namespace {

std::string_view line_of(std::string_view source, std::uint32_t line) {
  std::size_t from = 0;
  for (std::uint32_t n = 1; n < line; ++n) {
    const std::size_t feed = source.find('\n', from);
    if (feed == std::string_view::npos) return {};
    from = feed + 1;
  }
  std::string_view text = source.substr(from, source.find('\n', from) - from);
  if (text.ends_with('\r')) text.remove_suffix(1);
  return text;
}

bool is_inside_character(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

// A terminal shows one column per character, not per byte.
std::size_t columns(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) { return !is_inside_character(c); }));
}

// A line of a file that is no text may be all of it.
constexpr std::size_t kWidest = 240, kBefore = 80;

// The part of a long line around what is wrong. `before` becomes how much of the part stands in front of that.
std::string_view part_of(std::string_view text, std::size_t& before) {
  if (text.size() <= kWidest) return text;
  std::size_t from = before > kBefore ? before - kBefore : 0;
  std::size_t to = std::min(text.size(), from + kWidest);
  while (from > 0 && is_inside_character(text[from]) && before - from < kWidest) --from;
  while (to < text.size() && is_inside_character(text[to]) && to - from < 2 * kWidest) ++to;
  before -= from;
  return text.substr(from, to - from);
}

}  // namespace

std::string render(std::string_view file, std::string_view source, const Diagnostic& diagnostic) {
  const std::string line_number = std::to_string(diagnostic.line);
  std::string out(file);
  out += ':' + line_number + ':' + std::to_string(diagnostic.column);
  out += diagnostic.kind == Diagnostic::Kind::warning ? ": warning: " : ": error: ";
  out += diagnostic.message;
  out += '\n';

  const std::string_view line = line_of(source, diagnostic.line);
  std::size_t before = std::min<std::size_t>(diagnostic.column - 1, line.size());
  const std::string_view text = part_of(line, before);
  const std::string_view words = text.substr(before, diagnostic.length);
  const std::size_t width = std::max<std::size_t>(5, line_number.size());
  out.append(width - line_number.size(), ' ');
  out += line_number + " | ";
  for (char c : text) out += static_cast<unsigned char>(c) < 0x20 && c != '\t' ? ' ' : c;
  out += '\n';
  out.append(width, ' ');
  out += " | ";
  for (char c : text.substr(0, before))
    if (!is_inside_character(c)) out += c == '\t' ? '\t' : ' ';
  out += '^';
  out.append(std::max<std::size_t>(1, columns(words)) - 1, '~');
  out += '\n';
  if (!diagnostic.hint.empty()) out += " hint: " + diagnostic.hint + '\n';
  return out;
}

}  // namespace sluice::vm
