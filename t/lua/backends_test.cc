// What a config says of backends and pools: what is read, what is refused and how.
#include "proxy/remote/backend.h"
#include "t/lua/harness.h"

using namespace sluice::lua::harness;

namespace {

std::shared_ptr<const Config> config(std::string_view text) {
  const TempFile file(text);
  static auto reader = make_config_reader(nullptr);   // one for all: what configs have in common is its
  auto read = reader->read(file.path());
  if (!read) FAIL(read.error());
  return *read;
}

std::string pool(std::string_view spec) { return "pools { p = " + std::string(spec) + " }\nroutes { default = 'p' }"; }
std::string error_of_pool(std::string_view spec) { return error_of(pool(spec)); }

}  // namespace

TEST_CASE("a backend is a word, a word and a label, or a table; its options come from all, its pool and itself") {
  const auto c = config("settings { backend_read_timeout = 7, backend_connect_timeout = 3 }\n" + pool(R"({
    backends = { "127.0.0.1:81", "127.0.0.1:82 two", "h.invalid:83 _down_", { host = "127.0.0.1", port = 84, label = "four", read_timeout = 9, connections = 2 },
      { "[::1]:85", name = "five", host_header = "example.com" }, { host = "::1", port = 86 }, { address = "unix:/run/x.sock", down = true }, { "127.0.0.1:80 plain" } },
    backend_options = { connect_timeout = 4, failure_limit = 0 } })"));
  const auto all = c->backends();
  REQUIRE(all.size() == 8);
  const char* const names[] = {"127.0.0.1:81", "two", "h.invalid:83", "four", "five", "[::1]:86", "unix:/run/x.sock", "plain"};
  for (std::size_t i = 0; i < 8; ++i) CHECK(all[i]->name == names[i]);
  CHECK(all[0]->spec.options.read_timeout_ms == 7000);
  CHECK(all[0]->spec.options.connect_timeout_ms == 4000);
  CHECK(all[0]->spec.options.failure_limit == 0);
  CHECK(all[3]->spec.options.read_timeout_ms == 9000);
  CHECK(all[3]->spec.options.connections == 2);
  CHECK(all[2]->spec.options.down);
  CHECK(all[2]->spec.addresses.empty());
  CHECK(all[6]->spec.options.down);
  CHECK(all[0]->host_line == "Host: 127.0.0.1:81\r\n");
  CHECK(all[4]->host_line == "Host: example.com\r\n");
  CHECK(all[6]->host_line == "Host: localhost\r\n");
  CHECK(all[7]->host_line == "Host: 127.0.0.1\r\n");
}

TEST_CASE("configs that describe a backend alike have the same one; settings that are gone have their defaults again") {
  const auto one = config(pool("{ backends = { '127.0.0.1:81', '127.0.0.1:82' } }"));
  const auto two = config(pool("{ backends = { '127.0.0.1:82', { '127.0.0.1:81', weight = 2 } }, options = { dist = 'ring' } }"));
  CHECK(one->backends()[0] == two->backends()[1]);
  CHECK(one->backends()[1] == two->backends()[0]);
  const auto other = config("settings { backend_read_timeout = 1 }\n" + pool("{ backends = { '127.0.0.1:81' } }"));
  CHECK(other->backends()[0] != one->backends()[0]);
  CHECK(other->backends()[0]->stats == one->backends()[0]->stats);
  CHECK(config(pool("{ backends = { '127.0.0.1:81' } }"))->backends()[0] == one->backends()[0]);
  const auto apart = config("pools { p = { backends = { '127.0.0.1:81' } }, q = { backends = { '127.0.0.1:81' }, options = { beprefix = 'x-' } },"
                            " r = { backends = { '127.0.0.1:81' } } } routes { default = 'p' }");
  REQUIRE(apart->backends().size() == 2);
  CHECK(apart->backends()[1]->name == "x-127.0.0.1:81");
}

TEST_CASE("the lower layer makes the same") {
  const auto c = config(R"(
    function sluice_config_pools()
      sluice.settings { backend_depth_limit = 5 }
      local b = sluice.backend { host = "127.0.0.1", port = 81, label = "b" }
      return { p = sluice.pool({ b, sluice.backend "127.0.0.1:82" }, { name = "p", dist = "ring", seed = 3, hash = "xxh3" }) }
    end
    function sluice_config_routes(conf) sluice.attach(sluice.ANY, conf.p) end)");
  REQUIRE(c->backends().size() == 2);
  CHECK(c->backends()[0]->depth.limit() == 5);
  CHECK(error_of("function sluice_config_pools() return { b = sluice.backend '127.0.0.1:1' } end function sluice_config_routes() end")
            .find("b is a userdata, which cannot be copied") != std::string::npos);
  CHECK(error_of("function sluice_config_pools() sluice.backend {} end function sluice_config_routes() end") ==
        "t.lua:1: a backend needs a place: \"HOST:PORT\", \"unix:PATH\", or `host` and `port` (in: function sluice_config_pools() sluice.backend {} end function sluice_config_routes() end)");
  CHECK(error_of("function sluice_config_pools() sluice.pool({}) end function sluice_config_routes() end").find("t.lua:1: a pool without stores or backends") == 0);
}

TEST_CASE("without a worker's connections a pool of backends answers that it has none") {
  World w(pool("{ backends = { '127.0.0.1:81' } }"), false);
  const auto x = w.begin(Method::get, "/a");
  CHECK(x->status == 502);
  CHECK(x->error == sluice::Errc::backend);
}

TEST_CASE("mistakes in pools of backends are refused, with their line and what is allowed") {
  const auto has = [](const std::string& why, std::string_view part) {
    CAPTURE(why);
    CHECK(why.find(part) != why.npos);
    CHECK(why.find("t.lua:1: ") == 0);
  };
  has(error_of_pool("{ backends = {} }"), "pool `p` needs backends = { \"HOST:PORT\", ... }, at least one");
  has(error_of_pool("{ backends = { 'host' } }"), "pool `p`: a backend is \"HOST:PORT\", \"[::1]:PORT\" or \"unix:PATH\", not \"host\"");
  has(error_of_pool("{ backends = { 7 } }"), "got a number");
  has(error_of_pool("{ backends = { '127.0.0.1:1 two words' } }"), "a backend's label is a word");
  has(error_of_pool("{ backends = { 'no-such-name.invalid:1' } }"), "backend `no-such-name.invalid:1`: `no-such-name.invalid` is not found");
  has(error_of_pool("{ backends = { { host = '127.0.0.1' } } }"), "a backend with a `host` needs a `port`");
  has(error_of_pool("{ backends = { { '127.0.0.1:1', port = 2 } } }"), "a backend says its place once");
  has(error_of_pool("{ backends = { { host = 'unix:/x', port = 2 } } }"), "a backend at a Unix socket has no `port`");
  has(error_of_pool("{ backends = { { '127.0.0.1:1', conections = 2 } } }"), "a backend has no `conections`; did you mean `connections`?");
  has(error_of_pool("{ backends = { { '127.0.0.1:1', connections = 0 } } }"), "`connections` is 0, but goes from 1 to 4096");
  has(error_of_pool("{ backends = { { '127.0.0.1:1', connections = 1.5 } } }"), "`connections` is a whole number, got 1.5");
  has(error_of_pool("{ backends = { { '127.0.0.1:1', read_timeout = 'x' } } }"), "`read_timeout` is a number of seconds, got a string");
  has(error_of_pool("{ backends = { { '127.0.0.1:1', body_limit = 'x' } } }"), "`body_limit` is a size");
  has(error_of_pool("{ backends = { { '127.0.0.1:1', tcp_keepalive = 1 } } }"), "`tcp_keepalive` is true or false");
  has(error_of_pool("{ backends = { { '127.0.0.1:1', weight = 101 } }, options = { dist = 'ring' } }"), "`weight` of a backend is a whole number from 1 to 100");
  has(error_of_pool("{ backends = { { '127.0.0.1:1', weight = 2 } } }"), "has a weight, which goes with dist = \"ring\"");
  has(error_of_pool("{ backends = { { '127.0.0.1:1', host_header = 'a b' } } }"), "`host_header` of a backend");
  has(error_of_pool("{ backends = { { '127.0.0.1:1', label = 'a b' } } }"), "`label` of a backend is a word");
  has(error_of_pool("{ backends = { { '127.0.0.1:1', down = 1 } } }"), "`down` of a backend is true or false");
  has(error_of_pool("{ backends = { '127.0.0.1:1', '127.0.0.1:1' } }"), "pool `p`: backend `127.0.0.1:1` is in it twice");
  has(error_of_pool("{ backends = { '127.0.0.1:1' }, backend_options = { label = 'x' } }"), "`backend_options` have no `label`");
  has(error_of_pool("{ backends = { '127.0.0.1:1' }, backend_options = 1 }"), "`backend_options` are a table");
  has(error_of_pool("{ backends = { '127.0.0.1:1' }, options = { dist = 'x' } }"), "`dist` of a pool is \"jump\" or \"ring\"");
  has(error_of_pool("{ backends = { '127.0.0.1:1' }, options = { hash = 'md5' } }"), "`hash` of a pool is \"xxh3\"");
  has(error_of_pool("{ backends = { '127.0.0.1:1' }, options = { filter = 'tags', filter_conf = '{' } }"), "`filter_conf` is two characters");
  has(error_of_pool("{ backends = { '127.0.0.1:1' }, options = { filter = 'stop' } }"), "`filter` and `filter_conf` go together");
  has(error_of_pool("{ backends = { '127.0.0.1:1' }, options = { filter = 'x' } }"), "`filter` of a pool is \"stop\" or \"tags\"");
  has(error_of_pool("{ backends = { '127.0.0.1:1' }, options = { beprefix = '' } }"), "`beprefix` of a pool is a word");
  has(error_of_pool("{ backends = { '127.0.0.1:1' }, options = { sed = 1 } }"), "a pool has no option `sed`; did you mean `seed`?");
  has(error_of_pool("{ backends = { '127.0.0.1:1' }, seed = 1, options = { seed = 2 } }"), "its `seed` is said already");
  has(error_of_pool("{ backends = { '127.0.0.1:1' }, stores = { 'a' } }"), "pool `p` has stores or backends, not both");
  has(error_of_pool("{ backend = { '127.0.0.1:1' } }"), "pool `p` has no `backend`; did you mean `backends`?");
  has(error_of("settings { backend_read_timout = 1 }"), "there is no setting `backend_read_timout`; did you mean `backend_read_timeout`?");
  has(error_of("settings { backend_read_timeout = 0 }"), "`backend_read_timeout` is 0, but goes from 0.001 to 86400");
  has(error_of("stores { a = { module = 'm', path = 'd' } } pools { p = { stores = { 'a' }, options = { dist = 'ring' } } } routes { default = 'p' }"),
      "a ring and `beprefix` are of pools of backends");
  has(error_of("routes { default = function() sluice.backend('x:1') end } sluice.funcgen = sluice.pool({ 1 })"), "a pool is made of stores");
}
