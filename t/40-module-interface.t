# What a client of a module sees: the transcripts of two modules byte for byte, then each line of the contract.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use Sluice;
use Test::More;

my $TEXT  = 'text/plain; charset=utf-8';
my $BYTES = 'application/octet-stream';
my $JSON  = 'application/json';

# One line of a transcript: method, target, body, extra headers => status, error, body, further headers.
sub said {
  my ($s, $method, $target, $with, $status, $error, $body, %more) = @_;
  my $answer = $s->http($method, $target, %$with);
  my %want = (status => $status, error => $error, 'cache-control' => 'no-store', %more);
  $want{body} = $body if defined $body;
  my $name = "$method $target";
  $name .= " $with->{headers}[0]" if @{ $with->{headers} || [] };
  $name .= " body " . JSON::PP->new->allow_nonref->latin1->encode($with->{body}) if defined $with->{body};
  local $Test::Builder::Level = $Test::Builder::Level + 1;
  answer_is($answer, $name, %want);
  return $answer;
}
sub body { return { body => $_[0], headers => [ @_[1 .. $#_] ] } }

subtest 'the counters of quota' => sub {
  my $s = start_module(repo_path('configs/modules/quota.aup'));
  said($s, POST => '/inputs/plus', {}, 200, 'none', '', 'content-type' => $BYTES);
  said($s, GET  => '/views/hits', {}, 200, 'none', '1', 'content-type' => $TEXT);
  said($s, POST => '/inputs/shine', {}, 200, 'none', '');
  said($s, GET  => '/views/lamp', {}, 200, 'none', 'false', 'content-type' => $TEXT);
  said($s, POST => '/inputs/say', body(' hello é '), 200, 'none', '');
  said($s, GET  => '/views/motto', {}, 200, 'none', 'HELLO é (7)', 'content-type' => $TEXT);
  said($s, POST => '/inputs/say', body('   '), 422, 'limit', 'say something');
  said($s, GET  => '/views/motto', {}, 200, 'none', 'HELLO é (7)');
  said($s, POST => '/inputs/say', body("\xff"), 400, 'invalid', qr/\A[^\n]+\n\z/);
  said($s, POST => '/inputs/turn?amount=500', {}, 200, 'none', '100', 'content-type' => $TEXT);
  said($s, POST => '/inputs/turn?amount=-0.5', {}, 200, 'none', '99.5');
  said($s, GET  => '/views/winner', {}, 404, 'no_value', qr/\A[^\n]+\n\z/);
  said($s, POST => '/inputs/take?who=ann', {}, 200, 'none', '4', 'content-type' => $TEXT);
  said($s, POST => '/inputs/take?who=bob', {}, 200, 'none', '4');
  said($s, GET  => '/views/winner', {}, 200, 'none', 'bob');
  said($s, GET  => '/views/left?who=ann', {}, 200, 'none', qr/\A[45]\z/);
  said($s, GET  => '/views/left?who=cy', {}, 404, 'no_value', qr/\A[^\n]+\n\z/);
  said($s, POST => '/inputs/take?who=a%20b', {}, 400, 'query', qr/\A[^\n]+\n\z/);
  said($s, POST => '/inputs/take', {}, 400, 'missing_field', qr/who/);
  said($s, POST => '/inputs/plus', body('x'), 400, 'body', qr/\A[^\n]+\n\z/);
  said($s, GET  => '/views/hits', {}, 200, 'none', '3');
  $s->stop;

  note 'what was answered is there after a restart';
  $s->start;
  said($s, GET => '/views/hits', {}, 200, 'none', '3');
  said($s, GET => '/views/level', {}, 200, 'none', '99.5');
  said($s, GET => '/views/winner', {}, 200, 'none', 'bob');
  $s->stop;
};

subtest 'the documents of notes' => sub {
  my $s = start_module(repo_path('configs/modules/notes.aup'));
  my ($new, $is) = ([ 'If-None-Match', '*' ], sub { [ 'If-Match', "\"$_[0]\"" ] });
  my $put = sub { my ($key, $when, $body, @want) = @_; said($s, PUT => "/objects/$key", body($body, @$when), @want) };
  said($s, GET => '/objects/a', {}, 404, 'not_found', undef, etag => undef);
  $put->('a', $new, '{"title":"First","version":1}', 200, 'none', '{"title":"First","version":1}', etag => '"1"');
  $put->('a', $new, '{"title":"First","version":2}', 412, 'conflict', undef, etag => '"1"');
  $put->('a', $is->(1), '{"title":"First","version":2}', 200, 'none', '{"title":"First","version":2}', etag => '"2"');
  said($s, GET => '/objects/a', {}, 200, 'none', '{"title":"First","version":2}', etag => '"2"', 'content-type' => $TEXT);
  $put->('a', $is->(2), '{"title":"First","version":2}', 412, 'conflict', 'version 2 is here', etag => '"2"');
  $put->('a', $is->(2), '{"version":3}', 404, 'not_found', 'a note needs a title');
  $put->('a', $is->(2), '{"title":', 422, 'encoding', 'a note is JSON');
  $put->('a', $is->(2), "\xff", 400, 'invalid', undef);
  $put->('a', $is->(2), '{"title":"F","version":3,"locked":1}', 200, 'none', '{"title":"F","version":3,"locked":1}', etag => '"3"');
  $put->('a', $is->(3), '{"title":"G","version":4}', 403, 'denied', '"F" is locked');
  $put->('log-x', $new, "one\n", 200, 'none', "one\n", etag => '"1"');
  $put->('log-x', $is->(1), "two\n", 200, 'none', "two\n", etag => '"2"');
  $put->('log-x', $is->(2), 'three', 413, 'limit', 'end every line');
  said($s, GET => '/objects/log-x', {}, 200, 'none', "one\ntwo\n", etag => '"2"');
  said($s, POST => '/inputs/edit', body('x'), 400, 'keyed', undef);
  $s->stop;
};

subtest 'conditions, revisions and removal' => sub {
  my $s = start_module(repo_path('configs/modules/blobs.aup'));
  my $bytes = join '', map { chr } 0 .. 255;
  said($s, PUT => '/objects/k', body($bytes), 428, 'condition', undef);
  said($s, PUT => '/objects/k', body($bytes, 'If-Match', '"1"', 'If-None-Match', '*'), 400, 'request', undef);
  said($s, PUT => '/objects/k', body($bytes, 'If-None-Match', '"1"'), 400, 'request', undef);
  said($s, PUT => '/objects/k', body($bytes, 'If-Match', '"7"'), 412, 'conflict', undef, etag => undef);
  said($s, PUT => '/objects/k', body($bytes, 'If-None-Match', '*'), 200, 'none', '', etag => '"1"');
  said($s, GET => '/objects/k', {}, 200, 'none', $bytes, etag => '"1"', 'content-type' => $BYTES);
  said($s, PUT => '/objects/k', body('v2', 'If-Match', 'W/"1"'), 412, 'conflict', undef, etag => '"1"');
  said($s, PUT => '/objects/k', body('v2', 'If-Match', '"abc"'), 412, 'conflict', undef, etag => '"1"');
  said($s, PUT => '/objects/k', body('v2', 'If-Match', '"0", "1"'), 200, 'none', '', etag => '"2"');
  said($s, GET => '/objects/k', { headers => [ 'If-None-Match', '"2"' ] }, 304, 'none', '', etag => '"2"');
  said($s, GET => '/objects/k', { headers => [ 'If-None-Match', '"1", W/"2"' ] }, 304, 'none', '', etag => '"2"');
  said($s, GET => '/objects/k', { headers => [ 'If-None-Match', '*' ] }, 304, 'none', '');
  said($s, GET => '/objects/k', { headers => [ 'If-None-Match', '"1"' ] }, 200, 'none', 'v2');
  my $head = said($s, HEAD => '/objects/k', {}, 200, 'none', '', etag => '"2"', 'content-length' => 2);
  said($s, DELETE => '/objects/k', {}, 428, 'condition', undef);
  said($s, DELETE => '/objects/k', { headers => [ 'If-Match', '"1"' ] }, 412, 'conflict', undef, etag => '"2"');
  said($s, DELETE => '/objects/k', { headers => [ 'If-Match', '"2"' ] }, 204, 'none', '');
  said($s, GET => '/objects/k', {}, 404, 'not_found', undef);
  said($s, PUT => '/objects/k', body('v4', 'If-Match', '"2"'), 412, 'conflict', undef, etag => undef);
  note 'a list names several of ours';
  said($s, PUT => '/objects/list', body('1', 'If-None-Match', '*'), 200, 'none', '', etag => '"1"');
  said($s, PUT => '/objects/list', body('2', 'If-Match', '"1"'), 200, 'none', '', etag => '"2"');
  said($s, PUT => '/objects/list', body('3', 'If-Match', '"9", "1" ,"2"'), 200, 'none', '', etag => '"3"');
  said($s, PUT => '/objects/list', body('4', 'If-Match', '"1", "2"'), 412, 'conflict', undef, etag => '"3"');
  said($s, PUT => '/objects/list', body('4', 'If-Match', '"7"', 'If-Match', '"3"'), 200, 'none', '', etag => '"4"');
  said($s, PUT => '/objects/list', body('5', 'If-Match', join ', ', map { "\"$_\"" } 11 .. 19), 400, 'request', qr/at most 8/);
  said($s, DELETE => '/objects/list', { headers => [ 'If-Match', '"2", "4"' ] }, 204, 'none', '');
  note 'a revision never repeats, also after a delete';
  said($s, PUT => '/objects/k', body('v4', 'If-None-Match', '*'), 200, 'none', '', etag => '"4"');
  said($s, PUT => '/objects/none', body('', 'If-None-Match', '*'), 200, 'none', '', etag => '"1"');
  said($s, GET => '/objects/none', {}, 200, 'none', '', 'content-length' => 0);
  my $large = join '', map { pack 'N', $_ * 2654435761 % 4294967296 } 1 .. 262_144;       # 1 MiB, unlike anywhere
  said($s, PUT => '/objects/large', body($large, 'If-None-Match', '*'), 200, 'none', '', etag => '"1"');
  my $got = $s->http(GET => '/objects/large');
  ok($got->{body} eq $large, 'a large document comes back whole');
  is($s->http(HEAD => '/objects/large')->{headers}{'content-length'}, length $large, 'and HEAD says how long it is');
  my $ascii = 'A0_-' . 'z' x 60;
  said($s, PUT => "/objects/$ascii", body('x', 'If-None-Match', '*'), 200, 'none', '', etag => '"1"');
  for my $key ("${ascii}z", 'a.b', 'a%20b', '%C3%A9') {
    said($s, GET => "/objects/$key", {}, 400, 'request', undef);
  }
  # An encoded slash is refused before anybody asks whose path it is.
  answer_is($s->http(GET => '/objects/a%2Fb'), 'an encoded slash', status => 400, error => 'request');
  $s->stop;
};

my $FAULTS = <<'AUP';
// One input for each fault.
module faults 1
state kept: num
state small: int in 0..10
input text line max 8
message divide { with: num }
message grow { with: num }
message set { value: num }
message cut { at: num, line: text }
message often { times: u32 }
message taken { }
message gone { }
message never { }
message raw { data: bytes max 16 }
message record { name: slug, n: num, m: int, k: u32 }
message echo { said: text max 16 }
on line (it) { reply it }
on divide { kept = 7  kept = 1 / with  reply kept }
on grow { kept = with * 1e308 * 1e10 }
on set { kept = 9  small = value  reply small }
on cut { reply slice(line, 0, at) }
on often { for i in 0..times limit 3 { kept = i } }
on taken { kept = 1  fail exists "taken already" }
on gone { fail not_found }
on never { fail denied "not for you" }
on raw { reply data }
on record { reply { name, n, m, k, ok: true, text: "a\"b" } }
on echo { reply said }
view kept: num = kept
view half(of: num): num = of / 2
view yes: bool = true
AUP

subtest 'faults, fields and names' => sub {
  my $s = start_module($FAULTS);
  my $line = qr/\A[^\n]+\n\z/;
  said($s, POST => '/inputs/divide?with=0', {}, 422, 'divide', $line);
  said($s, GET  => '/views/kept', {}, 200, 'none', '0');
  said($s, POST => '/inputs/divide?with=4', {}, 200, 'none', '0.25');
  said($s, POST => '/inputs/grow?with=3', {}, 422, 'non_finite', $line);
  said($s, POST => '/inputs/set?value=11', {}, 422, 'clamp', $line);
  said($s, GET  => '/views/kept', {}, 200, 'none', '0.25');
  said($s, POST => '/inputs/cut?at=1', body('é'), 422, 'encoding', $line);
  said($s, POST => '/inputs/often?times=3', {}, 422, 'limit', $line);
  said($s, POST => '/inputs/often?times=2', {}, 200, 'none', '');
  said($s, POST => '/inputs/taken', {}, 409, 'exists', 'taken already');
  said($s, POST => '/inputs/gone', {}, 404, 'not_found', $line);
  said($s, POST => '/inputs/never', {}, 403, 'denied', 'not for you');
  said($s, POST => '/inputs/raw', body("\0\xff"), 200, 'none', "\0\xff", 'content-type' => $BYTES);
  said($s, POST => '/inputs/raw', body('x' x 17), 422, 'limit', $line);
  said($s, POST => '/inputs/record?name=a-b&n=-2.50&m=-3&k=4294967295', {}, 200, 'none',
       '{"name":"a-b","n":-2.5,"m":-3,"k":4294967295,"ok":true,"text":"a\\"b"}', 'content-type' => $JSON);
  for my $bad ('name=a-b&n=1&m=0.5&k=1', 'name=a-b&n=1&m=1&k=4294967296', 'name=a-b&n=1&m=1&k=-1', 'name=a-b&n=x&m=1&k=1',
               'name=a-b&n=1&m=1&k=1&z=1', 'name=a-b&n=1&n=1&m=1&k=1', 'name=&n=1&m=1&k=1', 'name=a-b&n=1e999&m=1&k=1') {
    said($s, POST => "/inputs/record?$bad", {}, 400, 'query', $line);
  }
  said($s, POST => '/inputs/record?name=a-b&n=1&m=1', {}, 400, 'missing_field', qr/\bk\b/);
  said($s, POST => '/inputs/echo', body('a+b %20 é'), 200, 'none', 'a+b %20 é', 'content-type' => $TEXT);
  said($s, POST => '/inputs/line', body('12345678'), 200, 'none', '12345678');
  said($s, POST => '/inputs/line', body('123456789'), 422, 'limit', $line);
  said($s, POST => '/inputs/echo', {}, 411, 'length', $line);
  said($s, POST => '/inputs/echo', body(''), 200, 'none', '');
  said($s, GET  => '/views/half?of=5', {}, 200, 'none', '2.5');
  said($s, GET  => '/views/half', {}, 400, 'missing_field', qr/\bof\b/);
  said($s, GET  => '/views/half?of=5&x=1', {}, 400, 'query', $line);
  said($s, GET  => '/views/half?of=5&of=6', {}, 400, 'query', $line);
  said($s, GET  => '/views/half?of=five', {}, 400, 'query', $line);
  said($s, GET  => '/views/yes', {}, 200, 'none', 'true');
  said($s, GET  => '/views/nope', {}, 404, 'no_view', $line);
  said($s, POST => '/inputs/nope', {}, 404, 'no_input', $line);
  my $ends = $s->http(HEAD => '/views/nope');
  answer_is($ends, 'HEAD of an error has its head and no body', status => 404, error => 'no_view', body => '');
  $s->stop;
};

subtest 'methods and paths' => sub {
  my $s = start_module(repo_path('configs/modules/quota.aup'));
  my $ask = sub { $s->http(@_) };
  answer_is($ask->(POST => '/views/hits'), 'a view is read only', status => 405, error => 'method', allow => 'GET, HEAD, OPTIONS');
  answer_is($ask->(GET => '/inputs/plus'), 'an input is only posted', status => 405, error => 'method', allow => 'POST, OPTIONS');
  answer_is($ask->(OPTIONS => '/views/hits'), 'OPTIONS of a view', status => 204, allow => 'GET, HEAD, OPTIONS');
  answer_is($ask->(OPTIONS => '/inputs/plus'), 'OPTIONS of an input', status => 204, allow => 'POST, OPTIONS');
  answer_is($ask->(OPTIONS => '*'), 'OPTIONS of the server', status => 204, allow => qr/\bGET\b/);
  answer_is($ask->(GET => '/objects/a'), 'no documents, no such path', status => 404, error => 'route');
  answer_is($ask->(GET => $_), "GET $_", status => 404, error => 'route') for '/', '/views', '/x', '/views/hits/x', '/Views/hits';
  answer_is($ask->(GET => '/views/hits?x=1'), 'a view takes no other names', status => 400, error => 'query');
  answer_is($ask->(GET => 'http://any.example/views/hits'), 'an absolute target', status => 200, body => '0');
  answer_is($ask->(GET => '/views/h%69ts'), 'percent-encoding is decoded once', status => 200, body => '0');
  answer_is($ask->(HEAD => '/views/hits'), 'HEAD has the same head', status => 200, 'content-length' => 1, body => '');
  answer_is($ask->(PUT => '/views/hits', body => 'x'), 'PUT of a view', status => 405, allow => 'GET, HEAD, OPTIONS');
  $s->stop;

  my $notes = start_module(repo_path('configs/modules/notes.aup'));
  answer_is($notes->http(OPTIONS => '/objects/a'), 'a module without remove has no DELETE', status => 204, allow => 'GET, HEAD, PUT, OPTIONS');
  answer_is($notes->http(DELETE => '/objects/a', headers => [ 'If-Match', '"1"' ]), 'and says so', status => 405, error => 'method', allow => 'GET, HEAD, PUT, OPTIONS');
  answer_is($notes->http(POST => '/objects/a', body => 'x'), 'documents are put, not posted', status => 405, error => 'method');
  $notes->stop;

  my $blobs = start_module(repo_path('configs/modules/blobs.aup'));
  answer_is($blobs->http(OPTIONS => '/objects/a'), 'a module with remove has it', status => 204, allow => 'GET, HEAD, PUT, DELETE, OPTIONS');
  $blobs->stop;
};

subtest 'limits' => sub {
  my $s = start_module(repo_path('configs/modules/blobs.aup'), args => [ '--budget', '1MiB' ]);
  my $c = $s->client;
  $c->send("PUT /objects/a HTTP/1.1\r\nHost: t\r\nIf-None-Match: *\r\nContent-Length: 16777217\r\n\r\n");
  answer_is($c->answer, 'a body over the limit is refused by its length', status => 413, error => 'limit');
  $c = $s->client;
  $c->send("GET /" . 'x' x 5000 . " HTTP/1.1\r\nHost: t\r\n\r\n");
  answer_is($c->answer, 'a long target', status => 414, error => 'target');
  $c = $s->client;
  $c->send("GET / HTTP/1.1\r\nHost: t\r\nX: " . 'x' x 9000 . "\r\n\r\n");
  answer_is($c->answer, 'a large head', status => 431, error => 'headers');
  $c = $s->client;
  $c->send("GET / HTTP/1.1\r\nHost: t\r\n" . join('', map { "X$_: y\r\n" } 1 .. 101) . "\r\n");
  answer_is($c->answer, 'many headers', status => 431, error => 'headers');
  $c = $s->client;
  my $two = 'x' x (2 << 20);
  $c->send("PUT /objects/a HTTP/1.1\r\nHost: t\r\nIf-None-Match: *\r\nContent-Length: " . length($two) . "\r\n\r\n$two");
  answer_is($c->answer, 'more than the budget of the process', status => 503, error => 'payload_budget');
  answer_is($s->http(GET => '/objects/a'), 'and nothing of it is there', status => 404, error => 'not_found');
  $s->stop;
};

done_testing;
