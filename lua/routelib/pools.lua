-- pools{}: of stores or of remote backends.
local lib, core = ...
local pairs, ipairs, type, tostring = pairs, ipairs, type, tostring
local declared, declaration = lib.declared, lib.declaration
local fail, did_you_mean, sorted_keys = lib.fail, lib.did_you_mean, lib.sorted_keys

local pool_fields = { "stores", "backends", "backend_options", "options", "seed" }
local is_pool_field = {}
for _, k in ipairs(pool_fields) do is_pool_field[k] = true end

local function declare_pool(name, spec, at)
  if type(name) ~= "string" or type(spec) ~= "table" then
    fail(at, tostring(name), "pools { NAME = { stores = { \"a\", \"b\" } } }, or { backends = { \"HOST:PORT\" } }")
  end
  if declared.pools[name] ~= nil then fail(at, name, "pool `" .. name .. "` is declared twice") end
  for _, k in ipairs(sorted_keys(spec)) do
    if not is_pool_field[k] then
      fail(at, tostring(k), "pool `" .. name .. "` has no `" .. tostring(k) .. "`" .. did_you_mean(tostring(k), pool_fields))
    end
  end
  if spec.stores ~= nil and spec.backends ~= nil then
    fail(at, name, "pool `" .. name .. "` has stores or backends, not both: route_failover and others take a pool of each")
  end
  local list = spec.backends or spec.stores
  if type(list) ~= "table" or #list == 0 then
    fail(at, name, "pool `" .. name .. "` needs " .. (spec.backends ~= nil and "backends = { \"HOST:PORT\", ... }" or "stores = { \"NAME\", ... }") .. ", at least one")
  end
  if spec.backend_options ~= nil and not spec.backends then fail(at, "backend_options", "pool `" .. name .. "`: `backend_options` go with `backends`") end
  if spec.seed ~= nil and not (type(spec.seed) == "number" and spec.seed >= 0 and spec.seed <= 2 ^ 53 and spec.seed % 1 == 0) then
    fail(at, "seed", "pool `" .. name .. "`: seed is a whole number from 0")
  end
  if spec.options ~= nil and type(spec.options) ~= "table" then fail(at, "options", "pool `" .. name .. "`: `options` is a table") end
  local options = { name = name, seed = spec.seed }
  for k, v in pairs(spec.options or {}) do
    if k == "name" or k == "seed" and spec.seed ~= nil then fail(at, "options", "pool `" .. name .. "`: its `" .. k .. "` is said already") end
    options[k] = v
  end
  declared.pools[name] = { at = at, stores = spec.stores, backends = spec.backends, backend_options = spec.backend_options, options = options }
end

-- Names are looked up in here: only where the config is read.
local function backends_of(name, pool)
  local list = {}
  for i, spec in ipairs(pool.backends) do
    local made, field, why = core.backend(spec, pool.backend_options)
    if not made then fail(pool.at, field ~= "" and field or name, "pool `" .. name .. "`: " .. why) end
    list[i] = made
  end
  return list
end

local function stores_of(name, pool)
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
  return list
end

declaration("pools", function(t, at)
  for _, name in ipairs(sorted_keys(t)) do
    local declare = type(name) == "string" and name:sub(1, 4) == "set_" and lib.declare_set or declare_pool
    declare(name, t[name], at)
  end
end)

-- Once all is declared: pools are made of stores that exist, and of backends that are found.
function lib.check_pools()
  local made = {}
  for _, name in ipairs(sorted_keys(declared.pools)) do
    local pool = declared.pools[name]
    if declared.stores[name] ~= nil then fail(pool.at, name, "`" .. name .. "` is a pool and a store") end
    made[name] = true
    local list = pool.stores and stores_of(name, pool)
    if core.stage == "config" then
      local description, why = core.pool(list or backends_of(name, pool), pool.options)
      if not description then fail(pool.at, name, why:find("^pool `") and why or "pool `" .. name .. "`: " .. why) end
      made[name] = description
    end
  end
  lib.check_sets()
  return made
end

-- The members of a pool as words.
function lib.pool_members(pool)
  if pool.stores then return pool.stores end
  local words = {}
  for i, b in ipairs(pool.backends) do
    if type(b) ~= "table" then words[i] = tostring(b)
    else words[i] = tostring(b.label or b.name or b[1] or b.address or tostring(b.host) .. (b.port and ":" .. tostring(b.port) or "")) end
  end
  return words
end
