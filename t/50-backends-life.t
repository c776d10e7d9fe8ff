# How backends come and go: limits, down and up again, clients that leave, reloads, nodes in front of each other.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use Sluice;
use Sluice::Backend;
use Test::More;
use Time::HiRes qw(time);

sub get { my ($path, @fields) = @_; return join("\r\n", "GET $path HTTP/1.1", 'Host: h', @fields) . "\r\n\r\n" }
my %BROKEN = (status => 502, error => 'backend');

# What server_stats("backends") says of one, until `good` is content with it.
sub stats_until {
  my ($s, $label, $good, $name) = @_;
  local $Test::Builder::Level = $Test::Builder::Level + 1;
  my $deadline = time + Sluice::timeout_s();
  my $last;
  while (time < $deadline) {
    $last = json($s->http(GET => '/stats')->{body})->{backends}{$label};
    if ($good->($last)) { pass($name); return $last }
    select undef, undef, undef, 0.01;
  }
  fail($name);
  diag(join ' ', map { "$_=$last->{$_}" } sort keys %$last);
}
my $ROUTES = 'map = { ["/b"] = "b", ["/stats"] = route_stats {} }';

{
  note 'a refused connection does not burn the limit in an instant';
  my $b = mock_backend(listening => 0);
  my $s = start_with_pools("b = { backends = { '@{[$b->place]} b' }, backend_options = { failure_limit = 19, retry_waittime = 60 } }", routes => $ROUTES);
  my $c = $s->client;
  for (1 .. 20) {
    $c->send(get('/b/x'));
    my $a = $c->answer;
    answer_is($a, 'refused', %BROKEN, body => "the backend cannot be connected to\n") if $_ == 20;
  }
  $b->listen;
  $c->send(get('/b/y'));
  my $peer = $b->accept;
  $peer->asked;
  $peer->reply(200, 'up');
  is($c->answer->{body}, 'up', 'once it listens it is used: it was never down');
  $s->stop;
  is($s->counters->{backends}{b}{connect_failures}, 20, 'the attempts are counted');
}

{
  note 'failures spread over time take it down; then requests fail at once, and a probe brings it back';
  my $b = mock_backend(listening => 0);
  my $s = start_with_pools("b = { backends = { '@{[$b->place]} b' }, backend_options = { failure_limit = 2, retry_waittime = 0.2, flap_backoff_max = 0.4 } }",
    routes => $ROUTES);
  my $c = $s->client;
  stats_until($s, 'b', sub { $c->send(get('/b/x')); $c->answer; $_[0]{down} == 1 }, 'it is down');
  stats_until($s, 'b', sub { $c->send(get('/b/x')); my $a = $c->answer; $a->{body} eq "the backend is down\n" && ok($a->{headers}{'retry-after'}, 'Retry-After') }, 'refused at once');
  $b->listen;
  my $peer = $b->accept;
  stats_until($s, 'b', sub { $_[0]{down} == 0 }, 'it is tried without a request, and is not bad any more');
  my $d = $s->client;
  $c->send(get('/b/trial'));
  is($peer->asked->{target}, '/trial', 'one request finds out');
  $d->send(get('/b/other'));
  answer_is($d->answer, 'others do not wait for it', %BROKEN, body => "the backend is down\n");
  $peer->reply(200, 'well');
  is($c->answer->{body}, 'well', 'it is well');
  $d->send(get('/b/other'));
  is($peer->asked->{target}, '/other', 'then all go');
  $peer->reply(200, 'ok');
  is($d->answer->{body}, 'ok', 'as before');
  $s->stop;
  like($s->log, qr/backend b: is down: cannot connect \(Connection refused\); next try in \d+ ms/, 'the log says so');
  like($s->log, qr/backend b: is up again/, 'both ways');
}

{
  note 'one that accepts and never answers is down too; a failed trial waits longer';
  my $b = mock_backend();
  my $s = start_with_pools("b = { backends = { '@{[$b->place]} b' }, backend_options = { failure_limit = 1, retry_waittime = 0.1, read_timeout = 0.1, flap_backoff_ramp = 20, flap_backoff_max = 2 } }",
    routes => $ROUTES);
  my $c = $s->client;
  $c->send(get('/b/x'));
  my $first = $b->accept;
  is($c->answer->{status}, 504, 'no answer');
  my $probe = $b->accept;
  stats_until($s, 'b', sub { $_[0]{down} == 0 }, 'connecting works');
  $c->send(get('/b/y'));
  is($probe->asked->{target}, '/y', 'a trial');
  is($c->answer->{status}, 504, 'fails');
  $c->send(get('/b/z'));
  answer_is($c->answer, 'down again', %BROKEN, body => "the backend is down\n");
  my $again = $b->accept;
  stats_until($s, 'b', sub { $_[0]{down} == 0 }, 'tried again');
  $c->send(get('/b/w'));
  $again->asked;
  $again->reply(200, 'well');
  is($c->answer->{body}, 'well', 'well again');
  $s->stop;
}

{
  note 'down by its description, and not any more';
  my $b = mock_backend();
  my $text = sub { "settings { workers = 1 } pools { b = { backends = { '@{[$b->place]}$_[0]' } } } routes { $ROUTES }\n" };
  my $s = start_sluice($text->(' _down_'));
  answer_is($s->http(GET => '/b/x'), 'it is never asked', %BROKEN, body => "the backend is taken down\n");
  $b->quiet(0.05);
  ok($s->reload($text->('')), 'a reload');
  my $c = $s->client;
  $c->send(get('/b/y'));
  my $peer = $b->accept;
  $peer->asked;
  $peer->reply(200, 'y');
  is($c->answer->{body}, 'y', 'then it is');
  $s->stop;
}

{
  note 'connections are made under load alone, and what is over them waits';
  my $b = mock_backend();
  my $s = start_with_pools("b = { backends = { '@{[$b->place]} b' }, backend_options = { connections = 2, depth_limit = 3 } }", routes => $ROUTES);
  my @c = map { $s->client } 1 .. 4;
  for my $i (1 .. 3) {
    $c[0]->send(get("/b/$i"));
    $b->{only} //= $b->accept;
    $b->{only}->asked;
    $b->{only}->reply(200, $i);
    is($c[0]->answer->{body}, $i, 'one at a time needs one connection');
  }
  $_->send(get('/b/x')) for @c[0 .. 2];
  my @peer = ($b->{only}, $b->accept);
  stats_until($s, 'b', sub { $_[0]{in_flight} == 2 && $_[0]{waiting} == 1 }, 'two in flight, one waits');
  $c[3]->send(get('/b/y'));
  answer_is($c[3]->answer, 'over the depth limit', status => 503, error => 'overload', 'retry-after' => 1);
  $b->quiet(0.05, 'no third connection');
  $_->asked for @peer;
  $peer[0]->reply(200, 'x');
  ok($peer[0]->asked, 'the one that waited goes over the first that is free');
  $_->reply(200, 'x') for @peer;
  is($_->answer->{body}, 'x', 'answered') for @c[0 .. 2];
  $s->stop;
  is($s->counters->{backend_refused}, 1, 'one was refused');
}

{
  note 'a batch of fifty over four connections: each has its own answer, in order';
  my $b = mock_backend();
  my $s = start_with_pools("b = { backends = { '@{[$b->place]} b' }, backend_options = { connections = 4 } }");
  my $c = $s->client;
  $c->send(join '', map { get("/b/$_") } 1 .. 50);
  my @peers = map { $b->accept } 1 .. 4;
  my $left = 50;
  while ($left > 0) {
    my @ready = Sluice::wait_readable(time + Sluice::timeout_s(), map { $_->{fd} } @peers) or last;
    # The last that asked is answered first.
    for my $peer (reverse grep { my $p = $_; grep { $_ == $p->{fd} } @ready } @peers) {
      my $r = $peer->asked or last;
      $peer->reply(200, "answer $r->{target}");
      $left--;
    }
  }
  is(join(' ', map { $c->answer->{body} } 1 .. 50), join(' ', map { "answer /$_" } 1 .. 50), 'all fifty');
  $b->quiet(0.02);
  $s->stop;
  is($s->counters->{backend_connects}, 4, 'four connections');
}

{
  note 'what waits too long for a connection is told so';
  my $b = mock_backend();
  my $s = start_with_pools("b = { backends = { '@{[$b->place]} b' }, backend_options = { connections = 1, connect_timeout = 0.1 } }");
  my ($c, $d) = ($s->client, $s->client);
  $c->send(get('/b/1'));
  my $peer = $b->accept;
  $peer->asked;
  $d->send(get('/b/2'));
  answer_is($d->answer, 'no connection in time', status => 504, error => 'backend_timeout', body => "no connection to the backend was free in time\n");
  $peer->reply(200, '1');
  is($c->answer->{body}, '1', 'the other is answered');
  $s->stop;
}

{
  note 'a client that leaves takes its request with it; a write goes on';
  my $b = mock_backend();
  my $s = start_with_pools("b = { backends = { '@{[$b->place]} b' } }", routes => q{map = {
      ["/b"] = "b", ["/stats"] = route_stats {},
      ["/lua"] = route_lua { children = { b = "b" }, f = function(rctx, h) return function(r)
        rctx:deadline(tonumber(r:query("s")))
        return rctx:enqueue_and_wait(r, h.b)
      end end } }});
  my $c = $s->client;
  $c->send(get('/b/x'));
  my $peer = $b->accept;
  $peer->asked;
  $c->close;
  is($peer->until_closed, '', 'the backend\'s connection ends');
  stats_until($s, 'b', sub { $_[0]{in_flight} == 0 && $_[0]{connections} == 0 }, 'and nothing is in flight');
  $c = $s->client;
  $c->send("POST /b/x HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx");
  $peer = $b->accept;
  $peer->asked;
  my $d = $s->client;                               # of its own, so that a turn passes after the close
  setsockopt $c->{fd}, Socket::SOL_SOCKET(), Socket::SO_LINGER(), pack 'ii', 1, 0;
  $c->close;
  stats_until($s, 'b', sub { $_[0]{in_flight} == 1 }, 'a write is waited for');
  $peer->reply(200, '');
  stats_until($s, 'b', sub { $_[0]{in_flight} == 0 && $_[0]{connections} == 1 }, 'to its end, and the connection is kept');

  note 'so does a deadline of a route';
  $d->send(get('/lua/x?s=0.05'));
  $peer->asked;
  answer_is($d->answer, 'the deadline', status => 504, error => 'deadline');
  is($peer->until_closed, '', 'the backend\'s connection ends');

  note 'little that is left of an answer is read, to keep the connection';
  $d->send(get('/lua/y?s=2'));
  $peer = $b->accept;
  $peer->asked;
  $peer->send("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhalf");
  is($d->answer->{status}, 504, 'the deadline');
  $peer->send('rest');
  $d->send(get('/b/z'));
  is($peer->asked->{target}, '/z', 'the connection is used again');
  $peer->reply(200, 'z');
  is($d->answer->{body}, 'z', 'by a request with its own answer');
  $s->stop;
  is($s->counters->{route_slots_in_use}, 0, 'no slot is in use');
  is($s->counters->{active}, 0, 'no request');
}

{
  note 'a reload keeps connections, state and counters of what did not change';
  my ($b, $other) = (mock_backend(), mock_backend());
  my $text = sub {
    my ($options, $more) = @_;
    return "settings { workers = 1 } pools { b = { backends = { '@{[$b->place]} b' }, backend_options = { $options } } $more } routes { $ROUTES }\n";
  };
  my $s = start_sluice($text->('read_timeout = 10', ''));
  my ($c, $d) = ($s->client, $s->client);
  $c->send(get('/b/1'));
  my $peer = $b->accept;
  $peer->asked;
  $d->send(get('/b/slow'));
  my $slow = $b->accept;
  $slow->asked;
  $peer->reply(200, '1');
  $c->answer;
  my $reload = sub { $s->write_config($text->(@_)); $s->reload };
  $reload->('read_timeout = 10', ", c = { backends = { '@{[$other->place]}' } }");
  $c->send(get('/b/2'));
  is($peer->asked->{target}, '/2', 'unchanged: the same connection');
  $peer->reply(200, '2');
  is($c->answer->{body}, '2', 'goes on');
  is(stats_until($s, 'b', sub { 1 }, 'counters')->{answers}, 2, 'go on as well');
  $reload->('read_timeout = 11', '');
  $c->send(get('/b/3'));
  my $new = $b->accept;
  is($new->asked->{target}, '/3', 'changed: a new connection');
  $new->reply(200, '3');
  is($c->answer->{body}, '3', 'answered');
  $slow->reply(200, 'slow');
  is($d->answer->{body}, 'slow', 'what was in flight ends as it began');
  is($peer->until_closed, '', 'and the old connections are closed');
  is($slow->until_closed, '', 'both');
  is(stats_until($s, 'b', sub { $_[0]{connections} == 1 }, 'one is left')->{answers}, 4, 'counters of one name go on');
  $s->write_config("settings { workers = 1 } routes { $ROUTES }\n" =~ s/\["\/b"\] = "b", //r);
  $s->reload;
  is($new->until_closed, '', 'removed: closed');
  is($s->http(GET => '/b/x')->{status}, 404, 'and gone');
  $s->stop;
}

{
  note 'one that is down stays down over a reload that does not change it';
  my $b = mock_backend(listening => 0);
  my $text = sub { "settings { workers = 1 } pools { b = { backends = { '@{[$b->place]} b' }, backend_options = { failure_limit = 1, retry_waittime = $_[0] } } } routes { $ROUTES }\n" };
  my $s = start_sluice($text->(60));
  $s->http(GET => '/b/x');
  is(stats_until($s, 'b', sub { $_[0]{down} == 1 }, 'down')->{connect_failures}, 1, 'after one attempt');
  $s->reload;
  answer_is($s->http(GET => '/b/x'), 'down', %BROKEN, body => "the backend is down\n");
  $s->write_config($text->(50));
  $s->reload;
  answer_is($s->http(GET => '/b/x'), 'a changed one begins anew', %BROKEN, body => "the backend cannot be connected to\n");
  $s->stop;
}

my $STORE = 'stores { notes = { module = "@REPO@/configs/modules/notes.aup", path = "@DIR@/notes" } }';
{
  note 'nodes in front of each other';
  my $far = start_sluice("settings { workers = 1 } $STORE routes { default = route_stores {} }\n");
  my $near = start_with_pools("far = { backends = { '127.0.0.1:$far->{port} far' } }", routes => q{map = {
      ["/n"] = "far", ["/stats"] = route_stats {},
      ["/lua/:key"] = route_lua { children = { far = "far" }, f = function(rctx, h) return function(r)
        local res = rctx:put_and_wait(h.far, r:param("key"), '{"title":"Lua","version":1}')
        return res:status() .. " " .. tostring(res:revision()) .. " " .. res:error() .. " " .. res:backend()
      end end } }});
  my $doc = '{"title":"One","version":1}';
  my $put = $near->http(PUT => '/n/objects/a', body => $doc, headers => ['If-None-Match' => '*']);
  answer_is($put, 'created', status => 200, error => 'none', etag => qr/^"\d+"$/);
  my $tag = $put->{headers}{etag};
  answer_is($near->http(GET => '/n/objects/a'), 'read', status => 200, body => $doc, etag => $tag, 'content-type' => qr{^text/plain}, 'cache-control' => 'no-store');
  answer_is($near->http(GET => '/n/objects/a', headers => ['If-None-Match' => $tag]), 'not modified', status => 304, etag => $tag);
  answer_is($near->http(HEAD => '/n/objects/a'), 'HEAD', status => 200, etag => $tag, 'content-length' => length $doc);
  answer_is($near->http(PUT => '/n/objects/a', body => $doc, headers => ['If-None-Match' => '*']), 'the other node\'s refusals', status => 412, error => 'conflict', etag => $tag);
  answer_is($near->http(GET => '/n/objects/none'), 'and misses', status => 404, error => 'not_found');
  answer_is($near->http(POST => '/n/objects/a'), 'and methods', status => 405, error => 'method', allow => qr/PUT/);
  like($near->http(GET => '/lua/b')->{body}, qr/^200 \d+ none far$/, 'shorthands of Lua reach it too');
  like($near->http(GET => '/lua/b')->{body}, qr/^412 \d+ conflict far$/, 'with their errors');

  note 'a node that is killed is missed, and found again when it is back';
  my $port = $far->{port};
  my $dir  = $far->{dir};
  $far->kill9;
  answer_is($near->http(GET => '/n/objects/a'), 'killed', %BROKEN);
  $far = start_sluice("settings { workers = 1, listen = '127.0.0.1:$port' } $STORE routes { default = route_stores {} }\n", dir => $dir, own_port => 1);
  my $deadline = time + Sluice::timeout_s();
  my $answer = $near->http(GET => '/n/objects/a');
  $answer = $near->http(GET => '/n/objects/a') while $answer->{status} != 200 && time < $deadline;
  answer_is($answer, 'back', status => 200, body => $doc);
  $near->stop;
  $far->stop;
}

{
  note 'two nodes that ask each other end it';
  my $b = mock_backend(listening => 0);             # holds a port for the second node
  my $port = $b->port;
  my $one = start_with_pools("two = { backends = { '127.0.0.1:$port' } }", routes => 'map = { ["/x"] = "two" }');
  close delete $b->{fd};
  my $two = start_with_pools("one = { backends = { '127.0.0.1:$one->{port}' } }", own_port => 1, settings => "listen = '127.0.0.1:$port'",
    routes => 'default = "one"');
  answer_is($one->http(GET => '/x' x 20), 'the circle is seen', %BROKEN, body => "the request goes round in a circle of nodes\n");
  $_->stop for $one, $two;
}

{
  note 'names that are not found refuse the config, and nothing of it serves';
  my $b = mock_backend();
  my $s = start_with_pools("b = { backends = { '@{[$b->place]}' } }");
  $s->write_config(qq{pools { b = { backends = { "no-such-name.invalid:80" } } } routes { map = { ["/b"] = "b" } }\n});
  ok(!$s->reload, "the reload fails");
  my $c = $s->client;
  $c->send(get('/b/x'));
  my $peer = $b->accept;
  $peer->asked;
  $peer->reply(200, 'still');
  is($c->answer->{body}, 'still', 'the old one goes on');
  $s->stop;
  like($s->log, qr/reload failed: .*pool `b`: backend `no-such-name.invalid:80`: `no-such-name.invalid` is not found/, 'and the log says why');
}

done_testing;
