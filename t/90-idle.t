# Ten thousand idle keep-alive connections cost at most 4 KiB each, beyond what the kernel takes for them.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use Sluice;
use Test::More;

my $COUNT = 10_000;
# Both ends need a descriptor for each; a shell can raise the soft limit as far as the hard one allows.
if (!$ENV{SLUICE_IDLE_LIMIT}) {
  $ENV{SLUICE_IDLE_LIMIT} = 1;
  exec 'sh', '-c', 'ulimit -n "$(ulimit -Hn)"; exec "$0" "$@"', $^X, "-I$Bin/lib", $0 or die "sh: $!";
}
chomp(my $limit = `sh -c 'ulimit -n'`);
plan skip_all => "only $limit descriptors are allowed" if $limit ne 'unlimited' && $limit < $COUNT + 200;
plan skip_all => 'instrumented memory says nothing' if $ENV{SLUICE_SANITIZED};

# As a busy machine may take longer to open them than connections may be idle.
my $s = start_sluice("settings { idle_timeout = 3600, connections = $COUNT + 100, workers = 2 }\n"
  . 'stores { quota = { module = "@REPO@/configs/modules/quota.aup", path = "data/quota" } } routes { default = "quota" }' . "\n");
my $request = Sluice::Client::request(GET => '/views/hits');

# Buffers that a burst of requests needs are part of the start, not of what idle connections cost.
my @first = map { $s->client } 1 .. 64;
$_->send($request) for @first;
$_->answer for @first;
my $before = $s->memory_kib('VmRSS');

my (@idle, $bad);
while (@idle < $COUNT) {
  my @some = map { $s->client } 1 .. 100;
  $_->send($request) for @some;
  for my $c (@some) { $bad++ if $c->answer->{status} != 200 }
  push @idle, @some;
}
is($bad // 0, 0, "each of $COUNT connections was served once");
my $after = $s->memory_kib('VmRSS');
my $each = ($after - $before) * 1024 / $COUNT;
cmp_ok($each, '<=', 4096, sprintf 'memory per idle connection: %.0f bytes', $each);

my $late = 0;
for my $c (@idle[ map { $_ * 97 % $COUNT } 1 .. 50 ]) { $late++ if $c->http(GET => '/views/hits')->{status} == 200 }
is($late, 50, 'any of them still serves');
$_->close for @idle, @first;
$s->stop;
done_testing;
