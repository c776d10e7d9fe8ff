#include "lua/state.h"

#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "lua/sampler.h"

namespace sluice::lua {
namespace {

// Units: bytes. Threads have 2 MiB at least (glibc, with an unlimited stack), 8 as a rule.
constexpr std::ptrdiff_t kStackBytes = 1 << 20;
// One step of the collector: 64 KiB of its own count, some tens of microseconds. What was allocated since the last one
// makes it larger, so that it gains on whatever allocates.
constexpr std::uint64_t kStepBytes = 64u << 10, kMostStepBytes = 4u << 20;
constexpr std::uint64_t kUsualPause = 300, kLeastPause = 105;   // percent of what is used

std::uint64_t now_us() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000 + static_cast<std::uint64_t>(t.tv_nsec) / 1000;
}

// Reached when an error has nobody to catch it, which is a mistake of ours: say what it was, and stop.
int panic(lua_State* L) {
  const char* what = lua_tostring(L, -1);
  std::fprintf(stderr, "sluice: Lua error outside of a protected call: %s\n", what ? what : "(no message)");
  std::fflush(stderr);
  std::abort();
}

int add_traceback(lua_State* L) {
  if (lua_type(L, 1) != LUA_TSTRING) {
    if (!luaL_callmeta(L, 1, "__tostring") || lua_type(L, -1) != LUA_TSTRING) {
      lua_settop(L, 1);
      lua_pushfstring(L, "an error that is a %s, not a string", luaL_typename(L, 1));
    }
    lua_replace(L, 1);
    lua_settop(L, 1);
  }
  luaL_traceback(L, L, lua_tostring(L, 1), 1);
  return 1;
}

}  // namespace

void* Vm::allocate(void* self, void* old, std::size_t old_size, std::size_t size) {
  Memory& m = *static_cast<Memory*>(self);
  if (size == 0) {
    std::free(old);
    m.used -= old ? old_size : 0;
    return nullptr;
  }
  const std::uint64_t before = old ? old_size : 0;
  if (m.armed > 0 && m.forgiving == 0 && m.limit != 0 && size > before && m.used + (size - before) > m.limit) {
    ++m.refused;
    return nullptr;
  }
  void* p = std::realloc(old, size);
  if (p == nullptr) return nullptr;
  m.used = m.used - before + size;
  if (size > before) {
    m.given += size - before;
    if (m.sampler != nullptr) m.sampler->allocated(size - before, m.armed > 0);
  }
  return p;
}

Result<std::unique_ptr<Vm>, std::string> Vm::make(std::uint64_t limit_bytes, bool jit,
                                                  std::shared_ptr<Watchdog> watchdog) {
  std::unique_ptr<Vm> vm(new Vm);
  vm->memory_.limit = limit_bytes;
  vm->state_.reset(lua_newstate(&Vm::allocate, &vm->memory_));
  if (!vm->state_) return std::string("no memory for a Lua state");
  lua_State* L = vm->main();
  lua_atpanic(L, panic);
  // Opening it turns the compiler on, so the mode comes after it. The sandbox takes its table away.
  lua_pushcfunction(L, luaopen_jit);
  lua_pushliteral(L, LUA_JITLIBNAME);
  lua_call(L, 1, 0);
  luaJIT_setmode(L, 0, LUAJIT_MODE_ENGINE | (jit ? LUAJIT_MODE_ON : LUAJIT_MODE_OFF));
  lua_gc(L, LUA_GCSETSTEPMUL, 400);
  vm->stand_back();
  lua_pushcfunction(L, add_traceback);
  vm->traceback_ = luaL_ref(L, LUA_REGISTRYINDEX);
  vm->watchdog_ = std::move(watchdog);
  vm->watch_ = vm->watchdog_ ? vm->watchdog_->add() : std::make_shared<Watch>();
  vm->memory_.watch = vm->watch_.get();
  return vm;
}

Vm::~Vm() {
  memory_.sampler = nullptr;
  sampler_.reset();
  state_.reset();
  if (watch_) watch_->closed.store(true, std::memory_order_release);
}

void Vm::adopt_thread() {
  if (watchdog_) watchdog_->adopt(*watch_);
}

int Vm::enter(lua_State* L) {
  if (memory_.armed++ == 0) {
    memory_.stack = static_cast<const char*>(__builtin_frame_address(0));
    Watch& w = *watch_;
    w.serial.store(w.serial.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    w.running.store(L, std::memory_order_release);
  }
  return std::exchange(memory_.forgiving, 0);
}

void Vm::leave(lua_State* L, int forgiving) {
  memory_.forgiving = forgiving;
  if (--memory_.armed == 0) {
    Watch& w = *watch_;
    w.running.store(nullptr, std::memory_order_release);
    if (const std::uint8_t hooked = w.hooked.load(std::memory_order_relaxed); hooked != 0) {
      w.hooked.store(0, std::memory_order_relaxed);
      lua_sethook(L, nullptr, 0, 0);
      if (hooked == Watch::kSample && sampler_) sampler_->call_over();
    }
  }
}

void Vm::check_stack(lua_State* L) {
  void* memory = nullptr;
  lua_getallocf(L, &memory);
  const Memory& m = *static_cast<const Memory*>(memory);
  // It grows towards lower addresses wherever we run.
  if (m.armed > 0 && m.stack - static_cast<const char*>(__builtin_frame_address(0)) > kStackBytes) luaL_error(L, "stack overflow (in C)");
}

bool Vm::call(lua_State* L, int arguments, int results) {
  const int base = lua_gettop(L) - arguments;
  lua_rawgeti(L, LUA_REGISTRYINDEX, traceback_);
  lua_insert(L, base);
  const int forgiving = enter(L);
  const int status = lua_pcall(L, arguments, results, base);
  leave(L, forgiving);
  lua_remove(L, base);
  return status == LUA_OK;
}

bool Vm::plain_call(lua_State* L, int arguments, int results) {
  const int forgiving = enter(L);
  const int status = lua_pcall(L, arguments, results, 0);
  leave(L, forgiving);
  return status == LUA_OK;
}

int Vm::resume(lua_State* co, int arguments) {
  const int forgiving = enter(co);
  const int status = lua_resume(co, arguments);
  leave(co, forgiving);
  return status;
}

bool Vm::protect(lua_CFunction f, void* argument) {
  lua_State* L = main();
  const int forgiving = enter(L);
  const int status = lua_cpcall(L, f, argument);
  leave(L, forgiving);
  return status == LUA_OK;
}

// A cycle is begun between requests, at 1.5 times what was alive, and goes on there. LuaJIT would go on with it at each
// kilobyte that a request allocates: so behind each step its threshold is set anew, as if a cycle had just ended. What is
// left of the collector inside a call is for one that triples the memory by itself, or has used half of what its limit leaves.
void Vm::stand_back() {
  std::uint64_t pause = kUsualPause;
  if (memory_.limit > memory_.used) pause = std::min(pause, 100 + (memory_.limit - memory_.used) * 50 / std::max<std::uint64_t>(memory_.used, 1));
  else if (memory_.limit != 0) pause = kLeastPause;
  lua_gc(main(), LUA_GCSETPAUSE, static_cast<int>(std::max(pause, kLeastPause)));
  lua_gc(main(), LUA_GCRESTART, -1);
}

void Vm::collect_step() {
  if (memory_.armed > 0) return;
  if (!collecting_ && memory_.used < live_bytes_ + live_bytes_ / 2 + (256u << 10)) return;
  const std::uint64_t began_us = now_us();
  const std::uint64_t given = std::exchange(given_before_, memory_.given);
  const std::uint64_t bytes = std::clamp(collecting_ ? memory_.given - given : 0, kStepBytes, kMostStepBytes);
  collecting_ = lua_gc(main(), LUA_GCSTEP, static_cast<int>(bytes >> 10)) == 0;
  if (!collecting_) {
    live_bytes_ = memory_.used;
    ++collector_.cycles;
  }
  stand_back();
  ++collector_.steps;
  collector_.longest_us = std::max(collector_.longest_us, now_us() - began_us);
}

void Vm::collect_all() {
  if (memory_.armed > 0) return;
  lua_gc(main(), LUA_GCCOLLECT, 0);
  collecting_ = false;
  live_bytes_ = memory_.used;
  stand_back();
}

Vm::Memory& Vm::memory_of(lua_State* L) {
  void* memory = nullptr;
  lua_getallocf(L, &memory);
  return *static_cast<Memory*>(memory);
}

bool Vm::stopping(lua_State* L) {
  const Memory& m = memory_of(L);
  return m.armed > 0 && m.watch->is_condemned();
}

Sampler* Vm::sampler_of(lua_State* L) { return memory_of(L).sampler; }

void Vm::sample(const std::shared_ptr<proxy::RouteRecord>& record) {
  const std::uint64_t order = record->profile.order();
  if ((sampler_ ? sampler_->order() : 0) == order) return;
  memory_.sampler = nullptr;
  sampler_.reset();
  if (proxy::RouteProfile::kind_of(order) == proxy::RouteProfile::Kind::none) return;
  sampler_ = std::make_unique<Sampler>(*watch_, record, order);
  memory_.sampler = sampler_.get();
}

}  // namespace sluice::lua
