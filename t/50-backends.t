# Remote backends: requests that go on to other servers, and everything that these can do wrong. The test plays the backends.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use Sluice;
use Sluice::Backend;
use Test::More;

# A server with one worker, so that what its connections do can be told, and the pools that `pools` says.
sub start {
  my ($pools, %with) = @_;
  my $routes = delete $with{routes} // q{map = { ["/b"] = "b" }};
  my $settings = delete $with{settings} // '';
  return start_sluice("settings { workers = 1, $settings } pools { $pools } routes { $routes }", %with);
}

{
  note 'a request goes on whole, and its answer comes back whole';
  my $b = mock_backend();
  my $s = start("b = { backends = { '@{[$b->place]} east' } }");
  my $c = $s->client;
  $c->send("POST /b/a%20b/c?x=1&y=%41+b HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 5\r\nX-Mine: yes\r\nConnection: X-Hop, keep-alive\r\n"
      . "X-Hop: no\r\nKeep-Alive: 5\r\nTE: trailers\r\nX-Forwarded-For: 192.0.2.1\r\n\r\nhello");
  my $peer = $b->accept;
  my $r = $peer->request;
  is("$r->{method} $r->{target} $r->{body}", 'POST /a%20b/c?x=1&y=%41+b hello', 'method, target as written, body');
  is($r->{headers}{host}, '127.0.0.1:' . $b->port, 'the Host is the backend\'s');
  is($r->{headers}{'x-forwarded-host'}, 'shop.example', 'and the client\'s is said beside it');
  is($r->{headers}{'x-forwarded-for'}, '192.0.2.1, 127.0.0.1', 'the client\'s address is behind those that came');
  is($r->{headers}{via}, '1.1 sluice', 'Via');
  is($r->{headers}{'x-mine'}, 'yes', 'its own fields go on');
  ok(!exists $r->{headers}{$_}, "not $_") for qw(x-hop keep-alive te connection);
  $peer->send("HTTP/1.1 201 Made\r\nContent-Length: 4\r\nETag: \"12\"\r\nLocation: /x\r\nX-Pure-Error: none\r\nKeep-Alive: 9\r\n"
      . "Set-Cookie: a=1\r\nSet-Cookie: b=2\r\nContent-Type: text/x\r\nConnection: X-Away\r\nX-Away: 1\r\n\r\ndone");
  my $a = $c->answer;
  answer_is($a, 'status, fields and body', status => 201, body => 'done', etag => '"12"', location => '/x', error => 'none',
    'set-cookie' => 'a=1, b=2', 'content-type' => 'text/x', 'keep-alive' => undef, 'x-away' => undef);
  $c->send("GET /b HTTP/1.1\r\nHost: h\r\n\r\n");
  is($peer->request->{target}, '/', 'the next one goes over the same connection');
  $peer->reply(404, 'gone', 'X-Pure-Error' => 'no_view');
  answer_is($c->answer, 'the backend\'s own error is passed on', status => 404, error => 'no_view', body => 'gone');
  $s->stop;
}

done_testing;
