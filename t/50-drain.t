# SIGTERM and SIGINT: what was accepted is finished and answered; nothing new is taken; exit 0 and the counters.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use Sluice;
use Socket;
use Test::More;

my $CONFIG = <<'LUA';
stores { quota = { module = "@REPO@/configs/modules/quota.aup", path = "data/quota" } }
routes {
  map = {
    ["/slow"] = route_lua { methods = { "GET", "POST" }, children = { q = "quota" }, f = function(rctx, h)
      local turn = rctx:event(h.q, "turn"):set("amount", 1)
      return function()
        rctx:sleep(0.3)
        local res = rctx:enqueue_and_wait(turn, h.q, 5)
        return res
      end end },
  },
  default = route_stores {},
}
LUA

for my $signal (qw(TERM INT)) {
  subtest $signal => sub {
    my $s = start_sluice($CONFIG);
    is_deeply([ sort grep { /^(?:port|threads)$/ } keys %{ $s->{ready} } ], [qw(port threads)], 'the first line says port and threads');
    my ($slow, $idle, $half) = map { $s->client } 1 .. 3;
    is($idle->http(GET => '/quota/views/level')->{body}, '50', 'one connection idles');
    $half->send("POST /quota/inputs/say HTTP/1.1\r\nHost: t\r\nContent-Length: 4\r\n\r\nab");
    $slow->send(Sluice::Client::request(POST => '/slow', body => ''));
    # An answer on the same server says that the slow one was taken before, for it was sent before.
    is($idle->http(POST => '/quota/inputs/plus')->{status}, 200, 'and serves');
    $s->signal($signal);
    is($idle->until_closed, '', 'the idle one is closed');
    $half->send('cd');
    my $answer = $half->answer;
    is($answer->{status}, 200, 'a request half sent may be finished');
    answer_is($slow->answer, 'the slow one is answered', status => 200, body => '51', connection => 'close');
    is($slow->until_closed, '', 'and closed');
    is($s->reap, 0, 'exit 0');
    my $c = $s->counters;
    is($c->{active}, 0, 'nothing active');
    is($c->{retained_payload_bytes}, 0, 'nothing retained');
    cmp_ok($c->{$_}, '>=', $_ eq 'accepted' ? 3 : 1, "counted: $_ = $c->{$_}") for qw(accepted requests bursts burst_events commits threads);
    ok(exists $c->{$_}, "there is $_") for qw(expired reloads reload_failures);
    eval { Sluice::Client->new($s->port) };
    like($@, qr/connect/, 'nobody listens any more');

    $s->start;
    is($s->http(GET => '/quota/views/level')->{body}, '51', 'what was answered is there');
    is($s->http(GET => '/quota/views/motto')->{body}, 'ABCD (4)', 'all of it');
    $s->stop;
  };
}

# A route that sleeps gives its slot back when its client has gone, also when nothing else happens in that turn or later.
for my $how (qw(FIN RST)) {
  subtest "a client gone by $how" => sub {
    my $s = start_sluice(<<'LUA');
settings { workers = 1 }
routes { map = {
  ["/sleep"] = route_lua { f = function(rctx) return function() rctx:sleep(600) end end },
  ["/ask"] = route_static { body = "here" },
} }
LUA
    my $gone = $s->client;
    $gone->send(Sluice::Client::request(GET => '/sleep'));
    is($s->http(GET => '/ask')->{body}, 'here', 'the route sleeps');
    setsockopt $gone->fd, SOL_SOCKET, SO_LINGER, pack 'ii', 1, 0 if $how eq 'RST';
    $gone->close;
    my $c = $s->stop;
    is($c->{$_->[0]}, $_->[1], "$_->[0] is $_->[1]") for [ route_slots_in_use => 0 ], [ clients_gone => 1 ], [ expired => 1 ];
  };
}
done_testing;
