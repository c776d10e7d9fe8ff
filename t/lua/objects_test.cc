// Requests and responses of a route's own: fields and headers at the front, in the middle and at the end, replaced, taken
// away and set again; what is refused leaves them as they were.
#include "t/lua/harness.h"

using namespace sluice::lua::harness;

namespace {

// `edit` is done to a request with fields a, b, c and headers X-A, X-B, X-C; says what a store would see of it.
std::string edited(std::string_view edit) {
  World w(route("local q = rctx:request_new('POST', '/inputs/say') for i, n in ipairs { 'a', 'b', 'c' } do q:set(n, i):set_header('X-' .. n:upper(), n) end "
                "local good, why = pcall(function() " + std::string(edit) + " end) local names = {} for n in pairs(q:headers()) do names[#names + 1] = n end table.sort(names) "
                "local out = {} for i, n in ipairs(names) do out[i] = n .. '=' .. q:header(n) end "
                "return rctx:enqueue_and_wait(q, h.a):body() .. ' ' .. table.concat(out, ',') .. (good and '' or ' !' .. why)"));
  return w.get("/")->body;
}

}  // namespace

TEST_CASE("fields of a request's query are set, replaced and taken away wherever they stand") {
  const struct { const char *edit, *query; } cases[] = {
      {"", "a=1&b=2&c=3"},
      {"q:set('a', 'x')", "a=x&b=2&c=3"},
      {"q:set('b', 'x')", "a=1&b=x&c=3"},
      {"q:set('c', 'x')", "a=1&b=2&c=x"},
      {"q:set('d', 'x')", "a=1&b=2&c=3&d=x"},
      {"q:set('a', nil)", "b=2&c=3"},
      {"q:set('b', nil)", "a=1&c=3"},
      {"q:set('c', nil)", "a=1&b=2"},
      {"q:set('d', nil)", "a=1&b=2&c=3"},
      {"q:set('a', nil):set('b', nil):set('c', nil)", ""},
      {"q:set('a', nil):set('a', 'again')", "b=2&c=3&a=again"},
      {"q:set('a', true):set('b', 0.5):set('c', -7)", "a=true&b=0.5&c=-7"},
      {"q:set('a', '')", "a=&b=2&c=3"},
      {"q:set('A', 4)", "a=1&b=2&c=3&A=4"},
  };
  for (const auto& c : cases) {
    CAPTURE(c.edit);
    const std::string fields = c.query[0] ? std::string(" ") + c.query : std::string();
    CHECK(edited(c.edit) == "a input say" + fields + " x-a=a,x-b=b,x-c=c");
  }
}

TEST_CASE("headers of a request likewise, by any case of their names") {
  const struct { const char *edit, *headers; } cases[] = {
      {"q:set_header('x-a', 'new')", "x-a=new,x-b=b,x-c=c"},
      {"q:set_header('X-b', 'new')", "x-a=a,x-b=new,x-c=c"},
      {"q:set_header('X-C', 'new')", "x-a=a,x-b=b,x-c=new"},
      {"q:set_header('X-D', 'new')", "x-a=a,x-b=b,x-c=c,x-d=new"},
      {"q:set_header('x-a', nil)", "x-b=b,x-c=c"},
      {"q:set_header('x-b', nil)", "x-a=a,x-c=c"},
      {"q:set_header('x-c', nil)", "x-a=a,x-b=b"},
      {"q:set_header('x-d', nil)", "x-a=a,x-b=b,x-c=c"},
      {"for _, n in ipairs { 'a', 'b', 'c' } do q:set_header('x-' .. n, nil) end", ""},
      {"q:set_header('x-b', nil):set_header('x-b', '2')", "x-a=a,x-b=2,x-c=c"},
      {"q:set_header('X-N', 7)", "x-a=a,x-b=b,x-c=c,x-n=7"},
  };
  for (const auto& c : cases) {
    CAPTURE(c.edit);
    CHECK(edited(c.edit) == std::string("a input say a=1&b=2&c=3 ") + c.headers);
  }
}

TEST_CASE("an edit that cannot be is an error with a position, and leaves the request as it was") {
  const struct { const char *edit, *says; } cases[] = {
      {"q:set('a', {})", "set: the value of 'a' must be"},
      {"q:set('a', 0/0)", "set: the value of 'a' must be"},
      {"q:set({}, 1)", "string expected"},
      {"q:set('a')", "set: the value of 'a' must be"},
      {"q:set_header('x a', 'v')", "is not a header name"},
      {"q:set_header('', 'v')", "is not a header name"},
      {"q:set_header('X-A', 'v\\r\\nX-Z: w')", "has control bytes"},
      {"q:set_header('X-A', {})", "string expected"},
      {"q:set_path('inputs')", "a path starts with '/'"},
      {"q:set_path('')", "a path starts with '/'"},
      {"q:set_method('FETCH')", "is not a method"},
      {"q:set_method('post')", "is not a method"},
      {"q:ltrimpath(12)", "12 bytes of a path of 11"},
      {"q:ltrimpath(-1)", "-1 bytes of a path of 11"},
      {"q:set_body({})", "string expected"},
  };
  for (const auto& c : cases) {
    CAPTURE(c.edit);
    const std::string got = edited(c.edit), before = "a input say a=1&b=2&c=3 x-a=a,x-b=b,x-c=c !t.lua:1: ";
    CHECK(got.substr(0, before.size()) == before);
    CHECK(got.find(c.says) != got.npos);
  }
}

TEST_CASE("a path can be cut to nothing but its slash") {
  World w(route("local q = rctx:request_new('GET', '/abc/d') return q:ltrimpath(4):path() .. q:ltrimpath(1):path() .. q:ltrimpath(0):path() .. q:ltrimpath(2):path() .. q:ltrimpath(1):path()"));
  CHECK(w.get("/")->body == "/d/d/d//");
}

TEST_CASE("a response's header is set in place of those of its name: once, in a list, or not at all") {
  const struct { const char *edit, *headers, *type; } cases[] = {
      {"res:set_header('X-A', '1'):set_header('x-a', '2')", "x-a: 2\r\n", "text/plain; charset=utf-8"},
      {"res:set_header('X-A', '1'):set_header('X-B', 2):set_header('X-A', 3)", "X-B: 2\r\nX-A: 3\r\n", "text/plain; charset=utf-8"},
      {"res:set_header('Set-Cookie', { 'a=1', 'b=2' })", "Set-Cookie: a=1\r\nSet-Cookie: b=2\r\n", "text/plain; charset=utf-8"},
      {"res:set_header('Set-Cookie', { 'a=1', 'b=2' }):set_header('Set-Cookie', 'c=3')", "Set-Cookie: c=3\r\n", "text/plain; charset=utf-8"},
      {"res:set_header('X-A', '1'):set_header('x-a', nil)", "", "text/plain; charset=utf-8"},
      {"res:set_header('Content-Type', 'text/x-one'):set_header('content-type', 'text/x-two')", "content-type: text/x-two\r\n", ""},
      {"res:set_header('Content-Type', nil)", "", ""},
      {"pcall(res.set_header, res:set_header('X-A', '1'), 'X-A', { '2', {} })", "X-A: 1\r\n", "text/plain; charset=utf-8"},
      {"pcall(res.set_header, res:set_header('X-A', '1'), 'X-A', 'a\\nb')", "X-A: 1\r\n", "text/plain; charset=utf-8"},
      {"pcall(res.set_header, res:set_header('X-A', '1'), 'X-A', {})", "X-A: 1\r\n", "text/plain; charset=utf-8"},
  };
  for (const auto& c : cases) {
    CAPTURE(c.edit);
    World w(route("local res = rctx:response_new() " + std::string(c.edit) + " return res"));
    auto x = w.get("/");
    CHECK(x->status == 200);
    CHECK(x->headers == c.headers);
    CHECK(x->type == c.type);
  }
}

TEST_CASE("a response that the generator made and every request edits does not grow") {
  World w(route("n = n + 1 return made:set_header('X-N', n):set_header('Set-Cookie', { 'a=' .. n, 'b' }):set_body(tostring(n)):set_status(200 + n % 2)",
                "local n, made = 0, rctx:response_new()"));
  for (int i = 1; i <= 500; ++i) {
    auto x = w.begin(Method::get, "/");
    const std::string n = std::to_string(i);
    REQUIRE(x->headers == "X-N: " + n + "\r\nSet-Cookie: a=" + n + "\r\nSet-Cookie: b\r\n");
    REQUIRE(x->body == n);
    REQUIRE(x->status == 200 + i % 2);
  }
}

TEST_CASE("five hundred requests through each kind of router take one slot and leave nothing on any stack") {
  const std::string leaf = "local function says(t) return function(r) return t end end ";
  const struct { const char *routes, *path, *says; } cases[] = {
      {"routes { mode = 'prefix', map = { a = says('a') }, default = says('-') }", "/a/x", "a"},
      {"routes { mode = 'prefix', map = { a = says('a') }, default = says('-') }", "/ax", "-"},
      {"routes { mode = 'prefix', stop = '::', map = { a = says('a') }, default = says('-') }", "/a::x", "a"},
      {"routes { mode = 'prefix', stop = '::', map = { a = says('a'), ['a:x'] = says('no') }, default = says('-') }", "/a:x::y", "no"},
      {"routes { mode = 'prefix', stop = '::', map = { a = says('a') }, default = says('-') }", "/a:x", "-"},
      {"routes { mode = 'prefix', stop = 'abcde', map = { w = says('w') }, default = says('-') }", "/wabcdabcde", "-"},
      {"routes { mode = 'prefix', stop = 'abcde', map = { w = says('w') }, default = says('-') }", "/wabcdeabcde", "w"},
      {"routes { mode = 'anchor', start = '@', stop = ':', map = { a = says('a') }, default = says('-') }", "/@a:x", "a"},
      {"routes { mode = 'anchor', start = '@', stop = ':', map = { a = says('a') }, default = says('-') }", "/a:x", "-"},
      {"routes { mode = 'anchor', start = '<<', stop = '>>', map = { a = says('a') }, default = says('-') }", "/<<a>>x", "a"},
      {"routes { mode = 'anchor', start = '<<', stop = '>>', map = { a = says('a') }, default = says('-') }", "/<a>>x", "-"},
      {"routes { mode = 'anchor', start = '<<', stop = '>>', map = { a = says('a') }, default = says('-') }", "/<<a>x", "-"},
      {"routes { mode = 'prefix', map = { a = cmdmap { POST = says('posted'), all = says('all') } }, default = says('-') }", "/a/x", "all"},
      {"routes { mode = 'prefix', map = { a = says('a') }, cmap = { GET = says('cmap') }, default = says('-') }", "/b/x", "cmap"},
      {"routes { map = { ['/a'] = says('a'), ['/a/:id'] = says('id') }, default = says('-') }", "/a/7", "id"},
      {"routes { map = { ['/a'] = says('a') }, default = says('-') }", "/ab", "-"},
  };
  for (const auto& c : cases) {
    CAPTURE(c.routes);
    CAPTURE(c.path);
    World w(leaf + c.routes);
    std::uint64_t before = 0;
    const std::uint32_t slots = w.table->slots();
    for (int i = 0; i < 500; ++i) {
      REQUIRE(w.begin(Method::get, c.path)->body == c.says);
      if (i == 100) before = w.table->memory_bytes();
    }
    CHECK(w.table->memory_bytes() < before + (64u << 10));
    CHECK(w.table->slots() == slots);
  }
}
