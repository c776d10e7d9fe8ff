# What the binary has is in the docs: settings, options, handlers, Lua calls, counters; and what docs show, works.
use strict;
use warnings;
use FindBin qw($Bin);
use lib "$Bin/lib";
use File::Find qw(find);
use Sluice;
use Test::More;

my %text = map { $_ => read_file(repo_path($_)) } qw(README.md lua/README.md proxy/README.md configs/README.md t/README.md tools/README.md);
my $reference = $text{'lua/README.md'};

# The names that a config sees, said by the server itself.
my $s = start_sluice(<<'LUA');
stores { quota = { module = "@REPO@/configs/modules/quota.aup", path = "data/quota" } }
local kept = {}
for name, value in pairs(_G) do
  if type(value) == "function" and (name:find("^route_") or name == "cmdmap" or name == "settings" or name == "stores"
      or name == "pools" or name == "routes") then kept[#kept + 1] = name end
end
for name in pairs(sluice) do kept[#kept + 1] = "sluice." .. name end
local function methods(of, object)
  local meta = getmetatable(object)
  local index = type(meta) == "table" and meta.__index
  if type(index) ~= "table" then return end
  for name in pairs(index) do kept[#kept + 1] = of .. ":" .. name end
end
routes { default = route_lua {
  children = { q = "quota" },
  f = function(rctx, h)
    return function(r)
      local mark = #kept
      methods("rctx", rctx)
      methods("request", r)
      methods("response", rctx:view_and_wait(h.q, "hits"))
      local all = table.concat(kept, "\n") .. "\n"
      for i = #kept, mark + 1, -1 do kept[i] = nil end
      return all
    end
  end } }
LUA
my $answer = $s->http(GET => '/');
answer_is($answer, 'the server lists what a config sees', status => 200);
my @names = grep { length } split /\n/, $answer->{body};
cmp_ok(scalar @names, '>=', 30, scalar(@names) . ' names');
for my $kind (qw(route_ sluice. rctx: request: response:)) {
  ok((grep { index($_, $kind) == 0 } @names), "some of $kind");
}
my @missing = grep {
  my ($bare) = /([A-Za-z_]+)$/;
  my $is_there = /^(?:rctx|request|response):/ ? qr/[:`|\s.]\Q$bare\E\b/ : qr/\b\Q$bare\E\b/;
  $reference !~ $is_there && !/\.__|^sluice\._/;
} @names;
is(join("\n", sort @missing), '', 'each is in lua/README.md');
my $counters = $s->stop;
my @quiet = grep { $text{'proxy/README.md'} !~ /`\Q$_\E`/ } sort keys %$counters;
is("@quiet", '', 'each counter of the last line is in proxy/README.md');

subtest 'settings' => sub {
  my $dir = temp_folder();
  my $settings = read_file(repo_path('proxy/settings.h'));
  my @fields = $settings =~ /^\s+(?:std::\w+|bool)\s+(\w+)\s*=/mg;
  cmp_ok(scalar @fields, '>=', 15, 'there are settings');
  my @section = $reference =~ /`(\w+)`/g;
  my $accepted = 0;
  my %tried;
  for my $name (grep { !$tried{$_}++ } @section) {
    # A setting of that name is one that a wrong value's error names; other names are unknown.
    my $file = write_file("$dir/x.lua", "settings { $name = {} }\n");
    my ($code, $out, $err) = run_sluice('--config', $file, '--check');
    next if $err =~ /unknown|no setting|no such/i || $code == 0;
    $accepted++;
  }
  cmp_ok($accepted, '>=', scalar(@fields) - 2, "the reference names the settings: $accepted of " . scalar @fields);
};

subtest 'options' => sub {
  my ($code, $help) = run_sluice('--help');
  my %options = map { $_ => 1 } $help =~ /^\s+(--[a-z-]+)/mg;
  cmp_ok(scalar keys %options, '>=', 12, 'there are options');
  my $all = join '', values %text;
  is(join(' ', grep { $all !~ /\Q$_\E\b/ } sort keys %options), '', 'each is in a README');
};

subtest 'links and names of files' => sub {
  my @docs;
  find({ no_chdir => 1, wanted => sub {
    $File::Find::prune = 1 if m{/(?:\.git|build[^/]*)$};
    push @docs, $_ if /\.md$/;
  } }, repo_path());
  for my $doc (@docs) {
    my ($folder) = $doc =~ m{^(.*)/};
    my @dead = grep { !/^[a-z]+:|^#/ && !-e "$folder/" . s/#.*//r } read_file($doc) =~ /\]\(([^)\s]+)\)/g;
    is("@dead", '', substr($doc, 1 + length repo_path()) . ': its links lead somewhere');
  }
};

subtest 'the README shows what works' => sub {
  my ($lua) = $text{'README.md'} =~ /```lua\n(.*?)```/s;
  my ($module) = $text{'README.md'} =~ /```\n(module .*?)```/s;
  my $s = start_sluice($lua, files => { map { ("modules/$_.aup" => read_file(repo_path("configs/modules/$_.aup"))) } qw(quota notes) });
  my @session = $text{'README.md'} =~ /```\n(\$ curl.*?)```/s;
  my $port = $s->port;
  my ($asked, $n) = ('', 0);
  my @lines = split /\n/, $session[0];
  while (defined(my $line = shift @lines)) {
    next unless $line =~ s/^\$ (curl .*)/$1/;
    $line =~ s/localhost:8767/127.0.0.1:$port/;
    my $got = `$line -sS 2>&1`;
    my $want = @lines && $lines[0] !~ /^\$/ ? shift @lines : '';
    is($got, $want, $line);
    $n++;
  }
  is($n, 3, 'three requests');
  $s->stop;
  my $m = start_module($module);
  is($m->http(POST => '/inputs/plus')->{status}, 200, 'the module too');
  is($m->http(GET => '/views/hits')->{body}, '1', 'counts');
  $m->stop;
};
done_testing;
