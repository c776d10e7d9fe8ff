// One commit: room first, then all batches in one transaction, then the flush.
//
// In the main database, beside LMDB's names of the four: "commit" -> u64 number of the commit that wrote it.
// In `sys`: "next_extent" -> u64.
#include <algorithm>
#include <array>
#include <chrono>

#include "store/bytes.h"
#include "store/impl.h"
#include "store/record.h"

namespace sluice::store {

namespace {

// LMDB holds at most 131,071 changed pages before it writes some early, which 0.9.24 does not do well.
constexpr std::uint64_t kPagesMax = 131'000;
constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t kNodeHead = 16;          // what a key costs in its page beside its bytes, at most
constexpr std::size_t kLeafValueMax = 2000;    // larger ones take pages of their own

using Clock = std::chrono::steady_clock;

Error commit_error(int rc, const char* what) {
  Error error = lmdb_error(rc, what);
  if (error.code == Errc::damaged) error.code = Errc::storage;
  return error;
}

// Pages that `records` puts of together `bytes` can touch in a tree: their leafs, the leafs that splits add, and the
// branches above both. Each leaf splits once for being full, and then again per quarter page that went in.
std::uint64_t tree_pages(const Shape& tree, std::uint64_t records, std::uint64_t bytes) {
  if (records == 0) return 0;
  const std::uint64_t leafs = std::min(records, tree.leafs + 1);
  const std::uint64_t splits = std::min(records, leafs + 4 * bytes / kPageBytes + 1);
  const std::uint64_t branches = std::min(leafs * (tree.depth + 1), tree.branches + 2) + splits / 4 + 2;
  return leafs + splits + branches;
}

Shape shape_of(MDB_txn* txn, MDB_dbi dbi) {
  MDB_stat stat{};
  if (mdb_stat(txn, dbi, &stat)) return {};
  return {stat.ms_leaf_pages, stat.ms_branch_pages, stat.ms_depth};
}

bool only_absences(const Overlay& keyed) {
  for (Overlay::Cursor at = keyed.first(); at.valid(); at.next())
    if (at.has_value()) return false;
  return true;
}

bool only_removes(std::span<const Batch* const> batches) {
  return std::all_of(batches.begin(), batches.end(), [](const Batch* batch) {
    return std::all_of(batch->documents().begin(), batch->documents().end(),
                       [](const DocumentWrite& d) { return d.deleted && d.pieces.empty(); }) &&
           only_absences(batch->keyed());
  });
}

int put_number(MDB_txn* txn, MDB_dbi dbi, std::string_view name, std::uint64_t number) {
  std::array<char, 8> bytes;
  write_at(bytes.data(), number);
  MDB_val key = val(name), value{bytes.size(), bytes.data()};
  return mdb_put(txn, dbi, &key, &value, 0);
}

Result<void> write_keyed(MDB_txn* txn, MDB_dbi data, const Overlay& keyed, std::uint64_t& bytes) {
  for (Overlay::Cursor at = keyed.first(); at.valid(); at.next()) {
    MDB_val key = val(at.key());
    int rc = 0;
    if (at.has_value()) {
      MDB_val value = val(at.value());
      bytes += key.mv_size + value.mv_size;
      rc = mdb_put(txn, data, &key, &value, 0);
    } else {
      rc = mdb_del(txn, data, &key, nullptr);
      if (rc == MDB_NOTFOUND) rc = 0;
    }
    if (rc) return commit_error(rc, "a key cannot be written");
  }
  return {};
}

Result<void> write_documents(MDB_txn* txn, const Dbis& dbis, std::span<const Batch* const> batches,
                             std::uint64_t& next_extent) {
  std::vector<const DocumentWrite*> documents;
  for (const Batch* batch : batches)
    for (const DocumentWrite& d : batch->documents()) documents.push_back(&d);
  // Neighbours share pages; a key that comes twice keeps its order.
  std::stable_sort(documents.begin(), documents.end(),
                   [](const DocumentWrite* a, const DocumentWrite* b) { return a->key < b->key; });
  for (const DocumentWrite* d : documents) {
    Result<void> written = write_document(txn, dbis, *d, next_extent);
    if (!written) {
      Error error = written.error();
      if (error.code == Errc::damaged) error.code = Errc::storage;
      return error;
    }
  }
  return {};
}

}  // namespace

std::uint64_t Store::Impl::pages_needed(std::span<const Batch* const> batches) const {
  std::uint64_t keys = 0, key_bytes = 0, own_pages = 0;
  std::uint64_t records = 0, record_bytes = 0, extents = 0, removed = 0;
  for (const Batch* batch : batches) {
    for (Overlay::Cursor at = batch->keyed().first(); at.valid(); at.next()) {
      ++keys;
      const std::size_t size = at.value().size();
      key_bytes += kNodeHead + at.key().size() + std::min(size, std::size_t{8});
      if (size > kLeafValueMax)
        own_pages += size / kPageBytes + 2;
      else
        key_bytes += size;
    }
    for (const DocumentWrite& d : batch->documents()) {
      ++records;
      std::uint64_t bytes = 0, copied = 0;
      for (const DocumentWrite::Piece& p : d.pieces) {
        if (!p.kept) {
          bytes += p.bytes.size();
          continue;
        }
        // A kept part may have its two ends written again, and with many runs a window of them.
        copied += std::min<std::uint64_t>(p.length, 2 * kExtentBytes);
        removed += p.length / kExtentBytes + 2;
      }
      record_bytes += kNodeHead + d.key.size() + std::min<std::uint64_t>(bytes + copied + kRecordHead, kLeafValueMax);
      own_pages += 1;
      extents += (bytes + copied) / kExtentBytes + 2;
    }
  }
  // What a document had is removed, a page of references per hundred extents; how much it had is bounded by the tree.
  const std::uint64_t ext_leafs = records == 0 ? 0 : std::min(ext.leafs + 1, removed / 100 + records * 64);
  return tree_pages(data, keys, key_bytes) + tree_pages(docs, records, record_bytes) + own_pages + extents +
         extents / 64 + ext_leafs + ext_leafs / 2 + ext.depth + 16;
}

Result<void> Store::commit(std::span<const Batch* const> batches) {
  Impl& store = *impl_;
  if (store.closed.load(std::memory_order_relaxed)) return fail(Errc::stopped, "the store is closed after a failed commit");
  if (std::all_of(batches.begin(), batches.end(), [](const Batch* b) { return b->empty(); })) return {};
  if (store.space.deleted()) {
    store.close();
    return fail(Errc::stopped, "the store's data.mdb was deleted while it was open");
  }
  const std::uint64_t pages = store.pages_needed(batches);
  if (pages > kPagesMax) return fail(Errc::storage, "a commit is larger than one transaction");
  if (Result<void> room = store.make_room(pages, only_removes(batches)); !room) return room;

  MDB_txn* raw = nullptr;
  int rc = mdb_txn_begin(store.env.get(), nullptr, 0, &raw);
  if (rc) return commit_error(rc, "no transaction can begin");
  TxnPtr txn(raw);
  const Dbis& dbis = store.env.dbis();
  std::uint64_t next_extent = store.next_extent, bytes = 0;
  for (const Batch* batch : batches) {
    if (Result<void> written = write_keyed(raw, dbis.data, batch->keyed(), bytes); !written) return written;
    bytes += batch->document_bytes();
  }
  if (Result<void> written = write_documents(raw, dbis, batches, next_extent); !written) return written;
  if (next_extent != store.next_extent) rc = put_number(raw, dbis.sys, kNextExtentKey, next_extent);
  if (!rc) rc = put_commit_number(raw, dbis);
  const Faults& faults = store.options.faults;
  if (!rc && faults.before_commit) rc = faults.before_commit(faults.context);
  if (rc) return commit_error(rc, "the commit cannot be prepared");
  store.data = shape_of(raw, dbis.data);
  store.docs = shape_of(raw, dbis.docs);
  store.ext = shape_of(raw, dbis.ext);
  if (Result<void> done = store.finish(txn.release()); !done) return done;
  store.next_extent = next_extent;
  store.batch_count.fetch_add(batches.size(), std::memory_order_relaxed);
  store.bytes_written.fetch_add(bytes, std::memory_order_relaxed);
  return {};
}

Result<void> Store::Impl::finish(MDB_txn* txn) {
  using Outcome = Faults::Commit;
  const Outcome outcome = options.faults.commit ? options.faults.commit(options.faults.context) : Outcome::none;
  const Clock::time_point begin = Clock::now();
  int rc = 0;
  if (outcome == Outcome::lost)
    mdb_txn_abort(txn);
  else
    rc = mdb_txn_commit(txn);
  const auto took = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - begin);
  sync_us.fetch_add(static_cast<std::uint64_t>(took.count()), std::memory_order_relaxed);
  if (outcome != Outcome::none || rc != 0) {
    close();
    return fail(Errc::durability_unknown, "the commit failed: it may be on the disk or not", rc);
  }
  commits.fetch_add(1, std::memory_order_relaxed);
  return look();
}

void Store::Impl::close() {
  closed.store(true, std::memory_order_release);
  gate.store(~std::uint64_t{0}, std::memory_order_release);
}

Result<void> Store::Impl::look() {
  MDB_envinfo info{};
  const int rc = mdb_env_info(env.get(), &info);
  SLUICE_CHECK(rc == 0);
  used_pages = info.me_last_pgno + 1;
  file_bytes.store(std::max(space.filled_bytes(), used_pages * page_bytes), std::memory_order_relaxed);
  // The number is LMDB's own, not a count of calls: a transaction that changed nothing does not get one.
  published.store(info.me_last_txnid, std::memory_order_release);
  gate.store(info.me_last_txnid, std::memory_order_release);
  return {};
}

Result<void> Store::Impl::load() {
  MDB_txn* raw = nullptr;
  int rc = mdb_txn_begin(env.get(), nullptr, MDB_RDONLY, &raw);
  if (rc) return lmdb_error(rc, "cannot be read");
  const TxnPtr txn(raw);
  const Dbis& dbis = env.dbis();
  data = shape_of(raw, dbis.data);
  docs = shape_of(raw, dbis.docs);
  ext = shape_of(raw, dbis.ext);
  MDB_val key = val(kNextExtentKey), value{};
  rc = mdb_get(raw, dbis.sys, &key, &value);
  if (rc && rc != MDB_NOTFOUND) return lmdb_error(rc, "cannot be read");
  if (!rc && value.mv_size != sizeof next_extent) return fail(Errc::damaged, "its next extent number is damaged");
  if (!rc) next_extent = read_at<std::uint64_t>(static_cast<const char*>(value.mv_data));
  return look();
}

}  // namespace sluice::store
