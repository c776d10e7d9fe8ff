// One ordered key space, as a module's tables use it: bytes to bytes, with what the running event wrote before anything else.
//
// The engine implements it over a burst's overlay and a snapshot, or over a snapshot alone; MemoryRecords over a map.
// Source: design module.md 4.1, 4.5.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace sluice::vm {

struct Entry {
  std::string_view key, value;
};

// Keys with low <= key < high. An empty `high` has no end.
struct KeyRange {
  std::string_view low, high;
  bool backward = false;            // greatest first
};

// What goes wrong underneath (a disk that cannot be read) is noted by the implementation: it answers as if nothing were
// there, and whoever runs the event asks it afterwards; the outcome is then of no use.
// Thread: the machine's. Life: bytes given out stay good until the event ends, whatever is written meanwhile.
class Records {
 public:
  virtual ~Records() = default;
  // False: there is none.
  virtual bool get(std::string_view key, std::string_view& value) = 0;
  // The first entries of the range, at most out.size(); fewer only when the range has no more. Whoever wants more asks
  // again from behind the last key (backward: up to it).
  virtual std::size_t scan(const KeyRange& range, std::span<Entry> out) = 0;
  // Both copy what they are given. A write that changes nothing is none.
  virtual void put(std::string_view key, std::string_view value) = 0;
  virtual void erase(std::string_view key) = 0;
};

}  // namespace sluice::vm
