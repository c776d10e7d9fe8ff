// The bytes of an answer, wherever they are: owned here, shared with a request, or lent by a store's mapping.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/buffer.h"

namespace sluice::proxy {

// Units: bytes of room that a Body keeps for the next answer: bodies are pooled by the thousand, and one large answer must
// not keep its room in each of them.
inline constexpr std::size_t kBodyKept = 16 * 1024;

// Shape: at most one of `text`, `buffer` and `pieces` is used.
// Life:  `pieces` are good while `loan` is held; release both together.
struct Body {
  std::string text;                        // small answers; keeps its room over reset(), up to kBodyKept
  Buffer buffer;                           // a borrowed field of the request
  std::size_t buffer_at = 0, buffer_size = 0;   // the part of `buffer` that is meant
  std::shared_ptr<const void> loan;        // a store's snapshot
  std::vector<std::string_view> pieces;

  std::uint64_t size() const {
    if (buffer) return buffer_size;
    if (loan) {
      std::uint64_t n = 0;
      for (auto p : pieces) n += p.size();
      return n;
    }
    return text.size();
  }
  // The bytes when they are in one piece (always, but for large lent documents); else empty.
  std::string_view flat() const {
    if (buffer) return buffer.view().substr(buffer_at, buffer_size);
    if (loan) return pieces.size() == 1 ? pieces[0] : std::string_view();
    return text;
  }
  void reset() {
    if (text.capacity() > kBodyKept) std::string().swap(text);
    else text.clear();
    buffer.reset();
    buffer_at = buffer_size = 0;
    if (pieces.capacity() > kBodyKept / sizeof(std::string_view)) std::vector<std::string_view>().swap(pieces);
    else pieces.clear();
    loan.reset();
  }
};

}  // namespace sluice::proxy
