#include <atomic>
#include <cerrno>
#include <thread>

#include "child.h"
#include "scratch.h"
#include "store/environment.h"

using namespace sluice;
using namespace sluice::store;

namespace {
// What the store is told to fail at next.
struct Broken {
  int before_commit = 0, grow = 0;
  Faults::Commit commit = Faults::Commit::none;
  Options options() {
    Options o = small_map();
    o.faults.context = this;
    o.faults.before_commit = [](void* c) { return static_cast<Broken*>(c)->before_commit; };
    o.faults.grow = [](void* c, std::uint64_t) { return static_cast<Broken*>(c)->grow; };
    o.faults.commit = [](void* c) { return static_cast<Broken*>(c)->commit; };
    return o;
  }
};

Result<void> put(Store& store, std::string_view key, std::string_view value) {
  Batch batch;
  batch.put(key, value);
  return commit(store, batch);
}
}  // namespace

TEST_CASE("batches of one commit are stored together, in order") {
  Scratch scratch;
  auto store = open_store(scratch / "s");
  Batch a, b;
  a.put("k", "a");
  a.put("l", "a");
  b.put("k", "b");
  const Batch* both[] = {&a, &b};
  const std::uint64_t before = store->published();
  REQUIRE(store->commit(both));
  CHECK(store->published() == before + 1);
  CHECK(**snapshot(*store).get("k") == "b");
  CHECK(**snapshot(*store).get("l") == "a");
  CHECK(store->counters().commits == 1);
  CHECK(store->counters().batches == 2);
  CHECK(store->counters().bytes_written == 6);   // of keys and values
}

TEST_CASE("an empty commit writes nothing, and one that changes nothing hides no later one") {
  Scratch scratch;
  auto store = open_store(scratch / "s");
  Batch batch;
  const std::uint64_t before = store->published();
  REQUIRE(commit(*store, batch));
  CHECK(store->published() == before);
  Reader reader(*store);
  batch.erase("never there");
  for (int i = 0; i < 3; ++i) {
    REQUIRE(commit(*store, batch));
    REQUIRE(put(*store, "k", std::to_string(i)));
    CHECK(**reader.snapshot()->get("k") == std::to_string(i));
  }
}

TEST_CASE("a reader keeps its snapshot until a commit comes, and a loan keeps it for longer") {
  Scratch scratch;
  auto store = open_store(scratch / "s");
  REQUIRE(put(*store, "k", "1"));
  Reader reader(*store);
  const Loan first = reader.snapshot()->loan();
  CHECK(reader.snapshot()->loan() == first);
  const Snapshot old = *reader.snapshot();
  REQUIRE(put(*store, "k", "2"));
  const Snapshot next = *reader.snapshot();
  CHECK(next.loan() != first);
  CHECK(next.commit() == old.commit() + 1);
  CHECK(next.commit() == store->published());
  CHECK(**old.get("k") == "1");
  CHECK(**next.get("k") == "2");
  CHECK(store->counters().generations_alive == 2);
}

TEST_CASE("a rested reader pins nothing") {
  Scratch scratch;
  auto store = open_store(scratch / "s");
  Reader reader(*store);
  REQUIRE(reader.snapshot());
  CHECK(store->counters().generations_alive == 1);
  reader.rest();
  CHECK(store->counters().generations_alive == 0);
}

TEST_CASE("a failure before the commit stores nothing, and the store goes on") {
  Scratch scratch;
  Broken broken;
  auto store = open_store(scratch / "s", broken.options());
  REQUIRE(put(*store, "k", "1"));
  struct { int error; Errc code; } cases[] = {{ENOSPC, Errc::full}, {EIO, Errc::storage}};
  for (const auto& c : cases) {
    broken.before_commit = c.error;
    Batch batch;
    batch.put("k", "2");
    const std::string bytes = pattern(100'000, 1);
    batch.write(whole("d", 1, bytes));
    const auto failed = commit(*store, batch);
    REQUIRE_FALSE(failed);
    CHECK(failed.error().code == c.code);
    CHECK_FALSE(store->closed());
    CHECK(**snapshot(*store).get("k") == "1");
    CHECK_FALSE(snapshot(*store).document("d")->exists());
    broken.before_commit = 0;
    REQUIRE(put(*store, "k", "1"));
  }
  REQUIRE(write(*store, whole("d", 1, "x")));
}

TEST_CASE("a failed commit closes the store, and the next opening settles what became of it") {
  for (const Faults::Commit outcome : {Faults::Commit::lost, Faults::Commit::stored}) {
    Scratch scratch;
    Broken broken;
    auto store = open_store(scratch / "s", broken.options());
    REQUIRE(put(*store, "k", "1"));
    Reader reader(*store);
    std::optional<Snapshot> before = *reader.snapshot();
    broken.commit = outcome;
    const auto failed = put(*store, "k", "2");
    REQUIRE_FALSE(failed);
    CHECK(failed.error().code == Errc::durability_unknown);
    CHECK(store->closed());
    broken.commit = Faults::Commit::none;
    CHECK(put(*store, "k", "3").error().code == Errc::stopped);
    CHECK(reader.snapshot().error().code == Errc::stopped);
    CHECK(**before->get("k") == "1");   // what was lent stays good
    // All must be back before the store may go.
    before.reset();
    reader.rest();
    const std::string path = store->path();
    store.reset();
    store = open_store(path);
    CHECK(**snapshot(*store).get("k") == (outcome == Faults::Commit::lost ? "1" : "2"));
    REQUIRE(put(*store, "k", "4"));
  }
}

TEST_CASE("a store whose file was deleted takes no commit: nobody could ever read it") {
  Scratch scratch;
  auto store = open_store(scratch / "s");
  REQUIRE(put(*store, "k", "1"));
  std::filesystem::remove_all(scratch / "s");
  CHECK(put(*store, "k", "2").error().code == Errc::stopped);
  CHECK(store->closed());
}

TEST_CASE("a disk that fails while the file grows is storage, not full") {
  Scratch scratch;
  Broken broken;
  auto store = open_store(scratch / "s", broken.options());
  broken.grow = EIO;
  const auto failed = write(*store, whole("d", 1, pattern(8 << 20, 1)));
  REQUIRE_FALSE(failed);
  CHECK(failed.error().code == Errc::storage);
  broken.grow = 0;
  REQUIRE(write(*store, whole("d", 1, pattern(8 << 20, 1))));
}

TEST_CASE("a commit beyond one transaction is refused whole") {
  Scratch scratch;
  auto store = open_store(scratch / "s");
  const std::string bytes = pattern(16 << 20, 1);
  Batch batch;
  for (std::uint64_t i = 0; i < 40; ++i) batch.write(whole("d" + std::to_string(i), 1, bytes));
  const auto failed = commit(*store, batch);
  REQUIRE_FALSE(failed);
  CHECK(failed.error().code == Errc::storage);
  CHECK(put(*store, "k", "1"));
}

TEST_CASE("a store that goes while a loan is out ends the process rather than serve freed memory") {
  Scratch scratch;
  const std::string path = scratch / "s";
  Child child([&](int) {
    close(2);
    auto store = Store::open(path, small_map());
    if (!store) return 1;
    Reader reader(**store);
    const Loan loan = reader.snapshot()->loan();
    store->reset();
    return 0;
  });
  const int status = child.wait();
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGABRT);
}

TEST_CASE("readers on other threads see whole commits, never older than the one they know of") {
  Scratch scratch;
  auto store = open_store(scratch / "s");
  constexpr std::uint64_t kCommits = 300;
  std::atomic<std::uint64_t> acked{0};
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> wrong{0}, reads{0};
  REQUIRE(put(*store, "n", "0"));
  REQUIRE(write(*store, whole("d", 1, pattern(20'000, 0))));
  std::vector<std::thread> readers;
  for (int t = 0; t < 3; ++t) {
    readers.emplace_back([&] {
      Reader reader(*store);
      std::vector<Loan> held;
      do {
        const std::uint64_t known = acked.load();
        auto s = reader.snapshot();
        if (!s) {
          ++wrong;
          continue;
        }
        const std::uint64_t n = std::stoull(std::string(**s->get("n")));
        const auto d = s->document("d");
        if (n < known || !d || d->revision != n + 1 || !s->verify(*d) || content(*d) != pattern(20'000, n)) ++wrong;
        held.push_back(s->loan());
        if (held.size() > 5) held.erase(held.begin());
        ++reads;
      } while (!stop.load());
    });
  }
  for (std::uint64_t i = 1; i <= kCommits; ++i) {
    Batch batch;
    const std::string bytes = pattern(20'000, i);
    batch.put("n", std::to_string(i));
    batch.write(whole("d", i + 1, bytes));
    const bool ok = static_cast<bool>(commit(*store, batch));
    if (!ok) ++wrong;
    acked.store(i);
  }
  stop.store(true);
  for (std::thread& t : readers) t.join();
  CHECK(wrong.load() == 0);
  CHECK(reads.load() >= 3);
  CHECK(store->counters().generations_alive == 0);
}

TEST_CASE("what LMDB reports is full, damaged or storage") {
  for (const int rc : {ENOSPC, EDQUOT, MDB_MAP_FULL}) CHECK(lmdb_error(rc, "x").code == Errc::full);
  for (const int rc : {MDB_CORRUPTED, MDB_PAGE_NOTFOUND, MDB_CURSOR_FULL, MDB_PAGE_FULL})
    CHECK(lmdb_error(rc, "x").code == Errc::damaged);
  for (const int rc : {EIO, EINVAL, ENOMEM, MDB_PANIC, MDB_BAD_TXN, MDB_READERS_FULL, MDB_TXN_FULL})
    CHECK(lmdb_error(rc, "x").code == Errc::storage);
  CHECK(lmdb_error(EIO, "what").detail == EIO);
  CHECK(std::string_view(lmdb_error(EIO, "what").what) == "what");
}

TEST_CASE("when every reader's place is taken a read is refused, and works again when one is back") {
  Scratch scratch;
  auto store = open_store(scratch / "s");
  std::vector<Loan> held;
  std::optional<Error> refused;
  for (std::uint64_t i = 0; i < 2000 && !refused; ++i) {
    REQUIRE(put(*store, "k", std::to_string(i)));
    Reader reader(*store);   // a new one takes a place of its own for each commit
    auto s = reader.snapshot();
    if (s) held.push_back(s->loan());
    else refused = s.error();
  }
  REQUIRE(refused);
  CHECK(refused->code == Errc::storage);
  CHECK(held.size() > 1000);
  CHECK(put(*store, "k", "still"));
  held.pop_back();
  CHECK(**snapshot(*store).get("k") == "still");
}
