#include "lua/state.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace sluice::lua {
namespace {

// Units: bytes. Threads have 2 MiB at least (glibc, with an unlimited stack), 8 as a rule.
constexpr std::ptrdiff_t kStackBytes = 1 << 20;

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
  if (p != nullptr) m.used = m.used - before + size;
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
  // A cycle is begun between requests (collect_step), at 1.5 times what was alive. Only a route that allocates a lot in
  // one go meets the collector itself, at 3 times.
  lua_gc(L, LUA_GCSETPAUSE, 300);
  lua_gc(L, LUA_GCSETSTEPMUL, 400);
  lua_pushcfunction(L, add_traceback);
  vm->traceback_ = luaL_ref(L, LUA_REGISTRYINDEX);
  vm->watchdog_ = std::move(watchdog);
  vm->watch_ = vm->watchdog_ ? vm->watchdog_->add() : std::make_shared<Watch>();
  return vm;
}

Vm::~Vm() {
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
    if (w.hooked.load(std::memory_order_relaxed)) {
      w.hooked.store(false, std::memory_order_relaxed);
      lua_sethook(L, nullptr, 0, 0);
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

void Vm::collect_step() {
  if (memory_.armed > 0) return;
  if (!collecting_ && memory_.used < live_bytes_ + live_bytes_ / 2 + (256u << 10)) return;
  collecting_ = true;
  if (lua_gc(main(), LUA_GCSTEP, 64) != 0) {
    collecting_ = false;
    live_bytes_ = memory_.used;
  }
}

void Vm::collect_all() {
  if (memory_.armed > 0) return;
  lua_gc(main(), LUA_GCCOLLECT, 0);
  collecting_ = false;
  live_bytes_ = memory_.used;
}

}  // namespace sluice::lua
