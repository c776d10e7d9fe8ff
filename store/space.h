// The room that data.mdb has: written zeros ahead of LMDB, so that a full disk is met before a transaction starts.
#pragma once
#include <cstdint>
#include <string>

#include "store/file.h"
#include "store/store.h"
#include "store/superblock.h"

namespace sluice::store {

inline constexpr std::uint64_t kFirstBytes = std::uint64_t{4} << 20;   // of a new store
inline constexpr std::uint64_t kReserveBytes = std::uint64_t{1} << 20; // left so that deletes always commit

// Thread: the committer's, or of the one that opens.
class Space {
 public:
  Space() = default;
  Space(File data, File superblock, const Superblock& known, const Options& options)
      : data_(std::move(data)), superblock_(std::move(superblock)), known_(known), options_(options) {}

  std::uint64_t filled_bytes() const { return known_.filled_bytes; }

  // Whether the file has lost its name: what is written to it then is gone with the process.
  bool deleted() const;

  // Makes the file at least `bytes` long, in a step that suits its size where quota and disk allow, else just so far.
  // Errors: full (quota, disk), storage; the file is then as before.
  Result<void> reach(std::uint64_t bytes);

 private:
  Result<void> fill(std::uint64_t to);

  File data_, superblock_;
  Superblock known_;
  Options options_;
};

}  // namespace sluice::store
