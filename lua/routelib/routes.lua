-- routes{}, and what stands in it beside handlers of C++ and of others: Lua in place, and maps of methods.
local lib, core = ...
local sluice = sluice
local ipairs, type, tostring, next = ipairs, type, tostring, next
local getmetatable, pcall = getmetatable, pcall
local declared, declaration, handler, handlers = lib.declared, lib.declaration, lib.handler, lib.handlers
local resolve = lib.resolve
local build_entry = lib.build_entry
local methods_known, is_method = lib.methods_known, lib.is_method
local fail, did_you_mean, sorted_keys = lib.fail, lib.did_you_mean, lib.sorted_keys

-- Lua in place: f(rctx, h) runs once per slot and returns the function that answers a request.
handler("route_lua", { f = "function!", children = "children", methods = "methods" }, function(h, label)
  local args = h.args
  local fgen = sluice.funcgen_new()
  local hs = args.children and lib.named_handles(fgen, args.children, h.at, label) or {}
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
  -- In one order: what is made in it, such as a limiter of the process, has the same number in every worker.
  for _, m in ipairs(sorted_keys(h.args)) do
    local child = h.args[m]
    local to = resolve(child, h.at, label)
    if lib.is_handler(child) and (child.name == "cmdmap" or child.args.methods) then
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
  return lib.new_handler("cmdmap", t, at)
end)

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
  local function plain(host) return host and (host:lower():gsub("^%*%.", "."):gsub("(.)%.$", "%1")) end
  for _, other in ipairs(declared.routes) do
    if other.tag == t.tag and plain(other.host) == plain(t.host) then
      local place = (t.tag and " for tag `" .. t.tag .. "`" or "") .. (t.host and " for host `" .. t.host .. "`" or "")
      fail(at, nil, "routes{} is given twice" .. place)
    end
  end
  local own = { at = at }
  for _, k in ipairs(routes_fields) do own[k] = t[k] end
  declared.routes[#declared.routes + 1] = own
end)

-- A router of {map =, cmap =, default =, mode =, start =, stop =, of =}; `what` is what errors call it.
local function build_router(own, at, what)
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
  local function said(why) return (tostring(why):gsub("^[^:]*:%d+: ", ""):gsub("^sluice%.router_new", what)) end
  local good, router = pcall(sluice.router_new, spec)
  if good then return router end
  -- Which of the paths it is: the first that the sentence quotes.
  for quoted in tostring(router):gmatch("`([^`]*)`") do
    if spec.map[quoted] ~= nil then fail(at, quoted, said(router)) end
  end
  fail(at, nil, said(router))
end

-- A router as a child: by what is behind the path that led to it.
handler("route_map", { map = "entries", cmap = "entries", default = "entry", mode = "string", start = "string", stop = "string", of = "string" },
  function(h) return build_router(h.args, h.at, "route_map{}") end,
  function(args, at)
    if args.map == nil and args.cmap == nil and args.default == nil then fail(at, nil, "route_map needs map, cmap or default") end
  end)

local function attach_routes(own)
  local at = own.at
  if own.tag and not core.tags[own.tag] then
    fail(at, "tag", "no listener has the tag `" .. own.tag .. "`" .. did_you_mean(own.tag, sorted_keys(core.tags))
      .. "; settings { listen = { { \"HOST:PORT\", tag = \"" .. own.tag .. "\" } } }")
  end
  local router = build_router(own, at, "routes{}")
  local attached, why = pcall(sluice.attach, sluice.ANY, router, { tag = own.tag, host = own.host })
  if not attached then fail(at, "host", (tostring(why):gsub("^.-sluice%.attach: ", ""))) end
end

-- What was declared, as routes.
function lib.attach_all(given)
  lib.conf = given
  for _, own in ipairs(declared.routes) do attach_routes(own) end
end
