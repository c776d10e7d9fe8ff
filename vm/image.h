// Values as the bytes a store keeps, and the keys they are kept under.
//
//   01            catalog (vm/catalog.h)
//   01 01         u64 seq, u64 last now (ms)
//   02 varint n   state n: num 8 bytes little endian; int and u32 zigzag varint; bool 1 byte; text its bytes
//
// Source: design module.md 4.1, 4.3.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "vm/module.h"

namespace sluice::vm {

std::string state_key(std::uint16_t state);
void encode_state(std::string& out, const Slot& slot, const Value& value);
// Life: a text points into `bytes`. Absent: the bytes are not of this slot (the store is damaged).
std::optional<Value> decode_state(const Slot& slot, std::string_view bytes);

inline constexpr std::string_view kCatalogKey{"\x01", 1};
inline constexpr std::string_view kClockKey{"\x01\x01", 2};
struct Clock { std::uint64_t seq = 0; std::uint64_t now_ms = 0; };
std::string encode_clock(const Clock& clock);
std::optional<Clock> decode_clock(std::string_view bytes);

}  // namespace sluice::vm
