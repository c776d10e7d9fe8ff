// Whole files, and what is not one.
#include "vm/base/read_file.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

using namespace sluice;

namespace {

struct Folder {
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "sluice-read-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path = name + "/";
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  std::string path;
};

}  // namespace

TEST_CASE("a file is read whole, up to the size that was allowed") {
  const Folder folder;
  const std::string path = folder.path + "f", bytes(200'000, '\0');
  std::ofstream(path) << bytes;
  const auto whole = read_file(path, 200'000);
  REQUIRE(whole);
  CHECK(*whole == bytes);
  CHECK(read_file(path, 199'999).error() == path + ": larger than 199999 bytes; is this the right file?");
  std::ofstream(path, std::ios::trunc).close();
  CHECK(read_file(path, 0)->empty());
}

TEST_CASE("what is not a regular file is refused at once, with its name") {
  const Folder folder;
  CHECK(read_file(folder.path + "none", 10).error() == folder.path + "none: No such file or directory");
  CHECK(read_file(folder.path, 10).error() == folder.path + ": Is a directory");
  const std::string pipe = folder.path + "pipe";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(read_file(pipe, 10).error() == pipe + ": not a regular file");
  CHECK(read_file("/dev/zero", 10).error() == "/dev/zero: not a regular file");
  CHECK(read_file(std::string("a\0b", 3), 10).error() == "a: a path has no NUL byte");
}
