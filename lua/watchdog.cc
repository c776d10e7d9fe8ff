#include "lua/watchdog.h"

#include <signal.h>
#include <time.h>

#include <algorithm>
#include <chrono>

// The thread sanitizer's sigaction() keeps a signal back until its thread calls into the C library. A loop in Lua never
// does, so there the handler is installed beneath it.
#if defined(__SANITIZE_THREAD__)
#define SLUICE_SIGNALS_KEPT_BACK 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SLUICE_SIGNALS_KEPT_BACK 1
#endif
#endif
#if defined(SLUICE_SIGNALS_KEPT_BACK)
extern "C" int __sigaction(int, const struct sigaction*, struct sigaction*);
#endif

namespace sluice::lua {
namespace {

void install(int number, const struct sigaction& action) {
#if defined(SLUICE_SIGNALS_KEPT_BACK)
  __sigaction(number, &action, nullptr);
#else
  sigaction(number, &action, nullptr);
#endif
}

constexpr std::uint32_t kLookMs = 50;
// How long a closed VM's record is kept, in looks: no signal is under way for a second.
constexpr std::uint32_t kKeptLooks = 20;

// What that thread, which runs the VM now, has had of a processor.
std::uint64_t thread_ms(pthread_t thread) {
  clockid_t clock{};
  timespec t{};
  if (pthread_getcpuclockid(thread, &clock) != 0 || clock_gettime(clock, &t) != 0) return 0;
  return static_cast<std::uint64_t>(t.tv_sec) * 1000 + static_cast<std::uint64_t>(t.tv_nsec) / 1'000'000;
}

// Level 0 is what runs; luaL_error() would name its caller.
void stop_here(lua_State* L, lua_Debug*) {
  luaL_where(L, 0);
  lua_pushliteral(L, "stopped: it ran too long without a wait");
  lua_concat(L, 2);
  lua_error(L);
}

void set_stop(Watch& w, lua_State* L) {
  w.hooked.store(Watch::kStop, std::memory_order_relaxed);
  lua_sethook(L, stop_here, LUA_MASKCALL | LUA_MASKRET | LUA_MASKLINE | LUA_MASKCOUNT, 1);
}

// On the thread that runs the VM, so what it reads is its own: either the call is on or it is over.
void on_signal(int, siginfo_t* info, void*) {
  if (info->si_value.sival_ptr == nullptr) return;
  if (info->si_code != SI_QUEUE && info->si_code != SI_TIMER) return;
  Watch& w = *static_cast<Watch*>(info->si_value.sival_ptr);
  lua_State* L = w.running.load(std::memory_order_relaxed);
  if (info->si_code == SI_TIMER) {
    const lua_Hook sample = w.sample.load(std::memory_order_relaxed);
    if (sample == nullptr) return;
    const std::uint64_t n = 1 + static_cast<std::uint64_t>(std::max(info->si_overrun, 0));
    (L ? w.ticks : w.idle_ticks).fetch_add(n, std::memory_order_relaxed);
    if (L) ask_for_sample(w, sample);
    return;
  }
  if (L && w.is_condemned()) set_stop(w, L);
}

}  // namespace

// The watchdog's signal may come anywhere in here. Its word is looked at again behind each change of the hook, so that
// it is never overwritten for good.
void ask_for_sample(Watch& w, lua_Hook hook) {
  lua_State* L = w.running.load(std::memory_order_relaxed);
  if (L == nullptr || w.hooked.load(std::memory_order_relaxed) != 0) return;
  w.hooked.store(Watch::kSample, std::memory_order_relaxed);
  lua_sethook(L, hook, LUA_MASKCOUNT, 1);
  if (w.is_condemned()) set_stop(w, L);
}

void sample_taken(Watch& w, lua_State* L) {
  lua_sethook(L, nullptr, 0, 0);
  w.hooked.store(0, std::memory_order_relaxed);
  if (w.is_condemned()) set_stop(w, L);
}

Watchdog::Watchdog() {
  struct sigaction action {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigemptyset(&action.sa_mask);
  install(kSignal, action);
  // The watchdog itself takes no signals: they are control's.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Watchdog::~Watchdog() {
  {
    const std::lock_guard<std::mutex> hold(mutex_);
    ending_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

std::shared_ptr<Watch> Watchdog::add() {
  auto watch = std::make_shared<Watch>();
  adopt(*watch);
  const std::lock_guard<std::mutex> hold(mutex_);
  list_.push_back({watch, 0, 0, false, 0});
  return watch;
}

void Watchdog::adopt(Watch& watch) {
  sigset_t ours;
  sigemptyset(&ours);
  sigaddset(&ours, kSignal);
  pthread_sigmask(SIG_UNBLOCK, &ours, nullptr);
  const std::lock_guard<std::mutex> hold(mutex_);
  watch.thread = pthread_self();
}

void Watchdog::run() {
  std::unique_lock<std::mutex> hold(mutex_);
  while (!ending_) {
    wake_.wait_for(hold, std::chrono::milliseconds(kLookMs));
    for (std::size_t i = 0; i < list_.size();) {
      Seen& seen = list_[i];
      Watch& w = *seen.watch;
      if (w.closed.load(std::memory_order_acquire)) {
        if (++seen.closed_looks > kKeptLooks) list_.erase(list_.begin() + static_cast<std::ptrdiff_t>(i));
        else ++i;
        continue;
      }
      const std::uint64_t serial = w.serial.load(std::memory_order_acquire);
      const std::uint32_t limit = w.limit_ms.load(std::memory_order_relaxed);
      if (w.running.load(std::memory_order_acquire) == nullptr || serial != seen.serial) {
        seen.serial = serial;
        seen.dated = false;
      } else if (const std::uint64_t now_ms = thread_ms(w.thread); !seen.dated) {
        seen.began_ms = now_ms;
        seen.dated = true;
      } else if (limit != 0 && now_ms - seen.began_ms > limit && w.condemned.load(std::memory_order_relaxed) != serial) {
        w.condemned.store(serial, std::memory_order_release);
        w.fired.fetch_add(1, std::memory_order_relaxed);
        sigval value{};
        value.sival_ptr = &w;
        pthread_sigqueue(w.thread, kSignal, value);
      }
      ++i;
    }
  }
}

}  // namespace sluice::lua
