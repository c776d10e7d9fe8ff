#include "proxy/options.h"

#include <doctest/doctest.h>

#include <limits>
#include <sstream>
#include <string>
#include <vector>

using namespace sluice;
using namespace sluice::proxy;

namespace {

std::vector<std::string> words(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> out;
  for (std::string w; in >> w;) out.push_back(w);
  return out;
}

Options good(const std::string& line) {
  const auto options = read_options(words(line), "1.2.3");
  REQUIRE_MESSAGE(options.has_value(), options.error().error);
  return *options;
}

// The sentence behind "sluice: ".
std::string bad(const std::string& line) {
  const auto options = read_options(words(line), "1.2.3");
  REQUIRE_FALSE(options);
  CHECK(options.error().code == 2);
  CHECK(options.error().out.empty());
  CHECK(options.error().error.find('\n') == std::string::npos);
  REQUIRE(options.error().error.starts_with("sluice: "));
  return options.error().error.substr(8);
}

}  // namespace

TEST_CASE("a config, or a module and its store, is what is served") {
  CHECK(good("--config a.lua").config == "a.lua");
  CHECK(good("--config=a.lua").config == "a.lua");
  const Options m = good("--module q.aup --store data");
  CHECK(m.module == "q.aup");
  CHECK(m.store == "data");
  CHECK(m.config.empty());
  CHECK_FALSE(m.check);
  CHECK(bad("") == "nothing to serve: give --config FILE, or --module FILE and --store DIR; see `sluice --help`");
  CHECK(bad("--port 1").starts_with("nothing to serve"));
  CHECK(bad("--module q.aup") == "--module needs --store DIR, the folder of its store");
  CHECK(bad("--store data") == "--store needs --module FILE, the module it is of");
  CHECK(bad("--config a --module b --store c").starts_with("--config and --module together"));
  CHECK(bad("--config a --store c").starts_with("--store goes with --module"));
}

TEST_CASE("--check takes a file, or checks what is given beside it") {
  for (const char* line : {"--check a.lua", "--config a.lua --check", "--check --config a.lua", "--check=a.lua"}) {
    CAPTURE(line);
    const Options o = good(line);
    CHECK(o.check);
    CHECK(o.config == "a.lua");
  }
  const Options m = good("--check --module q.aup");
  CHECK(m.check);
  CHECK(m.module == "q.aup");
  CHECK(bad("--check") == "nothing to serve: give --config FILE, or --module FILE and --store DIR; see `sluice --help`");
  CHECK(bad("--check a.lua --config b.lua") == "--check names a file and --config another; give one");
}

TEST_CASE("flags fill the overrides, and only those that were given win over the file") {
  const Options o = good("--config a --host 0.0.0.0 --port 0 --threads 3 --budget 1GiB --connections 7 --timeout-ms 250");
  Settings s;
  o.overrides.apply(s);
  CHECK(s.host == "0.0.0.0");
  CHECK(s.port == 0);
  CHECK(s.workers == 3);
  CHECK(s.payload_budget_bytes == 1ull << 30);
  CHECK(s.connections == 7);
  CHECK(s.request_timeout_ms == 250);
  Settings kept;
  kept.port = 1234;
  good("--config a").overrides.apply(kept);
  CHECK(kept.port == 1234);
  CHECK(kept.host == "127.0.0.1");
}

TEST_CASE("values that cannot be are named with what is allowed") {
  CHECK(bad("--config a --port 70000") == "--port takes a whole number from 0 to 65535, not `70000`");
  CHECK(bad("--config a --port x") == "--port takes a whole number from 0 to 65535, not `x`");
  CHECK(bad("--config a --port -1") == "--port takes a whole number from 0 to 65535, not `-1`");
  CHECK(bad("--config a --threads 1.5") == "--threads takes a whole number from 0 to 256, not `1.5`");
  CHECK(bad("--config a --connections 0") == "--connections takes a whole number from 1 to 10000000, not `0`");
  CHECK(bad("--config a --timeout-ms 0") == "--timeout-ms takes a whole number from 1 to 86400000, not `0`");
  CHECK(bad("--config a --budget 64XB") == "--budget takes a size such as 64MiB, not `64XB`");
  CHECK(bad("--config a --budget 0") == "--budget takes a size such as 64MiB, not `0`");
}

TEST_CASE("unknown, repeated and empty options are named") {
  CHECK(bad("--config a --prot 1") == "unknown option `--prot`; did you mean `--port`?");
  CHECK(bad("--conifg=a") == "unknown option `--conifg`; did you mean `--config`?");
  CHECK(bad("--quite-something-else") == "unknown option `--quite-something-else`; `sluice --help` lists them");
  CHECK(bad("a.lua") == "`a.lua` is no option; a config is given by `--config a.lua`");
  CHECK(bad("--config a --config b") == "--config is given twice");
  CHECK(bad("--config") == "--config needs a value");
  CHECK(bad("--config a --port") == "--port needs a value");
  const auto empty = read_options({"--config", ""}, "1");
  REQUIRE_FALSE(empty);
  CHECK(empty.error().error == "sluice: --config needs a value");
}

TEST_CASE("help and version go to standard output and end with 0") {
  for (const char* line : {"--help", "-h", "--version", "--help --port 1"}) {
    CAPTURE(line);
    const auto options = read_options(words(line), "1.2.3");
    REQUIRE_FALSE(options);
    CHECK(options.error().code == 0);
    CHECK(options.error().error.empty());
  }
  CHECK(read_options({"--version"}, "1.2.3").error().out == "sluice 1.2.3\n");
  const std::string help = read_options({"--help"}, "1.2.3").error().out;
  for (const char* flag : {"--config", "--module", "--store", "--check", "--explain", "--host", "--port", "--threads", "--budget",
                           "--connections", "--timeout-ms", "--version", "--help"})
    CHECK(help.find(flag) != std::string::npos);
}

TEST_CASE("a certificate and its key by flag, both or neither; the file's word on clients stays") {
  const Options o = good("--module m --store d --tls-cert c.pem --tls-key k.pem");
  Settings s;
  o.overrides.apply(s);
  REQUIRE(s.tls);
  CHECK(s.tls->cert == TlsFile{"c.pem", "--tls-cert"});
  CHECK(s.tls->key == TlsFile{"k.pem", "--tls-key"});
  CHECK(s.tls->verify == TlsSettings::Verify::none);
  Settings kept;
  kept.tls.emplace().client_ca.path = "ca.pem";
  kept.tls->verify = TlsSettings::Verify::required;
  o.overrides.apply(kept);
  CHECK(kept.tls->client_ca.path == "ca.pem");
  CHECK(kept.tls->verify == TlsSettings::Verify::required);
  Settings plain;
  good("--config a").overrides.apply(plain);
  CHECK_FALSE(plain.tls);
  CHECK(bad("--config a --tls-cert c.pem") == "--tls-cert and --tls-key go together");
  CHECK(bad("--config a --tls-key k.pem") == "--tls-cert and --tls-key go together");
  CHECK(bad("--config a --tls-cret c.pem") == "unknown option `--tls-cret`; did you mean `--tls-cert`?");
}

TEST_CASE("--explain is a check that prints, of the file it names or of the config") {
  const auto by_flag = read_options(words("--explain a.lua"), "1");
  REQUIRE(by_flag);
  CHECK(by_flag->config == "a.lua");
  CHECK(by_flag->check);
  CHECK(by_flag->explain);
  const auto by_config = read_options(words("--config a.lua --explain"), "1");
  REQUIRE(by_config);
  CHECK(by_config->explain);
  const auto check = read_options(words("--check a.lua"), "1");
  REQUIRE(check);
  CHECK_FALSE(check->explain);
  const auto two = read_options(words("--config a.lua --explain b.lua"), "1");
  REQUIRE_FALSE(two);
  CHECK(two.error().error == "sluice: --explain names a file and --config another; give one");
}

TEST_CASE("sizes are bytes with a unit or without") {
  CHECK(find_size("0") == 0);
  CHECK(find_size("1048576") == 1048576);
  CHECK(find_size("64KiB") == 65536);
  CHECK(find_size("64MiB") == 64ull << 20);
  CHECK(find_size("2GiB") == 2ull << 30);
  CHECK(find_size("64kB") == 64'000);
  CHECK(find_size("64MB") == 64'000'000);
  CHECK(find_size("3GB") == 3'000'000'000);
  CHECK(find_size("18446744073709551615") == std::numeric_limits<std::uint64_t>::max());
  for (const char* text : {"", "MiB", "-1", "1.5MiB", "64 MiB", "64mib", "18446744073709551616", "17179869184GiB"}) {
    CAPTURE(text);
    CHECK_FALSE(find_size(text).has_value());
  }
}
