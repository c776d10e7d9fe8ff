// What the parser makes of a stream of bytes, as one text, so that two ways of feeding it can be compared.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::proxy::test {

// Parses requests until the bytes end or one is refused. `pieces` decides where the stream is cut (each byte is the
// length of one piece, over and over); empty: not at all.
std::string http_outcome(std::string_view bytes, std::string_view pieces);

// Aborts with both outcomes when cutting the stream changes what it says, or when a request breaks a rule that routes
// rely on (a path without a slash in front, a dot segment, a control byte).
void check_http(std::string_view bytes, std::string_view pieces);

}  // namespace sluice::proxy::test
