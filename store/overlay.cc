#include "store/overlay.h"

#include <bit>
#include <cstring>
#include <utility>

#include "vm/base/check.h"

namespace sluice::store {

namespace {
constexpr std::size_t kWarmNodes = 1024;         // a KiB each
constexpr std::size_t kLeafEntries = 32;
constexpr std::size_t kChildren = 32;
constexpr std::size_t kDepthMax = 12;            // 16^12 leafs

// The first bytes of a key as a number that sorts as they do.
std::uint64_t head_of(std::string_view key) {
  std::uint64_t head = 0;
  if (key.size() >= sizeof head) {
    std::memcpy(&head, key.data(), sizeof head);
    return __builtin_bswap64(head);
  }
  for (std::size_t i = 0; i < key.size(); ++i)
    head |= std::uint64_t{static_cast<unsigned char>(key[i])} << (56 - 8 * i);
  return head;
}

// Places for values: 16 to 1,024 bytes in steps of 16, then doubling. Class 0 is that of no bytes.
constexpr std::size_t kSteps = 64, kStep = 16, kStepMax = kSteps * kStep;
std::size_t class_of(std::size_t bytes) {
  if (bytes <= kStepMax) return (bytes + kStep - 1) / kStep;
  return kSteps + static_cast<std::size_t>(std::bit_width((bytes - 1) / kStepMax));
}
std::size_t class_bytes(std::size_t number) {
  return number <= kSteps ? number * kStep : kStepMax << (number - kSteps);
}
}  // namespace

struct Overlay::Entry {
  std::uint64_t head = 0;
  const char* key_at = nullptr;
  const char* value_at = nullptr;
  std::uint32_t value_size = 0;
  std::uint16_t key_size = 0;
  bool present = false;

  std::string_view key() const { return {key_at, key_size}; }
  std::string_view value() const { return {value_at, value_size}; }
  bool less(std::uint64_t other_head, std::string_view other) const {
    return head != other_head ? head < other_head : key() < other;
  }
  bool is(std::uint64_t other_head, std::string_view other) const { return head == other_head && key() == other; }
};

// A leaf may be empty: an undo takes entries out and moves nothing between leafs.
struct Overlay::Leaf {
  Leaf* previous = nullptr;
  Leaf* next = nullptr;
  std::size_t count = 0;
  std::array<Entry, kLeafEntries> entries;

  std::size_t lower_bound(std::uint64_t head, std::string_view key) const {
    std::size_t low = 0, high = count;
    while (low < high) {
      const std::size_t middle = (low + high) / 2;
      if (entries[middle].less(head, key)) low = middle + 1;
      else high = middle;
    }
    return low;
  }
};

// Child i holds the keys from separator i - 1 on and below separator i.
struct Overlay::Inner {
  struct Separator {
    std::uint64_t head = 0;
    std::string_view key;
  };
  std::size_t count = 0;                         // children
  std::array<void*, kChildren> children;
  std::array<Separator, kChildren> separators;   // the first count - 1

  std::size_t child_of(std::uint64_t head, std::string_view key) const {
    std::size_t low = 0, high = count - 1;
    while (low < high) {
      const std::size_t middle = (low + high) / 2;
      const Separator& s = separators[middle];
      if (s.head != head ? s.head < head : s.key <= key) low = middle + 1;
      else high = middle;
    }
    return low;
  }
};

struct Overlay::Path {
  std::array<Step, kDepthMax> steps;
};

Overlay::Overlay() { clear(); }
Overlay::~Overlay() = default;

Overlay::Leaf* Overlay::new_leaf() {
  if (leafs_used_ == leafs_.size()) leafs_.push_back(std::make_unique_for_overwrite<Leaf>());
  Leaf* leaf = leafs_[leafs_used_++].get();
  leaf->previous = leaf->next = nullptr;
  leaf->count = 0;
  return leaf;
}

Overlay::Inner* Overlay::new_inner() {
  if (inners_used_ == inners_.size()) inners_.push_back(std::make_unique_for_overwrite<Inner>());
  Inner* inner = inners_[inners_used_++].get();
  inner->count = 0;
  return inner;
}

Overlay::Leaf* Overlay::descend(std::uint64_t head, std::string_view key, Path* path) const {
  void* node = root_;
  for (std::size_t level = 0; level < depth_; ++level) {
    Inner* inner = static_cast<Inner*>(node);
    const std::size_t child = inner->child_of(head, key);
    if (path != nullptr) path->steps[level] = {inner, child};
    node = inner->children[child];
  }
  return static_cast<Leaf*>(node);
}

Overlay::Found Overlay::find(std::string_view key) const {
  if (size_ == 0) return {};
  const std::uint64_t head = head_of(key);
  const Leaf* leaf = descend(head, key, nullptr);
  const std::size_t at = leaf->lower_bound(head, key);
  if (at == leaf->count || !leaf->entries[at].is(head, key)) return {};
  const Entry& entry = leaf->entries[at];
  if (!entry.present) return {Holds::absence, {}};
  return {Holds::value, entry.value()};
}

void Overlay::put(std::string_view key, std::string_view value) { set(key, value, true); }
void Overlay::erase(std::string_view key) { set(key, {}, false); }

std::string_view Overlay::hold(std::string_view value, bool& recycled) {
  recycled = false;
  if (value.empty()) return {};
  const std::size_t number = class_of(value.size());
  SLUICE_CHECK(number < kClasses);
  char* place = free_[number];
  if (place != nullptr) {
    std::memcpy(&free_[number], place, sizeof free_[number]);
    recycled = true;
  } else {
    place = arena_.take(class_bytes(number));
  }
  // What is held may be a part of what it replaces, which is still in its place.
  std::memcpy(place, value.data(), value.size());
  return {place, value.size()};
}

void Overlay::give_back(std::string_view value) {
  if (value.empty()) return;
  char*& first = free_[class_of(value.size())];
  char* place = const_cast<char*>(value.data());
  std::memcpy(place, &first, sizeof first);
  first = place;
}

void Overlay::set(std::string_view key, std::string_view value, bool present) {
  // LMDB takes keys of 1..511 bytes; the key of one zero byte is the store's own.
  SLUICE_CHECK(!key.empty() && key.size() <= 511 && key != std::string_view("\0", 1));
  const std::uint64_t head = head_of(key);
  Path path;
  Leaf* leaf = descend(head, key, &path);
  const std::size_t at = leaf->lower_bound(head, key);
  Undo undo;
  if (at < leaf->count && leaf->entries[at].is(head, key)) {
    Entry& entry = leaf->entries[at];
    if (entry.present == present && (!present || entry.value() == value)) return;
    undo.key = entry.key();
    undo.value = entry.value();
    undo.was = entry.present ? Holds::value : Holds::absence;
    const std::string_view held = hold(value, undo.recycled);
    entry.value_at = held.data();
    entry.value_size = static_cast<std::uint32_t>(held.size());
    entry.present = present;
  } else {
    char* name = arena_.take(key.size());
    std::memcpy(name, key.data(), key.size());
    undo.key = {name, key.size()};
    const std::string_view held = hold(value, undo.recycled);
    Entry entry;
    entry.head = head;
    entry.key_at = name;
    entry.key_size = static_cast<std::uint16_t>(key.size());
    entry.value_at = held.data();
    entry.value_size = static_cast<std::uint32_t>(held.size());
    entry.present = present;
    insert(path, leaf, at, entry);
    ++size_;
  }
  journal_.push_back(undo);
}

void Overlay::insert(Path& path, Leaf* leaf, std::size_t at, const Entry& entry) {
  if (leaf->count == kLeafEntries) {
    Leaf* right = new_leaf();
    // Keys that come in their order fill each leaf before the next begins; others find room in both halves.
    const std::size_t stay = at == kLeafEntries ? kLeafEntries : kLeafEntries / 2;
    right->count = kLeafEntries - stay;
    std::copy(leaf->entries.begin() + stay, leaf->entries.end(), right->entries.begin());
    leaf->count = stay;
    right->previous = leaf;
    right->next = leaf->next;
    if (right->next != nullptr) right->next->previous = right;
    leaf->next = right;
    const std::string_view first = stay == kLeafEntries ? entry.key() : right->entries[0].key();
    char* separator = separators_.take(first.size());
    std::memcpy(separator, first.data(), first.size());
    grow(path, right, {separator, first.size()});
    if (at > stay || stay == kLeafEntries) {
      leaf = right;
      at -= stay;
    }
  }
  Entry* place = leaf->entries.data() + at;
  std::copy_backward(place, leaf->entries.data() + leaf->count, leaf->entries.data() + leaf->count + 1);
  *place = entry;
  ++leaf->count;
}

// `right` comes behind the child that the path leads to, with keys from `separator` on.
void Overlay::grow(Path& path, void* right, std::string_view separator) {
  for (std::size_t level = depth_; level-- > 0;) {
    Inner* inner = path.steps[level].inner;
    std::size_t child = path.steps[level].child;
    Inner* behind = nullptr;
    std::string_view raised;
    if (inner->count == kChildren) {
      behind = new_inner();
      const std::size_t stay = child == kChildren - 1 ? kChildren - 1 : kChildren / 2;
      raised = inner->separators[stay - 1].key;
      behind->count = kChildren - stay;
      std::copy(inner->children.begin() + stay, inner->children.end(), behind->children.begin());
      std::copy(inner->separators.begin() + stay, inner->separators.begin() + kChildren - 1, behind->separators.begin());
      inner->count = stay;
    }
    Inner* into = inner;
    if (behind != nullptr && child >= inner->count) {
      child -= inner->count;
      into = behind;
    }
    std::copy_backward(into->children.begin() + child + 1, into->children.begin() + into->count,
                       into->children.begin() + into->count + 1);
    std::copy_backward(into->separators.begin() + child, into->separators.begin() + into->count - 1,
                       into->separators.begin() + into->count);
    into->children[child + 1] = right;
    into->separators[child] = {head_of(separator), separator};
    ++into->count;
    if (behind == nullptr) return;
    right = behind;
    separator = raised;
  }
  SLUICE_CHECK(depth_ < kDepthMax);
  Inner* top = new_inner();
  top->count = 2;
  top->children[0] = root_;
  top->children[1] = right;
  top->separators[0] = {head_of(separator), separator};
  root_ = top;
  ++depth_;
}

void Overlay::remove(std::string_view key) {
  const std::uint64_t head = head_of(key);
  Leaf* leaf = descend(head, key, nullptr);
  const std::size_t at = leaf->lower_bound(head, key);
  SLUICE_CHECK(at < leaf->count && leaf->entries[at].is(head, key));
  std::copy(leaf->entries.begin() + at + 1, leaf->entries.begin() + leaf->count, leaf->entries.begin() + at);
  --leaf->count;
  --size_;
}

void Overlay::begin_event() {
  // What was written outside of an event stays.
  keep_event();
}

void Overlay::keep_event() {
  for (const Undo& undo : journal_) give_back(undo.value);
  journal_.clear();
  before_ = arena_.mark();
}

void Overlay::undo_event() {
  for (auto undo = journal_.rbegin(); undo != journal_.rend(); ++undo) {
    const std::uint64_t head = head_of(undo->key);
    Leaf* leaf = descend(head, undo->key, nullptr);
    const std::size_t at = leaf->lower_bound(head, undo->key);
    SLUICE_CHECK(at < leaf->count && leaf->entries[at].is(head, undo->key));
    Entry& entry = leaf->entries[at];
    if (undo->recycled) give_back(entry.value());
    if (undo->was == Holds::nothing) {
      remove(undo->key);
      continue;
    }
    entry.value_at = undo->value.data();
    entry.value_size = static_cast<std::uint32_t>(undo->value.size());
    entry.present = undo->was == Holds::value;
  }
  journal_.clear();
  arena_.back_to(before_);
}

void Overlay::clear() {
  if (leafs_.size() > kWarmNodes) leafs_.resize(kWarmNodes);
  if (inners_.size() > kWarmNodes) inners_.resize(kWarmNodes);
  leafs_used_ = inners_used_ = 0;
  root_ = new_leaf();
  depth_ = size_ = 0;
  arena_.clear();
  separators_.clear();
  free_.fill(nullptr);
  journal_.clear();
  before_ = {};
}

std::string_view Overlay::Cursor::key() const { return leaf_->entries[at_].key(); }
bool Overlay::Cursor::has_value() const { return leaf_->entries[at_].present; }
std::string_view Overlay::Cursor::value() const { return leaf_->entries[at_].value(); }

void Overlay::Cursor::next() {
  ++at_;
  while (leaf_ != nullptr && at_ == leaf_->count) {
    leaf_ = leaf_->next;
    at_ = 0;
  }
}

void Overlay::Cursor::previous() {
  while (leaf_ != nullptr && at_ == 0) {
    leaf_ = leaf_->previous;
    at_ = leaf_ != nullptr ? leaf_->count : 0;
  }
  if (leaf_ != nullptr) --at_;
}

Overlay::Cursor Overlay::first() const {
  // The leftmost leaf is the first that was made since the last clear().
  Cursor cursor(leafs_[0].get(), 0);
  if (cursor.leaf_->count == 0) {
    cursor.at_ = 0;
    while (cursor.leaf_ != nullptr && cursor.leaf_->count == 0) cursor.leaf_ = cursor.leaf_->next;
  }
  return cursor;
}

Overlay::Cursor Overlay::last() const {
  const void* node = root_;
  for (std::size_t level = 0; level < depth_; ++level) {
    const Inner* inner = static_cast<const Inner*>(node);
    node = inner->children[inner->count - 1];
  }
  const Leaf* leaf = static_cast<const Leaf*>(node);
  Cursor cursor(leaf, leaf->count);
  cursor.previous();
  return cursor;
}

Overlay::Cursor Overlay::from(std::string_view key) const {
  const std::uint64_t head = head_of(key);
  const Leaf* leaf = descend(head, key, nullptr);
  std::size_t at = leaf->lower_bound(head, key);
  while (leaf != nullptr && at == leaf->count) {
    leaf = leaf->next;
    at = 0;
  }
  return {leaf, at};
}

Overlay::Cursor Overlay::below(std::string_view key) const {
  const std::uint64_t head = head_of(key);
  const Leaf* leaf = descend(head, key, nullptr);
  Cursor cursor(leaf, leaf->lower_bound(head, key));
  cursor.previous();
  return cursor;
}

}  // namespace sluice::store
