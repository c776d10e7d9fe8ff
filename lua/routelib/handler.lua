-- What a handler is: its options, its children, and how it becomes a route.
local lib, core = ...
local sluice = sluice
local ipairs, pairs, type, tostring, next = ipairs, pairs, type, tostring, next
local setmetatable, getmetatable = setmetatable, getmetatable
local declared, declaration, members = lib.declared, lib.declaration, lib.members
local fail, did_you_mean, sorted_keys = lib.fail, lib.did_you_mean, lib.sorted_keys

local Handler = { __metatable = "sluice.handler" }
-- Of a table that declares one, as routes{} and children have it.
function lib.new_handler(name, args, at) return setmetatable({ name = name, args = args, at = at }, Handler) end
local function is_handler(v) return getmetatable(v) == "sluice.handler" end
local function is_plain(v) return type(v) == "table" and getmetatable(v) == nil end
local function is_entry(v) return type(v) == "string" or type(v) == "function" or is_handler(v) end
lib.is_handler = is_handler

-- Each option has a kind; "!" behind it: required. Those with "child" or "entr" in them lead to other handlers: each_child().
local handlers = {}
local options_of = {}   -- handler -> option -> kind

local kinds = {
  child = function(v) return is_entry(v) or is_plain(v) and #v > 0, "a store, a pool, a handler or a function" end,
  children = function(v)
    return type(v) == "string" or is_handler(v) or is_plain(v) and next(v) ~= nil, "a table of stores, pools or handlers, or the name of a set"
  end,
  entry = function(v) return is_entry(v), "a store, a pool, a handler or a function" end,
  entries = function(v) return is_plain(v) and next(v) ~= nil, "a table of stores, pools, handlers or functions" end,
  number = function(v) return type(v) == "number" and v >= 0, "a number from 0" end,
  boolean = function(v) return type(v) == "boolean", "true or false" end,
  ["function"] = function(v) return type(v) == "function", "a function" end,
  string = function(v) return type(v) == "string", "a string" end,
  size = function(v) return type(v) == "number" or type(v) == "string", "a size such as \"8MiB\"" end,
  scalar = function(v) return type(v) == "string" or type(v) == "number" or type(v) == "boolean", "a string, a number or a boolean" end,
  key = function(v) return type(v) == "string" or type(v) == "function", "a string or a function" end,
  list = function(v) return type(v) == "table" and #v > 0, "a list" end,
  table = function(v) return is_plain(v), "a table" end,
  methods = function(v) return type(v) == "table" and #v > 0, "a list of methods" end,
}
lib.kinds = kinds

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

local function children_known()
  local names = sorted_keys(lib.conf.pools)
  for _, k in ipairs(sorted_keys(lib.conf.stores)) do names[#names + 1] = k end
  return names
end

-- The children that `child` stands for, each one by itself: of a set its members, of a list all in it, of a handler whose
-- `child` is several one such handler for each. `zone`: of sets, which comes first; `seen`: were there sets with zones?
local function expand(child, at, zone, seen, list)
  list = list or {}
  if type(child) == "string" and declared.sets[child] then
    local set = declared.sets[child]
    if zone and not (set.zones and set.zones[zone]) then fail(at, "local_zone", "set `" .. child .. "` has no zone `" .. zone .. "`") end
    if set.zones then seen.zones = true end
    for _, member in ipairs(members(set, zone or declared.zone)) do list[#list + 1] = member end
  elseif is_plain(child) then
    for _, k in ipairs(sorted_keys(child)) do
      if type(k) ~= "number" then fail(at, "children", "children are a list here, without names") end
    end
    for _, one in ipairs(child) do expand(one, at, zone, seen, list) end
  elseif is_handler(child) and options_of[child.name] and (options_of[child.name].child or ""):find("^child!?$") then
    local inner = child.args.child
    local below = expand(inner, child.at, zone, seen)
    if #below == 1 and below[1] == inner then
      list[#list + 1] = child
    else
      for _, one in ipairs(below) do
        local args = {}
        for k, v in pairs(child.args) do args[k] = v end
        args.child = one
        list[#list + 1] = lib.new_handler(child.name, args, child.at)
      end
    end
  else
    list[#list + 1] = child
  end
  return list
end

-- One child as what new_handle() takes.
local function resolve(child, at, label)
  if type(child) == "function" then return core.wrap(child, label) end
  if type(child) == "string" then
    local found = lib.conf.pools[child] or lib.conf.stores[child]
    if not found and declared.sets[child] then fail(at, nil, "`" .. child .. "` is a set: it is all of a `children`, not one of them") end
    if not found then fail(at, nil, "there is no pool or store `" .. child .. "`" .. did_you_mean(child, children_known())) end
    return found
  end
  if not is_handler(child) then
    if is_plain(child) and #child > 0 then fail(at, nil, "one child is needed here; a list goes into `children`, or into the `child` of what stands in one") end
    fail(at, nil, "a child is the name of a store or pool, a handler or a function, got a " .. type(child))
  end
  -- What only passes on needs nothing in between.
  if child.name == "route_direct" then return resolve(child.args.child, child.at, label) end
  return lib.build(child, label)
end

local function resolve_list(children, at, label, zone)
  if type(children) == "string" and not declared.sets[children] and children:sub(1, 4) == "set_" then
    fail(at, nil, "there is no set `" .. children .. "`" .. did_you_mean(children, sorted_keys(declared.sets)))
  end
  local seen = {}
  local list = expand(children, at, zone, seen)
  if zone and not seen.zones then fail(at, "local_zone", "`local_zone` goes with a set with zones, such as children = \"set_NAME\"") end
  for i, child in ipairs(list) do list[i] = resolve(child, at, label) end
  return list
end

local function handles_of(fgen, list)
  local hs = {}
  for i, target in ipairs(list) do hs[i] = fgen:new_handle(target) end
  return hs
end

-- The handles of a `children` that may have names: a list for a list, a set, or several.
local function named_handles(fgen, children, at, label)
  if type(children) ~= "table" or is_handler(children) then return handles_of(fgen, resolve_list(children, at, label)) end
  local hs = {}
  for _, k in ipairs(sorted_keys(children)) do
    local child = children[k]
    local several = is_plain(child) or declared.sets[child]
    if not several and is_handler(child) then several = #expand(child, at, nil, {}) > 1 end
    hs[k] = several and handles_of(fgen, resolve_list(child, at, label)) or fgen:new_handle(resolve(child, at, label))
  end
  return hs
end

-- f(key, child) for everything that a handler leads to, in a steady order.
function lib.each_child(h, f)
  for _, k in ipairs(sorted_keys(h.args)) do
    local v, kind = h.args[k], h.name == "cmdmap" and "entry" or options_of[h.name][k]
    if kind:find("^entries") or (kind:find("^child") and is_plain(v)) then
      for _, i in ipairs(sorted_keys(v)) do f(k .. (type(i) == "number" and "[" .. i .. "]" or "." .. tostring(i)), v[i], k, i) end
    elseif kind:find("^child") or kind:find("^entry") then
      f(k, v, k)
    end
  end
end

function lib.build(h, label) return handlers[h.name](h, label) end

-- A generator and the handle of h's only child.
function lib.child_of(h, label)
  local fgen = sluice.funcgen_new()
  return fgen, fgen:new_handle(resolve(h.args.child, h.at, label))
end

-- What stands in routes{}, or in another map: a handler, a store's or pool's name, or a function that answers by itself.
function lib.build_entry(entry, at, key)
  local label = tostring(key):sub(1, 80)
  if type(entry) == "string" then return core.direct(resolve(entry, at, label)) end
  if is_entry(entry) then return resolve(entry, at, label) end
  fail(at, key, "`" .. tostring(key) .. "` leads to a " .. type(entry)
    .. "; it is a handler, a store's or pool's name, or a function")
end

lib.handlers, lib.options_of, lib.handler = handlers, options_of, handler
lib.methods_known, lib.is_method = methods_known, is_method
lib.resolve, lib.resolve_list, lib.handles_of, lib.named_handles = resolve, resolve_list, handles_of, named_handles
-- lib.conf: what sluice_config_pools() returned, in a worker.
