// What a route may return, and what it may read of its request.
#include "t/lua/harness.h"

using namespace sluice::lua::harness;

TEST_CASE("a route answers by a string") {
  World w(route("return 'hi'"));
  auto x = w.get("/");
  CHECK(x->status == 200);
  CHECK(x->body == "hi");
  CHECK(x->type == "text/plain; charset=utf-8");
}

TEST_CASE("a route answers by status, body and headers, or by a table") {
  World w(route("if r:query('t') then return { status = 202, body = 'b', headers = { X = 'y' } } end "
                "return 404, 'none', { ['X-A'] = 'b', ['X-L'] = { 1, 2 }, ['content-type'] = 'text/html' }"));
  auto x = w.get("/");
  CHECK(x->status == 404);
  CHECK(x->body == "none");
  CHECK(x->headers.find("X-A: b\r\n") != x->headers.npos);
  CHECK(x->headers.find("X-L: 1\r\nX-L: 2\r\n") != x->headers.npos);
  CHECK(x->type == "");
  x = w.get("/?t=1");
  CHECK(x->status == 202);
  CHECK(x->headers == "X: y\r\n");
}

TEST_CASE("a status alone has no body") {
  World w(route("return 204"));
  CHECK(w.get("/")->status == 204);
}

TEST_CASE("what cannot be an answer is a 500 with the reason in the log alone") {
  const char* bodies[] = {"return", "return true", "return function() end", "return rctx", "return 99, 'x'", "return 200, {}",
                          "return 200, 'x', { ['Content-Length'] = '4' }", "return 200, 'x', { A = 'b\\r\\nC: d' }",
                          "return 200, 'x', { [1] = 'y' }", "return 200, 'x', 'y'", "return { status = 'x' }", "return 1e9"};
  for (const char* body : bodies) {
    CAPTURE(body);
    World w(route(body));
    auto x = w.get("/");
    CHECK(x->status == 500);
    CHECK(x->error == sluice::Errc::lua);
    CHECK(x->body == "the route failed; the server's log says why\n");
    CHECK(w.log.has("a route returned"));
    CHECK(w.table->slots_in_use() == 0);
  }
}

TEST_CASE("a Lua error is a 500, its traceback goes to the log, and the slot works again") {
  World w(route("if r:query('bad') then local t = nil; return t.x end return 'fine'"));
  auto x = w.get("/?bad=1");
  CHECK(x->status == 500);
  CHECK(x->error == sluice::Errc::lua);
  CHECK(x->body.find("nil") == x->body.npos);
  CHECK(w.log.has("t.lua:1: attempt to index"));
  CHECK(w.log.has("stack traceback"));
  CHECK(w.get("/")->body == "fine");
  CHECK(w.table->slots() == 1);
}

TEST_CASE("a request's accessors say what was asked") {
  World w("routes { map = { ['/u/:id/*rest'] = route_lua { f = function(rctx, h) return function(r) "
          "return table.concat({ r:method(), r:path(), r:full_path(), r:param('id'), r:param(2), tostring(r:param('no')), "
          "r:query('q'), tostring(r:query('z')), r:header('x-A'), tostring(r:header('b')), r:headers()['x-a'], r:body(), "
          "r:client_ip(), r:http_version(), r:key(), r:tag(), tostring(rctx:cfd()), rctx:client_ip() }, '|') end end } } }");
  TestExchange x(Method::post, "/u/7/x/y?q=1", "text");
  x.edit().headers.push_back({"X-a", "v"});
  w.start(x);
  CHECK(x.body == "POST|/x/y|/u/7/x/y|7|x/y|nil|1|nil|v|nil|v|text|192.0.2.7|1.1|||42|192.0.2.7");
}

TEST_CASE("the client's request is read only, and an owned one is edited in chains") {
  World w(route("local ok, why = pcall(r.set_path, r, '/x') "
                "local q = rctx:request_new('PUT', '/a'):set('n', 3):set('n', 4.5):set_header('X', 'y'):set_body('b'):set_path('/abc/d'):ltrimpath(4) "
                "return table.concat({ tostring(ok), why:match('read only'), q:method(), q:path(), q:query('n'), q:header('x'), q:body() }, '|')"));
  CHECK(w.get("/")->body == "false|read only|PUT|/d|4.5|y|b");
}

TEST_CASE("methods called without self, or on the wrong thing, are Lua errors with a position") {
  World w(route("local all = {} for i, f in ipairs { function() r.path() end, function() rctx.sleep(1) end, function() rctx.enqueue('x') end, "
                "function() r.path(rctx) end, function() rctx:enqueue(1, h.a) end, function() rctx:wait_cond('x') end, "
                "function() rctx:wait_cond(1, 9) end, function() rctx:wait_cond(-1) end, function() rctx:sleep(-1) end, "
                "function() rctx:result(12345) end, function() rctx:enqueue(r, 'h') end, function() rctx:get(99, 'k') end, "
                "function() rctx:event(h.a) end, function() rctx:view(h.a, 'x', 5) end, function() rctx:put(h.a, 'k', 'v', -1) end, "
                "function() rctx:request_new('FOO') end, function() rctx:response_new():set_status(99) end } do "
                "local ok, why = pcall(f) if ok then all[#all + 1] = i elseif not why:match('^t.lua:1: ') then all[#all + 1] = why end end "
                "return table.concat(all, ';')"));
  CHECK(w.get("/")->body == "");
}

TEST_CASE("objects of a request that is answered are dead") {
  World v("kept = {} routes { map = { ['/keep'] = function(r) kept[1] = r return 'kept' end, "
          "['/use'] = function(r) local ok, why = pcall(kept[1].path, kept[1]) return tostring(ok) .. why end } }");
  CHECK(v.get("/keep")->body == "kept");
  CHECK(v.get("/use")->body.find("falsea request that is no more") == 0);
}

TEST_CASE("json goes both ways, and a body that is none is nil and a reason") {
  World w(route("local res = rctx:view_and_wait(h.a, 'v') local v, why = res:json() "
                "return 200, sluice.json.encode({ n = 1 }) .. tostring(v) .. tostring(why ~= nil) .. sluice.json.decode('[7]')[1]"));
  CHECK(w.get("/")->body == "{\"n\":1}niltrue7");
}

TEST_CASE("a result's accessors say how a store answered") {
  World w(route("local res = rctx:get_and_wait(h.a, 'k') "
                "return table.concat({ tostring(res:ok()), tostring(res:hit()), res:status(), res:body(), res:vlen(), res:revision(), res:error(), "
                "res:backend(), tostring(res:elapsed() >= 0), res:header('etag'), res:header('content-type'), res:header('x-pure-error'), tostring(res:header('q')) }, '|')"));
  w.services.answerer = [](Event& e) { e.answer.revision = 5; };
  CHECK(w.get("/")->body == "true|true|200|a show k|8|5|none|a|true|\"5\"|text/plain; charset=utf-8|none|nil");
}

TEST_CASE("a response the route made is sent as it was set") {
  World w(route("return rctx:response_new():set_status(201):set_header('X-A', 'b'):set_body('made')"));
  auto x = w.get("/");
  CHECK(x->status == 201);
  CHECK(x->headers == "X-A: b\r\n");
  CHECK(x->body == "made");
}
