# A store under another version of its module: free changes while it serves, builds and checks before it serves, also when
# it is killed meanwhile; and a refusal changes nothing. What a server leaves is compared with a rebuild each time.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use Sluice;
use Test::More;
use Time::HiRes qw(time sleep);

my $ROWS = $ENV{SLUICE_UPGRADE_ROWS} || 30_000;

# item with its parts by name, so that a version says what it changes.
sub shop {
  my ($version, %with) = @_;
  my %part = (
    states => "state hits: int = 0\n",
    left   => 'left: int in 0..100_000',
    rest   => '',
    size   => 'max 200_000',
    name   => 'item',
    read   => "view one(n: int): num = item[n].left\nview rows: num = count(item)\n",
    views  => '',
    fill   => 'put item { id: i, left: i % 1000 }',
    %with);
  return <<"AUP";
module shop $version
$part{states}table $part{name} $part{size} { id: int, $part{left}, key id $part{rest} }
message fill { a: int, b: int }
message hit { }
on fill { for i in a..b limit 200 { $part{fill} } }
on hit { hits += 1  reply hits }
view hits: num = hits
$part{read}$part{views}
AUP
}

sub fill {
  my ($s, $rows) = @_;
  for (my $at = 0; $at < $rows; $at += 200) {
    my $to = $at + 199;
    my $answer = $s->http(POST => "/inputs/fill?a=$at&b=$to");
    return diag "fill: $answer->{status} $answer->{body}" if $answer->{status} != 200;
  }
}
sub view { my ($s, $name) = @_; my $answer = $s->http(GET => "/views/$name"); return $answer->{status} == 200 ? $answer->{body} : "$answer->{status} $answer->{body}" }
sub aupc { return Sluice::run_command(Sluice::aupc_binary(), @_) }
sub module_text { my ($s, $text) = @_; write_file($s->{module}, $text) }

# The folder's files, for comparing. (`owner` has the pid of who looked last; lock.mdb its reader table.)
sub store_bytes { my ($dir) = @_; return join '|', map { read_file("$dir/store/$_") } qw(data.mdb superblock) }

sub is_right {
  my ($s, $what) = @_;
  local $Test::Builder::Level = $Test::Builder::Level + 1;
  my ($code, $out, $err) = aupc('verify-store', $s->dir . '/store');
  is($code, 0, "$what: all that is derived is what the rows give") or diag $out, $err;
  return $out;
}

# Starts the server with another text; why it did not start, or nothing.
sub start_with {
  my ($s, $text, @args) = @_;
  module_text($s, $text);
  my @command = @{ $s->{command} };
  local $s->{command} = [ @command, @args ];
  eval { $s->start; 1 } and return undef;
  return $@;
}

my $first = shop(1);
my $built = shop(2, rest => ', index by_left left desc, total worth sum(left) by left, total goods count',
  views => "view worth: num = total(item.worth, 7)\nview goods: num = total(item.goods)\nview top = for i in item by by_left limit 3 { i.id, i.left }\n");

my $s = start_module($first);
fill($s, $ROWS);
is(view($s, 'rows'), $ROWS, 'the rows are there');
is_deeply([ map { view($s, $_) } 'one?n=7', "one?n=@{[$ROWS - 1]}" ], [ 7, ($ROWS - 1) % 1000 ], 'with their values');
$s->stop;
my $dir = $s->dir;

subtest 'aupc plan says what would happen, and changes nothing' => sub {
  my $before = store_bytes($dir);
  write_file("$dir/next.aup", $built);
  my ($code, $out, $err) = aupc('plan', "$dir/next.aup", '--store', "$dir/store");
  is($out, "  build    item index by_left: built from the rows\n"
    . "  build    item total worth: counted from the rows\n  build    item total goods: counted from the rows\n", 'the steps');
  is("$code $err", '0 ', 'it could be done');
  write_file("$dir/next.aup", shop(1, left => "left: text max 9 = \"\"", read => "view rows: num = count(item)\n", fill => 'put item { id: i, left: "" }'));
  ($code, $out) = aupc('plan', "$dir/next.aup", '--store', "$dir/store");
  is($out, "  refuse   item.left: an int does not become a text; add a column and fill it\n"
    . "  refuse   the data changes shape, so the version must rise above 1\n", 'what refuses it');
  is($code, 1, 'and that it does');
  write_file("$dir/next.aup", shop(2, rest => ', drop left', left => 'size: int = 3', read => "view rows: num = count(item)\n", fill => 'put item { id: i }'));
  ($code, $out, $err) = aupc('plan', "$dir/next.aup", '--store', "$dir/store");
  is($out, "  free     item.size: new, old rows read 3\n  destroy  item.left: its values are lost\n", 'what would be lost');
  is("$code $err", "1 aupc: something would be lost; start sluice with --allow-destroy to agree\n", 'only with leave');
  is((aupc('plan', "$dir/next.aup", '--store', "$dir/store", '--allow-destroy'))[0], 0, 'which can be given');
  is_deeply([ aupc('plan', "$dir/module.aup", '--store', "$dir/store") ], [ 0, "nothing to do\n", '' ], 'nothing for the same module');
  is((aupc('plan', "$dir/module.aup", '--store', "$dir/nowhere"))[2], "aupc: store $dir/nowhere: there is no store\n", 'a store that is not there is not made');
  ok(!-e "$dir/nowhere", 'not even its folder');
  ok($before eq store_bytes($dir), 'the store is byte for byte what it was');
};

subtest 'a refused module changes nothing' => sub {
  my $before = store_bytes($dir);
  my %refused = (
    'a value that does not fit' => [ shop(2, left => 'left: int in 0..998'), qr/item\[999\]\.left is 999, which does not fit int in 0\.\.998/ ],
    'rows that agree'           => [ shop(2, rest => ', unique one_left left'), qr/item\[0\] and item\[1000\] agree in unique one_left/ ],
    'too many rows'             => [ shop(2, size => 'max ' . ($ROWS - 1)), qr/table item has $ROWS rows, and may have / ],
    'a table that is gone'      => [ shop(2, name => 'goods', read => '', fill => 'put goods { id: i, left: 1 }'), qr/table item is gone; write `drop table item`/ ],
    'no higher version'         => [ shop(1, rest => ', index by_left left'), qr/the version must rise above 1/ ],
    'what is lost without leave' => [ shop(2, rest => ', drop left', left => 'size: int = 3', read => '', fill => 'put item { id: i }'), qr/item\.left: its values are lost; start with --allow-destroy/ ],
  );
  for my $what (sort keys %refused) {
    my ($text, $says) = @{ $refused{$what} };
    like(start_with($s, $text), $says, $what);
    is($s->{exit}, 1, 'ends the start');
    ok($before eq store_bytes($dir), 'and the store is byte for byte what it was');
  }
};

subtest 'a killed build goes on where it was' => sub {
  module_text($s, $built);
  my ($killed, $resumed) = (0, 0);
  for my $try (1 .. 12) {
    unlink "$dir/out", "$dir/err";   # one that is killed at once makes neither
    my $pid = Sluice::fork_exec($s->{command}, "$dir/out", "$dir/err", $dir, {});
    # Killed a little later each time; the last rounds see it serve.
    sleep 0.02 * $try * $try;
    kill KILL => $pid;
    waitpid $pid, 0;
    $killed++ unless -s "$dir/out";
    $resumed++ if -e "$dir/err" && read_file("$dir/err") =~ /an upgrade that was cut short goes on/;
    my ($code, $out) = aupc('verify-store', "$dir/store");
    is($code, 0, "killed in round $try: what is there is right") or diag $out;
  }
  note "$killed were killed before they served, $resumed went on";
  ok(!start_with($s, $built), 'then it serves');
  is(view($s, 'goods'), $ROWS, 'a count over all rows');
  is(view($s, 'worth'), 7 * int(($ROWS + 992) / 1000), 'a sum by group');
  is_deeply([ map { $_->{left} } @{ json(view($s, 'top'))->{items} } ], [ 999, 999, 999 ], 'an index');
  $s->stop;
  like(is_right($s, 'in the end'), qr/^shop 2: $ROWS rows, /, 'and says what it saw');
  like(start_with($s, $first), qr/the store has version 2 of `shop`, and this is version 1/, 'there is no way back');
};

subtest 'free changes are taken while it serves, and lose no request' => sub {
  ok(!start_with($s, $built), 'it serves');
  my $version = 2;
  my @clients = map { $s->client } 1 .. 4;
  $_->send(Sluice::Client::request(POST => '/inputs/hit')) for @clients;
  my ($hits, $wrong, $reloads) = (0, 0, 0);
  my $end = time + 1.5;
  while (time < $end) {
    if ($hits >= 50 * ($reloads + 1) && $reloads < 4) {
      $version++;
      $reloads++;
      my $text = shop($version, rest => ', index by_left left desc, total worth sum(left) by left, total goods count',
        states => "state hits: " . ($version % 2 ? 'num' : 'int') . " = 0\n" . join('', map { "state s$_: int = $_\n" } 3 .. $version),
        left   => 'left: int in 0..100_000' . join('', map { ", c$_: int = $_" } 3 .. $version));
      # Back to int would want a check: it stays num from the first on.
      $text =~ s/state hits: int/state hits: num/;
      module_text($s, $text);
      ok($s->reload, "version $version is taken") or diag $s->{reload_log};
    }
    for my $c (@clients) {
      my $answer = $c->answer;
      $answer->{status} == 200 ? $hits++ : $wrong++;
      $c->send(Sluice::Client::request(POST => '/inputs/hit'));
    }
  }
  $hits += $_->answer->{status} == 200 for @clients;
  is($wrong, 0, "none of $hits requests failed");
  is(view($s, 'hits'), $hits, 'each was counted once');
  module_text($s, shop($version + 1));
  ok(!$s->reload, 'what is gone is refused while it serves');
  like($s->{reload_log}, qr/s3 is gone; write `drop state s3`/, 'with the reason');
  module_text($s, shop($version + 1, rest => ', index more left',
    states => "state hits: num = 0\n" . join('', map { "state s$_: int = $_\n" } 3 .. $version),
    left   => 'left: int in 0..100_000' . join('', map { ", c$_: int = $_" } 3 .. $version)));
  ok(!$s->reload, 'so is what must be built');
  like($s->{reload_log}, qr/build item index more: built from the rows; that needs a restart/, 'and the log says so');
  is(view($s, 'hits'), $hits, 'the old one goes on');
  $s->stop;
  like(is_right($s, 'after all swaps'), qr/^shop $version: /, 'of the last version');
};

subtest 'what is dropped with leave is gone, and its records with it' => sub {
  my $text = <<'AUP';
module shop 90
table log max 10 { id: int auto, key id }
message hit { }
on hit { insert log { }  reply count(log) }
drop table item
drop state hits
AUP
  $text .= "drop state s$_\n" for 3 .. 6;
  like(start_with($s, $text), qr/--allow-destroy/, 'not without');
  ok(!start_with($s, $text, '--allow-destroy'), 'with it');
  is($s->http(POST => '/inputs/hit')->{body}, 1, 'and it serves');
  $s->stop;
  is(is_right($s, 'what is left'), "shop 90: 1 rows, 1 derived records, all as it should be\n", 'a row and its count');
};

subtest 'verify-store tells what is wrong, and who has the store' => sub {
  ok(!start_with($s, read_file($s->{module})), 'it serves');
  my ($code, $out, $err) = aupc('verify-store', "$dir/store");
  is($code, 2, 'a store in use is not looked at');
  like($err, qr/^aupc: store \Q$dir\E\/store: in use by pid @{[$s->pid]}; stop it first/, 'and the process is named');
  like((aupc('plan', $s->{module}, '--store', "$dir/store"))[2], qr/in use by pid @{[$s->pid]}/, 'nor planned for');
  $s->stop;
  write_file("$dir/other.aup", "module shop 91\ntable log max 5 { id: int auto, key id }\n");
  ($code, $out) = aupc('verify-store', "$dir/store", '--module', "$dir/other.aup");
  is($code, 1, 'a module that does not serve it as it is');
  is($out, "shop 90: 1 rows, 1 derived records, all as it should be\n$dir/other.aup does not serve this store as it is:\n"
    . "  check    table log: 10 rows to 5 rows, it must have no more\n", 'is told with its plan');
};

done_testing;
