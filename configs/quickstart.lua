-- Two stores behind one server, and a route that asks both at once.
-- Change something here, then `kill -HUP` the server: the change is live and no request is lost.
-- Paths in this file count from the folder it is in.

settings {
  listen = "127.0.0.1:8767",          -- only this machine
}

stores {
  -- Counters, a lamp, a motto. Its states are in memory and, before any answer leaves, on disk.
  quota = { module = "modules/quota.aup", path = "data/quota" },
  -- Documents by key. The module has nothing but documents, so two threads can share the keys.
  notes = { module = "modules/notes.aup", path = "data/notes", shards = 2 },
}

routes {
  map = {
    -- GET /dashboard/first: the counter and one note, in one answer.
    ["/dashboard/:note"] = route_lua {
      methods  = { "GET" },
      children = { quota = "quota", notes = "notes" },
      f = function(rctx, h)
        -- This part runs once for each slot; what it makes is used again by every request of the slot.
        local encode = sluice.json.encode
        local headers = { ["Content-Type"] = "application/json" }
        return function(r)
          -- This part runs for each request. Both questions leave before either is answered.
          rctx:view(h.quota, "hits")
          rctx:get(h.notes, r:param("note"))
          rctx:wait_cond(2, sluice.WAIT_ANY)
          local hits, note = rctx:result(h.quota), rctx:result(h.notes)
          if not hits:ok() then return hits end
          return 200, encode {
            hits = tonumber(hits:body()),
            note = note:hit() and sluice.json.decode(note:body()) or sluice.json.null,
          }, headers
        end
      end,
    },
  },
  -- Everything else is the stores themselves: /quota/views/hits, /quota/inputs/plus, /notes/objects/first.
  default = route_stores {},
}
