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
local declared = { stores = {}, pools = {}, routes = nil }
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
  local name, why = core.settings(t)
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

declaration("pools", function(t, at)
  for _, name in ipairs(sorted_keys(t)) do
    local spec = t[name]
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
  return made
end

-- Handlers. Each option has a kind: child, children, number, boolean, function, methods. "!" behind it: required.

local handlers = {}

local kinds = {
  child = function(v) return type(v) == "string" or getmetatable(v) == "sluice.handler", "a store, a pool or a handler" end,
  children = function(v)
    return type(v) == "table" and getmetatable(v) ~= "sluice.handler" and next(v) ~= nil, "a table of stores, pools or handlers"
  end,
  number = function(v) return type(v) == "number" and v >= 0, "a number from 0" end,
  boolean = function(v) return type(v) == "boolean", "true or false" end,
  ["function"] = function(v) return type(v) == "function", "a function" end,
  methods = function(v) return type(v) == "table" and #v > 0, "a list of methods" end,
}

local function handler(name, options, build)
  local known = sorted_keys(options)
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

local function resolve_list(children, at, label)
  local list = {}
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
  { children = "children!", failover_count = "number", miss = "boolean", wait = "number", shuffle = "boolean" },
  function(h, label)
    local args = h.args
    local fgen = sluice.funcgen_new()
    local hs = handles_of(fgen, resolve_list(args.children, h.at, label))
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

-- Lua in place: f(rctx, h) runs once per slot and returns the function that answers a request.
handler("route_lua", { f = "function!", children = "children", methods = "methods" }, function(h, label)
  local args = h.args
  local fgen = sluice.funcgen_new()
  local hs = {}
  for _, k in ipairs(sorted_keys(args.children or {})) do
    local child = args.children[k]
    if type(child) == "table" and getmetatable(child) ~= "sluice.handler" then
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

declaration("routes", function(t, at)
  if declared.routes then fail(at, nil, "routes{} is given twice") end
  for _, k in ipairs(sorted_keys(t)) do
    if k ~= "map" and k ~= "cmap" and k ~= "default" then
      fail(at, tostring(k), "routes{} has no `" .. tostring(k) .. "`" .. did_you_mean(tostring(k), { "map", "cmap", "default" }))
    end
  end
  for _, k in ipairs { "map", "cmap" } do
    if t[k] ~= nil and (type(t[k]) ~= "table" or getmetatable(t[k]) == "sluice.handler") then
      fail(at, k, "`" .. k .. "` is a table, got a " .. type(t[k]))
    end
  end
  if next(t) == nil then fail(at, nil, "routes{} needs map, cmap or default") end
  declared.routes = { map = t.map, cmap = t.cmap, default = t.default, at = at }
end)

local function library_pools()
  local pools = check_pools()
  return { stores = declared.stores, pools = pools }
end

local function library_routes(given)
  conf = given
  local at = declared.routes.at
  local spec = { map = {}, cmap = {} }
  for _, path in ipairs(sorted_keys(declared.routes.map or {})) do
    if type(path) ~= "string" or path:sub(1, 1) ~= "/" then
      fail(at, tostring(path), "a path in `map` starts with `/`: `" .. tostring(path) .. "`")
    end
    spec.map[path] = build_entry(declared.routes.map[path], at, path)
  end
  for _, m in ipairs(sorted_keys(declared.routes.cmap or {})) do
    if not is_method[m] then
      fail(at, tostring(m), "cmap: `" .. tostring(m) .. "` is not a method" .. did_you_mean(tostring(m), methods_known))
    end
    spec.cmap[m] = build_entry(declared.routes.cmap[m], at, m)
  end
  if declared.routes.default ~= nil then spec.default = build_entry(declared.routes.default, at, "default") end
  local good, router = pcall(sluice.router_new, spec)
  if not good then
    -- Which of the paths it is: the first that cannot be added to those before it.
    local map = {}
    for _, path in ipairs(sorted_keys(spec.map)) do
      map[path] = spec.map[path]
      local fits, why = pcall(sluice.router_new, { map = map })
      if not fits then fail(at, path, (tostring(why):gsub("^[^:]*:%d+: ", ""))) end
    end
    fail(at, nil, tostring(router))
  end
  sluice.attach(sluice.ANY, router)
end

-- A word that looks like one of ours and is not.
local words = { "settings", "shared", "stores", "pools", "routes", "cmdmap", "sluice" }
for name in pairs(handlers) do if name ~= "cmdmap" then words[#words + 1] = name end end
setmetatable(_G, { __metatable = "sluice.globals", __index = function(_, name)
  if not closed and type(name) == "string" and name:sub(1, 6) == "route_" then
    local file, line = core.where(2)
    core.fail(file, line, nil, "there is no handler `" .. name .. "`" .. did_you_mean(name, words))
  end
end })

-- For C++: what the config left, once it has run.
return {
  close = function() closed = true end,
  has_routes = function()
    if declared.routes and rawget(_G, "sluice_config_routes") then
      fail(declared.routes.at, nil, "routes{} and sluice_config_routes() cannot be given both")
    end
    local own_pools = rawget(_G, "sluice_config_pools") ~= nil
    if declared.routes and own_pools then
      fail(declared.routes.at, nil, "routes{} and sluice_config_pools() cannot be given both")
    end
    return declared.routes ~= nil or rawget(_G, "sluice_config_routes") ~= nil
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
