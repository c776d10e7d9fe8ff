-- A gateway: who may ask, how often, what need not be computed again, and for how long something may be taken.
--   curl http://127.0.0.1:8767/catalogue/views/items
--   curl -X POST -H 'Authorization: Bearer change-this-token' -d Tea 'http://127.0.0.1:8767/api/shop/inputs/stock?sku=tea&count=10&price=3'
settings { listen = "127.0.0.1:8767", body_limit = "64KiB" }

stores {
  shop  = { module = "modules/shop.aup", path = "data/shop" },
  locks = { module = "modules/locks.aup", path = "data/locks" },
}

-- What is behind it is for those who show a token, each of them 20 requests at once and one a second, whatever worker they meet.
local function guarded(child)
  return route_auth {
    tokens = { "change-this-token" },
    child = route_ratelim { limit = 20, rate = 1, key = "header:Authorization", global = true, name = "api", child = child },
  }
end

routes {
  map = {
    -- Everybody may look, and the views are computed once for each change of the shop.
    ["/catalogue"] = cmdmap { GET = route_cors { origins = { "*" }, child = route_cache { child = "shop", revalidate = true, everybody = true } } },
    ["/api"] = guarded(route_map {
      map = {
        ["/shop"] = "shop",
        -- Nobody holds a lock for more than a minute.
        ["/locks"] = route_ttl { child = "locks", inputs = { "take" }, field = "lease", max = 60000, default = 10000 },
      },
    }),
    ["/robots.txt"] = route_static { body = "User-agent: *\nDisallow: /api\n" },
  },
  default = route_null {},
}
