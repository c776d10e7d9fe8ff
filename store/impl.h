// What a Store is made of, and the counted read transactions that its readers share with it.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "store/environment.h"
#include "store/folder.h"
#include "store/space.h"
#include "store/store.h"

namespace sluice::store {

class Generations;

// One read transaction: all that a thread's snapshots of one commit share.
// Thread: the Reader's for reading; any for counting, and so for the end.
struct Generation {
  MDB_txn* txn = nullptr;
  // Over `data`, for scans by the Reader's thread; made at the first one and renewed with its transaction.
  mutable CursorPtr cursor;
  mutable bool cursor_renewed = false;
  std::uint64_t commit = 0;
  const Dbis* dbis = nullptr;
  Generations* home = nullptr;
};

// Makes, ends and reuses generations, and knows the oldest, behind which no page may be used again.
// Thread: any. Its lock is taken once per thread and commit, never per read.
class Generations {
 public:
  ~Generations();
  // Errors: storage when no reader slot is left.
  Result<Loan> begin(MDB_env* env, const Dbis& dbis);
  std::uint64_t alive() const;
  // The commit of the oldest generation in use; `otherwise` when there is none.
  std::uint64_t oldest(std::uint64_t otherwise) const;
  // Before the environment goes: ends the transactions that wait for reuse. None may be in use.
  void finish();

 private:
  void end(const Generation* generation);

  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Generation>> idle_;       // reset, each with its reader slot; guarded by mutex_
  std::vector<std::unique_ptr<Generation>> in_use_;     // guarded by mutex_
};

// Thread: frozen after open, but for what says otherwise.
struct Store::Impl {
  std::string path;
  Options options;
  std::uint64_t page_bytes = 0;
  Folder folder;                     // before env: the lock outlives the environment
  Environment env;
  Generations generations;
  std::atomic<std::uint64_t> published{0};
  // What readers compare with: `published`, or the greatest number once the store has closed, so that one load tells
  // them both.
  std::atomic<std::uint64_t> gate{0};
  std::atomic<bool> closed{false};
  std::atomic<std::uint64_t> commits{0}, batch_count{0}, bytes_written{0}, sync_us{0}, file_bytes{0};

  // Of whoever commits: one thread at a time, not always the same one.
  Space space;
  std::uint64_t next_extent = 1;
  std::uint64_t used_pages = 0;      // up to the last page that LMDB ever used
  Shape docs, ext, data;

  // Errors: full, storage. Makes room for a transaction of at most `pages`; a `shrinking` one may use the reserve.
  Result<void> make_room(std::uint64_t pages, bool shrinking);
  std::uint64_t pages_needed(std::span<const Batch* const> batches) const;
  Result<void> heartbeat();
  Result<void> finish(MDB_txn* txn);       // commits, or closes the store
  Result<void> look();                     // shapes, used_pages and published, after a commit or an open
  void close();
  Result<void> load();                     // next_extent, at open
};

inline constexpr std::string_view kNextExtentKey{"next_extent"};

// How one transaction's documents are written. Uses extent numbers from `next_extent` on, and moves it.
// Errors: damaged (the present document cannot be kept from), full, storage.
Result<void> write_document(MDB_txn* txn, const Dbis& dbis, const DocumentWrite& document, std::uint64_t& next_extent);

}  // namespace sluice::store
