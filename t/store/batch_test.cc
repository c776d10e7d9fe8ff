#include "store/batch.h"

#include <doctest/doctest.h>

using namespace sluice;
using namespace sluice::store;

namespace {
DocumentWrite document(std::string key, std::uint64_t revision) {
  DocumentWrite d;
  d.key = std::move(key);
  d.revision = revision;
  return d;
}
}  // namespace

TEST_CASE("a batch says of a key a value, an absence or nothing") {
  Batch batch;
  CHECK(batch.find("a").holds == Overlay::Holds::nothing);
  CHECK(batch.empty());
  batch.put("a", "1");
  CHECK(batch.find("a").holds == Overlay::Holds::value);
  CHECK(batch.find("a").value == "1");
  batch.erase("a");
  CHECK(batch.find("a").holds == Overlay::Holds::absence);
  CHECK(batch.records() == 1);
}

TEST_CASE("undoing an event leaves the batch as it was before the event") {
  Batch batch;
  batch.begin_event();
  batch.put("kept", "1");
  batch.write(document("d", 1));
  batch.keep_event();
  const std::size_t bytes = batch.bytes();

  batch.begin_event();
  CHECK_FALSE(batch.event_wrote());
  batch.put("kept", "22");
  batch.put("kept", "333");
  batch.put("new", "4");
  batch.erase("new");
  batch.erase("gone");
  batch.keep(std::string(100'000, 'x'));
  DocumentWrite d = document("e", 1);
  d.pieces.push_back({"five5"});
  batch.write(d);
  batch.write(document("d", 2));
  CHECK(batch.event_wrote());
  CHECK(batch.writes_document("e"));
  batch.undo_event();

  CHECK_FALSE(batch.event_wrote());
  CHECK(batch.find("kept").value == "1");
  CHECK(batch.find("new").holds == Overlay::Holds::nothing);
  CHECK(batch.find("gone").holds == Overlay::Holds::nothing);
  CHECK_FALSE(batch.writes_document("e"));
  CHECK(batch.writes_document("d"));
  REQUIRE(batch.documents().size() == 1);
  CHECK(batch.documents()[0].revision == 1);
  CHECK(batch.bytes() == bytes);
  CHECK(batch.records() == 2);
}

TEST_CASE("a write that changes nothing is no write") {
  Batch batch;
  batch.put("a", "1");
  batch.erase("b");
  batch.begin_event();
  batch.put("a", "1");
  batch.erase("b");
  CHECK_FALSE(batch.event_wrote());
}

TEST_CASE("kept bytes stay where they are while more are kept") {
  Batch batch;
  std::vector<std::string_view> views;
  for (int i = 0; i < 20'000; ++i) views.push_back(batch.keep("n" + std::to_string(i)));
  for (int i = 0; i < 20'000; ++i) CHECK_MESSAGE(views[static_cast<std::size_t>(i)] == "n" + std::to_string(i), i);
}

TEST_CASE("thousands of documents are found by key, also after some were undone") {
  Batch batch;
  for (std::uint64_t i = 0; i < 5000; ++i) {
    batch.begin_event();
    batch.write(document("k" + std::to_string(i), 1));
    if (i % 3 == 0)
      batch.undo_event();
    else
      batch.keep_event();
  }
  for (std::uint64_t i = 0; i < 5000; ++i) CHECK(batch.writes_document("k" + std::to_string(i)) == (i % 3 != 0));
  batch.clear();
  CHECK(batch.empty());
  CHECK(batch.bytes() == 0);
  CHECK_FALSE(batch.writes_document("k1"));
}
