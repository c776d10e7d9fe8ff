-- What serves beneath the routes: settings{}, stores{}, shared{} and stats{}.
local lib, core = ...
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
