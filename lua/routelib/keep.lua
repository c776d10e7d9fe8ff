-- Handlers about how long something lasts: answers that are kept, and the ttl that inputs say.
local lib, core = ...
local sluice = sluice
local pairs, ipairs, type, tonumber, unpack = pairs, ipairs, type, tonumber, unpack
local declared, handler, resolve, child_of = lib.declared, lib.handler, lib.resolve, lib.child_of
local fail, sorted_keys = lib.fail, lib.sorted_keys

-- The names of all stores that a child leads to, as keys of `found`.
local function stores_below(child, at, found)
  if type(child) == "string" then
    local pool, set = declared.pools[child], declared.sets[child]
    if set then
      for _, member in ipairs(lib.members(set)) do stores_below(member, at, found) end
    elseif pool then
      if not pool.stores then fail(at, "revalidate", "route_cache: `revalidate` knows stores of this process; of pool `" .. child .. "` it does not hear what changes") end
      for _, store in ipairs(pool.stores) do found[store] = true end
    else
      found[child] = true
    end
  elseif lib.is_handler(child) then
    if child.name == "route_stores" then
      for store in pairs(declared.stores) do found[store] = true end
    end
    lib.each_child(child, function(_, below) stores_below(below, at, found) end)
  elseif type(child) == "table" then
    for _, one in ipairs(child) do stores_below(one, at, found) end
  end
end

-- What one client was let in for must not be given to the next: nothing of the request tells those with and without a
-- certificate apart, nor, for everybody, those with and without a token.
local function refuse_auth_below(child, at, everybody)
  if lib.is_handler(child) then
    if child.name == "route_auth" and (everybody or child.args.tls_names) then
      fail(at, nil, "route_cache stands below route_auth, not above it: what is kept would be given to clients that are not let in")
    end
    lib.each_child(child, function(_, below) refuse_auth_below(below, at, everybody) end)
  elseif type(child) == "table" then
    for _, one in ipairs(child) do refuse_auth_below(one, at, everybody) end
  end
end

-- What the child answered, as long as it is sure to be fresh.
local caches_made = 0
handler("route_cache", { child = "child!", ttl = "number", bytes = "size", item = "size", vary = "list", revalidate = "boolean", everybody = "boolean", name = "string" },
  function(h, label)
    local args = h.args
    local stores
    if args.revalidate then
      local found = {}
      stores_below(args.child, h.at, found)
      stores = sorted_keys(found)
      if #stores == 0 then fail(h.at, "revalidate", "route_cache: `revalidate` knows stores of this process, and the child leads to none") end
    end
    -- Every worker makes the same ones in the same order.
    caches_made = caches_made + 1
    local to, why = core.cache(resolve(args.child, h.at, label), args.name or label .. " #" .. caches_made, args.ttl, args.bytes, args.item, args.vary or {}, stores, args.everybody)
    if not to then fail(h.at, why:match("^`(%w+)`"), "route_cache: " .. why) end
    return to
  end,
  function(args, at)
    refuse_auth_below(args.child, at, args.everybody)
    if not args.ttl and not args.revalidate then fail(at, nil, "route_cache needs `ttl`, or `revalidate`") end
    for _, name in ipairs(args.vary or {}) do
      if type(name) ~= "string" or not name:find("^[%w_-]+$") then fail(at, "vary", "route_cache: `vary` is a list of names of request headers") end
    end
  end)

-- How long what an input makes lives, by a field of it: said here, or brought within bounds.
handler("route_ttl", { child = "child!", field = "string", ttl = "number", min = "number", max = "number", default = "number", inputs = "list" },
  function(h, label)
    local args = h.args
    local field, ttl, least, most, default = args.field or "ttl", args.ttl, args.min, args.max, args.default
    local only = args.inputs and {}
    for _, input in ipairs(args.inputs or {}) do only[input] = true end
    local copy = { { t = "methodcopy", idx = 1 }, { t = "pathcopy", idx = 1 }, { t = "querycopyall", idx = 1 }, { t = "headercopyall", idx = 1 },
      { t = "bodycopy", idx = 1 }, { t = "querycopy", name = field, idx = 2 } }
    local fill = sluice.req_mutator_new(unpack(copy))
    local fgen, child = child_of(h, label)
    fgen:ready { n = label, f = function(rctx)
      return function(r)
        local method = r:method()
        if method == "GET" or method == "HEAD" or method == "OPTIONS" then return rctx:enqueue_and_wait(r, child) end
        local input = method == "POST" and r:path():match("/inputs/([^/]+)$")
        if not input then
          return 405, "here only inputs are taken: what else there is has no ttl\n", { Allow = "GET, HEAD, POST, OPTIONS", ["X-Pure-Error"] = "method" }
        end
        if only and not only[input] then return rctx:enqueue_and_wait(r, child) end
        local value = ttl
        if not value then
          local said = r:query(field)
          if said then
            value = tonumber(said)
            if not value or value ~= value then return 400, "`" .. field .. "` is a number\n", { ["X-Pure-Error"] = "query" } end
            if least and value < least then value = least end
            if most and value > most then value = most end
            -- As it was written, when it may be so.
            if value == tonumber(said) then value = said end
          else
            value = default
          end
        end
        if not value then return rctx:enqueue_and_wait(r, child) end
        local made = rctx:request_new()
        fill(made, r, value)
        return rctx:enqueue_and_wait(made, child)
      end
    end }
    return fgen
  end,
  function(args, at)
    if not (args.ttl or args.min or args.max) then fail(at, nil, "route_ttl needs `ttl`, or `min` or `max`") end
    if args.ttl and (args.min or args.max or args.default) then fail(at, "ttl", "route_ttl: `ttl` is what every request gets; `min`, `max` and `default` go not with it") end
    for _, k in ipairs { "ttl", "min", "max", "default" } do
      if args[k] and args[k] % 1 ~= 0 then fail(at, k, "route_ttl: `" .. k .. "` is a whole number") end
    end
    if args.min and args.max and args.min > args.max then fail(at, "min", "route_ttl: `min` is above `max`") end
    if args.default and ((args.min and args.default < args.min) or (args.max and args.default > args.max)) then
      fail(at, "default", "route_ttl: `default` is not from `min` to `max`")
    end
    if args.field and not args.field:find("^[%w_-]+$") then fail(at, "field", "route_ttl: `field` is the name of an input's field") end
    for _, input in ipairs(args.inputs or {}) do
      if type(input) ~= "string" then fail(at, "inputs", "route_ttl: `inputs` is a list of names") end
    end
  end)
