// What events have written to the keyed half of a store since the last commit: an ordered map, key -> value or absence.
//
// A B-tree whose leafs refer to bytes in an arena. A value that an event replaces stays readable until the event ends,
// so that views given out stay good; then its place is used again, and a key written a thousand times between two
// commits takes the room of a few. Nothing is allocated per write once the arena is warm.
// Source: design module.md 4.5.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "store/byte_arena.h"

namespace sluice::store {

// Thread: owner, then the committer while it reads.
class Overlay {
  struct Leaf;
  struct Inner;
  struct Entry;

 public:
  enum class Holds : std::uint8_t { nothing, value, absence };
  // What it says of a key.
  struct Found {
    Holds holds = Holds::nothing;
    std::string_view value;
  };

  Overlay();
  ~Overlay();
  Overlay(const Overlay&) = delete;
  Overlay& operator=(const Overlay&) = delete;

  // Life: views are good until the event that asks ends, whatever it writes; outside of events until the next write.
  Found find(std::string_view key) const;
  // Both skip a write that changes nothing. Shape: keys of 1..511 bytes.
  void put(std::string_view key, std::string_view value);
  void erase(std::string_view key);

  // Begin, then either keep or undo. Cost: what the event wrote.
  void begin_event();
  void keep_event();
  void undo_event();
  bool event_wrote() const { return !journal_.empty(); }

  std::size_t size() const { return size_; }     // keys
  // Memory that keys, values and the places of replaced values take.
  std::size_t bytes() const { return arena_.bytes(); }
  void clear();                                  // keeps what a burst of ordinary size needs

  // A place between keys. Life: until the next write.
  class Cursor {
   public:
    bool valid() const { return leaf_ != nullptr; }
    // Shape: valid().
    std::string_view key() const;
    bool has_value() const;                      // else the key is absent
    std::string_view value() const;
    // To the neighbour. Over an end: not valid any more, and stays so.
    void next();
    void previous();

   private:
    friend class Overlay;
    Cursor(const Leaf* leaf, std::size_t at) : leaf_(leaf), at_(at) {}
    const Leaf* leaf_ = nullptr;
    std::size_t at_ = 0;
  };
  Cursor first() const;
  Cursor last() const;
  Cursor from(std::string_view key) const;       // the first one not below it
  Cursor below(std::string_view key) const;      // the last one below it

 private:
  struct Undo {
    std::string_view key, value;                 // `value`: as it was
    Holds was = Holds::nothing;
    bool recycled = false;                       // the new value's place came from free_
  };
  struct Step {
    Inner* inner = nullptr;
    std::size_t child = 0;
  };
  struct Path;

  void set(std::string_view key, std::string_view value, bool present);
  Leaf* descend(std::uint64_t head, std::string_view key, Path* path) const;
  void insert(Path& path, Leaf* leaf, std::size_t at, const Entry& entry);
  void grow(Path& path, void* right, std::string_view separator);
  void remove(std::string_view key);
  std::string_view hold(std::string_view value, bool& recycled);
  void give_back(std::string_view value);
  Leaf* new_leaf();
  Inner* new_inner();

  static constexpr std::size_t kClasses = 84;
  std::vector<std::unique_ptr<Leaf>> leafs_;     // the first leafs_used_ are in the tree
  std::vector<std::unique_ptr<Inner>> inners_;
  std::size_t leafs_used_ = 0, inners_used_ = 0;
  void* root_ = nullptr;
  std::size_t depth_ = 0;                        // inner nodes on the way to a leaf
  std::size_t size_ = 0;
  ByteArena arena_;                              // keys and values
  ByteArena separators_;                         // keys in inner nodes, which an undo leaves in place
  std::array<char*, kClasses> free_{};           // places of replaced values, by size; each begins with the next one
  std::vector<Undo> journal_;
  ByteArena::Mark before_;                       // where the present event began
};

}  // namespace sluice::store
