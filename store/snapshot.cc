// Reading at one commit: keyed bytes and documents, and a thread's way to the newest.
#include "store/bytes.h"
#include "store/impl.h"
#include "store/record.h"

namespace sluice::store {

Result<Snapshot> Reader::snapshot() {
  const Store::Impl& store = *store_->impl_;
  const std::uint64_t newest = store.gate.load(std::memory_order_acquire);
  if (!current_ || current_->commit < newest) {
    if (store.closed.load(std::memory_order_acquire)) {
      current_.reset();
      return fail(Errc::stopped, "the store is closed after a failed commit");
    }
    // First let go, so that the transaction is reused at once instead of taking one more slot.
    current_.reset();
    Result<Loan> begun = store_->impl_->generations.begin(store.env.get(), store.env.dbis());
    if (!begun) return begun.error();
    current_ = std::move(*begun);
  }
  return Snapshot(current_);
}

std::uint64_t Snapshot::commit() const { return generation_->commit; }

Result<std::optional<std::string_view>> Snapshot::get(std::string_view key) const {
  MDB_val k = val(key), value{};
  const int rc = mdb_get(generation_->txn, generation_->dbis->data, &k, &value);
  if (rc == MDB_NOTFOUND) return std::optional<std::string_view>();
  if (rc) return lmdb_error(rc, "a key cannot be read");
  return std::optional<std::string_view>(view(value));
}

Result<Document> Snapshot::document(std::string_view key, Document&& spare) const {
  Document document;
  document.pieces = std::move(spare.pieces);
  document.pieces.clear();
  MDB_val k = val(key), value{};
  int rc = mdb_get(generation_->txn, generation_->dbis->docs, &k, &value);
  if (rc == MDB_NOTFOUND) return document;
  if (rc) return lmdb_error(rc, "a document's record cannot be read");
  std::optional<Record> record = decode_record(key, view(value));
  if (!record) return fail(Errc::damaged, "a document's record is damaged");
  document.revision = record->revision;
  document.deleted = record->deleted;
  document.kind = record->kind;
  document.bytes = record->bytes;
  if (record->runs.empty()) {
    if (record->bytes != 0) document.pieces.push_back(record->inlined);
    return document;
  }
  document.runs = std::move(record->runs);
  std::size_t extents = 0;
  for (const Run& run : document.runs) extents += run.count;
  document.pieces.reserve(extents);
  MDB_cursor* raw = nullptr;
  if ((rc = mdb_cursor_open(generation_->txn, generation_->dbis->ext, &raw)))
    return lmdb_error(rc, "a document's extents cannot be read");
  const CursorPtr cursor(raw);
  for (const Run& run : document.runs) {
    for (std::uint32_t i = 0; i < run.count; ++i) {
      std::uint64_t id = run.first + i;
      MDB_val extent_key{sizeof id, &id};
      rc = mdb_cursor_get(raw, &extent_key, &value, i == 0 ? MDB_SET_KEY : MDB_NEXT);
      if (rc && rc != MDB_NOTFOUND) return lmdb_error(rc, "a document's extents cannot be read");
      const std::string_view bytes = view(value);
      // The payload itself is not looked at: that would fault in every page of it on the reader's thread.
      if (rc || read_at<std::uint64_t>(static_cast<const char*>(extent_key.mv_data)) != run.first + i ||
          bytes.size() != kExtentHead + extent_bytes(run, i))
        return fail(Errc::damaged, "an extent of a document is missing");
      document.pieces.push_back(bytes.substr(kExtentHead));
    }
  }
  return document;
}

Result<void> Snapshot::verify(const Document& document) const {
  std::size_t piece = 0;
  for (const Run& run : document.runs) {
    for (std::uint32_t i = 0; i < run.count; ++i, ++piece) {
      const std::string_view payload = document.pieces[piece];
      if (read_at<std::uint64_t>(payload.data() - kExtentHead) != extent_sum(run.first + i, payload))
        return fail(Errc::damaged, "an extent of a document is damaged");
    }
  }
  return {};
}

}  // namespace sluice::store
