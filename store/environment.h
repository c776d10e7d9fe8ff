// The open LMDB environment and its four databases.
#pragma once
#include <lmdb.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "store/store.h"
#include "vm/base/handle.h"
#include "vm/base/result.h"

namespace sluice::store {

using EnvPtr = Handle<MDB_env, mdb_env_close>;
using TxnPtr = Handle<MDB_txn, mdb_txn_abort>;
using CursorPtr = Handle<MDB_cursor, mdb_cursor_close>;

struct Dbis {
  MDB_dbi main = 0, docs = 0, ext = 0, data = 0, sys = 0;
};

// How large the trees were when the last transaction looked: what an estimate of the next one's pages rests on.
struct Shape {
  std::uint64_t leafs = 0, branches = 0;
  std::uint32_t depth = 0;
};

inline MDB_val val(std::string_view bytes) { return {bytes.size(), const_cast<char*>(bytes.data())}; }
inline std::string_view view(const MDB_val& v) { return {static_cast<const char*>(v.mv_data), v.mv_size}; }

// What an LMDB code means to the one who wrote. Errors: full, damaged or storage.
Error lmdb_error(int rc, const char* what);

inline constexpr std::string_view kOwnKey{"\0", 1};         // each database's sanity key: not a key of users
inline constexpr std::string_view kCommitKey{"commit"};     // in the main database, beside the names of the four

// Writes the number of the commit that `txn` will be, where the checks before an opening compare it with LMDB's meta
// page. The page is written in any case, so it costs no page.
int put_commit_number(MDB_txn* txn, const Dbis& dbis);

// Thread: one; the environment is then any thread's that begins its own transactions.
class Environment {
 public:
  // `folder` holds data.mdb or is to get it. Errors: a sentence without the path.
  static Result<Environment, std::string> open(const std::string& folder, const Options& options);

  // Makes the databases with `identity` in each, and commits. For a new store.
  Result<void, std::string> create(std::string_view identity);
  // Finds the databases and the identity in each. For a store that was there.
  Result<void, std::string> find(std::string_view identity);

  MDB_env* get() const { return env_.get(); }
  const Dbis& dbis() const { return dbis_; }

 private:
  EnvPtr env_;
  Dbis dbis_;
};

}  // namespace sluice::store
