// What the functions of both stages know of the VM they run in.
#pragma once
#include <time.h>

#include <cstdint>
#include <string>

#include "proxy/route.h"

namespace sluice::lua {

// Thread: whoever runs the VM. Life: outlives it.
struct Home {
  bool loading = true;                           // the config is read, or its routes are made: nothing of it serves yet
  proxy::Services* services = nullptr;           // of a worker that serves
  std::string scratch;                           // of one call: what is copied under a lock and pushed behind it

  std::uint64_t now_us() const {
    if (services) return services->monotonic_us();
    timespec t{};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000 + static_cast<std::uint64_t>(t.tv_nsec) / 1000;
  }
};

}  // namespace sluice::lua
