# The control socket and sluicectl: every command, true answers to reloads, streams, and nothing that harms the server.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use IO::Socket::UNIX;
use Sluice;
use Test::More;
use Time::HiRes qw(time);

my $STORES = 'stores { quota = { module = "@REPO@/configs/modules/quota.aup", path = "data/quota" } }';
sub config {
  my ($word, $more) = @_;
  return <<"LUA";
$STORES
stats { hits = "counter", wait = "histogram" }
@{[ $more // '' ]}
routes {
  map = {
    ["/word"] = function() sluice.stat("hits") sluice.stat("wait", 0.25) return "$word" end,
    ["/say/:what"] = function(r) sluice.log("said " .. r:param("what"), "debug") return "ok" end,
    ["/many/:n"] = function(r) for i = 1, tonumber(r:param("n")) do sluice.log("line " .. i .. " of many that are said in a row", "debug") end return "ok" end,
    ["/seen"] = route_lua { methods = { "GET" }, children = { q = "quota" }, f = function(rctx, h) return function(r)
      local res = rctx:get_and_wait(h.q, "x") or rctx:result(h.q)
      sluice.log_req(r, res, "seen it", 7)
      return "ok"
    end end },
    ["/wrong"] = function() error("no luck") end,
  },
  default = route_stores {},
}
LUA
}

# A connection to the control socket, byte by byte.
sub raw {
  my ($path) = @_;
  my $socket = IO::Socket::UNIX->new(Type => SOCK_STREAM, Peer => $path) or die "connect $path: $!";
  my $flags = fcntl $socket, Fcntl::F_GETFL, 0;
  fcntl $socket, Fcntl::F_SETFL, $flags | Fcntl::O_NONBLOCK;
  return bless { fd => $socket, in => '', eof => 0 }, 'Sluice::Client';
}

my $s = start_sluice(config('one'), args => [ '--threads', '2' ]);
my $path = $s->dir . '/sluice.sock';

subtest 'which functions take memory, or time' => sub {
  my $file = $s->{config};
  my $pid = fork // die "fork: $!";
  if (!$pid) {                             # requests while the profile is taken
    my $c = $s->client;
    my $n = 0;                             # a text that was there before takes no memory
    $c->http(GET => '/say/thing-' . $n++) while 1;
    exit 0;
  }
  my ($profile, $code, $out, $err);
  for (1 .. 20) {                          # a busy machine may serve nothing in half a second
    ($code, $out, $err) = run_sluicectl('--config', $file, 'luaprof', '--seconds', '0.5', '--every', '64', '--json');
    $profile = json($out);
    last if grep { $_->{place} =~ /\.lua:\d+/ } @{ $profile->{rows} };
  }
  is($code, 0, 'a profile of memory');
  my ($row) = grep { $_->{place} =~ /\.lua:\d+/ } @{ $profile->{rows} };
  ok($row && $row->{weight} > 0 && $row->{count} > 0, 'has a function of the config');
  is(scalar @{ $profile->{workers} }, 2, 'of both workers');
  ($code, $out) = run_sluicectl('--config', $file, 'luaprof', '--seconds', '0.1', '--rows', '1');
  like($out, qr/\A +bytes +part +allocations  function\n.* \d+  total\n\z/s, 'as a table');
  ($code, $out) = run_sluicectl('--config', $file, 'luaprof', '--seconds', '0.1', '--time');
  like($out, qr/\A +microseconds +part +samples  function\n/, 'and one of time');
  kill KILL => $pid;
  waitpid $pid, 0;
  ($code, $out, $err) = run_sluicectl('--config', $file, 'luaprof', '--seconds', '0');
  is($code, 2, 'not of no time');
  my $c = raw($path);
  my $other = raw($path);
  for ([ '"kind":"cpu"', 'memory or time' ], [ '"seconds":1e9', '600 seconds' ], [ '"seconds":"x"', '600 seconds' ], [ '"every":0.5', 'whole number' ]) {
    $c->send(qq({"do":"luaprof",$_->[0]}\n));
    $c->expect(qr/^\{"ok":false,"error":"[^"\n]*\Q$_->[1]\E[^\n]*\n/);
  }
  $c->send(qq({"do":"luaprof","seconds":1}\n));
  $c->send(qq({"do":"stats"}\n));           # its turn comes when the first is answered
  my $refused;
  for (1 .. 100) {
    $other->send(qq({"do":"luaprof","seconds":0.01}\n));
    my $said = $other->expect(qr/^(\{"ok":[^\n]*)\n/) // '';
    last if $refused = $said =~ /a profile is being taken/;
  }
  ok($refused, 'one at a time');
  $c->expect(qr/^\{"ok":true,"kind":"memory"[^\n]*\n/);
  $c->expect(qr/^\{"ok":true,"server"[^\n]*"routes":\{"workers":\[\{"worker":0,"bytes":\d+[^\n]*\n/);
};

subtest 'where it is, and whose' => sub {
  is($s->control, $path, 'beside the config, and the first line says so');
  is((stat $path)[2] & 0777, 0600, 'for this user alone');
  my ($code, $out) = run_sluicectl('--config', $s->{config}, 'stats', 'threads');
  is("$code $out", "0 threads 2\n", 'found by the config');
  {
    local $ENV{SLUICE_SOCKET} = $path;
    is((run_sluicectl('stats', 'threads'))[1], "threads 2\n", 'found by the environment');
  }
  ($code, $out, my $err) = run_sluicectl('--socket', $s->dir . '/none', 'reload');
  is($code, 1, 'none there');
  like($err, qr/^sluicectl: .*none: No such file or directory; no server has its control socket there\n\z/, 'is said');
  for my $bad ([], ['relod'], ['watch'], ['watch', 'everything'], ['--socket', 'a', '--config', 'b', 'reload'], ['reload', 'now']) {
    ($code, $out, $err) = run_sluicectl(@$bad);
    is($code, 2, "used wrongly: @$bad");
    like($err, qr/^sluicectl: [^\n]+\n\z/, 'one line says how');
  }
  ($code, $out) = run_sluicectl('--help');
  is($code, 0, 'help');
  like($out, qr/\b$_\b/, "it has $_") for qw(reload stats watch generations);
};

subtest 'stats' => sub {
  $s->http(GET => '/word') for 1 .. 3;
  $s->http(POST => '/quota/inputs/plus', body => '');
  my ($code, $out) = $s->ctl('stats');
  is($code, 0, 'all');
  like($out, qr/^$_$/m, $_) for 'active 0', 'threads 2', 'user.hits 3', 'user.wait.count 3', 'user.wait.p50 0.25', 'stores.quota.shards 1', 'stores.quota.burst_events 1';
  unlike($out, qr/^workers\./m, 'not by worker');
  my ($accepted) = $out =~ /^accepted (\d+)$/m;
  ($code, $out) = $s->ctl('stats', '--workers');
  is(eval { my $n = 0; $n += $_ for $out =~ /^workers\.\d+\.accepted (\d+)$/mg; $n }, $accepted, 'the workers add up to the whole');
  like($out, qr/^workers\.1\.$_ 0$/m, "each worker's $_") for qw(backend_requests backends_down tls_handshakes tls_failures);
  ($code, $out) = $s->ctl('stats', 'user', 'threads', 'workers.1.turns');
  like($out, qr/\Athreads 2\nuser\.hits 3\nuser\.wait\.count 3\n.*workers\.1\.turns \d+\n\z/s, 'by name, and by section');
  ($code, $out, my $err) = $s->ctl('stats', 'actve');
  is("$code$out", '1', 'an unknown one');
  like($err, qr/no counter `actve`/, 'is said');
  my $all = json(($s->ctl('stats', '--json'))[1]);
  is($all->{user}{hits}, 3, 'as JSON');
  is($all->{server}{threads}, 2, 'in sections');
};

subtest 'reload waits, and says what came of it' => sub {
  $s->write_config(config('two'));
  my ($code, $out, $err) = $s->ctl('reload');
  is("$code $out$err", "0 generation 2\n", 'done');
  is($s->http(GET => '/word')->{body}, 'two', 'and live when it says so');
  $s->write_config(config('broken', 'settings { lisn = "x" }'));
  ($code, $out, $err) = $s->ctl('reload');
  is("$code$out", '1', 'a broken one');
  like($err, qr/^sluicectl: reload failed: \S+\/sluice\.lua:\d+: there is no setting `lisn`; did you mean `listen`\? \(in: settings \{ lisn = "x" \}\)\n\z/,
       'file, line, what is wrong and the line itself');
  is($s->http(GET => '/word')->{body}, 'two', 'the old one serves');
  # A broken config does not hide the socket either.
  ($code, $out, $err) = run_sluicectl('--config', $s->{config}, 'reload');
  like($err, qr/reload failed: \S+\/sluice\.lua/, 'by the config that is broken');
  $s->write_config(config('three', 'settings { workers = 7 }'));
  ($code, $out, $err) = $s->ctl('reload');
  is("$code $out", "0 generation 3\n", 'a setting');
};

subtest 'each reload that is asked gets a true answer' => sub {
  # While this one is read, a second is asked for, of a file that is broken by then, and a third of one that is mended.
  my $from = length $s->log;
  $s->write_config(config('four', 'print("four is read") local t = sluice.time_mono_millis() while sluice.time_mono_millis() < t + 300 do end'));
  my $first = $s->ctl_start('reload');
  $s->wait_log(qr/four is read/, $from);
  $s->write_config(config('five', 'settings { lisn = "x" }'));
  my @others = map { $s->ctl_start('reload') } 1 .. 2;
  $first->expect(qr/^generation 4\n/, 'the first has the file that it read');
  is($first->reap, 0, 'and ends well');
  is($_->reap, 1, 'those who asked for the broken one hear of it') for @others;
  $s->write_config(config('six'));
  my @many = map { $s->ctl_start('reload') } 1 .. 5;
  $s->signal('HUP');
  is($_->reap, 0, 'many at once') for @many;
  is($s->http(GET => '/word')->{body}, 'six', 'and it is the last file that serves');
  my ($n) = ($s->ctl('stats', 'reloads'))[1] =~ /(\d+)/;
  cmp_ok($n, '<=', 3 + 6, 'one reload may answer several');
};

subtest 'generations' => sub {
  my ($code, $out) = $s->ctl('generations');
  is($code, 0, 'printed');
  like($out, qr/^generation \d+, since \S+Z, serves\n  worker 0: 0 requests, 0 events, 0 behind their answers, \d+ of \d+ slots, \d+ bytes of Lua\n  worker 1: /m, 'the one that serves, by worker');
  my $slow = 'f = function(rctx) return function() rctx:sleep(60) return "late" end end';
  ok($s->reload(config('slow') =~ s{"/word"\] =}{"/slow"] = route_lua { methods = { "GET" }, $slow }, ["/word"] =}r), 'a route that takes its time');
  my $c = $s->client;
  $c->send("GET /slow?x=1 HTTP/1.1\r\nHost: t\r\n\r\n");
  my $active = sub { ($s->ctl('stats', 'active'))[1] eq "active 1\n" };
  my $deadline = time + timeout_s();
  1 until $active->() || time > $deadline;
  my $all = json(($s->ctl('generations', '--json'))[1]);
  my $old = $all->{generation};
  ok($s->reload(config('after')), 'a reload meanwhile');
  $all = json(($s->ctl('generations', '--json'))[1]);
  is($all->{generation}, $old + 1, 'the newest');
  my ($held) = grep { $_->{generation} == $old } @{ $all->{generations} };
  ok($held && !$held->{serves}, 'the old one is alive');
  my ($part) = grep { $_->{requests} } @{ $held->{workers} };
  is($part->{oldest}, 'GET /slow', 'and what holds it is said');
  like(($s->ctl('generations'))[1], qr/^generation $old, since \S+Z\n.*1 requests,.*; the oldest request is GET \/slow, \d+ us\n/m, 'to a person too');
  $c->close;
  $deadline = time + timeout_s();
  do { $all = json(($s->ctl('generations', '--json'))[1]) } until @{ $all->{generations} } == 1 || time > $deadline;
  is(scalar @{ $all->{generations} }, 1, 'when it has gone the old one goes too');
};

subtest 'watch' => sub {
  my %watch = map { $_ => $s->ctl_start('watch', $_) } qw(user requests events);
  my $json = $s->ctl_start('watch', '--json', 'user', 'events');
  my $active = sub { my $c = raw($path); $c->send(qq({"do":"watch","streams":["user","requests","events"]}\n)); $c->expect(qr/^\{"ok":true\}\n/); $c };
  my $all = $active->();
  # The watchers have their streams when what they asked is answered: say something until each has heard it.
  my $says = sub {
    my ($w, $pattern, $do, $name) = @_;
    my $deadline = time + timeout_s();
    until ($w->{in} =~ $pattern || time > $deadline) { $do->(); $w->more(time + 0.05) }
    return $w->expect($pattern, $name);
  };
  my $TIME = qr/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/;
  $says->($watch{user}, qr/^$TIME user debug worker=[01] text="said hi"\n/m, sub { $s->http(GET => '/say/hi') }, 'a line of sluice.log, below log_level too');
  $says->($watch{requests}, qr/^$TIME requests info worker=[01] method=GET path=\/seen status=404 class=ok error=route elapsed=\d\.\d{6} backend=quota client=127\.0\.0\.1 cfd=7 detail="seen it"\n/m,
          sub { $s->http(GET => '/seen') }, 'a request');
  $says->($watch{events}, qr/^$TIME events error event=route_error text=".*no luck.*" route=\S+\n/m, sub { $s->http(GET => '/wrong') }, 'an error of a route');
  $says->($json, qr/^\{"stream":"user","time":"$TIME","level":"debug","worker":[01],"text":"said json"\}\n/m, sub { $s->http(GET => '/say/json') }, 'as JSON');
  ok($s->reload(config('seven')), 'a reload');
  $watch{events}->expect(qr/^$TIME events info event=reloaded text="reloaded [^"]*" generation=\d+\n/m, 'is an event');
  $all->expect(qr/"stream":"events"[^\n]*"event":"reloaded"/, 'of who watches all');
  ok($s->log !~ /said hi/, 'what is below log_level is not in the log');
  ok($s->log =~ / info req method=GET path=\/seen status=404 class=ok error=route /, 'a request is');
  $watch{user}->signal('KILL');
  is($watch{user}->reap, -9, 'a watcher that is killed');
  is($s->http(GET => '/say/x')->{body}, 'ok', 'is missed by nobody');
  $_->signal('INT') for grep { !defined $_->{exit} } values %watch, $json;
  is($_->reap, -2, 'an interrupted one ends') for grep { !defined $_->{exit} } values %watch, $json;
};

subtest 'a watcher that never reads costs a bounded room, and hears how much it missed' => sub {
  my $slow = raw($path);
  $slow->send(qq({"do":"watch","streams":["user"]}\n));
  $slow->expect(qr/^\{"ok":true\}\n/, 'it watches');
  my $before = $s->memory_kib('VmRSS');
  my $longest = 0;
  for (1 .. 100) {
    my $t = time;
    $s->http(GET => '/many/1000')->{body} eq 'ok' or fail('an answer');
    $longest = time - $t if time - $t > $longest;
  }
  note sprintf 'the slowest answer took %.0f ms', $longest * 1000;
  # A sanitizer keeps what was freed for a while.
  cmp_ok($s->memory_kib('VmRSS') - $before, '<', 16 * 1024, '100,000 lines later') unless $ENV{SLUICE_SANITIZED};
  my ($lines, $dropped) = (0, 0);
  my $deadline = time + timeout_s();
  my $said = 100_000;
  until ($lines + $dropped >= $said || time > $deadline) {
    if (!$slow->more(time + 0.1)) { $s->http(GET => '/many/1'); $said++ }
    while ($slow->{in} =~ s/^([^\n]*)\n//) {
      my $line = $1;
      if ($line =~ /^\{"dropped":(\d+)\}$/) { $dropped += $1 } else { $lines++ }
    }
  }
  is($lines + $dropped, $said, "$lines lines and $dropped that were left out are all that were said");
  cmp_ok($dropped, '>', 0, 'some were');
};

subtest 'what no client should send' => sub {
  my $c = raw($path);
  for my $bad ("reload\n", "{}\n", "\0\1\2\xff\n", "{\"do\":\"rm -rf\"}\n", "{\"do\":\"watch\",\"streams\":[\"all\"]}\n", "{\"do\":\"watch\"}\n", "{\"do\":\"reload\",\"now\":true}\n") {
    $c->send($bad);
    $c->expect(qr/^\{"ok":false,"error":"[^\n]+"\}\n/, 'refused');
  }
  $c->send(('x' x 20_000) . "\n");
  $c->expect(qr/^\{"ok":false,"error":"a line has at most 16384 bytes"\}\n/, 'too long');
  is($c->until_closed, '', 'and closed');
  my @idle = map { raw($path) } 1 .. 64;
  my $more = raw($path);
  $more->expect(qr/^\{"ok":false,"error":"there are 64 clients already"\}\n/, 'one too many');
  @idle = ();
  my $again;
  my $deadline = time + timeout_s();
  do { ($again) = $s->ctl('stats', 'threads') } until $again == 0 || time > $deadline;
  is($again, 0, 'when they have gone there is room');
};

subtest 'a live socket is refused, a dead one replaced' => sub {
  my ($code, $out, $err) = run_sluice('--module', repo_path('configs/modules/quota.aup'), '--store', $s->dir . '/other', '--port', 0, '--control', $path);
  is($code, 1, 'another server at the same path');
  my $pid = $s->pid;
  like($err, qr/\Asluice: control: \Q$path\E: the running process $pid has this socket\n\z/, 'is told who has it');
  ok(!-e $s->dir . '/other', 'and has made no store');
  is(($s->ctl('stats', 'threads'))[0], 0, 'which goes on');
  $s->kill9;
  ok(-S $path, 'killed, it leaves its socket');
  ($code, $out, $err) = $s->ctl('reload');
  is($code, 1, 'where nobody is');
  like($err, qr/the server that had it has ended/, 'as is said');
  $s->start;
  is(($s->ctl('stats', 'threads'))[0], 0, 'the next server takes its place');
};

subtest 'the end of a server' => sub {
  my $watch = $s->ctl_start('watch', 'events');
  my $deadline = time + timeout_s();
  my $from = raw($path);
  $from->send(qq({"do":"watch","streams":["events"]}\n));
  $from->expect(qr/^\{"ok":true\}\n/, 'a watcher');
  $s->stop;
  $from->expect(qr/"event":"ending"/, 'hears of the end');
  is($watch->reap, 1, 'which ends sluicectl');
  ok(!-e $path, 'the socket goes with the server');
};

subtest 'settings' => sub {
  my $with = sub { my ($control) = @_; return config('x', "settings { control = $control }") };
  my $t = start_sluice($with->('"run/of/sluice.sock"'));
  is($t->control, $t->dir . '/run/of/sluice.sock', 'a path counts from the config, and its folder is made');
  is(($t->ctl('stats', 'threads'))[0], 0, 'there');
  is((run_sluicectl('--config', $t->{config}, 'stats', 'threads'))[0], 0, 'found by the config');
  $t->write_config($with->('"moved.sock"'));
  my ($code, $out, $err) = $t->ctl('reload');
  is("$code $out", "0 generation 2\n", 'moved by a reload, which is answered');
  ok(!-e $t->control, 'the old one is gone');
  is((run_sluicectl('--socket', $t->dir . '/moved.sock', 'stats', 'threads'))[0], 0, 'the new one is there');
  write_file($t->dir . '/plain', 'x');
  $t->write_config($with->('"plain"'));
  ($code, $out, $err) = run_sluicectl('--socket', $t->dir . '/moved.sock', 'reload');
  is($code, 1, 'to a place that cannot be one');
  like($err, qr/reload failed: control: .*plain: there is something that is no socket/, 'is refused');
  is((run_sluicectl('--socket', $t->dir . '/moved.sock', 'stats', 'threads'))[0], 0, 'and the old one stays');
  unlink $t->dir . '/moved.sock';
  ok($t->reload($with->('"moved.sock"')), 'one that somebody removed');
  is((run_sluicectl('--socket', $t->dir . '/moved.sock', 'stats', 'threads'))[0], 0, 'is there again');
  ok($t->reload($with->('false')), 'none');
  ok(!-e $t->dir . '/moved.sock', 'is none');
  ($code, $out, $err) = run_sluicectl('--config', $t->{config}, 'stats');
  like($err, qr/its settings say that there is no control socket/, 'as sluicectl says');
  $t->stop;
  my $m = start_module(repo_path('configs/modules/quota.aup'));
  is($m->control, undef, 'a module alone has none');
  $m->stop;
  my $dir = temp_folder();
  $m = start_module(repo_path('configs/modules/quota.aup'), args => [ '--control', "$dir/m.sock" ]);
  is($m->control, "$dir/m.sock", 'but where --control says');
  is(($m->ctl('reload'))[0], 0, 'and can be reloaded by it');
  like(($m->ctl('stats'))[1], qr/^stores\.quota\.shards 1$/m, 'and looked at');
  $m->stop;
};
done_testing;
