// The memory of one event: a bump pointer over one block that is kept.
#pragma once
#include <cstring>
#include <memory>
#include <string_view>

#include "vm/module.h"

namespace sluice::vm {

// Shape: kArenaBytes in all, `reserve`d bytes (a reply that is being built elsewhere) included.
// Life:  what take() gave is good until reset().
class Arena {
 public:
  Arena() : block_(new char[kArenaBytes]) {}

  void reset() { used_ = 0; }
  // nullptr when the event has used up its memory: the fault limit.
  char* take(std::size_t bytes, std::size_t reserved = 0) {
    if (bytes > kArenaBytes - used_ || reserved > kArenaBytes - used_ - bytes) return nullptr;
    char* const at = block_.get() + used_;
    used_ += bytes;
    return at;
  }
  // Gives back the last `bytes` of the latest take().
  void give_back(std::size_t bytes) { used_ -= bytes; }
  std::size_t used() const { return used_; }
  const char* top() const { return block_.get() + used_; }
  // Gives back all that was taken since used() said so.
  void give_back_to(std::size_t used) { used_ = used; }
  bool has_room(std::size_t bytes) const { return bytes <= kArenaBytes - used_; }
  // Whether it was taken while between so many bytes were in use, as used() said.
  bool is_between(const char* p, std::size_t before, std::size_t behind) const {
    return holds(p) && p >= block_.get() + before && p < block_.get() + behind;
  }
  bool holds(const char* p) const { return p >= block_.get() && p < block_.get() + kArenaBytes; }

 private:
  std::unique_ptr<char[]> block_;
  std::size_t used_ = 0;
};

}  // namespace sluice::vm
