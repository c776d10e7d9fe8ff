#include <fcntl.h>
#include <sys/stat.h>

#include <fstream>

#include "child.h"
#include "scratch.h"
#include "store/superblock.h"

using namespace sluice;
using namespace sluice::store;

namespace {
mode_t mode(const std::string& path) {
  struct stat s{};
  REQUIRE(stat(path.c_str(), &s) == 0);
  return s.st_mode & 0777;
}

std::string refusal(const std::string& path, const Options& options = small_map()) {
  auto store = Store::open(path, options);
  REQUIRE_FALSE(store);
  return store.error();
}

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }
}  // namespace

TEST_CASE("a new store is a folder of its user alone, and nothing is left beside it") {
  Scratch scratch;
  const std::string path = scratch / "s";
  auto store = open_store(path + "/");
  CHECK(mode(path) == 0700);
  for (const char* name : {"/data.mdb", "/lock.mdb", "/superblock", "/owner"}) CHECK(mode(path + name) == 0600);
  CHECK_FALSE(std::filesystem::exists(path + ".tmp"));
  CHECK(std::filesystem::file_size(path + "/data.mdb") == 4u << 20);
  std::ifstream owner(path + "/owner");
  std::string line;
  std::getline(owner, line);
  CHECK(line == "pid " + std::to_string(getpid()));
}

TEST_CASE("an empty folder becomes a store, a folder of other things does not") {
  Scratch scratch;
  std::filesystem::create_directory(scratch / "empty");
  open_store(scratch / "empty");
  std::filesystem::create_directory(scratch / "photos");
  std::ofstream(scratch / "photos/1.jpg") << "x";
  CHECK(has(refusal(scratch / "photos"), "holds other files and no store"));
  CHECK(std::filesystem::exists(scratch / "photos/1.jpg"));
  std::ofstream(scratch / "file") << "x";
  CHECK(has(refusal(scratch / "file"), "is a file"));
  CHECK(has(refusal(""), "is no name"));
}

TEST_CASE("the folders above a new store are made, with the rights of ordinary ones") {
  Scratch scratch;
  const mode_t before = umask(022);
  open_store(scratch / "data//shop/carts/");
  umask(before);
  CHECK(mode(scratch / "data") == 0755);
  CHECK(mode(scratch / "data/shop") == 0755);
  CHECK(mode(scratch / "data/shop/carts") == 0700);
  CHECK_FALSE(std::filesystem::exists(scratch / "data/shop/carts.tmp"));
  open_store(scratch / "data/shop/stock");
  // A file in the way, by itself or further up.
  std::ofstream(scratch / "file") << "x";
  CHECK(has(refusal(scratch / "file/s"), "Not a directory"));
  CHECK(has(refusal(scratch / "file/above/s"), "Not a directory"));
  // Nothing is made above what is refused for itself.
  std::filesystem::create_directory(scratch / "photos");
  std::ofstream(scratch / "photos/1.jpg") << "x";
  CHECK(has(refusal(scratch / "photos/1.jpg"), "is a file"));
}

TEST_CASE("what a crash left of a creation is begun anew") {
  Scratch scratch;
  std::filesystem::create_directory(scratch / "s.tmp");
  std::ofstream(scratch / "s.tmp/data.mdb") << "half a head";
  std::ofstream(scratch / "s.tmp/owner") << "pid 1\n";
  auto store = open_store(scratch / "s");
  CHECK_FALSE(std::filesystem::exists(scratch / "s.tmp"));
  CHECK(write(*store, whole("d", 1, "x")));
}

TEST_CASE("a store opens once in a process") {
  Scratch scratch;
  auto store = open_store(scratch / "s");
  CHECK(has(refusal(scratch / "s"), "is open in this process already"));
  std::filesystem::create_symlink(scratch / "s", scratch / "other_name");
  CHECK(has(refusal(scratch / "other_name"), "is open in this process already"));
  CHECK(write(*store, whole("d", 1, "x")));
  store.reset();
  open_store(scratch / "s");
}

TEST_CASE("a second process is refused and told whose store it is") {
  Scratch scratch;
  const std::string path = scratch / "s";
  Child holder([&](int out) {
    auto store = Store::open(path, small_map());
    if (!store || ::write(out, "r", 1) != 1) return 1;
    for (;;) pause();
  });
  char ready = 0;
  REQUIRE(read(holder.out(), &ready, 1) == 1);
  CHECK(has(refusal(path), "in use by pid " + std::to_string(holder.pid())));
  holder.end();
  holder.wait();
  open_store(path);
}

TEST_CASE("no descriptor of a store is inherited by a program that is started") {
  Scratch scratch;
  auto store = open_store(scratch / "s");
  int seen = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string target = std::filesystem::read_symlink(entry, gone).string();
    if (gone || !has(target, scratch / "s")) continue;
    ++seen;
    CHECK((fcntl(std::stoi(entry.path().filename()), F_GETFD) & FD_CLOEXEC) != 0);
  }
  CHECK(seen >= 4);
}

TEST_CASE("a store of a newer format, or of other pages, is refused by name") {
  Scratch scratch;
  const std::string path = scratch / "s";
  open_store(path);
  const int fd = ::open((path + "/superblock").c_str(), O_RDWR | O_CLOEXEC);
  REQUIRE(fd >= 0);
  auto superblock = read_superblock(fd);
  REQUIRE(superblock);
  Superblock changed = *superblock;
  changed.format = kFormat + 1;
  REQUIRE(write_superblock(fd, changed));
  CHECK(read_superblock(fd).error().code == Errc::future);
  CHECK(has(refusal(path), "written by a newer Sluice"));
  changed.format = kFormat;
  changed.page_bytes = 16384;
  REQUIRE(write_superblock(fd, changed));
  CHECK(has(refusal(path), "pages of 16384 bytes"));
  changed.page_bytes = 4096;
  changed.identity[0] = static_cast<char>(changed.identity[0] ^ 1);
  REQUIRE(write_superblock(fd, changed));
  CHECK(has(refusal(path), "is not this store's"));
  changed.identity = superblock->identity;
  REQUIRE(write_superblock(fd, changed));
  open_store(path);
  close(fd);
}

TEST_CASE("one torn copy of the superblock does no harm, two are told") {
  Scratch scratch;
  const std::string path = scratch / "s";
  open_store(path);
  const int fd = ::open((path + "/superblock").c_str(), O_RDWR | O_CLOEXEC);
  REQUIRE(fd >= 0);
  auto good = read_superblock(fd);
  REQUIRE(good);
  Superblock next = *good;
  REQUIRE(write_superblock(fd, next));
  REQUIRE(next.version == good->version + 1);
  REQUIRE(pwrite(fd, "torn", 4, (next.version & 1) ? 4096 + 20 : 20) == 4);
  CHECK(read_superblock(fd)->version == good->version);
  open_store(path);
  REQUIRE(pwrite(fd, "torn", 4, (next.version & 1) ? 20 : 4096 + 20) == 4);
  CHECK(read_superblock(fd).error().code == Errc::damaged);
  CHECK(has(refusal(path), "superblock is damaged"));
  close(fd);
  CHECK(read_superblock(-1).error().code == Errc::io);
}

TEST_CASE("a disk that cannot be synced at the opening is not served from") {
  Scratch scratch;
  open_store(scratch / "s");
  Options options = small_map();
  options.faults.open_sync = [](void*) { return EIO; };
  CHECK(has(refusal(scratch / "s", options), "cannot be synced"));
  open_store(scratch / "s");
}

TEST_CASE("a map with no address space, or too small for the file, is a sentence") {
  Scratch scratch;
  {
    auto store = open_store(scratch / "s");
    REQUIRE(write(*store, whole("d", 1, pattern(8 << 20, 1))));
  }
  Options options = small_map();
  options.map_bytes = 1 << 20;
  CHECK(has(refusal(scratch / "s", options), "raise the map size"));
  options.map_bytes = std::uint64_t{1} << 60;
  CHECK(has(refusal(scratch / "s", options), "no address space"));
  options = small_map();
  options.quota_bytes = 1 << 20;
  CHECK(has(refusal(scratch / "new", options), "is below the least"));
}
