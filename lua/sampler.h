// Takes samples of the Lua function that runs, each time that so many bytes were allocated or so much time has passed.
//
// Neither the allocator nor a signal's handler may look at a Lua stack: both come in the middle of an instruction or of a
// C function, when frames are not in order, and neither is told which coroutine runs. Both may set a hook: lua_sethook()
// writes a few words of the state and its table of instructions, allocates nothing, and LuaJIT allows it in handlers. So
// they do, and the hook runs before the next instruction of whatever coroutine runs, where lua_getinfo() is safe. A
// sample is thus the function that allocated, or that had called the C function which did. What a C function allocates
// that is called in a `return` counts for the caller, or, when nobody is left, for no function. The hook takes itself
// away: between samples nothing stands by. Compiled code (`lua_jit`) takes no hooks: it is sampled when it is left.
#pragma once
#include <time.h>

#include <cstdint>
#include <memory>
#include <string>

#include "lua/watchdog.h"
#include "proxy/route_record.h"

namespace sluice::lua {

// Thread: the one that runs the VM. Life: within the Vm's.
class Sampler {
 public:
  using Kind = proxy::RouteProfile::Kind;
  // `order` is the profile's, not of Kind::none.
  Sampler(Watch& watch, std::shared_ptr<proxy::RouteRecord> record, std::uint64_t order);
  ~Sampler();
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  std::uint64_t order() const { return order_; }
  // The allocator gave so much. `in_lua`: a call of ours runs.
  void allocated(std::uint64_t bytes, bool in_lua);
  // In the hook.
  void take(lua_State* L, lua_Debug* at);
  // The call is over and its hook, if one was set, has not run.
  void call_over();

 private:
  void next_due();
  void slow_down();
  void add(std::string_view function, std::string_view place, std::uint64_t weight, std::uint64_t count);
  void add_outside();

  Watch& watch_;
  const std::shared_ptr<proxy::RouteRecord> record_;
  const std::uint64_t order_;
  const Kind kind_;
  std::uint64_t every_;                          // bytes or microseconds
  std::uint64_t bytes_ = 0, count_ = 0, due_ = 0;   // since the last sample; when the next one is due
  std::uint64_t outside_bytes_ = 0, outside_count_ = 0;
  std::uint64_t random_ = 0x9e3779b97f4a7c15;
  std::uint32_t samples_ = 0;                    // since `since_ms_`
  std::uint64_t since_ms_ = 0;
  timer_t timer_{};
  bool timed_ = false;
  std::string place_;
};

}  // namespace sluice::lua
