# Starts the real binary for one test, talks to it byte by byte, and ends what it started.
#
#   my $s = start_sluice(<<'LUA', NAME => 'world');      # or a file's name; @NAME@ in it is replaced
#   routes { default = route_lua { f = function() return function() return "hello @NAME@" end end } }
#   LUA
#   is($s->http(GET => '/x')->{body}, 'hello world');
#   my $c = $s->client;  $c->send("GET / HTTP/1.1\r\nHost: t\r\n\r\n");  $c->expect(qr{^HTTP/1\.1 200 });
#   $s->stop;                                            # SIGTERM: drains, exit 0, counters
#
# Nothing here sleeps for a fixed time: every wait is a select() over sockets and the server's own standard
# error, or a waitpid, with one deadline (SLUICE_TEST_TIMEOUT seconds, 20 unless set).
package Sluice;
use strict;
use warnings;
use Carp qw(croak);
use Cwd qw(abs_path);
use Errno qw(EAGAIN EWOULDBLOCK EINTR);
use Exporter 'import';
use Fcntl qw(F_GETFL F_SETFL O_NONBLOCK);
use File::Basename qw(dirname);
use File::Path qw(make_path);
use File::Temp qw(tempdir);
use JSON::PP ();
use POSIX ();
use Socket;
use Test::More ();
use Time::HiRes qw(time);

our @EXPORT = qw(start_sluice start_module run_sluice write_file read_file repo_path timeout_s json sluice_binary
                 aupc_binary sluicectl_binary run_sluicectl temp_folder answer_is);

my $REPO = abs_path(dirname(__FILE__) . '/../..');
my %live;                                   # pid -> server object, weakly interesting only to END and to wait_for()
my $TEST_PID = $$;

$SIG{PIPE} = 'IGNORE';
$SIG{$_} = sub { exit 1 } for qw(TERM INT HUP);    # so that END runs and nothing is left behind

sub timeout_s   { $ENV{SLUICE_TEST_TIMEOUT} || 20 }
sub repo_path   { join '/', $REPO, @_ }
sub json        { JSON::PP->new->utf8->allow_nonref->decode($_[0]) }
sub temp_folder { tempdir('sluice-XXXXXX', TMPDIR => 1, CLEANUP => 1) }

sub sluice_binary { find_binary('SLUICE', 'proxy/sluice', 'sluice') }
sub aupc_binary   { find_binary('AUPC', 'tools/aupc', 'aupc') }
sub sluicectl_binary { find_binary('SLUICECTL', 'tools/sluicectl', 'sluicectl') }

# The environment names the binary (meson does); by hand, the usual build folder is looked into.
sub find_binary {
  my ($variable, @places) = @_;
  return $ENV{$variable} if $ENV{$variable};
  for my $build (qw(build build-release)) {
    for my $place (@places) { my $path = repo_path($build, $place); return $path if -x $path && !-d $path }
  }
  croak "set $variable to the binary, or build into build/";
}

sub write_file {
  my ($path, $bytes) = @_;
  make_path(dirname($path));
  # By rename, so that a reload never reads half of it.
  open my $f, '>:raw', "$path.new" or croak "$path: $!";
  print $f $bytes;
  close $f or croak "$path: $!";
  rename "$path.new", $path or croak "$path: $!";
  return $path;
}

sub read_file {
  my ($path) = @_;
  open my $f, '<:raw', $path or croak "$path: $!";
  local $/;
  return scalar <$f>;
}

# start_sluice(TEXT or FILE, NAME => value...)
# Upper-case names are put into the text in place of @NAME@; @DIR@ is the server's folder and @REPO@ the
# repository. Lower-case names are options:
#   dir     => folder to use (kept; else a temporary one)      args => further command line arguments
#   files   => { 'modules/x.aup' => text } written beside the config     env => { NAME => value }
sub start_sluice {
  my ($config, %with) = @_;
  my $dir  = delete $with{dir} || temp_folder();
  my $self = new_server($dir, \%with);
  $self->{config} = "$dir/sluice.lua";
  $self->{vars}   = { map { $_ => $with{$_} } grep { /^[A-Z]/ } keys %with };
  $self->write_config($config);
  $self->{command} = [sluice_binary(), '--config', $self->{config}, '--port', '0', @{ $with{args} || [] }];
  $self->{command} = [sluice_binary(), '--config', $self->{config}, @{ $with{args} || [] }] if $with{own_port};
  return $self->start;
}

# The module interface with no config at all. The module is a file's name or, when it has line ends, its text.
sub start_module {
  my ($module, %with) = @_;
  my $dir = delete $with{dir} || temp_folder();
  my $self = new_server($dir, \%with);
  $module = write_file("$dir/module.aup", $module) if $module =~ /\n/;
  $self->{module} = $module;
  $self->{command} = [sluice_binary(), '--module', $module, '--store', "$dir/store", '--port', '0', @{ $with{args} || [] }];
  return $self->start;
}

# Compares one answer with what the contract says of it, as one test: status => 200, error => 'none' (X-Pure-Error),
# body => bytes or pattern, and any header by its lower-case name (undef: it must not be there).
sub answer_is {
  my ($got, $name, %want) = @_;
  local $Test::Builder::Level = $Test::Builder::Level + 1;
  my @off;
  push @off, "status $got->{status}, not $want{status}" if exists $want{status} && $got->{status} != $want{status};
  $want{'x-pure-error'} = delete $want{error} if exists $want{error};
  for my $what (grep { $_ ne 'status' } sort keys %want) {
    my ($is, $should) = ($what eq 'body' ? $got->{body} : $got->{headers}{$what}, $want{$what});
    next if !defined $should && !defined $is;
    next if defined $should && defined $is && (ref $should ? $is =~ $should : $is eq $should);
    push @off, "$what " . (defined $is ? "'$is'" : 'is not there') . ', not ' . (defined $should ? "'$should'" : 'absent');
  }
  Test::More::ok(!@off, $name) or Test::More::diag(join "\n", @off, $got->{head} . substr $got->{body}, 0, 300);
  return !@off;
}

# Runs the binary to its end. Returns its exit code (or -signal), standard output and standard error.
sub run_sluice {
  my (@args) = @_;
  return run_command(sluice_binary(), @args);
}

sub run_sluicectl { return run_command(sluicectl_binary(), @_) }

sub run_command {
  my (@command) = @_;
  my $dir = temp_folder();
  my $pid = fork_exec(\@command, "$dir/out", "$dir/err", undef, {});
  my $status = wait_pid($pid, time + timeout_s());
  if (!defined $status) { kill KILL => $pid; waitpid $pid, 0; croak "@command did not end" }
  my $code = $status & 127 ? -($status & 127) : $status >> 8;
  return ($code, read_file("$dir/out"), read_file("$dir/err"));
}

# ------------------------------------------------------------------------------------------------- the server

sub new_server {
  my ($dir, $with) = @_;
  my $files = $with->{files} || {};
  write_file("$dir/$_", $files->{$_}) for keys %$files;
  return bless { dir => $dir, env => $with->{env} || {}, log => '' }, 'Sluice::Server';
}

sub fork_exec {
  my ($command, $out, $err, $dir, $env) = @_;
  my $pid = fork // croak "fork: $!";
  return $pid if $pid;
  # The child. It dies with the test, also when the test itself is killed (prctl PR_SET_PDEATHSIG).
  my $prctl = { x86_64 => 157, aarch64 => 167 }->{ (POSIX::uname())[4] };
  syscall($prctl, 1, 9, 0, 0, 0) if $prctl;
  $SIG{$_} = 'DEFAULT' for qw(PIPE TERM INT HUP);
  open STDIN, '<', '/dev/null';
  open STDOUT, '>', $out or POSIX::_exit(126) unless ref $out;
  open STDERR, '>', $err or POSIX::_exit(126) unless ref $err;
  if (ref $out) { POSIX::dup2(fileno $out, 1) }
  if (ref $err) { POSIX::dup2(fileno $err, 2) }
  chdir $dir if defined $dir;
  @ENV{ keys %$env } = values %$env;
  { no warnings 'exec'; exec { $command->[0] } @$command; }
  print STDERR "cannot run $command->[0]: $!\n";
  POSIX::_exit(127);
}

# waitpid with a deadline, woken by SIGCHLD: sigsuspend-like through select's EINTR, and never later than 20 ms.
sub wait_pid {
  my ($pid, $deadline) = @_;
  local $SIG{CHLD} = sub { };
  while (1) {
    my $got = waitpid $pid, POSIX::WNOHANG();
    return $? if $got == $pid;
    return undef if time > $deadline;
    $_->pump for values %live;
    select undef, undef, undef, 0.02;
  }
}

# Waits until one of the handles is readable; meanwhile every live server's standard error is read, so that a
# server that logs a lot never blocks. Returns the readable handles; an empty list when the deadline passed.
sub wait_readable {
  my ($deadline, @handles) = @_;
  while (1) {
    my $bits = '';
    vec($bits, fileno $_, 1) = 1 for @handles;
    my @logs = grep { $_->{err} } values %live;
    vec($bits, fileno $_->{err}, 1) = 1 for @logs;
    my $left = $deadline - time;
    return if $left < 0;
    my $n = select my $ready = $bits, undef, undef, $left;
    if ($n < 0) { next if $! == EINTR; croak "select: $!" }
    return if $n == 0;
    for my $s (@logs) { $s->pump if vec $ready, fileno $s->{err}, 1 }
    my @ready = grep { vec $ready, fileno $_, 1 } @handles;
    return @ready if @ready || !@handles;
  }
}

END {
  if ($$ == $TEST_PID) {
    my $status = $?;
    for my $s (values %live) { kill KILL => $s->{pid}; waitpid $s->{pid}, 0 }
    $? = $status;
  }
}

package Sluice::Server;
use Carp qw(croak);
use Time::HiRes qw(time);

sub start {
  my ($self) = @_;
  pipe my $out, my $out_w or croak "pipe: $!";
  pipe my $err, my $err_w or croak "pipe: $!";
  fcntl $err, 1031, 1 << 20;                # F_SETPIPE_SZ; a refusal costs nothing
  @$self{qw(log ended exit ready)} = ('', 0, undef, undef);
  $self->{pid} = Sluice::fork_exec($self->{command}, $out_w, $err_w, $self->{dir}, $self->{env});
  close $_ for $out_w, $err_w;
  for ($out, $err) { my $flags = fcntl $_, Fcntl::F_GETFL, 0; fcntl $_, Fcntl::F_SETFL, $flags | Fcntl::O_NONBLOCK }
  @$self{qw(out err)} = ($out, $err);
  $live{ $self->{pid} } = $self;
  my $line = '';
  my $deadline = time + Sluice::timeout_s();
  until ($line =~ /\n/) {
    if (!Sluice::wait_readable($deadline, $out)) { $self->kill9; croak "no start line in time; log:\n$self->{log}" }
    my $n = sysread $out, $line, 4096, length $line;
    next if !defined $n && $!{EAGAIN};
    if (!$n) { $self->reap; croak "it ended at start with $self->{exit}; log:\n$self->{log}" }
  }
  $self->{ready} = Sluice::json($line);
  $self->{port}  = $self->{ready}{port};
  return $self;
}

# Its control socket: sluicectl to its end (exit code, standard output, standard error), and while it goes on.
sub control { $_[0]{ready}{control} }
sub ctl { my ($self, @args) = @_; return Sluice::run_sluicectl('--socket', $self->control, @args) }
sub ctl_start { my ($self, @args) = @_; return Sluice::Process->new(Sluice::sluicectl_binary(), '--socket', $self->control, @args) }

sub pid  { $_[0]{pid} }
sub port { $_[0]{port} }
sub dir  { $_[0]{dir} }
sub log  { $_[0]->pump; $_[0]{log} }
sub base { "http://127.0.0.1:$_[0]{port}" }

# Reads what is there of standard error.
sub pump {
  my ($self) = @_;
  return unless $self->{err};
  while (1) {
    my $n = sysread $self->{err}, $self->{log}, 65536, length $self->{log};
    if (!defined $n) { return if $!{EAGAIN} || $!{EINTR}; last }
    last if $n == 0;
  }
  close delete $self->{err};
}

# Waits until the log, from offset `from` (0), matches. Returns the offset behind the match.
sub wait_log {
  my ($self, $pattern, $from) = @_;
  my $deadline = time + Sluice::timeout_s();
  while (1) {
    pos($self->{log}) = $from // 0;
    return pos $self->{log} if $self->{log} =~ /$pattern/g;
    croak "it ended without logging $pattern; log:\n$self->{log}" unless $self->{err};
    my $before = length $self->{log};
    Sluice::wait_readable_logs($deadline);
    croak "not logged in time: $pattern; log:\n$self->{log}" if time > $deadline && length $self->{log} == $before;
  }
}

sub Sluice::wait_readable_logs {
  my ($deadline) = @_;
  my @logs = grep { $_->{err} } values %live;
  my $bits = '';
  vec($bits, fileno $_->{err}, 1) = 1 for @logs;
  my $left = $deadline - time;
  select my $ready = $bits, undef, undef, $left > 0 ? $left : 0;
  $_->pump for @logs;
}

# Puts a config (text, or a file's name) where the running server reads it.
sub write_config {
  my ($self, $config) = @_;
  $config = Sluice::read_file($config) if $config !~ /\n/;
  my %vars = (%{ $self->{vars} || {} }, DIR => $self->{dir}, REPO => Sluice::repo_path());
  $config =~ s/\@([A-Z][A-Z0-9_]*)\@/exists $vars{$1} ? $vars{$1} : croak("no value for \@$1\@")/ge;
  Sluice::write_file($self->{config}, $config);
}

# SIGHUP with a new config (undef: the same file); waits for the log line that ends the reload. True: it is live.
our $RELOADED      = qr/reload(?:ed\b| done| succeeded)/;
our $RELOAD_FAILED = qr/reload (?:failed|refused)|not reloaded/;
sub reload {
  my ($self, $config) = @_;
  $self->write_config($config) if defined $config;
  my $from = length $self->log;
  $self->signal('HUP');
  my $end = $self->wait_log(qr/($RELOADED|$RELOAD_FAILED)[^\n]*\n/, $from);
  $self->{reload_log} = substr $self->{log}, $from, $end - $from;
  return $self->{reload_log} !~ $RELOAD_FAILED;
}

sub signal { my ($self, $name) = @_; kill $name => $self->{pid} or croak "kill: $!" }

# Collects the exit code: a number, or the negative of a signal's.
sub reap {
  my ($self, $seconds) = @_;
  return $self->{exit} if $self->{ended};
  my $status = Sluice::wait_pid($self->{pid}, time + ($seconds // Sluice::timeout_s()));
  return undef unless defined $status;
  delete $live{ $self->{pid} };
  $self->pump;
  $self->{ended} = 1;
  return $self->{exit} = $status & 127 ? -($status & 127) : $status >> 8;
}

# Asks it to end and waits for it. Returns the counters of its last line; tests that it drained and ended with 0.
sub stop {
  my ($self, $signal) = @_;
  local $Test::Builder::Level = $Test::Builder::Level + 1;
  $self->signal($signal || 'TERM');
  my $exit = $self->reap;
  if (!defined $exit) { $self->kill9; $exit = 'nothing in time' }
  Test::More::is($exit, 0, 'the server drained and ended with 0') or Test::More::diag($self->{log});
  my $c = $self->counters;
  Test::More::is($c->{$_}, 0, "nothing left at the end: $_") for qw(active retained_payload_bytes);
  return $c;
}

# The JSON line of counters that it left on standard error.
sub counters {
  my ($self) = @_;
  my ($line) = $self->log =~ /^(\{.*\})\s*\z/m;
  croak "no line of counters; log:\n$self->{log}" unless defined $line;
  return Sluice::json($line);
}

sub kill9 {
  my ($self) = @_;
  return if $self->{ended};
  kill KILL => $self->{pid};
  $self->reap;
}

sub client {
  my ($self) = @_;
  return Sluice::Client->new($self->{port});
}

# One request on this server's own keep-alive connection, which is made again when it was closed.
sub http {
  my ($self, @request) = @_;
  $self->{http} = $self->client if !$self->{http} || $self->{http}->closed;
  return $self->{http}->http(@request);
}

# Of a server with several listeners: the port of the N-th beyond the first, and a request to some port.
sub more_port { my ($self, $n) = @_; return $self->{ready}{more}[$n]{port} }
sub http_at {
  my ($self, $port, @request) = @_;
  my $c = $self->{http_at}{$port};
  $c = $self->{http_at}{$port} = Sluice::Client->new($port) if !$c || $c->closed;
  return $c->http(@request);
}

# Kilobytes that the process holds, by a name of /proc/PID/status such as VmRSS.
sub memory_kib {
  my ($self, $name) = @_;
  my ($kib) = Sluice::read_file("/proc/$self->{pid}/status") =~ /^\Q$name\E:\s+(\d+) kB/m;
  return $kib;
}

sub DESTROY {
  my ($self) = @_;
  return if $$ != $TEST_PID || $self->{ended} || !$self->{pid} || ${^GLOBAL_PHASE} eq 'DESTRUCT';
  local ($?, $!, $@);
  kill KILL => $self->{pid};
  waitpid $self->{pid}, 0;
  delete $live{ $self->{pid} };
}

# ------------------------------------------------------------------------------------------------- another process
# Its standard output can be waited for with a connection's expect(), quiet() and until_closed().
package Sluice::Process;
use Carp qw(croak);
use Time::HiRes qw(time);
our @ISA = ('Sluice::Client');

sub new {
  my ($class, @command) = @_;
  pipe my $out, my $out_w or croak "pipe: $!";
  my $pid = Sluice::fork_exec(\@command, $out_w, '/dev/null', undef, {});
  close $out_w;
  my $flags = fcntl $out, Fcntl::F_GETFL, 0;
  fcntl $out, Fcntl::F_SETFL, $flags | Fcntl::O_NONBLOCK;
  return bless { fd => $out, in => '', eof => 0, pid => $pid }, $class;
}

sub signal { my ($self, $name) = @_; kill $name => $self->{pid} or croak "kill: $!" }

# Its exit code, or the negative of a signal's.
sub reap {
  my ($self) = @_;
  return $self->{exit} if defined $self->{exit};
  my $status = Sluice::wait_pid($self->{pid}, time + Sluice::timeout_s()) // croak 'it did not end';
  return $self->{exit} = $status & 127 ? -($status & 127) : $status >> 8;
}

sub DESTROY {
  my ($self) = @_;
  return if defined $self->{exit} || $$ != $TEST_PID;
  local ($?, $!, $@);
  kill KILL => $self->{pid};
  waitpid $self->{pid}, 0;
}

# ------------------------------------------------------------------------------------------------- a connection
package Sluice::Client;
use Carp qw(croak);
use Time::HiRes qw(time);
use Socket;

sub new {
  my ($class, $port) = @_;
  socket my $fd, AF_INET, SOCK_STREAM, 0 or croak "socket: $!";
  connect $fd, sockaddr_in($port, INADDR_LOOPBACK) or croak "connect to $port: $!";
  setsockopt $fd, Socket::IPPROTO_TCP(), Socket::TCP_NODELAY(), 1;
  my $flags = fcntl $fd, Fcntl::F_GETFL, 0;
  fcntl $fd, Fcntl::F_SETFL, $flags | Fcntl::O_NONBLOCK;
  return bless { fd => $fd, in => '', eof => 0 }, $class;
}

sub fd { $_[0]{fd} }

# Sends all of it, reading meanwhile, so that two full socket buffers never wait for each other.
sub send {
  my ($self, $bytes) = @_;
  my $deadline = time + Sluice::timeout_s();
  my $at = 0;
  while ($at < length $bytes) {
    my $n = syswrite $self->{fd}, $bytes, 65536, $at;
    if (defined $n) { $at += $n; next }
    if (!$!{EAGAIN}) { $self->{send_error} = $!; return 0 }
    my ($r, $w) = ('', '');
    vec($r, fileno $self->{fd}, 1) = vec($w, fileno $self->{fd}, 1) = 1;
    my $left = $deadline - time;
    croak 'cannot send: the server reads nothing' if $left <= 0;
    select $r, $w, undef, $left;
    $self->fill if vec $r, fileno $self->{fd}, 1;
    return 0 if $self->{eof};
  }
  return 1;
}

# Reads what is there, without waiting.
sub fill {
  my ($self) = @_;
  while (!$self->{eof}) {
    my $n = sysread $self->{fd}, $self->{in}, 262144, length $self->{in};
    if (!defined $n) {
      return if $!{EAGAIN} || $!{EINTR};
      $self->{reset} = "$!";
      $self->{eof} = 1;
    } elsif ($n == 0) {
      $self->{eof} = 1;
    }
  }
}

# Waits for bytes (or the end) until the deadline. False: nothing came.
sub more {
  my ($self, $deadline) = @_;
  return 0 if $self->{eof};
  return 0 unless Sluice::wait_readable($deadline, $self->{fd});
  $self->fill;
  return 1;
}

# Reads until what came matches; takes it, and what stands before it, away. Returns the match's groups, or the match.
sub expect {
  my ($self, $pattern, $name) = @_;
  local $Test::Builder::Level = $Test::Builder::Level + 1;
  my $deadline = time + Sluice::timeout_s();
  while (1) {
    if ($self->{in} =~ $pattern) {
      my $end = $+[0];
      my @groups = $#- ? map { substr $self->{in}, $-[$_], $+[$_] - $-[$_] } grep { defined $-[$_] } 1 .. $#- : $&;
      substr $self->{in}, 0, $end, '';
      Test::More::pass($name // "expected bytes: $pattern");
      return wantarray ? @groups : $groups[0];
    }
    next if $self->more($deadline);
    Test::More::fail($name // "expected bytes: $pattern");
    Test::More::diag(($self->{eof} ? 'closed' : 'nothing more') . ' after: ' . Data::Dumper->new([$self->{in}])->Useqq(1)->Terse(1)->Dump);
    return;
  }
}

# Tests that nothing comes, and that the connection stays, for so many seconds.
sub quiet {
  my ($self, $seconds) = @_;
  local $Test::Builder::Level = $Test::Builder::Level + 1;
  $self->more(time + $seconds) if $self->{in} eq '';
  Test::More::ok($self->{in} eq '' && !$self->{eof}, 'nothing comes') or Test::More::diag("got: $self->{in}");
}

# Waits for the end of the connection. Returns what was left unread; undef when it stays open.
sub until_closed {
  my ($self) = @_;
  my $deadline = time + Sluice::timeout_s();
  1 while !$self->{eof} && $self->more($deadline);
  return undef unless $self->{eof};
  my $rest = $self->{in};
  $self->{in} = '';
  return $rest;
}

# True when the server has closed and nothing is left to read.
sub closed {
  my ($self) = @_;
  $self->fill;
  return $self->{eof} && $self->{in} eq '';
}

sub close { my ($self) = @_; CORE::close $self->{fd} if $self->{fd}; $self->{eof} = 1 }

# Ends our side only.
sub finish { my ($self) = @_; shutdown $self->{fd}, 1 }

# Bytes of one request. Headers are a list of pairs; Host and the body's length are added unless given.
sub request {
  my ($method, $target, %with) = @_;
  my @headers = @{ $with{headers} || [] };
  my $bytes = "$method $target HTTP/1.1\r\n";
  my %given;
  for (my $i = 0; $i < @headers; $i += 2) { $given{ lc $headers[$i] } = 1 }
  $bytes .= "Host: t\r\n" unless $given{host};
  for (my $i = 0; $i < @headers; $i += 2) { $bytes .= "$headers[$i]: $headers[$i + 1]\r\n" }
  $bytes .= 'Content-Length: ' . length($with{body}) . "\r\n"
    if defined $with{body} && !$given{'content-length'} && !$given{'transfer-encoding'};
  return "$bytes\r\n" . ($with{body} // '');
}

# http(METHOD => target, headers => [...], body => bytes): sends it and reads its answer.
sub http {
  my ($self, $method, $target, %with) = @_;
  $self->send(request($method, $target, %with));
  return $self->answer($method);
}

# Reads one whole answer. Returns { status, reason, head, headers => {lower => value}, body }, or one with status 0.
sub answer {
  my ($self, $method) = @_;
  my $deadline = time + Sluice::timeout_s();
  my $end;
  while (($end = index $self->{in}, "\r\n\r\n") < 0) {
    next if $self->more($deadline);
    return { status => 0, reason => $self->{eof} ? 'closed' : 'no answer', headers => {}, body => $self->{in}, head => '' };
  }
  my $head = substr $self->{in}, 0, $end + 4, '';
  my ($status, $reason) = $head =~ m{\AHTTP/1\.1 (\d\d\d) ([^\r\n]*)\r\n} or croak "not an answer: $head";
  my %headers;
  while ($head =~ /^([^:\r\n]+):[ \t]*([^\r\n]*?)[ \t]*\r\n/mg) {
    my ($n, $v) = (lc $1, $2);
    $headers{$n} = exists $headers{$n} ? "$headers{$n}, $v" : $v;
  }
  my %answer = (status => $status + 0, reason => $reason, head => $head, headers => \%headers, body => '');
  return \%answer if ($method // '') eq 'HEAD' || $status == 204 || $status == 304 || $status < 200;
  my $length = $headers{'content-length'};
  croak "an answer without Content-Length: $head" unless defined $length;
  while (length $self->{in} < $length) {
    next if $self->more($deadline);
    return { %answer, status => 0, reason => 'cut short', body => $self->{in} };
  }
  $answer{body} = substr $self->{in}, 0, $length, '';
  return \%answer;
}

require Data::Dumper;
1;
