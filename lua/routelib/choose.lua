-- Handlers that pass on to one child, or do not: by the request, by who asks, and how often.
local lib, core = ...
local sluice = sluice
local pairs, ipairs, next, type, tostring, pcall, table, math = pairs, ipairs, next, type, tostring, pcall, table, math
local handler, resolve, child_of = lib.handler, lib.resolve, lib.child_of
local fail = lib.fail

-- A limiter before the child: per worker or of the process, one for all or one per key. Over it 429 with Retry-After.
local limiters_made = 0
handler("route_ratelim", { child = "child!", limit = "number!", rate = "number", fillrate = "number", tickrate = "number",
    key = "key", keys = "number", global = "boolean", name = "string" },
  function(h, label)
    local args = h.args
    local spec = { limit = args.limit, rate = args.rate, fillrate = args.fillrate, tickrate = args.tickrate }
    if args.fillrate and not args.tickrate then spec.tickrate = 1000 end
    if args.keys and not args.key then fail(h.at, "keys", "route_ratelim: `keys` goes with `key`") end
    if args.name and not args.global then fail(h.at, "name", "route_ratelim: `name` goes with `global`") end
    if args.key then spec.keys = args.keys or 10000 end
    -- Every worker makes the same ones in the same order.
    limiters_made = limiters_made + 1
    local name = args.global and (args.name or label .. " #" .. limiters_made) or nil
    if type(args.key) ~= "function" then
      local to, why = core.ratelim(resolve(args.child, h.at, label), spec, args.key, name)
      if not to then fail(h.at, nil, "route_ratelim: " .. why) end
      return to
    end
    spec.name = name
    local made, limiter = pcall(name and sluice.ratelim_global_tbf or sluice.ratelim_tbf, spec)
    if not made then fail(h.at, nil, "route_ratelim: " .. tostring(limiter):gsub("^.-sluice%.ratelim_[%w_]+: ", "")) end
    local key_of, ceil = args.key, math.ceil
    local fgen, child = child_of(h, label)
    fgen:ready { n = label, f = function(rctx)
      return function(r)
        local key = key_of(r)
        if key then
          local good, wait = limiter(key)
          if not good then
            return 429, "too many requests; try again later\n", { ["Retry-After"] = ceil(wait or 1), ["X-Pure-Error"] = "rate" }
          end
        end
        return rctx:enqueue_and_wait(r, child)
      end
    end }
    return fgen
  end)

-- The value in a decoded JSON body: json_field("user.plan") is a function of the request.
local function json_field(path)
  local names = {}
  for name in path:gmatch("[^.]+") do names[#names + 1] = name end
  local decode, null = sluice.json.decode, sluice.json.null
  return function(r)
    local good, value = pcall(decode, r:body())
    if not good then return nil end
    for i = 1, #names do
      if type(value) ~= "table" then return nil end
      value = value[names[i]]
    end
    if value ~= null then return value end
  end
end

-- One child when a header, a query field, the body or a function says so, else the other.
handler("route_match",
  { child = "child!", otherwise = "child!", header = "string", query = "string", body = "string", json = "string", is = "scalar", token = "string", f = "function" },
  function(h, label)
    local args = h.args
    local ways = 0
    for _, way in ipairs { "header", "query", "body", "json", "f" } do ways = ways + (args[way] ~= nil and 1 or 0) end
    if ways ~= 1 then fail(h.at, nil, "route_match needs one of `header`, `query`, `body`, `json` and `f`") end
    if args.is ~= nil and args.token then fail(h.at, "token", "route_match: `is` and `token` cannot be given both") end
    if args.token and not args.header then fail(h.at, "token", "route_match: `token` goes with `header`") end
    if args.is ~= nil and (args.f or args.body) then fail(h.at, "is", "route_match: `is` goes with `header`, `query` or `json`") end
    if args.is ~= nil and not args.json and type(args.is) ~= "string" then fail(h.at, "is", "route_match: `is` is a string here, got a " .. type(args.is)) end
    if args.body == "" then fail(h.at, "body", "route_match: `body` is a text that the body has in it, not an empty one") end
    if args.json and not args.json:find("[^.]") then fail(h.at, "json", "route_match: `json` names a field, such as \"user.plan\"") end
    local test = args.f
    if args.header then
      test = sluice.req_inspector_new(args.is and { t = "headeris", name = args.header, str = args.is }
        or args.token and { t = "headertoken", name = args.header, str = args.token } or { t = "hasheader", name = args.header })
    elseif args.query then
      test = sluice.req_inspector_new(args.is and { t = "queryis", name = args.query, str = args.is } or { t = "hasquery", name = args.query })
    elseif args.body then
      local find, text = ("").find, args.body
      test = function(r) return find(r:body(), text, 1, true) end
    elseif args.json then
      local value_of, is = json_field(args.json), args.is
      if is == nil then test = function(r) return value_of(r) ~= nil end
      else test = function(r) return value_of(r) == is end end
    end
    local fgen = sluice.funcgen_new()
    local yes = fgen:new_handle(resolve(args.child, h.at, label))
    local no = fgen:new_handle(resolve(args.otherwise, h.at, label))
    fgen:ready { n = label, f = function(rctx)
      return function(r) return rctx:enqueue_and_wait(r, test(r) and yes or no) end
    end }
    return fgen
  end)

local function encode_base64(text)
  local digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
  local out = {}
  for i = 1, #text, 3 do
    local a, b, c = text:byte(i, i + 2)
    local n = a * 65536 + (b or 0) * 256 + (c or 0)
    for shift = 18, 0, -6 do
      local at = math.floor(n / 2 ^ shift) % 64 + 1
      out[#out + 1] = ((shift == 6 and not b) or (shift == 0 and not c)) and "=" or digits:sub(at, at)
    end
  end
  return table.concat(out)
end

-- Only for those who show a bearer token, a user's password, or a certificate of a name: else 401, or 403 where only names are known.
handler("route_auth", { child = "child!", tokens = "list", users = "table", realm = "string", tls_names = "list" }, function(h, label)
  local args = h.args
  if not args.tokens and not args.users and not args.tls_names then fail(h.at, nil, "route_auth needs `tokens`, `users` or `tls_names`") end
  local realm = args.realm or "sluice"
  if realm:find('[%c"\\]') then fail(h.at, "realm", "route_auth: `realm` has no quotes and control bytes") end
  local bearer, basic, ways = {}, {}, {}
  for _, token in ipairs(args.tokens or {}) do
    if type(token) ~= "string" or #token < 8 or token:find("[%s%c]") then
      fail(h.at, "tokens", "route_auth: a token is a text of at least 8 bytes without spaces")
    end
    bearer[#bearer + 1] = token
  end
  for name, password in pairs(args.users or {}) do
    if type(name) ~= "string" or name:find(":", 1, true) or type(password) ~= "string" or password == "" then
      fail(h.at, "users", "route_auth: `users` is a table of names, without `:`, with passwords")
    end
    basic[#basic + 1] = encode_base64(name .. ":" .. password)
  end
  local named = {}
  for _, name in ipairs(args.tls_names or {}) do
    if type(name) ~= "string" or name == "" then fail(h.at, "tls_names", "route_auth: `tls_names` are the common names of clients' certificates") end
    named[name] = true
  end
  if args.tls_names and not next(named) then fail(h.at, "tls_names", "route_auth: `tls_names` without a name lets nobody in") end
  if args.tokens then ways[#ways + 1] = 'Bearer realm="' .. realm .. '"' end
  if args.users then ways[#ways + 1] = 'Basic realm="' .. realm .. '", charset="UTF-8"' end
  -- Lua would find the string that is shown by comparing it with those it has, the secrets among them.
  local known = core.credentials(bearer, basic)
  local fgen, child = child_of(h, label)
  fgen:ready { n = label, f = function(rctx)
    return function(r)
      local name = args.tls_names and rctx:tls_peer_cn()
      if name and named[name] or known(r) then return rctx:enqueue_and_wait(r, child) end
      -- Nothing that the client could send would help, and 401 has to say what would.
      if #ways == 0 then return 403, "not with this certificate\n", { ["X-Pure-Error"] = "denied" } end
      return 401, "who are you?\n", { ["WWW-Authenticate"] = ways, ["X-Pure-Error"] = "unauthorized" }
    end
  end }
  return fgen
end)

-- Lets browsers ask from pages of other origins, and answers their questions beforehand.
handler("route_cors",
  { child = "child!", origins = "list!", methods = "methods", headers = "list", expose = "list", max_age = "number", credentials = "boolean" },
  function(h, label)
    local args = h.args
    local any, known = false, {}
    for _, origin in ipairs(args.origins) do
      -- As a browser sends it: without a path, the host in lower case. Anything else would never match.
      local scheme, host = (type(origin) == "string" and origin or ""):match("^(%a[%w+.-]*)://([^/?#%s%c]+)$")
      if origin == "*" then any = true
      elseif origin == "null" then known[origin] = true
      elseif scheme then known[scheme:lower() .. "://" .. host:lower()] = true
      else fail(h.at, "origins", "route_cors: an origin is such as \"https://example.com\", \"null\" or \"*\"") end
    end
    if any and args.credentials then fail(h.at, "credentials", "route_cors: `credentials` goes not with the origin \"*\"") end
    local function words(list)
      for _, word in ipairs(list or {}) do
        if type(word) ~= "string" or word:find("[%s%c,]") then fail(h.at, nil, "route_cors: names of methods and headers have no spaces") end
      end
      return list and table.concat(list, ", ")
    end
    local methods, headers, expose = words(args.methods or { "GET", "HEAD", "POST", "PUT", "DELETE" }), words(args.headers), words(args.expose)
    local max_age = args.max_age and ("%d"):format(args.max_age)
    if args.max_age and (args.max_age % 1 ~= 0 or args.max_age > 2 ^ 31 - 1) then fail(h.at, "max_age", "route_cors: `max_age` is a whole number of seconds") end
    local fgen, child = child_of(h, label)
    fgen:ready { n = label, f = function(rctx)
      return function(r)
        local origin = r:header("origin")
        local allowed = origin and (any and "*" or known[origin] and origin)
        local asks = r:method() == "OPTIONS" and r:header("access-control-request-method")
        if asks then
          if not allowed then return 403, "not from there\n", { ["X-Pure-Error"] = "denied" } end
          return 204, nil, { ["Access-Control-Allow-Origin"] = allowed, ["Access-Control-Allow-Methods"] = methods,
            ["Access-Control-Allow-Headers"] = headers, ["Access-Control-Max-Age"] = max_age,
            ["Access-Control-Allow-Credentials"] = args.credentials and "true" or nil, Vary = not any and "Origin" or nil }
        end
        local res = rctx:enqueue_and_wait(r, child)
        if not allowed then return res, { Vary = not any and "Origin" or nil } end
        return res, { ["Access-Control-Allow-Origin"] = allowed, ["Access-Control-Expose-Headers"] = expose,
          ["Access-Control-Allow-Credentials"] = args.credentials and "true" or nil, Vary = not any and "Origin" or nil }
      end
    end }
    return fgen
  end)
