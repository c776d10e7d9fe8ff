// Which keys a burst has seen: a set of hashes that is emptied in no time.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "vm/base/hash.h"

namespace sluice::proxy {

// Two keys of one hash are taken for the same: a burst then ends one event early, and nothing else happens.
// Shape:  room for half of `slots` keys; slots is a power of two.
// Thread: its owner's.
class KeySet {
 public:
  explicit KeySet(std::size_t slots) : slots_(slots) {}
  void clear() { ++stamp_; }
  void add(std::string_view key) {
    const std::uint64_t hash = xxh3_64(key);
    slots_[at(hash)] = {hash, stamp_};
  }
  bool contains(std::string_view key) const { return slots_[at(xxh3_64(key))].stamp == stamp_; }

 private:
  struct Slot {
    std::uint64_t hash = 0;
    std::uint64_t stamp = 0;    // of the burst that put it here; another one: free
  };
  std::size_t at(std::uint64_t hash) const {
    std::size_t i = hash & (slots_.size() - 1);
    while (slots_[i].stamp == stamp_ && slots_[i].hash != hash) i = (i + 1) & (slots_.size() - 1);
    return i;
  }
  std::vector<Slot> slots_;
  std::uint64_t stamp_ = 1;
};

}  // namespace sluice::proxy
