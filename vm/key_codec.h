// Values as parts of keys: in the order of the bytes they sort as the values do.
//
//   num, int     8 bytes, the bits of the double, highest first: inverted if negative, else with the sign bit set
//   u32          4 bytes, highest first
//   bool         1 byte, 0 or 1
//   text, slug   its bytes, then 00; texts in keys have no U+0000, so 00 sorts first and nothing is escaped
//   desc         all bytes inverted
//
// Each part ends by itself, so parts one behind the other sort as tuples.
// Source: design module.md 4.2.
#pragma once
#include <cstddef>
#include <cstring>
#include <string_view>

#include "vm/module.h"

namespace sluice::vm {

// A place to build one key.
struct KeyBuffer {
  static constexpr std::size_t kSize = 512;      // more than kEncodedKeyMax
  char bytes[kSize];
  std::size_t size = 0;

  std::string_view view() const { return {bytes, size}; }
  bool append(std::string_view more) {
    if (more.size() > kSize - size) return false;
    if (!more.empty()) std::memcpy(bytes + size, more.data(), more.size());
    size += more.size();
    return true;
  }
};

// Whether a column can hold `value` at all, as far as its key form goes: a u32 can hold no fraction. Nothing that cannot
// is ever found.
bool has_key_form(const Slot& slot, const Value& value);
// Errors: encoding (U+0000), limit (longer than the column's texts, or than any key).
// Shape: has_key_form().
Fault append_key(KeyBuffer& to, const Slot& slot, bool descending, const Value& value);

// Bytes of the part at the front of `key`; npos when it has no end there.
std::size_t key_part_size(Base base, bool descending, std::string_view key);

// Makes the least key that is above all keys beginning with this one. False: there is none.
bool next_key(KeyBuffer& key);

}  // namespace sluice::vm
