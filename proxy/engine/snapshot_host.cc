#include "proxy/engine/snapshot_host.h"

#include "proxy/engine/stored_entries.h"
#include "vm/image.h"

namespace sluice::proxy {

Result<void> SnapshotHost::begin(const std::shared_ptr<const void>& module) {
  error_ = {};
  stale_ = false;
  if (module_.get() != module.get()) {
    module_ = module;
    served_ = static_cast<const Served*>(module.get());
    cells_.clear();
    cells_.resize(served_->module->states.size());
  }
  if (const Result<void> pinned = reader_.pin(); !pinned) return pinned.error();
  if (commit_ != 0 && environment_.store().published() == commit_) return {};
  const Result<const store::Snapshot*> newest = reader_.renew();
  if (!newest) return newest.error();
  commit_ = (*newest)->commit();
  return {};
}

const store::Snapshot* SnapshotHost::snapshot_here() {
  const store::Snapshot* here = reader_.snapshot();
  if (here != nullptr && here->commit() == commit_) return here;
  const Result<const store::Snapshot*> newest = reader_.renew();
  if (!newest) {
    error_ = newest.error();
    return nullptr;
  }
  if ((*newest)->commit() == commit_) return *newest;
  stale_ = true;
  return nullptr;
}

bool SnapshotHost::state(std::uint16_t number, vm::Value& out) {
  Cell& cell = cells_[number];
  if (cell.commit != commit_ && !read(number, cell)) return false;
  if (cell.present) out = cell.value;
  return cell.present;
}

bool SnapshotHost::read(std::uint16_t number, Cell& cell) {
  const store::Snapshot* here = snapshot_here();
  if (here == nullptr) return false;
  const Result<std::optional<std::string_view>> bytes = here->get(served_->state_keys[number]);
  if (!bytes) {
    error_ = bytes.error();
    return false;
  }
  const vm::State& state = served_->module->states[number];
  std::optional<vm::Value> value;
  if (*bytes) {
    value = vm::decode_state(state.slot, **bytes);
    if (!value) {
      error_ = fail(Errc::damaged, "a state's bytes are not of its slot");
      return false;
    }
  } else if (!state.slot.optional) {
    value = state.first;
  }
  cell.commit = commit_;
  cell.present = value.has_value();
  if (!value) return true;
  cell.value = *value;
  if (value->type == vm::Type::text) {
    // Beyond this turn the snapshot is gone and the cell is not.
    cell.text.assign(value->text());
    cell.value.data = cell.text.data();
  }
  return true;
}

bool SnapshotHost::get(std::string_view key, std::string_view& value) {
  const store::Snapshot* here = snapshot_here();
  if (here == nullptr) return false;
  const Result<std::optional<std::string_view>> read = here->get(key);
  if (!read) error_ = read.error();
  if (!read || !*read) return false;
  value = **read;
  return true;
}

std::size_t SnapshotHost::scan(const vm::KeyRange& range, std::span<vm::Entry> out) {
  const store::Snapshot* here = snapshot_here();
  if (here == nullptr) return 0;
  StoredEntries entries(here, range, error_);
  std::size_t n = 0;
  for (; n < out.size() && entries.more(out.size() - n); entries.step()) out[n++] = {entries.entry().key, entries.entry().value};
  return n;
}

Result<void> SnapshotHost::open_document(std::string_view key) {
  const Result<const store::Snapshot*> newest = reader_.renew();
  if (!newest) return newest.error();
  commit_ = (*newest)->commit();
  Result<store::Document> document = (*newest)->document(key, std::move(document_));
  if (!document) return document.error();
  document_ = std::move(*document);
  edit_.open(document_, key);
  return {};
}

Result<std::uint64_t> SnapshotHost::seq() {
  const store::Snapshot* here = snapshot_here();
  if (here == nullptr) return error_.code != Errc::none ? error_ : fail(Errc::storage, "a commit came between");
  const Result<std::optional<std::string_view>> bytes = here->get(vm::kClockKey);
  if (!bytes) return bytes.error();
  if (!*bytes) return std::uint64_t{0};
  const std::optional<vm::Clock> clock = vm::decode_clock(**bytes);
  if (!clock) return fail(Errc::damaged, "the clock's bytes are not a clock");
  return clock->seq;
}

bool SnapshotHost::doc(vm::Value& out) {
  if (!edit_.exists()) return false;
  const bool bytes = served_->module->documents.kind == vm::DocumentKind::bytes;
  out = vm::Value::span(edit_.whole(), bytes ? vm::Type::bytes : vm::Type::text);
  return true;
}

}  // namespace sluice::proxy
