# Each config and module that a user can start from loads, serves, and does what its comments say.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use File::Copy qw(copy);
use File::Find qw(find);
use File::Basename qw(dirname);
use File::Path qw(make_path);
use Sluice;
use Test::More;

my @NEW = (headers => [ 'If-None-Match', '*' ]);

# The folder is copied, so that what is stored goes nowhere near the sources.
sub serve {
  my ($name) = @_;
  my $dir = temp_folder();
  my $from = repo_path('configs');
  find({ no_chdir => 1, wanted => sub {
    return if !-f || m{/data/};
    my $to = $dir . substr $_, length $from;
    make_path(dirname($to));
    copy($_, $to) or die "$_: $!";
  } }, $from);
  my ($code, $out, $err) = run_sluice('--config', "$dir/$name", '--check');
  is($code, 0, "$name passes --check") or diag($err);
  like($out . $err, qr/ok$/m, "and says so");
  ok(!-e dirname("$dir/$name") . '/data', 'and makes nothing');
  my $s = Sluice::new_server(dirname("$dir/$name"), {});
  $s->{config}  = "$dir/$name";
  $s->{command} = [ sluice_binary(), '--config', "$dir/$name", '--port', '0' ];
  return $s->start;
}

# What nodes.lua asks: two nodes that are nothing but a store.
my @nodes = map { start_sluice('stores { files = { module = "@REPO@/configs/modules/blobs.aup", path = "@DIR@/files" } }' . "\n") } 1, 2;
$ENV{"NODE_$_"} = "127.0.0.1:" . $nodes[ $_ - 1 ]->port for 1, 2;

my %does = (
  'nodes.lua' => sub {
    my ($s) = @_;
    my @keys = map { "k$_" } 1 .. 30;
    is($s->http(PUT => "/files/objects/$_", body => $_, @NEW)->{status}, 200, "put $_") for @keys;
    answer_is($s->http(GET => "/files/objects/$_"), "get $_", status => 200, body => $_) for @keys;
    for my $n (0, 1) {
      my $has = grep { $nodes[$n]->http(GET => "/objects/$_")->{status} == 200 } @keys;
      cmp_ok($has, '>', 3, "node $n has its share: $has of 30");
      cmp_ok($has, '<', 27, 'and no more');
    }
    answer_is($s->http(GET => '/objects/k1'), 'its own store is another', status => 404, error => 'not_found');
    is(json($s->http(GET => '/stats')->{body})->{backends}{one}{errors}, 0, 'without an error');
  },
  'quickstart.lua' => sub {
    my ($s) = @_;
    answer_is($s->http(GET => '/dashboard/first'), 'the dashboard of nothing', status => 200, 'content-type' => 'application/json');
    is_deeply(json($s->http(GET => '/dashboard/first')->{body}), { hits => 0, note => undef }, 'as JSON');
    is($s->http(POST => '/quota/inputs/plus')->{status}, 200, 'press') for 1 .. 3;
    answer_is($s->http(PUT => '/notes/objects/first', body => '{"title":"First","version":1}', @NEW), 'a note', status => 200, etag => '"1"');
    is_deeply(json($s->http(GET => '/dashboard/first')->{body}), { hits => 3, note => { title => 'First', version => 1 } }, 'both in one answer');
    answer_is($s->http(HEAD => '/dashboard/first'), 'HEAD goes where GET does', status => 200, body => '');
    answer_is($s->http(POST => '/dashboard/first'), 'POST does not', status => 405, allow => qr/\bGET\b/);
    is($s->http(GET => '/quota/views/motto')->{body}, 'BE KIND (7)', 'the rest is the stores');
  },
  'minimal.lua' => sub {
    my ($s) = @_;
    is($s->http(GET => '/views/left')->{body}, '5', 'five saved up');
    is($s->http(POST => '/inputs/take')->{body}, $_, "take, $_ left") for 4, 3, 2, 1;
    is($s->http(GET => '/tokens/views/left')->{status}, 200, 'the store has its name too');
  },
  'failover.lua' => sub {
    my ($s) = @_;
    answer_is($s->http(PUT => '/spare/objects/only-there', body => 'spare', @NEW), 'fill the spare', status => 200);
    answer_is($s->http(GET => '/files/objects/only-there'), 'a miss asks the spare', status => 200, body => 'spare');
    for my $key (map { "k$_" } 1 .. 8) {
      answer_is($s->http(PUT => "/files/objects/$key", body => $key, @NEW), "put $key", status => 200);
      answer_is($s->http(GET => "/files/objects/$key"), "get $key", status => 200, body => $key);
    }
    answer_is($s->http(GET => '/files/objects/nowhere'), 'nobody has it', status => 404, error => 'not_found');
    answer_is($s->http(PUT => '/both/objects/b', body => 'x', @NEW), 'in both at once', status => 200);
    answer_is($s->http(GET => '/files/objects/b'), 'so it is there wherever the key lives', status => 200, body => 'x');
    answer_is($s->http(POST => '/switch/inputs/set?percent_now=30', body => 'beta'), 'a switch', status => 200, body => '{"percent":30,"note":"beta"}');
    my $on = grep { $s->http(GET => "/switch/views/enabled?user=u$_")->{body} eq 'true' } 1 .. 200;
    cmp_ok($on, '>', 30, "a share of the users: $on of 200");
    cmp_ok($on, '<', 90, 'and no more');
    answer_is($s->http(GET => '/other'), 'nothing else', status => 404, error => 'route');
  },
  'short.lua' => sub {
    my ($s) = @_;
    my $code = $s->http(POST => '/inputs/shorten', body => 'https://example.org/a?b=1')->{body};
    like($code, qr/\A[0-9A-Za-z]{4}\z/, 'a code');
    answer_is($s->http(GET => "/s/$code"), 'a click', status => 302, location => 'https://example.org/a?b=1', body => '') for 1 .. 3;
    answer_is($s->http(HEAD => "/s/$code"), 'a look', status => 302, location => 'https://example.org/a?b=1');
    is(json($s->http(GET => '/views/links')->{body})->{items}[0]{clicks}, 3, 'clicks are counted, looks are not');
    answer_is($s->http($_ => '/s/zzzz'), "$_ of no link", status => 404) for qw(GET HEAD);
    answer_is($s->http(POST => '/inputs/shorten', body => 'ftp://x'), 'no web address', status => 422, body => 'not a web address');
  },
  'limited.lua' => sub {
    my ($s) = @_;
    my @ann = (headers => [ 'X-Client', 'ann' ]);
    answer_is($s->http(GET => '/shop/views/items'), 'nobody', status => 401);
    answer_is($s->http(POST => '/shop/inputs/stock?sku=tea&count=10&price=2.5', body => 'Tea', @ann), 'a request of the shop', status => 200, body => 'Tea');
    answer_is($s->http(GET => '/shop/views/items?count=1', @ann), 'with its query', status => 200,
      body => '{"rows":1,"from":0,"items":[{"sku":"tea","name":"Tea","left":10,"held":0}]}');
    answer_is($s->http(GET => '/shop/views/nope', @ann), 'and its errors', status => 404, error => 'no_view');
    my @late = grep { $_->{status} == 429 } map { $s->http(GET => '/shop/views/items', @ann) } 1 .. 20;
    cmp_ok(scalar @late, '>=', 1, 'too many of one client at once');
    like($late[0]{body}, qr/\Await \d+ ms\n\z/, 'are told how long to wait');
    answer_is($s->http(GET => '/shop/views/items', headers => [ 'X-Client', 'bob' ]), 'others are not', status => 200);
    answer_is($s->http(GET => '/shop/views/items', headers => [ 'X-Client', 'a b' ]), 'a name that is none', status => 400, error => 'query');
    answer_is($s->http(GET => '/quota/views/hits'), 'the quota itself is not reached', status => 404, error => 'route');
  },
  'gateway.lua' => sub {
    my ($s) = @_;
    my @as = (Authorization => 'Bearer change-this-token');
    answer_is($s->http(GET => '/api/shop/views/items'), 'no token', status => 401);
    answer_is($s->http(POST => '/api/shop/inputs/stock?sku=tea&count=10&price=3', body => 'Tea', headers => [@as]), 'stock', status => 200);
    my $first = $s->http(GET => '/catalogue/views/items');
    answer_is($first, 'the catalogue is open', status => 200, body => qr/"Tea","left":10/);
    answer_is($s->http(GET => '/catalogue/views/items'), 'and kept', status => 200, body => qr/"Tea","left":10/, age => qr/^\d+$/);
    answer_is($s->http(POST => '/api/shop/inputs/stock?sku=pot&count=3&price=9', body => 'Pot', headers => [@as]), 'more stock, by another route', status => 200);
    my $next = $s->http(GET => '/catalogue/views/items');
    answer_is($next, 'is seen at once', status => 200, body => qr/"Pot","left":3/);
    ok(!defined $next->{headers}{age}, 'computed anew');
    answer_is($s->http(POST => '/catalogue/inputs/stock?sku=pot&count=3'), 'nobody writes there', status => 405);
    my $taken = json($s->http(POST => '/api/locks/inputs/take?name=a&owner=me&lease=3600000', headers => [@as])->{body});
    my $left = json($s->http(GET => '/api/locks/views/locks', headers => [@as])->{body})->{items}[0]{left};
    cmp_ok($left, '<=', 60_000, 'a lease is a minute at most');
    answer_is($s->http(POST => '/api/locks/inputs/take?name=b&owner=me', headers => [@as]), 'and ten seconds unless said', status => 200);
    my $refused = 0;
    my $asked = 0;
    $refused = $s->http(GET => '/api/shop/views/items', headers => [@as])->{status} == 429 while !$refused && ++$asked < 300;
    ok($refused, "a client that asks too often is refused: after $asked");
    answer_is($s->http(GET => '/robots.txt'), 'robots', status => 200, etag => qr/^"\d+"$/, body => qr/Disallow/);
  },
  'flags.lua' => sub {
    my ($s) = @_;
    answer_is($s->http(GET => '/search', headers => [ 'X-User' => 7 ]), 'no such flag', status => 200, body => "old\n");
    answer_is($s->http(POST => '/flags/inputs/flag?name=search&percent=30', body => ''), 'a flag', status => 200);
    my $new = grep { $s->http(GET => '/search', headers => [ 'X-User' => $_ ])->{body} eq "new\n" } 1 .. 200;
    cmp_ok($new, '>', 30, "a share of the users: $new of 200");
    cmp_ok($new, '<', 90, 'and no more');
    answer_is($s->http(POST => '/flags/inputs/flag?name=search&percent=100', body => ''), 'for all', status => 200);
    answer_is($s->http(GET => '/search', headers => [ 'X-User' => 7 ]), 'the new one', status => 200, body => "new\n");
    answer_is($s->http(GET => '/search'), 'whom nobody knows gets the old one', status => 200, body => "old\n");
  },
  'bench/routes.lua' => sub {
    my ($s) = @_;
    answer_is($s->http(GET => '/hello'), 'hello', status => 200, body => "hello\n");
    answer_is($s->http(GET => '/views4'), 'four views', status => 200, body => "0 0 0 0\n");
    # Every input changes its store, the hundredth and all behind it too: else the bench would measure reads.
    for my $n (1 .. 120) {
      my $answer = $s->http(POST => '/inputs4');
      answer_is($answer, "four inputs, $n", status => 200, body => 4 * $n . "\n") if $n == 1 || $n == 120;
    }
    answer_is($s->http(GET => '/views4'), 'four views after them', status => 200, body => "120 120 120 120\n");
    answer_is($s->http(GET => '/a/views/count'), 'a store', status => 200, body => '120');
  },
);

my @found;
find({ no_chdir => 1, wanted => sub { push @found, substr $_, length(repo_path('configs')) + 1 if /\.lua$/ && !m{/data/} } }, repo_path('configs'));
for my $name (sort @found) {
  subtest $name => sub {
    ok($does{$name}, 'there is a test of what it does') or return;
    my $s = serve($name);
    $does{$name}->($s);
    $s->stop;
  };
}

my @modules = glob repo_path('configs/modules/*.aup');
cmp_ok(scalar @modules, '>=', 5, 'there are modules');
for my $module (@modules) {
  my ($code, $out, $err) = Sluice::run_command(aupc_binary(), 'check', $module);
  is($code, 0, "aupc check $module") or diag($err);
  is($out . $err, '', 'without a word');
  ($code, $out) = Sluice::run_command(aupc_binary(), 'fmt', '--check', $module);
  is($code, 0, 'and it is laid out as aupc fmt does');
}
done_testing;
