// Going over a range of records entry by entry, asking for them in chunks.
#pragma once
#include <algorithm>
#include <array>
#include <cstring>

#include "vm/key_codec.h"
#include "vm/records.h"

namespace sluice::vm {

// Life: the range's bytes outlive it; entries are good as Records says.
class Steps {
 public:
  static constexpr std::size_t kChunk = 32;

  void start(const KeyRange& range) {
    range_ = range;
    at_ = got_ = 0;
    more_ = true;
  }
  // The next one; nullptr at the end. `most`: how many more are wanted at all, at least 1.
  const Entry* next(Records& records, std::size_t most) {
    if (at_ == got_) {
      if (!more_) return nullptr;
      const std::size_t wanted = std::min(most, kChunk);
      if (got_ != 0) go_on_behind(chunk_[got_ - 1].key);
      at_ = 0;
      got_ = records.scan(range_, std::span<Entry>(chunk_.data(), wanted));
      more_ = got_ == wanted;
      if (got_ == 0) return nullptr;
    }
    return &chunk_[at_++];
  }

 private:
  void go_on_behind(std::string_view key) {
    if (range_.backward) {
      range_.high = key;
      return;
    }
    std::memcpy(low_, key.data(), key.size());
    low_[key.size()] = '\0';
    range_.low = {low_, key.size() + 1};
  }

  KeyRange range_;
  std::size_t at_ = 0, got_ = 0;
  bool more_ = false;
  std::array<Entry, kChunk> chunk_;
  char low_[KeyBuffer::kSize + 1];
};

}  // namespace sluice::vm
