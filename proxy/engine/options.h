// What the engine takes from outside: the clock, the log, and how stores are opened.
#pragma once
#include <cstdint>
#include <string>

#include "store/store.h"

namespace sluice::proxy {

class Log;

// Thread: frozen; the functions are called from any thread.
struct EngineOptions {
  void* context = nullptr;
  std::uint64_t (*wall_ms)(void* context) = nullptr;        // ms since 1970; null: the system's clock
  bool timers = true;                                       // run by themselves; else only when asked
  bool allow_destroy = false;                               // every StoreSpec's
  Log* log = nullptr;                                       // null: nothing is said
  // The store's own settings; a StoreSpec's quota and map size go over them. Tests inject faults here.
  store::Options store;
};

}  // namespace sluice::proxy
