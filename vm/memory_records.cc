#include "vm/memory_records.h"

#include <utility>

namespace sluice::vm {

void MemoryRecords::keep_event() { changes_.clear(); }

void MemoryRecords::undo_event() {
  for (; !changes_.empty(); changes_.pop_back()) {
    Change& last = changes_.back();
    if (last.old.empty()) {
      map_.erase(last.key);
    } else {
      map_.erase(last.old.key());
      map_.insert(std::move(last.old));
    }
  }
}

bool MemoryRecords::get(std::string_view key, std::string_view& value) {
  const auto found = map_.find(key);
  if (found == map_.end()) return false;
  value = found->second;
  return true;
}

std::size_t MemoryRecords::scan(const KeyRange& range, std::span<Entry> out) {
  if (!range.high.empty() && range.high <= range.low) return 0;
  const auto first = map_.lower_bound(range.low);
  const auto end = range.high.empty() ? map_.end() : map_.lower_bound(range.high);
  std::size_t count = 0;
  if (range.backward) {
    for (auto at = end; count < out.size() && at != first;) {
      --at;
      out[count++] = {at->first, at->second};
    }
  } else {
    for (auto at = first; count < out.size() && at != end; ++at) out[count++] = {at->first, at->second};
  }
  return count;
}

void MemoryRecords::put(std::string_view key, std::string_view value) {
  const auto at = map_.lower_bound(key);
  if (at == map_.end() || at->first != key) {
    map_.emplace_hint(at, key, value);
    changes_.push_back({{}, std::string(key)});
    return;
  }
  if (at->second == value) return;
  const auto after = std::next(at);
  std::string copy(value);                        // before anything moves: `value` may be lent from here
  Map::node_type old = map_.extract(at);
  map_.emplace_hint(after, old.key(), std::move(copy));
  changes_.push_back({std::move(old), {}});
}

void MemoryRecords::erase(std::string_view key) {
  const auto at = map_.find(key);
  if (at != map_.end()) changes_.push_back({map_.extract(at), {}});
}

}  // namespace sluice::vm
