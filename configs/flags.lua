-- Two versions of something, and a flag that says which users get the new one: a handler of the config's own.
--   curl -X POST -d 'try it' 'http://127.0.0.1:8767/flags/inputs/flag?name=search&percent=20'
--   curl -H 'X-User: 7' http://127.0.0.1:8767/search
settings { listen = "127.0.0.1:8767" }

stores {
  flags = { module = "modules/flags.aup", path = "data/flags" },
}

handlers {
  -- `child` for the users that have the flag, `otherwise` for the rest, and for all when the flags cannot be asked.
  route_flag = {
    options = { flag = "string!", flags = "child!", child = "child!", otherwise = "child!" },
    f = function(rctx, h, args)
      return function(r)
        local user = tonumber(r:header("X-User"))
        local on = user and rctx:view_and_wait(h.flags, "enabled", { name = args.flag, user = user }, 0.5)
        local new = on and on:hit() and on:body() == "true"
        return rctx:enqueue_and_wait(r, new and h.child or h.otherwise)
      end
    end,
  },
}

routes {
  map = {
    ["/flags"]  = "flags",
    ["/search"] = route_flag { flag = "search", flags = "flags", child = route_static { body = "new\n" }, otherwise = route_static { body = "old\n" } },
  },
  default = route_null {},
}
