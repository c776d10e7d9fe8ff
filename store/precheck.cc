// Source: LMDB 0.9.24. A meta page (0 and 1), little endian:
//
//    0  u64 page number, u16 0, u16 flags (8), u16, u16
//   16  u32 magic 0xBEEFC0DE, u32 version 1, u64 address, u64 map size
//   40  two trees, free and main: u32 pad (free: the page size), u16 flags, u16 depth, u64 branch pages, u64 leaf
//       pages, u64 overflow pages, u64 entries, u64 root
//  136  u64 last page, u64 transaction
#include "store/precheck.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "store/page_walk.h"

namespace sluice::store {

namespace {

std::string damaged(const std::string& what) { return "is damaged: " + what + "; restore it from a backup"; }

}  // namespace

Result<void, std::string> check_file(int fd, const Superblock& superblock, std::uint64_t map_bytes) {
  struct stat s{};
  if (fstat(fd, &s) != 0) return std::string("data.mdb: ") + std::strerror(errno);
  const auto size = static_cast<std::uint64_t>(s.st_size);
  if (size < superblock.filled_bytes)
    return damaged("data.mdb has " + std::to_string(size) + " bytes of at least " +
                   std::to_string(superblock.filled_bytes));
  const PageReader reader{fd, size, superblock.page_bytes};
  std::string why;
  Meta metas[2];
  for (std::uint64_t i = 0; i < 2; ++i)
    if (!read_meta(reader, i, metas[i], why)) return damaged(why);
  const Meta& newest = metas[0].txn > metas[1].txn ? metas[0] : metas[1];
  const Meta& other = metas[0].txn > metas[1].txn ? metas[1] : metas[0];
  // Each transaction writes the meta page that its number's last bit names.
  if ((metas[0].txn & 1) != 0 || (metas[1].txn & 1) != 1 || newest.txn - other.txn != 1)
    return damaged("the numbers of its last two commits do not follow each other");
  if (newest.last_page >= map_bytes / superblock.page_bytes)
    return "has more pages than a map of " + std::to_string(map_bytes) + " bytes; raise the map size";
  for (const Meta& meta : metas)
    if (!check_commit_number(reader, meta, why)) return damaged(why);
  if (!walk(reader, newest, why)) return damaged(why);
  return {};
}

}  // namespace sluice::store
