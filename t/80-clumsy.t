# What a clumsy user or a hurried tool does to a server: each of these once took it down, hung it, or made it lie.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use File::Path ();
use POSIX qw(mkfifo);
use Sluice;
use Time::HiRes "time";
use Test::More;

my $QUOTA = repo_path('configs/modules/quota.aup');

sub counter_config {
  my ($path) = @_;
  return qq(stores {\n  q = {\n    module = "$QUOTA",\n    path = "$path",\n  },\n}\n);
}

# Runs --check on a config's text; returns the exit code and what was said.
sub check {
  my ($text, %files) = @_;
  my $dir = temp_folder();
  write_file("$dir/$_", $files{$_}) for keys %files;
  my $file = write_file("$dir/c.lua", $text);
  my ($code, undef, $err) = run_sluice('--config', $file, '--check');
  $err =~ s/\Q$dir\E/DIR/g;
  return ($code, $err);
}

subtest 'a config named without its folder, whose store is made by this start, is reloaded' => sub {
  my $s = start_sluice(counter_config('data/q'));
  $s->stop;
  File::Path::remove_tree($s->dir . '/data');
  $s->{command} = [ sluice_binary(), '--config', 'sluice.lua', '--port', 0 ];   # it runs in the config's folder
  $s->start;
  is($s->http(POST => '/q/inputs/plus')->{status}, 200, 'a first event');
  ok($s->reload, 'the same config again') or diag($s->{reload_log});
  is($s->http(GET => '/q/views/hits')->{body}, '1', 'and the store is the same');
  $s->stop;
};

subtest 'files that never end or never begin are refused, not waited for' => sub {
  my $dir = temp_folder();
  mkfifo("$dir/pipe.lua", 0600) or die $!;
  my ($code, undef, $err) = run_sluice('--config', "$dir/pipe.lua", '--port', 0);
  is($code, 1, 'a pipe as config');
  like($err, qr/pipe\.lua: not a regular file/, 'says so');
  mkfifo("$dir/pipe.aup", 0600) or die $!;
  ($code, undef, $err) = run_sluice('--module', "$dir/pipe.aup", '--store', "$dir/s", '--port', 0);
  is($code, 1, 'a pipe as module');
  like($err, qr/pipe\.aup: not a regular file/, 'says so');
  my $config = write_file("$dir/c.lua", qq(require "pipe"\n));
  ($code, undef, $err) = run_sluice('--config', $config, '--check');
  is($code, 1, 'a pipe that is required');
  like($err, qr/c\.lua:1: require: .*pipe\.lua: not a regular file/, 'says so, and where');

  my $s = start_sluice(counter_config('data/q'));
  unlink $s->{config};
  mkfifo($s->{config}, 0600) or die $!;
  ok(!$s->reload, 'a config that has become a pipe is not reloaded');
  is($s->http(GET => '/q/views/hits')->{status}, 200, 'and the server serves');
  $s->stop;
};

subtest 'a config that an editor has just emptied does not empty the server' => sub {
  my $s = start_sluice(counter_config('data/q'));
  ok(!$s->reload("\n"), 'not reloaded');
  like($s->{reload_log}, qr/sluice\.lua: declares nothing: neither stores\{\} nor routes\{\}/, 'with a reason');
  is($s->http(GET => '/q/views/hits')->{status}, 200, 'the store is served');
  $s->stop;
};

subtest 'a store whose files are deleted promises nothing any more' => sub {
  my $s = start_sluice(counter_config('data/q'));
  is($s->http(POST => '/q/inputs/plus')->{status}, 200, 'an event');
  File::Path::remove_tree($s->dir . '/data/q');
  answer_is($s->http(POST => '/q/inputs/plus'), 'the next', status => 503, error => 'stopped');
  answer_is($s->http(GET => '/q/views/hits'), 'and a read', status => 503, error => 'stopped');
  ok($s->reload, 'a reload makes it anew') or diag($s->{reload_log});
  answer_is($s->http(GET => '/q/views/hits'), 'as empty as its folder', status => 200, body => '0');
  is($s->http(POST => '/q/inputs/plus')->{status}, 200, 'and it takes events');
  $s->stop;
};

subtest 'what is wrong with a store is said with the line that declares it' => sub {
  my ($code, $err) = check(qq(-- first\nstores {\n  a = { module = "none.aup", path = "d" },\n}\n));
  is($code, 1, 'no such module');
  like($err, qr{\ADIR/c\.lua:3: store `a`: DIR/none\.aup: No such file}, 'file and line');
  ($code, $err) = check(qq(stores {\n  a = { module = "x.aup", path = "d" },\n  b = { module = "x.aup", path = "./e/../d" } }\n),
    'x.aup' => read_file($QUOTA));
  is($code, 1, 'one folder for two');
  like($err, qr{\ADIR/c\.lua:3: store `b`: its folder is also that of the store `a`}, 'file and line');
  ($code, $err) = check(qq(\nfunction sluice_config_pools()\n  sluice.store { name = "a", module = "none.aup", path = "d" }\nend\n)
    . qq(function sluice_config_routes() end\n));
  like($err, qr{\ADIR/c\.lua:3: store `a`: }, 'of the lower layer too');
  ($code, $err) = check(qq(require "more"\n), 'more.lua' => qq(\nstores { a = { module = "none.aup", path = "d" } }\n));
  like($err, qr{\ADIR/more\.lua:2: store `a`: }, 'and of a file that is required');
};

subtest 'a file that requires itself' => sub {
  my ($code, $err) = check(qq(require "c"\n));
  is($code, 1, 'is refused');
  like($err, qr/c\.lua:1: require: 'c' requires itself/, 'with the reason') or diag($err);
};

subtest 'a config that never ends is ended by a signal while it is checked' => sub {
  my $dir = temp_folder();
  my $file = write_file("$dir/c.lua", "sluice.log('begun')\nwhile true do end\n");
  my $s = start_sluice(counter_config('data/q'));   # a server object to borrow: its start line never comes from a check
  $s->stop;
  pipe my $err, my $err_w or die $!;
  my $pid = Sluice::fork_exec([ sluice_binary(), '--config', $file, '--check' ], '/dev/null', $err_w, $dir, {});
  close $err_w;
  my $line = readline $err;
  like($line, qr/begun/, 'it runs');
  kill INT => $pid;
  my $status = Sluice::wait_pid($pid, time + 3);
  is(($status // 0) & 127, POSIX::SIGINT(), 'Ctrl-C ends it at once');
  kill KILL => $pid unless defined $status;
};

subtest 'limits of the shell are met with a sentence, not with the end of the process' => sub {
  my $dir = temp_folder();
  # A sanitizer opens descriptors of its own; without any left it reports what is not there. The plain build looks.
  for my $files ($ENV{SLUICE_SANITIZED} ? () : 8 .. 40) {
    my $pid = Sluice::fork_exec([ '/bin/sh', '-c', "ulimit -n $files; exec \"\$@\"", 'sh', sluice_binary(), '--module', $QUOTA,
      '--store', "$dir/s", '--port', 0, '--threads', 2 ], "$dir/out", "$dir/err", $dir, {});
    my $status;
    until (defined $status || -s "$dir/out") { $status = Sluice::wait_pid($pid, time + 0.05) }
    if (!defined $status) { kill TERM => $pid; is(Sluice::wait_pid($pid, time + timeout_s()), 0, "$files files: it serves"); last }
    is($status, 1 << 8, "$files files: it does not start") or diag(read_file("$dir/err"));
    like(read_file("$dir/err"), qr/^sluice: .*(?:open files|ulimit -n)[^\n]*\n\z/m, 'and says why');
  }
  unlink "$dir/out";

  my $blobs = repo_path('configs/modules/blobs.aup');
  my $s = start_module($blobs);
  $s->stop;
  $s->{command} = [ '/bin/sh', '-c', 'ulimit -f 10240; exec "$@"', 'sh', @{ $s->{command} } ];   # in 512 byte blocks
  $s->start;
  my %seen;
  $seen{ $s->http(PUT => "/objects/k$_", headers => [ 'If-None-Match' => '*' ], body => 'x' x 600_000)->{status} }++ for 1 .. 12;
  ok($seen{507}, 'a file at its limit is a full store') or diag(explain \%seen);
  is($s->http(GET => '/objects/k1')->{status}, 200, 'which can be read');
  $s->stop;
};

subtest 'a reload that finds no descriptors fails, and the server goes on' => sub {
  my $s = start_sluice(counter_config('data/q'));
  $s->stop;
  $s->{command} = [ '/bin/sh', '-c', 'ulimit -n 64; exec "$@"', 'sh', @{ $s->{command} }, '--threads', 1 ];
  $s->start;
  my $ask = "GET /q/views/hits HTTP/1.1\r\nHost: t\r\n\r\n";
  my @c;
  while (@c < 64) {
    push @c, $s->client;
    $c[-1]->send($ask);
    $c[-1]->more(time + 0.5) or last;                      # accepted by the kernel alone
  }
  cmp_ok(scalar @c, '>', 20, 'all descriptors are taken');
  my ($failed, $done) = (0, 0);
  until ($done || @c < 5) {
    splice @c, -2;                                         # goes, and its descriptor with it
    my $stores = join '', map { qq(  s$_ = { module = "$QUOTA", path = "data/s$_" },\n) } 1 .. 3;
    $s->reload(counter_config('data/q') =~ s/\}\n\z/$stores}\n/r) ? $done++ : $failed++;
  }
  ok($failed && $done, "reloads failed ($failed) until there was room");
  $c[0]->{in} = '';
  $c[0]->send($ask);
  $c[0]->expect(qr/ 200 /, 'and requests were served all the while');
  @c = ();
  $s->stop;
} unless $ENV{SLUICE_SANITIZED};

subtest 'what a route says in a mistake does not fill the log' => sub {
  my $s = start_sluice(<<'LUA');
routes { map = {
  ["/long"] = route_lua { f = function() return function() error(("z"):rep(1000000)) end end },
  ["/list"] = route_lua { f = function() return function() return 200, "x", { A = { {} } } end end },
} }
LUA
  answer_is($s->http(GET => '/long'), 'a long error', status => 500, error => 'lua');
  $s->wait_log(qr/bytes more\n/);
  cmp_ok(length $s->log, '<', 20_000, 'is cut in the log');
  answer_is($s->http(GET => '/list'), 'a header that is a list of tables', status => 500, error => 'lua');
  $s->wait_log(qr/list of header values/);
  $s->stop;
};

done_testing;
