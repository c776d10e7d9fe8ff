// Ranges of keyed bytes against a map of them.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "t/store/scratch.h"

using namespace sluice;
using namespace sluice::store;

namespace {

using Model = std::map<std::string, std::string>;

std::vector<std::string> expected(const Model& model, const KeyRange& range, std::size_t most) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : model)
    if (key >= range.low && (range.high.empty() || key < range.high)) keys.push_back(key);
  if (range.backward) std::reverse(keys.begin(), keys.end());
  if (keys.size() > most) keys.resize(most);
  return keys;
}

}  // namespace

TEST_CASE("a scan gives the keys of a range in their order, both ways, and nothing of the store's own") {
  Scratch scratch;
  auto store = open_store(scratch / "db");
  Model model;
  Batch batch;
  std::mt19937_64 random(7);
  for (int i = 0; i < 2000; ++i) {
    std::string key = std::to_string(random() % 100'000);
    if (i % 11 == 0) key += std::string(1, '\0') + "tail";
    model[key] = "value of " + key;
    batch.put(key, model[key]);
  }
  REQUIRE(commit(*store, batch));
  Reader reader(*store);
  const Snapshot snapshot = *reader.snapshot();
  std::array<Entry, 64> out;
  for (int i = 0; i < 2000; ++i) {
    const std::string low = random() % 8 == 0 ? "" : std::to_string(random() % 100'000);
    const std::string high = random() % 8 == 0 ? "" : std::to_string(random() % 100'000);
    const KeyRange range{low, high, random() % 2 == 0};
    const std::size_t most = 1 + random() % out.size();
    const Result<std::size_t> n = snapshot.scan(range, {out.data(), most});
    REQUIRE(n);
    const std::vector<std::string> keys = expected(model, range, most);
    REQUIRE(*n == keys.size());
    for (std::size_t k = 0; k < *n; ++k) {
      CHECK(out[k].key == keys[k]);
      CHECK(out[k].value == model[keys[k]]);
    }
  }
  CHECK(*snapshot.scan({}, {}) == 0);
}

TEST_CASE("an empty store has nothing to scan") {
  Scratch scratch;
  auto store = open_store(scratch / "db");
  Reader reader(*store);
  std::array<Entry, 4> out;
  CHECK(*reader.snapshot()->scan({}, out) == 0);
  CHECK(*reader.snapshot()->scan({"", "", true}, out) == 0);
  CHECK(*reader.snapshot()->scan({"a", "b", true}, out) == 0);
}

TEST_CASE("each snapshot scans its own commit, while others come and go") {
  Scratch scratch;
  auto store = open_store(scratch / "db");
  Reader one(*store), two(*store);
  std::array<Entry, 8> out;
  for (int round = 0; round < 20; ++round) {
    const Snapshot before = *one.snapshot();
    CHECK(*before.scan({"k", "l"}, out) == (round == 0 ? 0u : 1u));
    Batch batch;
    batch.put("k", std::to_string(round));
    REQUIRE(commit(*store, batch));
    const Snapshot after = *two.snapshot();
    REQUIRE(*after.scan({"k", "l"}, out) == 1);
    CHECK(out[0].value == std::to_string(round));
    REQUIRE(*before.scan({"k", "l"}, out) == (round == 0 ? 0u : 1u));
    if (round > 0) CHECK(out[0].value == std::to_string(round - 1));
    // The next round's snapshot uses one of these transactions, and its cursor, again.
    if (round % 2 == 0) one.rest();
  }
}
