// T6: a file that is not as it was written is refused with a sentence or served as it was; never a signal.
#include <fcntl.h>
#include <sys/stat.h>

#include <random>

#include "child.h"
#include "scratch.h"
#include "store/precheck.h"

using namespace sluice;
using namespace sluice::store;

namespace {

constexpr std::uint64_t kKeys = 1200;

void fill(const std::string& path) {
  auto store = open_store(path);
  for (std::uint64_t round = 0; round < 3; ++round) {
    Batch batch;
    for (std::uint64_t i = 0; i < kKeys; ++i)
      batch.put("key" + std::to_string(i), pattern(20 + i % 50, i));
    const std::string large = pattern(100'000, 1), small = pattern(50, 2);
    batch.write(whole("large", round + 1, large));
    batch.write(whole("small", round + 1, small));
    REQUIRE(commit(*store, batch));
  }
  REQUIRE(write(*store, whole("small", 4, pattern(50, 2))));
}

enum Outcome { served = 10, refused, wrong, told };

// Opens, reads all, writes a little and reads again.
int use(const std::string& path) {
  auto store = Store::open(path, small_map());
  if (!store) return store.error().starts_with("store " + path + ": ") ? refused : wrong;
  for (int round = 0; round < 2; ++round) {
    Reader reader(**store);
    auto s = reader.snapshot();
    if (!s) return wrong;
    for (std::uint64_t i = 0; i < kKeys; ++i) {
      const auto value = s->get("key" + std::to_string(i));
      if (!value) return told;
      if (!*value || **value != pattern(20 + i % 50, i)) return wrong;
    }
    const auto large = s->document("large"), small = s->document("small");
    if (!large || !small || !s->verify(*large)) return told;
    if (content(*large) != pattern(100'000, 1) || content(*small) != pattern(50, 2)) return wrong;
    if (small->revision != 4 + static_cast<std::uint64_t>(round) || large->revision != 3) return wrong;
    Batch batch;
    const std::string bytes = pattern(50, 2);
    batch.write(whole("small", 5, bytes));
    const Batch* one[] = {&batch};
    if (round == 0 && !(*store)->commit(one)) return told;
  }
  return served;
}

// In a process of its own, so that a signal is seen as one.
int outcome(const std::string& path) {
  Child child([&](int) { return use(path); });
  const int status = child.wait();
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

struct Sample {
  Sample() { fill(path); }
  // A fresh copy of the store as it was filled.
  std::string copy() {
    std::error_code error;
    std::filesystem::remove_all(scratch / "copy", error);
    std::filesystem::copy(path, scratch / "copy");
    return scratch / "copy";
  }
  Scratch scratch;
  std::string path = scratch / "s";
};

void flip(const std::string& path, std::uint64_t byte, int bit) {
  const int fd = open((path + "/data.mdb").c_str(), O_RDWR | O_CLOEXEC);
  REQUIRE(fd >= 0);
  char c = 0;
  REQUIRE(pread(fd, &c, 1, static_cast<off_t>(byte)) == 1);
  c = static_cast<char>(c ^ (1 << bit));
  REQUIRE(pwrite(fd, &c, 1, static_cast<off_t>(byte)) == 1);
  close(fd);
}

// All pages that one use can have written. A copy of the whole file would cost the test half a minute.
void restore_heads(const std::string& from, const std::string& to) {
  std::string bytes(std::size_t{3} << 19, '\0');
  const int in = open((from + "/data.mdb").c_str(), O_RDONLY | O_CLOEXEC);
  const int out = open((to + "/data.mdb").c_str(), O_WRONLY | O_CLOEXEC);
  REQUIRE(pread(in, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
  REQUIRE(pwrite(out, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
  close(in);
  close(out);
}

bool fine(int result) { return result == served || result == refused || result == told; }

}  // namespace

TEST_CASE("the sample is served as it was filled") {
  Sample sample;
  CHECK(outcome(sample.copy()) == served);
}

TEST_CASE("a file that was cut at any page is refused") {
  Sample sample;
  const std::string path = sample.copy();
  const std::uint64_t size = std::filesystem::file_size(path + "/data.mdb");
  for (std::uint64_t pages = size / 4096; pages-- > 0;) {
    if (pages > 64 && pages % 37 != 0) continue;
    CAPTURE(pages);
    REQUIRE(truncate((path + "/data.mdb").c_str(), static_cast<off_t>(pages * 4096)) == 0);
    auto store = Store::open(path, small_map());
    REQUIRE_FALSE(store);
    CHECK(store.error().find("is damaged") != std::string::npos);
  }
}

TEST_CASE("a missing or empty data file is refused") {
  Sample sample;
  std::string path = sample.copy();
  std::filesystem::remove(path + "/data.mdb");
  CHECK(outcome(path) == refused);
  path = sample.copy();
  std::filesystem::remove(path + "/superblock");
  CHECK(outcome(path) == refused);
  path = sample.copy();
  std::filesystem::remove(path + "/lock.mdb");
  std::filesystem::remove(path + "/owner");
  CHECK(outcome(path) == served);
}

TEST_CASE("a flipped bit in either head is refused or does no harm") {
  Sample sample;
  const std::string path = sample.copy();
  const int fd = open((path + "/data.mdb").c_str(), O_RDWR | O_CLOEXEC);
  const int copies = open((path + "/superblock").c_str(), O_RDONLY | O_CLOEXEC);
  REQUIRE(fd >= 0);
  const auto superblock = read_superblock(copies);
  REQUIRE(superblock);
  int refusals = 0, used = 0;
  for (std::uint64_t meta = 0; meta < 2; ++meta) {
    for (std::uint64_t byte = 0; byte < 160; ++byte) {
      for (int bit = 0; bit < 8; ++bit) {
        CAPTURE(meta);
        CAPTURE(byte);
        CAPTURE(bit);
        flip(path, meta * 4096 + byte, bit);
        if (!check_file(fd, *superblock, small_map().map_bytes)) {
          ++refusals;
          flip(path, meta * 4096 + byte, bit);
        } else if (bit != static_cast<int>(byte % 8)) {
          flip(path, meta * 4096 + byte, bit);
        } else {
          // What the check lets through is used in earnest: one bit of each byte, since each costs two openings.
          ++used;
          REQUIRE(outcome(path) == served);
          restore_heads(sample.path, path);
        }
      }
    }
  }
  close(fd);
  close(copies);
  CHECK(refusals > 900);
  CHECK(used > 20);
}

TEST_CASE("flipped bits anywhere in used pages never end in a signal") {
  Sample sample;
  const std::uint64_t seed = static_cast<std::uint64_t>(time(nullptr));
  std::mt19937_64 random(seed);
  CAPTURE(seed);
  for (int round = 0; round < 30; ++round) {
    const std::string path = sample.copy();
    // Page heads and node tables half of the time: that is where a wrong number hurts.
    const std::uint64_t page = 2 + random() % 120, byte = random() % 2 ? random() % 64 : random() % 4096;
    const int bit = static_cast<int>(random() % 8);
    flip(path, page * 4096 + byte, bit);
    const int result = outcome(path);
    CAPTURE(page);
    CAPTURE(byte);
    CAPTURE(bit);
    // A value in `data` has no checksum of its own, so it may come back changed: `wrong`, but no signal.
    CHECK((fine(result) || result == wrong));
  }
}

TEST_CASE("a damaged document is told, and can be replaced") {
  Sample sample;
  const std::string path = sample.copy();
  // Finds the payloads by their bytes.
  const std::string large = pattern(100'000, 1).substr(5000, 100), small = pattern(50, 2);
  std::string file(std::filesystem::file_size(path + "/data.mdb"), '\0');
  const int fd = open((path + "/data.mdb").c_str(), O_RDWR | O_CLOEXEC);
  REQUIRE(fd >= 0);
  REQUIRE(pread(fd, file.data(), file.size(), 0) == static_cast<ssize_t>(file.size()));
  for (const std::string& part : {large, small})
    for (std::size_t at = file.find(part); at != std::string::npos; at = file.find(part, at + 1))
      REQUIRE(pwrite(fd, "x", 1, static_cast<off_t>(at + 7)) == 1);
  close(fd);
  auto store = open_store(path);
  {
    const Snapshot s = snapshot(*store);
    CHECK(s.document("small").error().code == Errc::damaged);
    const auto d = s.document("large");
    REQUIRE(d);   // its bytes are not touched on the way to a socket
    CHECK(s.verify(*d).error().code == Errc::damaged);
  }
  DocumentWrite keeps;
  keeps.key = "large";
  keeps.revision = 4;
  keeps.pieces = {kept(0, 5050), {"more"}};
  CHECK(write(*store, keeps).error().code == Errc::storage);
  REQUIRE(write(*store, whole("large", 4, "new")));
  REQUIRE(write(*store, whole("small", 5, "new")));
  CHECK(content(*snapshot(*store).document("large")) == "new");
  CHECK(content(*snapshot(*store).document("small")) == "new");
}
