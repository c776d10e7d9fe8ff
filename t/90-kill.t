# kill -9 at any moment loses no answered event and leaves none by half.
#
# Twenty-four clients each send one request at a time: a third of them count up a state, a third edit documents (a few
# bytes to 100 KiB) or delete them, a third write rows of a table or delete them. The server is killed in the middle,
# started again, and asked for everything: each answer must be there, and what was not answered must be there whole or
# not at all. One state counts every edit in the same event that makes it, so the sum of all revisions must be that
# state. The table's index, its total and its counts must be what its rows give.
# SLUICE_KILL_ROUNDS (10) rounds; SLUICE_SEED repeats the choices of a run.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use Sluice;
use Test::More;
use Time::HiRes qw(time);

my $ROUNDS = $ENV{SLUICE_KILL_ROUNDS} || 10;
my $SEED   = $ENV{SLUICE_SEED} || int(time * 1000) % 1_000_000;
srand $SEED;
note "SLUICE_SEED=$SEED repeats this run's choices";

my $MODULE = <<'AUP';
// Counts each edit in the event that makes it.
module pair 1
state edits: num
state added: num
documents bytes max 1MiB
message add { n: u32 }
message show keyed { }
message edit keyed { body: bytes max 1MiB }
message remove keyed { }
table line max 300 per who {
  who: slug, n: u32, size: int in 0..1000
  key (who, n)
  index by_size (size desc, who, n)
  total sizes sum(size) by who
}
message write { who: slug, n: u32, size: u32 }
message erase { who: slug, n: u32 }
on write { put line { who, n, size } }
on erase { delete line[who, n] }
view lines(who: slug) = for l in line[who] { l.n, l.size }
view by_size = for l in line by by_size { l.size, l.who, l.n }
view sizes(who: slug): num = total(line.sizes, who)
view count(who: slug): num = count(line[who])
on add { added += n  reply added }
on show { reply doc }
on edit { doc = body  edits += 1 }
on remove { delete doc  edits += 1 }
view edits: num = edits
view total: num = added
AUP

my $BLOCK = join '', map { chr 33 + int rand 90 } 1 .. 200_000;
my $serial = 0;
my @wrong;
sub wrong { push @wrong, $_[0]; diag $_[0] if @wrong <= 20 }

# A client: what it last heard (rev, body; body undef: deleted), and what it waits for.
# Of rows: which it has (n => size).
my @clients = map { { kind => (qw(add edit row))[ $_ % 3 ], key => "k$_", rev => 0, body => undef, rows => {}, pending => undef } } 0 .. 23;
my ($total, $answered_adds) = (0, 0);
my $answers = 0;

sub next_request {
  my ($c) = @_;
  if ($c->{kind} eq 'add') {
    $c->{pending} = { add => 1 };
    return Sluice::Client::request(POST => '/inputs/add?n=1', body => '');
  }
  if ($c->{kind} eq 'row') {
    my $n = int rand 250;
    my ($name, $size) = exists $c->{rows}{$n} && rand() < 0.3 ? ('erase') : ('write', int rand 1000);
    $c->{pending} = { row => $n, size => $size };
    return Sluice::Client::request(POST => "/inputs/$name?who=$c->{key}&n=$n" . (defined $size ? "&size=$size" : ''), body => '');
  }
  if (defined $c->{body} && rand() < 0.05) {
    $c->{pending} = { rev => $c->{rev} + 1, body => undef };
    return Sluice::Client::request(DELETE => "/objects/$c->{key}", headers => [ 'If-Match', "\"$c->{rev}\"" ]);
  }
  my $size = rand() < 0.7 ? int rand 300 : int rand 100_000;
  my $body = ++$serial . ' ' . substr $BLOCK, int rand 100_000, $size;
  $c->{pending} = { rev => $c->{rev} + 1, body => $body };
  return Sluice::Client::request(PUT => "/objects/$c->{key}", body => $body,
    headers => defined $c->{body} ? [ 'If-Match', "\"$c->{rev}\"" ] : [ 'If-None-Match', '*' ]);
}

sub take_answer {
  my ($c, $answer) = @_;
  my $p = delete $c->{pending};
  $answers++;
  if ($p->{add}) {
    return wrong("an add answered $answer->{status}") if $answer->{status} != 200;
    $total = $answer->{body} if $answer->{body} > $total;
    $answered_adds++;
    return;
  }
  if (defined $p->{row}) {
    return wrong("a row answered $answer->{status}: $answer->{body}") if $answer->{status} != 200;
    return apply_row($c->{rows}, $p);
  }
  my $want = defined $p->{body} ? 200 : 204;
  return wrong("$c->{key}: answered $answer->{status}, not $want: $answer->{body}") if $answer->{status} != $want;
  wrong("$c->{key}: revision $answer->{headers}{etag}, not $p->{rev}") if defined $p->{body} && $answer->{headers}{etag} ne "\"$p->{rev}\"";
  @$c{qw(rev body)} = @$p{qw(rev body)};
}

sub apply_row {
  my ($rows, $p) = @_;
  if (defined $p->{size}) { $rows->{ $p->{row} } = $p->{size} } else { delete $rows->{ $p->{row} } }
}

# Each client's rows are those it heard of, perhaps with the open request's; and what is derived is what they give.
sub check_rows {
  my ($s, $round) = @_;
  my @all;
  for my $c (grep { $_->{kind} eq 'row' } @clients) {
    my $page = json($s->http(GET => "/views/lines?who=$c->{key}")->{body});
    my $has = join ' ', map { "$_->{n}=$_->{size}" } @{ $page->{items} };
    my $text = sub { join ' ', map { "$_=$_[0]{$_}" } sort { $a <=> $b } keys %{ $_[0] } };
    my %next = %{ $c->{rows} };
    apply_row(\%next, $c->{pending}) if $c->{pending};
    if ($has eq $text->(\%next)) { $c->{rows} = \%next }
    elsif ($has ne $text->($c->{rows})) { wrong("round $round: $c->{key} has the rows $has, not " . $text->($c->{rows})) }
    push @all, map { [ $_->{size}, $c->{key}, $_->{n} ] } @{ $page->{items} };
    my $sum = 0;
    $sum += $_->{size} for @{ $page->{items} };
    my $kept = $s->http(GET => "/views/sizes?who=$c->{key}")->{body};
    wrong("round $round: the total of $c->{key} is $kept, its rows give $sum") if $kept ne $sum;
    my $count = $s->http(GET => "/views/count?who=$c->{key}")->{body};
    wrong("round $round: $count rows of $c->{key} are counted, there are " . @{ $page->{items} }) if $count != @{ $page->{items} };
  }
  my $expected = join ' ', map { "$_->[0]/$_->[1]/$_->[2]" } sort { $b->[0] <=> $a->[0] || $a->[1] cmp $b->[1] || $a->[2] <=> $b->[2] } @all;
  my @indexed;
  while (1) {
    my $page = json($s->http(GET => '/views/by_size?from=' . @indexed)->{body});
    wrong("round $round: $page->{rows} rows are in the index, there are " . @all) if $page->{rows} != @all;
    last unless @{ $page->{items} };
    push @indexed, map { "$_->{size}/$_->{who}/$_->{n}" } @{ $page->{items} };
  }
  wrong("round $round: the index is not what the rows give") if "@indexed" ne $expected;
}

# Is a whole answer there? Then takes it.
sub ready_answer {
  my ($conn, $method) = @_;
  return unless $conn->{in} =~ /\r\n\r\n/;
  my $head = substr $conn->{in}, 0, $+[0];
  my ($length) = $head =~ /^content-length:\s*(\d+)/mi;
  return if length($conn->{in}) < length($head) + ($length // 0);
  return $conn->answer($method);
}

my $s = start_module($MODULE, args => [ '--threads', '2' ]);
for my $round (1 .. $ROUNDS) {
  my $goal = $answers + 50 + int rand 600;
  for my $c (@clients) { $c->{conn} = $s->client; $c->{conn}->send(next_request($c)) }
  my $deadline = time + timeout_s();
  while ($answers < $goal) {
    my @ready = Sluice::wait_readable($deadline, map { $_->{conn}->fd } @clients);
    if (!@ready) { wrong("round $round: no answer in time"); last }
    my %ready = map { fileno $_ => 1 } @ready;
    for my $c (@clients) {
      next unless $ready{ fileno $c->{conn}->fd };
      $c->{conn}->fill;
      if ($c->{conn}{eof}) { wrong("round $round: the connection of $c->{key} ended"); $deadline = 0; last }
      my $answer = ready_answer($c->{conn}) or next;
      take_answer($c, $answer);
      $c->{conn}->send(next_request($c));
    }
    last if $deadline == 0;
  }
  $s->kill9;
  is($s->{exit}, -9, "round $round: killed after $answers answers in all");
  # An answer that was sent before the kill and read only now counts as answered.
  for my $c (@clients) {
    1 while !$c->{conn}{eof} && $c->{conn}->more(time + 5);
    while (my $answer = ready_answer($c->{conn})) { take_answer($c, $answer) }
    $c->{conn}->close;
  }

  # All that is derived, as the kill left it, before anybody could have mended it.
  my ($code, $out, $err) = Sluice::run_command(aupc_binary(), 'verify-store', "$s->{dir}/store");
  wrong("round $round: verify-store ended with $code: $out$err") if $code != 0;

  $s->start;
  my $now = $s->http(GET => '/views/total')->{body};
  my $open = grep { $_->{pending} && $_->{pending}{add} } @clients;
  wrong("round $round: the total is $now, but $total was answered") if $now < $total;
  wrong("round $round: the total is $now: more than the $answered_adds answered and $open open ones") if $now > $answered_adds + $open;
  wrong("round $round: the total is $now, but $answered_adds were answered") if $now < $answered_adds;
  ($total, $answered_adds) = ($now, $now);       # the open ones that made it count from here on

  my $sum = 0;
  for my $c (grep { $_->{kind} eq 'edit' } @clients) {
    my $got = $s->http(GET => "/objects/$c->{key}");
    my $p = $c->{pending};
    my $fits = sub {
      my ($is) = @_;
      return $got->{status} == 404 if !defined $is->{body};
      return $got->{status} == 200 && $got->{headers}{etag} eq "\"$is->{rev}\"" && $got->{body} eq $is->{body};
    };
    if ($p && $fits->($p)) { @$c{qw(rev body)} = @$p{qw(rev body)} }
    elsif (!$fits->($c)) {
      wrong("round $round: $c->{key} is $got->{status} " . ($got->{headers}{etag} // 'without a revision') . ', ' . length($got->{body}) .
            " bytes; answered was revision $c->{rev}" . ($p ? ", open was $p->{rev}" : ''));
    }
    $sum += $c->{rev};
  }
  check_rows($s, $round);
  my $edits = $s->http(GET => '/views/edits')->{body};
  wrong("round $round: $edits edits were counted, the revisions say $sum") if $edits != $sum;
  delete $_->{pending} for @clients;
  last if @wrong;
}
is(scalar @wrong, 0, "nothing answered is missing, nothing unanswered is half there ($answers answers)");
cmp_ok($answers, '>=', 50 * $ROUNDS, 'and there were answers to compare') if !@wrong;
$s->stop;
done_testing;
