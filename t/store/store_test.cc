#include "store/store.h"

#include "scratch.h"

using namespace sluice;
using namespace sluice::store;

TEST_CASE("what a commit wrote is read by the next snapshot, and by the next opening") {
  Scratch scratch;
  const std::string path = scratch / "s";
  {
    auto store = open_store(path);
    Batch batch;
    batch.put("\x02\x01", "one");
    batch.put("\x02\x02", "two");
    batch.write(whole("note", 1, "hello"));
    REQUIRE(commit(*store, batch));
    batch.clear();
    batch.erase("\x02\x01");
    REQUIRE(commit(*store, batch));
    CHECK(snapshot(*store).get("\x02\x01")->has_value() == false);
  }
  auto store = open_store(path);
  const Snapshot s = snapshot(*store);
  CHECK_FALSE(s.get("\x02\x01")->has_value());
  CHECK(**s.get("\x02\x02") == "two");
  const auto d = s.document("note");
  REQUIRE(d);
  CHECK(d->exists());
  CHECK(d->revision == 1);
  CHECK(content(*d) == "hello");
  CHECK_FALSE(s.document("other")->exists());
}
