# TLS on listeners, as clients see it: bodies, pipelines, client certificates, names, what is no TLS, resumption, reload, the end.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use Sluice;
use SluiceTls;
use Test::More;
use Time::HiRes qw(time);

my $dir = temp_folder();
my $ca = authority($dir, 'ca');
my $other_ca = authority($dir, 'other');
certificate($dir, 'server', $ca, cn => 'localhost', dns => 'localhost');
certificate($dir, 'rsa', $ca, cn => 'rsa.example', dns => 'rsa.example', rsa => 2048);
certificate($dir, $_, $ca) for qw(alice bob);
certificate($dir, 'mallory', $other_ca, cn => 'alice');

my %files = map { $_ => read_file("$dir/$_") } qw(server.pem server.key ca.pem rsa.pem rsa.key);
my $TLS = 'cert = "server.pem", key = "server.key"';
my $CONFIG = <<'LUA';
settings { workers = 2, head_timeout = @HEAD@, idle_timeout = 5, listen = {
  "127.0.0.1:0",
  { "127.0.0.1:0", tag = "plain", tls = { @TLS@, names = { ["rsa.example"] = { cert = "rsa.pem", key = "rsa.key" } } } },
  { "127.0.0.1:0", tag = "optional", tls = { @TLS@, client_ca = "ca.pem", verify = "optional" } },
  { "127.0.0.1:0", tag = "required", tls = { @TLS@, client_ca = "ca.pem" } },
  { "127.0.0.1:0", tag = "newest", tls = { @TLS@, min_version = "1.3" } },
} }
stores {
  quota = { module = "@REPO@/configs/modules/quota.aup", path = "data/quota" },
  blobs = { module = "@REPO@/configs/modules/blobs.aup", path = "data/blobs" },
}
routes {
  map = {
    ["/who"] = route_lua { f = function(rctx) return function(r)
      return ("%s on %s\n"):format(tostring(rctx:tls_peer_cn()), tostring(r:tag())) end end },
    ["/inner"] = route_failover { children = { route_lua { f = function(rctx) return function() return tostring(rctx:tls_peer_cn()) end end } } },
    ["/alice"] = route_auth { child = "quota", tls_names = { "alice" } },
    ["/both"] = route_auth { child = "quota", tls_names = { "alice" }, tokens = { "a-long-secret" } },
    ["/echo"] = route_lua { methods = { "POST" }, f = function() return function(r) return r:body() end end },
    ["/slow"] = route_lua { f = function(rctx) return function() rctx:sleep(0.3) return "slow" end end },
  },
  default = route_stores {},
}
LUA
my ($PLAIN, $OPTIONAL, $REQUIRED, $NEWEST) = (0 .. 3);

sub server {
  my (%with) = @_;
  return start_sluice($CONFIG, HEAD => $with{head} // 10, TLS => $TLS, files => { %files, %{ $with{files} || {} } });
}
sub trusting { return ('--cacert', "$dir/ca.pem", @_) }
sub at { my ($s, $which, $path) = @_; return "https://localhost:" . $s->more_port($which) . $path }
sub as { my ($name) = @_; return ('--cert', "$dir/$name.pem", '--key', "$dir/$name.key") }
sub body_of { my ($code, $out, $err) = curl(trusting(@_)); return $code == 0 ? $out : "curl $code: $err" }

subtest 'bodies both ways, in both versions, on connections that stay' => sub {
  my $s = server();
  ok($s->{ready}{more}[$PLAIN]{tls}, 'the first line says that it is TLS');
  is($s->http(GET => '/who')->{body}, "nil on \n", 'a listener without TLS beside them');
  my $large = join '', map { chr(32 + $_ * 7 % 90) } 1 .. 300_000;
  $large x= 10;
  write_file("$dir/large", $large);
  for my $version ('--tlsv1.2 --tls-max 1.2', '--tlsv1.3') {
    my @version = split / /, $version;
    ok(body_of(@version, '--data-binary', "\@$dir/large", at($s, $PLAIN, '/echo')) eq $large, "3 MB there and back: $version");
    my $name = "doc" . @version;
    is(body_of(@version, '-X', 'PUT', '-H', 'If-None-Match: *', '--data-binary', "\@$dir/large", '-o', '/dev/null', '-w', '%{http_code}',
               at($s, $PLAIN, "/blobs/objects/$name")), '200', 'a document is stored');
    ok(body_of(@version, at($s, $PLAIN, "/blobs/objects/$name")) eq $large, 'and comes back whole');
    my ($code, $out) = curl(trusting(@version, '-w', '[%{num_connects}]', map { at($s, $PLAIN, $_) } qw(/who /who /who)));
    is($out, "nil on plain\n[1]nil on plain\n[0]nil on plain\n[0]", 'three requests on one connection');
    like(body_of(@version, '-I', at($s, $PLAIN, '/quota/views/level')), qr{^HTTP/1\.1 200 OK\r\n.*Content-Length: 2\r\n.*\r\n\r\n\z}s, 'HEAD');
  }
  my $c = tls_client($s->more_port($PLAIN));
  $c->send(join '', map { Sluice::Client::request(POST => "/quota/inputs/plus"), Sluice::Client::request(GET => '/quota/views/hits') } 1 .. 20);
  is(join(' ', map { $c->answer->{status} . ':' . $c->answer->{body} } 1 .. 20), join(' ', map { "200:$_" } 1 .. 20),
     'forty pipelined requests, answered in order');
  my ($code) = curl(trusting('--tls-max', '1.2', at($s, $NEWEST, '/who')));
  is($code, 35, 'min_version 1.3 takes no 1.2');
  is(body_of(at($s, $NEWEST, '/who')), "nil on newest\n", 'and takes 1.3');
  my $counters = $s->stop;
  cmp_ok($counters->{tls_handshakes}, '>=', 10, "counted: $counters->{tls_handshakes} handshakes");
  is($counters->{tls_failures}, 1, 'and one that failed');
};

subtest 'client certificates' => sub {
  my $s = server();
  is(body_of(as('alice'), at($s, $PLAIN, '/who')), "nil on plain\n", 'nobody is asked where nothing says so');
  is(body_of(at($s, $OPTIONAL, '/who')), "nil on optional\n", 'optional: none');
  is(body_of(as('alice'), at($s, $OPTIONAL, '/who')), "alice on optional\n", 'optional: a good one');
  is(body_of(as('bob'), at($s, $OPTIONAL, '/inner')), 'bob', 'a route inside a route knows it too');
  like(body_of(as('mallory'), at($s, $OPTIONAL, '/who')), qr/^curl \d+: .*unknown ca/, "another authority's is refused, with the reason");
  is(body_of(as('alice'), at($s, $REQUIRED, '/who')), "alice on required\n", 'required: a good one');
  like(body_of(at($s, $REQUIRED, '/who')), qr/^curl \d+: .*certificate required/, 'required: none is refused');
  like(body_of('--tls-max', '1.2', at($s, $REQUIRED, '/who')), qr/^curl \d+: .*alert/, 'in TLS 1.2 as well');
  like(body_of(as('mallory'), at($s, $REQUIRED, '/who')), qr/^curl \d+: .*unknown ca/, 'nor is the same name of another authority');

  my $status = sub { body_of('-o', '/dev/null', '-w', '%{http_code} %header{x-pure-error}', @_) };
  is($status->(as('alice'), at($s, $OPTIONAL, '/alice/views/level')), '200 none', 'route_auth by name');
  is($status->(as('bob'), at($s, $OPTIONAL, '/alice/views/level')), '403 denied', 'another name');
  is($status->(at($s, $OPTIONAL, '/alice/views/level')), '403 denied', 'no certificate');
  is($s->http(GET => '/alice/views/level')->{status}, 403, 'no TLS');
  is($status->(as('bob'), at($s, $OPTIONAL, '/both/views/level')), '401 unauthorized', 'name or token: neither');
  is($status->(as('bob'), '-H', 'Authorization: Bearer a-long-secret', at($s, $OPTIONAL, '/both/views/level')), '200 none', 'a token');
  is($status->(as('alice'), at($s, $OPTIONAL, '/both/views/level')), '200 none', 'a name');
  $s->stop;
};

subtest 'certificates by the name that is asked for, and protocols' => sub {
  my $s = server();
  my $port = $s->more_port($PLAIN);
  is(body_of('--resolve', "rsa.example:$port:127.0.0.1", "https://rsa.example:$port/who"), "nil on plain\n", 'the one of that name');
  like(body_of('--resolve', "none.example:$port:127.0.0.1", "https://none.example:$port/who"), qr/^curl 60: /, 'another name gets the first, which is not its own');
  my ($code, $said) = openssl('s_client', '-connect', "127.0.0.1:$port", '-alpn', 'h2');
  like($said, qr/no application protocol/, 'HTTP/2 alone is refused by name');
  $s->stop;
};

subtest 'what is no TLS' => sub {
  my $s = server(head => 0.5);
  my $port = $s->more_port($REQUIRED);
  my $c = Sluice::Client->new($port);
  answer_is($c->http(GET => '/who'), 'plain HTTP is told, in plain HTTP', status => 400, error => 'request', connection => 'close', body => qr/https/);
  is($c->until_closed, '', 'and closed');
  for my $garbage ("\x00\x01\x02", "\x16\x03\x01\x40\x01" . 'x' x 16385, "\x80\x2e\x01\x00\x02", 'q' x 100_000) {
    my $g = Sluice::Client->new($port);
    $g->send($garbage);
    ok(defined $g->until_closed, 'garbage ends');
  }
  my ($silent, $part) = map { Sluice::Client->new($port) } 1 .. 2;
  my $begin = time;
  $part->send("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03");
  ok(defined $silent->until_closed && defined $part->until_closed, 'handshakes that stall end');
  cmp_ok(time - $begin, '>=', 0.45, 'not before head_timeout');
  for (1 .. 20) { my $gone = Sluice::Client->new($port); $gone->send("\x16\x03\x01\x02\x00\x01"); $gone->close }
  my $gone = tls_client($s->more_port($PLAIN));
  $gone->send(Sluice::Client::request(POST => '/echo', headers => [ 'Content-Length', 100 ]) . 'half');
  $gone->vanish;
  is(body_of(as('alice'), at($s, $REQUIRED, '/who')), "alice on required\n", 'others are served');
  my $counters = $s->stop;
  cmp_ok($counters->{timeouts}, '>=', 2, 'the stalled ones are counted as timeouts');
  cmp_ok($counters->{tls_failures}, '>=', 7, "counted: $counters->{tls_failures} failures");
};

subtest 'sessions are resumed, over a reload too' => sub {
  my $s = server();
  my $url = at($s, $OPTIONAL, '/who');
  # In TLS 1.2 curl takes no tickets.
  is(body_of('--tlsv1.3', as('alice'), '-H', 'Connection: close', $url, $url), "alice on optional\n" x 2, 'the name comes with the ticket');
  my $port = $s->more_port($PLAIN);
  my @session = ('s_client', '-connect', "127.0.0.1:$port", '-tls1_2');
  like((openssl(@session, '-sess_out', "$dir/session"))[1], qr/^New, /m, 'a session');
  like((openssl(@session, '-sess_in', "$dir/session"))[1], qr/^Reused, /m, 'resumed');
  ok($s->reload, 'a reload that changes nothing');
  like((openssl(@session, '-sess_in', "$dir/session"))[1], qr/^Reused, /m, 'resumed after it');
  certificate($s->dir, 'server', $ca, cn => 'localhost', dns => 'localhost');
  ok($s->reload, 'a reload with another certificate');
  like((openssl(@session, '-sess_in', "$dir/session"))[1], qr/^New, /m, 'is a new session');
  my $counters = $s->stop;
  is($counters->{tls_resumptions}, 3, 'counted');
};

subtest 'a reload brings new certificates to new connections' => sub {
  my $s = server();
  my $serial = sub {
    my ($code, $said) = openssl('s_client', '-connect', '127.0.0.1:' . $s->more_port($PLAIN));
    return $said =~ /^-----BEGIN CERTIFICATE-----\n(.*?)-----END/ms ? $1 : $said;
  };
  my $old = tls_client($s->more_port($PLAIN));
  is($old->http(GET => '/who')->{body}, "nil on plain\n", 'a connection');
  my $first = $serial->();
  certificate($s->dir, 'server', $ca, cn => 'localhost', dns => 'localhost');
  is($serial->(), $first, 'a file that changes is not looked at');
  ok($s->reload, 'until a reload');
  my $second = $serial->();
  isnt($second, $first, 'then it is the new one');
  is($old->http(GET => '/who')->{body}, "nil on plain\n", 'the older connection goes on');
  for my $broken ([ 'server.key', read_file("$dir/alice.key"), qr/server\.key: not the key of the certificate in \S*server\.pem/ ],
                  [ 'server.pem', "nothing\n", qr/sluice\.lua:\d+: \S*server\.pem: no certificate is in it/ ],
                  [ 'ca.pem', '', qr/ca\.pem: no certificate is in it/ ]) {
    my ($name, $text, $why) = @$broken;
    my $good = read_file($s->dir . "/$name");
    write_file($s->dir . "/$name", $text);
    ok(!$s->reload, "$name is broken: the reload fails");
    like($s->{reload_log}, $why, 'and says why');
    is($serial->(), $second, 'the last good one serves');
    write_file($s->dir . "/$name", $good);
  }
  ok($s->reload, 'and all is good again');
  $s->stop;
};

subtest 'a slow reader, and the end' => sub {
  my $s = server();
  my $document = 'y' x (8 << 20);
  is($s->http(PUT => '/blobs/objects/large', body => $document, headers => [ 'If-None-Match', '*' ])->{status}, 200, 'a large document');
  my $reader = tls_client($s->more_port($PLAIN));
  $reader->send(Sluice::Client::request(GET => '/blobs/objects/large') x 2);
  # Others are answered while it does not read.
  is(body_of(at($s, $PLAIN, '/who')), "nil on plain\n", 'another client') for 1 .. 3;
  ok($reader->answer->{body} eq $document, 'all of it') for 1 .. 2;

  my ($slow, $idle) = map { tls_client($s->more_port($PLAIN)) } 1 .. 2;
  is($idle->http(GET => '/who')->{status}, 200, 'one idles');
  is($slow->http(GET => '/who')->{status}, 200, 'one');
  $slow->send(Sluice::Client::request(GET => '/slow'));
  is($s->http(GET => '/who')->{status}, 200, 'was heard before the end');
  $s->signal('TERM');
  is($idle->until_closed, '', 'the idle one is closed');
  answer_is($slow->answer, 'what was under way is answered', status => 200, body => 'slow', connection => 'close');
  is($slow->until_closed, '', 'and closed');
  is($s->reap, 0, 'exit 0');
  is($s->counters->{active}, 0, 'nothing active');
};

subtest 'what is wrong with a config is said before it serves' => sub {
  my $check = sub {
    my ($listen) = @_;
    write_file("$dir/bad.lua", "settings {\n  listen = {\n    $listen,\n  },\n}\nroutes { default = route_null {} }\n");
    my ($code, $out, $err) = run_sluice('--check', "$dir/bad.lua");
    return "$code: $out$err";
  };
  my $good = 'cert = "server.pem", key = "server.key"';
  like($check->(qq({ "127.0.0.1:0", tls = { $good } })), qr/^0: /, 'a good one');
  for my $case ([ 'cert = "none.pem", key = "server.key"', qr/bad\.lua:3: \S*none\.pem: No such file/ ],
                [ 'cert = "server.pem", key = "alice.key"', qr/bad\.lua:3: \S*alice\.key: not the key of the certificate in/ ],
                [ 'cert = "server.pem"', qr/bad\.lua:3: .*needs both `cert` and `key`/ ],
                [ "$good, keys = 1", qr/bad\.lua:3: .*has no `keys`; did you mean `key`\?/ ],
                [ "$good, verify = 'yes'", qr/bad\.lua:3: .*`verify` of `tls` is "none", "optional" or "required", got "yes"/ ],
                [ "$good, verify = 'required'", qr/bad\.lua:3: .*`verify` needs `client_ca`/ ],
                [ "$good, min_version = 1.2", qr/bad\.lua:3: .*`min_version` of `tls` is "1\.2" or "1\.3", got a number/ ],
                [ "$good, ciphers = 'NONE-OF-THESE'", qr/bad\.lua:3: `ciphers`: "NONE-OF-THESE": no cipher match/ ],
                [ "$good, names = { 'x' }", qr/bad\.lua:3: .*`names` of `tls` are such as/ ],
                [ "$good, names = { ['x.org'] = { cert = 'server.pem' } }", qr/bad\.lua:3: .*needs both `cert` and `key`/ ],
                [ "$good, client_ca = 'server.key'", qr/bad\.lua:3: \S*server\.key: no certificate is in it/ ]) {
    like($check->("{ '127.0.0.1:0', tls = { $case->[0] } }"), qr/^1: .*$case->[1]/s, $case->[0]);
  }
  like($check->('{ "127.0.0.1:0", tls = true }'), qr/`tls` of a listener is \{ cert =, key = \}, got a boolean/, 'tls = true');
  like($check->(qq("127.0.0.1:0", tls = { $good })), qr/`tls` belongs into one of them/, 'one level too high');

  my $s = start_sluice($CONFIG =~ s/"rsa\.example"\]/"other.example"]/r, HEAD => 10, TLS => $TLS, files => \%files);
  like($s->log, qr/warning \S*sluice\.lua:3: \S*rsa\.pem: the certificate does not name other\.example/, 'a warning at the start');
  ok($s->reload, 'a reload');
  like($s->{reload_log}, qr/warning reload: .*does not name other\.example/, 'warns again');
  $s->stop;
};
subtest 'a module without a config' => sub {
  my @flags = ('--tls-cert', "$dir/server.pem", '--tls-key');
  my $s = start_module(repo_path('configs/modules/quota.aup'), args => [ @flags, "$dir/server.key" ]);
  ok($s->{ready}{tls}, 'the first line says TLS');
  is(body_of("https://localhost:" . $s->port . "/views/level"), '50', 'served');
  ok($s->reload, 'a reload');
  is(body_of("https://localhost:" . $s->port . "/views/level"), '50', 'served');
  $s->stop;
  my ($code, $out, $err) = run_sluice('--module', repo_path('configs/modules/quota.aup'), '--store', "$dir/m", '--port', 0, @flags, "$dir/alice.key");
  is($code, 1, 'a key of another certificate ends the start');
  like($err, qr/^sluice: --tls-key: \S*alice\.key: not the key of the certificate in \S*server\.pem$/, 'and says why');
};
done_testing;
