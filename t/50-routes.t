# Paths, patterns, methods, pools and merging, through the whole server.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use Sluice;
use Test::More;

my $s = start_sluice(<<'LUA');
stores {
  quota = { module = "@REPO@/configs/modules/quota.aup", path = "data/quota" },
  other = { module = "@REPO@/configs/modules/quota.aup", path = "data/other" },
  east  = { module = "@REPO@/configs/modules/blobs.aup", path = "data/east" },
  west  = { module = "@REPO@/configs/modules/blobs.aup", path = "data/west" },
  cut   = { module = "@REPO@/configs/modules/blobs.aup", path = "data/cut", shards = 4 },
}
pools {
  files = { stores = { "east", "west" } },
}
local function says(text)
  return route_lua { methods = { "GET" }, f = function() return function(r) return text end end }
end
local function lua(methods, children, f)
  return route_lua { methods = methods, children = next(children) and children or nil, f = f }
end
routes {
  map = {
    ["/quota"] = route_direct { child = "quota" },
    ["/cut"]   = route_direct { child = "cut" },
    ["/files"] = route_direct { child = "files" },
    ["/east"]  = route_direct { child = "east" },
    ["/west"]  = route_direct { child = "west" },
    ["/try"]   = route_failover { children = { "east", "west" }, miss = true },
    ["/both"]  = route_allsync { children = { "quota", "other" } },
    ["/other"] = route_direct { child = "other" },
    ["/split"] = cmdmap { GET = route_direct { child = "quota" }, POST = route_direct { child = "other" } },
    ["/null"]  = route_null {},
    ["/a"] = says("prefix a"),
    ["/a/b"] = says("prefix a/b"),
    ["/users/:id"] = lua({ "GET" }, {}, function() return function(r) return "user " .. r:param("id") end end),
    ["/users/:id/orders/*rest"] = lua({ "GET" }, {}, function()
      return function(r) return r:param("id") .. " orders " .. r:param("rest") end end),
    ["/users/me"] = says("me"),
    ["/forms/string"] = says("a string"),
    ["/forms/status"] = lua({ "GET" }, {}, function() return function() return 418, "a teapot\n" end end),
    ["/forms/headers"] = lua({ "GET" }, {}, function()
      return function() return 201, "made\n", { ["X-Made"] = "yes", ["Content-Type"] = "text/x-test" } end end),
    ["/forms/object"] = lua({ "GET" }, { q = "quota" }, function(rctx, h)
      return function() rctx:view(h.q, "hits") rctx:wait_handle(h.q) return rctx:result(h.q) end end),
    ["/forms/wrong"] = lua({ "GET" }, {}, function() return function() return {}, {}, {} end end),
    ["/raises"] = lua({ "GET" }, {}, function() return function() error("a secret reason") end end),
    ["/yields"] = lua({ "GET" }, {}, function() return function() coroutine.yield(1) return "went on" end end),
    ["/late"] = lua({ "GET" }, {}, function(rctx) return function() rctx:sleep(0.01) return "late" end end),
    ["/deadline"] = lua({ "GET" }, {}, function(rctx)
      return function() rctx:deadline(0.05) rctx:sleep(30) return "never" end end),
    ["/echo"] = lua({ "GET", "POST" }, {}, function()
      return function(r)
        return table.concat({ r:method(), r:path(), r:query("q") or "-", r:header("x-name") or "-", r:body() }, "|")
      end end),
    ["/behind"] = lua({ "POST" }, { q = "quota" }, function(rctx, h)
      local plus = rctx:event(h.q, "turn"):set("amount", 1)
      return function() rctx:enqueue(plus, h.q) return "answered first" end end),
    ["/merge"] = lua({ "POST" }, { a = "quota", b = "other", c = "east", d = "cut" }, function(rctx, h)
      local turn_a = rctx:event(h.a, "turn"):set("amount", 1)
      local turn_b = rctx:event(h.b, "turn"):set("amount", 2)
      return function(r)
        rctx:enqueue(turn_a, h.a)
        rctx:enqueue(turn_b, h.b)
        rctx:get(h.c, "k")
        rctx:get(h.d, "k")
        rctx:wait_cond(4, sluice.WAIT_ANY)
        local out = {}
        for i, name in ipairs { "a", "b", "c", "d" } do
          local res = rctx:result(h[name])
          out[i] = name .. "=" .. res:status() .. ":" .. (res:hit() and res:body() or res:error())
        end
        return table.concat(out, " ")
      end end),
  },
  cmap = {
    DELETE = route_lua { f = function() return function() return "any delete" end end },
  },
  default = lua({ "GET" }, {}, function() return function(r) return 404, "nothing at " .. r:path() .. "\n" end end),
}
LUA

sub get { $s->http(GET => @_) }
my @NEW = (headers => [ 'If-None-Match', '*' ]);

subtest 'prefixes and patterns' => sub {
  answer_is(get('/a'), 'a prefix', status => 200, body => 'prefix a', error => 'none');
  answer_is(get('/a/x/y'), 'and below it', status => 200, body => 'prefix a');
  answer_is(get('/a/b'), 'the longest wins', status => 200, body => 'prefix a/b');
  answer_is(get('/a/b/c'), 'below it too', status => 200, body => 'prefix a/b');
  answer_is(get('/ab'), 'a prefix ends at a separator', status => 404, body => "nothing at /ab\n");
  answer_is(get('/users/7'), 'a parameter', status => 200, body => 'user 7');
  answer_is(get('/users/me'), 'a literal before a parameter', status => 200, body => 'me');
  answer_is(get('/users/a%20b'), 'parameters are decoded', status => 200, body => 'user a b');
  answer_is(get('/users/7/orders/2024/x'), 'the rest', status => 200, body => '7 orders 2024/x');
  answer_is(get('/users/7/else'), 'no pattern', status => 404, body => "nothing at /users/7/else\n");
  answer_is(get('/null/x'), 'the null route', status => 404, error => 'route');
};

subtest 'methods' => sub {
  answer_is($s->http(POST => '/split/inputs/turn?amount=1'), 'POST goes to one store', status => 200, body => '51');
  answer_is(get('/split/views/level'), 'GET to another', status => 200, body => '50');
  answer_is($s->http(HEAD => '/split/views/level'), 'HEAD with GET', status => 200, body => '');
  answer_is($s->http(PUT => '/split/views/level', body => 'x'), 'no other', status => 405, error => 'method', allow => qr/^(?=.*\bGET\b)(?=.*\bPOST\b)(?!.*\bPUT\b)/);
  answer_is($s->http(POST => '/a', body => ''), 'a Lua route says its methods', status => 405, allow => qr/^(?=.*\bGET\b)(?!.*\bPOST\b)/);
  answer_is($s->http(DELETE => '/nowhere'), 'a method may have a route for all paths', status => 200, body => 'any delete');
  answer_is($s->http(OPTIONS => '/a'), 'and OPTIONS lists them', status => 204, allow => qr/\bGET\b/);
};

subtest 'stores behind a mount, pools and shards' => sub {
  answer_is($s->http(POST => '/quota/inputs/plus'), 'mounted', status => 200);
  answer_is(get('/quota/views/hits'), 'and read', status => 200, body => '1', 'cache-control' => 'no-store');
  my %where;
  for my $key (map { "key$_" } 1 .. 24) {
    answer_is($s->http(PUT => "/files/objects/$key", body => $key, @NEW), "put $key", status => 200, etag => '"1"') or last;
    answer_is(get("/files/objects/$key"), "get $key", status => 200, body => $key);
    my @here = grep { get("/$_/objects/$key")->{status} == 200 } qw(east west);
    is(scalar @here, 1, "$key is in one of them");
    $where{ $here[0] }++;
    answer_is($s->http(PUT => "/cut/objects/$key", body => $key, @NEW), "put $key in shards", status => 200);
    answer_is(get("/cut/objects/$key"), "get $key", status => 200, body => $key);
    answer_is(get("/try/objects/$key"), 'failover finds it wherever it is', status => 200, body => $key);
  }
  is(scalar keys %where, 2, 'both have some') or diag(join ' ', %where);
  answer_is(get('/try/objects/none'), 'failover of nothing', status => 404, error => 'not_found');
};

subtest 'all at once' => sub {
  my ($a, $b) = map { get("/$_/views/level")->{body} } qw(quota other);
  answer_is($s->http(POST => '/both/inputs/turn?amount=-3'), 'allsync', status => 200);
  is(get('/quota/views/level')->{body}, $a - 3, 'one');
  is(get('/other/views/level')->{body}, $b - 3, 'the other');
};

subtest 'what a route may return' => sub {
  answer_is(get('/forms/string'), 'a string', status => 200, body => 'a string', error => 'none');
  answer_is(get('/forms/status'), 'a status and a body', status => 418, body => "a teapot\n", error => 'none');
  answer_is(get('/forms/headers'), 'headers', status => 201, body => "made\n", 'x-made' => 'yes', 'content-type' => 'text/x-test');
  answer_is(get('/forms/object'), 'a result', status => 200, body => '1', 'content-type' => 'text/plain; charset=utf-8');
  answer_is(get('/forms/wrong'), 'anything else is a 500', status => 500, error => 'lua');
  my $from = length $s->log;
  my $answer = get('/raises');
  answer_is($answer, 'an error is a 500', status => 500, error => 'lua');
  unlike($answer->{body}, qr/secret/, 'whose reason is not in the body');
  $s->wait_log(qr/sluice\.lua:\d+: a secret reason/, $from);
  pass('but in the log, with file and line');
  answer_is(get('/yields'), 'a stray yield is a 500', status => 500, error => 'lua');
  answer_is(get('/late'), 'the next request is served, and waits', status => 200, body => 'late');
  answer_is(get('/deadline'), 'a deadline', status => 504, error => 'deadline');
};

subtest 'what a route sees' => sub {
  answer_is($s->http(POST => '/echo/x?q=a+b%2B', headers => [ 'X-Name', 'v' ], body => 'the body'), 'a request', status => 200,
            body => qr{^POST\|(?:/echo)?/x\|a b\+\|v\|the body$});
};

subtest 'four events, one answer' => sub {
  my ($a, $b) = map { get("/$_/views/level")->{body} } qw(quota other);
  answer_is($s->http(POST => '/merge'), 'merged', status => 200,
            body => 'a=200:' . ($a + 1) . ' b=200:' . ($b + 2) . ' c=404:not_found d=404:not_found');
  $s->http(PUT => '/east/objects/k', body => 'E', @NEW);
  $s->http(PUT => '/cut/objects/k', body => 'C', @NEW);
  answer_is($s->http(POST => '/merge'), 'and again', status => 200,
            body => 'a=200:' . ($a + 2) . ' b=200:' . ($b + 4) . ' c=200:E d=200:C');
};

subtest 'answering before its events are done' => sub {
  my $before = get('/quota/views/level')->{body};
  answer_is($s->http(POST => '/behind'), "answered $_", status => 200, body => 'answered first') for 1 .. 5;
  my $deadline = time + timeout_s();
  my $level;
  do { $level = get('/quota/views/level')->{body} } until $level == $before + 5 || time > $deadline;
  is($level, $before + 5, 'they are applied all the same');
};

subtest 'a pipeline of slow and quick routes keeps its order' => sub {
  my $c = $s->client;
  $c->send(join '', map { Sluice::Client::request(GET => $_) } qw(/late /a /late /a/b));
  is(join(',', map { $c->answer->{body} } 1 .. 4), 'late,prefix a,late,prefix a/b', 'in order');
};

subtest 'a client that leaves' => sub {
  for (1 .. 20) { my $c = $s->client; $c->send(Sluice::Client::request(GET => '/late')); $c->close }
  for (1 .. 20) { my $c = $s->client; $c->send(Sluice::Client::request(POST => '/behind', body => '')); $c->close }
  answer_is(get('/a'), 'the server goes on', status => 200);
};

$s->stop;
done_testing;
