#include "store/batch.h"

#include <cstring>

#include "vm/base/check.h"
#include "vm/base/hash.h"

namespace sluice::store {

namespace {
constexpr std::size_t kChunkBytes = 64 * 1024;
constexpr std::size_t kIndexMin = 64;

std::size_t size_of(const std::optional<std::string>& value) { return value ? value->size() : 0; }

std::size_t size_of(const DocumentWrite& document) {
  std::size_t n = document.key.size();
  for (const DocumentWrite::Piece& piece : document.pieces)
    if (!piece.kept) n += piece.bytes.size();
  return n;
}
}  // namespace

const std::optional<std::string>* Batch::find(std::string_view key) const {
  auto at = keyed_.find(key);
  return at == keyed_.end() ? nullptr : &at->second;
}

void Batch::put(std::string_view key, std::string_view value) { set(key, value); }

void Batch::erase(std::string_view key) { set(key, std::nullopt); }

void Batch::set(std::string_view key, std::optional<std::string_view> value) {
  // LMDB takes keys of 1..511 bytes; the key of one zero byte is the store's own.
  SLUICE_CHECK(!key.empty() && key.size() <= 511 && key != std::string_view("\0", 1));
  auto at = keyed_.lower_bound(key);
  const bool there = at != keyed_.end() && at->first == key;
  if (there && at->second.has_value() == value.has_value() && (!value || *at->second == *value)) return;
  Undo& undo = journal_.emplace_back();
  undo.key = key;
  undo.was_there = there;
  if (there) {
    bytes_ -= size_of(at->second);
    undo.value = std::move(at->second);
  } else {
    at = keyed_.emplace_hint(at, std::string(key), std::nullopt);
    bytes_ += key.size();
  }
  if (value) {
    at->second.emplace(*value);
    bytes_ += value->size();
  } else {
    at->second.reset();
  }
}

void Batch::write(DocumentWrite document) {
  SLUICE_CHECK(!document.key.empty() && document.key.size() <= 64 && document.key != std::string_view("\0", 1));
  bytes_ += size_of(document);
  documents_.push_back(std::move(document));
  index_last();
}

std::string_view Batch::keep(std::string_view bytes) {
  if (bytes.empty()) return {};
  if (kept_.empty() || kept_.back().size - kept_.back().used < bytes.size()) {
    Chunk chunk;
    chunk.size = bytes.size() > kChunkBytes ? bytes.size() : kChunkBytes;
    chunk.bytes = std::make_unique_for_overwrite<char[]>(chunk.size);
    kept_.push_back(std::move(chunk));
  }
  Chunk& chunk = kept_.back();
  char* at = chunk.bytes.get() + chunk.used;
  std::memcpy(at, bytes.data(), bytes.size());
  chunk.used += bytes.size();
  return {at, bytes.size()};
}

Batch::Mark Batch::mark() const {
  return {documents_.size(), kept_.size(), kept_.empty() ? 0 : kept_.back().used, bytes_};
}

void Batch::begin_event() {
  journal_.clear();
  before_ = mark();
}

void Batch::keep_event() {
  journal_.clear();
  before_ = mark();
}

void Batch::undo_event() {
  for (auto undo = journal_.rbegin(); undo != journal_.rend(); ++undo) {
    auto at = keyed_.find(undo->key);
    SLUICE_CHECK(at != keyed_.end());
    if (undo->was_there)
      at->second = std::move(undo->value);
    else
      keyed_.erase(at);
  }
  journal_.clear();
  while (documents_.size() > before_.documents) {
    // The newest entry of a linear probe is never on another's way, so freeing its slot breaks no search.
    const auto position = static_cast<std::uint32_t>(documents_.size());
    std::size_t slot = xxh3_64(documents_.back().key) & (index_.size() - 1);
    while (index_[slot] != position) slot = (slot + 1) & (index_.size() - 1);
    index_[slot] = 0;
    documents_.pop_back();
  }
  kept_.resize(before_.chunks);
  if (!kept_.empty()) kept_.back().used = before_.used;
  bytes_ = before_.bytes;
}

bool Batch::event_wrote() const { return !journal_.empty() || documents_.size() > before_.documents; }

std::size_t Batch::slot_of(std::string_view key) const {
  std::size_t slot = xxh3_64(key) & (index_.size() - 1);
  while (index_[slot] != 0 && documents_[index_[slot] - 1].key != key) slot = (slot + 1) & (index_.size() - 1);
  return slot;
}

void Batch::index_last() {
  if (index_.size() < documents_.size() * 2) return grow_index();
  // A key written twice takes two slots, so that undoing the later one leaves the earlier one found.
  std::size_t slot = xxh3_64(documents_.back().key) & (index_.size() - 1);
  while (index_[slot] != 0) slot = (slot + 1) & (index_.size() - 1);
  index_[slot] = static_cast<std::uint32_t>(documents_.size());
}

void Batch::grow_index() {
  index_.assign(index_.empty() ? kIndexMin : index_.size() * 2, 0);
  for (std::size_t i = 0; i < documents_.size(); ++i) {
    std::size_t slot = xxh3_64(documents_[i].key) & (index_.size() - 1);
    while (index_[slot] != 0) slot = (slot + 1) & (index_.size() - 1);
    index_[slot] = static_cast<std::uint32_t>(i + 1);
  }
}

bool Batch::writes_document(std::string_view key) const {
  return !documents_.empty() && index_[slot_of(key)] != 0;
}

bool Batch::empty() const { return keyed_.empty() && documents_.empty(); }

std::size_t Batch::records() const { return keyed_.size() + documents_.size(); }

std::size_t Batch::bytes() const { return bytes_; }

void Batch::clear() {
  keyed_.clear();
  if (!documents_.empty()) {
    documents_.clear();
    index_.assign(index_.size() > 32 * kIndexMin ? kIndexMin : index_.size(), 0);
  }
  journal_.clear();
  bytes_ = 0;
  if (!kept_.empty()) {
    // One ordinary chunk is kept warm; an upload's own chunk is not.
    if (kept_.front().size > kChunkBytes)
      kept_.clear();
    else
      kept_.resize(1);
    if (!kept_.empty()) kept_.front().used = 0;
  }
  before_ = {};
}

}  // namespace sluice::store
