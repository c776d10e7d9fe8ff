#include "vm/orders.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "vm/memory_records.h"

namespace sluice::vm {
namespace {
const std::string kPrefix = "\x11\x02";

std::string key(std::uint32_t n) {
  char text[16];
  std::snprintf(text, sizeof text, "%08x", n);
  return kPrefix + text;
}

// Records of one order between those of others, the fences over it, and its keys in a plain sorted list.
struct Line {
  MemoryRecords records;
  Orders orders;
  std::vector<std::string> keys, keys_before;

  Line() {
    records.put("\x11\x01zz", "");
    records.put("\x11\x03", "");
    records.keep_event();
  }
  void insert(const std::string& k) {
    const auto at = std::lower_bound(keys.begin(), keys.end(), k);
    if (at != keys.end() && *at == k) return;
    keys.insert(at, k);
    records.put(k, "");
    orders.inserted(kPrefix, k);
  }
  void erase(std::size_t at) {
    records.erase(keys[at]);
    orders.erased(kPrefix, keys[at]);
    keys.erase(keys.begin() + static_cast<std::ptrdiff_t>(at));
  }
  void begin() {
    orders.begin_event();
    keys_before = keys;
  }
  void keep() {
    records.keep_event();
    orders.keep_event();
  }
  void undo() {
    records.undo_event();
    orders.undo_event();
    keys = keys_before;
  }
  void compare(const std::string& k) {
    const auto expected = static_cast<std::uint64_t>(std::lower_bound(keys.begin(), keys.end(), k) - keys.begin());
    REQUIRE(orders.rank(kPrefix, k, records) == expected);
  }
  void compare(std::uint64_t n) {
    Entry entry;
    REQUIRE(orders.at(kPrefix, n, records, entry) == (n < keys.size()));
    if (n < keys.size()) REQUIRE(entry.key == keys[static_cast<std::size_t>(n)]);
  }
  void compare_all() {
    for (std::uint64_t n = 0; n <= keys.size(); ++n) compare(n);
    for (const std::string& k : keys) compare(k);
  }
};
}  // namespace

TEST_CASE("ranks and positions in an order are those of a sorted list, whatever came, went and was undone") {
  std::mt19937 random(5);
  Line line;
  for (int event = 0; event < 1500; ++event) {
    line.begin();
    // First it grows, then it shrinks, at one place at a time, so that fences split, merge and go.
    const bool grows = event % 500 < 300;
    const std::uint32_t base = random() % 4 * 100000;
    for (int i = 0; i < 8; ++i) {
      if (grows ? random() % 5 != 0 : random() % 5 == 0) {
        line.insert(key(base + random() % 2000));
      } else if (!line.keys.empty()) {
        line.erase(random() % 3 == 0 ? 0 : random() % line.keys.size());
      }
      if (random() % 4 == 0) line.compare(key(base + random() % 2000));
      if (random() % 4 == 0) line.compare(std::uint64_t{random() % (line.keys.size() + 1)});
    }
    random() % 4 == 0 ? line.undo() : line.keep();
    line.compare(key(base + random() % 2000));
    if (event % 500 == 499) line.compare_all();
    if (event % 700 == 699) line.orders.clear();
  }
  line.compare_all();
}

TEST_CASE("fences that are built in the middle of an event are right after its undo") {
  Line line;
  line.begin();
  for (std::uint32_t i = 0; i < 500; ++i) line.insert(key(2 * i));
  line.keep();
  line.begin();
  for (std::uint32_t i = 0; i < 300; ++i) line.insert(key(2 * i + 1));
  line.erase(0);
  line.compare(key(400));                          // the first question
  for (std::uint32_t i = 300; i < 400; ++i) line.insert(key(2 * i + 1));
  line.compare(key(900));
  line.undo();
  line.compare_all();
}

TEST_CASE("a key in front of, behind and at the very edges of an order has its rank") {
  Line line;
  line.compare(key(5));
  line.compare(std::uint64_t{0});
  line.begin();
  for (std::uint32_t i = 0; i < 200; ++i) line.insert(key(i));
  line.keep();
  CHECK(line.orders.rank(kPrefix, "\x11\x01", line.records) == 0);
  CHECK(line.orders.rank(kPrefix, kPrefix, line.records) == 0);
  CHECK(line.orders.rank(kPrefix, "\x11\x03", line.records) == 200);
  CHECK(line.orders.rank(kPrefix, key(200), line.records) == 200);
}

TEST_CASE("a queue that loses at its front what it gets at its end keeps no fences for what is gone") {
  Line line;
  std::uint32_t next = 0;
  line.begin();
  for (; next < 2000; ++next) line.insert(key(next));
  line.keep();
  line.compare(key(1000));
  const std::size_t bytes = line.orders.bytes();
  for (int event = 0; event < 4000; ++event) {
    line.begin();
    line.insert(key(next++));
    line.erase(0);
    line.keep();
    if (event % 50 == 0) line.compare(key(next - 500));
  }
  line.compare_all();
  CHECK(line.orders.bytes() < 3 * bytes);
}

TEST_CASE("entries that came at one place between two questions are counted and fenced off") {
  Line line;
  line.begin();
  for (std::uint32_t i = 0; i < 1000; ++i) line.insert(key(i * 1000));
  line.compare(key(5));
  for (std::uint32_t i = 1; i < 20000; ++i) line.insert(key(500'000'000 + i));
  line.keep();
  line.compare(key(500'010'000));
  line.compare(std::uint64_t{15'000});
  line.compare(key(500'000'001));
  line.compare(std::uint64_t{20'998});
}

TEST_CASE("fences over records that can no longer be read answer less, and stay within what they know") {
  struct Unread final : Records {
    MemoryRecords& under;
    bool unread = false;
    explicit Unread(MemoryRecords& records) : under(records) {}
    bool get(std::string_view key, std::string_view& value) override { return !unread && under.get(key, value); }
    std::size_t scan(const KeyRange& range, std::span<Entry> out) override { return unread ? 0 : under.scan(range, out); }
    void put(std::string_view, std::string_view) override {}
    void erase(std::string_view) override {}
  };
  Line line;
  Unread records(line.records);
  line.begin();
  for (std::uint32_t i = 0; i < 100; ++i) line.insert(key(i * 1000));
  CHECK(line.orders.rank(kPrefix, key(1000), records) == 1);
  for (std::uint32_t i = 1; i < 900; ++i) line.insert(key(i));   // one fence, that is split when it is asked for
  line.keep();
  records.unread = true;
  Entry entry;
  for (const std::uint64_t n : {5, 200, 998}) CHECK_FALSE(line.orders.at(kPrefix, n, records, entry));
  CHECK(line.orders.rank(kPrefix, key(500), records) == 0);
}

}  // namespace sluice::vm
