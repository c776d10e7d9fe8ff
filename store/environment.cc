#include "store/environment.h"

#include <fcntl.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "store/bytes.h"

namespace sluice::store {

namespace {
constexpr unsigned kReaders = 1024;

struct Database {
  const char* name;
  unsigned flags;
  MDB_dbi Dbis::*handle;
};
constexpr std::array<Database, 4> kDatabases{{{"docs", 0, &Dbis::docs},
                                              {"ext", MDB_INTEGERKEY, &Dbis::ext},
                                              {"data", 0, &Dbis::data},
                                              {"sys", 0, &Dbis::sys}}};

// `ext` takes numbers; 0 is never an extent's.
constexpr std::uint64_t kOwnExtent = 0;
MDB_val own_key(const Database& database) {
  if (database.flags & MDB_INTEGERKEY) return {sizeof kOwnExtent, const_cast<std::uint64_t*>(&kOwnExtent)};
  return val(kOwnKey);
}
}  // namespace

Error lmdb_error(int rc, const char* what) {
  switch (rc) {
    case ENOSPC:
    case EDQUOT:
    case MDB_MAP_FULL: return fail(Errc::full, what, rc);
    case MDB_CORRUPTED:
    case MDB_PAGE_NOTFOUND:
    case MDB_CURSOR_FULL:
    case MDB_PAGE_FULL: return fail(Errc::damaged, what, rc);
    default: return fail(Errc::storage, what, rc);
  }
}

int put_commit_number(MDB_txn* txn, const Dbis& dbis) {
  std::array<char, 8> number;
  write_at<std::uint64_t>(number.data(), mdb_txn_id(txn));
  MDB_val key = val(kCommitKey), value{number.size(), number.data()};
  return mdb_put(txn, dbis.main, &key, &value, 0);
}

Result<Environment, std::string> Environment::open(const std::string& folder, const Options& options) {
  MDB_env* raw = nullptr;
  int rc = mdb_env_create(&raw);
  if (rc) return std::string("LMDB cannot start: ") + mdb_strerror(rc);
  Environment environment;
  environment.env_.reset(raw);
  mdb_env_set_maxdbs(raw, kDatabases.size());
  mdb_env_set_maxreaders(raw, kReaders);
  if ((rc = mdb_env_set_mapsize(raw, options.map_bytes))) return std::string("map size: ") + mdb_strerror(rc);
  rc = mdb_env_open(raw, folder.c_str(), MDB_NOTLS, 0600);
  if (rc == ENOMEM)
    return std::string("no address space for a map of ") + std::to_string(options.map_bytes) +
           " bytes; lower the map size or raise the limit (ulimit -v)";
  if (rc) return std::string("LMDB refuses it: ") + mdb_strerror(rc);
  // Debian's LMDB opens the data file without O_CLOEXEC, and a child that inherits it keeps its locks alive.
  int fd = -1;
  if ((rc = mdb_env_get_fd(raw, &fd))) return std::string("data.mdb: ") + mdb_strerror(rc);
  if (fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) return std::string("data.mdb: ") + std::strerror(errno);
  int dead = 0;
  if ((rc = mdb_reader_check(raw, &dead))) return std::string("lock.mdb: ") + mdb_strerror(rc);
  return environment;
}

Result<void, std::string> Environment::create(std::string_view identity) {
  MDB_txn* raw = nullptr;
  int rc = mdb_txn_begin(env_.get(), nullptr, 0, &raw);
  if (rc) return std::string("cannot write: ") + mdb_strerror(rc);
  TxnPtr txn(raw);
  for (const Database& database : kDatabases) {
    rc = mdb_dbi_open(raw, database.name, database.flags | MDB_CREATE, &(dbis_.*database.handle));
    MDB_val key = own_key(database), value = val(identity);
    if (!rc) rc = mdb_put(raw, dbis_.*database.handle, &key, &value, 0);
    if (rc) return std::string("cannot make its databases: ") + mdb_strerror(rc);
  }
  rc = mdb_dbi_open(raw, nullptr, 0, &dbis_.main);
  if (!rc) rc = put_commit_number(raw, dbis_);
  if (!rc) rc = mdb_txn_commit(txn.release());
  if (rc) return std::string("cannot make its databases: ") + mdb_strerror(rc);
  return {};
}

Result<void, std::string> Environment::find(std::string_view identity) {
  MDB_txn* raw = nullptr;
  int rc = mdb_txn_begin(env_.get(), nullptr, MDB_RDONLY, &raw);
  if (rc) return std::string("cannot read: ") + mdb_strerror(rc);
  TxnPtr txn(raw);
  for (const Database& database : kDatabases) {
    rc = mdb_dbi_open(raw, database.name, database.flags, &(dbis_.*database.handle));
    if (rc) return std::string("is damaged: database ") + database.name + ": " + mdb_strerror(rc);
    MDB_val key = own_key(database), value{};
    rc = mdb_get(raw, dbis_.*database.handle, &key, &value);
    // LMDB 0.9.24 reports a lost database as a missing key, so the key that is always there is asked for.
    if (rc || view(value) != identity)
      return std::string("is damaged: database ") + database.name + " is not this store's";
  }
  if ((rc = mdb_dbi_open(raw, nullptr, 0, &dbis_.main))) return std::string("cannot read: ") + mdb_strerror(rc);
  // Committing, not aborting, is what keeps the handles.
  if ((rc = mdb_txn_commit(txn.release()))) return std::string("cannot read: ") + mdb_strerror(rc);
  return {};
}

}  // namespace sluice::store
