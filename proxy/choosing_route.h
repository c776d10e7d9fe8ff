// Routers, and maps of methods, as routes: what they choose gets the exchange, behind whatever led here.
//
// So a router may stand in another, below a rate limit or in a pipe of a script; nothing is held for it.
#pragma once
#include <vector>

#include "proxy/route.h"
#include "proxy/router.h"
#include "proxy/word_router.h"

namespace sluice::proxy {

// What a path without a route for that method gets: 404 `route`, 405 with its Allow, or 204 to OPTIONS.
// Shape: `allow` as in Match.
void answer_unrouted(Exchange& exchange, std::uint32_t allow, Response& scratch);

// Finds what is behind the part that led here (Match::rest); its captures join those that were made before.
// Thread: worker. Life: the router outlives it.
template <class AnyRouter>
class RouterRoute final : public Route {
 public:
  explicit RouterRoute(const AnyRouter& router) : router_(router) {}
  void start(Exchange& exchange, const Match& match, Services& services) override;
  void client_gone(Exchange& exchange) override {
    if (exchange.passed_to) exchange.passed_to->client_gone(exchange);
  }

 private:
  const AnyRouter& router_;
  std::vector<Match::Captured> spare_;           // room for captures, kept between requests
  Response refusal_;
};
extern template class RouterRoute<Router>;
extern template class RouterRoute<WordRouter>;

// One route per method. Thread, Life: as above.
class MethodsRoute final : public Route {
 public:
  explicit MethodsRoute(const MethodMap& methods) : methods_(methods) {}
  void start(Exchange& exchange, const Match& match, Services& services) override;
  void client_gone(Exchange& exchange) override {
    if (exchange.passed_to) exchange.passed_to->client_gone(exchange);
  }

 private:
  const MethodMap& methods_;
  Response refusal_;
};

}  // namespace sluice::proxy
