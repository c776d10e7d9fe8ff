# The command line: what it takes, and one clear line and the right exit code for everything it does not.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use Sluice;
use Test::More;

my $QUOTA = repo_path('configs/modules/quota.aup');
my $BLOBS = repo_path('configs/modules/blobs.aup');
my $dir = temp_folder();

# Runs it; it has to say one line on standard error that matches, nothing on standard output, and end with the code.
sub refused {
  my ($name, $code, $pattern, @args) = @_;
  local $Test::Builder::Level = $Test::Builder::Level + 1;
  my ($got, $out, $err) = run_sluice(@args);
  is($got, $code, "$name: exit $code");
  like($err, qr/\A[^\n]+\n\z/, "$name: one line");
  like($err, $pattern, "$name: which says what is wrong");
  is($out, '', "$name: and nothing else");
}

subtest 'help and version' => sub {
  my ($code, $out, $err) = run_sluice('--help');
  is($code, 0, 'help');
  like($out, qr/^\s+\Q$_\E\b/m, "it lists $_")
    for qw(--config --module --store --check --explain --host --port --tls-cert --tls-key --threads --budget --connections --timeout-ms --allow-destroy --control --test-control --version --help);
  is($err, '', 'on standard output');
  ($code, $out, $err) = run_sluice('--version');
  is($code, 0, 'version');
  like($out, qr/\Asluice \d+\.\d+\.\d+[^\n]*\n\z/, 'one line');
};

subtest 'used wrongly: exit 2' => sub {
  my @serve = ('--module', $QUOTA, '--store', "$dir/none");
  refused('nothing', 2, qr/--config/);
  refused('an unknown flag', 2, qr/--prot\b.*did you mean .--port/, @serve, '--prot', 1);
  refused('a flag of nothing like it', 2, qr/--zzzzzzzzzz/, '--zzzzzzzzzz');
  refused('a stray word', 2, qr/quickstart\.lua/, 'quickstart.lua');
  refused('config and module', 2, qr/--config.*--module/, '--config', 'x.lua', '--module', $QUOTA);
  refused('a module without a store', 2, qr/--store/, '--module', $QUOTA);
  refused('a store without a module', 2, qr/--module/, '--store', "$dir/none");
  refused('a flag without its value', 2, qr/--port/, @serve, '--port');
  refused('a flag twice', 2, qr/--port/, @serve, '--port', 0, '--port', 0);
  refused("--port $_", 2, qr/--port.*65535/, @serve, "--port=$_") for qw(65536 -1 x 1.5);
  refused("--threads $_", 2, qr/--threads/, @serve, "--threads=$_") for qw(-1 many 100000);
  refused("--connections $_", 2, qr/--connections/, @serve, "--connections=$_") for qw(0 x);
  refused("--timeout-ms $_", 2, qr/--timeout-ms/, @serve, "--timeout-ms=$_") for qw(0 soon);
  refused("--budget $_", 2, qr/--budget.*MiB/, @serve, "--budget=$_") for qw(0 much 5XiB 99999999999999999999);
  ok(!-e "$dir/none", 'none of them made a store');
};

subtest 'it cannot start: exit 1' => sub {
  refused('no such config', 1, qr{none\.lua}, '--config', "$dir/none.lua", '--port', 0);
  refused('a folder as config', 1, qr{\Q$dir\E}, '--config', $dir, '--port', 0);
  my $bad = write_file("$dir/bad.lua", "settings {}\nsettings { prot = 1 }\n");
  refused('a config with an error', 1, qr{bad\.lua:2: .*port}, '--config', $bad, '--port', 0);
  refused('no such module', 1, qr{none\.aup}, '--module', "$dir/none.aup", '--store', "$dir/s", '--port', 0);
  my $module = write_file("$dir/bad.aup", "module bad 1\nstate x: nmu\n");
  refused('a module with an error', 1, qr{bad\.aup:2:10: error: }, '--module', $module, '--store', "$dir/s", '--port', 0);
  my $junk = write_file("$dir/junk.pmod", "not a module at all");
  refused('a file that is no module', 1, qr{junk\.pmod}, '--module', $junk, '--store', "$dir/s", '--port', 0);
  ok(!-e "$dir/s", 'no store was made for them');
  my $sharded = write_file("$dir/sharded.lua", qq(stores { q = { module = "$QUOTA", path = "data/q", shards = 2 } }\n));
  refused('states on several shards', 1, qr{shard}, '--config', $sharded, '--port', 0);
  refused('no such address', 1, qr{256\.0\.0\.1}, '--module', $QUOTA, '--store', "$dir/s2", '--port', 0, '--host', '256.0.0.1');
  my $file = write_file("$dir/plain", 'x');
  refused('a store that is a file', 1, qr{plain}, '--module', $QUOTA, '--store', $file, '--port', 0);
};

subtest 'stores that are not its own' => sub {
  my $s = start_module($QUOTA);
  is($s->http(POST => '/inputs/plus')->{status}, 200, 'a store with something in it');
  my $store = $s->dir . '/store';
  refused('the port of another', 1, qr{\b@{[ $s->port ]}\b}, '--module', $BLOBS, '--store', "$dir/s3", '--port', $s->port);
  refused('the store of another process', 1, qr{store}, '--module', $QUOTA, '--store', $store, '--port', 0);
  is($s->http(GET => '/views/hits')->{body}, '1', 'which goes on');
  $s->stop;
  refused('the store of another module', 1, qr{quota}, '--module', $BLOBS, '--store', $store, '--port', 0);
  $s->start;
  is($s->http(GET => '/views/hits')->{body}, '1', 'and is as it was');
  $s->stop;
};

subtest '--check' => sub {
  my $good = write_file("$dir/good.lua", <<"LUA");
stores { q = { module = "$QUOTA", path = "data/checked" } }
routes { map = { ["/q"] = route_direct { child = "q" } } }
LUA
  my ($code, $out, $err) = run_sluice('--config', $good, '--check');
  is($code, 0, 'a good one');
  like($out . $err, qr/good\.lua: ok$/m, 'says so');
  ok(!-e "$dir/data/checked", 'and makes nothing');
  my %bad = (
    'routes to nothing'    => [ qq(routes { default = route_direct { child = "nobody" } }\n), qr{x\.lua:1: .*nobody} ],
    'a syntax error'       => [ "stores {\n  x = \n}\n", qr{x\.lua:\d: } ],
    'an error in a module' => [ qq(stores { x = { module = "bad.aup", path = "data/x" } }\n), qr{bad\.aup:2:10: error} ],
    'an unknown handler'   => [ qq(routes { default = route_dirct { child = "x" } }\n), qr{x\.lua:1: .*route_direct} ],
  );
  for my $name (sort keys %bad) {
    my ($text, $says) = @{ $bad{$name} };
    my $file = write_file("$dir/x.lua", $text);
    ($code, $out, $err) = run_sluice('--config', $file, '--check');
    is($code, 1, "$name: exit 1");
    like($err, $says, "$name: said with file and line");
  }
};

subtest '--explain' => sub {
  my $file = write_file("$dir/tree.lua", <<"LUA");
settings { listen = { "127.0.0.1:0", { "127.0.0.1:0", tag = "admin" } } }
stores { q = { module = "$QUOTA", path = "data/tree" }, r = { module = "$QUOTA", path = "data/tree2" } }
pools { both = { stores = { "q", "r" } } }
routes {
  map = {
    ["/q"] = route_ratelim { child = "q", limit = 5, rate = 2 },
    ["/m"] = cmdmap { GET = route_failover { children = { "q", "both" }, miss = true }, POST = "q" },
    ["/f"] = function() return "x" end,
    ["/a"] = route_auth { child = "q", tokens = { "not-to-be-seen" } },
  },
  default = route_null {},
}
routes { tag = "admin", default = route_stats {} }
LUA
  my ($code, $out, $err) = run_sluice('--explain', $file);
  is($code, 0, 'it ends well') or diag($err);
  is($out, <<'TREE', 'and prints the tree');
routes
  /a  route_auth tokens=...
    child  store q
  /f  function at tree.lua:8
  /m  cmdmap
    GET  route_failover miss=true
      children[1]  store q
      children[2]  pool both of q, r
    POST  store q
  /q  route_ratelim limit=5 rate=2
    child  store q
  default  route_null
routes tag="admin"
  default  route_stats
TREE
  ok(!-e "$dir/data/tree", 'and makes nothing');
  ($code, $out, $err) = run_sluice('--config', write_file("$dir/x.lua", qq(routes { default = route_direct { child = "nobody" } }\n)), '--explain');
  is($code, 1, 'a wrong one is a mistake');
  like($err, qr{x\.lua:1: .*nobody}, 'said as by --check');
};

subtest 'flags win over the file, also after a reload' => sub {
  my $text = qq(settings { listen = "127.0.0.1:1", connections = 5 }\nstores { q = { module = "$QUOTA", path = "data/q" } }\n); # any port
  my $s = start_sluice($text, args => [ '--connections', 100 ]);
  isnt($s->port, 1, 'the port');
  my @c = map { $s->client } 1 .. 20;
  is($_->http(GET => '/views/hits')->{status}, 200, 'and the number of connections') for @c[ 0, 10, 19 ];
  ok($s->reload, 'a reload');
  my @d = map { $s->client } 1 .. 10;
  is($_->http(GET => '/views/hits')->{status}, 200, 'still') for @d[ 0, 9 ];
  $s->stop;
};
done_testing;
