// Cuts a document into extents, leaving in place those of the present content that the new content keeps whole.
#include <algorithm>
#include <array>
#include <list>
#include <numeric>

#include "store/bytes.h"
#include "store/impl.h"
#include "store/record.h"

namespace sluice::store {

namespace {

// An extent of the present document, by where it begins in it.
struct Present {
  std::uint64_t at = 0;
  std::uint64_t id = 0;
  std::uint32_t bytes = 0;
  bool reused = false;
};

// A stretch of the new content: bytes to write, or present extents [first, first + count) that stay.
struct Stretch {
  std::vector<std::string_view> bytes;
  std::size_t first = 0, count = 0;
  bool stays() const { return count != 0; }
};

class Writer {
 public:
  Writer(MDB_txn* txn, const Dbis& dbis, const DocumentWrite& document, std::uint64_t& next_extent)
      : txn_(txn), dbis_(dbis), document_(document), next_extent_(next_extent) {}

  Result<void> run() {
    if (auto read = read_present(); !read) return read;
    if (auto planned = plan(); !planned) return planned;
    Record record;
    record.revision = document_.revision;
    record.deleted = document_.deleted;
    record.kind = document_.kind;
    record.bytes = bytes_;
    std::string inlined;
    if (bytes_ > kInlineMax) {
      if (auto cut = bound_runs(); !cut) return cut;
      if (auto written = write_stretches(record.runs); !written) return written;
    } else {
      if (auto gathered = gather(inlined); !gathered) return gathered;
      record.inlined = inlined;
    }
    std::string encoded;
    encode_record(encoded, document_.key, record);
    MDB_val key = val(document_.key), value = val(encoded);
    if (int rc = mdb_put(txn_, dbis_.docs, &key, &value, 0)) return lmdb_error(rc, "a document cannot be written");
    return delete_rest();
  }

 private:
  Result<void> read_present() {
    MDB_val key = val(document_.key), value{};
    const int rc = mdb_get(txn_, dbis_.docs, &key, &value);
    if (rc == MDB_NOTFOUND) return {};
    if (rc) return lmdb_error(rc, "a document's record cannot be read");
    const std::optional<Record> record = decode_record(document_.key, view(value));
    // A damaged record names no extents that could be trusted: what it had stays behind, unreferenced.
    if (!record) {
      damaged_ = true;
      return {};
    }
    // LMDB may move the record with the next put.
    inlined_ = record->inlined;
    present_bytes_ = record->bytes;
    std::uint64_t at = 0;
    for (const Run& r : record->runs) {
      for (std::uint32_t i = 0; i < r.count; ++i) {
        const auto bytes = static_cast<std::uint32_t>(extent_bytes(r, i));
        present_.push_back({at, r.first + i, bytes, false});
        at += bytes;
      }
    }
    return {};
  }

  Result<void> plan() {
    for (const DocumentWrite::Piece& piece : document_.pieces) {
      if (!piece.kept) {
        add_bytes(piece.bytes);
        continue;
      }
      if (piece.length == 0) continue;
      if (damaged_ || piece.at > present_bytes_ || piece.length > present_bytes_ - piece.at)
        return fail(Errc::damaged, "a document cannot keep what it does not have");
      if (present_.empty()) {
        add_bytes(std::string_view(inlined_).substr(piece.at, piece.length));
      } else if (auto kept = keep(piece.at, piece.length); !kept) {
        return kept;
      }
    }
    drop_short_ends();
    return copy_dropped();
  }

  void add_bytes(std::string_view bytes) {
    if (bytes.empty()) return;
    if (stretches_.empty() || stretches_.back().stays()) stretches_.emplace_back();
    stretches_.back().bytes.push_back(bytes);
    bytes_ += bytes.size();
  }

  Result<void> keep(std::uint64_t at, std::uint64_t length) {
    const std::uint64_t end = at + length;
    auto from = std::upper_bound(present_.begin(), present_.end(), at,
                                 [](std::uint64_t a, const Present& p) { return a < p.at; });
    for (auto i = static_cast<std::size_t>(from - present_.begin()) - 1; at < end; ++i) {
      Present& extent = present_[i];
      const std::uint64_t until = std::min(end, extent.at + extent.bytes);
      if (at == extent.at && until == extent.at + extent.bytes && !extent.reused) {
        extent.reused = true;
        stay(i);
      } else {
        auto copied = copy(i);
        if (!copied) return copied.error();
        add_bytes(copied->substr(at - extent.at, until - at));
      }
      at = until;
    }
    return {};
  }

  void stay(std::size_t index) {
    if (!stretches_.empty() && stretches_.back().stays() &&
        stretches_.back().first + stretches_.back().count == index) {
      ++stretches_.back().count;
    } else {
      Stretch& stretch = stretches_.emplace_back();
      stretch.first = index;
      stretch.count = 1;
    }
    bytes_ += present_[index].bytes;
  }

  // A checked copy, since an extent written earlier in this transaction may move.
  Result<std::string_view> copy(std::size_t index) {
    const Present& extent = present_[index];
    std::uint64_t id = extent.id;
    MDB_val key{sizeof id, &id}, value{};
    const int rc = mdb_get(txn_, dbis_.ext, &key, &value);
    if (rc && rc != MDB_NOTFOUND) return lmdb_error(rc, "an extent cannot be read");
    const std::string_view bytes = rc ? std::string_view() : view(value);
    if (bytes.size() != kExtentHead + extent.bytes ||
        read_at<std::uint64_t>(bytes.data()) != extent_sum(id, bytes.substr(kExtentHead)))
      return fail(Errc::damaged, "an extent of a document is damaged");
    return std::string_view(copies_.emplace_back(bytes.substr(kExtentHead)));
  }

  // Short extents before new bytes are written again together with them: an append fills up the last extent instead of
  // leaving one small extent per append.
  void drop_short_ends() {
    for (std::size_t i = 0; i + 1 < stretches_.size(); ++i) {
      Stretch& s = stretches_[i];
      if (s.stays() && !stretches_[i + 1].stays() && present_[s.first + s.count - 1].bytes < kExtentBytes)
        dropped_.push_back(i);
    }
  }

  Result<void> copy_dropped() {
    for (std::size_t i : dropped_) {
      Stretch& s = stretches_[i];
      const std::size_t last = s.first + --s.count;
      present_[last].reused = false;
      auto copied = copy(last);
      if (!copied) return copied.error();
      auto& next = stretches_[i + 1].bytes;
      next.insert(next.begin(), *copied);
    }
    merge();
    return {};
  }

  // Removes stretches that hold nothing and joins neighbours that are both to be written.
  void merge() {
    std::vector<Stretch> merged;
    for (Stretch& s : stretches_) {
      if (!s.stays() && s.bytes.empty()) continue;
      if (!s.stays() && !merged.empty() && !merged.back().stays())
        merged.back().bytes.insert(merged.back().bytes.end(), s.bytes.begin(), s.bytes.end());
      else
        merged.push_back(std::move(s));
    }
    stretches_ = std::move(merged);
  }

  std::vector<std::size_t> run_starts(const Stretch& s) const {
    std::vector<std::size_t> starts;
    for (std::size_t i = s.first; i < s.first + s.count; ++i) {
      if (i == s.first || present_[i].id != present_[i - 1].id + 1 || present_[i - 1].bytes < kExtentBytes)
        starts.push_back(i);
    }
    return starts;
  }

  // A record names at most 64 runs. Beyond that, the lightest neighbourhood of half as many is written anew as one, so
  // that a document that only grows is copied a bounded number of times rather than whole each time.
  Result<void> bound_runs() {
    for (;;) {
      std::vector<Stretch> single;      // one stretch per run
      std::vector<std::uint64_t> bytes;
      for (Stretch& s : stretches_) {
        if (!s.stays()) {
          bytes.push_back(std::accumulate(s.bytes.begin(), s.bytes.end(), std::uint64_t{0},
                                          [](std::uint64_t n, std::string_view b) { return n + b.size(); }));
          single.push_back(std::move(s));
          continue;
        }
        const std::vector<std::size_t> starts = run_starts(s);
        for (std::size_t i = 0; i < starts.size(); ++i) {
          Stretch& one = single.emplace_back();
          one.first = starts[i];
          one.count = (i + 1 < starts.size() ? starts[i + 1] : s.first + s.count) - starts[i];
          bytes.push_back(present_[one.first + one.count - 1].at + present_[one.first + one.count - 1].bytes -
                          present_[one.first].at);
        }
      }
      stretches_ = std::move(single);
      if (stretches_.size() <= kRunsMax) return {};
      constexpr std::size_t kWindow = kRunsMax / 2 + 1;
      std::uint64_t sum = std::accumulate(bytes.begin(), bytes.begin() + kWindow, std::uint64_t{0}), least = sum;
      std::size_t best = 0;
      for (std::size_t i = kWindow; i < bytes.size(); ++i) {
        sum += bytes[i];
        sum -= bytes[i - kWindow];
        if (sum < least) {
          least = sum;
          best = i + 1 - kWindow;
        }
      }
      for (std::size_t i = best; i < best + kWindow; ++i) {
        Stretch& s = stretches_[i];
        for (std::size_t e = s.first; e < s.first + s.count; ++e) {
          present_[e].reused = false;
          auto copied = copy(e);
          if (!copied) return copied.error();
          s.bytes.push_back(*copied);
        }
        s.count = 0;
      }
      merge();
    }
  }

  Result<void> gather(std::string& out) {
    out.reserve(bytes_);
    for (const Stretch& s : stretches_) {
      for (std::string_view b : s.bytes) out += b;
      for (std::size_t i = s.first; i < s.first + s.count; ++i) {
        auto copied = copy(i);
        if (!copied) return copied.error();
        out += *copied;
        present_[i].reused = false;
      }
    }
    return {};
  }

  Result<void> write_stretches(std::vector<Run>& runs) {
    for (const Stretch& s : stretches_) {
      if (s.stays()) {
        for (std::size_t i = s.first; i < s.first + s.count; ++i) append(runs, present_[i].id, present_[i].bytes);
      } else if (auto written = write_bytes(s, runs); !written) {
        return written;
      }
    }
    return {};
  }

  Result<void> write_bytes(const Stretch& s, std::vector<Run>& runs) {
    std::uint64_t left = 0;
    for (std::string_view b : s.bytes) left += b.size();
    std::size_t piece = 0, offset = 0;
    while (left != 0) {
      const std::uint64_t size = std::min<std::uint64_t>(left, kExtentBytes);
      std::uint64_t id = next_extent_++;
      MDB_val key{sizeof id, &id}, value{kExtentHead + size, nullptr};
      // Numbers only grow, so each put goes to the end of the tree; the bytes are gathered straight into LMDB's page.
      if (int rc = mdb_put(txn_, dbis_.ext, &key, &value, MDB_APPEND | MDB_RESERVE))
        return lmdb_error(rc, "an extent cannot be written");
      char* const payload = static_cast<char*>(value.mv_data) + kExtentHead;
      for (std::uint64_t done = 0; done < size;) {
        const std::string_view from = s.bytes[piece].substr(offset);
        const std::size_t n = std::min<std::size_t>(from.size(), size - done);
        std::memcpy(payload + done, from.data(), n);
        done += n;
        offset += n;
        if (offset == s.bytes[piece].size()) {
          ++piece;
          offset = 0;
        }
      }
      write_at<std::uint64_t>(static_cast<char*>(value.mv_data), extent_sum(id, {payload, size}));
      append(runs, id, static_cast<std::uint32_t>(size));
      left -= size;
    }
    return {};
  }

  static void append(std::vector<Run>& runs, std::uint64_t id, std::uint32_t bytes) {
    if (!runs.empty() && runs.back().first + runs.back().count == id &&
        runs.back().bytes == runs.back().count * kExtentBytes) {
      ++runs.back().count;
      runs.back().bytes += bytes;
    } else {
      runs.push_back({id, 1, bytes});
    }
  }

  Result<void> delete_rest() {
    for (const Present& extent : present_) {
      if (extent.reused) continue;
      std::uint64_t id = extent.id;
      MDB_val key{sizeof id, &id};
      const int rc = mdb_del(txn_, dbis_.ext, &key, nullptr);
      if (rc && rc != MDB_NOTFOUND) return lmdb_error(rc, "an extent cannot be removed");
    }
    return {};
  }

  MDB_txn* const txn_;
  const Dbis& dbis_;
  const DocumentWrite& document_;
  std::uint64_t& next_extent_;
  bool damaged_ = false;
  std::string inlined_;                     // the present document, when it is small
  std::uint64_t present_bytes_ = 0;
  std::vector<Present> present_;
  std::vector<Stretch> stretches_;
  std::vector<std::size_t> dropped_;
  std::list<std::string> copies_;           // stays put while it grows; empty, it has nothing on the heap
  std::uint64_t bytes_ = 0;
};

}  // namespace

Result<void> write_document(MDB_txn* txn, const Dbis& dbis, const DocumentWrite& document,
                            std::uint64_t& next_extent) {
  return Writer(txn, dbis, document, next_extent).run();
}

}  // namespace sluice::store
