-- A store behind another: every client has a few requests a second, and only then the shop is asked.
--   curl -X POST -H 'X-Client: ann' 'http://127.0.0.1:8767/shop/inputs/add?user=7&sku=tea&qty=1'
settings { listen = "127.0.0.1:8767" }

stores {
  quota = { module = "modules/quota.aup", path = "data/quota" },   -- a token bucket for each client
  shop  = { module = "modules/shop.aup", path = "data/shop" },
}

routes {
  map = {
    ["/shop"] = route_lua {
      children = { quota = "quota", shop = "shop" },
      f = function(rctx, h)
        return function(r)
          local client = r:header("X-Client")
          if not client then return 401, "say who you are: X-Client\n" end
          local taken = rctx:post_and_wait(h.quota, "take", { who = client })
          -- The module's own words say how long to wait; a name that is no slug is the client's mistake.
          if taken:status() == 422 then return 429, taken:body() .. "\n" end
          if taken:status() ~= 200 then return taken end
          return rctx:enqueue_and_wait(r, h.shop)
        end
      end,
    },
  },
  default = route_null {},
}
