#include "vm/base/utf8.h"

#include <simdjson.h>

namespace sluice {

bool valid_utf8(std::string_view bytes) { return simdjson::validate_utf8(bytes.data(), bytes.size()); }

std::size_t count_chars(std::string_view text) {
  // Every byte but the continuation bytes (10xxxxxx) begins a code point; compilers vectorize this form.
  std::size_t count = 0;
  for (char c : text) count += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  return count;
}

}  // namespace sluice
