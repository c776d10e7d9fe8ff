# 64 connections press a route that merges four events while the config changes twice a second, every tenth time to
# a broken one: no request fails, no connection is reset, and slots and memory are level at the end.
# SLUICE_RELOAD_SECONDS (6) says how long.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use Sluice;
use Test::More;
use Time::HiRes qw(time);

my $SECONDS = $ENV{SLUICE_RELOAD_SECONDS} || 6;
my ($wrk) = grep { -x } map { "$_/wrk" } split /:/, $ENV{PATH};
plan skip_all => 'wrk is not installed' unless $wrk;

sub config {
  my ($generation) = @_;
  my $stores = join "\n", map { qq(  $_ = { module = "\@REPO\@/configs/modules/quota.aup", path = "data/$_" },) } qw(a b c d);
  return <<"LUA";
stores {
$stores
}
routes {
  map = {
    ["/generation"] = route_lua { methods = { "GET" }, f = function() return function() return "$generation" end end },
    ["/merge"] = route_lua {
      methods = { "POST" }, children = { "a", "b", "c", "d" },
      f = function(rctx, h)
        local turns = {}
        for i = 1, 4 do turns[i] = rctx:event(h[i], "turn"):set("amount", i) end
        return function()
          for i = 1, 4 do rctx:enqueue(turns[i], h[i]) end
          rctx:wait_cond(4, sluice.WAIT_ANY)
          local out = {}
          for i = 1, 4 do
            local res = rctx:result(h[i])
            if not res:hit() then return res end
            out[i] = res:body()
          end
          return table.concat(out, " ")
        end
      end },
  },
}
LUA
}

my $s = start_sluice(config(0), args => [ '--threads', '2' ]);
my $script = write_file($s->dir . '/post.lua', "wrk.method = 'POST'\nwrk.body = ''\n");

# One run of wrk, while `each` is called twice a second until it ends. Returns what wrk printed.
sub press {
  my ($seconds, $each) = @_;
  my $out = $s->dir . '/wrk.out';
  my $pid = Sluice::fork_exec([ $wrk, '-c', 64, '-t', 1, '-d', $seconds, '--timeout', timeout_s(), '-s', $script, $s->base . '/merge' ],
                              $out, "$out.err", undef, {});
  my $end = time + $seconds + timeout_s();
  my $next = time + 0.5;
  while (1) {
    # Ends with wrk, or when the next change is due.
    my $status = Sluice::wait_pid($pid, $each && $next < $end ? $next : $end);
    if (defined $status) { is($status, 0, 'wrk ran'); last }
    if (time > $end) { kill KILL => $pid; waitpid $pid, 0; fail('wrk ends'); last }
    $next += 0.5;
    $each->() if $each;
  }
  return read_file($out);
}

press(1);                                        # warm
my $before = $s->memory_kib('VmRSS');
my ($changes, $broken) = (0, 0);
my $text = press($SECONDS, sub {
  $changes++;
  my $bad = $changes % 10 == 0;
  $broken++ if $bad;
  $s->write_config(config($changes) . ($bad ? "settings { nothing_known = 1 }\n" : ''));
  $s->signal('HUP');
});
note $text;
my ($requests) = $text =~ /(\d+) requests in/;
cmp_ok($requests, '>', 100, "requests were answered: $requests");
unlike($text, qr/Socket errors/, 'no connection was reset, none timed out');
unlike($text, qr/Non-2xx/, 'no request failed');
cmp_ok($changes, '>=', $SECONDS, "the config changed $changes times");

note 'the last good one is live in the end';
$s->write_config(config('last'));
$s->signal('HUP');
my $deadline = time + timeout_s();
my $word;
do { $word = $s->http(GET => '/generation')->{body} } until $word eq 'last' || time > $deadline;
is($word, 'last', 'it is');

my $after = $s->memory_kib('VmRSS');
cmp_ok($after - $before, '<', 24 * 1024, "memory is level: $before KiB, then $after KiB") unless $ENV{SLUICE_SANITIZED};
my $counters = $s->stop;
is($counters->{reload_failures}, $broken, 'the broken ones were counted');
cmp_ok($counters->{reloads}, '>=', 1, "and the others: $counters->{reloads}");
is($counters->{$_}, 0, "level: $_") for grep { /in_use$/ } sort keys %$counters;
done_testing;
