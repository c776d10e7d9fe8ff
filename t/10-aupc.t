# The compiler's command line: its exit codes, where it says what, and what it leaves on the disk.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use POSIX qw(mkfifo);
use Sluice;
use Test::More;

my $dir = temp_folder();
my $good = write_file("$dir/lamp.aup", <<'AUP');
module lamp 1
state lit: bool
input key press
on press down { lit = not lit }
view lit: bool = lit
AUP
my $bad = write_file("$dir/bad.aup", "module bad 1\nstate x: nmu\n");

sub aupc { return Sluice::run_command(aupc_binary(), @_) }

# Exit 2, one line on standard error, nothing on standard output.
sub misused {
  my ($name, $pattern, @args) = @_;
  local $Test::Builder::Level = $Test::Builder::Level + 1;
  my ($code, $out, $err) = aupc(@args);
  is($code, 2, "$name: exit 2");
  like($err, qr/\Aaupc: [^\n]+\n\z/, "$name: one line");
  like($err, $pattern, "$name: which says what is wrong");
  is($out, '', "$name: and nothing else");
}

subtest 'used wrongly, or a file that cannot be read or written: exit 2' => sub {
  misused('nothing', qr/subcommand/);
  misused('no such command', qr/`frob`.*build, check, disasm, explain, \w+/, 'frob');
  misused("$_ without a file", qr/FILE/, $_) for qw(check disasm explain);
  misused('build without an output', qr/--output/, 'build', $good);
  misused("$_ of a missing file", qr{none\.aup: No such file}, $_, "$dir/none.aup") for qw(check disasm explain);
  misused('build of a missing file', qr{none\.aup: No such file}, 'build', "$dir/none.aup", '-o', "$dir/none.pmod");
  misused('a folder', qr{\Q$dir\E: Is a directory}, 'check', $dir);
  misused('an output that cannot be', qr{no/such/x\.pmod: cannot be written: No such file}, 'build', $good, '-o',
    "$dir/no/such/x.pmod");
  misused('the module as its own output', qr{is the module itself}, 'build', $good, '-o', "$dir/./lamp.aup");
  is(read_file($good), "module lamp 1\nstate lit: bool\ninput key press\non press down { lit = not lit }\n"
    . "view lit: bool = lit\n", 'which is as it was');
  my ($code, $out) = aupc('--help');
  is($code, 0, 'help is no error');
  like($out, qr/^\s+$_\b/m, "and lists $_") for qw(build check disasm explain fmt test);
};

subtest 'errors in a module: exit 1, where and what on standard error' => sub {
  for my $args ([ 'check', $bad ], [ 'disasm', $bad ], [ 'explain', $bad ], [ 'build', $bad, '-o', "$dir/bad.pmod" ]) {
    my ($code, $out, $err) = aupc(@$args);
    is($code, 1, $args->[0]);
    like($err, qr/\A\Q$bad\E:2:\d+: error: /, 'the place');
    is($out, '', 'nothing on standard output');
  }
  ok(!-e "$dir/bad.pmod", 'no file is made');
  my ($code, $out, $err) = aupc('check', $good, $bad);
  is($code, 1, 'one of several');
  ($code, $out, $err) = aupc('check', $bad, "$dir/none.aup");
  is($code, 2, 'what cannot be read weighs more');
  like($err, qr/\Q$bad\E:2:/, 'and the others are checked all the same');
  my $cut = write_file("$dir/cut.pmod", 'PMOD and no more');
  ($code, $out, $err) = aupc('disasm', $cut);
  is($code, 1, 'bytecode that is none');
  like($err, qr/\Aaupc: \Q$cut\E: [^\n]+\n\z/, 'says so in one line');
};

subtest 'a good module: exit 0' => sub {
  my ($code, $out, $err) = aupc('check', $good);
  is_deeply([ $code, $out, $err ], [ 0, '', '' ], 'check says nothing');
  ($code, $out, $err) = aupc('build', $good, '-o', "$dir/lamp.pmod");
  is_deeply([ $code, $out, $err ], [ 0, '', '' ], 'nor does build');
  like(read_file("$dir/lamp.pmod"), qr/\APMOD/, 'which wrote the bytecode');
  ok(!-e "$dir/lamp.pmod.new", 'and leaves nothing beside it');
  my $listing = <<'LISTING';
module lamp 1

on press down   B
  0  GETS    r0 = lit
  1  NOT     r0 = not r0
  2  SETS    lit = r0
  3  DONE

view lit   B -> B
  0  GETS    r0 = lit
  1  RET     r0
LISTING
  for my $file ($good, "$dir/lamp.pmod") {
    ($code, $out, $err) = aupc('disasm', $file);
    is($code, 0, 'disasm');
    is($out, $listing, 'the instructions');
    ($code, $out, $err) = aupc('explain', $file);
    is($code, 0, 'explain');
    is($out, <<"COSTS", 'what each costs');
$file: on press down     4 instructions, at most     104 fuel,   0 rows read,     1 written
$file: view lit          2 instructions, at most       3 fuel,   0 rows read,     0 written
COSTS
  }
  for my $command (qw(disasm explain)) {
    my $status = system("\Q@{[ aupc_binary() ]}\E $command \Q$good\E >/dev/full 2>$dir/err");
    is($status >> 8, 2, "$command to a full disk");
    like(read_file("$dir/err"), qr/cannot be written/, 'says so');
  }
};

subtest 'test plays transcripts' => sub {
  my $calls = write_file("$dir/lamp.calls", "// a lamp\nPOST /inputs/press\n    200\nGET /views/lit\n    200  \"true\"\n");
  my ($code, $out, $err) = aupc('test', $good, $calls);
  is_deeply([ $code, $out, $err ], [ 0, "$calls: 2 calls, answered as written\n", '' ], 'answered as written: exit 0');
  ($code, $out) = aupc('test', "$dir/lamp.pmod", $calls, $calls);
  is_deeply([ $code, $out ], [ 0, "$calls: 2 calls, answered as written\n" x 2 ], 'bytecode too, and each file starts with a new store');

  my $wrong = write_file("$dir/wrong.calls", "GET /views/lit\n    200  \"true\"\nGET /views/lot\n    200\n");
  ($code, $out, $err) = aupc('test', $good, $wrong, $calls);
  is($code, 1, 'answered otherwise: exit 1');
  is($out, <<"OUT", 'what was expected and what came');
$wrong:1: GET /views/lit
  expected  200  "true"
  answered  200  "false"
                  ^
$wrong:3: GET /views/lot
  expected  200
  answered  404 no_view  (there is no view `lot`; there is `lit`)
$wrong: 2 calls, 2 answered otherwise
$calls: 2 calls, answered as written
OUT
  my $before = read_file($wrong);
  my $unsure = write_file("$dir/unsure.calls", "// none yet\nGET /views/lit\nPOST /inputs/press\n    422 limit\nPOST /inputs/press\n");
  ($code, $out) = aupc('test', '--update', $good, $unsure);
  is_deeply([ $code, $out ], [ 0, "$unsure: 3 calls, 3 answers written\n" ], '--update writes the answers');
  is(read_file($unsure), "// none yet\nGET /views/lit\n    200  \"false\"\nPOST /inputs/press\n    200\nPOST /inputs/press\n    200\n", 'in their places');
  is((aupc('test', $good, $unsure))[0], 0, 'and then they are right');
  is(read_file($wrong), $before, 'nothing else was written');

  my $broken = write_file("$dir/broken.calls", "GET /views/lit\n");
  ($code, $out, $err) = aupc('test', $good, $broken);
  is($code, 1, 'a transcript that is none: exit 1');
  is($err, "$broken:1: this call has no answer; write it on the next line, indented: `    200`\n", 'with its line');
  ($code, $out, $err) = aupc('test', $bad, $calls);
  is($code, 1, 'a module with errors');
  like($err, qr/\A\Q$bad\E:2:/, 'says so');
  my $starts = write_file("$dir/starts.aup", "module m 1\nstate n: num\non start { n = 1 / n }\n");
  ($code, $out, $err) = aupc('test', $starts, $calls);
  is($code, 1, 'a module that cannot start');
  is($err, "aupc: $starts: `on start` fails: divide\n", 'says why');
  misused('test without a transcript', qr/CALLS/, 'test', $good);
  misused('a transcript that is missing', qr{none\.calls: No such file}, 'test', $good, "$dir/none.calls");
  my $status = system("\Q@{[ aupc_binary() ]}\E test \Q$good\E \Q$calls\E >/dev/full 2>$dir/err");
  is($status >> 8, 2, 'a full disk is no success');
};

subtest 'what is written goes where the name leads, and replaces nothing else' => sub {
  mkfifo("$dir/pipe", 0600) or die $!;
  open my $pipe, '+<', "$dir/pipe" or die $!;
  my ($code, $out, $err) = aupc('build', $good, '-o', "$dir/pipe");
  is_deeply([ $code, $out, $err ], [ 0, '', '' ], 'a pipe');
  ok(-p "$dir/pipe", 'is one still');
  sysread $pipe, my $bytes, 4;
  is($bytes, 'PMOD', 'and was written to');
  symlink '/dev/full', "$dir/full" or die $!;
  misused('a full disk', qr{full: cannot be written: No space left}, 'build', $good, '-o', "$dir/full");
  ok(-c '/dev/full', 'a device is no file to replace') or BAIL_OUT('/dev/full is gone');

  my $calls = write_file("$dir/real.calls", "POST /inputs/press\n");
  chmod 0640, $calls;
  symlink 'real.calls', "$dir/link.calls" or die $!;
  write_file("$dir/real.calls.new", 'mine');
  write_file("$dir/link.calls.new", 'mine');
  is((aupc('test', '--update', $good, "$dir/link.calls"))[0], 0, 'a link');
  ok(-l "$dir/link.calls", 'goes on pointing at its file');
  is(read_file($calls), "POST /inputs/press\n    200\n", 'which has changed');
  is((stat $calls)[2] & 07777, 0640, 'and may be read by whom it could');
  is(read_file("$dir/$_.calls.new"), 'mine', 'files that happen to lie there are not touched') for qw(real link);
  symlink 'later.pmod', "$dir/later" or die $!;
  is((aupc('build', $good, '-o', "$dir/later"))[0], 0, 'a link to what is not there yet');
  like(read_file("$dir/later.pmod"), qr/\APMOD/, 'makes it');
  is_deeply([ glob "$dir/*-*.new" ], [], 'nothing is left over');
};

subtest 'a file that is wrong everywhere' => sub {
  my $many = write_file("$dir/many.aup", "module many 1\n" . "state a:x\n" x 50_000);
  my ($code, $out, $err) = aupc('check', $many);
  is($code, 1, 'has errors');
  is(() = $err =~ /: error: /g, 100, 'of which a hundred are shown');
  like($err, qr/\n\naupc: \Q$many\E: and \d+ more\n\z/, 'and the others counted');
  my $wide = write_file("$dir/wide.aup", 'module wide 1 state x: num = ' . ' ' x 500_000 . 'y');
  ($code, $out, $err) = aupc('check', $wide);
  is($code, 1, 'a line of half a megabyte');
  cmp_ok(length $err, '<', 1000, 'is not shown whole');
  like($err, qr/^    1 \| {80,}y\n {5} \| {80,}\^\n/m, 'but what is wrong');
};

done_testing;
