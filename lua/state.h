// One Lua VM: its memory under a limit, its entry points protected, its garbage collected between requests.
//
// LuaJIT ends the process when memory is refused outside a protected call, so the allocator refuses only while one of
// ours runs. What Lua does outside of them (creating the state, collecting) is small or frees.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "lua/api.h"
#include "lua/watchdog.h"
#include "proxy/route_record.h"
#include "vm/base/handle.h"
#include "vm/base/result.h"

namespace sluice::lua {

using StatePtr = Handle<lua_State, lua_close>;

// Restores the height of a Lua stack on the way out.
class StackGuard {
 public:
  explicit StackGuard(lua_State* L) : L_(L), top_(lua_gettop(L)) {}
  ~StackGuard() { lua_settop(L_, top_); }
  StackGuard(const StackGuard&) = delete;
  StackGuard& operator=(const StackGuard&) = delete;

 private:
  lua_State* L_;
  int top_;
};

inline void push(lua_State* L, std::string_view text) { lua_pushlstring(L, text.data(), text.size()); }
// A light userdata. Lua has no const: who reads it back says again whether what it points at may be written to.
inline void push_pointer(lua_State* L, const void* p) { lua_pushlightuserdata(L, const_cast<void*>(p)); }
// Life: of the string in its stack place. Only for values that are strings already.
inline std::string_view text_at(lua_State* L, int index) {
  std::size_t n = 0;
  const char* p = lua_tolstring(L, index, &n);
  return {p, p ? n : 0};
}

class Sampler;

// Thread: one at a time; control makes and destroys it, a worker runs it in between.
class Vm {
 public:
  // Units:  limit in bytes; 0: none.
  // Errors: a sentence.
  static Result<std::unique_ptr<Vm>, std::string> make(std::uint64_t limit_bytes, bool jit,
                                                       std::shared_ptr<Watchdog> watchdog);
  Vm(const Vm&) = delete;
  Vm& operator=(const Vm&) = delete;
  ~Vm();

  lua_State* main() { return state_.get(); }
  // lua_pcall with a traceback in the error and memory refused beyond the limit. False: the message is on the stack.
  bool call(lua_State* L, int arguments, int results);
  // The same without a traceback: for errors that a person reads at load.
  bool plain_call(lua_State* L, int arguments, int results);
  // lua_resume, likewise.
  int resume(lua_State* co, int arguments);
  // A C function with one light argument, protected.
  bool protect(lua_CFunction f, void* argument);

  std::uint64_t used_bytes() const { return memory_.used; }
  std::uint64_t refused() const { return memory_.refused; }
  std::uint64_t interrupted() const { return watch_->fired.load(std::memory_order_relaxed); }
  bool running() const { return memory_.armed > 0; }
  // A step of the collector when a cycle is due or under way; never inside a call. Between steps the collector stands
  // back: only a call that allocates a lot in one go meets it (`stand_back` in state.cc).
  void collect_step();
  struct Collector {
    std::uint64_t cycles = 0, steps = 0, longest_us = 0;   // of what collect_step() did
  };
  const Collector& collector() const { return collector_; }
  // The whole of it: after loading.
  void collect_all();
  // Units: of one call or resume, until the watchdog stops it; 0: never.
  void set_time_limit(std::uint32_t limit_ms) { watch_->limit_ms.store(limit_ms, std::memory_order_relaxed); }
  // For C functions that call Lua, which may call them again: LuaJIT bounds its own stack, not the thread's, and a function
  // that keeps a buffer there would reach the end of it first. Raises when the calls so far have used too much of it.
  static void check_stack(lua_State* L);
  std::uint64_t limit_bytes() const { return memory_.limit; }
  // Takes samples for the record's profile as it is ordered now, or ends that.
  void sample(const std::shared_ptr<proxy::RouteRecord>& record);
  // The watchdog has stopped the call that runs, or is about to.
  static bool stopping(lua_State* L);
  static Sampler* sampler_of(lua_State* L);      // nullptr: none are taken
  // The thread that will run it from now on is the caller.
  void adopt_thread();

 private:
  struct Memory {
    std::uint64_t used = 0, limit = 0, refused = 0;
    std::uint64_t given = 0;            // bytes, ever
    const Watch* watch = nullptr;
    Sampler* sampler = nullptr;         // what hears of each allocation
    int armed = 0;                      // protected calls of ours that run
    int forgiving = 0;                  // parts of C++ between them: see Forgive
    const char* stack = nullptr;        // the thread's, where the outermost of them began
  };
  Vm() = default;
  static Memory& memory_of(lua_State* L);
  static void* allocate(void* self, void* old, std::size_t old_size, std::size_t size);
  friend class Forgive;
  int enter(lua_State* L);               // returns what leave() restores
  void leave(lua_State* L, int forgiving);

  Memory memory_;                       // outlives state_
  std::shared_ptr<Watchdog> watchdog_;
  std::shared_ptr<Watch> watch_;
  std::unique_ptr<Sampler> sampler_;
  StatePtr state_;
  int traceback_ = LUA_NOREF;
  void stand_back();

  std::uint64_t live_bytes_ = 0;        // after the last whole cycle
  std::uint64_t given_before_ = 0;      // at the last step
  bool collecting_ = false;
  Collector collector_;
};

// While it lives, memory is not refused, until the next protected call: for C++ that runs between two of them and works
// on a state that no protected call is on.
class Forgive {
 public:
  explicit Forgive(Vm& vm) : memory_(vm.memory_) { ++memory_.forgiving; }
  explicit Forgive(lua_State* L) : memory_(Vm::memory_of(L)) { ++memory_.forgiving; }
  ~Forgive() { --memory_.forgiving; }
  Forgive(const Forgive&) = delete;
  Forgive& operator=(const Forgive&) = delete;

 private:
  Vm::Memory& memory_;
};

}  // namespace sluice::lua
