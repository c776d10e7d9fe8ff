-- handlers{}: handlers of the config's own, which are then used, checked and explained like ours.
local lib = ...
local sluice = sluice
local ipairs, type, tostring, table = ipairs, type, tostring, table
local declaration, handlers, kinds = lib.declaration, lib.handlers, lib.kinds
local fail, did_you_mean, sorted_keys = lib.fail, lib.did_you_mean, lib.sorted_keys

local fields = { "options", "f", "check" }

local function declare(name, spec, at)
  local shape = "handlers { route_NAME = { options = { child = \"child!\" }, f = function(rctx, h, args) ... end } }"
  if type(name) ~= "string" or not name:find("^route_[%w_]+$") then fail(at, tostring(name), "a handler is called route_NAME: " .. shape) end
  if handlers[name] then fail(at, name, "handler `" .. name .. "` is there already") end
  if type(spec) ~= "table" then fail(at, name, shape) end
  for _, k in ipairs(sorted_keys(spec)) do
    if k ~= "options" and k ~= "f" and k ~= "check" then
      fail(at, tostring(k), "a handler has no `" .. tostring(k) .. "`" .. did_you_mean(tostring(k), fields))
    end
  end
  if type(spec.f) ~= "function" then fail(at, name, name .. ": `f` is a function of a slot, rctx, h, args, that returns the function of a request") end
  if spec.check ~= nil and type(spec.check) ~= "function" then fail(at, "check", name .. ": `check` is a function of the options, that returns nothing or what is wrong") end
  local options = spec.options or {}
  if type(options) ~= "table" then fail(at, "options", name .. ": `options` is a table of their kinds") end
  local copy = {}
  for _, k in ipairs(sorted_keys(options)) do
    local kind = options[k]
    if type(k) ~= "string" or type(kind) ~= "string" or not kinds[(kind:gsub("!$", ""))] then
      fail(at, tostring(k), name .. ": the kind of `" .. tostring(k) .. "` is one of " .. table.concat(sorted_keys(kinds), ", ") .. "; `!` behind it: required"
        .. did_you_mean(tostring(kind), sorted_keys(kinds)))
    end
    copy[k] = kind
  end
  local f, check = spec.f, spec.check
  lib.handler(name, copy, function(h, label)
    local fgen = sluice.funcgen_new()
    local hs = {}
    for _, k in ipairs(sorted_keys(copy)) do
      local kind, v = copy[k]:gsub("!$", ""), h.args[k]
      if v ~= nil and (kind == "child" or kind == "entry") then hs[k] = fgen:new_handle(lib.resolve(v, h.at, label))
      elseif v ~= nil and (kind == "children" or kind == "entries") then hs[k] = lib.named_handles(fgen, v, h.at, label) end
    end
    local args = h.args
    fgen:ready { n = label, a = hs, f = function(rctx, handles) return f(rctx, handles, args) end }
    return fgen
  end, check and function(args, its)
    local why = check(args)
    if why ~= nil then fail(its, nil, name .. ": " .. tostring(why)) end
  end)
end

declaration("handlers", function(t, at)
  for _, name in ipairs(sorted_keys(t)) do declare(name, t[name], at) end
end)
