// What must never happen: each mistake that ended, hung or fooled a comparable proxy is here an error, and no more.
#include "t/lua/harness.h"

using namespace sluice::lua::harness;

namespace {

// The config's error when reading it may take a tenth of a second.
std::string hasty_error_of(std::string_view text, std::uint32_t time_ms = 100) {
  const TempFile file(text);
  auto reader = make_config_reader(nullptr, {32u << 20, time_ms});
  auto read = reader->read(file.path());
  if (!read) return read.error();
  auto made = (*read)->make_routes(stores_of(**read), 0);
  return made ? std::string() : made.error();
}

bool has(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

}  // namespace

TEST_CASE("a callback neither enqueues nor waits, whether its answer came in place or later") {
  for (const bool here : {true, false}) {
    CAPTURE(here);
    World w(route("rctx:get(h.a, 'k') rctx:wait_cond(1) return table.concat(said, '|')",
                  "said = {} rctx:handle_set_cb(h.a, function() said = {} for _, f in ipairs { "
                  "function() rctx:get(h.b, 'x') end, function() rctx:get_and_wait(h.b, 'x') end, function() rctx:wait_cond(1) end, "
                  "function() rctx:sleep(1) end, function() rctx:request_new() end, function() coroutine.yield() end } do "
                  "said[#said + 1] = tostring(select(2, pcall(f))):match('only') or tostring(select(2, pcall(f))):match('yield') or 'done' end end)"));
    w.services.evaluates = here;
    CHECK(w.get("/")->body == "only|only|only|only|only|yield");
    CHECK(w.services.sent.empty());
  }
}

TEST_CASE("a route inside another cannot reach into its parent's queue") {
  World w("routes { map = { ['/'] = route_lua { children = { a = 'a', inner = route_lua { f = function() return function() "
          "local ok, why = pcall(parent.get, parent, parents.a, 'k') return tostring(ok) .. tostring(why):match('only') end end } }, "
          "f = function(rctx, h) return function(r) parent, parents = rctx, h return rctx:enqueue_and_wait(r, h.inner) end end } } }");
  CHECK(w.get("/")->body == "falseonly");
}

TEST_CASE("a response that the generator made is returned by every request") {
  World w(route("return made", "local made = rctx:response_new():set_status(201):set_header('X-A', 'b'):set_body('always')"));
  for (int i = 0; i < 3; ++i) {
    auto x = w.get("/");
    CHECK(x->status == 201);
    CHECK(x->body == "always");
    CHECK(x->headers == "X-A: b\r\n");
  }
}

TEST_CASE("a response of an earlier request, used again or returned again, is an error") {
  World w("kept = nil routes { map = { ['/one'] = route_lua { children = { 'a' }, f = function(rctx, h) return function() "
          "kept = rctx:get_and_wait(h[1], 'k') return 'kept' end end }, ['/body'] = function() return kept:body() end, "
          "['/again'] = function() return kept end } }");
  CHECK(w.get("/one")->body == "kept");
  CHECK(w.get("/body")->status == 500);
  CHECK(w.log.has("a response that is no more"));
  CHECK(w.get("/again")->status == 500);
  CHECK(w.log.has("a route returned a response of another request"));
}

TEST_CASE("a route may return thousands of values: those beyond the third say nothing") {
  World w(route("local many = {} for i = 1, 7900 do many[i] = 'x' end many[1], many[3] = 201, nil return unpack(many, 1, 7900)"));
  CHECK(w.get("/")->body == "x");
  World v(route("local many = {} for i = 1, 7900 do many[i] = {} end return unpack(many)"));
  CHECK(v.get("/")->status == 500);
}

TEST_CASE("recursion without end is a 500, in the route, in a callback and at load") {
  World w("local function deep(n) return 1 + deep(n + 1) end " +
          route("if r:query('here') then deep(0) end return rctx:get_and_wait(h.a, 'k')", "rctx:handle_set_cb(h.a, function() deep(0) end)"));
  CHECK(w.get("/?here=1")->status == 500);
  CHECK(w.log.has("stack overflow"));
  CHECK(w.get("/")->body == "a show k");
  CHECK(has(error_of("local function deep(n) return 1 + deep(n + 1) end deep(0) routes { default = 'a' }"), "stack overflow"));
}

TEST_CASE("recursion through C ends before the thread's stack does") {
  const struct { const char *what, *says; } cases[] = {
      {"local function f() return (('x'):gsub('x', f)) end return f()", "in C"},
      {"local t = setmetatable({}, { __index = function(t) return (('x'):gsub('x', t)) end }) return t.x", "overflow"},
      {"local function f() return coroutine.wrap(f)() end return f()", "in C"},
      {"local function f() return assert(coroutine.resume(coroutine.create(f))) end return f()", "in C"},
      {"local t t = setmetatable({}, { __tostring = function(s) print(s) return 'x' end }) return print(t)", "in C"},
      {"local function f() table.sort({ 2, 1 }, f) end return f()", "overflow"},
  };
  for (const auto& c : cases) {
    CAPTURE(c.what);
    World w(route("return tostring(select(2, pcall(function() " + std::string(c.what) + " end)))"));
    CHECK(has(w.get("/")->body, c.says));
    CHECK(has(error_of("local good, why = pcall(function() " + std::string(c.what) + " end) error(why, 0)"), c.says));
  }
  CHECK(has(error_of("function sluice_config_pools() end function sluice_config_routes() local function deep() sluice.funcgen_new():ready { f = function() deep() end } end deep() end"),
            "overflow"));
}

TEST_CASE("routes inside routes go as deep as they may, and no deeper") {
  const std::string chain = "function sluice_config_pools() end function sluice_config_routes() local g for i = 1, DEPTH do local n = sluice.funcgen_new() "
      "local h = g and n:new_handle(i % 2 == 0 and sluice.methods { all = g } or g) n:ready { f = function(rctx) return function(r) "
      "if not h then rctx:sleep(1) return 'bottom' end return rctx:enqueue_and_wait(r, h) end end } g = n end sluice.attach(sluice.ANY, g) end";
  const auto of_depth = [&](const char* n) { return std::string(chain).replace(chain.find("DEPTH"), 5, n); };
  CHECK(has(error_of(of_depth("65")), "t.lua:1: new_handle: routes inside routes are at most 64 deep"));
  World w(of_depth("64"), false);
  auto x = w.begin(Method::get, "/");
  CHECK(w.table->slots_in_use() == 64);
  w.services.pass(1'000'000);
  CHECK(x->body == "bottom");
  auto y = w.begin(Method::get, "/");
  w.route->client_gone(*y);
  CHECK(w.table->slots_in_use() == 0);
}

TEST_CASE("a route's coroutine is not another's to resume, and coroutines of one's own are as in Lua") {
  World w("routes { map = { ['/wait'] = route_lua { children = { 'a' }, f = function(rctx, h) return function() "
          "mine = coroutine.running() return rctx:get_and_wait(h[1], 'k') end end }, "
          "['/try'] = function() local ok, why = coroutine.resume(mine, 'x') return tostring(ok) .. why .. coroutine.status(mine) end, "
          "['/own'] = function() local co = coroutine.create(function(a, b) local c = coroutine.yield(a + b, 2) error('at ' .. c) end) "
          "local gen = coroutine.wrap(function() for i = 1, 3 do coroutine.yield(i) end end) local n = 0 for i in gen do n = n + i end "
          "local t = { coroutine.resume(co, 3, 4) } local u = { coroutine.resume(co, 'c') } local v = { coroutine.resume(co) } "
          "local bad = { pcall(coroutine.resume, 1) } "
          "return n .. tostring(t[1]) .. t[2] .. t[3] .. tostring(u[1]) .. u[2]:match('at c') .. tostring(v[1]) .. v[2] .. tostring(bad[1]) .. coroutine.status(co) end } }");
  auto x = w.begin(Method::get, "/wait");
  CHECK(w.get("/try")->body == "falsecannot resume a route's coroutine: its waits dosuspended");
  CHECK(x->times == 1);
  CHECK(x->body == "a show k");
  CHECK(w.get("/own")->body == "6true72falseat cfalsecannot resume dead coroutinefalsedead");
}

TEST_CASE("a stray coroutine.yield is an error wherever it stands") {
  World w(route("coroutine.yield('x') return 'never'"));
  CHECK(w.get("/")->status == 500);
  CHECK(w.log.has("t.lua:1: coroutine.yield outside of a coroutine of your own"));
  World v(route("local co = coroutine.wrap(function() coroutine.yield('mine') end) return co()"));
  CHECK(v.get("/")->body == "mine");
  CHECK(has(error_of("coroutine.yield() routes { default = function() end }"), "yield"));
  CHECK(has(error_of("routes { default = route_lua { f = function() coroutine.yield() end } }"), "yield"));
}

TEST_CASE("a loop without end is stopped at config load, in a generator, and in one that makes a later slot") {
  CHECK(has(hasty_error_of("\nwhile true do end"), "t.lua:2: stopped: it ran too long without a wait (in: while true do end)"));
  CHECK(has(hasty_error_of("while true do pcall(function() while true do end end) end"), "stopped: it ran too long"));
  CHECK(has(hasty_error_of("function sluice_config_pools() while true do end end function sluice_config_routes() end"), "stopped"));
  CHECK(has(hasty_error_of("routes { default = route_lua { f = function() while true do end end } }"), "stopped: it ran too long"));
  World w("made = 0 settings { lua_time_limit = 0.1 } " +
          route("return rctx:get_and_wait(h.a, 'k')", "made = made + 1 if made == 2 then while true do end end"));
  auto first = w.begin(Method::get, "/");
  auto second = w.begin(Method::get, "/");
  CHECK(second->status == 500);
  CHECK(w.log.has("stopped: it ran too long"));
  auto third = w.begin(Method::get, "/");
  w.services.deliver_all();
  CHECK(first->body == "a show k");
  CHECK(third->body == "a show k");
}

TEST_CASE("a loop without end in a callback is stopped, in a dispatch and in a delivery, and the route goes on or fails") {
  for (const bool here : {true, false}) {
    CAPTURE(here);
    World w("settings { lua_time_limit = 0.1 } " + route("local res = rctx:get_and_wait(h.a, 'k') local n = 0 for i = 1, 10 do n = n + i end return res", "rctx:handle_set_cb(h.a, function() while true do end end)"));
    w.services.evaluates = here;
    auto x = w.get("/");
    CHECK(x->status == (here ? 500 : 200));
    CHECK(w.log.has("stopped: it ran too long"));
  }
}

TEST_CASE("without a time limit for requests, loading has one") {
  CHECK(has(hasty_error_of("settings { lua_time_limit = 0 } routes { default = route_lua { f = function() while true do end end } }"), "stopped"));
}

TEST_CASE("an error in f when a later slot is built answers 500, and the next request builds it") {
  World w("made = 0 " + route("return rctx:get_and_wait(h.a, 'k')", "made = made + 1 if made == 2 then error('no second') end"));
  auto first = w.begin(Method::get, "/");
  auto second = w.begin(Method::get, "/");
  CHECK(second->status == 500);
  CHECK(second->error == sluice::Errc::lua);
  CHECK(w.log.has("t.lua:1: no second"));
  CHECK(w.table->slots() == 1);
  auto third = w.begin(Method::get, "/");
  w.services.deliver_all();
  CHECK(first->body == "a show k");
  CHECK(third->body == "a show k");
  CHECK(w.table->slots() == 2);
}

TEST_CASE("an error in f of a route inside another is that child's 500, and its parent's result") {
  World w("made = 0 routes { map = { ['/'] = route_lua { children = { inner = route_lua { children = { 'a' }, f = function(rctx, h) made = made + 1 "
          "if made > 1 then error('no second') end return function(r) return rctx:get_and_wait(h[1], 'k') end end } }, "
          "f = function(rctx, h) return function(r) local res = rctx:enqueue_and_wait(r, h.inner) return res:status() .. res:error() end end } } }");
  auto first = w.begin(Method::get, "/");
  auto second = w.begin(Method::get, "/");
  CHECK(second->body == "500lua");
  CHECK(w.log.has("no second"));
  w.services.deliver_all();
  CHECK(first->body == "200none");
}

TEST_CASE("a list that names a handle twice queues none of it") {
  World w(route("local ok, why = pcall(rctx.enqueue, rctx, r, { h.b, h.a, h.a }) rctx:wait_cond(1) "
                "return tostring(ok) .. why:match('twice') .. tostring(rctx:result(h.a)) .. tostring(rctx:result(h.b))"));
  CHECK(w.get("/objects/k")->body == "falsetwicenilnil");
}

TEST_CASE("a result that comes after the answer runs its callback, and then the slot is free") {
  World w(route("rctx:get(h.a, 'k') rctx:get(h.b, 'k') return 'answered'", "late = 0 rctx:handle_set_cb(h.b, function(res) late = late + 1 error('too late') end)"));
  auto x = w.begin(Method::get, "/");
  CHECK(x->body == "answered");
  CHECK(w.table->slots_in_use() == 1);
  w.services.deliver_all();
  CHECK(x->times == 1);
  CHECK(w.table->slots_in_use() == 0);
  CHECK(w.log.has("too late"));
}

TEST_CASE("an error with events queued sends none of them, and one with events in flight keeps the slot until they are in") {
  World w(route("rctx:get(h.a, 'k') rctx:wait_cond(0) rctx:get(h.b, 'k') error('now')"));
  auto x = w.begin(Method::get, "/");
  CHECK(x->status == 500);
  CHECK(w.services.sent.size() == 1);
  CHECK(w.table->slots_in_use() == 1);
  w.services.deliver_all();
  CHECK(w.table->slots_in_use() == 0);
}

TEST_CASE("a route inside an answered one keeps its generation until it is done") {
  World w("routes { map = { ['/'] = route_lua { children = { inner = route_lua { children = { 'a' }, f = function(rctx, h) return function(r) "
          "rctx:sleep(1) rctx:post(h[1], 'say') return 'done' end end } }, "
          "f = function(rctx, h) return function(r) rctx:enqueue(r, h.inner) return 'answered' end end } } }");
  auto x = w.begin(Method::post, "/");
  CHECK(x->body == "answered");
  CHECK(w.services.kept == 1);
  w.services.pass(1'000'000);
  CHECK(w.services.kept == 0);
  CHECK(w.services.sent.size() == 1);
  w.services.deliver_all();
}

TEST_CASE("more results than one request may have is an error, and their room is given back") {
  // On a busy machine so many calls may take longer than a route has.
  World w("settings { lua_time_limit = 0 } " + route("for i = 1, 70000 do rctx:get_and_wait(h.a, 'k') end return 'never'"));
  w.services.evaluates = true;
  CHECK(w.get("/")->status == 500);
  CHECK(w.log.has("more than 65536 results in one request"));
  CHECK(w.table->memory_bytes() < (16u << 20));
}

TEST_CASE("the memory limit holds at load, in a generator and in a callback") {
  const std::string much = "local t = {} for i = 1, 1e7 do t[i] = ('x'):rep(1000) .. i end";
  CHECK(has(hasty_error_of(much, 60'000), "not enough memory"));
  CHECK(has(error_of("settings { lua_memory = '8MiB' } routes { default = route_lua { f = function() " + much + " end } }"), "not enough memory"));
  World w("settings { lua_memory = '8MiB' } " + route("return rctx:get_and_wait(h.a, 'k')", "rctx:handle_set_cb(h.a, function() " + much + " end)"));
  CHECK(w.get("/")->body == "a show k");
  CHECK(w.log.has("not enough memory"));
  CHECK(w.get("/")->body == "a show k");
}

TEST_CASE("wrong constants and values between the stages are errors with a position") {
  const char* modes[] = {"0", "5", "1.5", "'x'", "{}", "0/0", "1e300", "sluice.WAIT_RESUME"};
  for (const char* mode : modes) {
    CAPTURE(mode);
    World w(route("rctx:get(h.a, 'k') local ok, why = pcall(rctx.wait_cond, rctx, 1, " + std::string(mode) + ") return tostring(ok) .. tostring(why):match('the mode is')"));
    CHECK(w.get("/")->body == "falsethe mode is");
  }
  CHECK(has(error_of("function sluice_config_pools() return { [{}] = 1 } end function sluice_config_routes() end"), "has a key that is a table"));
  CHECK(has(error_of("function sluice_config_pools() return { [1e300] = coroutine.create(function() end) } end function sluice_config_routes() end"),
            "[1e+300] is a thread, which cannot be copied"));
  CHECK(has(error_of("function sluice_config_pools() local t = {} for i = 1, 100 do t = { t } end return t end function sluice_config_routes() end"), "nested too deeply"));
  CHECK(has(error_of("stores { a = { module = 'm', path = 'p' } } pools { p = { stores = { 'a' }, seed = 1e300 } }"), "seed is a whole number"));
}

TEST_CASE("handles and objects of another generator or stage are errors") {
  World w("routes { map = { ['/1'] = route_lua { children = { a = 'a' }, f = function(rctx, h) other, handle, req = rctx, h.a, rctx:request_new() "
          "return function() return 'x' end end }, ['/2'] = route_lua { children = { a = 'a' }, f = function(rctx, h) return function(r) local said = {} "
          "for i, f in ipairs { function() rctx:get(handle, 'k') end, function() rctx:result(handle) end, function() rctx:handle_set_cb(handle, print) end, "
          "function() rctx:wait_handle(handle) end, function() other:get(handle, 'k') end, function() other:wait_cond(1) end, function() other:request_new() end, "
          "function() other:deadline(1) end, function() other:cfd() end } do said[i] = tostring(pcall(f)) end "
          "return table.concat(said, ' ') end end } } }");
  CHECK(w.get("/2")->body == "false false false false false false false false false");
}

TEST_CASE("no way leads to metatables, environments, or other code than text") {
  World w(route("local found = {} for _, n in ipairs { 'getfenv', 'setfenv', 'newproxy', 'jit', 'io', 'package', 'dofile', 'loadfile', 'module' } do "
                "if rawget(_G, n) ~= nil then found[#found + 1] = n end end "
                "for _, x in ipairs { rctx, r, rctx:request_new(), rctx:response_new() } do if type(getmetatable(x)) ~= 'string' then found[#found + 1] = 'metatable' end "
                "if pcall(setmetatable, x, {}) then found[#found + 1] = 'setmetatable' end end "
                "for _, n in ipairs { 'execute', 'exit', 'remove', 'rename', 'tmpname', 'setlocale' } do if os[n] then found[#found + 1] = 'os.' .. n end end "
                "for n in pairs(debug) do if n ~= 'traceback' then found[#found + 1] = 'debug.' .. n end end "
                "if load(function() return 'return 1' end == nil and '' or '\\27LJ\\2') then found[#found + 1] = 'bytecode' end "
                "if string.dump then found[#found + 1] = 'dump' end for _, m in ipairs { 'ffi', 'jit.util', 'io', '../x', '/etc/passwd' } do "
                "if pcall(require, m) then found[#found + 1] = m end end return 'found: ' .. table.concat(found, ' ')"));
  CHECK(w.get("/")->body == "found: ");
}
