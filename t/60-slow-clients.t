# Clients that are slow, silent, too many or gone: each limit of time and number, and that nobody else notices.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use Sluice;
use Test::More;
use Time::HiRes qw(time);

my $STORES = <<'LUA';
stores {
  quota = { module = "@REPO@/configs/modules/quota.aup", path = "data/quota" },
  blobs = { module = "@REPO@/configs/modules/blobs.aup", path = "data/blobs" },
}
LUA
my @NEW = (headers => [ 'If-None-Match', '*' ]);

subtest 'times' => sub {
  my $s = start_sluice("settings { head_timeout = 0.3, body_timeout = 0.3, idle_timeout = 0.6 }\n$STORES");
  my $others = $s->client;

  my $c = $s->client;
  my $begin = time;
  is($c->until_closed, '', 'a client that never says anything is closed without a word');
  cmp_ok(time - $begin, '>=', 0.5, 'after the idle time');

  $c = $s->client;
  $begin = time;
  $c->send("GET /quota/views/hi");
  answer_is($c->answer, 'half a head', status => 408, error => 'timeout', connection => 'close');
  is($c->until_closed, '', 'and closed');
  cmp_ok(time - $begin, '>=', 0.25, 'not before its time');

  note 'a byte now and then does not stretch the time of a head';
  $c = $s->client;
  $begin = time;
  for my $byte (split //, "GET /quota/views/hits HTTP/1.1\r\nX-Slow: " . 'y' x 100) {
    last if !$c->send($byte) || $c->closed || $c->{in} ne '';
    $c->more(time + 0.02);
  }
  cmp_ok(time - $begin, '<', 2, 'it ended long before the last byte');
  answer_is($c->answer, 'with 408', status => 408, error => 'timeout');

  $c = $s->client;
  $c->send("POST /quota/inputs/say HTTP/1.1\r\nHost: t\r\nContent-Length: 10\r\n\r\nabc");
  answer_is($c->answer, 'half a body', status => 408, error => 'timeout', connection => 'close');
  is($c->until_closed, '', 'and closed');

  is($others->closed ? 'closed' : 'open', 'closed', 'the one that idled meanwhile is closed too');
  is($s->http(GET => '/quota/views/motto')->{body}, 'BE KIND (7)', 'nothing half was delivered');
  my $counters = $s->stop;
  cmp_ok($counters->{timeouts}, '>=', 3, "counted: $counters->{timeouts}");
};

subtest 'a client that reads nothing' => sub {
  my $s = start_sluice("settings { drain_timeout = 0.4 }\n$STORES");
  my $large = 'x' x (8 << 20);
  answer_is($s->http(PUT => '/blobs/objects/large', body => $large, @NEW), 'a large document', status => 200);
  my $c = $s->client;
  $c->send(Sluice::Client::request(GET => '/blobs/objects/large') x 4);
  note 'others are served meanwhile';
  is($s->http(GET => '/quota/views/hits')->{status}, 200, "served $_") for 1 .. 20;
  # It reads nothing, so only the counters and the log can say that it was ended; the next answer cannot come whole.
  my $deadline = time + timeout_s();
  my $ended = 0;
  until ($ended || time > $deadline) {
    # A closed peer shows as a failed send; a byte of a next request is harmless.
    $ended = 1 if !$c->send('G');
    select undef, undef, undef, 0.02 if !$ended;
  }
  ok($ended, 'it is ended');
  my $counters = $s->stop;
  cmp_ok($counters->{timeouts}, '>=', 1, 'and counted');
};

subtest 'the whole request has a time' => sub {
  my $s = start_sluice(<<"LUA", args => [ '--timeout-ms', 200 ]);
$STORES
routes { map = {
  ["/never"] = route_lua { methods = { "GET" }, f = function(rctx) return function() rctx:sleep(60) return "late" end end },
  ["/busy"]  = route_lua { methods = { "GET" }, f = function() return function() while true do end end end },
}, default = route_stores {} }
LUA
  my $begin = time;
  answer_is($s->http(GET => '/never'), 'a route that sleeps too long', status => 504, error => 'deadline');
  cmp_ok(time - $begin, '<', 5, 'in time');
  $begin = time;
  my $c = $s->client;
  $c->send(Sluice::Client::request(GET => '/busy'));
  answer_is($c->answer, 'a route that never ends is stopped', status => 500, error => 'lua');
  $s->wait_log(qr/sluice\.lua:\d+/);
  is($s->http(GET => '/quota/views/hits')->{status}, 200, 'and its worker serves again');
  $s->stop;
};

subtest 'too many' => sub {
  my $s = start_module(repo_path('configs/modules/quota.aup'), args => [ '--connections', 8, '--threads', 2 ]);
  my @c = map { $s->client } 1 .. 8;
  is($_->http(GET => '/views/hits')->{status}, 200, 'one of eight') for @c;
  my $more = $s->client;
  $more->send(Sluice::Client::request(GET => '/views/hits'));
  my $answer = $more->answer;
  ok($answer->{status} == 503 || $answer->{status} == 0, "the ninth hears 503 or a close: $answer->{status}");
  is($answer->{headers}{'x-pure-error'}, 'overload', 'and why') if $answer->{status};
  is($_->http(GET => '/views/hits')->{status}, 200, 'the eight go on') for @c;
  $_->close for @c, $more;
  my $deadline = time + timeout_s();
  my $status = 0;
  while ($status != 200 && time < $deadline) { my $c = eval { $s->client } or next; $status = $c->http(GET => '/views/hits')->{status} }
  is($status, 200, 'when they have gone there is room');
  my $counters = $s->stop;
  cmp_ok($counters->{refused_connections}, '>=', 1, 'refusals are counted');
};

subtest 'clients that leave at every point of a request' => sub {
  my $s = start_sluice($STORES);
  my $put = Sluice::Client::request(PUT => '/blobs/objects/gone', body => 'x' x 5000, @NEW);
  for my $at (0, 1, 10, 40, 70, 100, 500, 3000, length($put) - 1, length $put) {
    my $c = $s->client;
    $c->send(substr $put, 0, $at);
    $c->close;
  }
  for (1 .. 50) { my $c = $s->client; $c->send(Sluice::Client::request(POST => '/quota/inputs/plus')); $c->close }
  note 'what was whole is delivered, for the server has read it or not; nothing else is';
  my $deadline = time + timeout_s();
  my $got;
  do { $got = $s->http(GET => '/blobs/objects/gone') } until $got->{status} == 200 || time > $deadline;
  is($got->{body}, 'x' x 5000, 'the one that was whole');
  is($got->{headers}{etag}, '"1"', 'once');
  my $hits = $s->http(GET => '/quota/views/hits')->{body};
  cmp_ok($hits, '<=', 50, "no press counted twice: $hits");
  $s->stop;
};
done_testing;
