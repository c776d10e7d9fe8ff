// When the timers of one store run: each at its period after its last run, which is kept with what that run changed.
//
//   01 02 NAME   u64 little endian, ms since 1970: the last run of the timer NAME, or when it was first seen
//
// A run that changes nothing is remembered and stored with the next commit, whatever that is of: an idle timer costs no
// disk. Its one trace is that it may come early after a restart.
// Source: design module.md 1.4, 3.1, 4.1.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/batch.h"
#include "store/store.h"
#include "vm/base/result.h"
#include "vm/module.h"

namespace sluice::proxy {

// Thread: owner.
class Timers {
 public:
  struct Timer {
    std::uint32_t input = 0;             // in the module
    std::uint64_t every_ms = 0;
    std::uint64_t last_ms = 0;           // as this owner knows it
    std::optional<std::uint64_t> stored_ms;
    std::string key;
    std::uint64_t failures = 0;          // in a row
    std::uint64_t said_ms = 0;           // when the log last heard of them

    std::string_view name() const { return std::string_view(key).substr(2); }
  };

  // Whether they run when they are due; else only when somebody asks.
  void run_by_themselves(bool yes) { by_themselves_ = yes; }

  // What the store has. Timers it has never seen count from `now_ms` on; what it has of others is to go.
  // Errors: the store's.
  Result<void> load(const vm::Module& module, const store::Snapshot& snapshot, std::uint64_t now_ms);
  // Of a store that is being created.
  void load_first(const vm::Module& module, std::uint64_t now_ms);
  // Those of the module that comes next keep their last runs by name.
  void swap(const vm::Module& module, std::uint64_t now_ms);

  std::size_t size() const { return timers_.size(); }
  Timer& operator[](std::size_t i) { return timers_[i]; }
  bool due(std::size_t i, std::uint64_t now_ms) const { return by_themselves_ && due_ms(i) <= now_ms; }
  // One is due, or something must be stored.
  bool wants(std::uint64_t now_ms) const;
  // Units: ms from `wall_ms` until wants() becomes true, at most a minute, since the clock may be set; -1: never.
  int wait_ms(std::uint64_t wall_ms) const;
  // Nothing is wanted before: what failed is not tried again at once.
  void hold_until(std::uint64_t ms) { held_until_ms_ = ms; }

  // First seen, or gone: to be stored even when nothing else is.
  bool must_store(std::uint64_t now_ms) const { return must_store_ && held_until_ms_ <= now_ms; }
  // So has something else that came with the module.
  void store_soon() { must_store_ = true; }
  void stage(store::Batch& batch) const;
  void committed();
  // The commit failed: what it was to store is due again, after what hold_until() says.
  void failed();

 private:
  std::uint64_t due_ms(std::size_t i) const;
  std::optional<std::uint64_t> next_ms() const;
  void take(const vm::Module& module, std::uint64_t now_ms);

  std::vector<Timer> timers_;
  std::vector<std::string> gone_;        // keys to erase
  bool must_store_ = false;
  bool by_themselves_ = true;
  std::uint64_t held_until_ms_ = 0;
};

}  // namespace sluice::proxy
