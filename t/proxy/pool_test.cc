#include "proxy/pool.h"

#include <doctest/doctest.h>

#include <map>
#include <string>

#include "t/proxy/fakes.h"

using namespace sluice;
using namespace sluice::proxy;
using fakes::FakeStore;

namespace {

Pool pool_of(std::size_t n, std::uint64_t seed = 0) {
  std::vector<StorePtr> stores;
  for (std::size_t i = 0; i < n; ++i) stores.push_back(std::make_shared<FakeStore>("s" + std::to_string(i)));
  auto pool = Pool::make("p", std::move(stores), seed);
  REQUIRE(pool);
  return *std::move(pool);
}

}  // namespace

TEST_CASE("an empty pool is refused by its name") {
  const auto pool = Pool::make("east", {});
  REQUIRE_FALSE(pool);
  CHECK(pool.error() == "pool `east` has no stores");
}

TEST_CASE("a key always goes to the same store, and all stores get their share") {
  const Pool pool = pool_of(5);
  std::map<std::string, int> share;
  for (int i = 0; i < 10'000; ++i) {
    const std::string key = "user-" + std::to_string(i);
    const StorePtr& picked = pool.pick(key);
    CHECK(picked == pool.pick(key));
    ++share[std::string(picked->name())];
  }
  REQUIRE(share.size() == 5);
  for (const auto& [name, n] : share) {
    CHECK(n > 1'800);
    CHECK(n < 2'200);
  }
}

TEST_CASE("one more store takes its share and moves nothing else") {
  const Pool four = pool_of(4), five = pool_of(5);
  int moved = 0;
  for (int i = 0; i < 10'000; ++i) {
    const std::string key = std::to_string(i);
    const std::string before(four.pick(key)->name()), after(five.pick(key)->name());
    if (before == after) continue;
    ++moved;
    CHECK(after == "s4");
  }
  CHECK(moved > 1'800);
  CHECK(moved < 2'200);
}

TEST_CASE("another seed is another distribution") {
  const Pool a = pool_of(8, 1), b = pool_of(8, 2);
  int same = 0;
  for (int i = 0; i < 1'000; ++i) same += a.pick(std::to_string(i))->name() == b.pick(std::to_string(i))->name() ? 1 : 0;
  CHECK(same < 200);
}
