#include "vm/places.h"

#include <algorithm>

#include "vm/base/utf8.h"
#include "vm/lexer.h"

namespace sluice::vm {

Places::Places(std::string_view source) {
  starts_.push_back(0);
  for (std::uint32_t i = 0; i < source.size(); ++i)
    if (source[i] == '\n') starts_.push_back(i + 1);
}

Diagnostic Places::at(const Complaint& c, Diagnostic::Kind kind) const {
  const auto next = std::upper_bound(starts_.begin(), starts_.end(), c.span.offset);
  const std::size_t line = static_cast<std::size_t>(next - starts_.begin());
  Diagnostic d;
  d.kind = kind;
  d.line = static_cast<std::uint32_t>(line);
  d.column = c.span.offset - starts_[line - 1] + 1;
  d.length = std::max<std::uint32_t>(1, c.span.length);
  d.message = c.message;
  d.hint = c.hint;
  return d;
}

std::optional<Complaint> unreadable(std::string_view source) {
  if (source.size() > kSourceMax)
    return Complaint{{}, "the module is longer than 1 MiB", "split it into several modules"};
  if (valid_utf8(source)) return std::nullopt;
  // Character by character: the first that is none is the place.
  std::size_t good = 0;
  while (good < source.size()) {
    std::size_t n = 1;
    while (n <= 4 && !valid_utf8(source.substr(good, n))) ++n;
    if (n > 4) break;
    good += n;
  }
  return Complaint{{static_cast<std::uint32_t>(good), 1}, "this is not UTF-8", "save the file as UTF-8"};
}

}  // namespace sluice::vm
