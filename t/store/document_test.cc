#include <deque>
#include <random>

#include "scratch.h"
#include "store/record.h"

using namespace sluice;
using namespace sluice::store;

namespace {
std::size_t extents(const Document& d) {
  std::size_t n = 0;
  for (const Run& run : d.runs) n += run.count;
  return n;
}

void check_document(Store& store, std::string_view key, std::uint64_t revision, const std::string& want) {
  const Snapshot s = snapshot(store);
  const auto d = s.document(key);
  REQUIRE(d);
  CHECK(d->revision == revision);
  CHECK(d->bytes == want.size());
  CHECK((content(*d) == want));
  CHECK(s.verify(*d));
}
}  // namespace

TEST_CASE("documents of every size come back whole, also after opening again") {
  Scratch scratch;
  const std::size_t sizes[] = {0,    1,    kInlineMax, kInlineMax + 1, 4072, 4073, 4080, 4081, 2 * 4072,
                               8145, 1 << 20, 16 << 20};
  {
    auto store = open_store(scratch / "s");
    for (std::size_t size : sizes) {
      const std::string bytes = pattern(size, size);
      REQUIRE(write(*store, whole("d" + std::to_string(size), 7, bytes)));
    }
  }
  auto store = open_store(scratch / "s");
  for (std::size_t size : sizes) {
    CAPTURE(size);
    check_document(*store, "d" + std::to_string(size), 7, pattern(size, size));
    const auto d = snapshot(*store).document("d" + std::to_string(size));
    CHECK(d->runs.empty() == (size <= kInlineMax));
    CHECK(extents(*d) == (size <= kInlineMax ? 0 : (size + kExtentBytes - 1) / kExtentBytes));
  }
}

TEST_CASE("a deleted document keeps its revision and gives its extents back") {
  Scratch scratch;
  auto store = open_store(scratch / "s");
  const std::string bytes = pattern(1 << 20, 1);
  REQUIRE(write(*store, whole("d", 1, bytes)));
  DocumentWrite gone;
  gone.key = "d";
  gone.revision = 2;
  gone.deleted = true;
  REQUIRE(write(*store, gone));
  const auto d = snapshot(*store).document("d");
  REQUIRE(d);
  CHECK_FALSE(d->exists());
  CHECK(d->deleted);
  CHECK(d->revision == 2);
  CHECK(d->bytes == 0);
  const std::uint64_t size = store->counters().file_bytes;
  for (std::uint64_t i = 0; i < 40; ++i) {
    REQUIRE(write(*store, whole("d", 3 + 2 * i, bytes)));
    gone.revision = 4 + 2 * i;
    REQUIRE(write(*store, gone));
  }
  CHECK(store->counters().file_bytes <= 4 * size);   // 41 MiB went through it: what was deleted is used again
}

TEST_CASE("the kind of a document is the writer's") {
  Scratch scratch;
  auto store = open_store(scratch / "s");
  DocumentWrite d = whole("d", 1, "{}");
  d.kind = 2;
  REQUIRE(write(*store, d));
  CHECK(snapshot(*store).document("d")->kind == 2);
}

TEST_CASE("an append keeps the full extents where they are") {
  Scratch scratch;
  auto store = open_store(scratch / "s");
  std::string want = pattern(10 * kExtentBytes + 100, 1);
  REQUIRE(write(*store, whole("d", 1, want)));
  const Run before = snapshot(*store).document("d")->runs.at(0);
  DocumentWrite append;
  append.key = "d";
  append.revision = 2;
  append.pieces = {kept(0, want.size()), {"more"}};
  REQUIRE(write(*store, append));
  want += "more";
  check_document(*store, "d", 2, want);
  const auto d = snapshot(*store).document("d");
  REQUIRE(d->runs.size() == 2);
  CHECK(d->runs[0] == Run{before.first, 10, 10 * kExtentBytes});
  CHECK(d->runs[1].count == 1);
  CHECK(d->runs[1].bytes == 104);
}

TEST_CASE("a splice rewrites the extents it cuts and no others") {
  Scratch scratch;
  auto store = open_store(scratch / "s");
  const std::string old = pattern(100 * kExtentBytes, 2);
  REQUIRE(write(*store, whole("d", 1, old)));
  const std::size_t at = 50 * kExtentBytes + 7, remove = kExtentBytes;
  DocumentWrite splice;
  splice.key = "d";
  splice.revision = 2;
  splice.pieces = {kept(0, at), {"in"}, kept(at + remove, old.size() - at - remove)};
  const std::uint64_t written = store->counters().file_bytes;
  REQUIRE(write(*store, splice));
  check_document(*store, "d", 2, old.substr(0, at) + "in" + old.substr(at + remove));
  const auto d = snapshot(*store).document("d");
  REQUIRE(d->runs.size() == 3);
  CHECK(d->runs[0].count == 50);
  CHECK(d->runs[2].count == 48);
  CHECK(store->counters().file_bytes == written);
}

TEST_CASE("a document whose pieces make it small becomes a record, and grows into extents again") {
  Scratch scratch;
  auto store = open_store(scratch / "s");
  const std::string old = pattern(3 * kExtentBytes, 3);
  REQUIRE(write(*store, whole("d", 1, old)));
  DocumentWrite d;
  d.key = "d";
  d.revision = 2;
  d.pieces = {kept(kExtentBytes - 5, 10), {"-"}, kept(0, 3)};
  REQUIRE(write(*store, d));
  const std::string small = old.substr(kExtentBytes - 5, 10) + "-" + old.substr(0, 3);
  check_document(*store, "d", 2, small);
  const std::string more = pattern(9000, 4);
  d.revision = 3;
  d.pieces = {kept(2, 5), {more}, kept(0, small.size())};
  REQUIRE(write(*store, d));
  check_document(*store, "d", 3, small.substr(2, 5) + more + small);
}

TEST_CASE("random edits agree with a string, and the runs stay few") {
  Scratch scratch;
  auto store = open_store(scratch / "s");
  std::mt19937_64 random(11);
  std::string model = pattern(300'000, 5);
  REQUIRE(write(*store, whole("d", 1, model)));
  for (std::uint64_t revision = 2; revision < 400; ++revision) {
    DocumentWrite d;
    d.key = "d";
    d.revision = revision;
    std::string next;
    std::deque<std::string> inserted;
    for (std::uint64_t pieces = 1 + random() % 4, i = 0; i < pieces; ++i) {
      const std::uint64_t at = model.empty() ? 0 : random() % model.size();
      std::uint64_t length = random() % (model.size() - at + 1);
      if (random() % 2 == 0 && !model.empty()) {
        // Now and then just where extents end.
        const std::uint64_t from = random() % 3 ? at : at / kExtentBytes * kExtentBytes;
        if (from + length > model.size()) length = model.size() - from;
        d.pieces.push_back(kept(from, length));
        next += model.substr(from, length);
      } else {
        inserted.push_back(pattern(random() % 9000, revision + i));
        d.pieces.push_back({inserted.back()});
        next += inserted.back();
      }
    }
    if (next.size() > 2'000'000 || next.size() < 1000) {
      inserted.push_back(pattern(400'000, revision));
      d.pieces = {{inserted.back()}};
      next = inserted.back();
    }
    // Another document's extents lie between, so runs do break.
    Batch batch;
    const std::string other = pattern(10'000, revision);
    batch.write(whole("other", revision, other));
    batch.write(d);
    REQUIRE(commit(*store, batch));
    model = next;
    check_document(*store, "d", revision, model);
    CHECK(snapshot(*store).document("d")->runs.size() <= kRunsMax);
  }
  check_document(*store, "other", 399, pattern(10'000, 399));
}

TEST_CASE("a document that only grows keeps few runs and is not copied whole each time") {
  Scratch scratch;
  auto store = open_store(scratch / "s");
  std::string model;
  for (std::uint64_t i = 1; i <= 600; ++i) {
    const std::string more = pattern(kExtentBytes + 10, i), between = pattern(5000, i);
    Batch batch;
    DocumentWrite d;
    d.key = "d";
    d.revision = i;
    d.pieces = {kept(0, model.size()), {more}};
    batch.write(whole("b" + std::to_string(i), 1, between));
    batch.write(d);
    REQUIRE(commit(*store, batch));
    model += more;
  }
  check_document(*store, "d", 600, model);
  CHECK(snapshot(*store).document("d")->runs.size() <= kRunsMax);
}

TEST_CASE("keeping what a document does not have fails the commit and stores nothing") {
  Scratch scratch;
  auto store = open_store(scratch / "s");
  REQUIRE(write(*store, whole("d", 1, "abc")));
  DocumentWrite d;
  d.key = "d";
  d.revision = 2;
  d.pieces = {kept(1, 3)};
  Batch batch;
  batch.put("\x02\x01", "x");
  batch.write(d);
  const auto failed = commit(*store, batch);
  REQUIRE_FALSE(failed);
  CHECK(failed.error().code == Errc::storage);
  CHECK_FALSE(store->closed());
  CHECK_FALSE(snapshot(*store).get("\x02\x01")->has_value());
  check_document(*store, "d", 1, "abc");
}

TEST_CASE("two writes of one document in a commit count in order") {
  Scratch scratch;
  auto store = open_store(scratch / "s");
  const std::string first = pattern(20'000, 1);
  Batch batch;
  batch.write(whole("d", 1, first));
  DocumentWrite d;
  d.key = "d";
  d.revision = 2;
  d.pieces = {{"<"}, kept(100, 15'000), {">"}};
  batch.write(d);
  REQUIRE(commit(*store, batch));
  check_document(*store, "d", 2, "<" + first.substr(100, 15'000) + ">");
}

TEST_CASE("a loan stays as it was while later commits overwrite the document") {
  Scratch scratch;
  auto store = open_store(scratch / "s");
  const std::string old = pattern(200'000, 1);
  REQUIRE(write(*store, whole("d", 1, old)));
  Document document;
  Loan loan;
  {
    Reader reader(*store);
    auto s = reader.snapshot();
    document = *s->document("d");
    loan = s->loan();
  }
  for (std::uint64_t i = 2; i < 60; ++i) {
    const std::string bytes = pattern(200'000, i);
    REQUIRE(write(*store, whole("d", i, bytes)));
  }
  CHECK((content(document) == old));
  CHECK(store->counters().generations_alive == 1);
  loan.reset();
  CHECK(store->counters().generations_alive == 0);
}

TEST_CASE("a record or extent that is not as it was written is told from a good one") {
  std::string record;
  Record r;
  r.revision = 3;
  r.bytes = 5;
  r.inlined = "hello";
  encode_record(record, "key", r);
  REQUIRE(decode_record("key", record));
  CHECK_FALSE(decode_record("kez", record));
  for (std::size_t i = 0; i < record.size(); ++i) {
    std::string bad = record;
    bad[i] = static_cast<char>(bad[i] ^ 0x10);
    CHECK_FALSE(decode_record("key", bad));
  }
  for (std::size_t n = 0; n < record.size(); ++n) CHECK_FALSE(decode_record("key", record.substr(0, n)));
  CHECK(extent_sum(1, "a") != extent_sum(2, "a"));
  CHECK(extent_sum(1, "a") != extent_sum(1, "b"));
}
