// Room for a commit: the tail of the file, more file, or pages that earlier commits have freed.
#include <algorithm>

#include "store/bytes.h"
#include "store/impl.h"

namespace sluice::store {

namespace {

struct FreePages {
  std::uint64_t now = 0;       // usable by the next transaction
  std::uint64_t next = 0;      // by the one after it
};

// Pages that the transaction number t freed are taken by transactions from t + 2 on, and not before each reader is at
// t or later. The free list is LMDB's database 0: number -> count, pages.
Result<FreePages> count_free(MDB_env* env, std::uint64_t newest, std::uint64_t oldest_reader) {
  MDB_txn* raw = nullptr;
  int rc = mdb_txn_begin(env, nullptr, MDB_RDONLY, &raw);
  if (rc) return lmdb_error(rc, "the free list cannot be read");
  const TxnPtr txn(raw);
  MDB_cursor* raw_cursor = nullptr;
  if ((rc = mdb_cursor_open(raw, 0, &raw_cursor))) return lmdb_error(rc, "the free list cannot be read");
  const CursorPtr cursor(raw_cursor);
  FreePages free;
  MDB_val key{}, value{};
  while ((rc = mdb_cursor_get(raw_cursor, &key, &value, MDB_NEXT)) == 0) {
    const auto number = read_at<std::uint64_t>(static_cast<const char*>(key.mv_data));
    const auto count = read_at<std::uint64_t>(static_cast<const char*>(value.mv_data));
    if (number < std::min(newest, oldest_reader)) free.now += count;
    if (number < std::min(newest + 1, oldest_reader)) free.next += count;
  }
  if (rc != MDB_NOTFOUND) return lmdb_error(rc, "the free list cannot be read");
  return free;
}

}  // namespace

Result<void> Store::Impl::make_room(std::uint64_t pages, bool shrinking) {
  const std::uint64_t need = pages + (shrinking ? 0 : kReserveBytes / page_bytes);
  const auto tail = [&] {
    const std::uint64_t filled = space.filled_bytes() / page_bytes;
    return filled > used_pages ? filled - used_pages : 0;
  };
  if (tail() >= need) return {};
  const Result<void> grown = space.reach((used_pages + need) * page_bytes);
  if (grown) {
    file_bytes.store(space.filled_bytes(), std::memory_order_relaxed);
    return {};
  }
  if (grown.error().code != Errc::full) return grown;
  for (bool beat = false;; beat = true) {
    const std::uint64_t newest = published.load(std::memory_order_relaxed);
    Result<FreePages> free = count_free(env.get(), newest, generations.oldest(~std::uint64_t{0}));
    if (!free) return Error{Errc::storage, free.error().detail, free.error().what};
    if (tail() + free->now >= need) return {};
    // A commit that fails for want of room does not advance LMDB, so what a delete has freed would never become
    // usable: one small commit in between does it.
    if (beat || tail() + free->next < need) return grown;
    if (Result<void> done = heartbeat(); !done) return done;
  }
}

Result<void> Store::Impl::heartbeat() {
  MDB_txn* raw = nullptr;
  int rc = mdb_txn_begin(env.get(), nullptr, 0, &raw);
  if (rc) return Error{Errc::storage, rc, "no transaction can begin"};
  TxnPtr txn(raw);
  if ((rc = put_commit_number(raw, env.dbis()))) return Error{Errc::storage, rc, "the free list cannot advance"};
  return finish(txn.release());
}

}  // namespace sluice::store
