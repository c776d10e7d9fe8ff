// libFuzzer over the reader of backends' answers: any bytes, cut anywhere, mean the same.
//
// Input: a byte n (mod 8; from 128 on: an answer to HEAD), n bytes that say where to cut, and the stream.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "t/fuzz/response_outcome.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view input(reinterpret_cast<const char*>(data), size);
  if (input.empty()) return 0;
  const auto first = static_cast<unsigned char>(input[0]);
  const std::size_t cuts = first % 8;
  input.remove_prefix(1);
  if (input.size() < cuts) return 0;
  sluice::proxy::test::check_response(input.substr(cuts), input.substr(0, cuts), first >= 128);
  return 0;
}
