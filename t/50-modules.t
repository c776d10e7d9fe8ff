# Each transcript beside a module is answered as it is written, byte for byte: by the server over HTTP, and by `aupc test`.
#
# This reads transcripts by itself, so that the two readers of them check each other.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use File::Basename qw(basename);
use IO::Socket::UNIX;
use JSON::PP ();
use Socket qw(SOCK_DGRAM);
use Sluice;
use Test::More;

my $JSON = JSON::PP->new->allow_nonref->utf8;

# "a JSON string" or b'bytes' as bytes.
sub decode {
  my ($text, $place) = @_;
  if ($text =~ /\Ab'(.*)'\z/s) {
    my %plain = (n => "\n", t => "\t", r => "\r", "'" => "'", '\\' => '\\');
    return $1 =~ s/\\(?:x([0-9a-fA-F]{2})|(.))/defined $1 ? chr hex $1 : $plain{$2} \/\/ die "$place: \\$2\n"/ger;
  }
  my $decoded = $JSON->decode($text);
  utf8::encode($decoded);
  return $decoded;
}

# A transcript as a list of { place, clock, timer | method, target, headers, body; status, error, etag, text, json }.
sub transcript {
  my ($file) = @_;
  my ($n, @steps) = (0);
  for (split /\n/, read_file($file)) {
    my $place = basename($file) . ':' . ++$n;
    next if m{^\s*(?://|$)};
    if (/^\s+(\d{3})(?: ([a-z_]+))?(?: ETag "([^"]+)")?(?:\s+(.*))?$/) {
      my ($step, $text) = ($steps[-1], $4);
      @$step{qw(status error etag)} = ($1, $2 // 'none', $3);
      next unless defined $text;
      $step->{json} = $text =~ /^[\[{]/;
      $step->{text} = $step->{json} ? $text : decode($text, $place);
    } elsif (/^(?:\@(\d+) )?timer (\w+)$/) {
      push @steps, { place => $place, clock => $1, timer => $2, call => $_ };
    } elsif (/^(?:\@(\d+) )?([A-Z]+) (\S+)(.*)$/) {
      my ($step, $rest) = ({ place => $place, clock => $1, method => $2, target => $3, headers => [], call => $_ }, $4);
      $step->{body} = decode($1, $place) if $rest =~ s/(?:^|\s)body\s+(.*)$//;
      push @{ $step->{headers} }, /^([\w-]+): (.*?)\s*$/ ? ($1, $2) : die "$place: $_\n" for grep { length } split /\s{2,}/, $rest;
      push @steps, $step;
    } else {
      die "$place: not a line of a transcript: $_\n";
    }
  }
  return @steps;
}

# `$ID` in `text` by what came for it; `$$` is a `$`.
sub expand {
  my ($text, $captured) = @_;
  return $text =~ s/\$(\$|[A-Z][A-Z0-9_]*)/$1 eq '$' ? '$' : $captured->{$1} \/\/ die "nothing has come for \$$1\n"/ger;
}

# A pattern for the body, and the names of what it captures.
sub pattern {
  my ($text, $captured) = @_;
  my ($pattern, @names) = ('');
  for (split /(\$\$|\$[A-Z][A-Z0-9_]*)/, $text) {
    if ($_ eq '$$') { $pattern .= '\$' }
    elsif (!/^\$([A-Z].*)/s) { $pattern .= quotemeta }
    elsif (exists $captured->{$1}) { $pattern .= quotemeta $captured->{$1} }
    else { $pattern .= '([A-Za-z0-9_-]+)'; push @names, $1 }
  }
  return (qr/\A$pattern\z/s, @names);
}

# Tells the server's test control something and waits for its answer.
my $tellers = 0;
sub teller {
  my ($s, $path) = @_;
  my $own = $s->dir . '/teller' . ++$tellers;
  my $socket = IO::Socket::UNIX->new(Type => SOCK_DGRAM, Local => $own, Peer => $path) or die "$path: $!";
  return sub {
    my ($words) = @_;
    $socket->send($words) // die "$path: $!";
    vec(my $bits = '', fileno $socket, 1) = 1;
    select(my $ready = $bits, undef, undef, Sluice::timeout_s()) or die "no answer to `$words`\n";
    $socket->recv(my $answer, 1024);
    return $answer;
  };
}

sub play {
  my ($module, @steps) = @_;
  my $dir = temp_folder();
  my $s = start_module($module, dir => $dir, args => [ '--test-control', "$dir/control" ]);
  my $tell = teller($s, "$dir/control");
  my $store = basename($module, '.aup');
  my %captured;
  for my $step (@steps) {
    my $name = "$step->{place}: $step->{call}";
    if (defined $step->{clock}) { is($tell->("clock $step->{clock}"), 'ok', "$name: the clock") }
    if (defined $step->{timer}) { is($tell->("timer $store $step->{timer}"), 'ok', $name); next }
    my @headers = map { expand($_, \%captured) } @{ $step->{headers} };
    my $answer = $s->http($step->{method}, expand($step->{target}, \%captured), headers => \@headers,
      # What may carry a body says how long it is, also when there is none.
      $step->{method} =~ /^(?:POST|PUT)$/ || defined $step->{body} ? (body => expand($step->{body} // '', \%captured)) : ());
    my %want = (status => $step->{status}, error => $step->{error}, 'cache-control' => 'no-store',
      etag => defined $step->{etag} ? qq("$step->{etag}") : undef);
    # A failure without a text is answered with one line of the server's.
    my ($pattern, @names) = defined $step->{text} ? pattern($step->{text}, \%captured)
                          : $step->{error} eq 'none' || $step->{method} eq 'HEAD' ? qr/\A\z/ : qr/\A[^\n]+\n\z/;
    $want{'content-type'} = 'application/json' if $step->{json};
    answer_is($answer, $name, %want, body => $pattern) or next;
    @captured{@names} = $answer->{body} =~ $pattern if @names;
  }
  $s->stop;
}

my @modules = glob repo_path('configs/modules/*.aup');
cmp_ok(scalar @modules, '>=', 12, 'there are modules');
for my $module (@modules) {
  (my $calls = $module) =~ s/\.aup$/.calls/;
  subtest basename($module) => sub {
    ok(-e $calls, 'it has a transcript') or return;
    my @steps = transcript($calls);
    cmp_ok(scalar @steps, '>=', 5, 'of some calls');
    play($module, @steps);
    my ($code, $out, $err) = Sluice::run_command(aupc_binary(), 'test', $module, $calls);
    is($code, 0, 'and `aupc test` answers alike') or diag($out, $err);
    is($out, "$calls: " . @steps . " calls, answered as written\n", 'to as many');
  };
}
done_testing;
