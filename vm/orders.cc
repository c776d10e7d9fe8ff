#include "vm/orders.h"

#include <algorithm>
#include <array>
#include <vector>

#include "vm/base/check.h"

namespace sluice::vm {
namespace {
constexpr std::uint32_t kEvery = 64;              // entries behind a new fence
constexpr std::uint32_t kSplitAbove = 2 * kEvery;
constexpr std::uint32_t kMergeBelow = kEvery / 2; // two fences that have fewer together become one
constexpr std::size_t kBlock = 128, kBlockMax = 2 * kBlock;   // fences
constexpr std::size_t kChunk = 64;                // entries asked for at once

// From this key up to the next fence's there are `count` entries. The order's first fence has the empty key.
struct Fence {
  std::string key;                                // without the order's prefix
  std::uint32_t count = 0;
};
// Fences in a row, so that what lies before one of them is added up over blocks first.
struct Block {
  std::uint64_t count = 0;                        // of its fences together
  std::vector<Fence> fences;                      // at least one
};

// The least key above all that begin with `prefix`; empty: there is none.
std::string end_of(std::string_view prefix) {
  std::string end(prefix);
  while (!end.empty() && end.back() == '\xff') end.pop_back();
  if (!end.empty()) ++end.back();
  return end;
}

struct Order {
  struct Place {
    std::size_t block = 0, fence = 0;
  };

  explicit Order(std::string_view p) : prefix(p), end(end_of(p)) {}

  Place place(std::string_view key) const {
    const auto block = std::upper_bound(blocks.begin() + 1, blocks.end(), key,
                                        [](std::string_view k, const Block& b) { return k < b.fences.front().key; }) - 1;
    const auto fence = std::upper_bound(block->fences.begin() + 1, block->fences.end(), key,
                                        [](std::string_view k, const Fence& f) { return k < f.key; }) - 1;
    return {static_cast<std::size_t>(block - blocks.begin()), static_cast<std::size_t>(fence - block->fences.begin())};
  }
  std::string whole(std::string_view key) const { return std::string(prefix).append(key); }
  // The first key behind the entries of a fence, whole; empty: there is no end.
  std::string behind(Place at) const {
    if (at.fence + 1 < blocks[at.block].fences.size()) return whole(blocks[at.block].fences[at.fence + 1].key);
    return at.block + 1 < blocks.size() ? whole(blocks[at.block + 1].fences.front().key) : end;
  }

  void build(Records& records);
  void split(Place at, Records& records);
  void add(std::string_view key);
  void take(std::string_view key);
  void merge(Place at);
  void divide(std::size_t block);

  std::string prefix, end;
  std::uint64_t count = 0;
  std::vector<Block> blocks;                      // at least one
};

// Calls visit(key) for each entry of the range.
template <class Visit>
void each(Records& records, std::string low, std::string_view high, Visit visit) {
  std::array<Entry, kChunk> entries;
  while (true) {
    const std::size_t got = records.scan({low, high, false}, entries);
    for (std::size_t i = 0; i < got; ++i) visit(entries[i].key);
    if (got < entries.size()) return;
    low.assign(entries[got - 1].key).push_back('\0');
  }
}

void Order::build(Records& records) {
  blocks.assign(1, Block());
  blocks.back().fences.emplace_back();
  count = 0;
  each(records, prefix, end, [&](std::string_view key) {
    Block* block = &blocks.back();
    if (block->fences.back().count == kEvery) {
      if (block->fences.size() == kBlock) {
        blocks.emplace_back();
        block = &blocks.back();
      }
      block->fences.push_back({std::string(key.substr(prefix.size())), 0});
    }
    ++block->fences.back().count;
    ++block->count;
    ++count;
  });
}

// Puts fences into one that has got too many entries.
void Order::split(Place at, Records& records) {
  std::vector<Fence> parts(1);
  parts[0].key = blocks[at.block].fences[at.fence].key;
  each(records, whole(parts[0].key), behind(at), [&](std::string_view key) {
    if (parts.back().count == kEvery) parts.push_back({std::string(key.substr(prefix.size())), 0});
    ++parts.back().count;
  });
  std::vector<Fence>& fences = blocks[at.block].fences;
  const auto begin = fences.begin() + static_cast<std::ptrdiff_t>(at.fence);
  // Fewer are there only when they cannot be read; what a fence counts in all stays the sum of what is below it.
  std::uint64_t found = 0;
  for (const Fence& part : parts) found += part.count;
  blocks[at.block].count += found - begin->count;
  count += found - begin->count;
  *begin = std::move(parts[0]);
  fences.insert(begin + 1, std::make_move_iterator(parts.begin() + 1), std::make_move_iterator(parts.end()));
  if (fences.size() > kBlockMax) divide(at.block);
}

// Makes as many blocks of one as it has fences for.
void Order::divide(std::size_t block) {
  std::vector<Fence> fences = std::move(blocks[block].fences);
  std::vector<Block> parts;
  for (std::size_t i = 0; i < fences.size(); ++i) {
    if (i % kBlock == 0) parts.emplace_back();
    parts.back().count += fences[i].count;
    parts.back().fences.push_back(std::move(fences[i]));
  }
  const auto at = blocks.begin() + static_cast<std::ptrdiff_t>(block);
  *at = std::move(parts[0]);
  blocks.insert(at + 1, std::make_move_iterator(parts.begin() + 1), std::make_move_iterator(parts.end()));
}

void Order::add(std::string_view key) {
  const Place at = place(key);
  ++blocks[at.block].fences[at.fence].count;
  ++blocks[at.block].count;
  ++count;
}

void Order::take(std::string_view key) {
  const Place at = place(key);
  Fence& fence = blocks[at.block].fences[at.fence];
  SLUICE_ASSERT(fence.count != 0);
  if (fence.count == 0) return;
  --fence.count;
  --blocks[at.block].count;
  --count;
  if (fence.count < kMergeBelow) merge(at);
}

// Gives the entries of a fence to the one before it when the two are few, so that a queue, which loses at its front what
// it gets at its end, leaves no empty fences behind.
void Order::merge(Place at) {
  Block& block = blocks[at.block];
  if (at.fence == 0) {
    if (block.fences.size() > 1 && block.fences[0].count + block.fences[1].count < kMergeBelow) return merge({at.block, 1});
    // A block's first fence goes to the block before only when it is alone and empty.
    if (at.block != 0 && block.fences.size() == 1 && block.count == 0)
      blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(at.block));
    return;
  }
  Fence& before = block.fences[at.fence - 1];
  Fence& fence = block.fences[at.fence];
  if (before.count + fence.count >= kMergeBelow) return;
  before.count += fence.count;
  block.fences.erase(block.fences.begin() + static_cast<std::ptrdiff_t>(at.fence));
}
}  // namespace

struct Orders::Impl {
  // What the running event did, for undoing it. Keys stand one behind the other in `keys`, each behind its prefix.
  struct Move {
    std::uint32_t prefix = 0, key = 0;            // bytes; the key begins with the prefix
    bool inserted = false;
  };
  std::vector<Order> orders;
  std::vector<Move> moves;
  std::string keys;

  Order* find(std::string_view prefix) {
    for (Order& order : orders)
      if (order.prefix == prefix) return &order;
    return nullptr;
  }
  Order& built(std::string_view prefix, Records& records) {
    if (Order* const order = find(prefix)) return *order;
    orders.emplace_back(prefix);
    orders.back().build(records);
    return orders.back();
  }
  void move(std::string_view prefix, std::string_view key, bool inserted) {
    moves.push_back({static_cast<std::uint32_t>(prefix.size()), static_cast<std::uint32_t>(key.size()), inserted});
    keys.append(key);
    apply(prefix, key, inserted);
  }
  void apply(std::string_view prefix, std::string_view key, bool inserted) {
    Order* const order = find(prefix);
    if (order == nullptr) return;
    key.remove_prefix(prefix.size());
    if (inserted) {
      order->add(key);
    } else {
      order->take(key);
    }
  }
};

Orders::Orders() : impl_(std::make_unique<Impl>()) {}
Orders::~Orders() = default;

std::uint64_t Orders::rank(std::string_view prefix, std::string_view key, Records& records) {
  Order& order = impl_->built(prefix, records);
  if (!key.starts_with(prefix)) return key < prefix ? 0 : order.count;
  const std::string_view rest = key.substr(prefix.size());
  Order::Place at = order.place(rest);
  if (order.blocks[at.block].fences[at.fence].count > kSplitAbove) {
    order.split(at, records);
    at = order.place(rest);
  }
  std::uint64_t before = 0;
  for (std::size_t b = 0; b < at.block; ++b) before += order.blocks[b].count;
  const std::vector<Fence>& fences = order.blocks[at.block].fences;
  for (std::size_t f = 0; f < at.fence; ++f) before += fences[f].count;
  each(records, order.whole(fences[at.fence].key), key, [&before](std::string_view) { ++before; });
  return before;
}

bool Orders::at(std::string_view prefix, std::uint64_t n, Records& records, Entry& out) {
  Order& order = impl_->built(prefix, records);
  while (n < order.count) {
    std::uint64_t rest = n;
    Order::Place at;
    while (rest >= order.blocks[at.block].count) rest -= order.blocks[at.block++].count;
    const std::vector<Fence>& fences = order.blocks[at.block].fences;
    while (rest >= fences[at.fence].count) rest -= fences[at.fence++].count;
    if (fences[at.fence].count > kSplitAbove) {
      order.split(at, records);
      continue;
    }
    std::array<Entry, kChunk> entries;
    std::string low = order.whole(fences[at.fence].key);
    const std::string high = order.behind(at);
    while (true) {
      const std::size_t wanted = static_cast<std::size_t>(std::min<std::uint64_t>(rest + 1, kChunk));
      const std::size_t got = records.scan({low, high, false}, std::span<Entry>(entries.data(), wanted));
      if (rest < got) {
        out = entries[static_cast<std::size_t>(rest)];
        return true;
      }
      if (got < wanted) return false;
      rest -= got;
      low.assign(entries[got - 1].key).push_back('\0');
    }
  }
  return false;
}

void Orders::inserted(std::string_view prefix, std::string_view key) { impl_->move(prefix, key, true); }
void Orders::erased(std::string_view prefix, std::string_view key) { impl_->move(prefix, key, false); }

void Orders::begin_event() { keep_event(); }

void Orders::keep_event() {
  impl_->moves.clear();
  impl_->keys.clear();
}

void Orders::undo_event() {
  Impl& impl = *impl_;
  std::size_t end = impl.keys.size();
  for (auto move = impl.moves.rbegin(); move != impl.moves.rend(); ++move) {
    const std::string_view key = std::string_view(impl.keys).substr(end - move->key, move->key);
    impl.apply(key.substr(0, move->prefix), key, !move->inserted);
    end -= move->key;
  }
  keep_event();
}

void Orders::clear() {
  impl_->orders.clear();
  keep_event();
}

std::size_t Orders::bytes() const {
  constexpr std::size_t inside = 15;              // characters that a std::string holds without memory of its own
  std::size_t bytes = impl_->keys.capacity() + impl_->moves.capacity() * sizeof(Impl::Move);
  for (const Order& order : impl_->orders) {
    bytes += sizeof order + order.blocks.capacity() * sizeof(Block);
    for (const Block& block : order.blocks) {
      bytes += block.fences.capacity() * sizeof(Fence);
      for (const Fence& fence : block.fences)
        if (fence.key.capacity() > inside) bytes += fence.key.capacity() + 1;
    }
  }
  return bytes;
}

}  // namespace sluice::vm
