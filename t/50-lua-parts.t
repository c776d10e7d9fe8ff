# Limits, counters, shared tables, tags and hosts of a config, through the whole server.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use Sluice;
use Test::More;

my $config = <<'LUA';
settings { workers = 2, listen = { "127.0.0.1:0", { "127.0.0.1:0", tag = "admin" } } }
stores { quota = { module = "@REPO@/configs/modules/quota.aup", path = "data/quota" } }
shared { seen = "64KiB" }
stats { asked = "counter", size = "histogram" }
routes {
  map = {
    ["/quota"] = route_ratelim { child = "quota", limit = 5, rate = 0.001, global = true },
    ["/count"] = function(r) sluice.stat("asked") sluice.stat("size", 2) return tostring(sluice.shared.seen:incr("n", 1, 0)) end,
    ["/tag"] = function(r) return "[" .. r:tag() .. "]" end,
    ["/slow"] = function(r) return tostring(select(2, pcall(string.find, ("a"):rep(40), ("a?"):rep(40) .. ("a"):rep(40)))) end,
    ["/go"] = route_redirect { to = "/", keep = true },
    ["/sub"] = route_match { header = "x-never", child = "quota", otherwise = route_redirect { to = "https://x.example", keep = true } },
    ["/mine"] = route_auth { child = "quota", tokens = { "a-long-secret" } },
    ["/by"] = cmdmap { GET = route_ratelim { child = "quota", limit = 3, rate = 0.001, global = true },
                       POST = route_ratelim { child = "quota", limit = 3, rate = 0.001, global = true } },
    ["/log"] = function(r) sluice.log_req(r, nil, "by hand") return "logged" end,
  },
}
routes { host = "api.example.com", default = function() return "api" end }
routes { tag = "admin", map = { ["/tag"] = function(r) return "admin " .. r:tag() end, ["/stats"] = route_stats {}, ["/metrics"] = route_stats { format = "prometheus" } } }
LUA
my $s = start_sluice($config, own_port => 1);
my $admin = $s->more_port(0);

subtest 'a limit of the process is one for all its workers, and outlives a reload' => sub {
  my %status;
  $status{ $s->client->http(GET => '/quota/views/hits')->{status} }++ for 1 .. 12;      # of whatever worker
  is_deeply(\%status, { 200 => 5, 429 => 7 }, 'five of twelve are let in');
  my $refused = $s->http(GET => '/quota/views/hits');
  answer_is($refused, 'and the others are told when', status => 429, error => 'rate', 'retry-after' => qr/^\d+$/);
  ok($s->reload($config), 'a reload');
  is($s->http(GET => '/quota/views/hits')->{status}, 429, 'the limit goes on');
};

subtest 'shared tables and counters are of all workers' => sub {
  my @counts = map { $s->client->http(GET => '/count')->{body} } 1 .. 10;
  is_deeply(\@counts, [ 1 .. 10 ], 'each sees what the other has added');
  my $stats = json($s->http_at($admin, GET => '/stats')->{body});
  is($stats->{user}{asked}, 10, 'a counter');
  is($stats->{user}{size}{count}, 10, 'a histogram');
  cmp_ok($stats->{server}{requests}, '>', 20, 'and what the server counts');
  is($stats->{server}{reloads}, 1, 'reloads too');
  like($s->http_at($admin, GET => '/metrics')->{body}, qr/^sluice_user_asked 10$/m, 'in Prometheus\' format');
};

subtest 'memory of VMs and routes' => sub {
  my $routes = json($s->http_at($admin, GET => '/stats')->{body})->{routes};
  is_deeply([ map { $_->{worker} } @{ $routes->{workers} } ], [ 0, 1 ], 'a VM for each worker');
  for my $vm (@{ $routes->{workers} }) {
    cmp_ok($vm->{bytes}, '>', 50_000, 'which holds something');
    is($vm->{limit}, 256 << 20, 'under its limit');
    is($vm->{refused} + $vm->{stopped}, 0, 'and nothing went wrong');
  }
  my @used = grep { $_->{in_use} } values %{ $routes->{generators} };
  is(scalar @used, 1, 'the route that answers is in use');
  cmp_ok($_->{bytes}, '>=', 1000 * $_->{slots}, 'slots have bytes') for values %{ $routes->{generators} };
  my $metrics = $s->http_at($admin, GET => '/metrics')->{body};
  like($metrics, qr/^sluice_lua_bytes\{worker="1"\} \d+$/m, 'for Prometheus by worker');
  like($metrics, qr/^sluice_route_slots\{route="[^"\n]+"\} 2$/m, 'and by route');
};

subtest 'tags and hosts' => sub {
  answer_is($s->http(GET => '/tag'), 'no tag', status => 200, body => '[]');
  answer_is($s->http_at($admin, GET => '/tag'), 'a tag has its own routes', status => 200, body => 'admin admin');
  answer_is($s->http_at($admin, GET => '/count'), 'and no others', status => 404, error => 'route');
  my $c = $s->client;
  $c->send("GET /any HTTP/1.1\r\nHost: api.example.com\r\n\r\n");
  is($c->answer->{body}, 'api', 'so has a host');
};

subtest 'what a client would like to choose and may not' => sub {
  answer_is($s->http(GET => '/go//evil.example/x'), 'another host', status => 302, location => '/evil.example/x');
  answer_is($s->http(GET => '/sub/a%3Fb?q=1'), 'a query out of the path', status => 302, location => 'https://x.example/a%3Fb?q=1');
  my $c = $s->client;
  $c->send("GET http://other.example/any HTTP/1.1\r\nHost: api.example.com\r\n\r\n");
  is($c->answer->{status}, 404, 'a Host beside a whole URL');
  $c->send("GET HTTP://API.example.com:80/any HTTP/1.1\r\nHost: other.example\r\n\r\n");
  is($c->answer->{body}, 'api', 'whose own host counts');
  is($s->http(GET => '/mine/views/hits', headers => [ Authorization => $_->[0] ])->{status}, $_->[1], $_->[0])
    for [ 'Bearer a-long-secret', 200 ], [ 'Bearer a-long-secreT', 401 ], [ 'Bearer a-long-secret2', 401 ], [ 'Basic a-long-secret', 401 ];
  my %status;
  $status{ $s->client->http(GET => '/by/views/hits')->{status} }++ for 1 .. 10;
  is_deeply(\%status, { 200 => 3, 429 => 7 }, 'a limit of the process under a map of methods');
};

subtest 'a pattern of a client' => sub {
  answer_is($s->http(GET => '/slow'), 'does not take the worker away', status => 200, body => qr/^the pattern takes too long/);
};

subtest 'log_req' => sub {
  $s->http(GET => '/log?x=1');
  ok($s->wait_log(qr{req method=GET path=/log client=127\.0\.0\.1 detail=by hand}), 'is a line of the log');
};

$s->stop;
done_testing;
