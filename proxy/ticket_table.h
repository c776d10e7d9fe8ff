// Who waits for which event, by slot and generation, so that a late answer finds nobody.
#pragma once
#include <cstdint>
#include <vector>

#include "proxy/event.h"
#include "proxy/route.h"

namespace sluice::proxy {

// Thread: worker.
class TicketTable {
 public:
  struct Waiting {
    Waiter* waiter = nullptr;           // null: forgotten
    void* owner = nullptr;              // who counts it
    std::uint32_t tag = 0;
  };

  Ticket add(Waiter* waiter, std::uint32_t tag, void* owner) {
    std::uint32_t slot = free_;
    if (slot == kNone) {
      slot = static_cast<std::uint32_t>(slots_.size());
      slots_.emplace_back();
    } else {
      free_ = slots_[slot].next;
    }
    Slot& s = slots_[slot];
    s.waiting = {waiter, owner, tag};
    s.taken = true;
    return {slot, s.generation, tag};
  }

  // The answer will find nobody. The slot stays taken until it comes, since its owner counts it.
  void forget(const Ticket& t) {
    if (Slot* s = find(t)) s->waiting.waiter = nullptr;
  }

  // Ends the ticket. False: it names nothing.
  bool take(const Ticket& t, Waiting& out) {
    Slot* s = find(t);
    if (!s) return false;
    out = s->waiting;
    s->waiting = {};
    s->taken = false;
    if (++s->generation == 0) s->generation = 1;
    s->next = free_;
    free_ = t.slot;
    return true;
  }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  struct Slot {
    Waiting waiting;
    std::uint32_t generation = 1;
    std::uint32_t next = kNone;
    bool taken = false;
  };
  Slot* find(const Ticket& t) {
    if (t.generation == 0 || t.slot >= slots_.size()) return nullptr;
    Slot& s = slots_[t.slot];
    return s.taken && s.generation == t.generation ? &s : nullptr;
  }
  std::vector<Slot> slots_;
  std::uint32_t free_ = kNone;
};

}  // namespace sluice::proxy
