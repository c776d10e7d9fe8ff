// What one commit will write: keyed bytes and whole documents, gathered by an owner between commits.
//
// The keyed half is an overlay: reads ask it before the snapshot. Each event's writes can be undone.
// Source: design module.md 4.5.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "store/byte_arena.h"
#include "store/overlay.h"

namespace sluice::store {

// Extents with consecutive numbers, all full but perhaps the last.
struct Run {
  std::uint64_t first = 0;
  std::uint32_t count = 0;
  std::uint64_t bytes = 0;
  bool operator==(const Run&) const = default;
};

// The new content of a document: new bytes, and parts of the present content that stay where they are.
struct DocumentWrite {
  struct Piece {
    // Either bytes (good until the commit returns), or a part of the present document that is kept.
    std::string_view bytes;
    bool kept = false;
    std::uint64_t at = 0, length = 0;      // of the present content, when kept
  };
  std::string key;                         // 1..64 bytes
  std::uint64_t revision = 0;              // the new one
  bool deleted = false;
  std::uint8_t kind = 0;
  std::vector<Piece> pieces;
};

// Thread: owner, then the committer while commit() runs.
class Batch {
 public:
  // The keyed half, as Overlay says.
  Overlay::Found find(std::string_view key) const { return keyed_.find(key); }
  void put(std::string_view key, std::string_view value) { keyed_.put(key, value); }
  void erase(std::string_view key) { keyed_.erase(key); }
  const Overlay& keyed() const { return keyed_; }

  void write(DocumentWrite document);
  // Copies bytes that would not live until the commit. Life: until clear(), or the undo of the event that asked.
  std::string_view keep(std::string_view bytes);

  // An event's writes: begin, then either keep or undo them all. Cost: what the event wrote.
  void begin_event();
  void keep_event();
  void undo_event();
  bool event_wrote() const;

  bool writes_document(std::string_view key) const;
  bool empty() const;
  std::size_t records() const;             // keys and documents
  std::size_t bytes() const;               // of keys, values and new documents, in memory
  std::size_t document_bytes() const { return document_bytes_; }
  void clear();                            // keeps capacity where that helps

  const std::vector<DocumentWrite>& documents() const { return documents_; }

 private:
  struct Mark {
    std::size_t documents = 0, document_bytes = 0;
    ByteArena::Mark kept;
  };
  std::size_t slot_of(std::string_view key) const;
  void index_last();
  void grow_index();
  Mark mark() const;

  Overlay keyed_;
  std::vector<DocumentWrite> documents_;
  std::vector<std::uint32_t> index_;       // open addressing over the documents' keys: 1 + position, 0 is free
  Mark before_;                            // where the present event began
  ByteArena kept_;
  std::size_t document_bytes_ = 0;
};

}  // namespace sluice::store
