// Bytes that stay where they are while more come, given back all at once or down to a mark.
#pragma once
#include <cstddef>
#include <memory>
#include <vector>

namespace sluice::store {

// Life: what take() gave is good until clear(), or back_to() a mark from before it. Thread: its owner's.
class ByteArena {
 public:
  struct Mark {
    std::size_t chunk = 0, used = 0, bytes = 0;
  };
  char* take(std::size_t bytes);
  Mark mark() const { return {at_, at_ < chunks_.size() ? chunks_[at_].used : 0, bytes_}; }
  void back_to(const Mark& mark);
  // Keeps a few ordinary chunks.
  void clear();
  std::size_t bytes() const { return bytes_; }   // taken

 private:
  struct Chunk {
    std::unique_ptr<char[]> bytes;
    std::size_t size = 0, used = 0;
  };
  std::vector<Chunk> chunks_;                    // those behind at_ are empty
  std::size_t at_ = 0, bytes_ = 0;
};

}  // namespace sluice::store
