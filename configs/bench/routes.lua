-- What tools/load measures. Four stores of counters, one of documents, four of tables, one route for each question.
settings { listen = "127.0.0.1:8767" }

stores {
  a = { module = "../modules/tally.aup", path = "data/a" },
  b = { module = "../modules/tally.aup", path = "data/b" },
  c = { module = "../modules/tally.aup", path = "data/c" },
  d = { module = "../modules/tally.aup", path = "data/d" },
  blobs = { module = "../modules/blobs.aup", path = "data/blobs" },
  hot = { module = "tables.aup", path = "data/hot" },
  few = { module = "tables.aup", path = "data/few" },
  many = { module = "tables.aup", path = "data/many" },
  big = { module = "tables.aup", path = "data/big" },
}

local four = { a = "a", b = "b", c = "c", d = "d" }

routes {
  map = {
    ["/hello"] = route_lua {
      methods = { "GET" },
      f = function() return function() return "hello\n" end end,
    },
    -- Four views of four stores: answered where the request is, without a trip to the stores' threads.
    ["/views4"] = route_lua {
      methods = { "GET" },
      children = four,
      f = function(rctx, h)
        local a, b, c, d = h.a, h.b, h.c, h.d
        return function()
          rctx:view(a, "sum")
          rctx:view(b, "sum")
          rctx:view(c, "sum")
          rctx:view(d, "sum")
          rctx:wait_cond(4, sluice.WAIT_ANY)
          return rctx:result(a):body() .. " " .. rctx:result(b):body() .. " " ..
                 rctx:result(c):body() .. " " .. rctx:result(d):body() .. "\n"
        end
      end,
    },
    -- Four inputs to four stores: each is applied, committed and then answered.
    ["/inputs4"] = route_lua {
      methods = { "POST" },
      children = four,
      f = function(rctx, h)
        local handles = { h.a, h.b, h.c, h.d }
        local adds = {}
        for i = 1, 4 do adds[i] = rctx:event(handles[i], "add"):set("amount", 1) end
        return function()
          for i = 1, 4 do rctx:enqueue(adds[i], handles[i]) end
          rctx:wait_cond(4, sluice.WAIT_ANY)
          local sum = 0
          for i = 1, 4 do
            local result = rctx:result(handles[i])
            if not result:hit() then return result end
            sum = sum + tonumber(result:body())
          end
          return tostring(sum) .. "\n"
        end
      end,
    },
  },
  default = route_stores {},
}
