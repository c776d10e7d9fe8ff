# The scripts a newcomer runs first, and the load tool, run.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use File::Find qw(find);
use Sluice;
use Test::More;

# Each run gets a copy of the configs, so that what it stores goes nowhere near the sources.
my $dir = temp_folder();
system('cp', '-R', repo_path('configs'), $dir) == 0 or die 'cp';
system('rm', '-rf', "$dir/configs/data");
$ENV{SLUICE} = sluice_binary();
$ENV{CONFIG} = "$dir/configs/quickstart.lua";

subtest 'quickstart tries what it tells to try' => sub {
  my ($code, $out, $err) = Sluice::run_command(repo_path('tools/quickstart'), '--once');
  is($code, 0, 'it works') or diag($err);
  my @requests = $out =~ /^\$ (curl .*)$/mg;
  is(scalar @requests, 3, 'three requests');
  like($out, qr/^\{.*"title":"First".*\}$/m, 'the note comes back');
  like($out, qr/"hits":1/, 'with the counter');
  ($code, $out, $err) = Sluice::run_command(repo_path('tools/quickstart'), '--once');
  is($code, 0, 'a second time too') or diag($err);
  like($out, qr/"hits":2/, 'and what was stored is there');
};

subtest 'quickstart says what is wrong in one line' => sub {
  for my $case ([ '--port', 'x' ], ['--nothing'], ['--port']) {
    my ($code, $out, $err) = Sluice::run_command(repo_path('tools/quickstart'), @$case);
    is($code, 1, "@$case");
    like($err, qr/\Aquickstart: failed: [^\n]+\n\z/, 'one line');
  }
};

subtest 'quickstart serves until it is told to end' => sub {
  my $s = Sluice::new_server($dir, {});
  pipe my $out, my $out_w or die;
  my $pid = Sluice::fork_exec([ repo_path('tools/quickstart'), '--port', '0' ], $out_w, "$dir/err", undef, {});
  close $out_w;
  my $said = '';
  my $deadline = time + timeout_s();
  until ($said =~ /Ctrl-C ends it/) {
    last unless Sluice::wait_readable($deadline, $out);
    last unless sysread $out, $said, 4096, length $said;
  }
  my ($port) = $said =~ m{on http://127\.0\.0\.1:(\d+)\. Try:};
  ok($port, 'it says where') or diag($said);
  my ($hup) = $said =~ /kill -HUP (\d+)/;
  is($hup, $pid, 'and whom to signal: itself');
  is(Sluice::Client->new($port)->http(GET => '/quota/views/lamp')->{body}, 'false', 'it serves') if $port;
  kill INT => $pid;
  is(Sluice::wait_pid($pid, time + timeout_s()), 0, 'Ctrl-C ends it well');
};

subtest 'load measures each question' => sub {
  my @all = qw(view document hello views4 inputs4 put1k hotrow page1k page1m far1m rank1k rank1m);
  local $ENV{SLUICE_TEST_TIMEOUT} = 120;
  my ($code, $out, $err) = Sluice::run_command(repo_path('tools/load'), '--quick');
  is($code, 0, 'it runs') or diag($err);
  like($out, qr/^commit /m, 'facts of the machine first');
  like($out, qr/^$_ +[1-9]\d* +\d+\.\d+ +\d+\.\d+ +\d+\.\d+ +0 /m, "figures of $_") for @all;
  ($code, $out, $err) = Sluice::run_command(repo_path('tools/load'), 'nothing');
  is($code, 255, 'an unknown question is refused');
  like($err, qr/there is no question 'nothing'/, 'by name');
};
done_testing;
