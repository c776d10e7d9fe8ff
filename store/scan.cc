// Going over keyed bytes at one commit, in their order or against it.
#include "store/impl.h"

namespace sluice::store {

namespace {

// The cursor of the snapshot's transaction.
int cursor_of(const Generation& generation, MDB_cursor*& out) {
  int rc = 0;
  if (!generation.cursor) {
    MDB_cursor* raw = nullptr;
    rc = mdb_cursor_open(generation.txn, generation.dbis->data, &raw);
    if (!rc) generation.cursor.reset(raw);
  } else if (!generation.cursor_renewed) {
    rc = mdb_cursor_renew(generation.txn, generation.cursor.get());
  }
  generation.cursor_renewed = rc == 0;
  out = generation.cursor.get();
  return rc;
}

// To the first entry that the range can give.
int seek(MDB_cursor* cursor, const KeyRange& range, MDB_val& key, MDB_val& value) {
  const std::string_view bound = range.backward ? range.high : range.low;
  key = val(bound);
  if (!range.backward) return mdb_cursor_get(cursor, &key, &value, bound.empty() ? MDB_FIRST : MDB_SET_RANGE);
  // To what lies at or behind the end, and one back.
  const int rc = bound.empty() ? MDB_NOTFOUND : mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE);
  if (rc == MDB_NOTFOUND) return mdb_cursor_get(cursor, &key, &value, MDB_LAST);
  if (rc) return rc;
  return mdb_cursor_get(cursor, &key, &value, MDB_PREV);
}

}  // namespace

Result<std::size_t> Snapshot::scan(const KeyRange& range, std::span<Entry> out) const {
  constexpr const char* kWhat = "keys cannot be read";
  if (out.empty()) return std::size_t{0};
  MDB_cursor* cursor = nullptr;
  if (const int rc = cursor_of(*generation_, cursor)) return lmdb_error(rc, kWhat);
  MDB_val key{}, value{};
  const MDB_cursor_op further = range.backward ? MDB_PREV : MDB_NEXT;
  std::size_t count = 0;
  int rc = seek(cursor, range, key, value);
  for (; !rc; rc = mdb_cursor_get(cursor, &key, &value, further)) {
    const std::string_view name = view(key);
    if (range.backward ? name < range.low : !range.high.empty() && name >= range.high) break;
    if (name == kOwnKey) continue;
    out[count++] = {name, view(value)};
    if (count == out.size()) break;
  }
  if (rc && rc != MDB_NOTFOUND) return lmdb_error(rc, kWhat);
  return count;
}

}  // namespace sluice::store
