# How bytes become requests: strict framing, pipelining, chunked bodies, 100-continue, what closes a connection.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use Sluice;
use Test::More;

my $s = start_module(repo_path('configs/modules/quota.aup'));
my $HOST = "Host: t\r\n";

note 'each of these is refused with its status and the connection ends; nothing behind it is read as a request';
my @refused = (
  [ 'no Host',                      "GET /views/hits HTTP/1.1\r\n\r\n", 400, 'request' ],
  [ 'two Hosts',                    "GET /views/hits HTTP/1.1\r\n$HOST${HOST}\r\n", 400, 'request' ],
  [ 'a bare LF behind the request line', "GET /views/hits HTTP/1.1\nHost: t\r\n\r\n", 400, 'request' ],
  [ 'a bare LF behind a header',    "GET /views/hits HTTP/1.1\r\nHost: t\n\r\n", 400, 'request' ],
  [ 'a bare CR in a value',         "GET /views/hits HTTP/1.1\r\n${HOST}X: a\rb\r\n\r\n", 400, 'request' ],
  [ 'a folded header',              "GET /views/hits HTTP/1.1\r\n${HOST}X: a\r\n b\r\n\r\n", 400, 'request' ],
  [ 'space before the colon',       "GET /views/hits HTTP/1.1\r\n${HOST}X : a\r\n\r\n", 400, 'request' ],
  [ 'an empty field name',          "GET /views/hits HTTP/1.1\r\n${HOST}: a\r\n\r\n", 400, 'request' ],
  [ 'a header without a colon',     "GET /views/hits HTTP/1.1\r\n${HOST}abc\r\n\r\n", 400, 'request' ],
  [ 'NUL in a value',               "GET /views/hits HTTP/1.1\r\n${HOST}X: a\0b\r\n\r\n", 400, 'request' ],
  [ 'a control byte in a value',    "GET /views/hits HTTP/1.1\r\n${HOST}X: a\x01b\r\n\r\n", 400, 'request' ],
  [ 'a control byte in the target', "GET /views/\x01 HTTP/1.1\r\n$HOST\r\n", 400, 'request' ],
  [ 'several spaces',               "GET  /views/hits HTTP/1.1\r\n$HOST\r\n", 400, 'request' ],
  [ 'a space in the target',        "GET /views/ hits HTTP/1.1\r\n$HOST\r\n", 400, 'request' ],
  [ 'a fragment',                   "GET /views/hits#x HTTP/1.1\r\n$HOST\r\n", 400, 'request', 'open' ],
  [ 'a dot segment',                "GET /views/../views/hits HTTP/1.1\r\n$HOST\r\n", 400, 'request', 'open' ],
  [ 'a dot segment, encoded',       "GET /views/%2e%2e/views/hits HTTP/1.1\r\n$HOST\r\n", 400, 'request', 'open' ],
  [ 'a bad percent',                "GET /views/%zz HTTP/1.1\r\n$HOST\r\n", 400, 'request', 'open' ],
  [ 'a lower-case method',          "get /views/hits HTTP/1.1\r\n$HOST\r\n", qr/400|501/, qr/request|method/ ],
  [ 'an unknown method',            "BREW /views/hits HTTP/1.1\r\n$HOST\r\n", 501, 'method' ],
  [ 'a method of RTSP',             "DESCRIBE /views/hits HTTP/1.1\r\n$HOST\r\n", qr/400|501/, qr/request|method/ ],
  [ 'another protocol',             "GET /views/hits RTSP/1.0\r\n$HOST\r\n", qr/400|505/, qr/request|version/ ],
  [ 'HTTP/0.9',                     "GET /views/hits HTTP/0.9\r\n$HOST\r\n", 505, 'version' ],
  [ 'HTTP/2.0',                     "GET /views/hits HTTP/2.0\r\n$HOST\r\n", 505, 'version' ],
  [ 'HTTP/1.10',                    "GET /views/hits HTTP/1.10\r\n$HOST\r\n", qr/400|505/, qr/request|version/ ],
  [ 'no version',                   "GET /views/hits\r\n$HOST\r\n", qr/400|505/, qr/request|version/ ],
  [ 'both lengths',                 "POST /inputs/say HTTP/1.1\r\n${HOST}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, 'request' ],
  [ 'both lengths, turned',         "POST /inputs/say HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", 400, 'request' ],
  [ 'two equal lengths',            "POST /inputs/say HTTP/1.1\r\n${HOST}Content-Length: 1\r\nContent-Length: 1\r\n\r\nx", 400, 'request' ],
  [ 'two unequal lengths',          "POST /inputs/say HTTP/1.1\r\n${HOST}Content-Length: 1\r\nContent-Length: 2\r\n\r\nxy", 400, 'request' ],
  [ 'a list of lengths',            "POST /inputs/say HTTP/1.1\r\n${HOST}Content-Length: 1, 1\r\n\r\nx", 400, 'request' ],
  [ 'a negative length',            "POST /inputs/say HTTP/1.1\r\n${HOST}Content-Length: -1\r\n\r\n", 400, 'request' ],
  [ 'a length with a plus',         "POST /inputs/say HTTP/1.1\r\n${HOST}Content-Length: +1\r\n\r\nx", 400, 'request' ],
  [ 'a hexadecimal length',         "POST /inputs/say HTTP/1.1\r\n${HOST}Content-Length: 0x1\r\n\r\nx", 400, 'request' ],
  [ 'a length beyond 64 bits',      "POST /inputs/say HTTP/1.1\r\n${HOST}Content-Length: 18446744073709551617\r\n\r\nx", qr/400|413/, qr/request|limit/ ],
  [ 'an empty length',              "POST /inputs/say HTTP/1.1\r\n${HOST}Content-Length: \r\n\r\nx", 400, 'request' ],
  [ 'a transfer coding of 1.0',     "POST /inputs/say HTTP/1.0\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, 'request' ],
  [ 'another coding',               "POST /inputs/say HTTP/1.1\r\n${HOST}Transfer-Encoding: gzip\r\n\r\n", qr/400|501/, qr/request|coding/ ],
  [ 'another coding before chunked', "POST /inputs/say HTTP/1.1\r\n${HOST}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501, 'coding' ],
  [ 'chunked not last',             "POST /inputs/say HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n", qr/400|501/, qr/request|coding/ ],
  [ 'chunked twice',                "POST /inputs/say HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", qr/400|501/, qr/request|coding/ ],
  [ 'chunked misspelt',             "POST /inputs/say HTTP/1.1\r\n${HOST}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", qr/400|501/, qr/request|coding/ ],
  [ 'a chunk that runs into the next', "POST /inputs/say HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n0\r\n\r\n", 400, 'request' ],
  [ 'a chunk size that is none',    "POST /inputs/say HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400, 'request' ],
  [ 'a chunk size with a sign',     "POST /inputs/say HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n-1\r\n", 400, 'request' ],
  [ 'a chunk line ended by LF',     "POST /inputs/say HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n1\nx\r\n0\r\n\r\n", 400, 'request' ],
  [ 'a huge chunk size',            "POST /inputs/say HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\nffffffffffffffff1\r\n", qr/400|413/, qr/request|limit/ ],
  [ 'another expectation',          "POST /inputs/say HTTP/1.1\r\n${HOST}Expect: tea\r\nContent-Length: 1\r\n\r\nx", 417, 'expect' ],
);
for my $case (@refused) {
  my ($name, $bytes, $status, $error, $open) = @$case;
  my $c = $s->client;
  # A second request rides behind: it must not be answered as one.
  $c->send($bytes . ($bytes =~ /\r\n\r\nx?y?\z/ ? "GET /views/level HTTP/1.1\r\n$HOST\r\n" : ''));
  my $answer = $c->answer;
  if ($open) {  # its end is beyond doubt, so the connection goes on
    answer_is($answer, "$name: refused", status => $status, error => $error, body => qr/\n\z/);
    answer_is($c->answer, "$name: the next is answered", status => 200, body => '50');
    next;
  }
  my $rest = $c->until_closed;
  answer_is($answer, "$name: $answer->{status} $answer->{reason}", error => $error, connection => 'close', body => qr/\n\z/);
  ref $status ? like($answer->{status}, $status, "$name: status") : is($answer->{status}, $status, "$name: status");
  is($rest, '', "$name: closed, and nothing more was answered");
}
answer_is($s->http(GET => '/views/motto'), 'none of them was delivered', status => 200, body => 'BE KIND (7)');

subtest 'pipelined requests are answered in order' => sub {
  my $c = $s->client;
  $c->send(join '', map { "POST /inputs/plus HTTP/1.1\r\n$HOST\r\nGET /views/hits HTTP/1.1\r\n$HOST\r\n" } 1 .. 20);
  my @seen;
  for (1 .. 20) { is($c->answer->{status}, 200, "press $_"); push @seen, $c->answer->{body} }
  is("@seen", "@{[1 .. 20]}", 'each read sees the write before it');
  $c->send("GET /views/nope HTTP/1.1\r\n$HOST\r\nGET /views/hits HTTP/1.1\r\n$HOST\r\nHEAD /views/hits HTTP/1.1\r\n$HOST\r\nGET /views/lamp HTTP/1.1\r\n$HOST\r\n");
  is($c->answer->{status}, 404, 'an error keeps its place and the connection');
  is($c->answer->{body}, '20', 'the next');
  is($c->answer('HEAD')->{headers}{'content-length'}, 2, 'HEAD between them has no body');
  is($c->answer->{body}, 'false', 'the last');
  $c->quiet(0.02);
};

subtest 'a request may come byte by byte' => sub {
  my $c = $s->client;
  $c->send($_) for split //, "POST /inputs/turn?amount=1 HTTP/1.1\r\n${HOST}Content-Length: 0\r\n\r\n";
  is($c->answer->{body}, '51', 'answered');
};

subtest 'chunked bodies' => sub {
  my $c = $s->client;
  my $head = "POST /inputs/say HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n";
  $c->send($head . "3\r\nabc\r\n2;name=value\r\nde\r\n0\r\nTrailer: x\r\n\r\n");
  is($c->answer->{status}, 200, 'with an extension and a trailer');
  is($c->http(GET => '/views/motto')->{body}, 'ABCDE (5)', 'its bytes are put together');
  $c->send($head);
  $c->send($_) for split //, "5\r\nhello\r\n0\r\n\r\n";
  is($c->answer->{status}, 200, 'byte by byte');
  is($c->http(GET => '/views/motto')->{body}, 'HELLO (5)', 'likewise');
  $c->send("${head}0\r\n\r\n");
  answer_is($c->answer, 'an empty chunked body is a body of no bytes', status => 422, error => 'limit', body => 'say something');
  $c->send("POST /inputs/say HTTP/1.1\r\n${HOST}transfer-encoding: Chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n");
  is($c->answer->{status}, 200, 'names do not care for case');
};

subtest '100-continue' => sub {
  my $c = $s->client;
  $c->send("POST /inputs/say HTTP/1.1\r\n${HOST}Expect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  $c->expect(qr{\AHTTP/1\.1 100 Continue\r\n\r\n}, 'go on');
  $c->send('yo');
  is($c->answer->{status}, 200, 'then the answer');
  is($c->http(GET => '/views/motto')->{body}, 'YO (2)', 'of that body');
  $c->send("POST /inputs/say HTTP/1.1\r\n${HOST}Expect: 100-continue\r\nContent-Length: 2\r\n\r\nhi");
  my $answer = $c->answer;
  $answer = $c->answer if $answer->{status} == 100;
  is($answer->{status}, 200, 'a client that does not wait is answered as well');
};

subtest 'keeping and closing' => sub {
  my $c = $s->client;
  $c->send("GET /views/lamp HTTP/1.1\r\n${HOST}Connection: close\r\n\r\nGET /views/lamp HTTP/1.1\r\n$HOST\r\n");
  answer_is($c->answer, 'close is said back', status => 200, connection => 'close');
  is($c->until_closed, '', 'and what comes behind it is ignored');
  $c = $s->client;
  $c->send("GET /views/lamp HTTP/1.0\r\n\r\n");
  is($c->answer->{status}, 200, '1.0 needs no Host');
  is($c->until_closed, '', 'and is closed');
  $c = $s->client;
  $c->send("GET /views/lamp HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  answer_is($c->answer, '1.0 may ask to stay', status => 200, connection => qr/keep-alive/i);
  $c->send("GET /views/lamp HTTP/1.0\r\n\r\n");
  is($c->answer->{status}, 200, 'and stays');
  is($c->until_closed, '', 'as long as it asks');
  $c = $s->client;
  $c->send("\r\nGET /views/lamp HTTP/1.1\r\n$HOST\r\n");
  is($c->answer->{status}, 200, 'an empty line before a request is passed over');
  $c = $s->client;
  $c->send("GET /views/lamp HTTP/1.1\r\n$HOST\r\n");
  $c->finish;
  is($c->answer->{status}, 200, 'a client that has finished sending still hears');
  is($c->until_closed, '', 'and is closed then');
};

subtest 'a body nobody asked for' => sub {
  my $c = $s->client;
  $c->send("GET /views/lamp HTTP/1.1\r\n${HOST}Content-Length: 3\r\n\r\nabc");
  my $answer = $c->answer;
  ok($answer->{status} == 200 || $answer->{status} == 400, "GET with a body: $answer->{status}");
  $c->send("GET /views/level HTTP/1.1\r\n$HOST\r\n");
  my $next = $c->answer;
  ok($next->{status} == 200 && $next->{body} eq '51' || $next->{status} == 0, 'its bytes are never a request');
};

$s->stop;
done_testing;
