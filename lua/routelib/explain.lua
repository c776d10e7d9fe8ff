-- The tree of routes as text.
local lib, core = ...
local ipairs, type, tostring, rawget, table = ipairs, type, tostring, rawget, table
local declared, options_of, members = lib.declared, lib.options_of, lib.members
local sorted_keys = lib.sorted_keys

-- `zone`: of the handler above, which its sets follow.
local function explain_entry(lines, indent, key, entry, zone)
  local head = indent .. key .. "  "
  if type(entry) == "function" then
    lines[#lines + 1] = head .. "function at " .. core.function_place(entry)
  elseif type(entry) == "string" then
    local pool, set = declared.pools[entry], declared.sets[entry]
    lines[#lines + 1] = head .. (set and "set " .. entry .. " of " .. table.concat(members(set, zone or declared.zone), ", ") or pool and "pool " .. entry .. " of " .. table.concat(lib.pool_members(pool), ", ") or "store " .. entry)
  elseif not lib.is_handler(entry) then
    lines[#lines + 1] = head .. "list"
    for i, child in ipairs(entry) do explain_entry(lines, indent .. "  ", "[" .. i .. "]", child, zone) end
  else
    local words = { entry.name }
    for _, k in ipairs(sorted_keys(entry.args)) do
      local v, kind = entry.args[k], entry.name == "cmdmap" and "entry" or options_of[entry.name][k]
      if kind:find("^child") or kind:find("^entr") then
        -- Below.
      elseif type(v) == "function" then
        words[#words + 1] = k .. "=function at " .. core.function_place(v)
      elseif k == "tokens" or k == "users" then
        words[#words + 1] = k .. "=..."   -- they are secrets
      elseif type(v) == "table" then
        local parts = {}
        for _, i in ipairs(sorted_keys(v)) do parts[#parts + 1] = (type(i) == "number" and "" or tostring(i) .. "=") .. tostring(v[i]) end
        words[#words + 1] = k .. "={" .. table.concat(parts, ", ") .. "}"
      else
        words[#words + 1] = k .. "=" .. (type(v) == "string" and ("%q"):format(v):gsub("\\\n", "\\n") or tostring(v))
      end
    end
    lines[#lines + 1] = head .. table.concat(words, " ")
    lib.each_child(entry, function(key, child, option, name)
      if option == "map" and name then key = name elseif option == "cmap" and name then key = "any path, " .. name end
      explain_entry(lines, indent .. "  ", key, child, entry.args.local_zone)
    end)
  end
end

function lib.explain()
  local lines = {}
  for _, own in ipairs(declared.routes) do
    local head = { "routes" }
    for _, k in ipairs { "tag", "host", "mode", "start", "stop", "of" } do
      if own[k] then head[#head + 1] = k .. "=" .. ("%q"):format(own[k]) end
    end
    lines[#lines + 1] = table.concat(head, " ")
    for _, path in ipairs(sorted_keys(own.map or {})) do explain_entry(lines, "  ", path, own.map[path]) end
    for _, m in ipairs(sorted_keys(own.cmap or {})) do explain_entry(lines, "  ", "any path, " .. m, own.cmap[m]) end
    if own.default ~= nil then explain_entry(lines, "  ", "default", own.default) end
  end
  if #lines == 0 then
    if rawget(_G, "sluice_config_routes") then lines[1] = "sluice_config_routes() attaches what it makes"
    else lines[1] = "no routes: /STORE/views/VIEW and so on, of each store" end
  end
  return table.concat(lines, "\n") .. "\n"
end
