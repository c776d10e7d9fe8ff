# Everything that a backend can do wrong: each fails its own request alone, with a clear status, and nobody else's.
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
my %LATE   = (status => 504, error => 'backend_timeout');

# What comes is no answer, or breaks off: 502, nothing of it reaches the client, and the connection is not used again.
{
  my $b = mock_backend();
  my $s = start_with_pools("b = { backends = { '@{[$b->place]}' }, backend_options = { failure_limit = 0, head_limit = 1000, body_limit = 5000 } }");
  my $c = $s->client;
  my %wrong = (
    'another protocol' => "SSH-2.0-OpenSSH_9\r\n",
    'HTTP/2' => "HTTP/2.0 200 OK\r\n\r\n",
    'a line that ends with LF alone' => "HTTP/1.1 200 OK\nContent-Length: 0\n\n",
    'two lengths' => "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
    'a length and chunks' => "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    'a coding that is not chunked' => "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nabc",
    'a chunk that is longer than it says' => "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n",
    'a folded field' => "HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 0\r\n\r\n",
    'an empty field name' => "HTTP/1.1 200 OK\r\n: a\r\n\r\n",
    'another protocol, unasked' => "HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n",
    'a status that is none' => "HTTP/1.1 999 What\r\n\r\n",
    'a huge head' => "HTTP/1.1 200 OK\r\nX-Large: " . 'x' x 2000 . "\r\n\r\n",
    'a body over the limit' => "HTTP/1.1 200 OK\r\nContent-Length: 5001\r\n\r\n",
    'chunks over the limit' => "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfff\r\n" . 'x' x 4095 . "\r\nfff\r\n",
  );
  for my $what (sort keys %wrong) {
    $c->send(get('/b/x'));
    my $peer = $b->accept;
    $peer->asked;
    $peer->send($wrong{$what});
    answer_is($c->answer, $what, %BROKEN, body => qr/^the |^a line of the/);
    $peer->until_closed;
    ok($peer->{eof}, 'its connection is closed');
  }
  my %half = (
    'nothing at all, to a POST' => '',
    'half a head' => "HTTP/1.1 200 OK\r\nContent-Le",
    'half a body' => "HTTP/1.1 200 OK\r\nContent-Length: 100\r\nX-Partial: yes\r\n\r\nhalf",
    'half the chunks' => "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
  );
  for my $what (sort keys %half) {
    $c->send("POST /b/x HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx");
    my $peer = $b->accept;
    $peer->asked;
    $peer->send($half{$what});
    $peer->close;
    answer_is($c->answer, $what, %BROKEN, 'x-partial' => undef, body => qr/^the backend closed the connection/);
  }
  $c->send(get('/b/fine'));
  my $peer = $b->accept;
  is($peer->asked->{target}, '/fine', 'the next request meets a new connection');
  $peer->reply(200, 'fine');
  is($c->answer->{body}, 'fine', 'and its own answer');

  note 'a surplus is given to nobody';
  $c->send(get('/b/1'));
  $peer->asked;
  $peer->send("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\noneHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nstolen");
  is($c->answer->{body}, 'one', 'the answer itself is good');
  $peer->until_closed;
  $c->send(get('/b/2'));
  $peer = $b->accept;
  $peer->asked;
  $peer->send("HTTP/1.1 204 No\r\n\r\nbody that must not be");
  is($c->answer->{status}, 204, 'nor a body where none may be');
  $peer->until_closed;
  $c->send("HEAD /b/3 HTTP/1.1\r\nHost: h\r\n\r\n");
  $peer = $b->accept;
  $peer->asked;
  $peer->send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody");
  is($c->answer('HEAD')->{status}, 200, 'nor one to HEAD');
  $peer->until_closed;

  note 'bytes on an idle connection, and its end, drop it';
  for my $what (sub { $_[0]->send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nstray") }, sub { $_[0]->close }, sub { $_[0]->finish }) {
    $c->send(get('/b/a'));
    $peer = $b->accept;
    $peer->asked;
    $peer->reply(200, 'a');
    is($c->answer->{body}, 'a', 'an answer');
    $what->($peer);
    $c->send(get('/b/b'));
    $peer = $b->accept;
    is($peer->asked->{target}, '/b', 'the next goes over a new connection');
    $peer->reply(200, 'b', Connection => 'close');
    is($c->answer->{body}, 'b', 'and has its own answer');
  }
  $s->stop;
  is($s->counters->{backend_in_flight}, 0, 'nothing is left');
}

{
  note 'answers that are too large for us are not the backend\'s fault: it does not go down for them';
  my $b = mock_backend();
  my $s = start_with_pools("b = { backends = { '@{[$b->place]}' }, backend_options = { failure_limit = 1, body_limit = 10, retry_waittime = 60 } }");
  my $c = $s->client;
  for my $large ("HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n", "HTTP/1.1 200 OK\r\nX: " . 'x' x 40_000 . "\r\n\r\n") {
    $c->send(get('/b/x'));
    my $peer = $b->accept;
    $peer->asked;
    $peer->send($large);
    answer_is($c->answer, 'too large', %BROKEN);
  }
  $c->send(get('/b/y'));
  my $peer = $b->accept;
  $peer->asked;
  $peer->reply(200, 'y');
  is($c->answer->{body}, 'y', 'and is asked on');
  $s->stop;
}

{
  note 'deadlines run from the sending: neither silence nor drops defeat them';
  my $b = mock_backend();
  my $s = start_with_pools("b = { backends = { '@{[$b->place]}' }, backend_options = { failure_limit = 0, read_timeout = 0.2 } }");
  my ($c, $d) = ($s->client, $s->client);
  $c->send(get('/b/silent'));
  my $peer = $b->accept;
  $peer->asked;
  answer_is($c->answer, 'silence', %LATE, body => "the backend did not answer in time\n");
  is($peer->until_closed, '', 'that connection is closed');

  $c->send(get('/b/drops'));
  my $dripping = $b->accept;
  $dripping->asked;
  $dripping->send("HTTP/1.1 200 OK\r\nX-Partial: yes\r\nContent-Length: 100000\r\n\r\n");
  my $deadline = time + Sluice::timeout_s();
  until (Sluice::wait_readable(time + 0.02, $c->{fd})) {
    $dripping->send('x');
    last if time > $deadline;
  }
  answer_is($c->answer, 'a byte now and then', %LATE, 'x-partial' => undef);

  note 'one that is late fails itself alone';
  $c->send(get('/b/late'));
  my $late = $b->accept;
  $late->asked;
  answer_is($c->answer, 'too late', %LATE);
  $d->send(get('/b/good'));
  my $good = $b->accept;
  is($good->asked->{target}, '/good', 'another request, on another connection');
  $late->send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlate");
  $good->reply(200, 'good');
  is($d->answer->{body}, 'good', 'has its own answer');
  $c->send(get('/b/next'));
  is($good->asked->{target}, '/next', 'and so has the next of the first client');
  $good->reply(200, 'next');
  is($c->answer->{body}, 'next', 'its own');
  $s->stop;
  is($s->counters->{backend_timeouts}, 3, 'timeouts are counted');
}

{
  note 'a request that failed before a byte came is sent once more, when doing it twice is doing it once';
  my $b = mock_backend();
  my $s = start_with_pools("b = { backends = { '@{[$b->place]} b' }, backend_options = { failure_limit = 0 } }");
  my $c = $s->client;
  my $drop = sub { my $peer = $b->accept; my $r = $peer->asked; $peer->close; return $r };
  my $try = sub {
    my ($bytes, $again, $name) = @_;
    $c->send($bytes);
    my $first = $drop->();
    if ($again) {
      my $peer = $b->accept;
      my $r = $peer->asked;
      is($r->{head}, $first->{head}, "$name: sent again");
      $peer->reply(200, 'second', Connection => 'close');
      is($c->answer->{body}, 'second', 'and answered');
    } else {
      answer_is($c->answer, "$name: not sent again", %BROKEN);
    }
  };
  $try->(get('/b/g'), 1, 'GET');
  $try->("PUT /b/p HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx", 1, 'PUT');
  $try->("DELETE /b/p HTTP/1.1\r\nHost: h\r\n\r\n", 1, 'DELETE');
  $try->("PUT /b/p HTTP/1.1\r\nHost: h\r\nIf-Match: \"1\"\r\nContent-Length: 1\r\n\r\nx", 0, 'PUT with a condition');
  $try->("POST /b/p HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx", 0, 'POST');
  $try->("PATCH /b/p HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx", 0, 'PATCH');
  $c->send(get('/b/twice'));
  $drop->() for 1, 2;
  answer_is($c->answer, 'twice and no more', %BROKEN);
  $c->send(get('/b/begun'));
  my $peer = $b->accept;
  $peer->asked;
  $peer->send('H');
  $peer->close;
  answer_is($c->answer, 'nor when an answer had begun', %BROKEN);
  $b->quiet(0.05);

  note 'a connection that was kept and closed just now costs nobody an answer';
  $c->send(get('/b/1'));
  $peer = $b->accept;
  $peer->asked;
  $peer->reply(200, '1');
  $c->answer;
  $c->send(get('/b/2'));
  $peer->asked;                                   # it was sent ...
  $peer->close;                                     # ... just when the backend closed
  $peer = $b->accept;
  is($peer->asked->{target}, '/2', 'sent again');
  $peer->reply(200, '2');
  is($c->answer->{body}, '2', 'answered');
  $s->stop;
  is($s->counters->{backend_retries}, 5, 'retries are counted');
}

{
  note 'an answer may come before the request is read; then the connection is not used again';
  my $b = mock_backend();
  my $s = start_with_pools("b = { backends = { '@{[$b->place]}' } }");
  my $c = $s->client;
  $c->send("POST /b/x HTTP/1.1\r\nHost: h\r\nContent-Length: 8000000\r\n\r\n" . 'x' x 8_000_000);
  my $peer = $b->accept;
  $peer->more(time + 5) until $peer->{in} =~ /\r\n\r\n/;
  $peer->reply(413, 'too much');
  answer_is($c->answer, 'refused early', status => 413, body => 'too much');
  $peer->close;
  $c->send(get('/b/y'));
  $peer = $b->accept;
  $peer->asked;
  $peer->reply(200, 'y');
  is($c->answer->{body}, 'y', 'the next goes over a new connection');
  $s->stop;
}

{
  note 'the budget bounds what answers hold';
  my $b = mock_backend();
  my $s = start_with_pools("b = { backends = { '@{[$b->place]}' } }", settings => 'payload_budget = "1MiB"');
  my $c = $s->client;
  $c->send(get('/b/x'));
  my $peer = $b->accept;
  $peer->asked;
  $peer->send("HTTP/1.1 200 OK\r\nContent-Length: 2000000\r\n\r\n");
  answer_is($c->answer, 'no room', status => 503, error => 'payload_budget', 'retry-after' => 1);
  $c->send(get('/b/y'));
  $peer = $b->accept;
  $peer->asked;
  $peer->reply(200, 'y' x 900_000);
  is(length $c->answer->{body}, 900_000, 'what has room is answered');
  $s->stop;
  is($s->counters->{retained_payload_bytes}, 0, 'and given back');
}

{
  note 'a slow backend holds up no other request: neither those behind it on a connection, nor other clients';
  my ($slow, $fast) = (mock_backend(), mock_backend());
  my $s = start_with_pools("slow = { backends = { '@{[$slow->place]}' } }, fast = { backends = { '@{[$fast->place]}' } }",
    routes => 'map = { ["/s"] = "slow", ["/f"] = "fast" }');
  my $c = $s->client;
  $c->send(get('/f/1') . get('/s/2') . get('/f/3'));
  my $f1 = $fast->accept;
  my $hung = $slow->accept;
  my $f2 = $fast->accept;
  my %by = map { ($_->asked->{target} => $_) } $f1, $f2;
  $by{'/3'}->reply(200, 'three');
  $by{'/1'}->reply(200, 'one');
  is($c->answer->{body}, 'one', 'the one before it is answered');
  $hung->asked;
  $hung->reply(200, 'two');
  is($c->answer->{body} . $c->answer->{body}, 'twothree', 'then it, and the one behind it');
  $s->stop;
}

done_testing;
