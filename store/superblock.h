// What must be known of a store before LMDB may see its file.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "vm/base/result.h"

namespace sluice::store {

inline constexpr std::uint32_t kFormat = 1;
inline constexpr std::size_t kIdentityBytes = 16;

struct Superblock {
  std::uint32_t format = kFormat;
  std::uint32_t page_bytes = 0;
  std::uint64_t filled_bytes = 0;      // data.mdb is at least so long, every byte once written
  std::uint64_t version = 0;           // of the two copies, the greater one holds
  std::array<char, kIdentityBytes> identity{};
  std::string_view identity_view() const { return {identity.data(), identity.size()}; }
};

// Errors: damaged when neither copy is whole, future when a newer Sluice wrote it, io.
Result<Superblock> read_superblock(int fd);

// Writes the copy that does not hold now, with the next version, and syncs it: a torn write leaves the other copy.
// Errors: full, storage; `superblock` is then as before.
Result<void> write_superblock(int fd, Superblock& superblock);

}  // namespace sluice::store
