-- Handlers that ask several children, or one of several.
local lib = ...
local sluice = sluice
local ipairs, type, math = ipairs, type, math
local handler, resolve, resolve_list, handles_of = lib.handler, lib.resolve, lib.resolve_list, lib.handles_of
local fail = lib.fail

-- One after the other: a GOOD answer is returned, an OK one too unless `miss`; an error or a timeout asks the next.
-- When all fail: the first miss that was seen, else the last error.
handler("route_failover",
  { children = "children!", failover_count = "number", miss = "boolean", wait = "number", shuffle = "boolean", local_zone = "string" },
  function(h, label)
    local args = h.args
    local fgen = sluice.funcgen_new()
    local hs = handles_of(fgen, resolve_list(args.children, h.at, label, args.local_zone))
    if args.shuffle then
      for i = #hs, 2, -1 do
        local j = math.random(i)
        hs[i], hs[j] = hs[j], hs[i]
      end
    end
    local tries = args.failover_count and math.max(1, math.min(args.failover_count, #hs)) or #hs
    local miss, wait = args.miss, args.wait
    fgen:ready { n = label, f = function(rctx)
      return function(r)
        local missed, last
        for i = 1, tries do
          local res = rctx:enqueue_and_wait(r, hs[i], wait)
          if res then
            if res:hit() or (not miss and res:ok()) then return res end
            if res:ok() then missed = missed or res else last = res end
          end
        end
        if missed or last then return missed or last end
        return 504, "no store answered in time\n", { ["X-Pure-Error"] = "deadline" }
      end
    end }
    return fgen
  end)

-- All at once, and all are waited for. The worst answer is returned: the first error, else the first that is not GOOD,
-- else the last.
handler("route_allsync", { children = "children!" }, function(h, label)
  local fgen = sluice.funcgen_new()
  local hs = handles_of(fgen, resolve_list(h.args.children, h.at, label))
  local count = #hs
  fgen:ready { n = label, f = function(rctx)
    return function(r)
      rctx:enqueue(r, hs)
      rctx:wait_cond(count, sluice.WAIT_ANY)
      local worst, its
      for i = 1, count do
        local res, class = rctx:result(hs[i])
        if not its or class < its or (class == its and class == sluice.RES_GOOD) then worst, its = res, class end
      end
      return worst
    end
  end }
  return fgen
end)

-- Sends to all and waits for none: 202.
handler("route_allasync", { children = "children!" }, function(h, label)
  local fgen = sluice.funcgen_new()
  local hs = handles_of(fgen, resolve_list(h.args.children, h.at, label))
  fgen:ready { n = label, f = function(rctx)
    return function(r)
      rctx:enqueue(r, hs)
      return 202, "accepted\n"
    end
  end }
  return fgen
end)

local function too_late() return 504, "nobody answered in time\n", { ["X-Pure-Error"] = "deadline" } end

-- All at once: the first that is OK or GOOD is the answer, with `miss` the first that is GOOD. Else the best of what came.
handler("route_allfastest", { children = "children!", miss = "boolean", wait = "number" }, function(h, label)
  local fgen = sluice.funcgen_new()
  local hs = handles_of(fgen, resolve_list(h.args.children, h.at, label))
  local mode, wait = h.args.miss and sluice.WAIT_GOOD or sluice.WAIT_OK, h.args.wait
  fgen:ready { n = label, f = function(rctx)
    return function(r)
      rctx:enqueue(r, hs)
      rctx:wait_cond(1, mode, wait)
      local best = rctx:best_result(hs)
      if best then return best end
      return too_late()
    end
  end }
  return fgen
end)

-- One after the other, the next as soon as `delay` has passed without an answer, or the last one failed. The first that is OK
-- or GOOD is the answer. A method that is not safe goes to the first alone: two copies of a write are two writes.
handler("route_hedge", { children = "children!", delay = "number!", unsafe = "boolean" }, function(h, label)
  local fgen = sluice.funcgen_new()
  local hs = handles_of(fgen, resolve_list(h.args.children, h.at, label))
  local count, delay, unsafe = #hs, h.args.delay, h.args.unsafe
  local safe = { GET = true, HEAD = true, OPTIONS = true, TRACE = true }
  fgen:ready { n = label, f = function(rctx)
    return function(r)
      if not unsafe and not safe[r:method()] then return rctx:enqueue_and_wait(r, hs[1]) end
      for i = 1, count do
        rctx:enqueue(r, hs[i])
        local wait = nil
        if i < count then wait = delay end
        if rctx:wait_cond(1, sluice.WAIT_OK, wait) > 0 then break end
      end
      return rctx:best_result(hs)
    end
  end }
  return fgen
end)

-- A copy to b, whose answer nobody waits for; a's is the answer.
handler("route_split", { child_a = "child!", child_b = "child!" }, function(h, label)
  local fgen = sluice.funcgen_new()
  local a = fgen:new_handle(resolve(h.args.child_a, h.at, label))
  local b = fgen:new_handle(resolve(h.args.child_b, h.at, label))
  fgen:ready { n = label, f = function(rctx)
    return function(r)
      rctx:enqueue(r, b)
      return rctx:enqueue_and_wait(r, a)
    end
  end }
  return fgen
end)

-- So many percent of the requests are copied aside, to a child whose answer nobody waits for.
handler("route_shadow", { child = "child!", shadow = "child!", percent = "number" }, function(h, label)
  local fgen = sluice.funcgen_new()
  local main = fgen:new_handle(resolve(h.args.child, h.at, label))
  local aside = fgen:new_handle(resolve(h.args.shadow, h.at, label))
  local part = (h.args.percent or 100) / 100
  if part > 1 then fail(h.at, "percent", "route_shadow: `percent` goes from 0 to 100") end
  local random = math.random
  fgen:ready { n = label, f = function(rctx)
    return function(r)
      if random() < part then rctx:enqueue(r, aside) end
      return rctx:enqueue_and_wait(r, main)
    end
  end }
  return fgen
end)

local function chooser(name, weigh)
  return function(h, label)
    local fgen = sluice.funcgen_new()
    local hs = handles_of(fgen, resolve_list(h.args.children, h.at, label))
    local ends, total = {}, 0
    if weigh then
      local weights = h.args.weights
      if #weights ~= #hs then fail(h.at, "weights", name .. ": there are " .. #hs .. " children and " .. #weights .. " weights") end
      for i = 1, #hs do
        local w = weights[i]
        if type(w) ~= "number" or not (w >= 0) or w == math.huge then fail(h.at, "weights", name .. ": a weight is a number from 0") end
        total = total + w
        ends[i] = total
      end
      if total == 0 then fail(h.at, "weights", name .. ": all weights are 0") end
      if total == math.huge then fail(h.at, "weights", name .. ": the weights' sum is no number") end
    end
    local random, count = math.random, #hs
    fgen:ready { n = label, f = function(rctx)
      return function(r)
        if not weigh then return rctx:enqueue_and_wait(r, hs[random(count)]) end
        local at, i = random() * total, 1
        while at >= ends[i] and i < count do i = i + 1 end
        return rctx:enqueue_and_wait(r, hs[i])
      end
    end }
    return fgen
  end
end
-- One of them by chance, each as likely as the others, or by `weights`.
handler("route_random", { children = "children!" }, chooser("route_random", false))
handler("route_weighted", { children = "children!", weights = "list!" }, chooser("route_weighted", true))
