// What one commit will write: keyed bytes and whole documents, gathered by an owner between commits.
//
// The keyed half is the overlay of design module.md 4.5: reads ask it before the snapshot, and each event's writes
// can be undone from a journal.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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
  // What the batch says of a key: nothing (nullptr), or a value, or its absence (an empty optional).
  const std::optional<std::string>* find(std::string_view key) const;
  // Both note what the batch held before in the event's journal, and skip a write that changes nothing.
  void put(std::string_view key, std::string_view value);
  void erase(std::string_view key);
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
  std::size_t bytes() const;               // keys, values and new document bytes
  void clear();                            // keeps capacity where that helps

  const std::map<std::string, std::optional<std::string>, std::less<>>& keyed() const { return keyed_; }
  const std::vector<DocumentWrite>& documents() const { return documents_; }

 private:
  struct Undo {
    std::string key;
    bool was_there = false;
    std::optional<std::string> value;
  };
  struct Chunk {
    std::unique_ptr<char[]> bytes;
    std::size_t size = 0, used = 0;
  };
  struct Mark {
    std::size_t documents = 0, chunks = 0, used = 0, bytes = 0;
  };
  void set(std::string_view key, std::optional<std::string_view> value);
  std::size_t slot_of(std::string_view key) const;
  void index_last();
  void grow_index();
  Mark mark() const;

  std::map<std::string, std::optional<std::string>, std::less<>> keyed_;
  std::vector<DocumentWrite> documents_;
  std::vector<std::uint32_t> index_;       // open addressing over the documents' keys: 1 + position, 0 is free
  std::vector<Undo> journal_;
  Mark before_;                            // where the present event began
  std::vector<Chunk> kept_;                // bytes stay where they are while more come
  std::size_t bytes_ = 0;
};

}  // namespace sluice::store
