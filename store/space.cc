#include "store/space.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>

namespace sluice::store {

namespace {
constexpr std::uint64_t kWriteBytes = std::uint64_t{1} << 20;

std::uint64_t up_to(std::uint64_t bytes, std::uint64_t unit) { return (bytes + unit - 1) / unit * unit; }
}  // namespace

bool Space::deleted() const {
  struct stat s{};
  return fstat(data_.fd(), &s) == 0 && s.st_nlink == 0;
}

Result<void> Space::reach(std::uint64_t bytes) {
  if (bytes <= known_.filled_bytes) return {};
  if (bytes > options_.map_bytes || (options_.quota_bytes != 0 && bytes > options_.quota_bytes))
    return fail(Errc::full, "the store's quota is used up");
  // 4, 16, 64 MiB, then grow_bytes at a time: small stores stay small, large ones seldom stop to grow.
  const std::uint64_t step = std::min(options_.grow_bytes, 3 * known_.filled_bytes);
  std::uint64_t wish = up_to(std::max(bytes, known_.filled_bytes + step), kWriteBytes);
  wish = std::min(wish, options_.map_bytes);
  if (options_.quota_bytes != 0) wish = std::min(wish, options_.quota_bytes);
  Result<void> done = fill(wish);
  if (!done && done.error().code == Errc::full && wish > bytes) done = fill(bytes);
  return done;
}

Result<void> Space::fill(std::uint64_t to) {
  struct stat s{};
  if (fstat(data_.fd(), &s) != 0) return fail(Errc::storage, "data.mdb cannot be looked at", errno);
  const auto size = static_cast<std::uint64_t>(s.st_size);
  // Only what lies beyond the file's end is zeroed: should LMDB ever have gone past our mark, its pages stay.
  const auto zeros = std::make_unique<char[]>(kWriteBytes);
  int error = 0;
  for (std::uint64_t at = size; at < to && error == 0;) {
    const std::uint64_t want = std::min(kWriteBytes - at % kWriteBytes, to - at);
    if (options_.faults.grow && (error = options_.faults.grow(options_.faults.context, at)) != 0) break;
    const ssize_t n = pwrite(data_.fd(), zeros.get(), want, static_cast<off_t>(at));
    if (n < 0)
      error = errno == EINTR ? 0 : errno;
    else
      at += static_cast<std::uint64_t>(n);
  }
  if (error == 0 && fdatasync(data_.fd()) != 0) error = errno;
  if (error == 0) {
    Superblock grown = known_;
    grown.filled_bytes = std::max(to, size);
    Result<void> written = write_superblock(superblock_.fd(), grown);
    if (written) {
      known_ = grown;
      return {};
    }
    error = written.error().detail;
  }
  // What was gained of a full disk goes back to it.
  if (ftruncate(data_.fd(), static_cast<off_t>(size)) != 0) return fail(Errc::storage, "data.mdb cannot shrink", errno);
  const bool full = error == ENOSPC || error == EDQUOT || error == EFBIG;
  return fail(full ? Errc::full : Errc::storage, full ? "the disk is full" : "data.mdb cannot grow", error);
}

}  // namespace sluice::store
