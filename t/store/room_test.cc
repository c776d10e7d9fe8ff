// A full disk or quota refuses a commit before it begins; what was stored stays, and room that is made is found.
#include <sys/mount.h>
#include <sys/statvfs.h>

#include <fstream>

#include "scratch.h"

using namespace sluice;
using namespace sluice::store;

namespace {

DocumentWrite gone(std::string key, std::uint64_t revision) {
  DocumentWrite d;
  d.key = std::move(key);
  d.revision = revision;
  d.deleted = true;
  return d;
}

// Writes documents until one is refused; how many fitted.
std::uint64_t fill_up(Store& store, std::size_t bytes, Errc& why) {
  for (std::uint64_t i = 0; i < 10'000; ++i) {
    const auto written = write(store, whole("f" + std::to_string(i), 1, pattern(bytes, i)));
    if (written) continue;
    why = written.error().code;
    return i;
  }
  return 10'000;
}

// Full, then room by deletes, then success, over and over; everything that was stored is there.
void fill_and_free(const std::string& path, const Options& options) {
  std::uint64_t fitted = 0;
  {
    auto store = open_store(path, options);
    Errc why = Errc::none;
    fitted = fill_up(*store, 200'000, why);
    CHECK(why == Errc::full);
    REQUIRE(fitted > 5);
    CHECK_FALSE(store->closed());
    for (std::uint64_t round = 0; round < 20; ++round) {
      CAPTURE(round);
      // Still full, and nothing of the refused commit is there.
      const auto refused = write(*store, whole("more", 1, pattern(2'000'000, 1)));
      REQUIRE_FALSE(refused);
      CHECK(refused.error().code == Errc::full);
      CHECK_FALSE(snapshot(*store).document("more")->exists());
      for (std::uint64_t i = 0; i < 5; ++i)
        REQUIRE(write(*store, gone("f" + std::to_string(i), 2 * round + 2)));
      for (std::uint64_t i = 0; i < 5; ++i)
        REQUIRE(write(*store, whole("f" + std::to_string(i), 2 * round + 3, pattern(200'000, i))));
    }
  }
  auto store = open_store(path, options);
  const Snapshot s = snapshot(*store);
  for (std::uint64_t i = 0; i < fitted; ++i) {
    CAPTURE(i);
    const auto d = s.document("f" + std::to_string(i));
    REQUIRE(d);
    CHECK(d->revision == (i < 5 ? 41 : 1));
    CHECK((content(*d) == pattern(200'000, i)));
    CHECK(s.verify(*d));
  }
}

}  // namespace

TEST_CASE("a store's file grows by steps that suit its size") {
  Scratch scratch;
  auto store = open_store(scratch / "s");
  const auto file = [&] { return std::filesystem::file_size(scratch / "s/data.mdb"); };
  CHECK(file() == 4u << 20);
  REQUIRE(write(*store, whole("a", 1, pattern(5 << 20, 1))));
  CHECK(file() == 16u << 20);
  REQUIRE(write(*store, whole("b", 1, pattern(12 << 20, 1))));
  CHECK(file() == 64u << 20);
  CHECK(store->counters().file_bytes == file());
}

TEST_CASE("a quota refuses what goes beyond it, and what deletes free is used again") {
  Scratch scratch;
  Options options = small_map();
  options.quota_bytes = 6 << 20;
  fill_and_free(scratch / "s", options);
  CHECK(std::filesystem::file_size(scratch / "s/data.mdb") <= options.quota_bytes);
}

TEST_CASE("a disk that runs full refuses growth, which gives back what it had gained") {
  Scratch scratch;
  struct Disk {
    std::uint64_t limit = std::uint64_t{7} << 20;
    static int grow(void* disk, std::uint64_t at) { return at >= static_cast<Disk*>(disk)->limit ? ENOSPC : 0; }
  } disk;
  Options options = small_map();
  options.faults.context = &disk;
  options.faults.grow = &Disk::grow;
  fill_and_free(scratch / "s", options);
  CHECK(std::filesystem::file_size(scratch / "s/data.mdb") <= disk.limit + (1 << 20));
  // Room on the disk is found without opening anew.
  auto store = open_store(scratch / "s", options);
  REQUIRE_FALSE(write(*store, whole("more", 1, pattern(4 << 20, 1))));
  disk.limit = std::uint64_t{1} << 40;
  REQUIRE(write(*store, whole("more", 1, pattern(4 << 20, 1))));
}

TEST_CASE("keyed bytes meet the quota as documents do, and erasing them works when full") {
  Scratch scratch;
  Options options = small_map();
  options.quota_bytes = 4 << 20;
  auto store = open_store(scratch / "s", options);
  std::uint64_t n = 0;
  for (;; ++n) {
    Batch batch;
    for (int i = 0; i < 20; ++i) batch.put("k" + std::to_string(n) + "." + std::to_string(i), pattern(500, n));
    const auto done = commit(*store, batch);
    if (done) continue;
    CHECK(done.error().code == Errc::full);
    break;
  }
  REQUIRE(n > 10);
  for (std::uint64_t j = 0; j < n; ++j) {
    Batch batch;
    for (int i = 0; i < 20; ++i) batch.erase("k" + std::to_string(j) + "." + std::to_string(i));
    REQUIRE(commit(*store, batch));
  }
  Batch batch;
  for (int i = 0; i < 20; ++i) batch.put("again" + std::to_string(i), pattern(500, 1));
  CHECK(commit(*store, batch));
}

TEST_CASE("a reader that holds an old commit keeps its pages, and their room comes back with it") {
  Scratch scratch;
  Options options = small_map();
  options.quota_bytes = 8 << 20;
  auto store = open_store(scratch / "s", options);
  REQUIRE(write(*store, whole("d", 1, pattern(2 << 20, 1))));
  Reader reader(*store);
  Loan loan = reader.snapshot()->loan();
  reader.rest();
  std::uint64_t revision = 2;
  Errc why = Errc::none;
  for (; revision < 20; ++revision) {
    const auto done = write(*store, whole("d", revision, pattern(2 << 20, revision)));
    if (done) continue;
    why = done.error().code;
    break;
  }
  CHECK(why == Errc::full);
  loan.reset();
  CHECK(write(*store, whole("d", revision, pattern(2 << 20, revision))));
}

TEST_CASE("a real small file system that runs full loses nothing") {
  Scratch scratch;
  const std::string mount_point = scratch / "disk";
  std::filesystem::create_directory(mount_point);
  const bool mounted = mount("tmpfs", mount_point.c_str(), "tmpfs", 0, "size=8m") == 0;
  if (!mounted) {
    MESSAGE("no mount here: the same by quota");
    Options options = small_map();
    options.quota_bytes = 8 << 20;
    fill_and_free(mount_point + "/s", options);
    return;
  }
  fill_and_free(mount_point + "/s", small_map());
  // Not even a new store fits now; that is a sentence too, and nothing stays of it.
  struct statvfs s{};
  REQUIRE(statvfs(mount_point.c_str(), &s) == 0);
  std::ofstream(mount_point + "/ballast") << std::string(s.f_bavail * s.f_bsize, 'x');
  auto none = Store::open(mount_point + "/t", small_map());
  REQUIRE_FALSE(none);
  CHECK(none.error().find("No space left") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(mount_point + "/t"));
  std::filesystem::remove(mount_point + "/ballast");
  std::filesystem::remove_all(mount_point + "/s");
  open_store(mount_point + "/t");
  CHECK(umount2(mount_point.c_str(), MNT_DETACH) == 0);
}
