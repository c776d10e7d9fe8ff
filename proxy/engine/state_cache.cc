#include "proxy/engine/state_cache.h"

#include <algorithm>

#include "vm/image.h"
#include "vm/layout.h"

namespace sluice::proxy {
namespace {

bool is_span(const vm::Value& v) { return v.type == vm::Type::text || v.type == vm::Type::bytes; }

bool equal(const vm::Value& a, const vm::Value& b) {
  if (is_span(a)) return a.text() == b.text();
  if (a.type == vm::Type::boolean) return a.boolean == b.boolean;
  return a.num == b.num;
}

}  // namespace

StateCache::Bytes StateCache::spare() {
  if (spare_.empty()) return {};
  Bytes bytes = std::move(spare_.back());
  spare_.pop_back();
  return bytes;
}

void StateCache::hold(Cell& cell, const vm::Value& value) {
  cell.present = true;
  cell.value = value;
  if (!is_span(value)) return;
  const std::string_view text = value.text();
  cell.text.assign(text.begin(), text.end());
  cell.value.data = cell.text.data();
}

Result<void> StateCache::load(const ServedPtr& served, const store::Snapshot& snapshot) {
  served_ = served;
  const std::vector<vm::State>& states = served->module->states;
  journal_.clear();
  changed_.clear();
  cells_.clear();
  cells_.resize(states.size());
  for (std::size_t i = 0; i < states.size(); ++i) {
    Result<std::optional<std::string_view>> bytes = snapshot.get(served->state_keys[i]);
    if (!bytes) return bytes.error();
    if (!*bytes) {
      // Never written: a `?` without a first value, or one that was cleared.
      if (!states[i].slot.optional && states[i].first) hold(cells_[i], *states[i].first);
      continue;
    }
    const std::optional<vm::Value> value = vm::decode_state(states[i].slot, **bytes);
    if (!value) return fail(Errc::damaged, "a state's bytes are not of its slot");
    hold(cells_[i], *value);
  }
  return {};
}

void StateCache::swap(const ServedPtr& served) {
  const std::vector<vm::State>& before = served_->module->states;
  const std::vector<vm::State>& after = served->module->states;
  std::vector<Cell> cells(after.size());
  changed_.clear();
  for (std::size_t i = 0; i < after.size(); ++i) {
    const auto at = std::find(served_->state_keys.begin(), served_->state_keys.end(), served->state_keys[i]);
    if (at != served_->state_keys.end()) {
      const auto was = static_cast<std::size_t>(at - served_->state_keys.begin());
      cells[i] = std::move(cells_[was]);
      if (vm::form_of(before[was].slot.base) != vm::form_of(after[i].slot.base)) cells[i].changed = true;
    } else if (after[i].first) {
      hold(cells[i], *after[i].first);
      cells[i].changed = true;
    }
    if (cells[i].changed) changed_.push_back(static_cast<std::uint16_t>(i));
  }
  cells_ = std::move(cells);
  served_ = served;
}

void StateCache::load_first(const ServedPtr& served) {
  served_ = served;
  journal_.clear();
  changed_.clear();
  cells_.clear();
  cells_.resize(served->module->states.size());
  for (std::size_t i = 0; i < cells_.size(); ++i) {
    const vm::State& state = served->module->states[i];
    if (!state.first) continue;
    hold(cells_[i], *state.first);
    cells_[i].changed = true;
    changed_.push_back(static_cast<std::uint16_t>(i));
  }
}

void StateCache::note(std::uint16_t number) {
  Cell& cell = cells_[number];
  journal_.push_back({number, cell.present, cell.value, std::move(cell.text)});
  cell.text = spare();
}

void StateCache::set(std::uint16_t number, const vm::Value& value) {
  Cell& cell = cells_[number];
  if (cell.present && equal(cell.value, value)) return;
  note(number);
  hold(cell, value);
}

void StateCache::clear(std::uint16_t number) {
  Cell& cell = cells_[number];
  if (!cell.present) return;
  note(number);
  cell.present = false;
}

void StateCache::keep_event() {
  for (Undo& undo : journal_) {
    Cell& cell = cells_[undo.number];
    if (!cell.changed) {
      cell.changed = true;
      changed_.push_back(undo.number);
    }
    if (undo.text.capacity() > 0) spare_.push_back(std::move(undo.text));
  }
  journal_.clear();
}

void StateCache::undo_event() {
  while (!journal_.empty()) {
    Undo& undo = journal_.back();
    Cell& cell = cells_[undo.number];
    if (cell.text.capacity() > 0) spare_.push_back(std::move(cell.text));
    cell.present = undo.present;
    cell.value = undo.value;
    cell.text = std::move(undo.text);
    journal_.pop_back();
  }
}

void StateCache::stage(store::Batch& batch) {
  for (const std::uint16_t number : changed_) {
    const Cell& cell = cells_[number];
    if (!cell.present) {
      batch.erase(served_->state_keys[number]);
      continue;
    }
    encoded_.clear();
    vm::encode_state(encoded_, served_->module->states[number].slot, cell.value);
    batch.put(served_->state_keys[number], encoded_);
  }
}

void StateCache::committed() {
  for (const std::uint16_t number : changed_) cells_[number].changed = false;
  changed_.clear();
}

}  // namespace sluice::proxy
