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

// A terminal shows one column per character, not per byte.
std::size_t columns(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

}  // namespace

std::string render(std::string_view file, std::string_view source, const Diagnostic& diagnostic) {
  const std::string line_number = std::to_string(diagnostic.line);
  std::string out(file);
  out += ':' + line_number + ':' + std::to_string(diagnostic.column);
  out += diagnostic.kind == Diagnostic::Kind::warning ? ": warning: " : ": error: ";
  out += diagnostic.message;
  out += '\n';

  const std::string_view text = line_of(source, diagnostic.line);
  const std::size_t before = std::min<std::size_t>(diagnostic.column - 1, text.size());
  const std::string_view words = text.substr(before, diagnostic.length);
  const std::size_t width = std::max<std::size_t>(5, line_number.size());
  out.append(width - line_number.size(), ' ');
  out += line_number + " | ";
  for (char c : text) out += static_cast<unsigned char>(c) < 0x20 && c != '\t' ? ' ' : c;
  out += '\n';
  out.append(width, ' ');
  out += " | ";
  for (char c : text.substr(0, before))
    if ((static_cast<unsigned char>(c) & 0xc0) != 0x80) out += c == '\t' ? '\t' : ' ';
  out += '^';
  out.append(std::max<std::size_t>(1, columns(words)) - 1, '~');
  out += '\n';
  if (!diagnostic.hint.empty()) out += " hint: " + diagnostic.hint + '\n';
  return out;
}

}  // namespace sluice::vm
