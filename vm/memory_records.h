// Records in memory: an ordered map with undo by event, for `aupc test`, for tests and for fuzzing.
#pragma once
#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "vm/records.h"

namespace sluice::vm {

// Thread: one.
class MemoryRecords : public Records {
 public:
  using Map = std::map<std::string, std::string, std::less<>>;

  // An event is over by one of the two. What it was lent is gone then.
  void keep_event();
  void undo_event();
  // Whether the event that runs has changed anything so far; also when it changed it back.
  bool wrote() const { return !changes_.empty(); }

  bool get(std::string_view key, std::string_view& value) override;
  std::size_t scan(const KeyRange& range, std::span<Entry> out) override;
  void put(std::string_view key, std::string_view value) override;
  void erase(std::string_view key) override;

  const Map& contents() const { return map_; }

 private:
  // One write. An old entry stays as it is, node and all, because its bytes may be lent.
  struct Change {
    Map::node_type old;             // empty: there was none
    std::string key;                // then only
  };

  Map map_;
  std::vector<Change> changes_;     // of the running event, in order
};

}  // namespace sluice::vm
