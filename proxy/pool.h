// Several stores that serve alike, and which of them a key belongs to.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/engine.h"
#include "proxy/key_filter.h"
#include "vm/base/result.h"

namespace sluice::proxy {

// Thread: frozen once built; any then.
class Pool {
 public:
  // Shape:  the order of `stores` is part of the distribution; adding one at the end moves 1/(n+1) of the keys.
  // Errors: a sentence: no stores.
  static Result<Pool, std::string> make(std::string name, std::vector<StorePtr> stores, std::uint64_t seed = 0, KeyFilter filter = {});

  // The store of `key`, the same in every process and version. Never allocates.
  // Source: XXH3 64 bits over the filtered key with the pool's seed, then jump hash.
  const StorePtr& pick(std::string_view key) const;

  std::string_view name() const { return name_; }
  const std::vector<StorePtr>& stores() const { return stores_; }

 private:
  Pool(std::string name, std::vector<StorePtr> stores, std::uint64_t seed, KeyFilter filter);
  std::string name_;
  std::vector<StorePtr> stores_;
  std::uint64_t seed_;
  KeyFilter filter_;
};

}  // namespace sluice::proxy
