-- The route library: settings{}, stores{}, pools{}, routes{} and the handlers, written over the lower layer.
--
-- It runs before the config, in the config VM and in every worker's: the files of this folder, in meson.build's order, each handed `lib`,
-- what they have in common, and `core`, C++'s part that configs do not see. This one: how a declaration is made, and what is said of a wrong one.
local lib, core = ...
local pairs, ipairs, type, tostring = pairs, ipairs, type, tostring
local rawset, select = rawset, select
local sort = table.sort

lib.declared = { stores = {}, pools = {}, sets = {}, routes = {}, zone = nil }
lib.closed = false   -- the config has run: nothing more is declared

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
    if lib.closed then fail(at, nil, name .. "{} belongs to the config, not into a route") end
    if type(t) ~= "table" or select("#", ...) > 0 then fail(at, nil, name .. " takes one table: " .. name .. " { ... }") end
    return f(t, at)
  end)
end

lib.did_you_mean, lib.sorted_keys, lib.place, lib.fail, lib.declaration = did_you_mean, sorted_keys, place, fail, declaration
