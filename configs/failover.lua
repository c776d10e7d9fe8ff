-- Pools, and what a route can do with several stores: one of many by key, the next when one cannot, all at once.
settings { listen = "127.0.0.1:8767" }

stores {
  east   = { module = "modules/blobs.aup", path = "data/east" },
  west   = { module = "modules/blobs.aup", path = "data/west" },
  spare  = { module = "modules/blobs.aup", path = "data/spare" },
  switch = { module = "modules/switch.aup", path = "data/switch" },
}

pools {
  -- A key is always in the same one of the two: its hash says in which.
  files = { stores = { "east", "west" } },
}

routes {
  map = {
    -- /files/objects/KEY: writes go where the key lives; a read that finds nothing there asks the spare.
    ["/files"] = cmdmap {
      GET = route_failover { children = { "files", "spare" }, miss = true },
      all = route_direct { child = "files" },
    },
    -- /spare/objects/KEY: the spare by itself, so that it can be filled.
    ["/spare"] = route_direct { child = "spare" },
    -- /both/objects/KEY: the same change in both; the answer is the worst of the two.
    ["/both"] = route_allsync { children = { "east", "west" } },
    ["/switch"] = route_direct { child = "switch" },
  },
  -- Nothing else is served.
  default = route_null {},
}
