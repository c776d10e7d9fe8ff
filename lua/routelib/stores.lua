-- What serves beneath the routes: settings{}, stores{}, shared{}, stats{} and pools{}.
local lib, core = ...
local sluice = sluice
local pairs, ipairs, type, tostring = pairs, ipairs, type, tostring
local declared, declaration = lib.declared, lib.declaration
local fail, did_you_mean, sorted_keys = lib.fail, lib.did_you_mean, lib.sorted_keys

declaration("settings", function(t, at)
  if core.stage ~= "config" then return end
  local listens = t.listen ~= nil and "listen" or t.port ~= nil and "port" or "host"
  local name, why = core.settings(t, at[2], at[1], at[1] == core.file and core.line(listens, at[2]) or at[2])
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
    local declare = type(name) == "string" and name:sub(1, 4) == "set_" and lib.declare_set or declare_pool
    declare(name, t[name], at)
  end
end)

-- Once all is declared: pools are made of stores that exist.
function lib.check_pools()
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
  lib.check_sets()
  return made
end
