-- Two nodes: each keeps its share of the documents, and either may be asked for all of them.
--
--   NODE=1 sluice --config configs/nodes.lua
--   NODE=2 sluice --config configs/nodes.lua
local nodes = { os.getenv("NODE_1") or "127.0.0.1:8767", os.getenv("NODE_2") or "127.0.0.1:8768" }
local me = tonumber(os.getenv("NODE") or 1)

settings { listen = nodes[me], backend_connect_timeout = 0.5, backend_read_timeout = 2 }

stores { files = { module = "modules/blobs.aup", path = "data/files-" .. me } }

pools {
  -- A key is always at the same node. On a ring a third node would take its share from both, and no key would move between them.
  all = { backends = { nodes[1] .. " one", nodes[2] .. " two" }, options = { dist = "ring" } },
}

routes {
  map = {
    -- /files/objects/KEY, at any node: goes to the one that has it.
    ["/files"] = "all",
    ["/stats"] = route_stats {},
  },
  -- /objects/KEY: what this node has, which is what the others ask for.
  default = route_direct { child = "files" },
}
