#include "proxy/module_route.h"

#include <algorithm>
#include <utility>

#include "proxy/module_call.h"
#include "vm/base/check.h"

namespace sluice::proxy {

ModuleRoute::ModuleRoute(const StoreSet& set) : stores_(set.stores), named_(true) {
  std::sort(stores_.begin(), stores_.end(),
            [](const StorePtr& a, const StorePtr& b) { return a->name() < b->name(); });
}

ModuleRoute::ModuleRoute(StorePtr store) : stores_{std::move(store)} {}

ModuleRoute::ModuleRoute(std::shared_ptr<const Pool> pool) : pool_(std::move(pool)) {}

const StorePtr* ModuleRoute::find_store(std::string_view& path, const Request& request) const {
  if (pool_) return &pool_->pick(distribution_key(path, request.query));
  if (!named_) return &stores_[0];
  if (path.empty() || path[0] != '/') return nullptr;
  const std::size_t end = std::min(path.find('/', 1), path.size());
  const std::string_view name = path.substr(1, end - 1);
  const auto at = std::lower_bound(stores_.begin(), stores_.end(), name,
                                   [](const StorePtr& s, std::string_view n) { return s->name() < n; });
  if (at != stores_.end() && (*at)->name() == name) {
    path = path.substr(end);
    return &*at;
  }
  return stores_.size() == 1 ? &stores_[0] : nullptr;
}

void ModuleRoute::start(Exchange& exchange, const Match& match, Services& services) {
  services_ = &services;
  const Request& request = exchange.request();
  std::string_view path = match.rest;
  const StorePtr* store = find_store(path, request);
  if (!store) {
    respond_error(response_, 404, Errc::route, "no such path; the first segment names a store");
    exchange.answer(response_);
    return;
  }
  Call call;
  if (!make_call(call, response_, *store, module_request(request, path))) {
    exchange.answer(response_);
    return;
  }
  EventPtr event = services.take_event();
  Engine& engine = services.engine();
  if (!engine.prepare(*event, call)) return reply(exchange, std::move(event));
  if (!event->writes && !exchange.behind_write() && engine.evaluate(*event))
    return reply(exchange, std::move(event));

  const std::uint32_t index = hold(exchange);
  Pending& p = pending_[index];
  p.writes = event->writes;
  if (p.writes) exchange.hold_writes(true);
  p.ticket = services.submit(std::move(event), this, index);
}

void ModuleRoute::reply(Exchange& exchange, EventPtr event) {
  respond(response_, event->answer);
  // Before answer(): the exchange is dead after it, and the next of its connection may start inside and want an event.
  services_->recycle(std::move(event));
  exchange.answer(response_);
}

void ModuleRoute::answered(std::uint32_t tag, EventPtr event) {
  const bool writes = pending_[tag].writes;
  Exchange& exchange = release(tag);
  if (writes) exchange.hold_writes(false);
  reply(exchange, std::move(event));
}

// No timer is ever started here: how long a request may take is the connection's to watch.
void ModuleRoute::timed_out(std::uint32_t tag) { SLUICE_ASSERT(false); }

void ModuleRoute::client_gone(Exchange& exchange) {
  const std::uint32_t slot = exchange.route_slot;
  if (slot == 0 || !is_safe(exchange.request().method)) return;
  services_->forget(pending_[slot - 1].ticket);
  release(slot - 1);
  exchange.answer(response_);   // into nothing
}

std::uint32_t ModuleRoute::hold(Exchange& exchange) {
  std::uint32_t index = 0;
  if (free_ != 0) {
    index = free_ - 1;
    free_ = pending_[index].next_free;
  } else {
    index = static_cast<std::uint32_t>(pending_.size());
    pending_.emplace_back();
  }
  pending_[index].exchange = &exchange;
  exchange.route_slot = index + 1;
  ++held_;
  return index;
}

Exchange& ModuleRoute::release(std::uint32_t index) {
  Pending& p = pending_[index];
  SLUICE_ASSERT(p.exchange != nullptr);
  Exchange& exchange = *std::exchange(p.exchange, nullptr);
  exchange.route_slot = 0;
  p.next_free = free_;
  free_ = index + 1;
  --held_;
  return exchange;
}

void NullRoute::start(Exchange& exchange, const Match& match, Services& services) {
  respond_error(response_, 404, Errc::route, "no such path");
  exchange.answer(response_);
}

namespace {

// Everything goes to the one route; what it does not know it answers itself.
class ModuleTable final : public RouteTable {
 public:
  explicit ModuleTable(std::shared_ptr<const StoreSet> stores) : stores_(std::move(stores)), route_(*stores_) {}
  void attach(Services& services) override {}
  Route* find(Method method, std::string_view path, Match& match) override {
    match.rest = path;
    match.captured.clear();
    match.allow = 0;
    return &route_;
  }
  std::uint32_t slots_in_use() const override { return route_.held(); }

 private:
  const std::shared_ptr<const StoreSet> stores_;
  ModuleRoute route_;
};

}  // namespace

std::unique_ptr<RouteTable> make_module_table(std::shared_ptr<const StoreSet> stores) {
  return std::make_unique<ModuleTable>(std::move(stores));
}

}  // namespace sluice::proxy
