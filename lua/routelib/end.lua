-- What is said of a name that does not exist, and what C++ asks for once the config has run: the last file.
local lib, core = ...
local sluice = sluice
local ipairs, type, tostring = ipairs, type, tostring
local setmetatable, rawget = setmetatable, rawget
local declared, handlers = lib.declared, lib.handlers
local fail, did_you_mean, sorted_keys = lib.fail, lib.did_you_mean, lib.sorted_keys

-- A word that looks like one of ours and is not.
setmetatable(_G, { __metatable = "sluice.globals", __index = function(_, name)
  if not lib.closed and type(name) == "string" and name:sub(1, 6) == "route_" then
    local file, line = core.where(2)
    core.fail(file, line, nil, "there is no handler `" .. name .. "`" .. did_you_mean(name, sorted_keys(handlers)))
  end
end })

-- The same for sluice.NAME; and one that only the other stage has.
local other_stage = {}
for _, name in ipairs(core.stage == "config" and { "funcgen_new", "router_new", "methods", "attach", "internal", "log_req", "log_reqsample" }
  or { "store", "backend", "pool", "settings", "schedule_config_reload", "post", "view", "get" }) do other_stage[name] = true end
setmetatable(sluice, { __metatable = "sluice", __index = function(_, name)
  local file, line = core.where(2)
  if other_stage[name] then
    core.fail(file, line, nil, "sluice." .. name .. (core.stage == "config" and " is not there while the file is read: use it in sluice_config_routes() or in a route"
      or " belongs to sluice_config_pools() and to crons: a worker does not have it"))
  end
  core.fail(file, line, nil, "there is no sluice." .. tostring(name) .. did_you_mean(tostring(name), sorted_keys(sluice)))
end })

-- For C++: what the config left, once it has run.

function lib.close() lib.closed = true end

function lib.has_routes()
  local first = declared.routes[1]
  if first and rawget(_G, "sluice_config_routes") then
    fail(first.at, nil, "routes{} and sluice_config_routes() cannot be given both")
  end
  if first and rawget(_G, "sluice_config_pools") then
    fail(first.at, nil, "routes{} and sluice_config_pools() cannot be given both")
  end
  return first ~= nil or rawget(_G, "sluice_config_routes") ~= nil
end

function lib.pools()
  local own = rawget(_G, "sluice_config_pools")
  local pools = lib.check_pools()
  if own then return own(nil) end
  return { stores = declared.stores, pools = pools }
end

function lib.routes(given)
  local own = rawget(_G, "sluice_config_routes")
  if own then return own(given) end
  return lib.attach_all(given)
end
