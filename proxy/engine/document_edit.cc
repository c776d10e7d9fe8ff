#include "proxy/engine/document_edit.h"

#include <functional>

#include "vm/base/check.h"

namespace sluice::proxy {
namespace {
constexpr std::size_t kKeepCapacity = 256 * 1024;   // bytes of a buffer worth keeping between events
}  // namespace

void DocumentEdit::open(const store::Document& base, std::string_view key) {
  base_ = &base;
  key_ = key;
  exists_ = base.exists();
  touched_ = false;
  bytes_ = exists_ ? base.bytes : 0;
  pieces_.clear();
  if (bytes_ > 0) pieces_.push_back({{}, true, 0, bytes_});
  wholes_used_ = 0;
  whole_known_ = false;
}

void DocumentEdit::close() {
  base_ = nullptr;
  pieces_.clear();
  for (std::size_t i = 0; i < wholes_used_; ++i)
    if (wholes_[i].capacity() > kKeepCapacity) std::string().swap(wholes_[i]);
  wholes_used_ = 0;
  whole_known_ = false;
}

std::uint64_t DocumentEdit::revision_after() const {
  if (!exists_) return 0;
  return base_->revision + (touched_ ? 1 : 0);
}

void DocumentEdit::copy_stored(std::uint64_t at, std::uint64_t length, std::string& out) const {
  for (const std::string_view piece : base_->pieces) {
    if (length == 0) return;
    if (at >= piece.size()) {
      at -= piece.size();
      continue;
    }
    const std::string_view part = piece.substr(at, length);
    out.append(part);
    length -= part.size();
    at = 0;
  }
  SLUICE_ASSERT(length == 0);
}

void DocumentEdit::append_to(std::string& out) const {
  for (const Piece& p : pieces_) {
    if (p.kept) copy_stored(p.at, p.length, out);
    else out.append(p.bytes);
  }
}

std::string_view DocumentEdit::whole() {
  if (whole_known_) return whole_;
  whole_known_ = true;
  if (pieces_.empty()) return whole_ = {};
  const Piece& first = pieces_.front();
  if (pieces_.size() == 1 && !first.kept) return whole_ = first.bytes;
  if (pieces_.size() == 1 && base_->pieces.size() == 1)
    return whole_ = base_->pieces.front().substr(first.at, first.length);
  if (wholes_used_ == wholes_.size()) wholes_.emplace_back();
  std::string& text = wholes_[wholes_used_++];
  text.clear();
  text.reserve(bytes_);
  append_to(text);
  return whole_ = text;
}

void DocumentEdit::set(std::string_view content) {
  touched_ = exists_ = true;
  pieces_.clear();
  if (!content.empty()) pieces_.push_back(fresh(content));
  bytes_ = content.size();
  whole_known_ = false;
}

void DocumentEdit::erase() {
  touched_ = true;
  exists_ = false;
  pieces_.clear();
  bytes_ = 0;
  whole_known_ = false;
}

void DocumentEdit::append(std::string_view content) {
  touched_ = exists_ = true;
  if (!content.empty()) pieces_.push_back(fresh(content));
  bytes_ += content.size();
  whole_known_ = false;
}

std::size_t DocumentEdit::cut(std::uint64_t offset) {
  std::uint64_t start = 0;
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    if (offset == start) return i;
    Piece& p = pieces_[i];
    if (offset < start + p.length) {
      const std::uint64_t head = offset - start;
      Piece tail = p;
      tail.length = p.length - head;
      if (p.kept) tail.at += head;
      else tail.bytes = p.bytes.substr(head);
      p.length = head;
      if (!p.kept) p.bytes = p.bytes.substr(0, head);
      pieces_.insert(pieces_.begin() + static_cast<std::ptrdiff_t>(i + 1), tail);
      return i + 1;
    }
    start += p.length;
  }
  SLUICE_ASSERT(offset == start);
  return pieces_.size();
}

void DocumentEdit::splice(std::uint64_t at, std::uint64_t remove, std::string_view insert) {
  SLUICE_ASSERT(at <= bytes_ && remove <= bytes_ - at);
  touched_ = exists_ = true;
  const std::size_t from = cut(at);
  const std::size_t to = cut(at + remove);
  pieces_.erase(pieces_.begin() + static_cast<std::ptrdiff_t>(from), pieces_.begin() + static_cast<std::ptrdiff_t>(to));
  if (!insert.empty()) pieces_.insert(pieces_.begin() + static_cast<std::ptrdiff_t>(from), fresh(insert));
  bytes_ = bytes_ - remove + insert.size();
  whole_known_ = false;
}

void DocumentEdit::write_to(store::Batch& batch, std::uint8_t kind, std::string_view lasting) const {
  store::DocumentWrite write;
  write.key = key_;
  write.revision = base_->revision + 1;
  write.deleted = !exists_;
  write.kind = kind;
  const auto lasts = [&](std::string_view bytes) {
    const std::less_equal<const char*> not_after;   // an order over all pointers, which <= is not
    return not_after(lasting.data(), bytes.data()) && not_after(bytes.data() + bytes.size(), lasting.data() + lasting.size());
  };
  write.pieces.reserve(pieces_.size());
  for (const Piece& p : pieces_) {
    store::DocumentWrite::Piece out;
    out.kept = p.kept;
    if (p.kept) {
      out.at = p.at;
      out.length = p.length;
    } else {
      out.bytes = lasts(p.bytes) ? p.bytes : batch.keep(p.bytes);
    }
    write.pieces.push_back(out);
  }
  batch.write(std::move(write));
}

}  // namespace sluice::proxy
