# SIGHUP: a change is live without a lost request; a broken config changes nothing and is counted.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use Sluice;
use Test::More;

sub config {
  my ($word, $stores) = @_;
  return <<"LUA";
stores {
  quota = { module = "\@REPO\@/configs/modules/quota.aup", path = "data/quota" },
  @{[ $stores // '' ]}
}
routes {
  map = {
    ["/word"] = route_lua { methods = { "GET" }, f = function() return function() return "$word" end end },
    ["/slow"] = route_lua { methods = { "GET" }, f = function(rctx) return function() rctx:sleep(0.2) return "$word" end end },
  },
  default = route_stores {},
}
LUA
}

my $s = start_sluice(config('one'));
my $word = sub { $s->http(GET => '/word')->{body} };

subtest 'a change is live' => sub {
  is($word->(), 'one', 'before');
  my $kept = $s->client;
  is($kept->http(GET => '/word')->{body}, 'one', 'a connection from before');
  is($s->http(POST => '/quota/inputs/plus')->{status}, 200, 'something is stored');
  ok($s->reload(config('two')), 'reloaded');
  is($word->(), 'two', 'after');
  is($kept->http(GET => '/word')->{body}, 'two', 'also on the connection from before');
  is($s->http(GET => '/quota/views/hits')->{body}, '1', 'what was stored stays');
};

subtest 'a request that runs through it is answered by the config it began with' => sub {
  my $c = $s->client;
  $c->send(Sluice::Client::request(GET => '/slow'));
  is($s->http(GET => '/word')->{body}, 'two', 'the other has begun');
  ok($s->reload(config('three')), 'reloaded');
  is($word->(), 'three', 'new ones are new');
  is($c->answer->{body}, 'two', 'the old one ends as it began');
};

subtest 'what is broken changes nothing' => sub {
  my %broken = (
    'a syntax error'     => [ config('bad') . "\nreturn return\n", qr/sluice\.lua:\d+: / ],
    'an error at load'   => [ config('bad') . "\nerror('no such thing')\n", qr/sluice\.lua:\d+: no such thing/ ],
    'an unknown setting' => [ config('bad') . "\nsettings { listne = '127.0.0.1:0' }\n", qr/sluice\.lua:\d+: .*listen/ ],
    'an unknown child'   => [ config('bad') =~ s/default = .*/default = route_direct { child = "quato" },/r, qr/quota/ ],
    'a missing module'   => [ config('bad', 'x = { module = "nowhere.aup", path = "data/x" },'), qr/nowhere\.aup/ ],
    'a broken module'    => [ config('bad', 'x = { module = "broken.aup", path = "data/x" },'), qr/broken\.aup:\d+:\d+: error: / ],
    'an error in the generator of a route' =>
      [ config('bad') =~ s/f = function\(\) return/f = function() error("at load") return/r, qr/at load/ ],
  );
  write_file($s->dir . '/broken.aup', "module broken 1\nstate x: nmu\n");
  for my $name (sort keys %broken) {
    my ($text, $says) = @{ $broken{$name} };
    ok(!$s->reload($text), "$name is refused");
    like($s->{reload_log}, $says, 'and the log says where and why');
    is($word->(), 'three', 'the old config serves');
    ok(!-e $s->dir . '/data/x', 'no store was made') if $text =~ m{data/x};
  }
  $s->write_config(config('bad'));
  unlink $s->{config};
  ok(!$s->reload, 'a file that is gone is refused');
  is($word->(), 'three', 'the old config serves');
};

subtest 'stores come and go' => sub {
  my $extra = 'extra = { module = "@REPO@/configs/modules/blobs.aup", path = "data/extra" },';
  answer_is($s->http(GET => '/extra/objects/k'), 'not there yet', status => 404, error => 'route');
  ok($s->reload(config('four', $extra)), 'added');
  answer_is($s->http(PUT => '/extra/objects/k', body => 'v', headers => [ 'If-None-Match', '*' ]), 'it stores', status => 200);
  ok($s->reload(config('five')), 'removed');
  answer_is($s->http(GET => '/extra/objects/k'), 'it is gone', status => 404, error => 'route');
  is($s->http(GET => '/quota/views/hits')->{body}, '1', 'the one that stayed');
  ok($s->reload(config('six', $extra)), 'added again');
  answer_is($s->http(GET => '/extra/objects/k'), 'with what it had', status => 200, body => 'v', etag => '"1"');
};

subtest 'a store that is removed under a request' => sub {
  my $route = sub { qq(["/late"] = route_lua { children = { x = "extra" }, f = function(rctx, h) return function()
      rctx:sleep(0.4) local res = rctx:put_and_wait(h.x, "late", "v") return tostring(res:status()) end end },\n    ["/word"]) };
  my $extra = 'extra = { module = "@REPO@/configs/modules/blobs.aup", path = "data/extra" },';
  ok($s->reload(config('with', $extra) =~ s{\["/word"\]}{$route->()}re), 'a route of it');
  my $c = $s->client;
  $c->send(Sluice::Client::request(POST => '/late', body => ''));
  is($word->(), 'with', 'it has begun');
  ok($s->reload(config('without')), 'removed');
  answer_is($s->http(GET => '/extra/objects/late'), 'for new requests it is gone', status => 404, error => 'route');
  my $again = $s->reload(config('again', $extra));   # while it is still held: the same one goes on
  ok($again, 'and added again meanwhile') or diag($s->{reload_log});
  like($c->answer->{body}, qr/^200$/, 'the request ends on the store that it began with');
  is($s->http(GET => '/extra/objects/k')->{body}, 'v', 'which has what it had');
  ok($s->reload(config('seven')), 'removed for good');
};

subtest 'a setting removed has its default again' => sub {
  ok($s->reload("settings { body_limit = '10' }\n" . config('seven')), 'a small limit');
  answer_is($s->http(POST => '/quota/inputs/say', body => 'x' x 20), 'is in force', status => 413, error => 'limit');
  ok($s->reload(config('eight')), 'without it');
  answer_is($s->http(POST => '/quota/inputs/say', body => 'x' x 20), 'it is gone', status => 200);
};

subtest 'two signals at once' => sub {
  $s->write_config(config('nine'));
  my $from = length $s->log;
  $s->signal('HUP') for 1 .. 5;
  my $deadline = time + timeout_s();
  1 until $word->() eq 'nine' || time > $deadline;
  is($word->(), 'nine', 'the last word counts');
};

my $counters = $s->stop;
cmp_ok($counters->{reloads}, '>=', 8, "reloads are counted: $counters->{reloads}");
is($counters->{reload_failures}, 8, 'and those that failed');
done_testing;
