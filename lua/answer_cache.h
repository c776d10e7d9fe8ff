// Answers by key, within a bound of bytes: the least recently used goes when there is no room.
//
// One per worker and `route_cache`; what the workers' caches of one route have in common is `CacheShared`.
#pragma once
#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "vm/base/hash.h"

namespace sluice::lua {

// Thread: any. Life: as long as a config that is served, or that is being replaced, names it.
class CacheShared {
 public:
  // Written by one worker, read by any.
  struct Counts {
    std::atomic<std::uint64_t> hits{0}, misses{0}, passed{0}, evicted{0}, entries{0}, bytes{0};
  };
  struct Totals {
    std::uint64_t hits = 0, misses = 0, passed = 0, evicted = 0, entries = 0, bytes = 0;
  };

  // Grows when a write goes through the route, on whatever worker: what was asked for before is not given any more.
  std::atomic<std::uint64_t> writes{0};

  // Thread: control.
  std::shared_ptr<Counts> join();
  void leave(const std::shared_ptr<Counts>& counts);
  Totals totals();

 private:
  std::mutex mutex_;                             // held to look at or change the next two
  std::vector<std::shared_ptr<Counts>> counts_;
  Totals past_;                                  // of those that have left
};

// One answer, 200. Frozen once stored; whoever sends it holds it.
struct StoredAnswer {
  std::string key, content_type, headers, body;
  std::uint64_t revision = 0;
  bool no_store = false;
  std::uint64_t asked_us = 0, until_us = 0;      // of the monotonic clock; until: the first moment at which it is too old
  std::uint64_t writes = 0, changes = 0;         // CacheShared::writes, and the stores' number, when it was asked for
  std::uint64_t cost() const { return key.size() + content_type.size() + headers.size() + body.size() + kOverhead; }
  static constexpr std::uint64_t kOverhead = 320;   // of the object, its places in list and table, and the allocator
};
using StoredPtr = std::shared_ptr<const StoredAnswer>;

// Thread: one worker; control before and after.
class AnswerCache {
 public:
  AnswerCache(std::uint64_t limit_bytes, std::shared_ptr<CacheShared> shared);   // Thread: control, and the end
  ~AnswerCache();
  AnswerCache(const AnswerCache&) = delete;
  AnswerCache& operator=(const AnswerCache&) = delete;

  // nullptr: none. What is found is the most recently used then. Never allocates.
  StoredPtr find(std::string_view key);
  // In the place of one of the same key. What costs more than the bound is not stored.
  void put(StoredPtr answer);
  void drop(std::string_view key);
  std::uint64_t bytes() const { return bytes_; }
  CacheShared::Counts& counts() { return *counts_; }
  CacheShared& shared() const { return *shared_; }

 private:
  struct Hash {
    std::uint64_t seed;
    std::size_t operator()(std::string_view key) const { return xxh3_64(key, seed); }
  };
  using Order = std::list<StoredPtr>;            // the most recently used first
  void remove(Order::iterator at);

  const std::uint64_t limit_bytes_;
  const std::shared_ptr<CacheShared> shared_;
  const std::shared_ptr<CacheShared::Counts> counts_;
  std::uint64_t bytes_ = 0;
  Order order_;
  std::unordered_map<std::string_view, Order::iterator, Hash> places_;   // keys are the answers' own
};

}  // namespace sluice::lua
