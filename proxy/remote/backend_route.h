// A pool of remote backends as a route: the whole request goes on to the one that its key picks, and the answer comes back.
#pragma once
#include <memory>
#include <vector>

#include "proxy/remote/backend_pool.h"
#include "proxy/route.h"

namespace sluice::proxy {

// Thread: made on control; worker then.
class BackendRoute final : public Route {
 public:
  explicit BackendRoute(std::shared_ptr<const BackendPool> pool) : pool_(std::move(pool)) {}

  // When its table is, before any request: from here on the worker keeps connections to its backends.
  void attach(Services& services);
  void start(Exchange& exchange, const Match& match, Services& services) override;
  // A safe method's call is let go. Others run to their end, as requests to stores do.
  void client_gone(Exchange& exchange) override;

 private:
  const std::shared_ptr<const BackendPool> pool_;
  std::vector<BackendClient*> clients_;       // of the pool's backends; empty: this worker has none
  Response refusal_;
};

}  // namespace sluice::proxy
