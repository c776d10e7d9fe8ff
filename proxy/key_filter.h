// Which part of a key a pool hashes, so that keys that belong together meet in one place.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::proxy {

// Thread: frozen.
struct KeyFilter {
  enum class Kind : std::uint8_t { whole, stop, tags };
  Kind kind = Kind::whole;
  std::string text;                // stop: what ends the part; tags: the two characters around it

  // Life: the key's. stop: what is before the first `text`, the whole key without one. tags: what is between the first
  // opening character and the next closing one; the whole key when nothing is.
  std::string_view apply(std::string_view key) const {
    switch (kind) {
      case Kind::whole: return key;
      case Kind::stop: return key.substr(0, key.find(text));
      case Kind::tags: break;
    }
    const std::size_t open = key.find(text[0]);
    if (open == key.npos) return key;
    const std::size_t close = key.find(text[1], open + 1);
    return close == key.npos || close == open + 1 ? key : key.substr(open + 1, close - open - 1);
  }
};

}  // namespace sluice::proxy
