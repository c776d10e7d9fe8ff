// One LMDB environment: documents, keyed bytes, and commits that are durable when they return.
//
// Layout of a folder: data.mdb lock.mdb (LMDB's), `superblock` (two checksummed copies: format, page size, bytes
// zero-filled), `owner` (flock; pid and control socket of who has it open). Drawn byte by byte in store/README.md.
// Source: design store.md, decisions 1 to 8.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/batch.h"
#include "vm/base/result.h"

namespace sluice::store {

// Where a test makes the disk fail; all null in service. Each call gets `context` and answers 0 to go on.
// Thread: the committer, or the one that opens.
struct Faults {
  enum class Commit : std::uint8_t { none, lost, stored };   // what became of the commit that is reported as failed
  void* context = nullptr;
  int (*open_sync)(void* context) = nullptr;                 // an errno for the first fdatasync of open()
  int (*grow)(void* context, std::uint64_t at) = nullptr;    // an errno instead of writing zeros at that offset
  int (*before_commit)(void* context) = nullptr;             // an errno after the last put, before the commit
  Commit (*commit)(void* context) = nullptr;
};

// A thread sanitizer has the addresses of no more than one map of a TiB for itself and all stores of a process.
#if defined(__SANITIZE_THREAD__)
#define SLUICE_SMALL_MAPS 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SLUICE_SMALL_MAPS 1
#endif
#endif
#if defined(SLUICE_SMALL_MAPS)
inline constexpr std::uint64_t kMapBytes = std::uint64_t{1} << 34;
#else
inline constexpr std::uint64_t kMapBytes = std::uint64_t{1} << 40;
#endif

struct Options {
  std::uint64_t map_bytes = kMapBytes;                // reserved address space, never changed afterwards
  std::uint64_t quota_bytes = 0;                      // of the file; 0: what the disk has
  std::uint64_t grow_bytes = std::uint64_t{64} << 20; // the file grows in steps of this many written zeros
  bool any_filesystem = false;                        // allow NFS, CIFS, FUSE, 9p
  Faults faults;
};

// What a document is at one commit.
// Life: `pieces` are good while the snapshot (or a loan of it) lives.
struct Document {
  std::uint64_t revision = 0;        // 0: the key was never written
  bool deleted = false;              // the record keeps the revision
  std::uint8_t kind = 0;             // the writer's; opaque here
  std::uint64_t bytes = 0;
  std::vector<std::string_view> pieces;   // in order; together `bytes` long
  std::vector<Run> runs;             // the extents behind the pieces, for DocumentWrite::Piece::kept
  bool exists() const { return revision != 0 && !deleted; }
};

// A part of the keyed bytes: low <= key < high. An empty `high` has no end.
struct KeyRange {
  std::string_view low, high;
  bool backward = false;             // greatest first
};
struct Entry {
  std::string_view key, value;
};

class Store;
struct Generation;                   // a counted LMDB read transaction

// Keeps the bytes of one snapshot good. Copies count; the last one ends the transaction.
// Thread: any (it only counts).
using Loan = std::shared_ptr<const Generation>;

// A read view of the store at one commit.
// Thread: the Reader's.
class Snapshot {
 public:
  // Life: the value is good while this snapshot or a loan of it lives.
  Result<std::optional<std::string_view>> get(std::string_view key) const;
  // The first entries of the range, at most out.size(); fewer only when it has no more. Allocates nothing.
  // Life: as get().
  Result<std::size_t> scan(const KeyRange& range, std::span<Entry> out) const;
  // Errors: damaged when the record or an extent is not as it was written.
  // `spare` is one that is not needed any more: what it reserved is used again.
  Result<Document> document(std::string_view key, Document&& spare = {}) const;
  // Checks every extent's checksum of a document; touches its bytes, so never on the way to a socket.
  Result<void> verify(const Document& document) const;
  Loan loan() const { return generation_; }
  std::uint64_t commit() const;      // which commit it shows; grows

 private:
  friend class Reader;
  explicit Snapshot(Loan generation) : generation_(std::move(generation)) {}
  Loan generation_;
};

// A thread's way to snapshots: keeps its newest generation and renews it when a commit has come since.
// Thread: the one that uses it.
class Reader {
 public:
  explicit Reader(Store& store) : store_(&store) {}
  // Errors: stopped after a failed commit.
  Result<Snapshot> snapshot();
  // Lets go of the cached generation, so that an idle thread does not pin old pages.
  void rest() { current_.reset(); }

 private:
  Store* store_;
  Loan current_;
};

struct StoreCounters {
  std::uint64_t commits = 0, batches = 0, bytes_written = 0, sync_us = 0, file_bytes = 0, generations_alive = 0;
};

class Store {
 public:
  // Creates the folder when there is none (name.tmp/, sync, rename, sync). Checks before LMDB sees the file
  // (store.md 1.6). Errors: one sentence that names the path and what to do; "in use by pid N" included.
  static Result<std::unique_ptr<Store>, std::string> open(const std::string& path, const Options& options);
  ~Store();                          // all loans must be back
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // Writes all batches in one transaction, in order, keys of each in key order, and returns when they are durable.
  // Errors: full, storage: nothing of any batch was stored, go on; durability_unknown: perhaps stored, the store is
  //         closed, every later call answers stopped.
  // Thread: one at a time, the committer (LMDB ties a transaction to its thread; it begins and ends in here).
  Result<void> commit(std::span<const Batch* const> batches);

  // The number of the newest commit that can be read; grows with each. Thread: any.
  std::uint64_t published() const;
  bool closed() const;               // after durability_unknown. Thread: any
  StoreCounters counters() const;    // Thread: any
  const std::string& path() const;

  struct Impl;

 private:
  friend class Reader;
  explicit Store(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice::store
