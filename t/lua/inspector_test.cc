// Inspectors, mutators, routers by words, tags and hosts.
#include "t/lua/harness.h"

using namespace sluice::lua::harness;

namespace {

// What the steps see in `GET /shop/users/ann?n=42&s=text` with some headers.
std::string seen(std::string_view steps) {
  World w("routes { map = { ['/shop/:what/:who'] = route_lua { f = function() local ins = sluice.req_inspector_new(" + std::string(steps) +
          ") return function(r) local out = { ins(r) } for i = 1, select('#', ins(r)) do out[i] = tostring(out[i]) end return table.concat(out, ' ') end end } } }", false);
  TestExchange x(Method::get, "/shop/users/ann?n=42&s=text");
  x.edit().headers = {{"X-User", "ann"}, {"X-Count", "17"}, {"Accept-Encoding", "gzip;q=1, BR"}, {"X-Bad", "17x"}};
  w.start(x);
  return x.status == 200 ? x.body : w.log.lines.empty() ? "?" : w.log.lines.back();
}

}  // namespace

TEST_CASE("a request inspector answers all its steps in order") {
  CHECK(seen("{ t = 'method' }, { t = 'methodis', str = 'GET' }, { t = 'methodis', str = 'PUT' }") == "GET true false");
  CHECK(seen("{ t = 'pathsegment', n = 1 }, { t = 'pathsegment', n = 3 }, { t = 'pathsegment', n = 4 }") == "shop ann nil");
  CHECK(seen("{ t = 'pathbegin', str = '/shop/' }, { t = 'pathbegin', str = '/shops' }, { t = 'pathis', str = '/shop/users/ann' }") == "true false true");
  CHECK(seen("{ t = 'param', name = 'who' }, { t = 'param', name = 'none' }") == "ann nil");
  CHECK(seen("{ t = 'hasquery', name = 'n' }, { t = 'query', name = 's' }, { t = 'queryint', name = 'n' }, { t = 'queryint', name = 's' }, { t = 'queryis', name = 's', str = 'text' }") == "true text 42 nil true");
  CHECK(seen("{ t = 'hasheader', name = 'x-user' }, { t = 'hasheader', name = 'x-none' }, { t = 'header', name = 'X-USER' }, { t = 'headerint', name = 'x-count' }, { t = 'headerint', name = 'x-bad' }") == "true false ann 17 nil");
  CHECK(seen("{ t = 'headeris', name = 'x-user', str = 'ann' }, { t = 'headeris', name = 'x-none', str = '' }, { t = 'headertoken', name = 'accept-encoding', str = 'br' }, "
             "{ t = 'headertoken', name = 'accept-encoding', str = 'zip' }") == "true false true false");
  CHECK(seen("{ t = 'header', name = 'x-user', map = { ann = 7, bob = 8 } }, { t = 'pathsegment', n = 2, map = { items = 1 } }") == "7 nil");
}

TEST_CASE("a request inspector takes the key apart") {
  World w(route("return table.concat({ tostring((ins(r))), tostring((select(2, ins(r)))), tostring((select(3, ins(r)))), tostring((select(4, ins(r)))), tostring((select(5, ins(r)))) }, ' ')",
                "local ins = sluice.req_inspector_new({ t = 'sepkey', sep = '--', pos = 2 }, { t = 'sepkey', sep = '--', pos = 4 }, { t = 'sepkey', sep = '--', map = { user = 9 } }, "
                "{ t = 'keybegin', str = 'user-' }, { t = 'keyis', str = 'user' })"));
  CHECK(w.get("/objects/user--7--x")->body == "7 nil 9 true false");
}

TEST_CASE("a response inspector looks at the status, the error and headers") {
  World w(route("local res = rctx:get_and_wait(h.a, 'k') local own = rctx:response_new():set_status(503):set_header('X-N', '5') "
                "return table.concat({ tostring(ins(res)), tostring(select(2, ins(res))), tostring(select(3, ins(res))), tostring(select(4, ins(res))), tostring(select(5, ins(res))), "
                "tostring(select(6, ins(res))), tostring(select(6, ins(own))), tostring((ins(own))) }, ' ')",
                "local ins = sluice.res_inspector_new({ t = 'status' }, { t = 'statusis', code = 404 }, { t = 'statusclass' }, { t = 'erroris', str = 'not_found' }, "
                "{ t = 'header', name = 'etag' }, { t = 'headerint', name = 'x-n' })"));
  w.services.answerer = [](Event& e) {
    e.answer.status = 404;
    e.answer.error = sluice::Errc::not_found;
    e.answer.revision = 9;
  };
  CHECK(w.get("/")->body == "404 true 4 true \"9\" nil 5 503");
}

TEST_CASE("a request mutator copies and sets all it was told, or nothing") {
  World w(route("local to = rctx:request_new() local good = mut(to, r, 'value') local res = rctx:enqueue_and_wait(to, h.a) "
                "return tostring(good) .. ' ' .. to:method() .. ' ' .. to:path() .. ' ' .. to:key() .. ' ' .. tostring(to:query('n')) .. ' ' .. tostring(to:header('x-copy')) .. ' ' "
                ".. tostring(to:header('x-set')) .. ' ' .. to:body() .. '|' .. res:body()",
                "local mut = sluice.req_mutator_new({ t = 'methodset', str = 'POST' }, { t = 'pathset', str = '/inputs/turn' }, { t = 'keycopy', idx = 2 }, { t = 'querycopy', name = 'n', idx = 1 }, "
                "{ t = 'headercopy', name = 'x-copy', idx = 2 }, { t = 'headerset', name = 'X-Set', str = 's' }, { t = 'bodycopy', idx = 1 })"));
  auto x = w.begin(Method::post, "/?n=7", "the body");
  w.services.deliver_all();
  CHECK(x->body == "true POST /inputs/turn value 7 value s the body|a input turn n=7 [the body]");
  // Without ?n the copy of it fails, and nothing is edited.
  x = w.begin(Method::post, "/", "the body");
  w.services.deliver_all();
  CHECK(x->body.substr(0, 12) == "false GET / ");
}

TEST_CASE("a mutator copies everything, and takes away") {
  World w(route("local to = rctx:request_new('GET', '/views/v') to:set_header('x-gone', '1') to:set('old', 1) local good = mut(to, r) "
                "return tostring(good) .. ' ' .. tostring(to:header('x-user')) .. ' ' .. tostring(to:header('content-length')) .. ' ' .. tostring(to:header('x-gone')) .. ' ' "
                ".. tostring(to:query('a')) .. tostring(to:query('b')) .. tostring(to:query('old')) .. ' ' .. to:method() .. to:path()",
                "local mut = sluice.req_mutator_new({ t = 'headercopyall', idx = 1 }, { t = 'headerdel', name = 'x-gone' }, { t = 'querycopyall', idx = 1 }, { t = 'querydel', name = 'old' }, "
                "{ t = 'methodcopy', idx = 1 }, { t = 'pathcopy', idx = 1 })"));
  TestExchange x(Method::post, "/p?a=1&b=2");
  x.edit().headers = {{"X-User", "ann"}, {"Content-Length", "5"}};
  w.start(x);
  CHECK(x.body == "true ann nil nil 12nil POST/p");
}

TEST_CASE("a response mutator sets status, headers and body, and copies those of a result") {
  World w(route("local res = rctx:get_and_wait(h.a, 'k') local out = rctx:response_new():set_header('X-Tag', 'old') "
                "if not mut(out, res, 'text') then return 'no' end return out",
                "local mut = sluice.res_mutator_new({ t = 'statuscopy', idx = 1 }, { t = 'headercopy', name = 'ETag', idx = 1 }, { t = 'headerset', name = 'x-tag', str = 'new' }, "
                "{ t = 'headerset', name = 'X-More', str = 'more' }, { t = 'bodycopy', idx = 1 }, { t = 'headerdel', name = 'x-none' })"));
  w.services.answerer = [](Event& e) {
    e.answer.status = 203;
    e.answer.revision = 4;
  };
  auto x = w.get("/");
  CHECK(x->status == 203);
  CHECK(x->body == "a show k");
  CHECK(x->headers == "ETag: \"4\"\r\nx-tag: new\r\nX-More: more\r\n");
  // A result without a revision has no ETag to copy.
  w.services.answerer = [](Event& e) { e.answer.status = 203; };
  CHECK(w.get("/")->body == "no");
}

TEST_CASE("steps that cannot be are refused when they are made, and wrong objects when they are used") {
  struct Case { const char *call, *says; };
  const Case cases[] = {
      {"sluice.req_inspector_new()", "req_inspector_new: no steps"},
      {"sluice.req_inspector_new({ t = 'heder', name = 'x' })", "req_inspector_new: there is no step `heder`; did you mean `header`?"},
      {"sluice.req_inspector_new({ t = 'status' })", "req_inspector_new: there is no step `status`"},
      {"sluice.res_inspector_new({ t = 'method' })", "res_inspector_new: there is no step `method`"},
      {"sluice.req_inspector_new({ t = 'header' })", "req_inspector_new: step `header` needs `name`"},
      {"sluice.req_inspector_new({ t = 'header', name = 1 })", "`name` of step `header` is a string"},
      {"sluice.req_inspector_new({ t = 'header', name = 'x', str = 'y' })", "step `header` has no `str`"},
      {"sluice.req_inspector_new({ t = 'pathsegment', n = 0 })", "pieces count from 1"},
      {"sluice.req_inspector_new('x')", "step 1 is a table, got a string"},
      {"sluice.req_inspector_new({ t = 'method' })({})", "a request expected as argument 1"},
      {"sluice.req_mutator_new({ t = 'headerset', name = 'Content-Length', str = '1' })", "that header is the server's own"},
      {"sluice.req_mutator_new({ t = 'headerset', name = 'x', str = 'a\\r\\nb: c' })", "not a header that can be sent"},
      {"sluice.req_mutator_new({ t = 'methodset', str = 'get' })", "not a method"},
      {"sluice.req_mutator_new({ t = 'pathset', str = 'x' })", "a path starts with `/`"},
      {"sluice.res_mutator_new({ t = 'statusset', code = 100 })", "a final status is 200 to 599"},
      {"sluice.req_mutator_new({ t = 'keycopy', idx = 0 })", "sources count from 1"},
      {"sluice.req_mutator_new({ t = 'methodset', str = 'GET' })(r)", "a mutator edits an object that the route made: rctx:request_new()"},
      {"local q = rctx:request_new() sluice.req_mutator_new({ t = 'keycopy', idx = 1 })(q, q)", "a mutator does not copy from the object that it edits"},
      {"sluice.req_mutator_new({ t = 'keycopy', idx = 1 })(rctx:request_new(), {})", "a mutator's sources are requests, responses, strings and numbers, got a table"},
  };
  for (const Case& c : cases) {
    const std::string call = c.call;
    CAPTURE(call);
    World w(route("return tostring((select(2, pcall(function() " + call + " end))))"));
    const auto x = w.get("/");
    const std::string got = x->body;
    CAPTURE(got);
    CHECK(x->body.find(c.says) != std::string::npos);
  }
}

TEST_CASE("10,000 inspections and mutations leave nothing for the collector") {
  World w(route("ins(r) mut(to, r) local before = collectgarbage('count') for i = 1, 10000 do ins(r) mut(to, r) end return tostring(collectgarbage('count') - before)",
                "local to = rctx:request_new() local ins = sluice.req_inspector_new({ t = 'pathsegment', n = 1, map = { x = 1 } }, { t = 'hasheader', name = 'x' }, { t = 'queryint', name = 'n' }, "
                "{ t = 'header', name = 'x-user', map = { ann = 5 } }) local mut = sluice.req_mutator_new({ t = 'pathcopy', idx = 1 }, { t = 'querycopyall', idx = 1 }, { t = 'headercopyall', idx = 1 })"));
  TestExchange x(Method::get, "/x?n=5");
  x.edit().headers = {{"X-User", "ann"}};
  w.start(x);
  CHECK(x.body == "0");
}

TEST_CASE("a router by words takes what is before a separator, short or long, or between two") {
  const auto answers = [](std::string_view fields, std::initializer_list<std::pair<const char*, const char*>> asks) {
    World w("local function says(t) return function(r) return t .. ' ' .. r:path() end end routes { " + std::string(fields) +
            ", map = { a = says('A'), bb = cmdmap { GET = route_lua { f = function() return says('B') end } } }, default = says('none') }", false);
    for (const auto& ask : asks) {
      const auto& path = ask.first;
      const auto& body = ask.second;
      CAPTURE(path);
      CHECK(w.get(path)->body == body);
    }
    Match match;
    return w.table->find(Method::put, "/bb:x", match) == nullptr ? match.allow : 0u;
  };
  CHECK(answers("mode = 'prefix', stop = ':'", {{"/a:1", "A /a:1"}, {"/bb:", "B /bb:"}, {"/a", "none /a"}, {"/b:1", "none /b:1"}, {"/xa:1", "none /xa:1"}}) != 0);
  answers("mode = 'prefix', stop = '--x--'", {{"/a--x--1", "A /a--x--1"}, {"/a--x-1", "none /a--x-1"}, {"/a--x--", "A /a--x--"}, {"/bb--x--a--x--", "B /bb--x--a--x--"}});
  answers("mode = 'anchor', start = '@', stop = '!'", {{"/@a!x", "A /@a!x"}, {"/a!x", "none /a!x"}, {"/@a", "none /@a"}, {"/x@a!", "none /x@a!"}});
  answers("mode = 'anchor'", {{"//a/x", "A //a/x"}, {"/a/x", "none /a/x"}});
  answers("mode = 'prefix', of = 'key', stop = '.'", {{"/objects/a.x", "A /objects/a.x"}, {"/objects/a", "none /objects/a"}, {"/views/bb.x", "B /views/bb.x"}, {"/else/a.x", "none /else/a.x"}});
}

TEST_CASE("routers that cannot be are refused") {
  struct Case { std::string text, says; };
  const Case cases[] = {
      {"routes { mode = 'prefx', map = { a = route_null {} } }", "t.lua:1: routes{}: `mode` is path, prefix or anchor"},
      {"routes { stop = ':', map = { ['/a'] = route_null {} } }", "t.lua:1: routes{}: `start`, `stop` and `of` go with mode"},
      {"routes { mode = 'prefix', start = 'x', map = { a = route_null {} } }", "t.lua:1: routes{}: `start` goes with mode = anchor"},
      {"routes { mode = 'anchor', start = 'x', map = { a = route_null {} } }", "t.lua:1: routes{}: `start` and `stop` go together"},
      {"routes { mode = 'prefix', stop = 'longer', map = { a = route_null {} } }", "t.lua:1: routes{}: `stop` has 1 to 5 bytes"},
      {"routes { mode = 'prefix', map = {\n ['a/b'] = route_null {} } }", "t.lua:2: `a/b` has `/` in it, where a word ends"},
      {"routes { mode = 1, map = {} }", "t.lua:1: `mode` of routes{} is a string"},
      {"function sluice_config_routes()\nsluice.router_new { mpa = {} } end", "t.lua:2: sluice.router_new has no `mpa`; did you mean `map`?"},
      {"function sluice_config_routes()\nsluice.attach(sluice.ANY, function() end, 5) end", "t.lua:2: sluice.attach: a tag is a string"},
      {"function sluice_config_routes()\nsluice.attach(sluice.ANY, function() end, { hots = 'x' }) end", "t.lua:2: sluice.attach: the third argument is a tag"},
      {"routes { host = 'a:80', default = route_null {} }", "t.lua:1: `a:80` is not a host"},
      {"settings { listen = { '127.0.0.1:1', { '127.0.0.1:2', tag = 'admin' } } } routes { tag = 'admni', default = route_null {} }", "t.lua:1: no listener has the tag `admni`; did you mean `admin`?"},
      {"routes { host = 'a', default = route_null {} }\nroutes { host = 'a', default = route_null {} }", "t.lua:2: routes{} is given twice for host `a`"},
      {"settings { listen = { { tag = 'x' } } }", "t.lua:1: a listener needs an address"},
      {"settings { listen = { { '127.0.0.1:1', tag = 'a b' } } }", "t.lua:1: `a b` is not a tag"},
      {"settings { listen = {} }", "t.lua:1: `listen` is a list without listeners"},
      {"settings { listen = { { '127.0.0.1:1', tga = 'x' } } }", "t.lua:1: a listener has `address`, `tag` and `tls`, not `tga`"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.text);
    const std::string why = error_of(c.text);
    CAPTURE(why);
    CHECK(why.find(c.says) == 0);
  }
}

TEST_CASE("a listener's tag and the host choose the routes, the most particular first") {
  World w("settings { listen = { '127.0.0.1:1', { '127.0.0.1:2', tag = 'admin' } } } local function says(t) return function(r) return t .. '|' .. r:tag() end end "
          "routes { default = says('all') } routes { host = '*.example.com', default = says('below') } routes { host = 'api.example.com', default = says('api') } "
          "routes { tag = 'admin', map = { ['/x'] = says('admin') } } routes { tag = 'admin', host = 'api.example.com', default = says('both') }", false);
  const auto ask = [&](const char* tag, const char* host, const char* path = "/") {
    TestExchange x(Method::get, path);
    x.edit().tag = tag;
    if (*host) x.edit().headers.push_back({"Host", host});
    Match match;
    Route* route = w.table->find_for(x.request(), match);
    if (!route) return std::string("404");
    route->start(x, match, w.services);
    return x.body;
  };
  CHECK(ask("", "") == "all|");
  CHECK(ask("", "other.org") == "all|");
  CHECK(ask("", "api.example.com:8080") == "api|");
  CHECK(ask("", "API.Example.com.") == "api|");
  CHECK(ask("", "www.example.com") == "below|");
  CHECK(ask("", "example.com") == "all|");
  CHECK(ask("admin", "other.org", "/x/y") == "admin|admin");
  CHECK(ask("admin", "api.example.com", "/x/y") == "both|admin");
  CHECK(ask("admin", "other.org", "/y") == "404");
  CHECK(ask("else", "") == "all|else");
  CHECK(w.config->settings().more_listeners.size() == 1);
  CHECK(w.config->settings().more_listeners[0].tag == "admin");
}

TEST_CASE("sluice.internal is the module interface of all stores, as a handle") {
  World w("function sluice_config_pools() sluice.store { name = 'a', module = 'm', path = 'p' } return {} end function sluice_config_routes() local g = sluice.funcgen_new() "
          "local inner = g:new_handle(sluice.internal) g:ready { f = function(rctx) return function(r) return rctx:enqueue_and_wait(rctx:request_new('GET', r:path()), inner) end end } "
          "sluice.attach(sluice.ANY, g) end", false);
  CHECK(w.get("/a/views/v")->body == "a view v");
  CHECK(w.get("/none/views/v")->status == 404);
}
