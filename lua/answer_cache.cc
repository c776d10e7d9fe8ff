#include "lua/answer_cache.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "lua/random_seed.h"

namespace sluice::lua {
namespace {

// One writer: no need for a locked instruction.
void add(std::atomic<std::uint64_t>& n, std::uint64_t by) { n.store(n.load(std::memory_order_relaxed) + by, std::memory_order_relaxed); }

void gather(CacheShared::Totals& to, const CacheShared::Counts& from) {
  to.hits += from.hits.load(std::memory_order_relaxed);
  to.misses += from.misses.load(std::memory_order_relaxed);
  to.passed += from.passed.load(std::memory_order_relaxed);
  to.evicted += from.evicted.load(std::memory_order_relaxed);
  to.entries += from.entries.load(std::memory_order_relaxed);
  to.bytes += from.bytes.load(std::memory_order_relaxed);
}

}  // namespace

std::shared_ptr<CacheShared::Counts> CacheShared::join() {
  const std::lock_guard<std::mutex> hold(mutex_);
  counts_.push_back(std::make_shared<Counts>());
  return counts_.back();
}

void CacheShared::leave(const std::shared_ptr<Counts>& counts) {
  const std::lock_guard<std::mutex> hold(mutex_);
  gather(past_, *counts);
  std::erase(counts_, counts);
}

CacheShared::Totals CacheShared::totals() {
  const std::lock_guard<std::mutex> hold(mutex_);
  Totals sum = past_;
  for (const auto& c : counts_) gather(sum, *c);
  return sum;
}

AnswerCache::AnswerCache(std::uint64_t limit_bytes, std::shared_ptr<CacheShared> shared)
    : limit_bytes_(limit_bytes), shared_(std::move(shared)), counts_(shared_->join()), places_(16, Hash{random_seed()}) {}

AnswerCache::~AnswerCache() {
  counts_->entries.store(0, std::memory_order_relaxed);
  counts_->bytes.store(0, std::memory_order_relaxed);
  shared_->leave(counts_);
}

StoredPtr AnswerCache::find(std::string_view key) {
  const auto at = places_.find(key);
  if (at == places_.end()) return nullptr;
  order_.splice(order_.begin(), order_, at->second);
  return *at->second;
}

void AnswerCache::put(StoredPtr answer) {
  drop(answer->key);
  const std::uint64_t cost = answer->cost();
  if (cost > limit_bytes_) return;
  while (bytes_ + cost > limit_bytes_) {
    remove(std::prev(order_.end()));
    add(counts_->evicted, 1);
  }
  order_.push_front(std::move(answer));
  places_.emplace(order_.front()->key, order_.begin());
  bytes_ += cost;
  add(counts_->entries, 1);
  counts_->bytes.store(bytes_, std::memory_order_relaxed);
}

void AnswerCache::drop(std::string_view key) {
  if (const auto at = places_.find(key); at != places_.end()) remove(at->second);
}

void AnswerCache::remove(Order::iterator at) {
  bytes_ -= (*at)->cost();
  places_.erase((*at)->key);
  order_.erase(at);
  add(counts_->entries, ~std::uint64_t{0});
  counts_->bytes.store(bytes_, std::memory_order_relaxed);
}

}  // namespace sluice::lua
