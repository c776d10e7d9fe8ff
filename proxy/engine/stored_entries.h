// The stored entries of a range, one by one, read by chunks that fit on the stack.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "store/store.h"
#include "vm/base/result.h"
#include "vm/records.h"

namespace sluice::proxy {

// Life: the range's bounds and the snapshot outlive it. Thread: the snapshot's.
class StoredEntries {
 public:
  // `snapshot` null: there are none. What cannot be read is noted in `error`, and ends it.
  StoredEntries(const store::Snapshot* snapshot, const vm::KeyRange& range, Error& error)
      : snapshot_(snapshot), range_{range.low, range.high, range.backward}, error_(error), over_(snapshot == nullptr) {}

  // False: there are no more. `most`: how many can be of use.
  bool more(std::size_t most) {
    if (at_ < count_) return true;
    if (over_) return false;
    const std::size_t asked = std::min(most, chunk_.size());
    const Result<std::size_t> read = snapshot_->scan(range_, {chunk_.data(), asked});
    if (!read) error_ = read.error();
    at_ = 0;
    count_ = read ? *read : 0;
    over_ = count_ < asked;
    if (!over_) go_on_behind(chunk_[count_ - 1].key);
    return count_ > 0;
  }
  const store::Entry& entry() const { return chunk_[at_]; }
  void step() { ++at_; }

 private:
  void go_on_behind(std::string_view key) {
    if (range_.backward) {
      range_.high = key;
      return;
    }
    std::memcpy(low_.data(), key.data(), key.size());
    low_[key.size()] = '\0';
    range_.low = {low_.data(), key.size() + 1};
  }

  const store::Snapshot* snapshot_;
  store::KeyRange range_;
  Error& error_;
  bool over_;
  std::size_t at_ = 0, count_ = 0;
  std::array<store::Entry, 64> chunk_;
  std::array<char, 512> low_;          // one more than LMDB's longest key
};

}  // namespace sluice::proxy
