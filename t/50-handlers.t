# Handlers over real sockets: caches on several workers, routers in routers, and what --check says of unknown names.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use Sluice;
use Test::More;

my @NEW = (headers => [ 'If-None-Match', '*' ]);

subtest 'a cache never gives what is older than a write, whichever worker is asked' => sub {
  my $s = start_sluice(<<'LUA');
settings { workers = 3 }
stores {
  files = { module = "@REPO@/configs/modules/blobs.aup", path = "data/files" },
  quota = { module = "@REPO@/configs/modules/quota.aup", path = "data/quota" },
}
routes {
  map = {
    ["/f"] = route_cache { child = "files", ttl = 3600 },
    ["/q"] = route_cache { child = "quota", revalidate = true },
    ["/aside"] = "quota",
    ["/caches"] = function() return sluice.json.encode(sluice.server_stats("caches")) end,
  },
}
LUA
  # Many connections: the kernel spreads them over the workers.
  my @c = map { $s->client } 1 .. 12;
  answer_is($c[0]->http(PUT => '/f/objects/k', body => 'v1', @NEW), 'a document', status => 200, etag => '"1"');
  my $wrong = 0;
  for my $n (1 .. 30) {
    for my $c (@c) {
      my $got = $c->http(GET => '/f/objects/k');
      $wrong++ if $got->{status} != 200 || $got->{body} ne "v$n";
      $wrong++ if $c->http(GET => '/q/views/hits')->{body} ne $n - 1;
    }
    my $to = $c[ $n % @c ];
    $wrong++ if $to->http(PUT => '/f/objects/k', body => 'v' . ($n + 1), headers => [ 'If-Match', "\"$n\"" ])->{status} != 200;
    # Not through the cache: that a commit has come is enough.
    $wrong++ if $to->http(POST => '/aside/inputs/plus')->{status} != 200;
  }
  is($wrong, 0, 'thirty writes, each seen by all who asked after its answer');
  my $caches = json($c[0]->http(GET => '/caches')->{body});
  my ($front) = grep { /^\/f/ } keys %$caches;
  cmp_ok($caches->{$front}{hits} + $caches->{$front}{misses}, '==', 360, 'every read was counted');
  cmp_ok($caches->{$front}{hits}, '>', 100, "and most were hits: $caches->{$front}{hits}");
  my $last = $c[0]->http(GET => '/f/objects/k');
  answer_is($c[0]->http(GET => '/f/objects/k'), 'from the cache', status => 200, body => 'v31', age => qr/^\d+$/, etag => '"31"', 'content-type' => $last->{headers}{'content-type'});
  answer_is($c[0]->http(GET => '/f/objects/k', headers => [ 'If-None-Match', '"31"' ]), 'a client that has it', status => 304, body => '');
  answer_is($c[0]->http(HEAD => '/f/objects/k'), 'HEAD', status => 200, body => '', age => qr/^\d+$/, 'content-length' => 3);
  $c[1]->send("PUT /f/objects/k HTTP/1.1\r\nHost: t\r\nIf-Match: \"31\"\r\nContent-Length: 2\r\n\r\nv!GET /f/objects/k HTTP/1.1\r\nHost: t\r\n\r\n");
  $c[1]->expect(qr{\AHTTP/1\.1 200 [^\0]*?\r\n\r\n});
  $c[1]->expect(qr{\r\n\r\nv!\z}s);
  pass('behind a write of its own connection too');
  my $end = $s->stop;
  is($end->{route_slots_in_use}, 0, 'no slot is left');
  is($end->{retained_payload_bytes}, 0, 'and no bytes');
};

subtest 'routers in routers, and a file that a browser need not fetch again' => sub {
  my $s = start_sluice(<<'LUA', files => { 'page.html' => '<p>' . 'x' x 40_000 });
local inner = route_map {
  map = { ["/page"] = route_static { file = "page.html", type = "text/html" }, ["/who/:name"] = function(r) return r:param("tenant") .. "/" .. r:param("name") end },
  cmap = { DELETE = function() return 204 end },
}
routes { map = { ["/t/:tenant/*rest"] = inner, ["/limited"] = route_ratelim { child = inner, limit = 1000, key = function(r) return r:header("X-Who") end } } }
LUA
  answer_is($s->http(GET => '/t/acme/who/ann'), 'both captures', status => 200, body => 'acme/ann');
  my $page = $s->http(GET => '/limited/page');
  answer_is($page, 'a file', status => 200, 'content-type' => 'text/html', etag => qr/^"\d+"$/);
  is(length $page->{body}, 40_003, 'whole');
  answer_is($s->http(GET => '/limited/page', headers => [ 'If-None-Match', $page->{headers}{etag} ]), 'not again', status => 304, body => '');
  answer_is($s->http(HEAD => '/limited/page'), 'HEAD', status => 200, body => '', 'content-length' => 40_003);
  answer_is($s->http(DELETE => '/limited/other'), 'by method', status => 204);
  answer_is($s->http(GET => '/limited/other'), 'and by no other', status => 405, allow => qr/DELETE/, error => 'method');
  answer_is($s->http(GET => '/other'), 'nothing', status => 404, error => 'route');
  $s->stop;
};

subtest 'what does not exist is refused with file, line, the line and the nearest name' => sub {
  my $dir = temp_folder();
  my $store = 'stores { a = { module = "' . repo_path('configs/modules/quota.aup') . "\", path = \"d\" } }\n";
  my @wrong = (
    [ 'a setting',            "settings { worker = 2 }",                                  'there is no setting `worker`; did you mean `workers`?' ],
    [ 'a declaration',        "poools { }",                                               'did you mean `pools`?' ],
    [ 'a store\'s field',     'stores { b = { modul = "x" } }',                           'a store has no `modul`; did you mean `module`?' ],
    [ 'a pool\'s option',     'pools { p = { store = { "a" } } }',                        'did you mean `stores`?' ],
    [ 'a handler',            'routes { default = route_dirct { child = "a" } }',         'there is no handler `route_dirct`; did you mean `route_direct`?' ],
    [ 'an option',            'routes { default = route_direct { chidl = "a" } }',        'route_direct has no option `chidl`; did you mean `child`?' ],
    [ 'a child',              'routes { default = route_direct { child = "aa" } }',       'there is no pool or store `aa`; did you mean `a`?' ],
    [ 'a set',                'routes { default = route_allsync { children = "set_x" } }', 'there is no set `set_x`' ],
    [ 'a method',             'routes { default = cmdmap { PSOT = "a" } }',               '`PSOT` is not a method; did you mean `POST`?' ],
    [ 'a field of routes{}',  'routes { defualt = "a" }',                                 'routes{} has no `defualt`; did you mean `default`?' ],
    [ 'a tag',                'routes { tag = "x", default = "a" }',                      'no listener has the tag `x`' ],
    [ 'sluice.NAME',          'sluice.registr_cron("x", {})',                             'there is no sluice.registr_cron; did you mean `register_cron`?' ],
    [ 'a field of a cron',    'sluice.register_cron("x", { evry = 1 })',                  'a cron has no `evry`; did you mean `every`?' ],
    [ 'a field of a limiter', 'sluice.ratelim_tbf { limt = 1 }',                          'a rate limiter has no `limt`; did you mean `limit`?' ],
    [ 'a file',               'routes { default = route_static { file = "none.html" } }', 'route_static: ' ],
    [ 'ready{}',              'function sluice_config_routes() sluice.funcgen_new():ready { g = 1 } end', 'ready has no `g`' ],
    [ 'a method of one',      'function sluice_config_routes() sluice.funcgen_new():redy {} end', 'sluice.funcgen has no `redy`; did you mean `ready`?' ],
    [ 'router_new{}',         'function sluice_config_routes() sluice.router_new { mapp = {} } end', 'sluice.router_new has no `mapp`; did you mean `map`?' ],
    [ 'an inspector\'s step', 'function sluice_config_routes() sluice.req_inspector_new({ t = "heder", name = "x" }) end', 'did you mean `header`?' ],
    [ 'rctx:NAME',            'routes { default = route_lua { f = function(rctx) rctx:respnse_new() return print end } }', 'sluice.rctx has no `respnse_new`; did you mean `response_new`?' ],
  );
  for my $case (@wrong) {
    my ($what, $line, $says) = @$case;
    my $file = write_file("$dir/w.lua", "$store\n$line\n");
    my ($code, $out, $err) = run_sluice('--check', $file);
    is($code, 1, "$what: exit 1");
    like($err, qr/\Q$file\E:3: .*\Q$says\E/s, "$what: its place and the nearest name");
    like($err, qr/\(in: \Q$line\E\)/, "$what: the line itself");
  }
  my ($code, $out, $err) = run_sluice('--check', write_file("$dir/w.lua", $store));
  is($code, 0, 'what is right ends with 0');
  ($code) = run_sluice('--chek', "$dir/w.lua");
  is($code, 2, 'what is used wrongly with 2');
};

subtest 'what does not exist at request time is an error in the log, with its place' => sub {
  my $s = start_sluice(<<'LUA');
routes {
  map = {
    ["/r"] = function(r) return r:metod() end,
    ["/res"] = route_lua { f = function(rctx) local res = rctx:response_new() return function() return tostring(res:stats()) end end },
    ["/t"] = function() return sluice.shared.none:get("x") end,
  },
}
LUA
  answer_is($s->http(GET => "/$_"), $_, status => 500, error => 'lua') for qw(r res t);
  $s->wait_log(qr/sluice\.lua:3: sluice\.request has no `metod`; did you mean `method`\?/);
  $s->wait_log(qr/sluice\.lua:4: sluice\.response has no `stats`; did you mean `status`\?/);
  $s->wait_log(qr/sluice\.lua:5: /);
  $s->stop;
  pass('all are named');
};
done_testing;
