-- Handlers that answer by themselves, or hand all to a store.
local lib, core = ...
local sluice = sluice
local pairs, ipairs, type, tostring, pcall, table = pairs, ipairs, type, tostring, pcall, table
local handler, resolve = lib.handler, lib.resolve
local fail, did_you_mean, sorted_keys = lib.fail, lib.did_you_mean, lib.sorted_keys

handler("route_direct", { child = "child!" }, function(h, label)
  local to = resolve(h.args.child, h.at, label)
  return core.direct(to)
end)

handler("route_null", {}, function() return core.null() end)

handler("route_stores", {}, function() return core.stores() end)

-- What is counted, as JSON or in Prometheus' text format.
handler("route_stats", { format = "string" }, function(h, label)
  local format = h.args.format or "json"
  if format ~= "json" and format ~= "prometheus" then
    fail(h.at, "format", "route_stats: `format` is json or prometheus" .. did_you_mean(format, { "json", "prometheus" }))
  end
  local encode, server_stats, concat = sluice.json.encode, sluice.server_stats, table.concat
  local function metric(lines, name, value)
    local word, labels = name:match("^([^{]*)(.*)$")
    lines[#lines + 1] = word:gsub("%-", "_") .. labels .. " " .. ("%.17g"):format(value) .. "\n"
  end
  local fgen = sluice.funcgen_new()
  fgen:ready { n = label, f = function()
    return function()
      local stats = server_stats()
      if format == "json" then return 200, encode(stats) .. "\n", { ["Content-Type"] = "application/json" } end
      local lines = {}
      for _, name in ipairs(sorted_keys(stats.server)) do metric(lines, "sluice_" .. name, stats.server[name]) end
      for _, name in ipairs(sorted_keys(stats.backends)) do
        for _, k in ipairs(sorted_keys(stats.backends[name])) do
          metric(lines, "sluice_backend_" .. k .. "{backend=" .. ("%q"):format(name) .. "}", stats.backends[name][k])
        end
      end
      for _, name in ipairs(sorted_keys(stats.user)) do
        local value = stats.user[name]
        if type(value) == "number" then
          metric(lines, "sluice_user_" .. name, value)
        else
          for _, q in ipairs { "count", "sum", "min", "max" } do metric(lines, "sluice_user_" .. name .. "_" .. q, value[q]) end
          for _, q in ipairs { { "0.5", "p50" }, { "0.9", "p90" }, { "0.99", "p99" }, { "0.999", "p999" } } do
            metric(lines, "sluice_user_" .. name .. "{quantile=\"" .. q[1] .. "\"}", value[q[2]])
          end
        end
      end
      for _, name in ipairs(sorted_keys(stats.caches)) do
        for _, what in ipairs(sorted_keys(stats.caches[name])) do
          lines[#lines + 1] = ("sluice_cache_%s{cache=%q} %.17g\n"):format(what, name, stats.caches[name][what])
        end
      end
      local function labelled(what, key, of)
        for _, name in ipairs(sorted_keys(of)) do
          if name ~= "worker" then lines[#lines + 1] = ("sluice_%s_%s{%s} %.17g\n"):format(what, name, key, of[name]) end
        end
      end
      for _, vm in ipairs(stats.routes.workers) do labelled("lua", ("worker=\"%d\""):format(vm.worker), vm) end
      for _, name in ipairs(sorted_keys(stats.routes.generators)) do
        labelled("route", ("route=\"%s\""):format(name:gsub('[\\"\n]', { ["\\"] = "\\\\", ['"'] = '\\"', ["\n"] = "\\n" })), stats.routes.generators[name])
      end
      return 200, concat(lines), { ["Content-Type"] = "text/plain; version=0.0.4" }
    end
  end }
  return fgen
end)

local function check_headers(h, name, headers)
  for k, v in pairs(headers or {}) do
    if type(k) ~= "string" or (type(v) ~= "string" and type(v) ~= "number") then
      fail(h.at, "headers", name .. ": `headers` is a table of names with texts")
    end
  end
end

-- The same answer to every request.
handler("route_static", { body = "string", file = "string", status = "number", type = "string", headers = "table" }, function(h)
  local args = h.args
  if (args.body == nil) == (args.file == nil) then fail(h.at, nil, "route_static needs `body` or `file`") end
  local status = args.status or 200
  if status < 200 or status > 599 or status % 1 ~= 0 then fail(h.at, "status", "route_static: a status is 200 to 599") end
  check_headers(h, "route_static", args.headers)
  local headers, typed = {}, false
  for _, k in ipairs(sorted_keys(args.headers or {})) do
    typed = typed or k:lower() == "content-type"
    headers[#headers + 1] = k
    headers[#headers + 1] = tostring(args.headers[k])
  end
  if typed and args.type then fail(h.at, "type", "route_static: `type` and a header Content-Type say the same; give one") end
  if not typed then
    headers[#headers + 1] = "Content-Type"
    headers[#headers + 1] = args.type or "text/plain; charset=utf-8"
  end
  local to, why = core.static(status, headers, args.body or core.read_file(args.file), not (args.headers or {}).ETag)
  if not to then fail(h.at, "headers", "route_static: " .. why) end
  return to
end, function(args, at)
  -- While the config is read, so that workers find it.
  if not args.file then return end
  local text, why = core.read_file(args.file)
  if not text then fail(at, "file", "route_static: " .. why) end
end)

-- To another place: 301, 302, 303, 307 or 308. With `keep` the path and the query come behind it.
handler("route_redirect", { to = "string!", status = "number", keep = "boolean" }, function(h, label)
  local to, status, keep = h.args.to, h.args.status or 302, h.args.keep
  if not ({ [301] = 1, [302] = 1, [303] = 1, [307] = 1, [308] = 1 })[status] then
    fail(h.at, "status", "route_redirect: `status` is 301, 302, 303, 307 or 308")
  end
  if to:find("[%c ]") or to == "" then fail(h.at, "to", "route_redirect: `to` is an address without spaces") end
  if keep and to:find("[?#]") then fail(h.at, "to", "route_redirect: with `keep` the path comes behind `to`, which cannot have a query") end
  local base = keep and to:gsub("/+$", "") or to
  local function escape(c) return ("%%%02X"):format(c:byte()) end
  local fgen = sluice.funcgen_new()
  fgen:ready { n = label, f = function()
    return function(r)
      if not keep then return status, "", { Location = to } end
      local query = r:target():match("%?(.*)$")
      local path = r:path():gsub("[^%w%-%._~/!$&'()*+,;=:@]", escape)
      -- "//evil.example" would be another host.
      if base == "" then path = path:gsub("^/+", "/") end
      return status, "", { Location = base .. path .. (query and "?" .. query or "") }
    end
  end }
  return fgen
end)
