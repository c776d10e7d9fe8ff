# Reload by SIGHUP as routes see it: all workers or none, nothing left of the old, no signal lost, no worker stalled.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use Sluice;
use Test::More;
use Time::HiRes qw(time);

my $STORES = 'stores { quota = { module = "@REPO@/configs/modules/quota.aup", path = "data/quota" } }';
sub config {
  my ($word, $more) = @_;
  return <<"LUA";
$STORES
@{[ $more // '' ]}
routes {
  map = { ["/word"] = function() return "$word" end },
  default = route_stores {},
}
LUA
}

my $s = start_sluice(config('one'), args => [ '--threads', '3' ]);
# What all workers say: 24 connections are spread over them.
sub words {
  my %said;
  for (1 .. 24) { my $c = $s->client; $said{ $c->http(GET => '/word')->{body} }++; $c->close }
  return join ' ', sort keys %said;
}
is(words(), 'one', 'before');

subtest 'a reload that fails when some workers are prepared leaves all on the old config' => sub {
  # The first worker's VM takes its time; those made after it find that it is too late.
  my $bad = <<"LUA";
$STORES
function sluice_config_pools() return { at = sluice.time_mono_millis() } end
function sluice_config_routes(conf)
  if sluice.time_mono_millis() > conf.at + 1000 then error("not this worker") end
  while sluice.time_mono_millis() < conf.at + 1500 do end
  sluice.attach(sluice.ANY, function() return "half" end)
end
LUA
  $s->write_config($bad);
  my $from = length $s->log;
  my $c = $s->client;
  $s->signal('HUP');
  my ($most, $n) = (0, 0);
  until (substr($s->log, $from) =~ /not this worker/ || $n > 100_000) {
    my $t = time;
    last unless $c->http(GET => '/word')->{body} eq 'one';
    $most = time - $t if time - $t > $most;
    $n++;
  }
  $s->wait_log(qr/sluice\.lua:\d+: not this worker/, $from);
  cmp_ok($n, '>', 10, "meanwhile $n requests were answered by the old one");
  cmp_ok($most, '<', 1.2, sprintf 'none of them waited for it: %.0f ms at most', $most * 1000);
  is(words(), 'one', 'no worker has switched');
};

subtest 'an endless loop at load is stopped, and changes nothing' => sub {
  ok(!$s->reload(config('loop') . "while true do end\n"), 'refused');
  like($s->{reload_log}, qr/stopped: it ran too long/, 'with the reason');
  is(words(), 'one', 'the old one serves');
};

subtest 'hooks and words of the old config are gone' => sub {
  ok($s->reload(<<"LUA"), 'hooks by method');
$STORES
leftover = "old"
function sluice_config_routes()
  sluice.attach("GET", function() return "two" end)
  sluice.attach("PUT", function() return "put" end)
end
LUA
  is(words(), 'two', 'live');
  is($s->http(PUT => '/x', body => '')->{body}, 'put', 'a hook for PUT');
  ok($s->reload(<<"LUA"), 'one hook less');
$STORES
function sluice_config_routes()
  sluice.attach("GET", function() return tostring(leftover) end)
end
LUA
  is(words(), 'nil', 'no global of the old one is there');
  answer_is($s->http(PUT => '/x', body => ''), 'the hook that was not attached again is gone', status => 405, error => 'method');
};

subtest 'a setting removed from the file has its default again' => sub {
  ok($s->reload("settings { lua_time_limit = 0.1, body_limit = 5 }\n" . config('three')), 'two settings');
  answer_is($s->http(POST => '/quota/inputs/say', body => 'x' x 20), 'in force', status => 413, error => 'limit');
  ok($s->reload(config('four', 'local t = {}') =~ s{"/word"\] =}{"/long"] = function() local t = sluice.time_mono_millis() while sluice.time_mono_millis() < t + 300 do end return "ran" end, ["/word"] =}r), 'removed');
  is($s->http(POST => '/quota/inputs/say', body => 'x' x 20)->{status}, 200, 'body_limit');
  is($s->http(GET => '/long')->{body}, 'ran', 'lua_time_limit');
};

subtest 'a signal during a reload is not lost' => sub {
  my $from = length $s->log;
  $s->write_config(config('five', 'print("five is read") local t = sluice.time_mono_millis() while sluice.time_mono_millis() < t + 150 do end'));
  $s->signal('HUP');
  # From its first line on it is the file that is loaded, 150 ms for each VM.
  $s->wait_log(qr/five is read/, $from);
  is($s->http(GET => '/word')->{body}, 'four', 'under way');
  $s->write_config(config('six'));
  $s->signal('HUP');
  # Each of the two ends with its line: what comes next must not take one of them for its own.
  $s->wait_log(qr/reloaded .*reloaded [^\n]*\n/s, $from);
  is(words(), 'six', 'the last word counts');
};

subtest 'what a request of the old config began is ended by it, behind its answer too' => sub {
  my $child = <<"LUA";
$STORES
local later = route_lua { children = { q = "quota" }, f = function(rctx, h)
  return function() rctx:sleep(0.3) rctx:post_and_wait(h.q, "plus") sluice.log("ended behind its answer") return "done" end
end }
routes {
  map = { ["/behind"] = route_lua { children = { l = later }, f = function(rctx, h)
    return function(r) rctx:enqueue(r, h.l) return "answered" end
  end } },
  default = route_stores {},
}
LUA
  ok($s->reload($child), 'a route behind an answer');
  my $hits = $s->http(GET => '/quota/views/hits')->{body};
  my $from = length $s->log;
  is($s->http(POST => '/behind', body => '')->{body}, 'answered', 'answered');
  ok($s->reload(config('seven')), 'a reload meanwhile');
  $s->wait_log(qr/ended behind its answer/, $from);
  is($s->http(GET => '/quota/views/hits')->{body}, $hits + 1, 'its event was applied');
  ok($s->reload($child), 'and a drain');
  $from = length $s->log;
  is($s->http(POST => '/behind', body => '')->{body}, 'answered', 'answered');
};

my $counters = $s->stop;
like($s->log, qr/ended behind its answer.*\{/s, 'waits for it too');
is($counters->{reload_failures}, 2, 'failures are counted');
is($counters->{$_}, 0, "level at the end: $_") for grep { /in_use$/ } sort keys %$counters;
done_testing;
