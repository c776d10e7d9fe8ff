#include "store/byte_arena.h"

#include <utility>

namespace sluice::store {

namespace {
constexpr std::size_t kChunkBytes = 64 * 1024;
constexpr std::size_t kWarmChunks = 16;
}  // namespace

char* ByteArena::take(std::size_t bytes) {
  while (at_ < chunks_.size() && chunks_[at_].size - chunks_[at_].used < bytes) {
    // What does not fit into an ordinary chunk gets its own, put before the empty ones.
    if (chunks_[at_].used == 0) break;
    ++at_;
  }
  if (at_ == chunks_.size() || chunks_[at_].size < bytes) {
    Chunk chunk;
    chunk.size = bytes > kChunkBytes ? bytes : kChunkBytes;
    chunk.bytes = std::make_unique_for_overwrite<char[]>(chunk.size);
    chunks_.insert(chunks_.begin() + static_cast<std::ptrdiff_t>(at_), std::move(chunk));
  }
  Chunk& chunk = chunks_[at_];
  char* const at = chunk.bytes.get() + chunk.used;
  chunk.used += bytes;
  bytes_ += bytes;
  return at;
}

void ByteArena::back_to(const Mark& mark) {
  for (std::size_t i = mark.chunk + 1; i < chunks_.size() && chunks_[i].used > 0; ++i) chunks_[i].used = 0;
  at_ = mark.chunk;
  if (at_ < chunks_.size()) chunks_[at_].used = mark.used;
  bytes_ = mark.bytes;
}

void ByteArena::clear() {
  std::erase_if(chunks_, [](const Chunk& chunk) { return chunk.size > kChunkBytes; });
  if (chunks_.size() > kWarmChunks) chunks_.resize(kWarmChunks);
  for (Chunk& chunk : chunks_) chunk.used = 0;
  at_ = bytes_ = 0;
}

}  // namespace sluice::store
