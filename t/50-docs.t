# What the binary has is in the docs: settings, options, handlers, Lua calls, counters; and what the README shows works.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use File::Find qw(find);
use Sluice;
use SluiceTls;
use Test::More;

my %text = map { $_ => read_file(repo_path($_)) } qw(README.md lua/README.md proxy/README.md configs/README.md t/README.md tools/README.md vm/README.md);
my $reference = $text{'lua/README.md'};

# The names that a config sees: as they are registered, since objects keep their metatables to themselves.
sub registered {
  my ($pattern, @files) = @_;
  my %names;
  for my $file (@files) {
    # What only the route library is handed is no config's to call.
    (my $text = read_file($file)) =~ s/\bkCore\w*\[\] = \{.*?\};//gs;
    $text =~ s/\{\{"\w+", \w+\}\}//g;   # the fields of an event for the log
    $names{$_} = 1 for grep { defined } $text =~ /$pattern/g;
  }
  return sort keys %names;
}
my @lua = glob repo_path('lua/*.cc');
my @routelib = glob repo_path('lua/routelib/*.lua');
my %kinds = (
  'functions and methods' => [ 40, registered(qr/\{"([a-z]\w*)", \w+\}/, @lua) ],
  'shorthands'            => [ 10, registered(qr/\{"(\w+)", "\w+_and_wait"\}/, @lua), registered(qr/\{"\w+", "(\w+_and_wait)"\}/, @lua) ],
  'handlers'              => [ 7, registered(qr/^(?:handler|declaration)\("(\w+)"/m, @routelib) ],
  'options of backends'   => [ 10, registered(qr/\{"(\w+)", OptionUnit::/, @lua) ],
  'settings'              => [ 15, registered(qr/\{"(\w+)", Unit::/, @lua) ],
);
for my $kind (sort keys %kinds) {
  my ($least, @names) = @{ $kinds{$kind} };
  cmp_ok(scalar @names, '>=', $least, "$kind: " . scalar @names);
  is(join(' ', grep { $reference !~ /\b\Q$_\E\b/ } @names), '', "$kind: each is in lua/README.md");
}

# The module language: its words, functions, faults, and what a file or an event has at most.
my $language = $text{'vm/README.md'};
my ($words) = read_file(repo_path('vm/lexer.cc')) =~ /(kWords\b.*?kMoreWords[^;]*;)/s;
my ($faults) = read_file(repo_path('vm/value.h')) =~ /enum class Fault[^{]*\{(.*?)\}/s;
my %language = (
  'words'     => [ 40, ($words // '') =~ /"([a-z]+)"/g ],
  'functions' => [ 30, read_file(repo_path('vm/builtin.cc')) =~ /^\s*\{\d+, "(\w+)"/mg ],
  'faults'    => [ 8, grep { $_ ne 'none' } ($faults // '') =~ /(\w+) = \d/g ],
  'units'     => [ 7, read_file(repo_path('vm/lexer.cc')) =~ /\{"(ms|s|min|h|d|KiB|MiB)", 1/g, qw(min h d) ],
);
for my $kind (sort keys %language) {
  my ($least, @names) = @{ $language{$kind} };
  cmp_ok(scalar @names, '>=', $least, "$kind of the language: " . scalar @names);
  is(join(' ', grep { $language !~ /(?<![a-z_])\Q$_\E(?![a-z_])/ } @names), '', "$kind: each is in vm/README.md");
}
my $declared = read_file(repo_path('vm/module.h')) . read_file(repo_path('vm/tables.h')) . read_file(repo_path('vm/verify.h'));
my %limits = map { $_->[0] => $_->[1] } (
  [ kTablesMax => 64 ], [ kColumnsMax => 32 ], [ kKeyColumnsMax => 4 ], [ kIndexesMax => 8 ], [ kTotalsMax => 8 ], [ kOrderColumnsMax => 8 ],
  [ kKeyTextMax => 200 ], [ kColumnTextMax => '64 \* 1024' ], [ kEncodedKeyMax => 500 ], [ kLoopMax => q(10'000) ], [ kPageMax => q(1'000) ],
  [ kFuel => q(1'000'000) ], [ kArenaBytes => '1024 \* 1024' ], [ kDefaultTextMax => 4096 ], [ kRecordsWritten => q(50'000) ],
  [ kBytesWritten => '16 \* 1024 \* 1024' ]);
# Whoever changes one changes the table of limits in vm/README.md, and then this.
like($declared, qr/\b$_\b[^;]*= $limits{$_}\b/, "the limit $_ is what vm/README.md says") for sort keys %limits;

my $s = start_module(repo_path('configs/modules/quota.aup'));
my $counters = $s->stop;
my @quiet = grep { $text{'proxy/README.md'} !~ /`\Q$_\E`/ } sort keys %$counters;
is("@quiet", '', 'each counter of the last line is in proxy/README.md');

subtest 'options' => sub {
  my ($code, $help) = run_sluice('--help');
  my %options = map { $_ => 1 } $help =~ /^\s+(--[a-z-]+)/mg;
  cmp_ok(scalar keys %options, '>=', 12, 'there are options');
  my $all = join '', values %text;
  is(join(' ', grep { $all !~ /\Q$_\E\b/ } sort keys %options), '', 'each is in a README');
};

subtest 'links and names of files' => sub {
  my @docs;
  find({ no_chdir => 1, wanted => sub {
    $File::Find::prune = 1 if m{/(?:\.git|build[^/]*)$};
    push @docs, $_ if /\.md$/;
  } }, repo_path());
  for my $doc (@docs) {
    my ($folder) = $doc =~ m{^(.*)/};
    my @dead = grep { !/^[a-z]+:|^#/ && !-e "$folder/" . s/#.*//r } read_file($doc) =~ /\]\(([^)\s]+)\)/g;
    is("@dead", '', substr($doc, 1 + length repo_path()) . ': its links lead somewhere');
  }
};

subtest 'the README shows what works' => sub {
  my ($lua) = $text{'README.md'} =~ /```lua\n(.*?)```/s;
  my ($module) = $text{'README.md'} =~ /```\n(module .*?)```/s;
  my $s = start_sluice($lua, files => { map { ("modules/$_.aup" => read_file(repo_path("configs/modules/$_.aup"))) } qw(quota notes) });
  my @session = $text{'README.md'} =~ /```\n(\$ curl.*?)```/s;
  my $port = $s->port;
  my ($asked, $n) = ('', 0);
  my @lines = split /\n/, $session[0];
  while (defined(my $line = shift @lines)) {
    next unless $line =~ s/^\$ (curl .*)/$1/;
    $line =~ s/localhost:8767/127.0.0.1:$port/;
    my $got = `$line -sS 2>&1`;
    my $want = @lines && $lines[0] !~ /^\$/ ? shift @lines : '';
    is($got, $want, $line);
    $n++;
  }
  is($n, 3, 'three requests');
  $s->stop;
  my $m = start_module($module);
  is($m->http(POST => '/inputs/stock?sku=tea&count=10')->{status}, 200, 'the module too');
  is($m->http(POST => '/inputs/buy?sku=tea&qty=4')->{body}, '{"sku":"tea","left":6}', 'answers what it says');
  answer_is($m->http(POST => '/inputs/buy?sku=tea&qty=7'), 'too much', status => 422, error => 'clamp');
  answer_is($m->http(POST => '/inputs/buy?sku=pot&qty=1'), 'an unknown sku', status => 404, error => 'not_found');
  $m->stop;
};
subtest 'the first page of vm/README.md works as it is typed' => sub {
  my $page = read_file(repo_path('vm/README.md'));
  my ($module) = $page =~ /```aup\n(.*?)```/s;
  my ($session) = $page =~ /```\n(\$ curl.*?)```/s;
  my $s = start_module($module);
  my ($port, $n) = ($s->port, 0);
  for (split /^(?=\$ )/m, $session) {
    my ($command, $want) = /\A\$ (curl [^\n]*)\n(.*)\z/s;
    $command =~ s/localhost:8767/127.0.0.1:$port/;
    (my $got = `$command -sS 2>&1`) =~ s/\n?\z/\n/;
    is($got, $want, $command);
    $n++;
  }
  cmp_ok($n, '>=', 5, 'some requests');
  $s->stop;
};

subtest 'the upgrade of vm/README.md has the plan that it shows' => sub {
  my $page = read_file(repo_path('vm/README.md'));
  my ($before, $after) = map { $page =~ /```aup\n(module shop $_\n.*?)```/s } 1, 2;
  my ($plan) = $page =~ /```\n\$ aupc plan shop\.aup --store data\n(.*?)```/s;
  my $dir = temp_folder();
  start_module($before, dir => $dir)->stop;
  write_file("$dir/shop.aup", $after);
  my ($code, $out, $err) = Sluice::run_command(aupc_binary(), 'plan', "$dir/shop.aup", '--store', "$dir/store");
  is($out, $plan, 'aupc plan');
  is($code, 1, 'which would lose something');
  my $s = Sluice::new_server($dir, {});
  $s->{command} = [ sluice_binary(), '--module', "$dir/shop.aup", '--store', "$dir/store", '--port', '0', '--allow-destroy' ];
  $s->start;
  answer_is($s->http(GET => '/views/items'), 'and it is served', status => 200);
  $s->stop;
  ($code, $out) = Sluice::run_command(aupc_binary(), 'verify-store', "$dir/store");
  is($code, 0, 'what is derived is right');
};

subtest 'what aupc has is described' => sub {
  my ($code, $help) = Sluice::run_command(aupc_binary(), '--help');
  my @commands = $help =~ /^  ([a-z][a-z-]*)  /mg;
  cmp_ok(scalar @commands, '>=', 8, "commands: @commands");
  is(join(' ', grep { $text{'tools/README.md'} !~ /`\Q$_\E`/ } @commands), '', 'each is in tools/README.md');
  my %has = map { $_ => 1 } @commands;
  is(join(' ', grep { !$has{$_} } $language =~ /`aupc ([a-z-]+)/g), '', 'and those that vm/README.md names are there');
};

subtest 'the examples of lua/README.md do what they say' => sub {
  my %modules = map { ("modules/$_.aup" => read_file(repo_path("configs/modules/$_.aup"))) } qw(quota blobs);
  authority(my $tls = temp_folder(), 'ca');
  certificate($tls, 'server', "$tls/ca", cn => 'localhost', dns => 'localhost');
  $modules{"tls/$_"} = read_file("$tls/$_") for qw(ca.pem server.pem server.key);
  my @examples = $reference =~ /```lua\n(.*?)```/sg;
  cmp_ok(scalar @examples, '>=', 4, 'there are examples');
  for my $example (@examples) {
    my @asks = $example =~ /^-- ([A-Z]+ \/.*)$/mg;
    cmp_ok(scalar @asks, '>=', 1, 'an example says what it answers');
    $example =~ s/"0\.0\.0\.0:8443"/"127.0.0.1:0"/g;    # any free port
    my $s = start_sluice($example, files => \%modules);
    for my $ask (@asks) {
      my ($method, $path, $sent, $status, $body) = $ask =~ /^(\w+) (\S+)(?: (.*?))? -> (\d+)(?: (.*))?$/ or fail("cannot read: $ask"), next;
      my @new = $method eq 'PUT' ? (headers => [ 'If-None-Match', '*' ]) : ();
      my $got = $s->http($method => $path, (defined $sent ? (body => $sent) : ()), @new);
      (my $text = $got->{body}) =~ s/\n\z//;
      is("$got->{status} " . (defined $body ? $text : ''), "$status " . ($body // ''), $ask);
    }
    $s->stop;
  }
};

# What editors are told of is what there is.
subtest 'annotations for editors' => sub {
  my $annotations = read_file(repo_path('lua/sluice.d.lua'));
  my %there = map { $_ => 1 } registered(qr/\{"([a-z]\w*)", \w+\}/, @lua), registered(qr/\{"(\w+)", "\w+_and_wait"\}/, @lua),
    registered(qr/\{"\w+", "(\w+_and_wait)"\}/, @lua), registered(qr/^(?:handler|declaration)\("(\w+)"/m, @routelib),
    registered(qr/^rawset\(_G, "(\w+)"/m, @routelib), qw(stat server_stats);
  # Of the route library and of Lua's own.
  delete @there{qw(read_file find match gmatch gsub resume wrap)};
  my %told = map { $_ => 1 } $annotations =~ /^function (?:\w+[.:])?(\w+)\(/mg;
  is(join(' ', grep { !$told{$_} } sort keys %there), '', 'each function is in lua/sluice.d.lua');
  is(join(' ', grep { !$there{$_} } sort keys %told), '', 'and nothing else');
  my ($settings) = $annotations =~ /^---\@param t \{ (listen: .*?) \}\nfunction settings/m;
  is(join(' ', grep { $settings !~ /\b$_: / } @{ $kinds{settings} }[ 1 .. $#{ $kinds{settings} } ]), '', 'each setting too');
  my @backend = @{ $kinds{'options of backends'} };
  is(join(' ', grep { $settings !~ /\bbackend_$_: / || $annotations !~ /^---\@field $_ /m } @backend[ 1 .. $#backend ]), '', 'and each option of backends');
  # Each is one in the binary too: what is wrong with it there is its value.
  my $dir = temp_folder();
  (my $flat = $settings) =~ s/"[^"]*"|\([^()]*\)|\{[^{}]*\}//g;
  for my $setting ($flat =~ /(\w+): /g) {
    write_file("$dir/s.lua", "settings { $setting = function() end }\n");
    my ($code, $out, $err) = run_sluice('--check', "$dir/s.lua");
    is($code, 1, "$setting: refused with 1");
    unlike($out . $err, qr/there is no setting/, "$setting is a setting");
  }
  my %classes = (Rctx => [qw(context_api shorthands)], Request => ['request_object'], Response => ['response_object'], SharedTable => ['shared_api'],
    Funcgen => ['worker_library']);
  for my $class (sort keys %classes) {
    my %has;
    for my $file (@{ $classes{$class} }) {
      my $text = read_file(repo_path("lua/$file.cc"));
      my ($list) = $text =~ /\b(?:kMethods|kFgen)\[\] = \{(.*?)\{nullptr/s;
      $has{$_} = 1 for ($list // '') =~ /\{"(\w+)", \w+\}/g;
      $has{$_} = 1 for map { ($_, "${_}_and_wait") } $text =~ /\{"(\w+)", "\w+_and_wait"\}/g;
    }
    cmp_ok(scalar keys %has, '>=', 2, "$class has methods");
    my %its = map { $_ => 1 } $annotations =~ /^function ${class}:(\w+)\(/mg;
    is(join(' ', sort keys %its), join(' ', sort keys %has), "the methods of $class, and no other");
  }
  write_file("$dir/d.lua", "load([==[$annotations]==])\nlocal good, why = load([==[$annotations]==], 'sluice.d.lua')\nif not good then error(why) end\nroutes { default = route_null {} }\n");
  my ($code, $out, $err) = run_sluice('--check', "$dir/d.lua");
  is($code, 0, 'it is Lua') or diag($err);
  for my $handler (registered(qr/^handler\("(\w+)"/m, @routelib)) {
    my ($options) = join('', map { read_file($_) } @routelib) =~ /^handler\("$handler",\s*\{(.*?)\}/ms;
    my ($known) = $annotations =~ /^---\@param t \{(.*?)\}\n(?:---.*\n)*function $handler\(/m;
    my %wants = $options =~ /(\w+) = "(\w+!?)"/g;
    # What is optional ends with a question mark; types may have options of their own inside.
    (my $types = $known) =~ s/\((?:[^()]|\([^()]*\))*\)/x/g;
    $types =~ s/fun\w*x/x/g;
    $types =~ s/<[^<>]*>//g;
    my %told = map { /^\s*(\w+): (.*?)\s*$/ ? ($1 => $2) : () } split /,/, $types;
    is(join(' ', sort keys %told), join(' ', sort keys %wants), "the options of $handler, and no other");
    is(join(' ', grep { exists $told{$_} && ($wants{$_} =~ /!$/) == ($told{$_} =~ /\?$/) } sort keys %wants), '', 'which of them are needed');
  }
};

# What t/lua/random_test.cc calls with all kinds of arguments is all there is to call.
my $calls = read_file(repo_path('t/lua/random_test.cc'));
my @callable = grep { !/^(?:read_file|store|settings|pool)$/ } registered(qr/\{"([a-z]\w*)", \w+\}/, @lua);
is(join(' ', grep { $calls !~ /"\Q$_\E"/ } @callable, registered(qr/^(?:handler|declaration)\("(\w+)"/m, @routelib)), '',
   'each function is called with random arguments');
done_testing;
