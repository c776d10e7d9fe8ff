# Limits, uploads and pipelines in front of Lua routes: what is refused, what is kept apart, and that nothing is left.
#
# Routes wait for a word in a shared table, and count themselves in it, so the test knows who runs without measuring time.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use Sluice;
use Test::More;
use Time::HiRes qw(time);

my $body = <<'LUA';
stores {
  quota = { module = "@REPO@/configs/modules/quota.aup", path = "data/quota" },
  blobs = { module = "@REPO@/configs/modules/blobs.aup", path = "data/blobs" },
}
shared { t = "64KiB" }
local any = { "GET", "POST", "PUT" }
local t = sluice.shared.t
local function get(f) return route_lua { methods = any, children = { q = "quota", b = "blobs", all = route_stores {} },
  f = function(rctx, h) return function(r) return f(rctx, h, r) end end } end
routes {
  map = {
    ["/blobs"] = "blobs",
    ["/quota"] = "quota",
    -- Runs until /go/NAME; how many do is /count/NAME.
    ["/hold/:name"] = get(function(rctx, h, r)
      local name, bytes = r:param("name"), #r:body()
      t:incr("running " .. name, 1, 0)
      repeat rctx:sleep(0.005) until t:get("go " .. name)
      t:incr("running " .. name, -1)
      return "held " .. name .. " " .. bytes
    end),
    ["/go/:name"] = function(r) t:set("go " .. r:param("name"), true) return "go" end,
    ["/stop/:name"] = function(r) t:delete("go " .. r:param("name")) return "stop" end,
    ["/count/:name"] = function(r) return tostring(t:get("running " .. r:param("name")) or 0) end,
    ["/ran/:name"] = get(function(rctx, h, r) t:incr("running " .. r:param("name"), 1, 0) return "ran " .. #r:body() end),
    ["/large/:n"] = function(r) return ("x"):rep(tonumber(r:param("n"))) end,
    -- Through all stores by name: once looked at, once thrown away.
    ["/copy/:from/:to"] = get(function(rctx, h, r)
      local from = rctx:enqueue_and_wait(rctx:request_new("GET", "/blobs/objects/" .. r:param("from")), h.all)
      if not from:hit() then return from end
      local put = rctx:request_new("PUT", "/blobs/objects/" .. r:param("to")):set_body(from:body()):set_header("If-None-Match", "*")
      return rctx:enqueue_and_wait(put, h.all)
    end),
    ["/thrown"] = get(function(rctx, h, r)
      rctx:get(h.b, r:query("key"))
      rctx:enqueue(rctx:request_new("GET", "/blobs/objects/" .. r:query("key")), h.all)
      rctx:wait_cond(2)
      return tostring(rctx:worst_result { h.b, h.all }:vlen())
    end),
    ["/size"] = get(function(rctx, h, r) rctx:get(h.b, r:query("key")) rctx:wait_handle(h.b) return rctx:result(h.b) end),
    ["/deep/:how"] = get(function(rctx, h, r)
      local function gsub() return (("x"):gsub("x", gsub)) end
      local function wrap() return coroutine.wrap(wrap)() end
      local ok, why = pcall(r:param("how") == "gsub" and gsub or wrap)
      return tostring(why)
    end),
  },
}
LUA
sub config { return "settings { listen = \"127.0.0.1:0\", workers = 2, $_[0] }\n$body" }

# A request that is sent on a connection of its own.
sub begin {
  my ($s, @request) = @_;
  my $c = $s->client;
  $c->send(Sluice::Client::request(@request));
  return $c;
}
# Asks until the answer is `wanted`.
sub becomes {
  my ($s, $path, $wanted, $name) = @_;
  local $Test::Builder::Level = $Test::Builder::Level + 1;
  my ($until, $got) = (time + timeout_s());
  do { $got = $s->http(GET => $path)->{body} } until $got eq $wanted || time > $until;
  is($got, $wanted, $name);
}

my $s = start_sluice(config('active_req_limit = 5'));

subtest 'so many requests at once and no more, of all workers together' => sub {
  my @held = map { begin($s, POST => '/hold/one', body => 'abc') } 1 .. 4;
  becomes($s, '/count/one', '4', 'four run, and the fifth asks how many');
  push @held, begin($s, POST => '/hold/one', body => 'abc');
  my $c = $s->client;
  my $until = time + timeout_s();
  1 while $c->http(GET => '/count/one')->{status} == 200 && time < $until;
  answer_is($c->http(POST => '/hold/one', body => 'x' x 100_000), 'one more, with a body', status => 503, error => 'overload', connection => undef);
  answer_is($c->http(GET => '/count/one'), 'its connection goes on: the body was taken off it', status => 503, error => 'overload');
  ok($s->reload(config('')), 'a reload without the limit');
  is($c->http(GET => '/count/one')->{body}, '5', 'five of the six were let in');
  push @held, map { begin($s, GET => '/hold/one') } 1 .. 20;
  becomes($s, '/count/one', '25', 'now there is none');
  is($c->http(GET => '/go/one')->{body}, 'go', 'all may go');
  is_deeply([ map { $_->answer->{body} } @held ], [ ('held one 3') x 5, ('held one 0') x 20 ], 'and are answered');
};

subtest 'payload has a budget, for what comes in and for what goes out' => sub {
  ok($s->reload(config('payload_budget = "64KiB"')), 'a small one');
  my $c = $s->client;
  is($c->http(PUT => '/ran/in', body => 'x' x 60_000)->{body}, 'ran 60000', 'a body within it');
  answer_is($s->client->http(PUT => '/ran/in', body => 'x' x 66_000), 'a body beyond it, too large to be read and dropped',
    status => 503, error => 'payload_budget', connection => 'close');
  my $held = begin($s, PUT => '/hold/budget', body => 'x' x 60_000);
  becomes($s, '/count/budget', '1', 'one is held');
  answer_is($c->http(PUT => '/ran/in', body => 'x' x 60_000), 'there is no room beside it', status => 503, error => 'payload_budget', 'retry-after' => qr/^\d+$/, connection => undef);
  is($c->http(GET => '/count/in')->{body}, '1', 'the connection goes on, and no route ran for it');
  $c->http(GET => '/go/budget');
  is($held->answer->{body}, 'held budget 60000', 'it ends');
  becomes($s, '/count/budget', '0', 'and its bytes are free');
  is($c->http(PUT => '/ran/in', body => 'x' x 60_000)->{body}, 'ran 60000', 'so the next has room');
  is(length $c->http(GET => '/large/60000')->{body}, 60_000, 'an answer within it');
  answer_is($c->http(GET => '/large/70000'), 'an answer beyond it', status => 503, error => 'payload_budget');
  is(length $c->http(GET => '/large/60000')->{body}, 60_000, 'the connection goes on');
  ok($s->reload(config('')), 'without the limit');
  is(length $c->http(GET => '/large/70000')->{body}, 70_000, 'both have room');
};

subtest 'uploads that do not come to their end start no route' => sub {
  my $half = $s->client;
  $half->send("PUT /ran/upload HTTP/1.1\r\nHost: t\r\nContent-Length: 1000\r\n\r\nhalf of it");
  my $bad = $s->client;
  $bad->send("PUT /ran/upload HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcdeXX\r\n");
  answer_is($bad->answer, 'a chunk that is longer than it says', status => 400, connection => 'close');
  $half->close;
  my $short = $s->client;
  $short->send("PUT /ran/upload HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab");
  $short->finish;
  is($short->until_closed // 'open', '', 'one that ends in the middle of a chunk is closed without an answer')
    or diag 'it may be told 400 as well';
  is($s->http(GET => '/count/upload')->{body}, '0', 'no route has seen any of them');
};

subtest 'a body is still on its way while requests before it are answered' => sub {
  my $c = $s->client;
  $c->send(Sluice::Client::request(GET => '/hold/first') . Sluice::Client::request(GET => '/ran/second')
      . "PUT /ran/third HTTP/1.1\r\nHost: t\r\nContent-Length: 12\r\n\r\nhalf ");
  becomes($s, '/count/first', '1', 'the first runs');
  $c->send('a');
  becomes($s, '/count/second', '1', 'the second has run beside it');
  $s->http(GET => '/go/first');
  is($c->answer->{body}, 'held first 0', 'the first answer');
  is($c->answer->{body}, 'ran 0', 'the second');
  is($s->http(GET => '/count/third')->{body}, '0', 'the third is not whole');
  $c->send(' body');
  $c->quiet(0.02);
  $c->send('!' . Sluice::Client::request(GET => '/count/third'));
  is($c->answer->{body}, 'ran 12', 'now it is');
  is($c->answer->{body}, '1', 'and the connection goes on');

  note 'the client leaves in that state';
  $s->http(GET => '/stop/first');
  my @c = map { $s->client } 1 .. 5;
  $_->send(Sluice::Client::request(GET => '/hold/first') . "PUT /ran/third HTTP/1.1\r\nHost: t\r\nContent-Length: 100000\r\n\r\nhalf") for @c;
  becomes($s, '/count/first', '5', 'five run');
  $_->close for @c;
  # A client that only ended its side would still be answered: these are let go on, and answered into nothing.
  $s->http(GET => '/go/first');
  $s->http(GET => '/stop/first');
  is($s->http(GET => '/count/third')->{body}, '1', 'none of their bodies came to a route');
};

subtest 'answers of a pipeline leave in order, each as soon as those before it have left' => sub {
  my $c = $s->client;
  $c->send(join '', map { Sluice::Client::request(GET => $_) } '/ran/a', '/hold/slow', '/ran/b', '/ran/c');
  is($c->answer->{body}, 'ran 0', 'the first does not wait for the slow one behind it');
  becomes($s, '/count/c', '1', 'what is behind the slow one has run');
  $c->send(Sluice::Client::request(GET => '/ran/d'));
  becomes($s, '/count/d', '1', 'so has what came later');
  $c->quiet(0.02);
  $s->http(GET => '/go/slow');
  is_deeply([ map { $c->answer->{body} } 1 .. 4 ], [ 'held slow 0', ('ran 0') x 3 ], 'then all leave, in order');
  $s->http(GET => '/stop/slow');

  $c->send(Sluice::Client::request(POST => '/hold/unsafe', body => 'x') . Sluice::Client::request(GET => '/ran/behind'));
  becomes($s, '/count/unsafe', '1', 'an unsafe one runs');
  is($s->http(GET => '/count/behind')->{body}, '0', 'the one behind it is not begun');
  $s->http(GET => '/go/unsafe');
  is($c->answer->{body}, 'held unsafe 1', 'until it is answered');
  is($c->answer->{body}, 'ran 0', 'then it is');
};

subtest 'all stores by name, as a child: large values, results that nobody uses, a flood' => sub {
  my $large = join '', map { chr(33 + $_ % 90) } 1 .. 1_500_000;
  answer_is($s->http(PUT => '/blobs/objects/large', body => $large, headers => [ 'If-None-Match' => '*' ]), 'a large value', status => 200);
  answer_is($s->http(POST => '/copy/large/copied', body => ''), 'is copied by a route', status => 200);
  ok($s->http(GET => '/size?key=copied')->{body} eq $large, 'byte by byte');
  answer_is($s->http(POST => '/copy/large/copied', body => ''), 'and not twice', status => 412);
  answer_is($s->http(POST => '/copy/none/x', body => ''), 'what is not there is not copied', status => 404);
  my @c = map { $s->client } 1 .. 8;
  $_->send(Sluice::Client::request(GET => '/thrown?key=large') x 25) for @c;
  my %seen;
  for my $c (@c) { $seen{ $c->answer->{body} }++ for 1 .. 25 }
  is_deeply(\%seen, { 1_500_000 => 200 }, 'two hundred that look and throw away');
  my $kib = $s->memory_kib('VmRSS');
  for my $c (@c) { $c->send(Sluice::Client::request(GET => '/thrown?key=large') x 25); $seen{ $c->answer->{body} }++ for 1 .. 25 }
  cmp_ok($s->memory_kib('VmRSS'), '<', $kib + 20_000, 'and two hundred more hold nothing') unless $ENV{SLUICE_SANITIZED};
};

subtest 'recursion through C ends on a worker as well' => sub {
  for my $how (qw(gsub wrap)) {
    like($s->http(GET => "/deep/$how")->{body}, qr/stack overflow/, $how);
  }
};

my $counters = $s->stop;
is($counters->{$_}, 0, "at the end: $_") for qw(active retained_payload_bytes route_slots_in_use);
cmp_ok($counters->{refused_active}, '>=', 2, 'refusals are counted');
is($counters->{refused_budget}, 3, 'each of them');
done_testing;
