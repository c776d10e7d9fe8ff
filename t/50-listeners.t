# A reload changes where it listens and how many workers there are: what stays is not touched, what cannot be bound changes
# nothing, and nobody who has connected is lost.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use Sluice;
use Socket;
use Test::More;
use Time::HiRes qw(time);

my $ROUTES = <<'LUA';
stores { quota = { module = "@REPO@/configs/modules/quota.aup", path = "data/quota" } }
for _, tag in ipairs { "admin", "other" } do
  if has[tag] then routes { tag = tag, map = { ["/who"] = function(r) return tag .. " " .. r:tag() end } } end
end
routes { map = {
  ["/who"] = function(r) return "plain" .. (r:tag() or "") end,
  ["/server/:name"] = function(r) return tostring(sluice.server_stats("server")[r:param("name")]) end,
  ["/wait"] = route_lua { f = function(rctx) return function() rctx:sleep(0.3) return "waited" end end },
  ["/busy"] = function() local t = sluice.time_mono_millis() while sluice.time_mono_millis() < t + 400 do end return "done" end,
} }
LUA

# A config that listens on these, each "HOST:PORT" or "HOST:PORT TAG".
sub listens {
  my (@on) = @_;
  my $more = ref $on[-1] ? ${ pop @on } : '';
  my %has = map { /\S+ (\S+)/ ? ($1 => 1) : () } @on;
  my $list = join ', ', map { /(\S+) (\S+)/ ? qq({ "$1", tag = "$2" }) : qq("$_") } @on;
  my $has = join ', ', map { "$_ = true" } sort keys %has;
  return "settings {\n  listen = { $list },\n  $more\n}\nlocal has = { $has }\n$ROUTES";
}

my $s = start_sluice(listens('127.0.0.1:0', '127.0.0.1:0 admin', \ 'workers = 2'), own_port => 1);
my ($plain, $admin) = ($s->port, $s->more_port(0));
my $who = sub { Sluice::Client->new($_[0])->http(GET => '/who')->{body} };
# The port that the last reload says for what it matches.
my $said = sub { my ($port) = $s->{reload_log} =~ /reload: listening on \S+ port (\d+)$_[0]\n/; $port };
# Connects until that is refused, which a client that comes in between hears when it asks again.
sub becomes_refused {
  my ($port) = @_;
  my $until = time + timeout_s();
  while (time < $until) {
    socket my $fd, AF_INET, SOCK_STREAM, 0 or die "socket: $!";
    return 1 if !connect($fd, sockaddr_in($port, INADDR_LOOPBACK)) && $!{ECONNREFUSED};
  }
  return 0;
}

subtest 'what stays keeps its port, what is new is listened on' => sub {
  is($who->($plain), 'plain', 'the first');
  is($who->($admin), 'admin admin', 'the second, by its tag');
  my $kept = Sluice::Client->new($admin);
  is($kept->http(GET => '/who')->{body}, 'admin admin', 'a connection from before');
  ok($s->reload(listens('127.0.0.1:0', '127.0.0.1:0 admin', '127.0.0.1:0 other', \ 'workers = 2')), 'one more');
  my $other = $said->(', tag other');
  ok($other, 'the log says where') or diag $s->{reload_log};
  unlike($s->{reload_log}, qr/port (?:$plain|$admin)\b/, 'and nothing of those that stay');
  is($who->($other), 'other other', 'it serves');
  is($who->($plain), 'plain', 'as do those from before');
  is($who->($admin), 'admin admin', 'both');
  is($kept->http(GET => '/who')->{body}, 'admin admin', 'and the connection');
};

subtest 'a tag changes on the same socket; connections keep the one that they came with' => sub {
  my $kept = Sluice::Client->new($admin);
  is($kept->http(GET => '/who')->{body}, 'admin admin', 'before');
  ok($s->reload(listens("127.0.0.1:$plain", "127.0.0.1:$admin other", \ 'workers = 2')), 'by its number, with another tag');
  like($s->{reload_log}, qr/listening on 127\.0\.0\.1 port $admin, tag other\n/, 'which is said');
  is($who->($admin), 'other other', 'a new connection');
  is($kept->http(GET => '/who')->{body}, 'plainadmin', 'an old one: that tag has no routes of its own any more');
  is($who->($plain), 'plain', 'the first is the same, in other words');
};

subtest 'a listener that is removed: who has connected is served, also who still waits to be accepted' => sub {
  my $kept = Sluice::Client->new($admin);
  is($kept->http(GET => '/who')->{body}, 'other other', 'a connection');
  # Both workers are busy: those who connect now wait in the queues.
  my @busy = map { Sluice::Client->new($plain) } 1 .. 12;
  $_->send(Sluice::Client::request(GET => '/busy')) for @busy;
  my @waiting = map { Sluice::Client->new($admin) } 1 .. 40;
  ok($s->reload(listens("127.0.0.1:$plain", \ 'workers = 2')), 'removed');
  like($s->{reload_log}, qr/listening no more on 127\.0\.0\.1 port $admin, tag other\n/, 'which is said');
  is(scalar(grep { $_->http(GET => '/who')->{body} eq 'plainother' } @waiting), 40, 'all that had connected are answered');
  is($kept->http(GET => '/who')->{body}, 'plainother', 'so is the one from before');
  ok(becomes_refused($admin), 'then nobody listens there');
  is($kept->http(GET => '/who')->{body}, 'plainother', 'connections live on');
  is($_->answer->{body}, 'done', 'the busy one ends') for $busy[0];
};

subtest 'an address that comes back at once goes on' => sub {
  ok($s->reload(listens("127.0.0.1:$plain", "127.0.0.1:$admin admin", \ 'workers = 2')), 'added');
  for my $round (1 .. 3) {
    ok($s->reload(listens("127.0.0.1:$plain", \ 'workers = 2')), 'removed');
    ok($s->reload(listens("127.0.0.1:$plain", "127.0.0.1:$admin admin", \ 'workers = 2')), 'and back');
    is($who->($admin), 'admin admin', 'served');
  }
};

subtest 'what cannot be bound changes nothing' => sub {
  socket my $taken, AF_INET, SOCK_STREAM, 0 or die "socket: $!";
  bind $taken, sockaddr_in(0, INADDR_LOOPBACK) or die "bind: $!";
  listen $taken, 1 or die "listen: $!";
  my $port = (sockaddr_in(getsockname $taken))[0];
  my $new = listens("127.0.0.1:$plain", '127.0.0.1:0', "127.0.0.1:$port", \ 'workers = 2') =~ s/stores \{/stores { more = { module = "\@REPO\@\/configs\/modules\/quota.aup", path = "data\/more" },/r;
  ok(!$s->reload($new), 'a port of another process');
  like($s->{reload_log}, qr/reload failed: \S*sluice\.lua:2: cannot listen on 127\.0\.0\.1:$port: port $port is in use; generation/, 'is refused with the line and the reason');
  unlike($s->{reload_log}, qr/listening/, 'what could be bound is not listened on');
  ok(!-e $s->dir . '/data/more', 'no store was opened');
  is($who->($admin), 'admin admin', 'nothing was removed');
  ok(!$s->reload(listens("127.0.0.1:$plain", "127.0.0.1:$plain admin", \ 'workers = 2')), 'an address twice');
  like($s->{reload_log}, qr/sluice\.lua:2: cannot listen on 127\.0\.0\.1:$plain: it is listened on already, as 127\.0\.0\.1:$plain;/, 'is refused too');
  ok(!$s->reload(listens("192.0.2.1:0", \ 'workers = 2')), 'an address that is not ours');
  like($s->{reload_log}, qr/sluice\.lua:2: cannot listen on 192\.0\.2\.1:0: /, 'says so');
  is($who->($plain), 'plain', 'the old one serves');
};

subtest 'all addresses in place of one, and back' => sub {
  ok($s->reload(listens("0.0.0.0:$plain", "127.0.0.1:$admin admin", \ 'workers = 2')), 'the same port, everywhere');
  is($who->($plain), 'plain', 'served, at the latest when the old one has gone');
  is($who->($plain), 'plain', 'and again') for 1 .. 3;
  ok($s->reload(listens("127.0.0.1:$plain", "127.0.0.1:$admin admin", \ 'workers = 2')), 'back');
  is($who->($plain), 'plain', 'served');
};

subtest 'workers come and go' => sub {
  my @on = ("127.0.0.1:$plain", "127.0.0.1:$admin admin");
  my $threads = sub { Sluice::Client->new($plain)->http(GET => '/server/threads')->{body} };
  is($threads->(), 2, 'two');
  ok($s->reload(listens(@on, \ 'workers = 5')), 'more');
  like($s->{reload_log}, qr/reload: workers 2 -> 5\n/, 'which is said');
  is($threads->(), 5, 'five');
  my @many = map { Sluice::Client->new($plain) } 1 .. 60;
  is(scalar(grep { $_->http(GET => '/who')->{body} eq 'plain' } @many), 60, 'all are served');
  $many[$_]->send(Sluice::Client::request(GET => '/wait')) for 0 .. 19;
  ok($s->reload(listens(@on, \ 'workers = 1')), 'fewer');
  is($threads->(), 1, 'one');
  is(scalar(grep { $many[$_]->answer->{body} eq 'waited' } 0 .. 19), 20, 'requests of those that end are answered');
  my ($closed, $same) = (0, 0);
  for my $c (@many[20 .. 59]) {
    my $got = $c->http(GET => '/who');
    $closed++ if $got->{body} eq 'plain' && ($got->{headers}{connection} // '') eq 'close';
    $same++ if $got->{body} eq 'plain' && !defined $got->{headers}{connection};
  }
  is($closed + $same, 40, 'so is the next request of each connection');
  cmp_ok($closed, '>', 0, "$closed of them then close");
  my @after = map { Sluice::Client->new($plain) } 1 .. 40;
  is(scalar(grep { $_->http(GET => '/who')->{body} eq 'plain' } @after), 40, 'new connections come to the one that is left');
  ok($s->reload(listens(@on, \ 'workers = 4')), 'more again');
  is($threads->(), 4, 'four');
  is(scalar(grep { Sluice::Client->new($plain)->http(GET => '/who')->{body} eq 'plain' } 1 .. 40), 40, 'all are served');
  # While some still wind down, they are wanted again.
  my @held = map { Sluice::Client->new($plain) } 1 .. 40;
  $_->http(GET => '/who') for @held;
  ok($s->reload(listens(@on, \ 'workers = 2')), 'fewer');
  ok($s->reload(listens(@on, \ 'workers = 4')), 'and back before the connections have ended');
  is(scalar(grep { my $got = $_->http(GET => '/who'); $got->{body} eq 'plain' && !defined $got->{headers}{connection} } @held), 40, 'which then go on');
  ok(!$s->reload(listens(@on, \ 'workers = 1000')), 'too many');
  like($s->{reload_log}, qr/workers: at most 256, not 1000/, 'are refused');
  ok($s->reload(listens(@on, \ 'workers = 2')), 'two');
};

subtest 'generations end when the last request of theirs has' => sub {
  my $alive = sub { Sluice::Client->new($plain)->http(GET => '/server/generations')->{body} };
  my $c = Sluice::Client->new($plain);
  $c->send(Sluice::Client::request(GET => '/wait'));
  is($who->($plain), 'plain', 'it has begun') for 1 .. 2;
  ok($s->reload, 'a reload meanwhile');
  is($c->answer->{body}, 'waited', 'it ends');
  my $until = time + timeout_s();
  1 until $alive->() == 1 || time > $until;
  is($alive->(), 1, 'and its generation');
};

my $c = $s->stop;
is($c->{reload_failures}, 4, 'failures are counted');
is($c->{$_}, 0, "level at the end: $_") for grep { /in_use$/ } sort keys %$c;

subtest "a flag's word goes over the file's" => sub {
  my $f = start_sluice(listens('127.0.0.1:1', '127.0.0.1:0 admin', \ 'workers = 1'), args => [ '--threads', '2' ]);
  my ($first, $second) = ($f->port, $f->more_port(0));
  isnt($first, 1, 'at start');
  ok($f->reload(listens('127.0.0.1:2', '127.0.0.1:0 admin', \ 'workers = 3')), 'the file changes');
  is($who->($first), 'plain', 'and after a reload');
  is($who->($second), 'admin admin', 'the other listener stays');
  is($f->http(GET => '/server/threads')->{body}, 2, 'threads too');
  $f->stop;
};
done_testing;
