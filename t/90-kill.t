# kill -9 at any moment loses no answered event and leaves none by half.
#
# Sixteen clients each send one request at a time: half of them count up a state, half of them edit documents (a
# few bytes to 100 KiB) or delete them. The server is killed in the middle, started again, and asked for everything:
# each answer must be there, and what was not answered must be there whole or not at all. One state counts every edit
# in the same event that makes it, so the sum of all revisions must be that state.
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
state total: num
documents bytes max 1MiB
message add { n: u32 }
message show keyed { }
message edit keyed { body: bytes max 1MiB }
message remove keyed { }
on add { total += n  reply total }
on show { reply doc }
on edit { doc = body  edits += 1 }
on remove { delete doc  edits += 1 }
view edits: num = edits
view total: num = total
AUP

my $BLOCK = join '', map { chr 33 + int rand 90 } 1 .. 200_000;
my $serial = 0;
my @wrong;
sub wrong { push @wrong, $_[0]; diag $_[0] if @wrong <= 20 }

# A client: what it last heard (rev, body; body undef: deleted), and what it waits for.
my @clients = map { { kind => $_ % 2 ? 'edit' : 'add', key => "k$_", rev => 0, body => undef, pending => undef } } 0 .. 15;
my ($total, $answered_adds) = (0, 0);
my $answers = 0;

sub next_request {
  my ($c) = @_;
  if ($c->{kind} eq 'add') {
    $c->{pending} = { add => 1 };
    return Sluice::Client::request(POST => '/inputs/add?n=1', body => '');
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
  my $want = defined $p->{body} ? 200 : 204;
  return wrong("$c->{key}: answered $answer->{status}, not $want: $answer->{body}") if $answer->{status} != $want;
  wrong("$c->{key}: revision $answer->{headers}{etag}, not $p->{rev}") if defined $p->{body} && $answer->{headers}{etag} ne "\"$p->{rev}\"";
  @$c{qw(rev body)} = @$p{qw(rev body)};
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
  my $edits = $s->http(GET => '/views/edits')->{body};
  wrong("round $round: $edits edits were counted, the revisions say $sum") if $edits != $sum;
  delete $_->{pending} for @clients;
  last if @wrong;
}
is(scalar @wrong, 0, "nothing answered is missing, nothing unanswered is half there ($answers answers)");
cmp_ok($answers, '>=', 50 * $ROUNDS, 'and there were answers to compare') if !@wrong;
$s->stop;
done_testing;
