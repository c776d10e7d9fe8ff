#include "proxy/engine/burst_records.h"

#include "proxy/engine/stored_entries.h"

namespace sluice::proxy {
namespace {

using Holds = store::Overlay::Holds;

}  // namespace

bool BurstRecords::stored(std::string_view key, std::string_view& value) {
  if (snapshot_ == nullptr) return false;
  const Result<std::optional<std::string_view>> read = snapshot_->get(key);
  if (!read) {
    error_ = read.error();
    return false;
  }
  if (!*read) return false;
  value = **read;
  return true;
}

bool BurstRecords::get(std::string_view key, std::string_view& value) {
  const store::Overlay::Found found = batch_.find(key);
  if (found.holds == Holds::nothing) return stored(key, value);
  value = found.value;
  return found.holds == Holds::value;
}

std::size_t BurstRecords::scan(const vm::KeyRange& range, std::span<vm::Entry> out) {
  const store::Overlay& written = batch_.keyed();
  store::Overlay::Cursor over = !range.backward   ? range.low.empty() ? written.first() : written.from(range.low)
                                : range.high.empty() ? written.last()
                                                     : written.below(range.high);
  StoredEntries below(snapshot_, range, error_);
  const auto inside = [&range](std::string_view key) {
    return range.backward ? key >= range.low : range.high.empty() || key < range.high;
  };
  std::size_t n = 0;
  while (n < out.size()) {
    const bool has_over = over.valid() && inside(over.key());
    const bool has_below = below.more(out.size() - n);
    if (!has_over && !has_below) break;
    int order = has_over ? 1 : -1;               // below 0: the stored one comes first; 0: the written one hides it
    if (has_over && has_below) {
      order = below.entry().key.compare(over.key());
      if (range.backward) order = -order;
    }
    if (order < 0) {
      out[n++] = {below.entry().key, below.entry().value};
      below.step();
      continue;
    }
    if (order == 0) below.step();
    if (over.has_value()) out[n++] = {over.key(), over.value()};
    else ++stepped_over_;
    if (range.backward) over.previous();
    else over.next();
  }
  return n;
}

// What is stored is asked too, so that whether an event changed something does not depend on the burst it came in.
void BurstRecords::put(std::string_view key, std::string_view value) {
  std::string_view present;
  if (batch_.find(key).holds == Holds::nothing && stored(key, present) && present == value) return;
  batch_.put(key, value);
}

void BurstRecords::erase(std::string_view key) {
  std::string_view present;
  if (batch_.find(key).holds == Holds::nothing && !stored(key, present)) return;
  batch_.erase(key);
}

}  // namespace sluice::proxy
