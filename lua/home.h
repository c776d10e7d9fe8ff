// What the functions of both stages know of the VM they run in.
#pragma once
#include <time.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "proxy/config.h"
#include "proxy/log.h"
#include "proxy/remote/backend.h"
#include "proxy/route.h"

namespace sluice::lua {

class CacheShared;

// Thread: whoever runs the VM. Life: outlives it.
struct Home {
  bool loading = true;                           // the config is read, or its routes are made: nothing of it serves yet
  proxy::Services* services = nullptr;           // of a worker that serves
  const proxy::ServerStats* server = nullptr;    // may stay null
  proxy::Log* log = nullptr;                     // may stay null
  const std::vector<proxy::BackendPtr>* backends = nullptr;   // of the config; may stay null
  const std::vector<std::pair<std::string, std::shared_ptr<CacheShared>>>* caches = nullptr;   // of a worker's routes
  std::uint64_t random = 0x9e3779b97f4a7c15;     // of 1-in-N choices
  std::string scratch;                           // of one call: what is copied under a lock and pushed behind it

  // Below `n`. Source: xorshift64, Marsaglia 2003.
  std::uint64_t draw(std::uint64_t n) {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    return random % n;
  }
  std::uint64_t now_us() const {
    if (services) return services->monotonic_us();
    timespec t{};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000 + static_cast<std::uint64_t>(t.tv_nsec) / 1000;
  }
};

}  // namespace sluice::lua
