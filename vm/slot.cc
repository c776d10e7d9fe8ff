#include "vm/slot.h"

#include <cmath>

#include "vm/base/number_text.h"
#include "vm/base/utf8.h"

namespace sluice::vm {
namespace {
constexpr double kWholeMax = 9007199254740992.0;  // 2^53: `int` is within plus and minus this
constexpr double kU32Max = 4294967295.0;

bool is_kind(Base base, double n) {
  if (base == Base::integer) return n == std::trunc(n) && std::fabs(n) <= kWholeMax;
  if (base == Base::u32) return n == std::trunc(n) && n >= 0 && n <= kU32Max;
  return true;
}
}  // namespace

Fault narrow(const Slot& slot, Value& value) {
  switch (slot.base) {
    case Base::num: case Base::integer: case Base::u32: {
      if (slot.range == Range::clamp) {
        // Saturate first: what is beyond the range need not be of the slot's kind, its end is.
        if (value.num < slot.low) value.num = slot.low;
        if (value.num > slot.high) value.num = slot.high;
      }
      if (!is_kind(slot.base, value.num)) return Fault::clamp;
      if (slot.range == Range::in && (value.num < slot.low || value.num > slot.high)) return Fault::clamp;
      return Fault::none;
    }
    case Base::boolean: return Fault::none;
    case Base::slug: return is_slug(value.text()) ? Fault::none : Fault::encoding;
    case Base::text: case Base::bytes: return value.size <= slot.max ? Fault::none : Fault::limit;
  }
  return Fault::encoding;
}

bool is_slug(std::string_view text) {
  if (text.empty() || text.size() > kSlugMax) return false;
  for (char c : text) {
    const bool good = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
    if (!good) return false;
  }
  return true;
}

std::optional<Value> read_slot(const Slot& slot, std::string_view text) {
  switch (slot.base) {
    case Base::num: case Base::integer: case Base::u32: {
      const auto n = read_number(text);
      if (!n || !is_kind(slot.base, *n)) return std::nullopt;
      return Value::number(*n);
    }
    case Base::boolean:
      if (text == "true") return Value::truth(true);
      if (text == "false") return Value::truth(false);
      return std::nullopt;
    case Base::slug:
      if (!is_slug(text)) return std::nullopt;
      return Value::span(text);
    case Base::text:
      if (!valid_utf8(text)) return std::nullopt;
      return Value::span(text);
    case Base::bytes: return Value::span(text, Type::bytes);
  }
  return std::nullopt;
}

}  // namespace sluice::vm
