# Remote backends: requests that go on to other servers, and what routes see of their answers. The test plays the backends.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use Sluice;
use Sluice::Backend;
use Test::More;

sub get { my ($path, @fields) = @_; return join("\r\n", "GET $path HTTP/1.1", 'Host: h', @fields) . "\r\n\r\n" }

{
  note 'a request goes on whole, and its answer comes back whole';
  my $b = mock_backend();
  my $s = start_with_pools("b = { backends = { '@{[$b->place]} east' } }");
  my $c = $s->client;
  $c->send("POST /b/a%20b/c?x=1&y=%41+b HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 5\r\nX-Mine: yes\r\nConnection: X-Hop, keep-alive\r\n"
      . "X-Hop: no\r\nKeep-Alive: 5\r\nTE: trailers\r\nX-Forwarded-For: 192.0.2.1\r\n\r\nhello");
  my $peer = $b->accept;
  my $r = $peer->asked;
  is("$r->{method} $r->{target} $r->{body}", 'POST /a%20b/c?x=1&y=%41+b hello', 'method, target as written, body');
  is($r->{headers}{host}, '127.0.0.1:' . $b->port, 'the Host is the backend\'s');
  is($r->{headers}{'x-forwarded-host'}, 'shop.example', 'and the client\'s is said beside it');
  is($r->{headers}{'x-forwarded-for'}, '192.0.2.1, 127.0.0.1', 'the client\'s address is behind those that came');
  is($r->{headers}{via}, '1.1 sluice', 'Via');
  is($r->{headers}{'x-mine'}, 'yes', 'its own fields go on');
  ok(!exists $r->{headers}{$_}, "not $_") for qw(x-hop keep-alive te connection);
  $peer->send("HTTP/1.1 201 Made\r\nContent-Length: 4\r\nETag: \"12\"\r\nLocation: /x\r\nX-Pure-Error: none\r\nKeep-Alive: 9\r\n"
      . "Set-Cookie: a=1\r\nSet-Cookie: b=2\r\nContent-Type: text/x\r\nConnection: X-Away\r\nX-Away: 1\r\n\r\ndone");
  answer_is($c->answer, 'status, fields and body', status => 201, body => 'done', etag => '"12"', location => '/x', error => 'none',
    'set-cookie' => 'a=1, b=2', 'content-type' => 'text/x', 'keep-alive' => undef, 'x-away' => undef);
  $c->send(get('/b'));
  is($peer->asked->{target}, '/', 'the next one goes over the same connection');
  $peer->reply(404, 'gone', 'X-Pure-Error' => 'no_view');
  answer_is($c->answer, 'the backend\'s own error is passed on', status => 404, error => 'no_view', body => 'gone');

  note 'bodies of every kind, on one connection';
  my $ask = sub {
    my ($name, $bytes, %want) = @_;
    my $method = delete $want{method} // 'GET';
    $c->send("$method /b/x HTTP/1.1\r\nHost: h\r\n\r\n");
    $peer->asked;
    $peer->send($bytes);
    answer_is($c->answer($method), $name, %want);
  };
  $ask->('chunked', "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6;x=y\r\n world\r\n0\r\nX-T: 1\r\n\r\n",
    status => 200, body => 'hello world', 'transfer-encoding' => undef, 'x-t' => undef);
  $ask->('interim answers are passed over', "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    status => 200, body => 'ok', link => undef);
  $ask->('no content', "HTTP/1.1 204 No\r\n\r\n", status => 204, 'content-length' => undef);
  $ask->('not modified', "HTTP/1.1 304 Not\r\nETag: \"x\"\r\nContent-Length: 9\r\n\r\n", status => 304, etag => '"x"');
  $ask->('HEAD has the length and no body', "HTTP/1.1 200 OK\r\nContent-Length: 123\r\nETag: \"8\"\r\n\r\n", method => 'HEAD', status => 200,
    'content-length' => 123, etag => '"8"');
  $ask->('HEAD without a length', "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", method => 'HEAD', status => 200, 'content-length' => undef);
  $ask->('an empty one', "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", status => 200, body => '');
  my $large = substr join('', 'x', 0 .. 9999) x 52, 0, 2_000_000;
  $ask->('two megabytes', "HTTP/1.1 200 OK\r\nContent-Length: " . length($large) . "\r\n\r\n$large", status => 200, body => $large);
  my $chunks = join '', map { sprintf "%x\r\n%s\r\n", length $_, $_ } unpack '(a60000)*', $large;
  $ask->('the same in chunks', "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${chunks}0\r\n\r\n", status => 200, body => $large);
  $ask->('at last one that ends with the connection', "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 3\r\n\r\nend", status => 200, body => 'end');
  is($peer->until_closed, '', 'which the server closes then');
  $c->send(get('/b/open'));
  $peer = $b->accept;
  $peer->asked;
  $peer->send("HTTP/1.1 200 OK\r\n\r\nuntil the end");
  $peer->close;
  answer_is($c->answer, 'a body to the end of the connection', status => 200, body => 'until the end', 'content-length' => 13);

  note 'bytes that come one by one mean the same';
  $c->send(get('/b/slow'));
  $peer = $b->accept;
  $peer->asked;
  $peer->send($_) for split //, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
  answer_is($c->answer, 'byte by byte', status => 200, body => 'abc');

  note 'a large request';
  $c->send("PUT /b/big HTTP/1.1\r\nHost: h\r\nContent-Length: 2000000\r\n\r\n$large");
  my $put = $peer->asked;
  ok($put->{body} eq $large, 'comes whole');
  $peer->reply(200, '');
  is($c->answer->{status}, 200, 'and is answered');
  $c->send("POST /b/c HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n");
  $r = $peer->asked;
  is("$r->{headers}{'content-length'} $r->{body}", '3 abc', 'a chunked one goes on with its length');
  $peer->reply(200, '');
  is($c->answer->{status}, 200, 'and is answered');
  my $n = $s->stop;
  my $counted = $s->counters;
  is($counted->{backend_requests}, 16, 'requests to backends are counted');
  is($counted->{backends}{east}{answers}, 16, 'and the answers of each');
  is($counted->{backends}{east}{$_}, 0, "no $_ are left") for qw(in_flight waiting connections down errors timeouts);
  is($counted->{retained_payload_bytes}, 0, 'and no payload');
}

{
  note 'how backends are named, and what Host they get';
  my $dir = temp_folder();
  my ($u, $b) = (mock_backend(unix => "$dir/b.sock"), mock_backend());
  my $s = start_with_pools(qq{
      u = { backends = { "unix:$dir/b.sock" } },
      h = { backends = { { host = "localhost", port = @{[$b->port]}, host_header = "api.example.com" } } } },
    routes => 'map = { ["/u"] = "u", ["/h"] = route_direct { child = "h" } }');
  my $c = $s->client;
  $c->send(get('/u/1') . get('/h/2'));
  my ($at_u, $at_b) = ($u->accept, $b->accept);
  is($at_u->asked->{headers}{host}, 'localhost', 'a Unix socket');
  is($at_b->asked->{headers}{host}, 'api.example.com', 'host_header');
  $at_b->reply(200, 'two');
  $at_u->reply(200, 'one');
  is($c->answer->{body} . $c->answer->{body}, 'onetwo', 'both at once, answered in order');
  $s->stop;
}

{
  note 'routes in Lua over backends';
  my ($a, $b) = (mock_backend(), mock_backend());
  my $s = start_with_pools("a = { backends = { '@{[$a->place]} first' } }, b = { backends = { { '@{[$b->place]}', label = 'second' } } }",
    routes => q{map = {
      ["/both"] = route_lua { children = { a = "a", b = "b" }, f = function(rctx, h)
        return function(r)
          rctx:enqueue(r, { h.a, h.b })
          rctx:wait_cond(2)
          local x, y = rctx:result(h.a), rctx:result(h.b)
          return ("%s=%s %s=%s %s %s\n"):format(x:backend(), x:body(), y:backend(), y:error(), tostring(x:revision()), tostring(y:elapsed() > 0))
        end
      end },
      ["/fail"] = route_failover { children = { "a", "b" } },
      ["/miss"] = route_failover { children = { "a", "b" }, miss = true },
      ["/own/:id"] = route_lua { children = { a = "a" }, f = function(rctx, h)
        return function(r)
          local q = rctx:request_new("PUT", "/objects/" .. r:param("id")):set_query("x y", "1&2"):set_header("X-A", "b"):set_body("text")
          local res = rctx:enqueue_and_wait(q, h.a)
          return res:status(), res:header("x-b"), { ["X-Type"] = res:header("content-type") }
        end
      end },
      ["/short"] = route_lua { children = { a = "a" }, f = function(rctx, h)
        return function(r)
          local res = rctx:get_and_wait(h.a, "k7")
          return tostring(res:hit()) .. tostring(res:ok()) .. res:error()
        end
      end },
      ["/pass"] = route_lua { children = { a = "a" }, f = function(rctx, h)
        return function(r) return rctx:enqueue_and_wait(r, h.a), { ["X-More"] = "1" } end
      end },
    }});
  my $c = $s->client;
  $c->send(get('/both/x%2Cy?q=%20'));
  my ($at_a, $at_b) = ($a->accept, $b->accept);
  is($at_a->asked->{target}, '/x%2Cy?q=%20', 'a copy of the client\'s own request has its target');
  $at_b->asked;
  $at_b->reply(404, 'no', 'X-Pure-Error' => 'not_found');
  $at_a->reply(200, 'yes', ETag => '"5"');
  is($c->answer->{body}, "first=yes second=not_found 5 true\n", 'labels, bodies, errors, revisions');

  $c->send(get('/fail/1'));
  $at_a->asked;
  $at_a->reply(503, 'busy');
  is($at_b->asked->{target}, '/1', 'failover asks the next');
  $at_b->reply(200, 'fine');
  is($c->answer->{body}, 'fine', 'and answers with it');
  $c->send(get('/miss/1'));
  $at_a->asked;
  $at_a->reply(404, 'none');
  $at_b->asked;
  $at_b->reply(404, 'neither');
  answer_is($c->answer, 'the first miss', status => 404, body => 'none');

  $c->send(get('/own/7'));
  my $r = $at_a->asked;
  is("$r->{method} $r->{target} $r->{headers}{'x-a'} $r->{body}", 'PUT /objects/7?x%20y=1%262 b text', 'a request of the route\'s own');
  $at_a->reply(418, '', 'X-B' => 'teapot', 'Content-Type' => 'x/y');
  answer_is($c->answer, 'its fields', status => 418, body => 'teapot', 'x-type' => 'x/y');
  $c->send(get('/short'));
  is($at_a->asked->{target}, '/objects/k7', 'shorthands');
  $at_a->reply(404, '', 'X-Pure-Error' => 'not_found');
  is($c->answer->{body}, 'falsetruenot_found', 'classes by status');
  $c->send(get('/pass/1'));
  $at_a->asked;
  my $large = 'x' x 300_000;
  $at_a->reply(200, $large, 'X-Kept' => 1);
  answer_is($c->answer, 'a result passed on', status => 200, body => $large, 'x-kept' => 1, 'x-more' => 1);
  $s->stop;
  is($s->counters->{route_slots_in_use}, 0, 'no slot is in use');
}

{
  note 'keys pick backends, the same one each time; filters bring keys together';
  my @b = map { mock_backend() } 1 .. 3;
  my $list = join ', ', map { "'" . $_->place . "'" } @b;
  my $s = start_with_pools(qq{
      jump = { backends = { $list } },
      ring = { backends = { $list }, options = { dist = "ring", hash = "xxh3", seed = 5 } },
      tags = { backends = { $list }, options = { filter = "tags", filter_conf = "()", beprefix = "t-" } },
      stop = { backends = { $list }, options = { filter = "stop", filter_conf = "." } } },
    routes => 'map = { ["/jump"] = "jump", ["/ring"] = "ring", ["/tags"] = "tags", ["/stop"] = "stop" }');
  my @peers;
  my $where = sub {
    my ($path) = @_;
    my $c = $s->client;
    $c->send(get($path));
    while (1) {
      my @ready = Sluice::wait_readable(time + Sluice::timeout_s(), map({ $_->{fd} } @b), map { $_->[1]{fd} } @peers) or die 'nobody is asked';
      for my $i (0 .. $#b) { push @peers, [$i, $b[$i]->accept] if grep { $_ == $b[$i]{fd} } @ready }
      for my $p (@peers) {
        next unless grep { $_ == $p->[1]{fd} } @ready;
        $p->[1]->asked or die;
        $p->[1]->reply(200, 'x');
        $c->answer;
        return $p->[0];
      }
    }
  };
  for my $pool (qw(jump ring)) {
    my %seen;
    my @first = map { $where->("/$pool/objects/key-$_") } 1 .. 24;
    my @again = map { $where->("/$pool/objects/key-$_") } 1 .. 24;
    is("@again", "@first", "$pool: stable");
    $seen{$_} = 1 for @first;
    is(scalar keys %seen, 3, "$pool: all are used");
  }
  my %tagged;
  $tagged{ $where->("/tags/objects-$_/(same)") } = 1 for 1 .. 12;
  is(scalar keys %tagged, 1, 'tags');
  my %stopped;
  $stopped{ $where->("/stop/same.$_") } = 1 for 1 .. 12;
  is(scalar keys %stopped, 1, 'stop');
  my %views;
  $views{ $where->($_) } = 1 for '/jump/objects/ann', '/jump/views/total?user=ann', '/jump/inputs/say?user=ann&x=1';
  is(scalar keys %views, 1, 'documents, views and inputs of one key meet');
  $s->stop;
}

done_testing;
