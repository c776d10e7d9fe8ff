// Numbers to text and back, the one way a client, a log and a module see them.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace sluice {

// Appends the shortest digits that read back as `value`, laid out as ECMAScript Number::toString.
// Shape:  value is finite; at most 25 bytes; 0 has no sign.
// Source: RFC 8785, 3.2.2.3.
void append_number(std::string& out, double value);

// The same into a buffer of at least 32 bytes; returns the length.
std::size_t write_number(char* out, double value);

// Reads an optional `-`, digits, an optional fraction and exponent, correctly rounded, and nothing else:
// no `+` in front, no hex, no `inf`, no space. Absent when it is not that or is not finite. -0 reads as 0.
std::optional<double> read_number(std::string_view text);

}  // namespace sluice
