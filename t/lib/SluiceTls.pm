# TLS for whole-server tests: certificates by openssl(1), clients by curl and by `openssl s_client`.
#
#   my $ca = authority($dir, 'ca');                      # $dir/ca.pem, $dir/ca.key
#   certificate($dir, 'server', $ca, cn => 'localhost', dns => 'localhost');
#   my $c = tls_client($s->more_port(0));                # a Sluice::Client whose bytes go through s_client
#   my ($code, $body, $said) = curl('--cacert', "$dir/ca.pem", "https://localhost:$port/");
package SluiceTls;
use strict;
use warnings;
use Carp qw(croak);
use Exporter 'import';
use Fcntl qw(F_GETFL F_SETFL O_NONBLOCK);
use Socket;
use Sluice;

our @EXPORT = qw(authority certificate openssl curl tls_client);

# Runs openssl to its end; its standard output and error in one.
sub openssl {
  my ($code, $out, $err) = Sluice::run_command('openssl', @_);
  return ($code, $out . $err);
}

sub run {
  my ($code, $said) = openssl(@_);
  croak "openssl @_: $said" if $code != 0;
}

sub authority {
  my ($dir, $name) = @_;
  run('req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', 2, '-subj', "/CN=$name",
      '-keyout', "$dir/$name.key", '-out', "$dir/$name.pem");
  return "$dir/$name";
}

# $dir/NAME.pem and $dir/NAME.key, signed by an authority. rsa => BITS: an RSA key.
sub certificate {
  my ($dir, $name, $ca, %with) = @_;
  my @key = $with{rsa} ? ('-newkey', "rsa:$with{rsa}") : ('-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256');
  run('req', @key, '-nodes', '-subj', '/CN=' . ($with{cn} // $name), '-keyout', "$dir/$name.key", '-out', "$dir/$name.csr",
      $with{dns} ? ('-addext', "subjectAltName=DNS:$with{dns}") : ());
  run('x509', '-req', '-in', "$dir/$name.csr", '-CA', "$ca.pem", '-CAkey', "$ca.key", '-CAcreateserial', '-days', 2,
      '-copy_extensions', 'copy', '-out', "$dir/$name.pem");
  return "$dir/$name.pem";
}

# curl's exit code, what it printed, and what it said of itself.
sub curl { return Sluice::run_command('curl', '--silent', '--show-error', '--max-time', Sluice::timeout_s(), @_) }

# A client of TLS on 127.0.0.1. More arguments are s_client's.
sub tls_client {
  my ($port, @arguments) = @_;
  socketpair my $ours, my $its, AF_UNIX, SOCK_STREAM, 0 or croak "socketpair: $!";
  my $log = Sluice::temp_folder() . '/s_client';
  my $pid = fork // croak "fork: $!";
  if (!$pid) {
    my $prctl = { x86_64 => 157, aarch64 => 167 }->{ (POSIX::uname())[4] };
    syscall($prctl, 1, 9, 0, 0, 0) if $prctl;            # it ends with the test
    $SIG{$_} = 'DEFAULT' for qw(PIPE TERM INT HUP);
    POSIX::dup2(fileno $its, $_) for 0, 1;
    open STDERR, '>', $log or POSIX::_exit(126);
    { no warnings 'exec'; exec 'openssl', 's_client', '-quiet', '-connect', "127.0.0.1:$port", @arguments; }
    POSIX::_exit(127);
  }
  CORE::close $its;
  fcntl $ours, F_SETFL, fcntl($ours, F_GETFL, 0) | O_NONBLOCK;
  return bless { fd => $ours, in => '', eof => 0, pid => $pid, log => $log, owner => $$ }, 'SluiceTls::Client';
}

package SluiceTls::Client;
our @ISA = 'Sluice::Client';

# What s_client said of the handshake.
sub said { my ($self) = @_; return -e $self->{log} ? Sluice::read_file($self->{log}) : '' }

# The process goes at once, and its socket with it: no farewell.
sub vanish {
  my ($self) = @_;
  return if !$self->{pid} || $self->{owner} != $$;
  local ($?, $!);
  kill KILL => $self->{pid};
  waitpid delete $self->{pid}, 0;
}

sub DESTROY { $_[0]->vanish }

1;
