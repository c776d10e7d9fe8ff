-- routes{}, and what stands in it beside handlers of C++ and of others: Lua in place, and maps of methods.
local lib, core = ...
local sluice = sluice
local pairs, ipairs, type, tostring, next = pairs, ipairs, type, tostring, next
local getmetatable, pcall = getmetatable, pcall
local declared, declaration, handler, handlers = lib.declared, lib.declaration, lib.handler, lib.handlers
local resolve, resolve_list, handles_of = lib.resolve, lib.resolve_list, lib.handles_of
local methods_known, is_method = lib.methods_known, lib.is_method
local fail, did_you_mean, sorted_keys = lib.fail, lib.did_you_mean, lib.sorted_keys

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
  return lib.new_handler("cmdmap", t, at)
end)

-- What stands in routes{}: a handler, a store's or pool's name, or a function that answers by itself.
local function build_entry(entry, at, key)
  local label = tostring(key):sub(1, 80)
  if type(entry) == "function" then return core.wrap(entry, label) end
  if getmetatable(entry) == "sluice.handler" then return lib.build(entry, label) end
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

-- What was declared, as routes.
function lib.attach_all(given)
  lib.conf = given
  for _, own in ipairs(declared.routes) do attach_routes(own) end
end
