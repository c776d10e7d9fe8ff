-- Sets of children, and zones: which of them come first.
local lib, core = ...
local pairs, ipairs, type, tostring, next = pairs, ipairs, type, tostring, next
local rawset, os = rawset, os
local declared = lib.declared
local fail, did_you_mean, sorted_keys = lib.fail, lib.did_you_mean, lib.sorted_keys

-- set_NAME = { "a", "b" } or, by zones, { east = { "a" }, west = { "b", "c" } }: what a `children` may be.
function lib.declare_set(name, spec, at)
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
  if lib.closed then core.fail(file, line, nil, what .. "() belongs to the config, not into a route") end
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

-- Once all is declared: their members exist.
function lib.check_sets()
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
end

-- The members of a set, those of the local zone first, then the zones by their names.
function lib.members(set, zone)
  if set.list then return set.list end
  local list = {}
  local function add(name) for _, member in ipairs(set.zones[name] or {}) do list[#list + 1] = member end end
  if zone then add(zone) end
  for _, name in ipairs(sorted_keys(set.zones)) do if name ~= zone then add(name) end end
  return list
end
