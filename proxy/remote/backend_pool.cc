#include "proxy/remote/backend_pool.h"

#include <algorithm>

#include "vm/base/hash.h"

namespace sluice::proxy {

Result<BackendPool, std::string> BackendPool::make(std::string name, std::vector<BackendPtr> backends, BackendPoolOptions options,
                                                   std::vector<std::uint32_t> weights) {
  if (backends.empty()) return "pool `" + name + "` has no backends";
  BackendPool pool(std::move(name), std::move(backends), std::move(options));
  const bool ring = pool.options_.distribution == Distribution::ring;
  weights.resize(pool.backends_.size(), 1);
  std::size_t points = 0;
  for (std::size_t i = 0; i < pool.backends_.size(); ++i) {
    const std::string& label = pool.backends_[i]->name;
    for (std::size_t j = 0; j < i; ++j)
      if (pool.backends_[j]->name == label) return "pool `" + pool.name_ + "`: backend `" + label + "` is in it twice; give one a `label`";
    if (weights[i] != 1 && !ring)
      return "pool `" + pool.name_ + "`: backend `" + label + "` has a weight, which goes with dist = \"ring\"";
    points += weights[i] * kPointsPerWeight;
  }
  if (!ring) return pool;
  if (points > kMostPoints)
    return "pool `" + pool.name_ + "`: the weights of a ring are " + std::to_string(kMostPoints / kPointsPerWeight) + " at most, all together";
  pool.ring_.reserve(points);
  for (std::uint32_t i = 0; i < pool.backends_.size(); ++i) {
    const Backend& b = *pool.backends_[i];
    for (std::size_t n = 0; n < weights[i] * kPointsPerWeight; ++n)
      pool.ring_.push_back({xxh3_64(b.spec.label + "-" + std::to_string(n), pool.options_.seed), i});
  }
  // Two points at one place: the earlier backend has it, whatever the sort does.
  std::sort(pool.ring_.begin(), pool.ring_.end(),
            [](const Point& a, const Point& b) { return a.at != b.at ? a.at < b.at : a.backend < b.backend; });
  return pool;
}

std::size_t BackendPool::pick(std::string_view key) const {
  if (backends_.size() == 1) return 0;
  const std::uint64_t hash = xxh3_64(options_.filter.apply(key), options_.seed);
  if (options_.distribution == Distribution::jump) return jump_hash(hash, static_cast<std::uint32_t>(backends_.size()));
  const auto point = std::lower_bound(ring_.begin(), ring_.end(), hash, [](const Point& p, std::uint64_t h) { return p.at < h; });
  return point == ring_.end() ? ring_.front().backend : point->backend;
}

}  // namespace sluice::proxy
