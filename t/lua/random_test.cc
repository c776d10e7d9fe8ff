// Every function that a config can call, with every kind of argument, some thousand times: Lua errors and no more.
//
// The calls are drawn by a generator with a fixed seed, so that a failure repeats. What they leave behind (events under
// way, timers, deadlines) is then delivered, and the slots must be free.
#include "lua/box.h"
#include "lua/library.h"
#include "lua/runtime.h"
#include "lua/sandbox.h"
#include "t/lua/harness.h"

using namespace sluice::lua::harness;

namespace {

// Lua: `draw(n)` 1..n; `value()` one of every kind; `try(f, ...)` calls with 0 to 5 of them, with or without a self.
constexpr std::string_view kDraw = R"lua(
local seed = 20240607
local function draw(n)
  seed = (seed * 1103515245 + 12345) % 2147483648
  return math.floor(seed / 65536) % n + 1
end
local cycle = {} cycle[1] = cycle
local pool = { false, true, 0, 1, 2, 3, -1, 0.5, 1e300, -1e300, 0/0, 1/0, -1/0, 2^53, 65536, "", "x", "GET", "/", "/a/b", "k", "views", "1",
  "a\0b", "a\r\nb: c", ("long"):rep(2000), {}, { 1, 2 }, { a = 1, b = "x" }, { "x", {} }, cycle, { stores = { "a" } }, print,
  function() end, function() return 1, 2, 3 end, function() error("inside") end, coroutine.create(function() end), sluice.json.null }
local function value()
  local i = draw(#pool + 1)
  if i > #pool then return nil end
  return pool[i]
end
local called, raised = 0, 0
local function try(f, self)
  local n = draw(6) - 1
  local args = {}
  for i = 1, n do args[i] = value() end
  if self ~= nil and draw(8) > 1 then
    for i = n, 1, -1 do args[i + 1] = args[i] end
    args[1] = self
    n = n + 1
  end
  called = called + 1
  if not pcall(f, unpack(args, 1, n)) then raised = raised + 1 end
end
)lua";

// Calls at request time. The names are those that request_object.cc, response_object.cc, context_api.cc, shorthands.cc,
// library.cc, worker_library.cc and config_library.cc register; t/50-docs.t compares the list with the sources.
constexpr std::string_view kCalls = R"lua(
local names = {
  rctx = { "enqueue", "enqueue_and_wait", "wait_cond", "wait_handle", "sleep", "res_good", "res_ok", "res_any", "result", "best_result",
    "worst_result", "handle_set_cb", "request_new", "response_new", "event", "deadline", "cancelled", "cfd", "client_ip", "tls_peer_cn", "get", "put",
    "delete", "view", "post", "get_and_wait", "put_and_wait", "delete_and_wait", "view_and_wait", "post_and_wait" },
  request = { "method", "path", "full_path", "target", "param", "query", "header", "headers", "body", "key", "tag", "client_ip", "http_version",
    "set", "set_query", "set_method", "set_path", "set_header", "set_body", "set_key", "ltrimpath" },
  response = { "ok", "hit", "status", "header", "body", "json", "vlen", "revision", "error", "elapsed", "backend", "set_status",
    "set_header", "set_body" },
  sluice = { "log", "time_real_millis", "time_mono_millis", "funcgen_new", "router_new", "methods", "attach", "ratelim_tbf",
    "ratelim_global_tbf", "stat", "server_stats", "add_stat", "log_req", "log_reqsample", "req_inspector_new", "res_inspector_new", "req_mutator_new", "res_mutator_new" },
  base = { "print", "load", "loadstring", "require", "collectgarbage", "settings", "shared", "stores", "pools", "routes", "cmdmap", "route_direct",
    "route_lua", "route_null", "route_stores", "route_failover", "route_allsync", "route_ratelim", "route_stats", "stats", "route_allasync", "route_allfastest",
    "route_hedge", "route_split", "route_shadow", "route_random", "route_weighted", "route_match", "route_static", "route_redirect", "route_auth", "route_cors", "route_cache", "route_ttl", "route_map", "handlers", "local_zone", "local_zone_from_env",
    "local_zone_from_file", "tostring", "setmetatable", "rawset" },
  fgen = { "new_handle", "ready" },
  shared = { "get", "set", "add", "replace", "incr", "delete", "ttl", "expire", "keys", "clear", "stats" },
  string = { "find", "match", "gmatch", "gsub" },
  coroutine = { "resume", "wrap", "yield", "create", "status" },
  json = { "encode", "decode", "encode_sparse_array", "encode_max_depth", "decode_max_depth", "encode_number_precision", "encode_keep_buffer",
    "encode_invalid_numbers", "decode_invalid_numbers", "new" },
  config = { "store", "pool", "settings", "register_cron", "schedule_config_reload", "post", "view", "get" },
}
-- What is Lua's own, and not wrapped.
local own = { assert = 1, error = 1, getmetatable = 1, ipairs = 1, next = 1, pairs = 1, pcall = 1, rawequal = 1, rawget = 1, rawlen = 1, select = 1, tonumber = 1,
  type = 1, unpack = 1, xpcall = 1, sluice_config_pools = 1, sluice_config_routes = 1 }
local function not_called()
  local called, missing = {}, {}
  for _, list in pairs(names) do for _, name in ipairs(list) do called[name] = true end end
  for place, t in pairs { _G = _G, sluice = sluice, json = sluice.json } do
    for name, f in pairs(t) do
      if type(f) == "function" and not called[name] and not own[name] then missing[#missing + 1] = place .. "." .. name end
    end
  end
  table.sort(missing)
  return table.concat(missing, " ")
end
)lua";

}  // namespace

TEST_CASE("any arguments to any function of a running route are Lua errors at worst, and leave no slot behind") {
  World w(std::string(kDraw) + std::string(kCalls) + R"lua(
    shared { t = "8KiB" }
    local look = sluice.req_inspector_new({ t = "header", name = "x" }, { t = "pathsegment", n = 2 })
    local change = sluice.req_mutator_new({ t = "pathcopy", idx = 1 }, { t = "headercopyall", idx = 1 })
    local function one(rctx, h, r)
      local made = { rctx:request_new("PUT", "/objects/k"), rctx:response_new() }
      pool[#pool + 1] = made[1] pool[#pool + 1] = made[2]
      for call = 1, 40 do
        local kind = draw(12)
        local name
        local function pick(list) name = list[draw(#list)] return name end
        if kind <= 6 then
          -- Handles of its own: without them most calls end at their first argument.
          local f = rctx[pick(names.rctx)]
          local args = { rctx }
          local n = draw(5)
          for i = 2, n do
            local v = draw(6)
            if v == 1 then args[i] = h[draw(#h)] elseif v == 2 then args[i] = made[draw(2)] elseif v == 3 then args[i] = r
            elseif v == 4 then args[i] = { h[1], h[draw(#h)] } else args[i] = value() end
          end
          called = called + 1
          if not pcall(f, unpack(args, 1, n)) then raised = raised + 1 end
        elseif kind <= 8 then try(made[1][pick(names.request)], draw(2) == 1 and made[1] or r)
        elseif kind <= 10 then
          local res = rctx:result(h[draw(#h)])
          try(made[2][pick(names.response)], draw(2) == 1 and res or made[2])
          if res and draw(4) == 1 then pool[#pool + 1] = res end
        elseif kind == 11 then
          local f = rawget(sluice, pick(names.sluice))
          if f then try(f) try(f, draw(2) == 1 and r or { t = "header", name = "x" }) end
          try(draw(2) == 1 and look or change, draw(2) == 1 and r or made[draw(2)])
          try(string[pick(names.string)], ("a(b)c"):rep(draw(9)))
          try(coroutine[pick(names.coroutine)], draw(2) == 1 and coroutine.create(function(f) return f(coroutine.yield(1)) end) or coroutine.running())
          try(sluice.json[pick(names.json)])
          try(sluice.shared.t[pick(names.shared)], sluice.shared.t)
        else try(_G[pick(names.base)]) end
        if #pool > 80 then for i = 1, 20 do table.remove(pool, 45) end end
      end
    end
    routes { map = { ["/count"] = function() return called .. " " .. raised end,
      ["/"] = route_lua { children = { "a", "b", "c", "a", route_lua { f = function(rctx) return function(r)
        if draw(3) == 1 then rctx:sleep(draw(5)) end if draw(3) == 1 then error("child") end return 200, "child" end end } },
        f = function(rctx, h) return function(r) one(rctx, h, r) return value(), value(), value() end end } } }
  )lua");
  w.services.answerer = [n = 0](Event& e) mutable {
    static constexpr std::uint16_t kStatus[] = {200, 304, 404, 409, 503, 200};
    e.answer.status = kStatus[++n % 6];
    e.answer.revision = static_cast<std::uint64_t>(n) % 3;
  };
  for (int i = 0; i < 150; ++i) {
    w.services.evaluates = i % 3 == 0;
    auto x = w.begin(i % 2 ? Method::get : Method::post, "/objects/k?q=1", i % 4 ? "body" : "");
    if (i % 5 == 4) {
      x->is_gone = true;
      w.route->client_gone(*x);
    }
    for (int turn = 0; turn < 10'000 && (x->times == 0 || w.table->slots_in_use() > 0); ++turn) {
      if (turn % 3 == 0) w.services.pass(3'600'000'000);
      else w.services.deliver_all();
      w.table->idle();
    }
    CHECK(x->times == 1);
    CHECK(w.table->slots_in_use() == 0);
    if (x->times != 1) return;
  }
  int called = 0, raised = 0;
  REQUIRE(std::sscanf(w.get("/count")->body.c_str(), "%d %d", &called, &raised) == 2);
  CHECK(called > 3000);
  CHECK(raised > 1000);
  CHECK(raised < called);
}

TEST_CASE("any arguments to any function while a config is read and its routes are made are Lua errors at worst") {
  for (int round = 0; round < 8; ++round) {
    const std::string text = std::string(kDraw) + "seed = seed + " + std::to_string(round * 7919) + "\n" + std::string(kCalls) + R"lua(
      local public = { "store", "backend", "pool", "settings", "log", "time_real_millis", "funcgen_new", "router_new", "methods", "attach", "ratelim_tbf", "ratelim_global_tbf", "add_stat", "register_cron",
        "schedule_config_reload", "post", "view", "get" }
      local function storm(conf)
        if conf then pool[#pool + 1] = conf.one pool[#pool + 1] = conf.two end
        for call = 1, 300 do
          local kind = draw(4)
          if kind == 1 then
            local f = rawget(sluice, public[draw(#public)])
            if f then try(f) end
          elseif kind == 2 then
            try(_G[names.base[draw(#names.base)]])
          elseif kind == 3 and conf then
            local g = sluice.funcgen_new()
            pool[#pool + 1] = g
            for i = 1, draw(4) do try(g[names.fgen[draw(2)]], g) end
            if draw(2) == 1 then pcall(g.ready, g, { f = value(), a = value(), n = draw(2) == 1 and value() or nil }) end
          else
            local good, h = pcall(_G[names.base[draw(#names.base)]], { child = value(), children = value(), f = value(), map = value(), default = value() })
            if good and h ~= nil then pool[#pool + 1] = h end
          end
          if #pool > 120 then for i = 1, 40 do table.remove(pool, 50) end end
        end
      end
      function sluice_config_pools()
        local s = sluice.store { name = "x" .. draw(1000000), module = "m", path = "p" .. draw(1000000) }
        storm()
        return { one = s, two = sluice.pool({ s }) }
      end
      function sluice_config_routes(conf) storm(conf) sluice.attach(sluice.ANY, function() return "fine" end) end
    )lua";
    const std::string why = error_of(text);
    CAPTURE(why);
    // The storm may declare routes{}, which goes not with stages of its own; what it raises itself is caught.
    CHECK((why.empty() || why.find("cannot be given both") != why.npos || why.find("is declared") != why.npos));
  }
}

TEST_CASE("every function that either VM has is called with random arguments") {
  // The text runs in both; what it finds it raises.
  const std::string text = std::string(kDraw) + std::string(kCalls) +
                           "local missing = not_called() if missing ~= '' then error('not called: ' .. missing) end routes { default = 'a' }";
  CHECK(error_of(std::string(kStores) + text) == "");

  // Methods: of the classes, which Lua cannot list.
  sluice::lua::Runtime runtime(nullptr);
  auto vm = sluice::lua::Vm::make(0, false, nullptr);
  REQUIRE(vm.has_value());
  runtime.vm = std::move(*vm);
  lua_State* L = runtime.vm->main();
  const sluice::lua::Sources sources;
  const sluice::lua::SourceText source;
  sluice::lua::open_sandbox(L, sources, nullptr);
  sluice::lua::open_common(L, source, runtime.home);
  sluice::lua::open_worker_stage(L, runtime, std::make_shared<StoreSet>());
  const std::string calls(kCalls);
  int classes = 0, methods = 0;
  for (int kind = static_cast<int>(sluice::lua::Kind::request);; ++kind, ++classes) {
    const sluice::lua::StackGuard guard(L);
    lua_rawgeti(L, LUA_REGISTRYINDEX, kind);
    if (!lua_istable(L, -1)) {
      // Those of the config stage, in between.
      if (classes < 40) continue;
      break;
    }
    lua_getfield(L, -1, "__index");
    if (!lua_istable(L, -1)) continue;
    for (lua_pushnil(L); lua_next(L, -2) != 0; lua_pop(L, 1)) {
      const std::string name(sluice::lua::text_at(L, -2));
      CAPTURE(name);
      CHECK(calls.find('"' + name + '"') != std::string::npos);
      ++methods;
    }
  }
  CHECK(methods > 70);
}
