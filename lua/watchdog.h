// Sees a VM that runs one piece of Lua too long, and stops it in place.
//
// A hook stops interpreted Lua anywhere, but one that stands by makes loops 1.5 times slower. So none does: this thread
// looks at each VM's counter now and then, and signals the worker's thread when it has not moved for too long; the
// signal's handler, on that thread, sets a hook that raises an error at the next instruction. LuaJIT allows
// lua_sethook() in a handler. What counts is the thread's own time on a processor: a machine that is busy with others
// condemns nobody. C functions and compiled loops are not stopped (the JIT is off by default for this).
#pragma once
#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "lua/api.h"

namespace sluice::lua {

// One VM, as the watchdog and the signal handler see it. The watchdog keeps each for as long as itself lives, so that a
// signal under way never points at nothing.
// Thread: the VM's writes; any reads.
struct Watch {
  std::atomic<lua_State*> running{nullptr};   // not null: inside a call
  std::atomic<std::uint64_t> serial{0};       // of that call
  std::atomic<std::uint64_t> condemned{0};    // the call that the watchdog wants stopped
  // Is the call that runs now to be stopped? On its thread.
  bool is_condemned() const { return serial.load(std::memory_order_relaxed) == condemned.load(std::memory_order_relaxed); }
  std::atomic<std::uint64_t> fired{0};        // how many were
  std::atomic<std::uint32_t> limit_ms{0};     // 0: for ever
  std::atomic<bool> closed{false};
  // What is set of these stands until the call is over, or the hook has run.
  static constexpr std::uint8_t kStop = 1, kSample = 2;
  std::atomic<std::uint8_t> hooked{0};
  std::atomic<lua_Hook> sample{nullptr};      // while time is sampled: what a tick sets (sampler.h)
  std::atomic<std::uint64_t> ticks{0}, idle_ticks{0};   // inside a call and not yet taken; outside of calls
  pthread_t thread{};                         // guarded by Watchdog::mutex_
};

// Sets the hook that takes a sample before the next instruction, unless one is set already; the call that the watchdog
// wants stopped is stopped first. Both on the VM's thread, inside a call.
void ask_for_sample(Watch& watch, lua_Hook hook);
void sample_taken(Watch& watch, lua_State* L);

// Thread: any.
class Watchdog {
 public:
  Watchdog();
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // Ignored by default, so one that comes late, when nobody handles it, does nothing.
  static constexpr int kSignal = SIGURG;

  std::shared_ptr<Watch> add();
  // The caller runs the VM from now on.
  void adopt(Watch& watch);

 private:
  void run();

  std::mutex mutex_;                          // held for a look at the list, never while Lua runs
  std::condition_variable wake_;
  bool ending_ = false;
  struct Seen {
    std::shared_ptr<Watch> watch;
    std::uint64_t serial = 0;
    std::uint64_t began_ms = 0;               // of its thread's time, when it was first seen
    bool dated = false;
    std::uint32_t closed_looks = 0;
  };
  std::vector<Seen> list_;
  std::thread thread_;
};

}  // namespace sluice::lua
