// The document of one event while its handler runs: the stored content with edits staged as pieces over it.
//
// An append to 10 MB stages the appended bytes and one reference. Content is put together only when the module asks for
// all of it.
#pragma once
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "store/batch.h"
#include "store/store.h"

namespace sluice::proxy {

// Thread: its owner's or worker's. Life: one event, from open() to close(); buffers are kept for the next.
class DocumentEdit {
 public:
  // Life: `base` and `key` outlive the event.
  void open(const store::Document& base, std::string_view key);
  void close();                               // forgets the event; frees large buffers

  std::string_view key() const { return key_; }
  bool exists() const { return exists_; }
  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t stored_revision() const { return base_->revision; }
  // The revision a client may name: 0 when there is no document.
  std::uint64_t present_revision() const { return base_->exists() ? base_->revision : 0; }
  const store::Document& stored() const { return *base_; }
  // An edit happened that must be stored: written, unless there was no document and there still is none.
  bool changed() const { return touched_ && (exists_ || base_->exists()); }
  // The revision after the event; 0 when there is no document then.
  std::uint64_t revision_after() const;

  // The whole content. Life: until close(), also across later edits.
  std::string_view whole();
  void append_to(std::string& out) const;     // copies it

  // Life: `content` must stay good until close() or write_to().
  void set(std::string_view content);
  void erase();
  void append(std::string_view content);
  void splice(std::uint64_t at, std::uint64_t remove, std::string_view insert);

  // Hands the edit to a batch. Bytes inside `lasting` (the request's body, which outlives the commit) are referred to,
  // others are copied.
  void write_to(store::Batch& batch, std::uint8_t kind, std::string_view lasting) const;

 private:
  struct Piece {
    std::string_view bytes;                   // when not kept
    bool kept = false;
    std::uint64_t at = 0, length = 0;         // of the stored content, when kept
  };
  static Piece fresh(std::string_view bytes) { return {bytes, false, 0, bytes.size()}; }
  // Makes `offset` a border between two pieces; returns the index of the piece behind it.
  std::size_t cut(std::uint64_t offset);
  void copy_stored(std::uint64_t at, std::uint64_t length, std::string& out) const;

  const store::Document* base_ = nullptr;
  std::string_view key_;
  bool exists_ = false, touched_ = false;
  std::uint64_t bytes_ = 0;
  std::vector<Piece> pieces_;
  std::deque<std::string> wholes_;            // what whole() put together; the first `wholes_used_`. Growing moves none
  std::size_t wholes_used_ = 0;
  std::string_view whole_;                    // of the present content, when whole_known_
  bool whole_known_ = false;
};

}  // namespace sluice::proxy
