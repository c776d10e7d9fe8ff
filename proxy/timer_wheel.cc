#include "proxy/timer_wheel.h"

#include <algorithm>
#include <bit>

namespace sluice::proxy {

TimerWheel::TimerWheel(std::uint64_t now_ms) : now_ms_(now_ms) { lists_.fill(kNone); }

TimerId TimerWheel::start(std::uint64_t at_ms, void* target, std::uint32_t tag, Fire fire, const void* owner) {
  std::uint32_t index = free_;
  if (index == kNone) {
    index = static_cast<std::uint32_t>(nodes_.size());
    nodes_.emplace_back();
  } else {
    free_ = nodes_[index].next;
  }
  Node& n = nodes_[index];
  n.target = target;
  n.tag = tag;
  n.fire = fire;
  n.owner = owner;
  n.at_ms = at_ms == 0 ? 0 : std::max(at_ms, now_ms_ + 1);   // the slot of this very tick has been emptied already
  if (at_ms == 0) push(index, kImmediate);
  else link(index);
  ++count_;
  return {index, n.generation};
}

void TimerWheel::link(std::uint32_t index) {
  const std::uint64_t at = nodes_[index].at_ms;
  if (at - now_ms_ < kNear) {
    const std::uint32_t slot = static_cast<std::uint32_t>(at % kNear);
    near_bits_[slot / 64] |= std::uint64_t{1} << (slot % 64);
    ++near_count_;
    push(index, slot);
  } else {
    // Beyond the far wheel's reach: its last slot, and from there on again.
    const std::uint64_t turn = std::min(at / kNear, now_ms_ / kNear + kFar - 1);
    push(index, kNear + static_cast<std::uint32_t>(turn % kFar));
  }
}

void TimerWheel::push(std::uint32_t index, std::uint32_t list) {
  Node& n = nodes_[index];
  n.list = list;
  n.previous = kNone;
  n.next = lists_[list];
  if (n.next != kNone) nodes_[n.next].previous = index;
  lists_[list] = index;
}

void TimerWheel::unlink(std::uint32_t index) {
  Node& n = nodes_[index];
  if (n.previous != kNone) nodes_[n.previous].next = n.next;
  else lists_[n.list] = n.next;
  if (n.next != kNone) nodes_[n.next].previous = n.previous;
  if (n.list < kNear) {
    --near_count_;
    if (lists_[n.list] == kNone) near_bits_[n.list / 64] &= ~(std::uint64_t{1} << (n.list % 64));
  }
  n.list = kNone;
}

void TimerWheel::release(std::uint32_t index) {
  Node& n = nodes_[index];
  if (++n.generation == 0) n.generation = 1;
  n.target = nullptr;
  n.owner = nullptr;
  n.next = free_;
  free_ = index;
  --count_;
}

void TimerWheel::stop(TimerId& id) {
  const TimerId was = id;
  id = {};
  if (was.generation == 0 || was.slot >= nodes_.size()) return;
  const Node& n = nodes_[was.slot];
  if (n.generation != was.generation || n.list == kNone) return;
  unlink(was.slot);
  release(was.slot);
}

void TimerWheel::stop_all_of(const void* owner) {
  for (std::uint32_t i = 0; i < nodes_.size(); ++i)
    if (nodes_[i].list != kNone && nodes_[i].owner == owner) {
      unlink(i);
      release(i);
    }
}

void TimerWheel::cascade() {
  std::uint32_t& list = lists_[kNear + static_cast<std::uint32_t>(now_ms_ / kNear % kFar)];
  std::uint32_t index = list;
  list = kNone;
  while (index != kNone) {
    const std::uint32_t next = nodes_[index].next;
    link(index);
    index = next;
  }
}

void TimerWheel::advance(std::uint64_t to_ms) {
  // What is started from here on is for the next turn. Pushing turns the order round: the first started comes first.
  while (lists_[kImmediate] != kNone) {
    const std::uint32_t index = lists_[kImmediate];
    unlink(index);
    push(index, kFiring);
  }
  fire_all(kFiring);
  while (now_ms_ < to_ms) {
    // To the next slot that holds something, or to the turn of the near wheel.
    const std::uint64_t turn = (now_ms_ / kNear + 1) * kNear;
    const std::uint64_t step = near_count_ == 0 ? std::min(turn, to_ms) : std::min({turn, to_ms, next_ms()});
    now_ms_ = step;
    if (step == turn) cascade();
    fire_all(static_cast<std::uint32_t>(now_ms_ % kNear));
  }
}

void TimerWheel::fire_all(std::uint32_t list) {
  while (lists_[list] != kNone) {
    const std::uint32_t index = lists_[list];
    const Node due = nodes_[index];
    unlink(index);
    release(index);
    due.fire(due.target, due.tag);
  }
}

std::uint64_t TimerWheel::next_ms() const {
  if (count_ == 0) return kNever;
  const std::uint64_t turn = (now_ms_ / kNear + 1) * kNear;
  if (near_count_ == 0) return turn;
  const std::uint32_t from = static_cast<std::uint32_t>((now_ms_ + 1) % kNear);
  constexpr std::uint32_t words = kNear / 64;
  for (std::uint32_t i = 0; i <= words; ++i) {
    const std::uint32_t word = (from / 64 + i) % words;
    std::uint64_t bits = near_bits_[word];
    if (i == 0) bits &= ~std::uint64_t{0} << (from % 64);
    if (i == words) bits &= ~(~std::uint64_t{0} << (from % 64));
    if (bits == 0) continue;
    const std::uint32_t slot = word * 64 + static_cast<std::uint32_t>(std::countr_zero(bits));
    const std::uint64_t at = now_ms_ + 1 + (slot + kNear - from) % kNear;
    // Beyond the turn it may stand behind what the far wheel brings.
    return std::min(at, count_ > near_count_ ? turn : at);
  }
  return turn;
}

}  // namespace sluice::proxy
