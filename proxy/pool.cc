#include "proxy/pool.h"

#include <utility>

#include "vm/base/hash.h"

namespace sluice::proxy {

Pool::Pool(std::string name, std::vector<StorePtr> stores, std::uint64_t seed)
    : name_(std::move(name)), stores_(std::move(stores)), seed_(seed) {}

Result<Pool, std::string> Pool::make(std::string name, std::vector<StorePtr> stores, std::uint64_t seed) {
  if (stores.empty()) return "pool `" + name + "` has no stores";
  return Pool(std::move(name), std::move(stores), seed);
}

const StorePtr& Pool::pick(std::string_view key) const {
  if (stores_.size() == 1) return stores_[0];
  return stores_[jump_hash(xxh3_64(key, seed_), static_cast<std::uint32_t>(stores_.size()))];
}

}  // namespace sluice::proxy
