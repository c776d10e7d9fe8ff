#include "proxy/module_route.h"

#include <doctest/doctest.h>

#include <deque>
#include <string>

#include "proxy/module_call.h"
#include "t/proxy/fakes.h"

using namespace sluice;
using namespace sluice::proxy;
using fakes::FakeExchange;
using fakes::FakeServices;
using fakes::FakeStore;

namespace {

std::shared_ptr<const StoreSet> stores(std::initializer_list<const char*> names) {
  auto set = std::make_shared<StoreSet>();
  for (const char* n : names) set->stores.push_back(std::make_shared<FakeStore>(n));
  return set;
}

std::string get(Route& route, FakeServices& services, std::string_view path, Method method = Method::get) {
  FakeExchange x(method, path);
  Match match;
  match.rest = path;
  route.start(x, match, services);
  REQUIRE(x.answered.times == 1);
  if (x.answered.error != Errc::none)
    return std::to_string(x.answered.status) + " " + std::string(name(x.answered.error));
  return x.answered.body;
}

constexpr int kView = static_cast<int>(Verb::view);

}  // namespace

TEST_CASE("a lone store answers at the root and under its name") {
  FakeServices services;
  ModuleRoute route(*stores({"shop"}));
  CHECK(get(route, services, "/views/total") == "shop 0 total");
  CHECK(get(route, services, "/shop/views/total") == "shop 0 total");
  CHECK(get(route, services, "/shop") == "404 route");
  CHECK(get(route, services, "/other/views/total") == "404 route");
  CHECK(services.recycled == services.taken);
}

TEST_CASE("several stores answer under their names alone") {
  FakeServices services;
  ModuleRoute route(*stores({"stock", "carts", "audit"}));
  CHECK(get(route, services, "/carts/views/total") == "carts 0 total");
  CHECK(get(route, services, "/stock/views/total") == "stock 0 total");
  CHECK(get(route, services, "/views/total") == "404 route");
  CHECK(get(route, services, "/stoc/views/total") == "404 route");
  CHECK(get(route, services, "/") == "404 route");
  CHECK(get(route, services, "") == "404 route");
}

TEST_CASE("a store behind a mount sees what the mount leaves") {
  FakeServices services;
  ModuleRoute route(stores({"shop"})->stores[0]);
  CHECK(get(route, services, "/views/total") == "shop 0 total");
  CHECK(get(route, services, "") == "404 route");
  CHECK(get(route, services, "/shop/views/total") == "404 route");
}

TEST_CASE("a pool's key meets one store by every verb") {
  auto pool = Pool::make("p", stores({"a", "b", "c"})->stores);
  REQUIRE(pool);
  const auto shared = std::make_shared<const Pool>(*std::move(pool));
  FakeServices services;
  ModuleRoute route(shared);
  for (const char* key : {"k1", "k2", "k3", "k4", "k5"}) {
    const std::string want = std::string(shared->pick(key)->name());
    CHECK(get(route, services, std::string("/objects/") + key).substr(0, 1) == want);
  }
}

TEST_CASE("what prepare refuses is answered at once and goes nowhere") {
  FakeServices services;
  ModuleRoute route(*stores({"shop"}));
  CHECK(get(route, services, "/views/refused") == "404 no_view");
  CHECK(services.waits.empty());
  CHECK(services.recycled == services.taken);
}

TEST_CASE("a read is evaluated here, but behind a write or when the engine cannot it goes to the owner") {
  FakeServices services;
  ModuleRoute route(*stores({"shop"}));
  CHECK(get(route, services, "/views/total") == "shop " + std::to_string(kView) + " total");
  CHECK(services.the_engine.evaluated == 1);

  for (const bool behind : {true, false}) {
    FakeExchange x(Method::get, "/views/total");
    x.is_behind_write = behind;
    services.the_engine.evaluates = behind;
    Match match;
    match.rest = "/views/total";
    route.start(x, match, services);
    CHECK(x.answered.times == 0);
    CHECK_FALSE(x.holds_writes);
    CHECK(route.held() == 1);
    services.deliver(services.waits.size() - 1);
    CHECK(x.answered.times == 1);
    CHECK(x.answered.body == "shop 0 total");
    CHECK(route.held() == 0);
  }
  CHECK(services.the_engine.evaluated == 1);
  CHECK(services.recycled == services.taken);
}

TEST_CASE("a write holds the writes of its connection until it is answered") {
  FakeServices services;
  ModuleRoute route(*stores({"shop"}));
  FakeExchange x(Method::post, "/inputs/plus");
  Match match;
  match.rest = "/inputs/plus";
  route.start(x, match, services);
  CHECK(x.answered.times == 0);
  CHECK(x.holds_writes);
  services.deliver(0);
  CHECK_FALSE(x.holds_writes);
  CHECK(x.answered.body == "shop 1 plus");
}

TEST_CASE("answers find their exchanges in whatever order they come, and places are used again") {
  FakeServices services;
  ModuleRoute route(*stores({"shop"}));
  std::deque<FakeExchange> exchanges;
  const auto begin = [&](std::string_view path) {
    FakeExchange& x = exchanges.emplace_back(Method::post, path);
    Match match;
    match.rest = path;
    route.start(x, match, services);
  };
  begin("/inputs/plus");
  begin("/inputs/say");     // refused: no length
  begin("/inputs/x1");
  begin("/inputs/x2");
  CHECK(exchanges[1].answered.status == 411);
  CHECK(route.held() == 3);
  services.deliver(2);
  services.deliver(0);
  begin("/inputs/x3");
  begin("/inputs/x4");
  services.deliver(4);
  services.deliver(3);
  services.deliver(1);
  CHECK(exchanges[0].answered.body == "shop 1 plus");
  CHECK(exchanges[2].answered.body == "shop 1 x1");
  CHECK(exchanges[3].answered.body == "shop 1 x2");
  CHECK(exchanges[4].answered.body == "shop 1 x3");
  CHECK(exchanges[5].answered.body == "shop 1 x4");
  CHECK(route.held() == 0);
  CHECK(services.recycled == services.taken);
}

TEST_CASE("a client that leaves releases a read at once and lets a write run on") {
  FakeServices services;
  services.the_engine.evaluates = false;
  ModuleRoute route(*stores({"shop"}));
  FakeExchange read(Method::get, "/views/total"), write(Method::post, "/inputs/plus");
  Match match;
  match.rest = "/views/total";
  route.start(read, match, services);
  match.rest = "/inputs/plus";
  route.start(write, match, services);

  read.is_gone = true;
  route.client_gone(read);
  CHECK(read.answered.times == 1);
  CHECK(services.waits[0].waiter == nullptr);
  write.is_gone = true;
  route.client_gone(write);
  CHECK(write.answered.times == 0);
  CHECK(route.held() == 1);
  services.deliver(1);
  CHECK(write.answered.times == 1);
  services.deliver(0);      // late: finds nobody
  CHECK(read.answered.times == 1);
  CHECK(route.held() == 0);
}

TEST_CASE("the table of a config without routes takes every path and method") {
  FakeServices services;
  const auto table = make_module_table(stores({"shop"}));
  table->attach(services);
  Match match;
  match.captured.push_back({"old", "one"});
  match.allow = 7;
  for (const char* path : {"/views/total", "/nothing", "/"}) {
    Route* route = table->find(Method::get, path, match);
    REQUIRE(route != nullptr);
    CHECK(route->is_module());
    CHECK(match.rest == path);
    CHECK(match.captured.empty());
    CHECK(match.allow == 0);
  }
  CHECK(table->slots_in_use() == 0);
}

TEST_CASE("the null route says that there is no such path") {
  FakeServices services;
  NullRoute route;
  CHECK(get(route, services, "/anything") == "404 route");
  CHECK(get(route, services, "/anything", Method::post) == "404 route");
}
