#include "store/batch.h"

#include <cstring>

#include "vm/base/check.h"
#include "vm/base/hash.h"

namespace sluice::store {

namespace {
constexpr std::size_t kIndexMin = 64;

std::size_t size_of(const DocumentWrite& document) {
  std::size_t n = document.key.size();
  for (const DocumentWrite::Piece& piece : document.pieces)
    if (!piece.kept) n += piece.bytes.size();
  return n;
}
}  // namespace

void Batch::write(DocumentWrite document) {
  SLUICE_CHECK(!document.key.empty() && document.key.size() <= 64 && document.key != std::string_view("\0", 1));
  document_bytes_ += size_of(document);
  documents_.push_back(std::move(document));
  index_last();
}

std::string_view Batch::keep(std::string_view bytes) {
  if (bytes.empty()) return {};
  char* at = kept_.take(bytes.size());
  std::memcpy(at, bytes.data(), bytes.size());
  return {at, bytes.size()};
}

Batch::Mark Batch::mark() const { return {documents_.size(), document_bytes_, kept_.mark()}; }

void Batch::begin_event() {
  keyed_.begin_event();
  before_ = mark();
}

void Batch::keep_event() {
  keyed_.keep_event();
  before_ = mark();
}

void Batch::undo_event() {
  keyed_.undo_event();
  while (documents_.size() > before_.documents) {
    // The newest entry of a linear probe is never on another's way, so freeing its slot breaks no search.
    const auto position = static_cast<std::uint32_t>(documents_.size());
    std::size_t slot = xxh3_64(documents_.back().key) & (index_.size() - 1);
    while (index_[slot] != position) slot = (slot + 1) & (index_.size() - 1);
    index_[slot] = 0;
    documents_.pop_back();
  }
  kept_.back_to(before_.kept);
  document_bytes_ = before_.document_bytes;
}

bool Batch::event_wrote() const { return keyed_.event_wrote() || documents_.size() > before_.documents; }

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

bool Batch::empty() const { return keyed_.size() == 0 && documents_.empty(); }

std::size_t Batch::records() const { return keyed_.size() + documents_.size(); }

std::size_t Batch::bytes() const { return keyed_.bytes() + document_bytes_; }

void Batch::clear() {
  keyed_.clear();
  if (!documents_.empty()) {
    documents_.clear();
    index_.assign(index_.size() > 32 * kIndexMin ? kIndexMin : index_.size(), 0);
  }
  document_bytes_ = 0;
  kept_.clear();
  before_ = {};
}

}  // namespace sluice::store
