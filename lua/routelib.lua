-- The route library: settings{}, stores{}, pools{}, routes{} and the handlers, written over the lower layer.
--
-- It runs before the config, in the config VM and in every worker's. `core` is C++'s part that configs do not see.
local core = ...
local sluice = sluice
local pairs, ipairs, type, tostring, next = pairs, ipairs, type, tostring, next
local setmetatable, rawget, rawset, pcall, select = setmetatable, rawget, rawset, pcall, select
local getmetatable = getmetatable
local sort = table.sort
local math = math

local Handler = { __metatable = "sluice.handler" }
local declared = { stores = {}, pools = {}, sets = {}, routes = {}, zone = nil }
local closed = false

local function did_you_mean(word, names)
  local near = core.nearest(word, names)
  return near and "; did you mean `" .. near .. "`?" or ""
end

local function sorted_keys(t)
  local keys = {}
  for k in pairs(t) do keys[#keys + 1] = k end
  sort(keys, function(a, b) return tostring(a) < tostring(b) end)
  return keys
end

-- Where the declaration that calls our caller stands: a table {file, line}.
local function place()
  local file, line = core.where(3)
  return { file, line }
end

local function fail(at, name, sentence)
  core.fail(at[1], at[2], name, sentence)
end

local function declaration(name, f)
  rawset(_G, name, function(t, ...)
    local at = place()
    if closed then fail(at, nil, name .. "{} belongs to the config, not into a route") end
    if type(t) ~= "table" or select("#", ...) > 0 then fail(at, nil, name .. " takes one table: " .. name .. " { ... }") end
    return f(t, at)
  end)
end

declaration("settings", function(t, at)
  if core.stage ~= "config" then return end
  local listens = t.listen ~= nil and "listen" or t.port ~= nil and "port" or "host"
  local name, why = core.settings(t, at[1], at[1] == core.file and core.line(listens, at[2]) or at[2])
  if why then fail(at, name, why) end
end)

declaration("stores", function(t, at)
  for _, name in ipairs(sorted_keys(t)) do
    local spec = t[name]
    if type(name) ~= "string" or type(spec) ~= "table" then
      fail(at, tostring(name), "stores { NAME = { module = \"...\", path = \"...\" } }")
    end
    if declared.stores[name] ~= nil then fail(at, name, "store `" .. name .. "` is declared twice") end
    declared.stores[name] = true
    if core.stage == "config" then
      local copy = {}
      for k, v in pairs(spec) do copy[k] = v end
      if copy.name ~= nil then fail(at, name, "a store has no `name` of its own: it is the key, `" .. name .. "`") end
      copy.name = name
      local made, field, why = core.store(copy, at[1], at[1] == core.file and core.line(name, at[2]) or at[2])
      if not made then
        -- Fields of stores have the same names: the line is looked for from the store's own on.
        core.fail(at[1], core.line(name, at[2]), field ~= "" and field or name, why)
      end
      declared.stores[name] = made
    end
  end
end)

declaration("shared", function(t, at)
  if core.stage ~= "config" then return end
  for _, name in ipairs(sorted_keys(t)) do
    if type(name) ~= "string" then fail(at, tostring(name), "shared { NAME = \"1MiB\" }") end
    local why = core.shared(name, t[name])
    if why then fail(at, name, why) end
  end
end)

-- Counters and histograms of the config's own.
declaration("stats", function(t, at)
  if core.stage ~= "config" then return end
  for _, name in ipairs(sorted_keys(t)) do
    if type(name) ~= "string" then fail(at, tostring(name), "stats { NAME = \"counter\" or \"histogram\" }") end
    local why = core.stat(name, t[name])
    if why then fail(at, name, why) end
  end
end)

-- set_NAME = { "a", "b" } or, by zones, { east = { "a" }, west = { "b", "c" } }: what a `children` may be.
local function declare_set(name, spec, at)
  if declared.sets[name] then fail(at, name, "set `" .. name .. "` is declared twice") end
  local function list_of(list)
    if type(list) ~= "table" or #list == 0 then
      fail(at, name, "set `" .. name .. "` is a list of stores and pools, or zones with such lists: { \"a\", \"b\" }, { east = { \"a\" } }")
    end
    for _, k in ipairs(sorted_keys(list)) do
      if type(k) ~= "number" or type(list[k]) ~= "string" then fail(at, name, "set `" .. name .. "`: its lists have names of stores and pools") end
    end
    return list
  end
  if type(spec) ~= "table" or next(spec) == nil then list_of(nil) end
  if #spec > 0 then
    declared.sets[name] = { at = at, list = list_of(spec) }
    return
  end
  local zones = {}
  for _, zone in ipairs(sorted_keys(spec)) do zones[tostring(zone)] = list_of(spec[zone]) end
  declared.sets[name] = { at = at, zones = zones }
end

local function set_zone(name, what)
  local file, line = core.where(3)
  if closed then core.fail(file, line, nil, what .. "() belongs to the config, not into a route") end
  if type(name) ~= "string" or name == "" then core.fail(file, line, nil, what .. ": a zone is a name") end
  if declared.zone then core.fail(file, line, nil, "the local zone is said twice") end
  declared.zone = name
end
-- Where this node is: children of that zone come first.
rawset(_G, "local_zone", function(name) set_zone(name, "local_zone") end)
rawset(_G, "local_zone_from_env", function(variable)
  set_zone(type(variable) == "string" and os.getenv(variable) or nil, "local_zone_from_env")
end)
rawset(_G, "local_zone_from_file", function(name)
  local text, why
  if type(name) == "string" then text, why = core.read_file(name) end
  if why then
    local file, line = core.where(2)
    core.fail(file, line, nil, "local_zone_from_file: " .. why)
  end
  set_zone(text and text:match("^%s*(.-)%s*$"), "local_zone_from_file")
end)

local function declare_pool(name, spec, at)
  if type(name) ~= "string" or type(spec) ~= "table" then
    fail(at, tostring(name), "pools { NAME = { stores = { \"a\", \"b\" } } }")
  end
  if declared.pools[name] ~= nil then fail(at, name, "pool `" .. name .. "` is declared twice") end
  for k in pairs(spec) do
    if k == "backends" then fail(at, name, "pool `" .. name .. "`: backends are not there yet; pools are made of `stores`") end
    if k ~= "stores" and k ~= "seed" then
      fail(at, tostring(k), "pool `" .. name .. "` has no `" .. tostring(k) .. "`" .. did_you_mean(tostring(k), { "stores", "seed" }))
    end
  end
  if type(spec.stores) ~= "table" or #spec.stores == 0 then
    fail(at, name, "pool `" .. name .. "` needs stores = { \"NAME\", ... }, at least one")
  end
  if spec.seed ~= nil and not (type(spec.seed) == "number" and spec.seed >= 0 and spec.seed <= 2 ^ 53 and spec.seed % 1 == 0) then
    fail(at, "seed", "pool `" .. name .. "`: seed is a whole number from 0")
  end
  declared.pools[name] = { at = at, stores = spec.stores, seed = spec.seed }
end

declaration("pools", function(t, at)
  for _, name in ipairs(sorted_keys(t)) do
    local declare = type(name) == "string" and name:sub(1, 4) == "set_" and declare_set or declare_pool
    declare(name, t[name], at)
  end
end)

local function check_pools()
  local made = {}
  for _, name in ipairs(sorted_keys(declared.pools)) do
    local pool = declared.pools[name]
    if declared.stores[name] ~= nil then fail(pool.at, name, "`" .. name .. "` is a pool and a store") end
    local list, seen = {}, {}
    for i, store in ipairs(pool.stores) do
      local description = type(store) == "string" and declared.stores[store] or nil
      if not description then
        fail(pool.at, name, "pool `" .. name .. "`: there is no store `" .. tostring(store) .. "`"
          .. did_you_mean(tostring(store), sorted_keys(declared.stores)))
      end
      if seen[store] then fail(pool.at, name, "pool `" .. name .. "`: store `" .. store .. "` is in it twice") end
      seen[store] = true
      list[i] = description
    end
    made[name] = core.stage == "config" and sluice.pool(list, { name = name, seed = pool.seed }) or true
  end
  for _, name in ipairs(sorted_keys(declared.sets)) do
    local set = declared.sets[name]
    for _, list in pairs(set.zones or { set.list }) do
      for _, member in ipairs(list) do
        if declared.stores[member] == nil and declared.pools[member] == nil then
          local names = sorted_keys(declared.stores)
          for _, k in ipairs(sorted_keys(declared.pools)) do names[#names + 1] = k end
          fail(set.at, name, "set `" .. name .. "`: there is no store or pool `" .. member .. "`" .. did_you_mean(member, names))
        end
      end
    end
  end
  return made
end

-- The members of a set, those of the local zone first, then the zones by their names.
local function members(set, zone)
  if set.list then return set.list end
  local list = {}
  local function add(name) for _, member in ipairs(set.zones[name] or {}) do list[#list + 1] = member end end
  if zone then add(zone) end
  for _, name in ipairs(sorted_keys(set.zones)) do if name ~= zone then add(name) end end
  return list
end

-- Handlers. Each option has a kind: child, children, number, boolean, function, methods. "!" behind it: required.

local handlers = {}
local options_of = {}   -- handler -> option -> kind

local kinds = {
  child = function(v) return type(v) == "string" or getmetatable(v) == "sluice.handler", "a store, a pool or a handler" end,
  children = function(v)
    return type(v) == "string" or type(v) == "table" and getmetatable(v) ~= "sluice.handler" and next(v) ~= nil,
      "a table of stores, pools or handlers, or the name of a set"
  end,
  number = function(v) return type(v) == "number" and v >= 0, "a number from 0" end,
  boolean = function(v) return type(v) == "boolean", "true or false" end,
  ["function"] = function(v) return type(v) == "function", "a function" end,
  string = function(v) return type(v) == "string", "a string" end,
  list = function(v) return type(v) == "table" and #v > 0, "a list" end,
  table = function(v) return type(v) == "table" and getmetatable(v) == nil, "a table" end,
  methods = function(v) return type(v) == "table" and #v > 0, "a list of methods" end,
}

-- `check(args, at)` runs in both stages, before anything is built.
local function handler(name, options, build, check)
  local known = sorted_keys(options)
  options_of[name] = options
  handlers[name] = build
  declaration(name, function(args, at)
    for _, k in ipairs(sorted_keys(args)) do
      local kind = options[k]
      if not kind then
        fail(at, tostring(k), name .. " has no option `" .. tostring(k) .. "`" .. did_you_mean(tostring(k), known))
      end
      local good, what = kinds[kind:gsub("!", "")](args[k])
      if not good then fail(at, k, name .. ": `" .. k .. "` is " .. what .. ", got a " .. type(args[k])) end
    end
    for _, k in ipairs(known) do
      if options[k]:find("!", 1, true) and args[k] == nil then fail(at, nil, name .. " needs `" .. k .. "`") end
    end
    if check then check(args, at) end
    return setmetatable({ name = name, args = args, at = at }, Handler)
  end)
end

local methods_known = { "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE" }
local is_method = {}
for _, m in ipairs(methods_known) do is_method[m] = true end

local conf  -- what sluice_config_pools() returned, in a worker
local build

-- A child as what new_handle() takes.
local function resolve(child, at, label)
  if type(child) == "string" then
    local found = conf.pools[child] or conf.stores[child]
    if not found and declared.sets[child] then fail(at, nil, "`" .. child .. "` is a set: it is all of a `children`, not one of them") end
    if not found then
      local names = sorted_keys(conf.pools)
      for _, k in ipairs(sorted_keys(conf.stores)) do names[#names + 1] = k end
      fail(at, nil, "there is no pool or store `" .. child .. "`" .. did_you_mean(child, names))
    end
    return found
  end
  if getmetatable(child) ~= "sluice.handler" then
    fail(at, nil, "a child is the name of a store or pool, or a handler, got a " .. type(child))
  end
  -- What only passes on needs nothing in between.
  if child.name == "route_direct" then return resolve(child.args.child, child.at, label) end
  return build(child, label)
end

local function resolve_list(children, at, label, zone)
  local list = {}
  if type(children) == "string" then
    local set = declared.sets[children]
    if not set then
      fail(at, nil, "there is no set `" .. children .. "`" .. did_you_mean(children, sorted_keys(declared.sets)) .. "; one child alone is { \"" .. children .. "\" }")
    end
    if zone and not (set.zones and set.zones[zone]) then fail(at, "local_zone", "set `" .. children .. "` has no zone `" .. zone .. "`") end
    children = members(set, zone or declared.zone)
  elseif zone then
    fail(at, "local_zone", "`local_zone` goes with children = \"set_NAME\", a set with zones")
  end
  for _, k in ipairs(sorted_keys(children)) do
    if type(k) ~= "number" then fail(at, "children", "children are a list here, without names") end
  end
  for i, child in ipairs(children) do list[i] = resolve(child, at, label) end
  return list
end

local function handles_of(fgen, list)
  local hs = {}
  for i, target in ipairs(list) do hs[i] = fgen:new_handle(target) end
  return hs
end

handler("route_direct", { child = "child!" }, function(h, label)
  local to = resolve(h.args.child, h.at, label)
  return core.direct(to)
end)

handler("route_null", {}, function() return core.null() end)

handler("route_stores", {}, function() return core.stores() end)

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

-- What is counted, as JSON or in Prometheus' text format.
handler("route_stats", { format = "string" }, function(h, label)
  local format = h.args.format or "json"
  if format ~= "json" and format ~= "prometheus" then
    fail(h.at, "format", "route_stats: `format` is json or prometheus" .. did_you_mean(format, { "json", "prometheus" }))
  end
  local encode, server_stats, concat = sluice.json.encode, sluice.server_stats, table.concat
  local function metric(lines, name, value) lines[#lines + 1] = name:gsub("%-", "_") .. " " .. ("%.17g"):format(value) .. "\n" end
  local fgen = sluice.funcgen_new()
  fgen:ready { n = label, f = function()
    return function()
      local stats = server_stats()
      if format == "json" then return 200, encode(stats) .. "\n", { ["Content-Type"] = "application/json" } end
      local lines = {}
      for _, name in ipairs(sorted_keys(stats.server)) do metric(lines, "sluice_" .. name, stats.server[name]) end
      for _, name in ipairs(sorted_keys(stats.user)) do
        local value = stats.user[name]
        if type(value) == "number" then
          metric(lines, "sluice_user_" .. name, value)
        else
          for _, q in ipairs { "count", "sum", "min", "max" } do metric(lines, "sluice_user_" .. name .. "_" .. q, value[q]) end
          for _, q in ipairs { { "0.5", "p50" }, { "0.9", "p90" }, { "0.99", "p99" }, { "0.999", "p999" } } do
            metric(lines, "sluice_user_" .. name .. "{quantile=\"" .. q[1] .. "\"}", value[q[2]])
          end
        end
      end
      return 200, concat(lines), { ["Content-Type"] = "text/plain; version=0.0.4" }
    end
  end }
  return fgen
end)

-- A limiter before the child: per worker or of the process, one for all or one per key. Over it 429 with Retry-After.
local limiters_made = 0
handler("route_ratelim", { child = "child!", limit = "number!", rate = "number", fillrate = "number", tickrate = "number",
    key = "string", keys = "number", global = "boolean", name = "string" },
  function(h, label)
    local args = h.args
    local spec = { limit = args.limit, rate = args.rate, fillrate = args.fillrate, tickrate = args.tickrate }
    if args.fillrate and not args.tickrate then spec.tickrate = 1000 end
    if args.keys and not args.key then fail(h.at, "keys", "route_ratelim: `keys` goes with `key`") end
    if args.name and not args.global then fail(h.at, "name", "route_ratelim: `name` goes with `global`") end
    if args.key then spec.keys = args.keys or 10000 end
    -- Every worker makes the same ones in the same order.
    limiters_made = limiters_made + 1
    local name = args.global and (args.name or label .. " #" .. limiters_made) or nil
    local to, why = core.ratelim(resolve(args.child, h.at, label), spec, args.key, name)
    if not to then fail(h.at, nil, "route_ratelim: " .. why) end
    return to
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
      for i, w in ipairs(weights) do
        if type(w) ~= "number" or not (w >= 0) or w == math.huge then fail(h.at, "weights", name .. ": a weight is a number from 0") end
        total = total + w
        ends[i] = total
      end
      if total == 0 then fail(h.at, "weights", name .. ": all weights are 0") end
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

-- One child when a header, a query field or a function says so, else the other.
handler("route_match",
  { child = "child!", otherwise = "child!", header = "string", query = "string", is = "string", token = "string", f = "function" },
  function(h, label)
    local args = h.args
    local ways = (args.header and 1 or 0) + (args.query and 1 or 0) + (args.f and 1 or 0)
    if ways ~= 1 then fail(h.at, nil, "route_match needs one of `header`, `query` and `f`") end
    if args.is and args.token then fail(h.at, "token", "route_match: `is` and `token` cannot be given both") end
    if args.token and not args.header then fail(h.at, "token", "route_match: `token` goes with `header`") end
    if args.is and args.f then fail(h.at, "is", "route_match: `is` goes with `header` or `query`") end
    local test = args.f
    if args.header then
      test = sluice.req_inspector_new(args.is and { t = "headeris", name = args.header, str = args.is }
        or args.token and { t = "headertoken", name = args.header, str = args.token } or { t = "hasheader", name = args.header })
    elseif args.query then
      test = sluice.req_inspector_new(args.is and { t = "queryis", name = args.query, str = args.is } or { t = "hasquery", name = args.query })
    end
    local fgen = sluice.funcgen_new()
    local yes = fgen:new_handle(resolve(args.child, h.at, label))
    local no = fgen:new_handle(resolve(args.otherwise, h.at, label))
    fgen:ready { n = label, f = function(rctx)
      return function(r) return rctx:enqueue_and_wait(r, test(r) and yes or no) end
    end }
    return fgen
  end)

local function check_headers(h, name, headers)
  for k, v in pairs(headers or {}) do
    if type(k) ~= "string" or (type(v) ~= "string" and type(v) ~= "number") then
      fail(h.at, "headers", name .. ": `headers` is a table of names with texts")
    end
  end
end

-- The same answer to every request.
handler("route_static", { body = "string", file = "string", status = "number", type = "string", headers = "table" }, function(h, label)
  local args = h.args
  if (args.body == nil) == (args.file == nil) then fail(h.at, nil, "route_static needs `body` or `file`") end
  local status = args.status or 200
  if status < 200 or status > 599 or status % 1 ~= 0 then fail(h.at, "status", "route_static: a status is 200 to 599") end
  check_headers(h, "route_static", args.headers)
  local headers = { ["Content-Type"] = args.type or "text/plain; charset=utf-8" }
  for k, v in pairs(args.headers or {}) do headers[k] = v end
  local body = args.body
  if args.file then body = core.read_file(args.file) end
  local fgen = sluice.funcgen_new()
  fgen:ready { n = label, f = function(rctx)
    local answer = rctx:response_new():set_status(status):body(body)
    for _, k in ipairs(sorted_keys(headers)) do
      local good, why = pcall(answer.set_header, answer, k, headers[k])
      if not good then fail(h.at, "headers", "route_static: " .. (tostring(why):gsub("^.-set_header: ", ""))) end
    end
    return function() return answer end
  end }
  return fgen
end, function(args, at)
  -- While the config is read, so that workers find it.
  if not args.file then return end
  local text, why = core.read_file(args.file)
  if not text then fail(at, "file", "route_static: " .. why) end
end)

-- To another place: 301, 302, 303, 307 or 308. With `keep` the path and the query come behind it.
handler("route_redirect", { to = "string!", status = "number", keep = "boolean" }, function(h, label)
  local to, status, keep = h.args.to, h.args.status or 302, h.args.keep
  if not ({ [301] = 1, [302] = 1, [303] = 1, [307] = 1, [308] = 1 })[status] then
    fail(h.at, "status", "route_redirect: `status` is 301, 302, 303, 307 or 308")
  end
  if to:find("[%c ]") or to == "" then fail(h.at, "to", "route_redirect: `to` is an address without spaces") end
  local base = keep and to:gsub("/$", "") or to
  local function escape(c) return ("%%%02X"):format(c:byte()) end
  local fgen = sluice.funcgen_new()
  fgen:ready { n = label, f = function()
    return function(r)
      if not keep then return status, "", { Location = to } end
      local query = r:target():match("%?(.*)$")
      return status, "", { Location = base .. r:path():gsub("[^%w%-%._~/!$&'()*+,;=:@]", escape) .. (query and "?" .. query or "") }
    end
  end }
  return fgen
end)

local function child_of(h, label)
  local fgen = sluice.funcgen_new()
  return fgen, fgen:new_handle(resolve(h.args.child, h.at, label))
end

local function encode_base64(text)
  local digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
  local out = {}
  for i = 1, #text, 3 do
    local a, b, c = text:byte(i, i + 2)
    local n = a * 65536 + (b or 0) * 256 + (c or 0)
    for shift = 18, 0, -6 do
      local at = math.floor(n / 2 ^ shift) % 64 + 1
      out[#out + 1] = ((shift == 6 and not b) or (shift == 0 and not c)) and "=" or digits:sub(at, at)
    end
  end
  return table.concat(out)
end

-- Only for those who show a bearer token or a user's password: else 401.
handler("route_auth", { child = "child!", tokens = "list", users = "table", realm = "string" }, function(h, label)
  local args = h.args
  if not args.tokens and not args.users then fail(h.at, nil, "route_auth needs `tokens` or `users`") end
  local realm = args.realm or "sluice"
  if realm:find('[%c"\\]') then fail(h.at, "realm", "route_auth: `realm` has no quotes and control bytes") end
  local good, ways = { bearer = {}, basic = {} }, {}
  for _, token in ipairs(args.tokens or {}) do
    if type(token) ~= "string" or #token < 8 or token:find("[%s%c]") then
      fail(h.at, "tokens", "route_auth: a token is a text of at least 8 bytes without spaces")
    end
    good.bearer[token] = true
  end
  for name, password in pairs(args.users or {}) do
    if type(name) ~= "string" or name:find(":", 1, true) or type(password) ~= "string" or password == "" then
      fail(h.at, "users", "route_auth: `users` is a table of names, without `:`, with passwords")
    end
    good.basic[encode_base64(name .. ":" .. password)] = true
  end
  if args.tokens then ways[#ways + 1] = 'Bearer realm="' .. realm .. '"' end
  if args.users then ways[#ways + 1] = 'Basic realm="' .. realm .. '", charset="UTF-8"' end
  local fgen, child = child_of(h, label)
  fgen:ready { n = label, f = function(rctx)
    return function(r)
      local scheme, shown = (r:header("authorization") or ""):match("^(%a+) +([^%s]+)$")
      local of_scheme = scheme and good[scheme:lower()]
      if of_scheme and of_scheme[shown] then return rctx:enqueue_and_wait(r, child) end
      return 401, "who are you?\n", { ["WWW-Authenticate"] = ways, ["X-Pure-Error"] = "unauthorized" }
    end
  end }
  return fgen
end)

-- Lets browsers ask from pages of other origins, and answers their questions beforehand.
handler("route_cors",
  { child = "child!", origins = "list!", methods = "methods", headers = "list", expose = "list", max_age = "number", credentials = "boolean" },
  function(h, label)
    local args = h.args
    local any, known = false, {}
    for _, origin in ipairs(args.origins) do
      if type(origin) ~= "string" or origin:find("[%s%c]") then fail(h.at, "origins", "route_cors: an origin is such as \"https://example.com\", or \"*\"") end
      if origin == "*" then any = true else known[origin] = true end
    end
    if any and args.credentials then fail(h.at, "credentials", "route_cors: `credentials` goes not with the origin \"*\"") end
    local function words(list)
      for _, word in ipairs(list or {}) do
        if type(word) ~= "string" or word:find("[%s%c,]") then fail(h.at, nil, "route_cors: names of methods and headers have no spaces") end
      end
      return list and table.concat(list, ", ")
    end
    local methods, headers, expose = words(args.methods or { "GET", "HEAD", "POST", "PUT", "DELETE" }), words(args.headers), words(args.expose)
    local max_age = args.max_age and ("%d"):format(args.max_age)
    local fgen, child = child_of(h, label)
    fgen:ready { n = label, f = function(rctx)
      return function(r)
        local origin = r:header("origin")
        local allowed = origin and (any and "*" or known[origin] and origin)
        local asks = r:method() == "OPTIONS" and r:header("access-control-request-method")
        if asks then
          if not allowed then return 403, "not from there\n", { ["X-Pure-Error"] = "denied" } end
          return 204, nil, { ["Access-Control-Allow-Origin"] = allowed, ["Access-Control-Allow-Methods"] = methods,
            ["Access-Control-Allow-Headers"] = headers, ["Access-Control-Max-Age"] = max_age,
            ["Access-Control-Allow-Credentials"] = args.credentials and "true" or nil, Vary = not any and "Origin" or nil }
        end
        local res = rctx:enqueue_and_wait(r, child)
        if not allowed then return res, { Vary = not any and "Origin" or nil } end
        return res, { ["Access-Control-Allow-Origin"] = allowed, ["Access-Control-Expose-Headers"] = expose,
          ["Access-Control-Allow-Credentials"] = args.credentials and "true" or nil, Vary = not any and "Origin" or nil }
      end
    end }
    return fgen
  end)

-- Lua in place: f(rctx, h) runs once per slot and returns the function that answers a request.
handler("route_lua", { f = "function!", children = "children", methods = "methods" }, function(h, label)
  local args = h.args
  local fgen = sluice.funcgen_new()
  local hs = {}
  if type(args.children) == "string" then hs = handles_of(fgen, resolve_list(args.children, h.at, label)) end
  for _, k in ipairs(type(args.children) == "table" and sorted_keys(args.children) or {}) do
    local child = args.children[k]
    if type(child) == "table" and getmetatable(child) ~= "sluice.handler" or declared.sets[child] then
      hs[k] = handles_of(fgen, resolve_list(child, h.at, label))
    else
      hs[k] = fgen:new_handle(resolve(child, h.at, label))
    end
  end
  fgen:ready { n = label, f = args.f, a = hs }
  if not args.methods then return fgen end
  local map = {}
  for _, m in ipairs(args.methods) do
    if not is_method[m] then
      fail(h.at, "methods", "`" .. tostring(m) .. "` is not a method" .. did_you_mean(tostring(m), methods_known))
    end
    map[m] = fgen
  end
  return sluice.methods(map)
end)

-- By method: cmdmap { GET = ..., all = ... }.
handlers.cmdmap = function(h, label)
  local map = {}
  for m, child in pairs(h.args) do
    local to = type(child) == "function" and core.wrap(child, label) or resolve(child, h.at, label)
    if getmetatable(child) == "sluice.handler" and (child.name == "cmdmap" or child.args.methods) then
      fail(h.at, m, "cmdmap: `" .. m .. "` is a map of methods itself")
    end
    map[m] = to
  end
  return sluice.methods(map)
end
declaration("cmdmap", function(t, at)
  local known = { "all" }
  for _, m in ipairs(methods_known) do known[#known + 1] = m end
  for _, m in ipairs(sorted_keys(t)) do
    if m ~= "all" and not is_method[m] then
      fail(at, tostring(m), "cmdmap: `" .. tostring(m) .. "` is not a method" .. did_you_mean(tostring(m), known))
    end
  end
  if next(t) == nil then fail(at, nil, "cmdmap without methods") end
  return setmetatable({ name = "cmdmap", args = t, at = at }, Handler)
end)

build = function(h, label)
  return handlers[h.name](h, label)
end

-- What stands in routes{}: a handler, a store's or pool's name, or a function that answers by itself.
local function build_entry(entry, at, key)
  local label = tostring(key):sub(1, 80)
  if type(entry) == "function" then return core.wrap(entry, label) end
  if getmetatable(entry) == "sluice.handler" then return build(entry, label) end
  if type(entry) == "string" then return core.direct(resolve(entry, at, label)) end
  fail(at, key, "`" .. tostring(key) .. "` leads to a " .. type(entry)
    .. "; it is a handler, a store's or pool's name, or a function")
end

local routes_fields = { "map", "cmap", "default", "tag", "host", "mode", "start", "stop", "of" }
local is_routes_field = {}
for _, k in ipairs(routes_fields) do is_routes_field[k] = true end

-- Given once for each tag of a listener and each host; without either, for all that is left.
declaration("routes", function(t, at)
  for _, k in ipairs(sorted_keys(t)) do
    if not is_routes_field[k] then
      fail(at, tostring(k), "routes{} has no `" .. tostring(k) .. "`" .. did_you_mean(tostring(k), routes_fields))
    end
    if k == "map" or k == "cmap" then
      if type(t[k]) ~= "table" or getmetatable(t[k]) == "sluice.handler" then
        fail(at, k, "`" .. k .. "` is a table, got a " .. type(t[k]))
      end
    elseif k ~= "default" and (type(t[k]) ~= "string" or t[k] == "") then
      fail(at, k, "`" .. k .. "` of routes{} is a string, got a " .. type(t[k]))
    end
  end
  if t.map == nil and t.cmap == nil and t.default == nil then fail(at, nil, "routes{} needs map, cmap or default") end
  for _, other in ipairs(declared.routes) do
    if other.tag == t.tag and other.host == t.host then
      local place = (t.tag and " for tag `" .. t.tag .. "`" or "") .. (t.host and " for host `" .. t.host .. "`" or "")
      fail(at, nil, "routes{} is given twice" .. place)
    end
  end
  local own = { at = at }
  for _, k in ipairs(routes_fields) do own[k] = t[k] end
  declared.routes[#declared.routes + 1] = own
end)

local function library_pools()
  local pools = check_pools()
  return { stores = declared.stores, pools = pools }
end

local function attach_routes(declared_routes)
  local own, at = declared_routes, declared_routes.at
  if own.tag and not core.tags[own.tag] then
    fail(at, "tag", "no listener has the tag `" .. own.tag .. "`" .. did_you_mean(own.tag, sorted_keys(core.tags))
      .. "; settings { listen = { { \"HOST:PORT\", tag = \"" .. own.tag .. "\" } } }")
  end
  local spec = { map = {}, cmap = {}, mode = own.mode, start = own.start, stop = own.stop, of = own.of }
  for _, path in ipairs(sorted_keys(own.map or {})) do
    if type(path) ~= "string" or ((own.mode or "path") == "path" and path:sub(1, 1) ~= "/") then
      fail(at, tostring(path), "a path in `map` starts with `/`: `" .. tostring(path) .. "`")
    end
    spec.map[path] = build_entry(own.map[path], at, path)
  end
  for _, m in ipairs(sorted_keys(own.cmap or {})) do
    if not is_method[m] then
      fail(at, tostring(m), "cmap: `" .. tostring(m) .. "` is not a method" .. did_you_mean(tostring(m), methods_known))
    end
    spec.cmap[m] = build_entry(own.cmap[m], at, m)
  end
  if own.default ~= nil then spec.default = build_entry(own.default, at, "default") end
  local function said(why) return (tostring(why):gsub("^[^:]*:%d+: ", ""):gsub("^sluice%.router_new", "routes{}")) end
  local good, router = pcall(sluice.router_new, spec)
  if not good then
    -- Which of the paths it is: the first that cannot be added to those before it.
    local all = spec.map
    spec.map = {}
    for _, path in ipairs(sorted_keys(all)) do
      spec.map[path] = all[path]
      local fits, why = pcall(sluice.router_new, spec)
      if not fits then fail(at, path, said(why)) end
    end
    fail(at, nil, said(router))
  end
  local attached, why = pcall(sluice.attach, sluice.ANY, router, { tag = own.tag, host = own.host })
  if not attached then fail(at, "host", (tostring(why):gsub("^.-sluice%.attach: ", ""))) end
end

local function library_routes(given)
  conf = given
  for _, own in ipairs(declared.routes) do attach_routes(own) end
end

-- The tree of routes as text, from what was declared.
local function explain_entry(lines, indent, key, entry)
  local head = indent .. key .. "  "
  if type(entry) == "function" then
    lines[#lines + 1] = head .. "function at " .. core.function_place(entry)
  elseif type(entry) == "string" then
    local pool, set = declared.pools[entry], declared.sets[entry]
    lines[#lines + 1] = head .. (set and "set " .. entry .. " of " .. table.concat(members(set, declared.zone), ", ") or pool and "pool " .. entry .. " of " .. table.concat(pool.stores, ", ") or "store " .. entry)
  else
    local words, children = { entry.name }, {}
    for _, k in ipairs(sorted_keys(entry.args)) do
      local v, kind = entry.args[k], entry.name == "cmdmap" and "child" or options_of[entry.name][k]
      if kind:find("^child") then
        if kind:find("^children") and type(v) == "table" then
          for _, i in ipairs(sorted_keys(v)) do children[#children + 1] = { k .. (type(i) == "number" and "[" .. i .. "]" or "." .. tostring(i)), v[i] } end
        else
          children[#children + 1] = { k, v }
        end
      elseif type(v) == "function" then
        words[#words + 1] = k .. "=function at " .. core.function_place(v)
      elseif k == "tokens" or k == "users" then
        words[#words + 1] = k .. "=..."   -- they are secrets
      elseif type(v) == "table" then
        local parts = {}
        for _, i in ipairs(sorted_keys(v)) do parts[#parts + 1] = (type(i) == "number" and "" or tostring(i) .. "=") .. tostring(v[i]) end
        words[#words + 1] = k .. "={" .. table.concat(parts, ", ") .. "}"
      else
        words[#words + 1] = k .. "=" .. (type(v) == "string" and ("%q"):format(v) or tostring(v))
      end
    end
    lines[#lines + 1] = head .. table.concat(words, " ")
    for _, child in ipairs(children) do explain_entry(lines, indent .. "  ", child[1], child[2]) end
  end
end

local function explain()
  local lines = {}
  for _, own in ipairs(declared.routes) do
    local head = { "routes" }
    for _, k in ipairs { "tag", "host", "mode", "start", "stop", "of" } do
      if own[k] then head[#head + 1] = k .. "=" .. ("%q"):format(own[k]) end
    end
    lines[#lines + 1] = table.concat(head, " ")
    for _, path in ipairs(sorted_keys(own.map or {})) do explain_entry(lines, "  ", path, own.map[path]) end
    for _, m in ipairs(sorted_keys(own.cmap or {})) do explain_entry(lines, "  ", "any path, " .. m, own.cmap[m]) end
    if own.default ~= nil then explain_entry(lines, "  ", "default", own.default) end
  end
  if #lines == 0 then
    if rawget(_G, "sluice_config_routes") then lines[1] = "sluice_config_routes() attaches what it makes"
    else lines[1] = "no routes: /STORE/views/VIEW and so on, of each store" end
  end
  return table.concat(lines, "\n") .. "\n"
end

-- A word that looks like one of ours and is not.
local words = { "settings", "shared", "local_zone", "stats", "stores", "pools", "routes", "cmdmap", "sluice" }
for name in pairs(handlers) do if name ~= "cmdmap" then words[#words + 1] = name end end
setmetatable(_G, { __metatable = "sluice.globals", __index = function(_, name)
  if not closed and type(name) == "string" and name:sub(1, 6) == "route_" then
    local file, line = core.where(2)
    core.fail(file, line, nil, "there is no handler `" .. name .. "`" .. did_you_mean(name, words))
  end
end })

-- The same for sluice.NAME; and one that only the other stage has.
local other_stage = {}
for _, name in ipairs(core.stage == "config" and { "funcgen_new", "router_new", "methods", "attach", "internal", "log_req", "log_reqsample" }
  or { "store", "pool", "settings", "schedule_config_reload", "post", "view", "get" }) do other_stage[name] = true end
setmetatable(sluice, { __metatable = "sluice", __index = function(_, name)
  local file, line = core.where(2)
  if other_stage[name] then
    core.fail(file, line, nil, "sluice." .. name .. (core.stage == "config" and " is not there while the file is read: use it in sluice_config_routes() or in a route"
      or " belongs to sluice_config_pools() and to crons: a worker does not have it"))
  end
  core.fail(file, line, nil, "there is no sluice." .. tostring(name) .. did_you_mean(tostring(name), sorted_keys(sluice)))
end })

-- For C++: what the config left, once it has run.
return {
  close = function() closed = true end,
  explain = explain,
  has_routes = function()
    local first = declared.routes[1]
    if first and rawget(_G, "sluice_config_routes") then
      fail(first.at, nil, "routes{} and sluice_config_routes() cannot be given both")
    end
    if first and rawget(_G, "sluice_config_pools") then
      fail(first.at, nil, "routes{} and sluice_config_pools() cannot be given both")
    end
    return first ~= nil or rawget(_G, "sluice_config_routes") ~= nil
  end,
  pools = function()
    local own = rawget(_G, "sluice_config_pools")
    if not own then return library_pools() end
    check_pools()
    return own(nil)
  end,
  routes = function(given)
    local own = rawget(_G, "sluice_config_routes")
    if own then return own(given) end
    return library_routes(given)
  end,
}
