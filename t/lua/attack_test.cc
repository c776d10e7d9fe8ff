// What a route can do to its VM by malice or mistake: it gets an error, the VM survives, and others on the worker go on.
#include "t/lua/harness.h"

using namespace sluice::lua::harness;

namespace {

// A route for each of the texts, at /0, /1, ...; each is asked twice, and behind it a good one.
struct Attack {
  std::string_view text;
  std::string_view says;      // in the log, or, when it begins with '=', the answer's body; empty: either, once
};

void survive(const std::vector<Attack>& attacks, std::string_view settings = "lua_memory = '8MiB', lua_time_limit = 0.2") {
  std::string config = "settings { " + std::string(settings) + " } routes { map = { ['/good'] = route_lua { children = { 'a' }, f = function(rctx, h) return function(r) return rctx:get_and_wait(h[1], 'k') end end }";
  for (std::size_t i = 0; i < attacks.size(); ++i)
    config += ", ['/" + std::to_string(i) + "'] = route_lua { children = { 'a' }, f = function(rctx, h) return function(r) " + std::string(attacks[i].text) + " end end }";
  World w(config + " } }");
  for (std::size_t i = 0; i < attacks.size(); ++i) {
    CAPTURE(attacks[i].text);
    for (int again = 0; again < 2; ++again) {
      w.services.pass(1'100'000);      // so many lines are written in a second, and no more
      w.log.lines.clear();
      const auto x = w.get("/" + std::to_string(i));
      const std::string said = w.log.lines.empty() ? x->body : w.log.lines.back();
      CAPTURE(said);
      if (attacks[i].says.empty()) {
        CHECK((x->status == 200 || x->status == 500));
      } else if (attacks[i].says.starts_with("=")) {
        CHECK(x->status == 200);
        CHECK(x->body == attacks[i].says.substr(1));
      } else {
        CHECK(x->status == 500);
        CHECK(w.log.has(attacks[i].says));
      }
      w.table->idle();
      CHECK(w.get("/good")->body == "a show k");
    }
  }
}

}  // namespace

TEST_CASE("whatever eats memory is an error, and others go on") {
  survive({
      {"local t = {} for i = 1, 1e9 do t[i] = i end", "not enough memory"},
      {"return ('x'):rep(1e9)", "not enough memory"},
      {"return ('x'):rep(2^31)", "="},
      {"return #('ab'):rep(1e8, ('c'):rep(100))", ""},
      {"return ('%s'):format(('x'):rep(5e6)) .. ('y'):rep(5e6)", "not enough memory"},
      {"local s = ('x'):rep(3e6) return table.concat({ s, s, s, s })", "not enough memory"},
      {"local s = 'x' while true do s = s .. s end", "not enough memory"},
      {"return (('x'):rep(3e6):gsub('x', 'yyyyyy'))", "not enough memory"},
      {"return unpack({}, 1, 1e7)", "too many results"},
      {"return select('#', string.byte(('x'):rep(1e6), 1, -1))", "string slice too long"},
      {"local t = {} for i = 1, 1e6 do t[i] = t end return tostring(#t)", "not enough memory"},
      {"local f f = function(...) return f(1, ...) end f()", ""},
      {"local cos = {} for i = 1, 1e6 do cos[i] = coroutine.create(print) end", "not enough memory"},
      {"return load(('a = 1 '):rep(2e5))", "at most 1048576 are taken"},
      {"local parts = {} for i = 1, 2.5e4 do parts[i] = 'function() local a = {} return a end,' end return tostring(load('return {' .. table.concat(parts) .. '}'))", ""},
      {"return sluice.json.encode(('\\0'):rep(4e6))", "not enough memory"},
  }, "lua_memory = '8MiB', lua_time_limit = 60");
  survive({{"local r2 = rctx:request_new('GET', '/objects/k') for i = 1, 1e9 do r2:set_query('x', ('y'):rep(1e5) .. i) end", "stopped: it ran too long"}});
}

TEST_CASE("a VM survives a thousand attacks on its memory, and ends where it was") {
  World w("settings { lua_memory = '4MiB' } " +
          route("if r:query('much') then local t = {} for i = 1, 1e9 do t[i] = ('x'):rep(10000) .. i end end return rctx:get_and_wait(h.a, 'k')"));
  w.get("/");
  const auto slots = w.table->slots();
  std::uint64_t before = 0;
  for (int i = 0; i < 1000; ++i) {
    const auto x = w.get("/?much=1");
    if (x->status != 500) FAIL("it was not refused");
    w.table->idle();
    if (i == 10) before = w.table->memory_bytes();
    if (i % 100 == 0) CHECK(w.get("/")->body == "a show k");
  }
  CHECK(w.table->memory_bytes() < before + (256u << 10));
  CHECK(w.table->slots() == slots);
}

TEST_CASE("recursion through C functions ends before the thread's stack does") {
  survive({
      {"local f f = function() return (('a'):gsub('a', f)) end return f()", "stack overflow"},
      {"local x = setmetatable({}, { __index = function(self) return (('a'):gsub('a', self)) end }) return x.y", "stack overflow"},
      {"local f f = function() return coroutine.wrap(f)() end return f()", "stack overflow"},
      {"local f f = function() local good, why = coroutine.resume(coroutine.create(f)) if not good then error(why, 0) end return why end return f()", "stack overflow"},
      {"local x x = setmetatable({}, { __tostring = function() print(x) return 'x' end }) print(x)", "stack overflow"},
      {"local f f = function(a, b) table.sort({ 3, 2, 1 }, f) return a < b end table.sort({ 3, 2, 1 }, f)", ""},
      {"local f f = function() table.sort({ 2, 1 }, function(a, b) f() return a < b end) end coroutine.wrap(f)()", ""},
      {"local x x = setmetatable({}, { __tostring = function() return (('%s'):format(x)) end }) return tostring(x)", "stack overflow"},
      {"local x x = setmetatable({}, { __index = function(self, k) return self[k .. 'x'] end }) return x.a", ""},
      {"local x x = setmetatable({}, { __lt = function(a, b) return a < b end }) return x < x", ""},
      {"local x x = setmetatable({}, { __concat = function(a, b) return a .. b .. a end }) return x .. x", ""},
      {"local function f() return (pcall(f)) end f() return 'caught'", "=caught"},
      {"local t = {} t.__index = t setmetatable(t, t) return t.x", "loop"},
      {"return tostring(load('return ' .. ('('):rep(1e5) .. '1' .. (')'):rep(1e5)))", "=nil"},
      {"return tostring(load('return ' .. ('{'):rep(1e5) .. ('}'):rep(1e5)))", "=nil"},
      {"return tostring(load('return ' .. ('- '):rep(2e5) .. '1'))", "=nil"},
      {"return tostring(load(('do '):rep(1e5) .. ('end '):rep(1e5)))", "=nil"},
      {"return sluice.json.encode((function() local t = {} for i = 1, 1e4 do t = { t } end return t end)())", "excessive nesting"},
      {"sluice.json.encode_max_depth(1e9) return sluice.json.encode((function() local t = {} for i = 1, 1e5 do t = { t } end return t end)())", ""},
      {"return sluice.json.decode(('['):rep(1e5))", "nested"},
      {"sluice.json.decode_max_depth(1e9) return sluice.json.decode(('['):rep(1e6))", ""},
      {"local t = {} t.t = t return sluice.json.encode(t)", "excessive nesting"},
  }, "lua_memory = '8MiB', lua_time_limit = 60");
}

TEST_CASE("long C functions end, or are stopped") {
  survive({
      {"xpcall(function() while true do end end, function() while true do end end)", "stopped: it ran too long"},
      {"xpcall(function() error('x') end, function() while true do end end) return 'never'", "stopped: it ran too long"},
      {"while true do xpcall(function() while true do end end, function() while true do end end) end", "stopped: it ran too long"},
      {"local function f() return 1 + select(2, xpcall(f, f)) end return tostring(f())", "stopped: it ran too long"},
      {"table.sort({ 3, 2, 1 }, function() while true do end end)", "stopped: it ran too long"},
      {"return (('a'):rep(1e5):gsub('a', function() while true do end end))", "stopped: it ran too long"},
      {"for i = 1, 1e9 do pcall(string.rep, 'x', 1e6) end", "stopped: it ran too long"},
  });
  // However slow the machine, none of these is stopped.
  survive({
      {"local n = 0 table.sort({ 5, 3, 1, 4, 2, 9, 8, 7 }, function() n = n + 1 return n % 2 == 0 end) return 'sorted'", ""},
      {"table.sort({ 1, 2, 3, 4, 5, 6, 7, 8, 9 }, function() return true end) return 'sorted'", "invalid order function"},
      {"local good, said = xpcall(function(a) error(a, 0) end, function(why) return 'handled ' .. why end, 'this') return tostring(good) .. said", "=falsehandled this"},
      {"return tostring(select(2, xpcall(function() return rctx:get_and_wait(h[1], 'k'):body() end, print)))", "=a show k"},
      {"return select(2, xpcall(function() error('x', 0) end, debug.traceback)):sub(1, 1)", "=x"},
      {"return (('x'):gsub('x', function() error('inside') end))", "inside"},
      {"return (('x'):gsub('x', function() error({}) end))", "an error that is not a string"},
      {"return (('x'):gsub('x', function() return {} end))", "invalid replacement value"},
      {"return ('a'):rep(40):match(('a?'):rep(40) .. ('a'):rep(40))", "the pattern takes too long"},
      {"return 200, 'x', (function() local h = {} for i = 1, 5000 do h['X-' .. i] = '1' end return h end)()", "more than 32 KiB of headers"},
      {"local res = rctx:response_new() for i = 1, 40 do res:set_header('X-' .. i, ('1'):rep(1000)) end", "set_header: more than 32768 bytes of headers"},
      {"return tostring(os.date(('%c'):rep(1000)):len() > 1000)", ""},
      {"return tostring(os.date('*t', 1e300)) .. tostring(os.date('%c', 1e300))", ""},
      {"return tostring(os.time { year = 1e300, month = 1, day = 1 })", ""},
      {"return tostring(#tostring(('x'):rep(1e6)))", "=1000000"},
      {"return ('%1000d'):format(1)", "invalid option"},
      {"return ('%99.99f'):format(1e300):sub(1, 2)", ""},
      {"return tostring(tonumber(('9'):rep(1e6)))", ""},
      {"return table.concat({}, '', 1, 1e9)", "invalid value"},
      {"return tostring(math.random(0))", ""},
      {"return string.char(300)", "invalid value"},
  }, "lua_memory = '8MiB', lua_time_limit = 60");
}

TEST_CASE("a position of table.insert from which LuaJIT's would move two thousand million places is refused") {
  survive({{"table.insert({ 1 }, -2^31, 0)", "a position from 1 expected"},
           {"table.insert({ 1 }, 0, 0)", "a position from 1 expected"},
           {"table.insert({ 1 }, 0 / 0, 0)", "a position from 1 expected"},
           {"table.insert({ 1 }, 2^52, 0)", "a position from 1 expected"},
           {"table.insert({}, 1, 2, 3)", "wrong number of arguments"},
           {"local t = { 1, 3 } table.insert(t, 2, 2) table.insert(t, 4) table.insert(t, 1, 0) table.insert(t, 7, 7) return table.concat(t, ',', 1, 5) .. tostring(t[6]) .. t[7]", "=0,1,2,3,4nil7"}});
}

TEST_CASE("errors that are not strings, and errors in what describes them") {
  survive({
      {"error()", ""},
      {"error({})", "an error that is not a string"},
      {"error(rctx)", "an error that is not a string"},
      {"error(setmetatable({}, { __tostring = function() return 'described' end }))", ""},
      {"error(setmetatable({}, { __tostring = function() error('again') end }))", ""},
      {"error(setmetatable({}, { __tostring = function() return {} end }))", ""},
      {"error(setmetatable({}, { __tostring = function() while true do end end }))", ""},
      {"return setmetatable({}, { __index = function() error('index') end })", ""},
      {"return setmetatable({ status = 200 }, { __index = function() error('index') end })", "="},
      {"return tostring(setmetatable({}, { __tostring = function() return 1 end }))", "a route returned a status"},
      {"setmetatable({}, { __gc = function() error('gc') end }) return 'no finalizers'", "=no finalizers"},
      {"return tostring(xpcall(error, function() error('in the handler') end))", "=false"},
      {"return 200, 'x', setmetatable({}, { __index = function() error('index') end })", "=x"},
      {"for k in setmetatable({}, { __call = function() error('iterator') end }) do end", "iterator"},
  });
}

TEST_CASE("errors of every kind in a callback leave the request as it was") {
  const char* kinds[] = {"error()", "error({})", "error(setmetatable({}, { __tostring = function() error('again') end }))", "local function f() return 1 + f() end f()",
                         "local t = {} for i = 1, 1e9 do t[i] = i end", "coroutine.yield()", "coroutine.wrap(function() error({}) end)()", "return {}, {}"};
  for (const char* kind : kinds) {
    CAPTURE(kind);
    World w("settings { lua_memory = '8MiB' } " + route("return rctx:get_and_wait(h.a, 'k')", "rctx:handle_set_cb(h.a, function() " + std::string(kind) + " end)"));
    CHECK(w.get("/")->body == "a show k");
    CHECK(w.get("/")->body == "a show k");
  }
}

TEST_CASE("coroutines of a route's own are no way around a wait") {
  survive({
      {"return coroutine.wrap(function() return coroutine.wrap(function() return 'deep' end)() end)()", "=deep"},
      {"local co = coroutine.wrap(function() pcall(function() coroutine.yield('over pcall') end) return 'end' end) return co() .. co()", "=over pcallend"},
      {"local co co = coroutine.create(function() return coroutine.resume(co) end) local a, b = coroutine.resume(co) return tostring(a) .. tostring(b)", "=truefalse"},
      {"local co = coroutine.create(function() end) coroutine.resume(co) local a, b = coroutine.resume(co) return tostring(a) .. b", "=falsecannot resume dead coroutine"},
      {"local co = coroutine.wrap(function() end) co() co()", "cannot resume dead coroutine"},
      {"return select(2, coroutine.resume(coroutine.running()))", "=cannot resume a route's coroutine: its waits do"},
      {"local main = coroutine.running() return coroutine.wrap(function() return select(2, coroutine.resume(main)) end)()", "=cannot resume a route's coroutine: its waits do"},
      {"return tostring(coroutine.wrap(function() return pcall(rctx.get_and_wait, rctx, h[1], 'k') end)())", "=false"},
      {"coroutine.wrap(function() error('inside') end)()", "inside"},
      {"coroutine.wrap(function() error({}) end)()", "an error that is not a string"},
      {"local t = {} for i = 1, 100 do t[i] = i end return tostring(select('#', coroutine.wrap(function(...) return coroutine.yield(...) end)(unpack(t))))", "=100"},
      {"local co = coroutine.create(function(...) return ... end) return tostring(select(2, coroutine.resume(co, unpack({}, 1, 7000))))", "=nil"},
      {"local names = {} for _, co in ipairs { coroutine.create(print), coroutine.running() } do names[#names + 1] = coroutine.status(co) end return table.concat(names, ' ')", "=suspended running"},
      {"return tostring(pcall(coroutine.resume, 1)) .. tostring(pcall(coroutine.wrap, 1))", "=falsefalse"},
      {"local co = coroutine.wrap(function(a) local b = coroutine.yield(a + 1) return a + b end) return co(1) .. ' ' .. co(10)", "=2 11"},
      {"local s = '' for i in coroutine.wrap(function() for i = 1, 3 do coroutine.yield(i) end end) do s = s .. i end return s", "=123"},
  });
}

TEST_CASE("nobody but its wait goes on with a suspended route, and its generator's function neither") {
  World w("routes { map = { ['/waits'] = route_lua { children = { 'a' }, f = function(rctx, h) return function() kept = coroutine.running() return rctx:get_and_wait(h[1], 'k') end end }, "
          "['/pushes'] = function() local good, why = coroutine.resume(kept, 'wrong') return tostring(good) .. ': ' .. why end } }");
  auto first = w.begin(Method::get, "/waits");
  auto second = w.begin(Method::get, "/pushes");
  CHECK(second->body == "false: cannot resume a route's coroutine: its waits do");
  CHECK(first->times == 0);
  w.services.deliver_all();
  CHECK(first->body == "a show k");
}

TEST_CASE("a config without the sandbox has files, processes and modules, and what the server relies on is still ours") {
  const char* tell = "local function has(t, n) return t and rawget(t, n) ~= nil and n .. ' ' or '' end "
                     "local s = has(_G, 'io') .. has(os, 'execute') .. has(os, 'remove') .. has(os, 'exit') .. has(os, 'setlocale') .. has(_G, 'package') .. has(debug, 'getinfo') .. has(debug, 'sethook') "
                     ".. has(debug, 'setmetatable') .. has(_G, 'newproxy') .. has(_G, 'jit') .. has(_G, 'dofile') .. has(_G, 'setfenv') "
                     "return s .. tostring(pcall(require, 'ffi')) .. tostring(pcall(coroutine.yield)) .. tostring((load('\\27LJ\\2')))";
  World w("settings { lua_sandbox = false } local seen = (function() " + std::string(tell) + " end)() local lines = io.open('/proc/self/status'):read('*l') " +
          route("if r:query('yield') then coroutine.yield() end if r:query('load') then return seen .. #lines end " + std::string(tell)));
  CHECK(w.get("/")->body == "io execute remove package getinfo dofile setfenv truefalsenil");
  CHECK(w.get("/?load=1")->body.starts_with("io execute remove package getinfo dofile setfenv true"));
  CHECK(w.get("/?yield=1")->status == 500);
  // Another's userdata of our boxes' size is none of ours.
  World v("settings { lua_sandbox = false } " + route("local f = io.open('/dev/null') local good, why = pcall(rctx.enqueue, rctx, f, h.a) f:close() return why"));
  CHECK(v.get("/")->body.find("a request expected") != std::string::npos);
  World u(route("return tostring(rawget(_G, 'io')) .. tostring(os.execute)"));
  CHECK(u.get("/")->body == "nilnil");
  CHECK(error_of("settings { lua_sandbox = 1 }").find("`lua_sandbox` is true or false") != std::string::npos);
}

TEST_CASE("without the sandbox a module beside the config comes before one of the system, and its own error is said") {
  const TempFile file("settings { lua_sandbox = false } local m = require 'mine' routes { default = function() return m.name .. tostring(require('ffi').sizeof('int')) end }");
  const_cast<TempFile&>(file).add("mine.lua", "return { name = 'beside' }");
  auto reader = make_config_reader(nullptr);
  auto read = reader->read(file.path());
  REQUIRE(read.has_value());
  CHECK((*read)->make_routes(stores_of(**read), 0).has_value());
  const TempFile bad("settings { lua_sandbox = false } require 'mine' routes {}");
  const_cast<TempFile&>(bad).add("mine.lua", "error('my own')");
  CHECK(reader->read(bad.path()).error().find("my own") != std::string::npos);
  CHECK(error_of("settings { lua_sandbox = false } require 'nowhere_at_all'").find("nowhere_at_all") != std::string::npos);
}
