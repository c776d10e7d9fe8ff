// Several remote backends that serve alike, and which of them a key belongs to.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/key_filter.h"
#include "proxy/remote/backend.h"
#include "vm/base/result.h"

namespace sluice::proxy {

enum class Distribution : std::uint8_t {
  jump,                            // few moves when backends are added at the end or taken off it
  ring,                            // few moves wherever they are added or taken off; weights
};

struct BackendPoolOptions {
  Distribution distribution = Distribution::jump;
  std::uint64_t seed = 0;
  KeyFilter filter;
};

// Thread: frozen once built; any then.
class BackendPool {
 public:
  static constexpr std::size_t kPointsPerWeight = 160;
  static constexpr std::size_t kMostPoints = 65'535;

  // Shape:  `weights` are one per backend, or none: all 1.
  // Errors: a sentence: no backends, one twice, weights without a ring, a ring of too many points.
  static Result<BackendPool, std::string> make(std::string name, std::vector<BackendPtr> backends, BackendPoolOptions options,
                                               std::vector<std::uint32_t> weights = {});

  // Which of backends(); the same in every process and version. Never allocates.
  // Source: XXH3 64 bits over the filtered key with the pool's seed. Then jump hash; or the first point of the ring at or
  //         behind the hash, each backend having 160 points per weight, XXH3 of "NAME-N" (Karger et al. 1997; placed as ketama does).
  std::size_t pick(std::string_view key) const;

  const std::string& name() const { return name_; }
  const std::vector<BackendPtr>& backends() const { return backends_; }

 private:
  struct Point {
    std::uint64_t at = 0;
    std::uint32_t backend = 0;
  };
  BackendPool(std::string name, std::vector<BackendPtr> backends, BackendPoolOptions options)
      : name_(std::move(name)), backends_(std::move(backends)), options_(std::move(options)) {}

  std::string name_;
  std::vector<BackendPtr> backends_;
  BackendPoolOptions options_;
  std::vector<Point> ring_;        // by `at`
};

}  // namespace sluice::proxy
