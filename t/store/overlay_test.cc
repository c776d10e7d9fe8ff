// The overlay against a map that does the same the slow way.
#include "store/overlay.h"

#include <doctest/doctest.h>

#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

using namespace sluice;
using namespace sluice::store;

namespace {

using Model = std::map<std::string, std::optional<std::string>>;

// Keys that share their first bytes, as those of one table do; some are the beginning of others.
std::string key_of(std::uint64_t n) {
  std::string key("\x10\x01", 2);
  if (n % 3 == 0) key += "shared-beginning-";
  key += std::to_string(n);
  if (n % 5 == 0) key.push_back('\0');
  return key;
}

void check_same(const Overlay& overlay, const Model& model) {
  REQUIRE(overlay.size() == model.size());
  Overlay::Cursor at = overlay.first();
  for (const auto& [key, value] : model) {
    REQUIRE(at.valid());
    CHECK(at.key() == key);
    CHECK(at.has_value() == value.has_value());
    CHECK(at.value() == value.value_or(""));
    at.next();
  }
  CHECK_FALSE(at.valid());
  at = overlay.last();
  for (auto it = model.rbegin(); it != model.rend(); ++it) {
    REQUIRE(at.valid());
    CHECK(at.key() == it->first);
    at.previous();
  }
  CHECK_FALSE(at.valid());
}

}  // namespace

TEST_CASE("an overlay without keys has no first and no last one") {
  Overlay overlay;
  CHECK_FALSE(overlay.first().valid());
  CHECK_FALSE(overlay.last().valid());
  CHECK_FALSE(overlay.from("a").valid());
  CHECK_FALSE(overlay.below("a").valid());
  CHECK(overlay.find("a").holds == Overlay::Holds::nothing);
}

TEST_CASE("an overlay holds what a map holds, whatever is written, kept and undone") {
  std::mt19937_64 random(41);
  Overlay overlay;
  for (int round = 0; round < 3; ++round) {
    Model model;
    const std::uint64_t keys = round == 0 ? 50 : 3000;
    for (int event = 0; event < 400; ++event) {
      Model staged = model;
      overlay.begin_event();
      const std::uint64_t writes = random() % 60;
      for (std::uint64_t i = 0; i < writes; ++i) {
        const std::string key = key_of(random() % keys);
        if (random() % 4 == 0) {
          overlay.erase(key);
          staged[key] = std::nullopt;
        } else {
          const std::string value(random() % (random() % 50 == 0 ? 5000 : 60), static_cast<char>('a' + random() % 26));
          overlay.put(key, value);
          staged[key] = value;
        }
      }
      if (random() % 3 == 0) {
        overlay.undo_event();
      } else {
        overlay.keep_event();
        model = std::move(staged);
      }
      if (event % 40 == 0) check_same(overlay, model);
    }
    check_same(overlay, model);
    for (std::uint64_t n = 0; n < keys; ++n) {
      const std::string key = key_of(n);
      const auto it = model.find(key);
      const Overlay::Found found = overlay.find(key);
      CHECK((found.holds == Overlay::Holds::nothing) == (it == model.end()));
      if (it != model.end()) CHECK(found.value == it->second.value_or(""));
      const auto from = model.lower_bound(key);
      CHECK(overlay.from(key).valid() == (from != model.end()));
      if (from != model.end()) CHECK(overlay.from(key).key() == from->first);
      CHECK(overlay.below(key).valid() == (from != model.begin()));
      if (from != model.begin()) CHECK(overlay.below(key).key() == std::prev(from)->first);
    }
    overlay.clear();
    CHECK(overlay.size() == 0);
    CHECK(overlay.bytes() == 0);
    CHECK_FALSE(overlay.first().valid());
  }
}

TEST_CASE("keys that come in their order, or against it, are all there") {
  for (const bool rising : {true, false}) {
    Overlay overlay;
    for (int i = 0; i < 40'000; ++i) {
      const int n = 100'000 + (rising ? i : 39'999 - i);
      overlay.put(std::to_string(n), "v");
    }
    Overlay::Cursor at = overlay.first();
    for (int i = 0; i < 40'000; ++i, at.next()) {
      REQUIRE(at.valid());
      REQUIRE(at.key() == std::to_string(100'000 + i));
    }
    CHECK_FALSE(at.valid());
  }
}

TEST_CASE("a value that was given out stays as it was until the event ends") {
  Overlay overlay;
  overlay.begin_event();
  overlay.put("k", "first value");
  overlay.keep_event();
  overlay.begin_event();
  const std::string_view first = overlay.find("k").value;
  std::vector<std::string_view> given{first};
  for (int i = 0; i < 100; ++i) {
    overlay.put("k", "value " + std::to_string(i));
    overlay.put("other " + std::to_string(i), "x");
    given.push_back(overlay.find("k").value);
  }
  overlay.erase("k");
  CHECK(first == "first value");
  for (int i = 0; i < 100; ++i) CHECK(given[static_cast<std::size_t>(i) + 1] == "value " + std::to_string(i));
  overlay.undo_event();
  CHECK(overlay.find("k").value == "first value");
  CHECK(overlay.size() == 1);
}

TEST_CASE("a value may be written from a part of the one it replaces") {
  Overlay overlay;
  overlay.put("k", "abcdef");
  overlay.put("k", overlay.find("k").value.substr(2));
  CHECK(overlay.find("k").value == "cdef");
}

TEST_CASE("a key written by thousands of events takes the room of a few values") {
  Overlay overlay;
  for (int i = 0; i < 20'000; ++i) {
    overlay.begin_event();
    overlay.put("hot", std::to_string(1'000'000 + i) + std::string(50, 'x'));
    overlay.put("hot", std::to_string(2'000'000 + i) + std::string(50, 'y'));
    if (i % 7 == 0) overlay.undo_event();
    else overlay.keep_event();
  }
  CHECK(overlay.bytes() <= 300);
  CHECK(overlay.size() == 1);
}

TEST_CASE("an event that is undone takes its memory back") {
  Overlay overlay;
  overlay.begin_event();
  overlay.put("a", "1");
  overlay.keep_event();
  const std::size_t before = overlay.bytes();
  for (int round = 0; round < 50; ++round) {
    overlay.begin_event();
    for (int i = 0; i < 500; ++i) overlay.put("k" + std::to_string(i), std::string(3000, 'x'));
    CHECK(overlay.bytes() > 1'000'000);
    overlay.undo_event();
    REQUIRE(overlay.bytes() == before);
  }
  CHECK(overlay.size() == 1);
}
