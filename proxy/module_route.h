// The module interface as a route: a client's request goes to a store, the store's answer to the client.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "proxy/pool.h"
#include "proxy/route.h"

namespace sluice::proxy {

// Life:   answers every exchange it holds before it is destroyed: its table outlives its last one.
// Thread: made on control; worker then.
class ModuleRoute final : public Route, private Waiter {
 public:
  // Every store of the set, by its name as the first segment; a lone one also at the root (`route_stores`).
  explicit ModuleRoute(const StoreSet& set);
  // One store, right behind the mount (`route_direct`).
  explicit ModuleRoute(StorePtr store);
  // Several that serve alike: distribution_key() picks.
  explicit ModuleRoute(std::shared_ptr<const Pool> pool);

  void start(Exchange& exchange, const Match& match, Services& services) override;
  void client_gone(Exchange& exchange) override;
  bool is_module() const override { return true; }

  std::uint32_t held() const { return held_; }     // exchanges that wait for a store

 private:
  struct Pending {
    Exchange* exchange = nullptr;                  // nullptr: free
    Ticket ticket;
    std::uint32_t next_free = 0;                   // index + 1; 0: none
    bool writes = false;
  };

  void answered(std::uint32_t tag, EventPtr event) override;
  void timed_out(std::uint32_t tag) override;
  // The store that `path` means, which is left behind its name; nullptr: none.
  const StorePtr* find_store(std::string_view& path, const Request& request) const;
  std::uint32_t hold(Exchange& exchange);
  Exchange& release(std::uint32_t index);
  void reply(Exchange& exchange, EventPtr event);

  std::vector<StorePtr> stores_;                   // sorted by name
  bool named_ = false;                             // paths begin with a store's name
  std::shared_ptr<const Pool> pool_;
  Services* services_ = nullptr;                   // the worker's, from the first start()
  std::vector<Pending> pending_;
  std::uint32_t free_ = 0;                         // index + 1
  std::uint32_t held_ = 0;
  Response response_;                              // reset between uses; its buffers stay
};

// Answers 404 `route` (`route_null`, and where nothing else is).
// Thread: worker.
class NullRoute final : public Route {
 public:
  void start(Exchange& exchange, const Match& match, Services& services) override;

 private:
  Response response_;
};

// The routes of a config that has none of its own.
std::unique_ptr<RouteTable> make_module_table(std::shared_ptr<const StoreSet> stores);

}  // namespace sluice::proxy
