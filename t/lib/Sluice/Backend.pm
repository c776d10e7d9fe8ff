# A backend that a test drives by hand: it accepts, reads exact requests, and answers what and when the test says.
#
#   my $b = mock_backend();                       # listens on a port of the kernel's; listening => 0: refuses until listen()
#   my $c = $b->accept;                           # waits for the server to connect; a Sluice::Client
#   my $r = $c->asked;                            # one whole request: { method, target, head, headers, body }
#   $c->reply(200, 'body', ETag => '"1"');        # one whole answer; or $c->send("HTTP/1.1 200 OK\r\n...") by hand
#   $b->hang_up;                                  # no longer listens: connecting is refused
#   start_with_pools("b = { backends = { '@{[$b->place]}' } }")
package Sluice::Backend;
use strict;
use warnings;
use Carp qw(croak);
use Exporter 'import';
use Fcntl;
use Socket;
use Sluice;
use Time::HiRes qw(time);

our @EXPORT = qw(mock_backend start_with_pools);

# A server with one worker, so that what its connections do can be told, and the pools that `pools` says; "/b" leads to pool b.
sub start_with_pools {
  my ($pools, %with) = @_;
  my $routes = delete $with{routes} // 'map = { ["/b"] = "b" }';
  my $settings = delete $with{settings} // '';
  my $more = delete $with{more} // '';
  return start_sluice("$more settings { workers = 1, $settings } pools { $pools } routes { $routes }\n", %with);
}

sub mock_backend {
  my (%with) = @_;
  my $self = bless { unix => $with{unix} }, __PACKAGE__;
  $self->bind;
  $self->listen unless defined $with{listening} && !$with{listening};
  return $self;
}

sub bind {
  my ($self) = @_;
  if ($self->{unix}) {
    unlink $self->{unix};
    socket $self->{fd}, AF_UNIX, SOCK_STREAM, 0 or croak "socket: $!";
    CORE::bind $self->{fd}, pack_sockaddr_un($self->{unix}) or croak "bind: $!";
  } else {
    socket $self->{fd}, AF_INET, SOCK_STREAM, 0 or croak "socket: $!";
    setsockopt $self->{fd}, SOL_SOCKET, SO_REUSEADDR, 1;
    CORE::bind $self->{fd}, sockaddr_in($self->{port} || 0, INADDR_LOOPBACK) or croak "bind: $!";
    ($self->{port}) = sockaddr_in(getsockname $self->{fd});
  }
  my $flags = fcntl $self->{fd}, F_GETFL, 0;
  fcntl $self->{fd}, F_SETFL, $flags | O_NONBLOCK;
}

sub port  { $_[0]{port} }
sub place { $_[0]{unix} ? "unix:$_[0]{unix}" : "127.0.0.1:$_[0]{port}" }

sub listen {
  my ($self) = @_;
  $self->bind if !$self->{fd};
  CORE::listen $self->{fd}, 128 or croak "listen: $!";
  return $self;
}

# The port stays ours: bound again, and not listened on.
sub hang_up {
  my ($self) = @_;
  close delete $self->{fd};
  $self->bind;
}

# Waits for a connection.
sub accept {
  my ($self) = @_;
  my $deadline = time + Sluice::timeout_s();
  while (1) {
    if (CORE::accept my $fd, $self->{fd}) {
      my $flags = fcntl $fd, F_GETFL, 0;
      fcntl $fd, F_SETFL, $flags | O_NONBLOCK;
      return bless { fd => $fd, in => '', eof => 0 }, 'Sluice::Client';
    }
    Sluice::wait_readable($deadline, $self->{fd}) or croak 'the server does not connect';
  }
}

# Tests that nobody connects for so many seconds.
sub quiet {
  my ($self, $seconds, $name) = @_;
  local $Test::Builder::Level = $Test::Builder::Level + 1;
  Test::More::ok(!Sluice::wait_readable(time + $seconds, $self->{fd}), $name // 'nobody connects');
}

package Sluice::Client;

# Reads one whole request that the server sent. undef: the connection ended, or nothing came in time.
sub asked {
  my ($self) = @_;
  my $deadline = Time::HiRes::time + Sluice::timeout_s();
  my $end;
  while (($end = index $self->{in}, "\r\n\r\n") < 0) { return undef unless $self->more($deadline) }
  my $head = substr $self->{in}, 0, $end + 4, '';
  my ($method, $target) = $head =~ m{\A(\S+) (\S+) HTTP/1\.1\r\n} or Carp::croak("not a request: $head");
  my %headers;
  while ($head =~ /^([^:\r\n]+):[ \t]*([^\r\n]*?)[ \t]*\r\n/mg) {
    my ($n, $v) = (lc $1, $2);
    $headers{$n} = exists $headers{$n} ? "$headers{$n}, $v" : $v;
  }
  my $length = $headers{'content-length'} || 0;
  while (length $self->{in} < $length) { return undef unless $self->more($deadline) }
  return { method => $method, target => $target, head => $head, headers => \%headers, body => substr $self->{in}, 0, $length, '' };
}

sub reply {
  my ($self, $status, $body, @headers) = @_;
  my $bytes = "HTTP/1.1 $status Word\r\nContent-Length: " . length($body) . "\r\n";
  while (my ($n, $v) = splice @headers, 0, 2) { $bytes .= "$n: $v\r\n" }
  return $self->send("$bytes\r\n$body");
}

1;
