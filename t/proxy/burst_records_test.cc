// A burst's records against one map that has everything.
#include "proxy/engine/burst_records.h"

#include <doctest/doctest.h>

#include <array>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "t/proxy/engine_fixture.h"

using namespace sluice;
using namespace sluice::proxy;

namespace {

using Model = std::map<std::string, std::string>;

std::unique_ptr<store::Store> open(const Folder& folder) {
  store::Options options;
  options.map_bytes = std::uint64_t{1} << 30;
  options.grow_bytes = std::uint64_t{1} << 20;
  options.any_filesystem = true;
  auto opened = store::Store::open(folder / "db", options);
  REQUIRE(opened);
  return std::move(*opened);
}

std::string key_of(std::mt19937_64& random) {
  std::string key = "\x10" + std::to_string(random() % 3000);
  if (random() % 9 == 0) key.push_back('\0');
  return key;
}

void check_scans(vm::Records& records, const Model& model, std::mt19937_64& random) {
  std::array<vm::Entry, 200> out;
  for (int i = 0; i < 60; ++i) {
    const std::string low = random() % 6 == 0 ? "" : key_of(random);
    const std::string high = random() % 6 == 0 ? "" : key_of(random);
    const bool backward = random() % 2 == 0;
    const std::size_t most = 1 + random() % out.size();
    std::vector<Model::const_iterator> expected;
    for (auto it = model.lower_bound(low); it != model.end() && (high.empty() || it->first < high); ++it) expected.push_back(it);
    if (backward) std::reverse(expected.begin(), expected.end());
    if (expected.size() > most) expected.resize(most);
    const std::size_t n = records.scan({low, high, backward}, {out.data(), most});
    REQUIRE(n == expected.size());
    for (std::size_t k = 0; k < n; ++k) {
      CHECK(out[k].key == expected[k]->first);
      CHECK(out[k].value == expected[k]->second);
    }
  }
}

}  // namespace

TEST_CASE("what a burst wrote and what is stored read as one, also where an event was undone") {
  const Folder folder;
  const auto store = open(folder);
  std::mt19937_64 random(5);
  Model model;
  store::Batch batch;
  BurstRecords records(batch);
  store::Reader reader(*store);
  for (int burst = 0; burst < 12; ++burst) {
    const store::Snapshot snapshot = *reader.snapshot();
    records.begin(&snapshot);
    for (int event = 0; event < 20; ++event) {
      Model staged = model;
      batch.begin_event();
      for (std::uint64_t writes = random() % 80; writes > 0; --writes) {
        const std::string key = key_of(random);
        if (random() % 3 == 0) {
          records.erase(key);
          staged.erase(key);
        } else {
          const std::string value = std::to_string(random() % 1000);
          records.put(key, value);
          staged[key] = value;
        }
      }
      if (event == 7) check_scans(records, staged, random);
      if (random() % 4 == 0) {
        batch.undo_event();
      } else {
        batch.keep_event();
        model = std::move(staged);
      }
    }
    check_scans(records, model, random);
    for (int i = 0; i < 100; ++i) {
      const std::string key = key_of(random);
      std::string_view value;
      const bool there = records.get(key, value);
      CHECK(there == model.contains(key));
      if (there) CHECK(value == model[key]);
    }
    CHECK(records.error().code == Errc::none);
    const store::Batch* one[] = {&batch};
    REQUIRE(store->commit(one));
    batch.clear();
  }
}

TEST_CASE("a write of what is stored already is no write, whichever burst it comes in") {
  const Folder folder;
  const auto store = open(folder);
  store::Batch batch;
  batch.put("k", "1");
  const store::Batch* one[] = {&batch};
  REQUIRE(store->commit(one));
  batch.clear();
  store::Reader reader(*store);
  const store::Snapshot snapshot = *reader.snapshot();
  BurstRecords records(batch);
  records.begin(&snapshot);
  batch.begin_event();
  records.put("k", "1");
  records.erase("never there");
  CHECK_FALSE(batch.event_wrote());
  records.put("k", "2");
  CHECK(batch.event_wrote());
}

TEST_CASE("a store that is being created holds only what was written") {
  store::Batch batch;
  BurstRecords records(batch);
  records.begin(nullptr);
  std::string_view value;
  std::array<vm::Entry, 4> out;
  CHECK_FALSE(records.get("a", value));
  CHECK(records.scan({}, out) == 0);
  records.put("a", "1");
  records.put("b", "2");
  records.erase("b");
  CHECK(records.scan({}, out) == 1);
  CHECK(out[0].key == "a");
}

TEST_CASE("steps over what the burst has removed are counted, from its beginning on") {
  store::Batch batch;
  BurstRecords records(batch);
  records.begin(nullptr);
  for (const char* key : {"a", "b", "c", "d"}) records.put(key, "1");
  for (const char* key : {"a", "b", "c"}) records.erase(key);
  std::array<vm::Entry, 4> out;
  CHECK(records.scan({}, {out.data(), 1}) == 1);
  CHECK(records.stepped_over() == 3);
  CHECK(records.scan({{}, {}, true}, {out.data(), 1}) == 1);      // the last one comes first
  CHECK(records.stepped_over() == 3);
  CHECK(records.scan({{}, {}, true}, {out.data(), 2}) == 1);
  CHECK(records.stepped_over() == 6);
  records.begin(nullptr);
  CHECK(records.stepped_over() == 0);
}

TEST_CASE("what cannot be read is noted and reads as if nothing were there") {
  const Folder folder;
  const auto store = open(folder);
  store::Batch batch;
  store::Reader reader(*store);
  const store::Snapshot snapshot = *reader.snapshot();
  BurstRecords records(batch);
  records.begin(&snapshot);
  std::string_view value;
  CHECK_FALSE(records.get("", value));          // LMDB has no such key
  CHECK(records.error().code == Errc::storage);
  records.forget();
  CHECK(records.error().code == Errc::none);
}
