#include "vm/image.h"

#include <cmath>

#include "vm/wire.h"

namespace sluice::vm {
namespace {
constexpr double kWholeMax = 9007199254740992.0;

void put_varint(std::string& out, std::uint64_t n) {
  for (; n >= 0x80; n >>= 7) out.push_back(static_cast<char>(n | 0x80));
  out.push_back(static_cast<char>(n));
}
// Absent when it is longer than needed, or is not all of `bytes`.
std::optional<std::uint64_t> whole_varint(std::string_view bytes) {
  std::uint64_t n = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto byte = static_cast<unsigned char>(bytes[i]);
    if (i == 9 && byte > 1) return std::nullopt;
    n |= std::uint64_t{byte & 0x7fu} << (7 * i);
    if (byte < 0x80) return i + 1 == bytes.size() && (byte != 0 || i == 0) ? std::optional(n) : std::nullopt;
  }
  return std::nullopt;
}
std::uint64_t zigzag64(std::int64_t n) { return (static_cast<std::uint64_t>(n) << 1) ^ static_cast<std::uint64_t>(n >> 63); }
std::int64_t unzigzag64(std::uint64_t n) { return static_cast<std::int64_t>(n >> 1) ^ -static_cast<std::int64_t>(n & 1); }

}  // namespace

std::string state_key(std::uint16_t state) {
  std::string key("\x02", 1);
  put_varint(key, state);
  return key;
}

void encode_state(std::string& out, const Slot& slot, const Value& value) {
  switch (slot.base) {
    case Base::num: Writer(out).f64(value.num); break;
    case Base::integer: case Base::u32: put_varint(out, zigzag64(static_cast<std::int64_t>(value.num))); break;
    case Base::boolean: out.push_back(value.boolean ? '\1' : '\0'); break;
    case Base::text: case Base::slug: case Base::bytes: out.append(value.text()); break;
  }
}

std::optional<Value> decode_state(const Slot& slot, std::string_view bytes) {
  switch (slot.base) {
    case Base::num: {
      if (bytes.size() != 8) return std::nullopt;
      const double n = Reader(bytes).f64();
      return is_number(n) ? std::optional(Value::number(n)) : std::nullopt;
    }
    case Base::integer: case Base::u32: {
      const auto n = whole_varint(bytes);
      if (!n) return std::nullopt;
      const auto whole = static_cast<double>(unzigzag64(*n));
      if (std::fabs(whole) > kWholeMax) return std::nullopt;
      if (slot.base == Base::u32 && (whole < 0 || whole > 4294967295.0)) return std::nullopt;
      return Value::number(whole);
    }
    case Base::boolean:
      if (bytes.size() != 1 || static_cast<unsigned char>(bytes[0]) > 1) return std::nullopt;
      return Value::truth(bytes[0] != 0);
    case Base::text: case Base::slug: return Value::span(bytes);
    case Base::bytes: return Value::span(bytes, Type::bytes);
  }
  return std::nullopt;
}

std::string encode_clock(const Clock& clock) {
  std::string out;
  Writer(out).u64(clock.seq);
  Writer(out).u64(clock.now_ms);
  return out;
}

std::optional<Clock> decode_clock(std::string_view bytes) {
  Reader in(bytes);
  Clock clock;
  clock.seq = in.u64();
  clock.now_ms = in.u64();
  if (!in.used_up()) return std::nullopt;
  return clock;
}

}  // namespace sluice::vm
