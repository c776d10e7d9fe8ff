-- What a handler is: its options, its children, and how it becomes a route.
local lib, core = ...
local sluice = sluice
local ipairs, type, tostring, next = ipairs, type, tostring, next
local setmetatable, getmetatable = setmetatable, getmetatable
local declared, declaration, members = lib.declared, lib.declaration, lib.members
local fail, did_you_mean, sorted_keys = lib.fail, lib.did_you_mean, lib.sorted_keys

local Handler = { __metatable = "sluice.handler" }
-- Of a table that declares one, as routes{} and children have it.
function lib.new_handler(name, args, at) return setmetatable({ name = name, args = args, at = at }, Handler) end

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
    return lib.new_handler(name, args, at)
  end)
end

local methods_known = { "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE" }
local is_method = {}
for _, m in ipairs(methods_known) do is_method[m] = true end

-- A child as what new_handle() takes.
local function resolve(child, at, label)
  if type(child) == "string" then
    local found = lib.conf.pools[child] or lib.conf.stores[child]
    if not found and declared.sets[child] then fail(at, nil, "`" .. child .. "` is a set: it is all of a `children`, not one of them") end
    if not found then
      local names = sorted_keys(lib.conf.pools)
      for _, k in ipairs(sorted_keys(lib.conf.stores)) do names[#names + 1] = k end
      fail(at, nil, "there is no pool or store `" .. child .. "`" .. did_you_mean(child, names))
    end
    return found
  end
  if getmetatable(child) ~= "sluice.handler" then
    fail(at, nil, "a child is the name of a store or pool, or a handler, got a " .. type(child))
  end
  -- What only passes on needs nothing in between.
  if child.name == "route_direct" then return resolve(child.args.child, child.at, label) end
  return lib.build(child, label)
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

function lib.build(h, label) return handlers[h.name](h, label) end

-- A generator and the handle of h's only child.
function lib.child_of(h, label)
  local fgen = sluice.funcgen_new()
  return fgen, fgen:new_handle(resolve(h.args.child, h.at, label))
end

lib.handlers, lib.options_of, lib.handler = handlers, options_of, handler
lib.methods_known, lib.is_method = methods_known, is_method
lib.resolve, lib.resolve_list, lib.handles_of = resolve, resolve_list, handles_of
-- lib.conf: what sluice_config_pools() returned, in a worker.
