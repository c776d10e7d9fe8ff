// What is valid UTF-8, and how long it is.
#pragma once
#include <cstddef>
#include <string_view>

namespace sluice {

// Source: RFC 3629 (no surrogates, no overlong forms, at most U+10FFFF).
bool valid_utf8(std::string_view bytes);

// Code points in valid UTF-8.
std::size_t count_chars(std::string_view text);

}  // namespace sluice
