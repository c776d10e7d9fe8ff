// --explain: the whole tree of a config that has one of everything, as it is printed.
#include "t/lua/harness.h"

using namespace sluice::lua::harness;

TEST_CASE("the tree of a config names every handler with its options, children, tags, hosts, limits and crons") {
  constexpr std::string_view kText = R"lua(
settings { listen = { { "127.0.0.1:1" }, { "127.0.0.1:2", tag = "admin" } } }
pools { p = { stores = { "a", "b" } }, set_z = { east = { "a" }, west = { "b", "p" } } }
local_zone "west"
handlers { route_own = { options = { child = "child!", n = "number" }, f = function(rctx, h) return function(r) return rctx:enqueue_and_wait(r, h.child) end end } }
sluice.register_cron("tick", { every = 1.5, func = function() end })
sluice.register_cron("once", { every = 60, rerun = false, func = function() end })
routes { tag = "admin", default = route_stats { format = "json" } }
routes { host = "*.example.com", mode = "prefix", stop = ":", of = "key", map = { user = "p" }, default = route_null {} }
routes {
  map = {
    ["/all"] = route_allsync { children = { "a", { "b", "set_z" } } },
    ["/async"] = route_allasync { children = "set_z" },
    ["/auth"] = route_auth { child = "a", tokens = { "a-long-secret" }, users = { ann = "password" }, realm = "here" },
    ["/cache"] = route_cache { child = route_ratelim { child = "a", limit = 5, rate = 2.5, key = "client_ip", keys = 10, global = true, name = "g" }, ttl = 1, vary = { "X-A" } },
    ["/cors"] = route_cors { child = "a", origins = { "*" } },
    ["/dice"] = route_weighted { children = { "a", "b" }, weights = { 1, 3 } },
    ["/direct"] = route_direct { child = "a" },
    ["/fast"] = route_allfastest { children = { "a", "b" }, wait = 1, miss = true },
    ["/hedge"] = route_hedge { children = { "a", "b" }, delay = 0.1 },
    ["/key"] = route_ratelim { child = "a", limit = 1, key = function(r) return r:path() end },
    ["/lua"] = route_lua { children = { x = "a", y = { "a", "b" } }, methods = { "GET" }, f = function() return function() end end },
    ["/map"] = route_map { map = { ["/deep"] = "b" }, cmap = { PUT = "a" }, default = function() return "x" end },
    ["/match"] = route_match { child = "a", otherwise = "b", json = "plan", is = "gold" },
    ["/methods"] = cmdmap { GET = "a", all = route_random { children = { "a", "b" } } },
    ["/own"] = route_own { child = "a", n = 3 },
    ["/shadow"] = route_shadow { child = "a", shadow = "b", percent = 10 },
    ["/split"] = route_split { child_a = "a", child_b = "b" },
    ["/static"] = route_static { body = "hi\n", headers = { ["X-B"] = 2 } },
    ["/stores"] = route_stores {},
    ["/to"] = route_redirect { to = "/x", status = 308 },
    ["/ttl"] = route_ttl { child = "a", max = 60 },
    ["/zone"] = route_failover { children = "set_z", local_zone = "east", miss = true },
  },
  cmap = { DELETE = route_null {} },
  default = function() return "x" end,
}
)lua";
  constexpr std::string_view kTree = R"(routes tag="admin"
  default  route_stats format="json"
routes host="*.example.com" mode="prefix" stop=":" of="key"
  user  pool p of a, b
  default  route_null
routes
  /all  route_allsync
    children[1]  store a
    children[2]  list
      [1]  store b
      [2]  set set_z of b, p, a
  /async  route_allasync
    children  set set_z of b, p, a
  /auth  route_auth realm="here" tokens=... users=...
    child  store a
  /cache  route_cache ttl=1 vary={X-A}
    child  route_ratelim global=true key="client_ip" keys=10 limit=5 name="g" rate=2.5
      child  store a
  /cors  route_cors origins={*}
    child  store a
  /dice  route_weighted weights={1, 3}
    children[1]  store a
    children[2]  store b
  /direct  route_direct
    child  store a
  /fast  route_allfastest miss=true wait=1
    children[1]  store a
    children[2]  store b
  /hedge  route_hedge delay=0.1
    children[1]  store a
    children[2]  store b
  /key  route_ratelim key=function at t.lua:21 limit=1
    child  store a
  /lua  route_lua f=function at t.lua:22 methods={GET}
    children.x  store a
    children.y  list
      [1]  store a
      [2]  store b
  /map  route_map
    any path, PUT  store a
    default  function at t.lua:23
    /deep  store b
  /match  route_match is="gold" json="plan"
    child  store a
    otherwise  store b
  /methods  cmdmap
    GET  store a
    all  route_random
      children[1]  store a
      children[2]  store b
  /own  route_own n=3
    child  store a
  /shadow  route_shadow percent=10
    child  store a
    shadow  store b
  /split  route_split
    child_a  store a
    child_b  store b
  /static  route_static body="hi\n" headers={X-B=2}
  /stores  route_stores
  /to  route_redirect status=308 to="/x"
  /ttl  route_ttl max=60
    child  store a
  /zone  route_failover local_zone="east" miss=true
    children  set set_z of a, b, p
  any path, DELETE  route_null
  default  function at t.lua:36
cron tick  every 1.5 s  function at t.lua:6
cron once  every 60 s, once  function at t.lua:7
)";
  World w(kText);
  CHECK(w.config->explain() == kTree);
}
