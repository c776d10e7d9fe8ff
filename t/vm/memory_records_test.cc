#include "vm/memory_records.h"

#include <doctest/doctest.h>

#include <random>
#include <string>
#include <vector>

namespace sluice::vm {
namespace {
std::string keys(Records& records, const KeyRange& range, std::size_t most = 100) {
  std::vector<Entry> entries(most);
  entries.resize(records.scan(range, entries));
  std::string out;
  for (const Entry& entry : entries) out.append(entry.key).append("=").append(entry.value).append(" ");
  return out;
}
}  // namespace

TEST_CASE("records in memory are found, gone over both ways and counted no further than asked") {
  MemoryRecords records;
  for (const char* key : {"b", "d", "a", "c"}) records.put(key, std::string(key) + "1");
  records.keep_event();
  std::string_view value;
  CHECK(records.get("c", value));
  CHECK(value == "c1");
  CHECK_FALSE(records.get("cc", value));
  CHECK(keys(records, {"", "", false}) == "a=a1 b=b1 c=c1 d=d1 ");
  CHECK(keys(records, {"", "", true}) == "d=d1 c=c1 b=b1 a=a1 ");
  CHECK(keys(records, {"b", "d", false}) == "b=b1 c=c1 ");
  CHECK(keys(records, {"b", "d", true}) == "c=c1 b=b1 ");
  CHECK(keys(records, {"b", "", false}, 2) == "b=b1 c=c1 ");
  CHECK(keys(records, {"c", "b", false}).empty());
  CHECK(keys(records, {"c", "b", true}).empty());
}

TEST_CASE("bytes of records that are overwritten and erased stay good until the event ends") {
  MemoryRecords records;
  records.put("key", "first");
  records.keep_event();
  std::string_view first, second;
  CHECK(records.get("key", first));
  Entry entry;
  CHECK(records.scan({"k", "", false}, {&entry, 1}) == 1);
  records.put("key", "second");
  CHECK(records.get("key", second));
  records.erase("key");
  records.put("key", std::string(1000, 'x'));
  records.put("key", second);                     // what was lent may be written
  CHECK(first == "first");
  CHECK(second == "second");
  CHECK(entry.key == "key");
  CHECK(entry.value == "first");
  records.undo_event();
  CHECK(records.get("key", first));
  CHECK(first == "first");
  CHECK(records.contents().size() == 1);
}

TEST_CASE("a write that changes nothing is none") {
  MemoryRecords records;
  records.put("a", "1");
  records.keep_event();
  records.put("a", "1");
  records.erase("b");
  CHECK_FALSE(records.wrote());
  records.put("a", "2");
  CHECK(records.wrote());
}

TEST_CASE("after undo the records are what they were before the event, whatever it did") {
  std::mt19937 random(7);
  MemoryRecords records;
  std::map<std::string, std::string, std::less<>> model;
  for (int event = 0; event < 2000; ++event) {
    auto changed = model;
    for (int i = 0; i < 10; ++i) {
      const std::string key(1, static_cast<char>('a' + random() % 12));
      if (random() % 3 == 0) {
        records.erase(key);
        changed.erase(key);
      } else {
        const std::string value = std::to_string(random() % 5);
        records.put(key, value);
        changed[key] = value;
      }
    }
    REQUIRE(records.contents() == changed);
    if (random() % 2 == 0) {
      records.undo_event();
    } else {
      records.keep_event();
      model = changed;
    }
    REQUIRE(records.contents() == model);
  }
}

}  // namespace sluice::vm
