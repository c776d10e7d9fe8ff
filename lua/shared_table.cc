#include "lua/shared_table.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <new>
#include <utility>

#include "lua/random_seed.h"
#include "vm/base/check.h"
#include "vm/base/hash.h"

namespace sluice::lua {
namespace {

constexpr std::uint64_t kBytesPerBucket = 256;
constexpr std::uint64_t kAllocation = 16;        // what malloc adds, about
constexpr int kMovedPerCall = 4;                 // buckets

}  // namespace

SharedTable::SharedTable(std::uint64_t limit_bytes)
    : seed_(random_seed()), buckets_(make_buckets(limit_bytes)), limit_bytes_(limit_bytes) {}

// Pages that nobody has touched cost nothing, so a large table begins in no time.
SharedTable::Buckets SharedTable::make_buckets(std::uint64_t limit_bytes) {
  Buckets made;
  made.count = std::bit_ceil(std::max<std::uint64_t>(64, limit_bytes / kBytesPerBucket));
  // A machine without room for that many does with longer chains.
  for (;; made.count /= 2) {
    made.first.reset(static_cast<Entry**>(std::calloc(made.count, sizeof(Entry*))));
    if (made.first) return made;
    SLUICE_CHECK(made.count > 64);
  }
}

void SharedTable::make_buckets_for(std::uint64_t limit_bytes) {
  {
    const std::lock_guard<std::mutex> hold(mutex_);
    if (fewer_.count != 0 || limit_bytes / kBytesPerBucket < 4 * buckets_.count) return;
  }
  Buckets more = make_buckets(limit_bytes);
  const std::lock_guard<std::mutex> hold(mutex_);
  if (fewer_.count != 0 || more.count <= buckets_.count) return;
  fewer_ = std::exchange(buckets_, std::move(more));
  moved_ = 0;
}

void SharedTable::move_some() {
  for (int i = 0; i < kMovedPerCall && fewer_.count != 0; ++i) {
    Entry* e = fewer_.first[moved_];
    fewer_.first[moved_++] = nullptr;
    while (e) {
      Entry*& first = buckets_.of(e->hash);
      Entry* const next = std::exchange(e->next, first);
      first = e;
      e = next;
    }
    if (moved_ == fewer_.count) fewer_ = {};
  }
}

SharedTable::~SharedTable() {
  while (newest_) {
    Entry* e = newest_;
    newest_ = e->older;
    ::operator delete(e);
  }
}

void SharedTable::set_limit(std::uint64_t bytes) {
  const std::lock_guard<std::mutex> hold(mutex_);
  limit_bytes_ = bytes;
}

std::uint64_t SharedTable::cost(std::size_t key_bytes, std::size_t text_bytes) {
  return sizeof(Entry) + key_bytes + text_bytes + kAllocation;
}

void SharedTable::link(Entry* e) {
  e->newer = nullptr;
  e->older = newest_;
  if (newest_) newest_->newer = e;
  newest_ = e;
  if (!oldest_) oldest_ = e;
}

void SharedTable::unlink(Entry* e) {
  (e->newer ? e->newer->older : newest_) = e->older;
  (e->older ? e->older->newer : oldest_) = e->newer;
}

void SharedTable::touch(Entry* e) {
  if (newest_ == e) return;
  unlink(e);
  link(e);
}

void SharedTable::drop(Entry* e) {
  Entry** at = &bucket(e->hash);
  while (*at != e) at = &(*at)->next;
  *at = e->next;
  unlink(e);
  bytes_ -= cost(e->key_bytes, e->text_bytes);
  if (e->epoch == epoch_) --entries_;
  ::operator delete(e);
}

SharedTable::Entry* SharedTable::find(std::string_view key, std::uint64_t hash, std::uint64_t now_us) {
  move_some();
  for (Entry* e = bucket(hash); e; e = e->next) {
    if (e->hash != hash || e->key() != key) continue;
    if (alive(*e, now_us)) return e;
    drop(e);
    return nullptr;
  }
  return nullptr;
}

bool SharedTable::make_room(std::uint64_t bytes, const Entry* replaced) {
  const std::uint64_t given_back = replaced ? cost(replaced->key_bytes, replaced->text_bytes) : 0;
  if (bytes > limit_bytes_) return false;
  const std::uint64_t before = bytes_ - given_back;
  for (int i = 0; bytes_ - given_back + bytes > limit_bytes_; ++i) {
    // A limit that was lowered is reached in steps: what makes the table smaller has room.
    if (i == kEvictions) return bytes_ - given_back + bytes <= before;
    if (oldest_ == nullptr || oldest_ == replaced) return false;
    evicted_ += oldest_->epoch == epoch_;
    drop(oldest_);
  }
  return true;
}

SharedTable::Entry* SharedTable::insert(std::string_view key, std::uint64_t hash, std::size_t text_bytes) {
  Entry* e = new (::operator new(sizeof(Entry) + key.size() + text_bytes)) Entry{};
  e->hash = hash;
  e->epoch = epoch_;
  e->key_bytes = static_cast<std::uint32_t>(key.size());
  e->text_bytes = static_cast<std::uint32_t>(text_bytes);
  std::memcpy(e->bytes(), key.data(), key.size());
  Entry*& first = bucket(hash);
  e->next = first;
  first = e;
  link(e);
  bytes_ += cost(key.size(), text_bytes);
  ++entries_;
  return e;
}

void SharedTable::assign(Entry& e, const SharedValue& value) {
  e.type = value.type;
  e.number = value.number;
  if (!value.text.empty()) std::memcpy(e.bytes() + e.key_bytes, value.text.data(), value.text.size());
}

std::optional<SharedValue> SharedTable::get(std::string_view key, std::uint64_t now_us, std::string& room) {
  const std::uint64_t hash = xxh3_64(key, seed_);
  const std::lock_guard<std::mutex> hold(mutex_);
  Entry* e = find(key, hash, now_us);
  if (!e) {
    ++misses_;
    return std::nullopt;
  }
  ++hits_;
  touch(e);
  if (e->type != SharedValue::Type::text) return SharedValue{e->type, e->number, {}};
  room.assign(e->text());
  return SharedValue{e->type, 0, room};
}

SharedPut SharedTable::put(std::string_view key, const SharedValue& value, When when, std::uint64_t now_us,
                           std::uint64_t expires_us) {
  const std::uint64_t hash = xxh3_64(key, seed_);
  const std::size_t text_bytes = value.text.size();
  const std::lock_guard<std::mutex> hold(mutex_);
  Entry* e = find(key, hash, now_us);
  if (e && when == When::absent) return SharedPut::exists;
  if (!e && when == When::present) return SharedPut::absent;
  if (e && e->text_bytes != text_bytes) {
    // The old value stays when there is no room for the new one.
    touch(e);
    if (!make_room(cost(key.size(), text_bytes), e)) return SharedPut::no_room;
    drop(e);
    e = nullptr;
  }
  if (e) {
    touch(e);
  } else {
    if (!make_room(cost(key.size(), text_bytes), nullptr)) return SharedPut::no_room;
    e = insert(key, hash, text_bytes);
  }
  assign(*e, value);
  e->expires_us = expires_us;
  return SharedPut::done;
}

SharedPut SharedTable::increment(std::string_view key, double by, std::optional<double> initial, std::uint64_t now_us,
                                 std::uint64_t expires_us, double& sum) {
  const std::uint64_t hash = xxh3_64(key, seed_);
  const std::lock_guard<std::mutex> hold(mutex_);
  Entry* e = find(key, hash, now_us);
  if (e) {
    if (e->type != SharedValue::Type::number) return SharedPut::no_number;
    touch(e);
    if (!std::isfinite(e->number + by)) return SharedPut::too_large;
    sum = e->number += by;
    return SharedPut::done;
  }
  if (!initial) return SharedPut::absent;
  if (!std::isfinite(*initial + by)) return SharedPut::too_large;
  if (!make_room(cost(key.size(), 0), nullptr)) return SharedPut::no_room;
  e = insert(key, hash, 0);
  sum = *initial + by;
  assign(*e, {SharedValue::Type::number, sum, {}});
  e->expires_us = expires_us;
  return SharedPut::done;
}

bool SharedTable::remove(std::string_view key, std::uint64_t now_us) {
  const std::uint64_t hash = xxh3_64(key, seed_);
  const std::lock_guard<std::mutex> hold(mutex_);
  Entry* e = find(key, hash, now_us);
  if (e) drop(e);
  return e != nullptr;
}

bool SharedTable::expire(std::string_view key, std::uint64_t now_us, std::uint64_t expires_us) {
  const std::uint64_t hash = xxh3_64(key, seed_);
  const std::lock_guard<std::mutex> hold(mutex_);
  Entry* e = find(key, hash, now_us);
  if (e) e->expires_us = expires_us;
  return e != nullptr;
}

std::optional<std::uint64_t> SharedTable::expires(std::string_view key, std::uint64_t now_us) {
  const std::uint64_t hash = xxh3_64(key, seed_);
  const std::lock_guard<std::mutex> hold(mutex_);
  Entry* e = find(key, hash, now_us);
  if (!e) return std::nullopt;
  return e->expires_us;
}

std::vector<std::string> SharedTable::keys(std::size_t most, std::uint64_t now_us) {
  std::vector<std::string> found;
  const std::lock_guard<std::mutex> hold(mutex_);
  // Dead ones count too, so that a long row of them does not hold the lock.
  std::size_t looked = 0;
  for (Entry* e = newest_; e && found.size() < most && looked < most * 4 + 64; e = e->older, ++looked)
    if (alive(*e, now_us)) found.emplace_back(e->key());
  return found;
}

void SharedTable::clear() {
  const std::lock_guard<std::mutex> hold(mutex_);
  ++epoch_;
  entries_ = 0;
}

SharedTable::Stats SharedTable::stats() {
  const std::lock_guard<std::mutex> hold(mutex_);
  return {entries_, bytes_, limit_bytes_, hits_, misses_, evicted_};
}

}  // namespace sluice::lua
