#include "vm/base/read_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace sluice {
namespace {

std::string size_text(std::size_t bytes) {
  constexpr std::size_t kMiB = std::size_t{1} << 20;
  return bytes % kMiB == 0 ? std::to_string(bytes / kMiB) + " MiB" : std::to_string(bytes) + " bytes";
}

std::string read_open(int fd, std::size_t most, std::string& bytes) {
  struct stat s{};
  if (fstat(fd, &s) != 0) return std::strerror(errno);
  if (S_ISDIR(s.st_mode)) return std::strerror(EISDIR);
  if (!S_ISREG(s.st_mode)) return "not a regular file";
  char block[65536];
  for (;;) {
    const ssize_t n = read(fd, block, sizeof block);
    if (n == 0) return {};
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return std::strerror(errno);
    bytes.append(block, static_cast<std::size_t>(n));
    if (bytes.size() > most) return "larger than " + size_text(most) + "; is this the right file?";
  }
}

}  // namespace

Result<std::string, std::string> read_file(const std::string& path, std::size_t most) {
  using Read = Result<std::string, std::string>;
  if (path.find('\0') != path.npos) return Read::failure(std::string(path.c_str()) + ": a path has no NUL byte");
  // Without O_NONBLOCK the open itself would wait for a pipe's other end.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return Read::failure(path + ": " + std::strerror(errno));
  std::string bytes;
  const std::string why = read_open(fd, most, bytes);
  close(fd);
  if (!why.empty()) return Read::failure(path + ": " + why);
  return Read(std::move(bytes));
}

}  // namespace sluice
