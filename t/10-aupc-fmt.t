# aupc fmt: files rewritten at once or not at all, and what it says of them. The layout itself is t/vm/fmt_test.cc's.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use Sluice;
use Test::More;

my $loose  = "module  lamp 1\n\n\nstate lit:bool // it shines\ninput key press\non press down{lit=not lit}\n";
my $strict = "module lamp 1\n\nstate lit: bool                       // it shines\ninput key press\n"
  . "on press down { lit = not lit }\n";
my $dir = temp_folder();

sub aupc { return Sluice::run_command(aupc_binary(), @_) }

# With standard input from a file and standard output to one.
sub piped {
  my ($input, $output, @args) = @_;
  my $status = system("\Q@{[ aupc_binary() ]}\E @args <\Q$input\E >\Q$output\E 2>\Q$dir/err\E");
  return ($status >> 8, read_file("$dir/err"));
}

subtest 'files are laid out in place' => sub {
  my $file = write_file("$dir/lamp.aup", $loose);
  chmod 0640, $file;
  symlink 'lamp.aup', "$dir/link.aup" or die $!;
  is_deeply([ aupc('fmt', "$dir/link.aup") ], [ 0, '', '' ], 'which says nothing');
  is(read_file($file), $strict, 'the file behind a link');
  ok(-l "$dir/link.aup", 'which stays a link');
  is((stat $file)[2] & 07777, 0640, 'may be read by whom it could');
  ok(!-e "$file.new", 'and nothing is left beside it');
  my $before = (stat $file)[1];
  is_deeply([ aupc('fmt', $file) ], [ 0, '', '' ], 'again');
  is((stat $file)[1], $before, 'leaves what is right alone');
};

subtest '--check writes nothing but names' => sub {
  my $right = write_file("$dir/right.aup", $strict);
  my $wrong = write_file("$dir/wrong.aup", $loose);
  is_deeply([ aupc('fmt', '--check', $right) ], [ 0, '', '' ], 'nothing to do');
  is_deeply([ aupc('fmt', '--check', $wrong, $right) ], [ 1, "$wrong\n", '' ], 'something to do: exit 1');
  is(read_file($wrong), $loose, 'and not done');
};

subtest 'a module that cannot be read stays as it is' => sub {
  my $bad  = write_file("$dir/bad.aup", "module bad 1\nstate  x num\n");
  my $good = write_file("$dir/good.aup", $loose);
  my ($code, $out, $err) = aupc('fmt', $bad, $good);
  is($code, 1, 'exit 1');
  is($out, '', 'nothing on standard output');
  is($err, "$bad:2:10: error: expected `:`, found `num`\n    2 | state  x num\n      |          ^~~\n",
    'the words of the compiler');
  is(read_file($bad), "module bad 1\nstate  x num\n", 'untouched');
  is(read_file($good), $strict, 'the next one is laid out all the same');
};

subtest 'standard input to standard output' => sub {
  my $input = write_file("$dir/input", $loose);
  is_deeply([ piped($input, "$dir/output", 'fmt', '-') ], [ 0, '' ], 'exit 0');
  is(read_file("$dir/output"), $strict, 'laid out');
  is_deeply([ piped($input, "$dir/output", 'fmt', '--check', '-') ], [ 1, '' ], '--check: exit 1');
  is(read_file("$dir/output"), "-\n", 'and its name');
  my ($code, $err) = piped(write_file("$dir/input", 'module'), "$dir/output", 'fmt', '-');
  is($code, 1, 'an error: exit 1');
  like($err, qr/\A-:1:\d+: error: /, 'which names it');
  is(read_file("$dir/output"), '', 'and writes nothing');
};

subtest 'what cannot be read or written: exit 2' => sub {
  my ($code, $out, $err) = aupc('fmt', "$dir/none.aup");
  is($code, 2, 'a missing file');
  like($err, qr{\Aaupc: \S+none\.aup: No such file[^\n]*\n\z}, 'in one line');
  ($code, $out, $err) = aupc('fmt');
  is($code, 2, 'no file');
  my $input = write_file("$dir/input", $loose);
  ($code, $err) = piped($input, '/dev/full', 'fmt', '-');
  is($code, 2, 'a full disk');
  like($err, qr/cannot be written/, 'says so');
  # The name of a file written beside it would be too long.
  my $file = "$dir/" . 'held' x 62 . '.aup';
  open my $out_handle, '>', $file or die $!;
  print $out_handle $loose;
  close $out_handle or die $!;
  ($code, $out, $err) = aupc('fmt', $file);
  is($code, 2, 'a file that cannot be replaced');
  like($err, qr{\Aaupc: \Q$file\E: cannot be written: [^\n]+\n\z}, 'in one line');
  is(read_file($file), $loose, 'is as it was');
  ($code, $out, $err) = aupc('fmt', '/dev/zero');
  is($code, 2, 'what never ends');
  is($err, "aupc: /dev/zero: is longer than 64 MiB\n", 'is not waited for');
  ($code, $err) = piped('/dev/zero', "$dir/output", 'fmt', '-');
  is($code, 2, 'as input too');
  is($err, "aupc: standard input: is longer than 64 MiB\n", 'says so');
};

done_testing;
