# The config changes every 100 ms - routes, pools, stores, modules, listeners, workers, limits, and every kind of mistake -
# while clients ask for all kinds of routes, vanish, send halves and pipelines. No answer is wrong, no connection is reset,
# each mistake is refused for its own reason, and slots, memory and generations are level at the end.
# SLUICE_RELOAD_SECONDS (6) says how long, SLUICE_RELOAD_SEED which of all ways.
use strict;
use warnings;
use Fcntl qw(F_GETFL F_SETFL O_NONBLOCK);
use FindBin qw($Bin);
use lib "$Bin/lib";
use Sluice;
use Socket;
use Test::More;
use Time::HiRes qw(time);

my $SECONDS = $ENV{SLUICE_RELOAD_SECONDS} || 6;
my $SEED = $ENV{SLUICE_RELOAD_SEED} || time ^ $$;
my $CLIENTS = 3;
note "SLUICE_RELOAD_SEED=$SEED";

# --------------------------------------------------------------------------------------------------- the configs
my $MODULE = <<'AUP';
module flip 1

state n: int in 0..1_000_000_000

input key plus
on plus down { n += 1 }

view n: num = n
AUP

# `with`: extra => a store more, wide => the listener more, workers, limit, more => text behind it.
sub config {
  my ($n, %with) = @_;
  my $extra = $with{extra} ? 'extra = { module = "@REPO@/configs/modules/blobs.aup", path = "data/extra" },' : '';
  my $listen = join ', ', '"127.0.0.1:@PLAIN@"', $with{wide} ? '{ "127.0.0.1:@WIDE@", tag = "wide" }' : ();
  my $flip = $n % 2 ? 'flip' : 'flop';           # one module or the other
  return <<"LUA";
settings { listen = { $listen }, workers = @{[ $with{workers} || 2 ]}, body_limit = @{[ $with{limit} || '"1MiB"' ]}, lua_memory = "32MiB" }
shared { all = "256KiB" }
stores {
  a = { module = "\@REPO\@/configs/modules/quota.aup", path = "data/a" },
  b = { module = "\@REPO\@/configs/modules/quota.aup", path = "data/b" },
  near = { module = "\@REPO\@/configs/modules/blobs.aup", path = "data/near", shards = @{[ $with{shards} || 2 ]} },
  far = { module = "\@REPO\@/configs/modules/blobs.aup", path = "data/far" },
  flip = { module = "$flip.aup", path = "data/flip" },
  $extra
}
pools { both = { stores = @{[ $n % 3 ? '{ "near", "far" }' : '{ "far", "near" }' ]} } }
local function sleeper(s) return route_lua { f = function(rctx) return function() rctx:sleep(s) return 404, "late" end end } end
local child = route_lua { children = { "a", "b" }, f = function(rctx, h)
  return function() rctx:view(h[1], "lamp") rctx:view(h[2], "lamp") rctx:wait_cond(2)
    return rctx:result(h[1]):body() .. rctx:result(h[2]):body() end
end }
sluice.register_cron("tick", { every = 0.05, func = function()
  sluice.shared.all:incr("ticks", 1, 0)
  sluice.post("flip", "plus", nil, nil, function(status) if status ~= 200 then sluice.log("cron got " .. status, "error") end end)
end })
routes {
  map = {
    ["/generation"] = route_lua { methods = { "GET" }, f = function() return function() return "g$n" end end },
    ["/near"] = "near",
    ["/flip"] = route_direct { child = "flip" },
    ["/merge"] = route_lua { children = { "a", "b", "a", "b" }, f = function(rctx, h)
      local turns = {}
      for i = 1, 4 do turns[i] = rctx:event(h[i], "turn"):set("amount", 0) end
      return function()
        for i = 1, 4 do rctx:enqueue(turns[i], h[i]) end
        rctx:wait_cond(4)
        local out = {}
        for i = 1, 4 do
          local res = rctx:result(h[i])
          if not res:hit() then return res end
          out[i] = res:body()
        end
        return table.concat(out, " ")
      end
    end },
    ["/failover"] = route_failover { children = { "near", "far" }, miss = true },
    ["/fastest"] = route_allfastest { children = { "near", sleeper(0.03), sleeper(0.2) }, miss = true },
    ["/deadline"] = route_lua { f = function(rctx) return function() rctx:deadline(0.02) rctx:sleep(0.3) return "never" end end },
    ["/slow"] = route_lua { f = function(rctx) return function() rctx:sleep(0.05) return "slow" end end },
    ["/sub"] = route_lua { children = { c = child }, f = function(rctx, h) return function(r) return rctx:enqueue_and_wait(r, h.c) end end },
    ["/behind"] = route_lua { children = { c = sleeper(0.1) }, f = function(rctx, h) return function(r) rctx:enqueue(r, h.c) return "answered" end end },
    ["/limited"] = route_ratelim { child = route_static { body = "in" }, limit = 20, rate = 100, global = true, name = "some" },
    ["/shared"] = function(r) return tostring(sluice.shared.all:incr("asked", 1, 0)) end,
    ["/echo/:word"] = route_lua { f = function(rctx) return function(r) if r:param("word"):byte(-1) % 2 == 0 then rctx:sleep(0.002) end return r:param("word") end end },
    ["/server/:name"] = function(r) return tostring(sluice.server_stats("server")[r:param("name")]) end,
    ["/extra"] = @{[ $with{extra} ? '"extra"' : 'route_null {}' ]},
  },
}
@{[ $with{wide} ? 'routes { tag = "wide", map = { ["/who"] = function(r) return "wide " .. r:tag() end } }' : '' ]}
@{[ $with{more} || '' ]}
LUA
}

# Each mistake, and what is said of it.
my $taken = do {
  socket my $fd, AF_INET, SOCK_STREAM, 0 or die "socket: $!";
  bind $fd, sockaddr_in(0, INADDR_LOOPBACK) or die "bind: $!";
  listen $fd, 1 or die "listen: $!";
  $fd;
};
my $taken_port = (sockaddr_in(getsockname $taken))[0];
my @BROKEN = (
  sub { (config($_[0], more => 'return return'), qr/sluice\.lua:\d+: /) },
  sub { (config($_[0], more => "error('no such thing')"), qr/no such thing/) },
  sub { (config($_[0], more => 'settings { nothing_known = 1 }'), qr/nothing_known/) },
  sub { (config($_[0], more => 'stores { gone = { module = "gone.aup", path = "data/gone" } }'), qr/gone\.aup/) },
  sub { (config($_[0], more => 'stores { bad = { module = "bad.aup", path = "data/bad" } }'), qr/bad\.aup:\d+:\d+: error: /) },
  sub { (config($_[0], shards => 3), qr/the number of shards changes by a restart/) },
  sub { (config($_[0]) =~ s/"127\.0\.0\.1:\@PLAIN\@"/"127.0.0.1:\@PLAIN\@", "127.0.0.1:$taken_port"/r, qr/port $taken_port is in use/) },
  sub { (config($_[0], more => 'routes { host = "x", default = route_lua { f = function() error("not this worker") end } }'), qr/not this worker/) },
  sub { (config($_[0], extra => 1, workers => 3) =~ s/"both"|child = "flip"/child = "flop"/r, qr/flop/) },
);

# --------------------------------------------------------------------------------------------------- the clients
# Asks until the pipe `until` ends; writes what it found to `out`. Runs in a process of its own.
sub client {
  my ($number, $plain, $wide, $until, $out) = @_;
  srand $SEED + $number;
  my (%count, @wrong);
  my $c;
  my $wrong = sub { my ($what, $got) = @_; push @wrong, "$what: $got->{status} $got->{reason} '" . substr($got->{body}, 0, 80) . "'" if @wrong < 10; $count{wrong}++ };
  my $keep = sub {
    my ($got) = @_;
    ($count{closed}++, undef $c) if ($got->{headers}{connection} // '') eq 'close';
  };
  my $ask = sub {
    my ($method, $path, $good, %with) = @_;
    $c ||= Sluice::Client->new($plain);
    my $got = $c->http($method, $path, %with);
    $count{asked}++;
    if (!$got->{status}) { undef $c } else { $keep->($got) }
    $wrong->("$method $path", $got) if !$good->($got);
    return $got;
  };
  my $is = sub { my ($status, $body) = @_; sub { $_[0]{status} == $status && (!defined $body || (ref $body ? $_[0]{body} =~ $body : $_[0]{body} eq $body)) } };
  my $key = "k$number";
  my ($value, $revision) = (0, $ask->(GET => "/near/objects/$key", sub { $_[0]{status} == 200 || $_[0]{status} == 404 })->{headers}{etag});
  # By its revision, so that nothing is stored twice or lost unseen.
  my $put = sub {
    my $got = $ask->(PUT => "/near/objects/$key", $is->(200), body => 'v' . ++$value, headers => $revision ? [ 'If-Match', $revision ] : [ 'If-None-Match', '*' ]);
    $revision = $got->{headers}{etag};
  };
  $put->();
  my @ways = (
    sub { $ask->(GET => '/generation', $is->(200, qr/\Ag\d+\z/)) },
    sub { $put->(); $ask->(GET => "/near/objects/$key", $is->(200, "v$value")) },
    sub { $ask->(POST => '/merge', $is->(200, qr/\A50 50 50 50\z/), body => '') },
    sub { $ask->(GET => "/failover/objects/$key", $is->(200, "v$value")) },
    sub { $ask->(GET => '/fastest/objects/nothing', sub { $_[0]{status} == 404 }) },
    sub { $ask->(GET => "/fastest/objects/$key", $is->(200, "v$value")) },
    sub { $ask->(GET => '/deadline', $is->(504)) },
    sub { $ask->(GET => '/sub', $is->(200, 'falsefalse')) },
    sub { $ask->(GET => '/behind', $is->(200, 'answered')) },
    sub { $ask->(GET => '/limited', sub { $_[0]{status} == 200 && $_[0]{body} eq 'in' || $_[0]{status} == 429 && $_[0]{headers}{'retry-after'} }) },
    sub { $ask->(GET => '/shared', $is->(200, qr/\A\d+\z/)) },
    sub { $ask->(GET => '/flip/views/n', $is->(200, qr/\A\d+\z/)) },
    sub { $ask->(GET => '/extra/objects/x', sub { $_[0]{status} == 404 }) },
    sub { $ask->(PUT => '/extra/objects/x', sub { $_[0]{status} == 200 || $_[0]{status} == 404 }, body => 'x', headers => [ 'If-None-Match', '*' ]); $ask->(DELETE => '/extra/objects/x', sub { $_[0]{status} == 200 || $_[0]{status} == 204 || $_[0]{status} == 404 }) } x !!($number == 1),
    sub {                                        # goes away
      my $gone = Sluice::Client->new($plain);
      $gone->send(Sluice::Client::request(@{ [ [ GET => '/slow' ], [ POST => '/merge', body => '' ], [ GET => '/fastest/objects/x' ] ]->[ rand 3 ] }));
      setsockopt $gone->fd, SOL_SOCKET, SO_LINGER, pack 'ii', 1, 0 if rand() < 0.5;    # with a reset
      $gone->close;
      $count{gone}++;
    },
    sub {                                        # says half
      my $half = Sluice::Client->new($plain);
      my $bytes = Sluice::Client::request(POST => '/merge', body => 'x' x 100);
      $half->send(substr $bytes, 0, 1 + rand(length($bytes) - 1));
      $half->close;
      $count{half}++;
    },
    sub {                                        # says much at once
      my $p = Sluice::Client->new($plain);
      my @words = map { "$number-$_" } 1 .. 8;
      $p->send(join '', map { Sluice::Client::request(GET => "/echo/$_") } @words);
      for my $word (@words) {
        my $got = $p->answer;
        $count{pipelined}++;
        $wrong->("pipelined $word", $got) if $got->{status} != 200 || $got->{body} ne $word;
        last if ($got->{headers}{connection} // '') eq 'close' || !$got->{status};
      }
    },
  );
  @ways = grep { ref } @ways;
  # The listener that comes and goes. Who comes when it has just gone is not answered until it asks again: it is given up here.
  push @ways, sub {
    socket my $fd, AF_INET, SOCK_STREAM, 0 or return;
    fcntl $fd, F_SETFL, fcntl($fd, F_GETFL, 0) | O_NONBLOCK;
    if (!connect $fd, sockaddr_in($wide, INADDR_LOOPBACK)) {
      vec(my $bits = '', fileno $fd, 1) = 1;
      select undef, $bits, undef, 0.05 if $!{EINPROGRESS};
      if (!getpeername $fd) { $count{refused}++; return }
    }
    my $w = bless { fd => $fd, in => '', eof => 0 }, 'Sluice::Client';
    my $got = $w->http(GET => '/who');
    $count{wide}++;
    # Until it has gone it is served; then without routes of its own.
    $wrong->('wide', $got) unless $got->{status} == 200 && $got->{body} eq 'wide wide' || $got->{status} == 404;
  };
  my $way = 0;
  my $half = timeout_s() / 2;                    # so that who waits for ever says for what
  local $SIG{ALRM} = sub { die "way $way takes more than $half s; unread: '" . ($c ? $c->{in} : '') . "'\n" };
  until (Sluice::wait_readable(time + 0.002, $until)) {
    $way = int rand @ways;
    alarm $half;
    eval { $ways[$way]->(); 1 } or do { alarm 0; $count{wrong}++; push @wrong, $@; undef $c };
    alarm 0;
  }
  write_file($out, JSON::PP->new->encode({ count => \%count, wrong => \@wrong }));
}

# ---------------------------------------------------------------------------------------------------- the run
my $s = start_sluice(config(0, wide => 1), own_port => 1, PLAIN => 0, WIDE => 0,
  files => { 'flip.aup' => $MODULE, 'flop.aup' => $MODULE . "\nview twice: num = n * 2\n", 'bad.aup' => "module bad 1\nstate x: nmu\n" });
# From here on by their numbers: the same sockets.
my ($plain, $wide) = @{ $s->{vars} }{qw(PLAIN WIDE)} = ($s->port, $s->more_port(0));

srand $SEED;                                     # after the names of temporary folders
my %out;
sub run {
  my ($seconds, $each) = @_;
  pipe my $until, my $stop or die "pipe: $!";
  my @pids;
  for my $number (0 .. $CLIENTS - 1) {
    my $pid = fork // die "fork: $!";
    if (!$pid) {
      close $stop;
      close delete $s->{err};                    # the log is the parent's to read
      eval { client($number, $plain, $wide, $until, $s->dir . "/client.$number"); 1 } or do { print STDERR "# client $number: $@"; POSIX::_exit(1) };
      POSIX::_exit(0);
    }
    push @pids, $pid;
  }
  close $until;
  my $end = time + $seconds;
  my $next = time;
  while (time < $end) {
    $each->();
    $next = time > $next + 0.1 ? time : $next + 0.1;
    my $left = $next - time;
    select undef, undef, undef, $left if $left > 0;   # the rate of changes is what is asked for here
  }
  close $stop;
  for my $number (0 .. $CLIENTS - 1) {
    my $status = Sluice::wait_pid($pids[$number], time + timeout_s());
    kill KILL => $pids[$number] unless defined $status;
    is($status, 0, "client $number ends");
    my $found = json(read_file($s->dir . "/client.$number"));
    is_deeply($found->{wrong}, [], "client $number: every answer is right");
    $out{$_} += $found->{count}{$_} for keys %{ $found->{count} };
  }
}

# Of the routes that serve now, before this question was asked.
sub stat_of { Sluice::Client->new($plain)->http(GET => "/server/$_[0]")->{body} }
sub becomes {
  my ($name, $wanted) = @_;
  my $until = time + timeout_s();
  my $got;
  1 while ($got = stat_of($name)) ne $wanted && time < $until;
  is($got, $wanted, "$name is $wanted again");
}

my ($changes, $broken) = (0, 0);
my $change = sub {
  $changes++;
  if ($changes % 4 == 0) {
    my ($text, $why) = $BROKEN[ $broken++ % @BROKEN ]->($changes);
    ok(0, "change $changes is refused") if $s->reload($text);
    like($s->{reload_log}, $why, "change $changes for its own reason") if $s->{reload_log} !~ $why;
    return;
  }
  my %with = (extra => $changes % 2, wide => $changes % 5 < 3, workers => 2 + int($changes / 10) % 2, limit => $changes % 7 ? undef : 2000);
  $s->reload(config($changes, %with)) or fail("change $changes takes effect: $s->{reload_log}");
};
run(2, $change);                                 # warm
$s->reload(config(1)) or fail("level before: $s->{reload_log}");
becomes($_->[0], $_->[1]) for [ generations => 1 ], [ route_slots_in_use => 0 ];
my ($rss, $lua) = ($s->memory_kib('VmRSS'), stat_of('route_memory_bytes'));

run($SECONDS, $change);
note join ', ', map { "$_ $out{$_}" } sort keys %out;
note "$changes changes, $broken of them mistakes";
cmp_ok($out{asked}, '>', 50 * $SECONDS / 6, 'the clients were served');
ok($out{$_}, "there were such: $_") for qw(gone half pipelined wide);

$s->reload(config('1')) or fail("level after: $s->{reload_log}");
becomes($_->[0], $_->[1]) for [ generations => 1 ], [ route_slots_in_use => 0 ];
my ($rss_after, $lua_after) = ($s->memory_kib('VmRSS'), stat_of('route_memory_bytes'));
cmp_ok($lua_after, '<', 2 * $lua, "Lua memory is level: $lua, then $lua_after");
cmp_ok($rss_after - $rss, '<', 32 * 1024, "memory is level: $rss KiB, then $rss_after KiB") unless $ENV{SLUICE_SANITIZED};
cmp_ok(stat_of('cron_runs'), '>', 10, 'crons ran');
is(stat_of('cron_failures'), 0, 'and none failed');
unlike($s->log, qr/ error (?!reload failed)/, 'nothing else went wrong');
my $counters = $s->stop;
is($counters->{reload_failures}, $broken, 'mistakes were counted');
is($counters->{reloads}, $changes - $broken + 2, 'and changes');
is($counters->{$_}, 0, "level: $_") for grep { /in_use$/ } sort keys %$counters;
done_testing;
