// The file `superblock`, little endian: one copy at 0, one at 4096, each
//
//    0  8 bytes  "SLUICE\r\n"
//    8  u32      format: 1
//   12  u32      page size of data.mdb
//   16  u64      filled bytes
//   24  u64      version; odd ones are at 4096
//   32  16 bytes identity, also the value of each database's own key
//   48  u64      xxh64 of the 48 bytes before
#include "store/superblock.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "store/bytes.h"
#include "vm/base/hash.h"

namespace sluice::store {

namespace {
constexpr std::string_view kMagic = "SLUICE\r\n";
constexpr std::size_t kCopyBytes = 56;
constexpr off_t kCopyAt[2] = {0, 4096};

std::optional<Superblock> decode(std::string_view copy) {
  if (copy.substr(0, 8) != kMagic || read_at<std::uint64_t>(copy.data() + 48) != xxh64(copy.substr(0, 48)))
    return std::nullopt;
  Superblock s;
  s.format = read_at<std::uint32_t>(copy.data() + 8);
  s.page_bytes = read_at<std::uint32_t>(copy.data() + 12);
  s.filled_bytes = read_at<std::uint64_t>(copy.data() + 16);
  s.version = read_at<std::uint64_t>(copy.data() + 24);
  std::copy_n(copy.data() + 32, kIdentityBytes, s.identity.data());
  return s;
}
}  // namespace

Result<Superblock> read_superblock(int fd) {
  std::optional<Superblock> best;
  for (off_t at : kCopyAt) {
    char copy[kCopyBytes];
    const ssize_t n = pread(fd, copy, sizeof copy, at);
    if (n < 0) return fail(Errc::io, "superblock cannot be read", errno);
    if (n != static_cast<ssize_t>(sizeof copy)) continue;
    const std::optional<Superblock> s = decode({copy, sizeof copy});
    if (s && (!best || s->version > best->version)) best = s;
  }
  if (!best) return fail(Errc::damaged, "superblock is damaged in both copies");
  if (best->format > kFormat) return fail(Errc::future, "written by a newer Sluice", static_cast<int>(best->format));
  return *best;
}

Result<void> write_superblock(int fd, Superblock& superblock) {
  const std::uint64_t version = superblock.version + 1;
  char copy[kCopyBytes];
  std::copy_n(kMagic.data(), kMagic.size(), copy);
  write_at<std::uint32_t>(copy + 8, superblock.format);
  write_at<std::uint32_t>(copy + 12, superblock.page_bytes);
  write_at<std::uint64_t>(copy + 16, superblock.filled_bytes);
  write_at<std::uint64_t>(copy + 24, version);
  std::copy_n(superblock.identity.data(), kIdentityBytes, copy + 32);
  write_at<std::uint64_t>(copy + 48, xxh64({copy, 48}));
  const ssize_t n = pwrite(fd, copy, sizeof copy, kCopyAt[version & 1]);
  if (n != static_cast<ssize_t>(sizeof copy)) {
    const int error = n < 0 ? errno : ENOSPC;
    return fail(error == ENOSPC || error == EDQUOT ? Errc::full : Errc::storage, "superblock cannot be written", error);
  }
  if (fdatasync(fd) != 0) return fail(Errc::storage, "superblock cannot be synced", errno);
  superblock.version = version;
  return {};
}

}  // namespace sluice::store
