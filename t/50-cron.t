# Crons: jobs at intervals, their events into stores, reloads that they ask for, and mistakes in them.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use Sluice;
use Test::More;

my $base = <<'LUA';
settings { workers = 2, lua_time_limit = 1 }
stores { quota = { module = "@REPO@/configs/modules/quota.aup", path = "data/quota" } }
shared { cron = "64KiB" }
routes {
  map = {
    ["/quota"] = "quota",
    ["/shared/:key"] = function(r) return tostring(sluice.shared.cron:get(r:param("key"))) end,
    ["/server/:name"] = function(r) return tostring(sluice.server_stats("server")[r:param("name")]) end,
  },
}
LUA

# Asks until the answer is as it should be; true: it became so in time.
sub becomes {
  my ($s, $path, $wanted) = @_;
  my $until = time + timeout_s();
  my $got;
  while (1) {
    $got = $s->http(GET => $path)->{body};
    return 1 if ref $wanted ? $got =~ $wanted : $got eq $wanted;
    if (time > $until) { diag("$path is $got"); return 0 }
    select undef, undef, undef, 0.02;
  }
}

my $s = start_sluice($base . <<'LUA');
local asked = 0
sluice.register_cron("tick", { every = 0.1, func = function(missed) sluice.shared.cron:incr("ticks", 1, 0) end })
sluice.register_cron("once", { every = 0.1, rerun = false, func = function() sluice.shared.cron:incr("once", 1, 0) end })
sluice.register_cron("plus", { every = 0.1, func = function()
  if asked == 5 then return end
  asked = asked + 1
  assert(sluice.post("quota", "plus"))
  sluice.post("quota", "turn", { amount = 1 }, nil, function(status, body, error) sluice.shared.cron:set("level", status .. " " .. body .. " " .. error) end)
  sluice.view("quota", "hits", nil, function(status, body) sluice.shared.cron:set("hits", body) end)
end })
sluice.register_cron("bad", { every = 0.1, func = function() error("on purpose") end })
sluice.register_cron("loops", { every = 0.1, rerun = false, func = function() while true do end end })
sluice.register_cron("refused", { every = 0.1, rerun = false, func = function() sluice.post("quota", "nothing") end })
LUA

ok(becomes($s, '/quota/views/hits', '5'), 'a cron sends events into a store');
ok(becomes($s, '/quota/views/level', '55'), 'with fields');
ok(becomes($s, '/shared/level', '200 55 none'), 'and hears the answer');
ok(becomes($s, '/shared/hits', qr/^[1-5]$/), 'of a view too');
ok(becomes($s, '/shared/ticks', qr/^\d\d/), 'it comes again and again');
is($s->http(GET => '/shared/once')->{body}, '1', 'one without rerun once');
ok($s->wait_log(qr/cron 'bad': .*on purpose/), 'a mistake is logged');
ok($s->wait_log(qr/cron 'loops': .*stopped: it ran too long/), 'a loop is stopped');
ok($s->wait_log(qr/cron 'refused': its event was answered 404 no_input/), 'an answer nobody hears is logged when it is an error');
cmp_ok($s->http(GET => '/server/cron_runs')->{body}, '>', 20, 'runs are counted');
cmp_ok($s->http(GET => '/server/cron_failures')->{body}, '>=', 2, 'failures too');

ok($s->reload($base . <<'LUA'), 'a reload without most of them');
sluice.register_cron("reloader", { every = 0.2, func = function()
  sluice.shared.cron:incr("reloads", 1, 0)
  -- Twice, each time when "once" of this generation has run: 1 was the first config's.
  local asked = sluice.shared.cron:get("asked") or 0
  if asked < 2 and sluice.shared.cron:get("once") == asked + 2 then
    sluice.shared.cron:set("asked", asked + 1)
    sluice.schedule_config_reload()
  end
end })
sluice.register_cron("once", { every = 0.1, rerun = false, func = function() sluice.shared.cron:incr("once", 1, 0) end })
LUA
my $ticks = $s->http(GET => '/shared/ticks')->{body};
ok(becomes($s, '/shared/reloads', qr/^(?:[4-9]|\d\d)$/), 'a cron may ask for a reload');
ok(becomes($s, '/server/reloads', '3'), 'which comes');
ok(becomes($s, '/shared/once', '4'), 'rerun = false is once after each reload');
is($s->http(GET => '/shared/ticks')->{body}, $ticks, 'what is not registered any more does not run');

ok(!$s->reload("sluice.register_cron('x', { every = 0, func = print })\n$base"), 'a wrong one is refused');
like($s->{reload_log}, qr/`every` is seconds, from 0\.05/, 'with the reason');
ok(becomes($s, '/shared/reloads', qr/^\d+$/), 'and the old config goes on');
subtest 'a cron runs while its config is replaced' => sub {
  my $slow = $base . <<'LUA';
sluice.register_cron("slow", { every = 0.1, func = function()
  local t = sluice.time_mono_millis()
  while sluice.time_mono_millis() < t + 300 do end
  sluice.shared.cron:incr("slow", 1, 0)
  sluice.post("quota", "plus", nil, nil, function(status) sluice.shared.cron:set("late", status) end)
end })
LUA
  ok($s->reload($slow), 'one that takes longer than its interval');
  ok(becomes($s, '/shared/slow', qr/^\d+$/), 'it runs');
  # Whatever it is at, the signals are heard behind it; an answer that comes when its config is gone finds nobody.
  for my $round (1 .. 3) {
    ok($s->reload($round % 2 ? $base : $slow), "replaced: $round");
    $s->signal('HUP') for 1 .. 3;
  }
  ok(becomes($s, '/server/generations', '1'), 'nothing of the old ones is left');
  my $ran = $s->http(GET => '/shared/slow')->{body};
  is($s->http(GET => '/shared/slow')->{body}, $ran, 'and it runs no more');
  unlike($s->log, qr/cron 'slow'/, 'nothing went wrong');
};
$s->stop;
done_testing;
