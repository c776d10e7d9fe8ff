// What configs have in common: things that a reload finds again by their name, and that go with the last config that names them.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "lua/answer_cache.h"
#include "lua/limiter.h"
#include "lua/shared_table.h"
#include "lua/user_stat.h"
#include "proxy/remote/backend.h"

namespace sluice::lua {

// Thread: control.
template <class Thing>
class Registry {
 public:
  // The one of that name, or what `make` gives.
  template <class Make>
  std::shared_ptr<Thing> find_or_make(const std::string& name, Make&& make) {
    std::weak_ptr<Thing>& place = things_[name];
    std::shared_ptr<Thing> thing = place.lock();
    if (thing) return thing;
    thing = make();
    place = thing;
    // Names that nobody uses any more go now: whoever reloads with ever new ones does not collect them.
    std::erase_if(things_, [](const auto& entry) { return entry.second.expired(); });
    return thing;
  }

 private:
  std::map<std::string, std::weak_ptr<Thing>> things_;
};

// Thread: control. Life: the reader's; what it gives out outlives it.
struct Commons {
  Registry<SharedTable> shared;
  Registry<Limiter> limiters;
  Registry<UserStat> stats;
  Registry<proxy::Backend> backends;             // by their whole description
  Registry<proxy::BackendStats> backend_stats;   // by their name
  Registry<CacheShared> caches;
  const proxy::ServerStats* server = nullptr;
};

}  // namespace sluice::lua
