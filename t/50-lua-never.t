# What must never happen (a comparable proxy did each): here with the real binary, real stores and real sockets.
# One server for all of it: at the end no request, slot or payload is left.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use Sluice;
use Socket;
use Test::More;
use Time::HiRes qw(time);

my $s = start_sluice(<<'LUA', args => [ '--threads', '1' ]);
settings { lua_time_limit = 0.2, lua_memory = "32MiB", request_timeout = 4 }
stores {
  quota = { module = "@REPO@/configs/modules/quota.aup", path = "data/quota" },
  other = { module = "@REPO@/configs/modules/quota.aup", path = "data/other" },
}
local function lua(methods, f)
  return route_lua { methods = methods, children = { q = "quota", o = "other" }, f = f }
end
-- A GET that is `body`; `h.q` and `h.o` are stores.
local function get(body) return lua({ "GET", "POST" }, function(rctx, h) return function(r) return body(rctx, h, r) end end) end
local foreign
built = 0
local kept
routes {
  map = {
    ["/hits"]  = get(function(rctx, h) return rctx:view_and_wait(h.o, "hits") end),
    ["/press"] = get(function(rctx, h) return rctx:post_and_wait(h.o, "plus") end),
    ["/yield"] = get(function() coroutine.yield(1) return "went on" end),
    ["/self"]  = get(function(rctx) rctx.sleep(1) return "?" end),
    ["/constant"] = get(function(rctx, h) rctx:view(h.q, "hits") rctx:wait_cond(1, 77) return "?" end),
    ["/owner"] = lua({ "GET" }, function(rctx, h) foreign = h.q return function() return "mine" end end),
    ["/foreign"] = get(function(rctx) local res = rctx:view_and_wait(foreign, "hits") return res end),
    ["/nothing"] = get(function(rctx, h)
      local n = rctx:wait_cond(3)
      local ok, why = pcall(rctx.wait_handle, rctx, h.q)
      return n .. " " .. tostring(ok) .. " " .. why:match("nothing was enqueued")
    end),
    ["/twice"] = get(function(rctx, h)
      rctx:view(h.q, "hits")
      local ok, why = pcall(rctx.view, rctx, h.q, "level")
      local first, again = rctx:wait_handle(h.q), rctx:wait_handle(h.q)
      local second = rctx:view_and_wait(h.q, "level")
      return tostring(ok) .. " " .. why:match("in flight") .. " " .. tostring(first == again) .. " " .. first:body() .. " " .. second:body()
    end),
    ["/in-flight"] = get(function(rctx, h)
      rctx:post(h.q, "plus") rctx:wait_cond(0) rctx:post(h.o, "plus")
      return "answered"
    end),
    ["/fails-in-flight"] = get(function(rctx, h) rctx:post(h.q, "plus") rctx:wait_cond(0) error("with one in flight") end),
    ["/late"] = get(function(rctx, h)
      local res, late = rctx:post_and_wait(h.q, "plus", nil, nil, 0)
      local now = rctx:wait_handle(h.q)
      return tostring((res == nil) == (late == true)) .. " " .. now:status() .. " " .. rctx:res_good(h.q):status()
    end),
    ["/unsafe"] = get(function(rctx, h)
      rctx:sleep(0.5)
      local gone = rctx:cancelled()
      rctx:post_and_wait(h.o, "plus")
      sluice.log("unsafe ran to its end: " .. tostring(gone))
      return "done"
    end),
    ["/slow"] = get(function(rctx, h) rctx:sleep(4.2) rctx:post_and_wait(h.o, "plus") sluice.log("slow ran to its end") return "too late" end),
    ["/deadline"] = get(function(rctx, h) rctx:deadline(0.05) rctx:sleep(20) return "never" end),
    ["/loop"] = get(function() while true do end end),
    ["/loop-pcall"] = get(function() while true do pcall(function() while true do end end) end end),
    ["/loop-callback"] = lua({ "GET" }, function(rctx, h)
      rctx:handle_set_cb(h.q, function() while true do end end)
      return function() local res = rctx:post_and_wait(h.q, "plus") return 200, "survived " .. res:status() end
    end),
    ["/loop-slot"] = lua({ "GET" }, function(rctx, h)
      built = built + 1
      if built == 2 then while true do end end
      return function() rctx:sleep(0.3) return "slept" end
    end),
    ["/memory"] = get(function() local more = ("x"):rep(64 * 2 ^ 20) return more end),   -- at one go: no matter how slow
    ["/build"] = lua({ "GET" }, function(rctx, h)
      built_b = (built_b or 0) + 1
      if built_b == 2 then error("no second slot") end
      return function() rctx:sleep(0.1) return "built" end
    end),
    ["/keep"] = get(function(rctx, h) kept = rctx:view_and_wait(h.q, "hits") return kept end),
    ["/kept-body"] = get(function() local body = kept:body() return body end),
    ["/kept-again"] = get(function() return kept end),
    ["/edited"] = lua({ "GET" }, function(rctx, h)
      local turn = rctx:event(h.q, "turn"):set("amount", 1)
      return function()
        rctx:enqueue(turn, h.q)
        turn:set("amount", 40)          -- what was enqueued is frozen
        rctx:wait_cond(1)
        turn:set("amount", 1)
        return rctx:result(h.q)
      end
    end),
    ["/deep"] = get(function() local function deep(n) return 1 + deep(n + 1) end local n = deep(0) return n end),
    ["/many"] = get(function() local t = {} for i = 1, 7900 do t[i] = "v" end return unpack(t) end),
    ["/callback-asks"] = lua({ "GET" }, function(rctx, h)
      local said
      rctx:handle_set_cb(h.q, function() said = select(2, pcall(rctx.view, rctx, h.o, "hits")) end)
      return function() rctx:view_and_wait(h.q, "hits") return tostring(said):match("only while") end
    end),
  },
}
LUA

sub get { $s->http(GET => @_) }
sub fails {
  my ($path, $says, $name) = @_;
  local $Test::Builder::Level = $Test::Builder::Level + 1;
  my $from = length $s->log;
  answer_is(get($path), $name, status => 500, error => 'lua');
  ok($s->wait_log($says, $from), '... and the log says where and why');
}
# Waits until the store says that `other` was pressed so often.
sub pressed {
  my ($want) = @_;
  my $deadline = time + timeout_s();
  my $hits;
  do { $hits = get('/hits')->{body} } until $hits >= $want || time > $deadline;
  return $hits;
}

subtest 'mistakes in a route are errors with a position' => sub {
  fails('/yield', qr/sluice\.lua:\d+: coroutine\.yield outside/, 'a stray coroutine.yield');
  fails('/self', qr/sluice\.lua:\d+: rctx expected .*colon/, 'a method called without self');
  fails('/constant', qr/sluice\.lua:\d+: rctx:wait_cond: the mode is/, 'a wrong constant');
  is(get('/owner')->{body}, 'mine', 'a generator with a handle');
  fails('/foreign', qr/sluice\.lua:\d+: rctx:view_and_wait: not a handle of route/, 'a handle of another generator');
  fails('/deep', qr/stack overflow/, 'recursion without end');
  is(get('/many')->{body}, 'v', 'thousands of values: the first says all');
  is(get('/callback-asks')->{body}, 'only while', 'a callback that enqueues');
};

subtest 'no wait hangs' => sub {
  is(get('/nothing')->{body}, '0 false nothing was enqueued', 'nothing queued');
  is(get('/twice')->{body}, 'false in flight true 0 50', 'enqueued twice, waited for twice, used again');
  is(get('/late')->{body}, 'true 200 200', 'late, and the late result is there');
};

subtest 'a route that returns with events queued and in flight' => sub {
  my $before = get('/hits')->{body};
  is(get('/in-flight')->{body}, 'answered', 'answers once') for 1 .. 20;
  is(pressed($before + 20), $before + 20, 'and each event is applied once');
  fails('/fails-in-flight', qr/with one in flight/, 'an error with one in flight');
};

subtest 'a request is frozen when it is enqueued' => sub {
  my $level = get('/edited')->{body};
  is(get('/edited')->{body}, $level + 1, 'editing it changes nothing of what was sent');
};

subtest 'a response of an earlier request' => sub {
  is(get('/keep')->{status}, 200, 'kept');
  fails('/kept-body', qr/sluice\.lua:\d+: a response that is no more/, 'is dead when it is used');
  fails('/kept-again', qr/response of another request/, 'and when it is returned');
};

subtest 'a client that leaves' => sub {
  my $before = get('/hits')->{body};
  my $from = length $s->log;
  # All are begun before any is reset (one more request on this worker is answered behind them). A plain close could be
  # a client that only sends no more.
  my @lost = map { $s->client } 1 .. 6;
  $_->send(Sluice::Client::request(GET => '/unsafe')) for @lost[0 .. 4];
  $lost[5]->send(Sluice::Client::request(POST => '/unsafe', body => ''));
  is(get('/hits')->{body}, $before, 'begun');
  for (@lost) { setsockopt $_->fd, Socket::SOL_SOCKET(), Socket::SO_LINGER(), pack('ii', 1, 0); $_->close }
  $s->wait_log(qr/unsafe ran to its end: true/, $from);
  is(pressed($before + 1), $before + 1, 'an unsafe method runs to its end, and knows; safe ones were let go');
  my @ends = substr($s->log, $from) =~ /unsafe ran to its end/g;
  is(scalar @ends, 1, 'once');
};

subtest 'deadlines' => sub {
  answer_is(get('/deadline'), "the route's own", status => 504, error => 'deadline');
  answer_is($s->http(POST => '/deadline'), 'of an unsafe method too', status => 504, error => 'deadline');
  my $before = get('/hits')->{body};
  my $from = length $s->log;
  my ($get, $post) = ($s->client, $s->client);
  $get->send(Sluice::Client::request(GET => '/slow'));
  $post->send(Sluice::Client::request(POST => '/slow', body => ''));
  answer_is($get->answer, 'request_timeout of a GET', status => 504, error => 'deadline');
  answer_is($post->answer, 'and of a POST', status => 504, error => 'deadline');
  $s->wait_log(qr/slow ran to its end/, $from);
  is(pressed($before + 1), $before + 1, 'whose route runs to its end behind it');
};

subtest 'loops without end are stopped, said, and serving goes on' => sub {
  fails('/loop', qr/sluice\.lua:\d+: stopped: it ran too long.*stack traceback/s, 'plain');
  fails('/loop-pcall', qr/stopped: it ran too long/, 'in pcall');
  my $from = length $s->log;
  is(get('/loop-callback')->{body}, 'survived 200', 'in a callback: the route goes on');
  $s->wait_log(qr/stopped: it ran too long/, $from);
  $from = length $s->log;
  my ($one, $two) = ($s->client, $s->client);
  $one->send(Sluice::Client::request(GET => '/loop-slot'));
  $two->send(Sluice::Client::request(GET => '/loop-slot'));
  my @got = sort map { $_->answer->{status} } $one, $two;
  is("@got", '200 500', 'in the generator of a second slot: that request alone fails');
  $s->wait_log(qr/stopped: it ran too long/, $from);
  is(get('/loop-slot')->{body}, 'slept', 'and the next one builds it');
};

subtest 'memory and slots' => sub {
  fails('/memory', qr/not enough memory/, 'over lua_memory');
  is(get('/hits')->{status}, 200, 'serving goes on');
  my @c = map { $s->client } 1 .. 3;
  $_->send(Sluice::Client::request(GET => '/build')) for @c;
  my @got = sort map { $_->answer->{status} } @c;
  is("@got", '200 200 500', 'an error in f when a slot is built fails that request alone');
};

my $counters = $s->stop;
is($counters->{$_}, 0, "level at the end: $_") for grep { /in_use$/ } sort keys %$counters;
done_testing;
