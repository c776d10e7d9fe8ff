#include "proxy/pool.h"

#include <utility>

#include "vm/base/hash.h"

namespace sluice::proxy {

Pool::Pool(std::string name, std::vector<StorePtr> stores, std::uint64_t seed, KeyFilter filter)
    : name_(std::move(name)), stores_(std::move(stores)), seed_(seed), filter_(std::move(filter)) {}

Result<Pool, std::string> Pool::make(std::string name, std::vector<StorePtr> stores, std::uint64_t seed, KeyFilter filter) {
  if (stores.empty()) return "pool `" + name + "` has no stores";
  return Pool(std::move(name), std::move(stores), seed, std::move(filter));
}

const StorePtr& Pool::pick(std::string_view key) const {
  if (stores_.size() == 1) return stores_[0];
  return stores_[jump_hash(xxh3_64(filter_.apply(key), seed_), static_cast<std::uint32_t>(stores_.size()))];
}

}  // namespace sluice::proxy
