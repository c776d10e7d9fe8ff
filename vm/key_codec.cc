#include "vm/key_codec.h"

#include <bit>
#include <cmath>

namespace sluice::vm {
namespace {
template <class T>
void highest_first(char* out, T n) {
  for (std::size_t i = 0; i < sizeof n; ++i) out[i] = static_cast<char>(n >> (8 * (sizeof n - 1 - i)));
}
}  // namespace

bool has_key_form(const Slot& slot, const Value& value) {
  if (slot.base == Base::text) return value.size <= slot.max && value.text().find('\0') == std::string_view::npos;
  return slot.base != Base::u32 || (value.num >= 0 && value.num <= 4294967295.0 && value.num == std::trunc(value.num));
}

Fault append_key(KeyBuffer& to, const Slot& slot, bool descending, const Value& value) {
  char* const at = to.bytes + to.size;
  std::size_t size = 0;
  const std::size_t room = KeyBuffer::kSize - to.size;
  switch (slot.base) {
    case Base::num: case Base::integer: {
      size = 8;
      if (room < size) return Fault::limit;
      auto bits = std::bit_cast<std::uint64_t>(value.num);
      bits = bits >> 63 != 0 ? ~bits : bits | 1ULL << 63;
      highest_first(at, bits);
      break;
    }
    case Base::u32:
      size = 4;
      if (room < size) return Fault::limit;
      highest_first(at, static_cast<std::uint32_t>(value.num));
      break;
    case Base::boolean:
      size = 1;
      if (room < size) return Fault::limit;
      *at = value.boolean ? 1 : 0;
      break;
    case Base::text: case Base::slug: case Base::bytes: {
      const std::string_view text = value.text();
      if (text.size() > slot.max || text.size() >= room) return Fault::limit;
      if (text.find('\0') != std::string_view::npos) return Fault::encoding;
      if (!text.empty()) std::memcpy(at, text.data(), text.size());
      at[text.size()] = '\0';
      size = text.size() + 1;
      break;
    }
  }
  if (descending)
    for (std::size_t i = 0; i < size; ++i) at[i] = static_cast<char>(~at[i]);
  to.size += size;
  return Fault::none;
}

std::size_t key_part_size(Base base, bool descending, std::string_view key) {
  std::size_t size = 0;
  switch (base) {
    case Base::num: case Base::integer: size = 8; break;
    case Base::u32: size = 4; break;
    case Base::boolean: size = 1; break;
    case Base::text: case Base::slug: case Base::bytes: {
      const std::size_t end = key.find(descending ? '\xff' : '\0');
      return end == std::string_view::npos ? end : end + 1;
    }
  }
  return size <= key.size() ? size : std::string_view::npos;
}

bool next_key(KeyBuffer& key) {
  while (key.size > 0 && key.bytes[key.size - 1] == '\xff') --key.size;
  if (key.size == 0) return false;
  ++key.bytes[key.size - 1];
  return true;
}

}  // namespace sluice::vm
