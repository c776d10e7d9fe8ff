// What all routes of one generation on one worker share: the VM, the worker's services, targets, and what is recycled.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lua/home.h"
#include "lua/state.h"
#include "proxy/log.h"
#include "proxy/pool.h"
#include "proxy/remote/backend_route.h"
#include "proxy/route.h"
#include "proxy/route_record.h"
#include "proxy/router.h"
#include "proxy/word_router.h"

namespace sluice::lua {

class Fgen;
struct Credentials;
class CacheShared;
class Limiter;
struct Commons;
class SubExchange;

// What a handle leads to: a store, a pool, another route, or one route per method.
// Thread: frozen once the generation is made; worker then. Life: the Runtime's.
struct Target {
  enum class Kind : std::uint8_t { store, pool, route, methods };
  Kind kind = Kind::store;
  std::string name;
  proxy::StorePtr store;
  std::shared_ptr<const proxy::Pool> pool;
  proxy::Route* route = nullptr;
  proxy::MethodMap methods;
  Fgen* fgen = nullptr;                          // when `route` is one
  std::uint32_t depth = 0;                       // of the generators one inside the other, with the outermost
};

// What sluice.attach() gave a method. At most one of `router`, `words` and `target` is not null; `route` is target's when
// it has one.
struct Hook {
  proxy::Route* route = nullptr;
  proxy::Router* router = nullptr;
  proxy::WordRouter* words = nullptr;
  const Target* target = nullptr;
  bool empty() const { return route == nullptr && router == nullptr && words == nullptr && target == nullptr; }
};

// The hooks of one listener's tag and one host; empty: of any.
struct HookSet {
  std::string tag, host;                         // a host in lower case; ".example.com": all below it
  std::array<Hook, proxy::kMethods> hooks;
  Hook any;
  std::uint32_t allow = 0;                       // what a 405 lists
  // nullptr: nothing is attached for that method.
  const Hook* find(proxy::Method method) const;
  bool takes(std::string_view its_tag, std::string_view its_host) const;
};

// Thread: control while the generation is made, then the worker, then control again to be destroyed.
struct Runtime {
  explicit Runtime(proxy::Log* its_log);
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  // One line about a route's mistake, with its traceback. At most 20 a second are written; what was left out is said.
  void report(std::string_view route, std::string_view what);

  std::unique_ptr<Vm> vm;                        // before what points into it goes
  std::shared_ptr<proxy::RouteRecord> record = std::make_shared<proxy::RouteRecord>(std::uint16_t{0});
  proxy::Services* services = nullptr;           // from attach() on
  Home home;
  proxy::Log* log;                               // may be null
  lua_State* callbacks = nullptr;                // a coroutine of its own: a suspended one's stack is not ours to use
  std::uint32_t next_fgen = 1;
  bool sealed = false;                           // loaded: what builds routes is refused

  std::vector<std::unique_ptr<Target>> targets;
  std::vector<std::unique_ptr<proxy::Route>> routes;       // in C++: module routes, null
  std::vector<proxy::BackendRoute*> backends;              // those of them that lead to remote backends
  std::vector<std::unique_ptr<Fgen>> fgens;
  std::vector<std::unique_ptr<proxy::Router>> routers;
  std::vector<std::unique_ptr<proxy::WordRouter>> word_routers;
  std::vector<HookSet> hooks;                    // the most particular first: tag and host, tag, host, neither
  std::shared_ptr<const proxy::StoreSet> stores;
  std::shared_ptr<Commons> commons;              // while it is made
  std::vector<std::shared_ptr<Limiter>> limiters;
  std::vector<std::unique_ptr<Credentials>> credentials;
  std::vector<std::pair<std::string, std::shared_ptr<CacheShared>>> caches;   // of route_cache, by name
  std::vector<std::unique_ptr<SubExchange>> subs;
  std::vector<SubExchange*> free_subs;
  std::vector<proxy::Parameter> query;           // scratch of one enqueue
  std::vector<proxy::Header> headers;
  std::string path;
  std::uint32_t slots = 0, slots_in_use = 0;
  std::uint64_t errors = 0;

 private:
  std::uint64_t report_second_ = 0;
  std::uint32_t reports_ = 0, left_out_ = 0;
};

}  // namespace sluice::lua
