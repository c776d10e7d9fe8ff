// What must hold of data.mdb before LMDB maps it: LMDB itself believes its file, and a wrong page number ends in a
// signal.
#pragma once
#include <cstdint>
#include <string>

#include "store/superblock.h"
#include "vm/base/result.h"

namespace sluice::store {

// Reads with pread only. Errors: a sentence without the path.
// Source: LMDB 0.9.24, mdb.c: struct MDB_meta, MDB_db, MDB_page, MDB_node.
Result<void, std::string> check_file(int fd, const Superblock& superblock, std::uint64_t map_bytes);

}  // namespace sluice::store
