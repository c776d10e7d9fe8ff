#include "proxy/options.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <limits>
#include <numeric>
#include <utility>

namespace sluice::proxy {
namespace {

constexpr std::string_view kUsage =
    "usage: sluice --config FILE [--check | --explain]\n"
    "       sluice --module FILE --store DIR\n"
    "\n"
    "Serves durable module stores over HTTP, by the routes of a config or by themselves.\n"
    "\n"
    "  --config FILE       serve what FILE says; SIGHUP reads it again\n"
    "  --module FILE       serve one module (.aup or .pmod) without a config; SIGHUP reads it again\n"
    "  --store DIR         where that module's store is; made when it is not there\n"
    "  --check             say whether FILE is right and end; nothing is opened or changed\n"
    "  --explain           the same, and print the tree of its routes\n"
    "  --allow-destroy     modules may drop what their stores have (`drop` in the source says what)\n"
    "\n"
    "  --host ADDRESS      listen there (127.0.0.1)\n"
    "  --port N            listen there (8767); 0: any free port\n"
    "  --tls-cert FILE     speak TLS there with this certificate (PEM), and those behind it\n"
    "  --tls-key FILE      its private key\n"
    "  --threads N         workers; 0: as many as cores\n"
    "  --budget SIZE       payload bytes held by the whole process (64MiB)\n"
    "  --connections N     open at once (10000)\n"
    "  --timeout-ms N      from a whole request to its answer (30000)\n"
    "  --control PATH      the socket for sluicectl (beside the config, FILE.sock; with --module: none)\n"
    "  --test-control PATH for tests of modules only: time stands still, and a socket there moves it and runs timers\n"
    "\n"
    "  --version           say which version this is\n"
    "  --help              say this\n"
    "\n"
    "Flags win over the config. SIGTERM and SIGINT finish what was accepted and end; a second one ends at once.\n";

// As typed; an option that was not given has no value.
struct Typed {
  std::optional<std::string> config, module, store, check, explain, host, port, threads, budget, connections, timeout_ms,
      control, test_control, tls_cert, tls_key;
  bool allow_destroy = false;
};

constexpr std::array<std::string_view, 18> kFlags = {"--config", "--module",  "--store",  "--check", "--explain", "--allow-destroy",
                                                     "--host",   "--port",    "--tls-cert", "--tls-key", "--threads", "--budget",
                                                     "--connections", "--timeout-ms", "--control", "--test-control", "--version", "--help"};

// Levenshtein; for the few short words of a command line.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t corner = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = corner + (a[i] == b[j] ? 0 : 1);
      corner = row[j + 1];
      row[j + 1] = std::min({row[j + 1] + 1, row[j] + 1, replaced});
    }
  }
  return row[b.size()];
}

Stop misused(std::string sentence) { return {2, {}, "sluice: " + std::move(sentence)}; }

Stop unknown(const std::string& argument) {
  if (argument.empty() || argument[0] != '-')
    return misused("`" + argument + "` is no option; a config is given by `--config " + argument + "`");
  const std::string name = argument.substr(0, argument.find('='));
  const auto nearest = std::min_element(kFlags.begin(), kFlags.end(), [&](std::string_view a, std::string_view b) {
    return distance(name, a) < distance(name, b);
  });
  std::string sentence = "unknown option `" + name + "`";
  if (distance(name, *nearest) <= 3) sentence += "; did you mean `" + std::string(*nearest) + "`?";
  else sentence += "; `sluice --help` lists them";
  return misused(std::move(sentence));
}

// Nothing: not a whole number from `low` to `high`.
template <class T>
std::optional<T> find_number(const std::string& text, T low, T high) {
  T n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc() || end != text.data() + text.size() || n < low || n > high) return std::nullopt;
  return n;
}

template <class T>
Result<void, Stop> take_number(const char* flag, const std::optional<std::string>& text, T low, T high,
                               std::optional<T>& into) {
  if (!text) return {};
  into = find_number<T>(*text, low, high);
  if (into) return {};
  return misused(std::string(flag) + " takes a whole number from " + std::to_string(low) + " to " +
                 std::to_string(high) + ", not `" + *text + "`");
}

// CLI11 throws; here it ends.
Result<Typed, Stop> parse(const std::vector<std::string>& arguments, std::string_view version) {
  Typed typed;
  bool version_asked = false, help_asked = false;
  std::string explain_file;
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  std::string check_file;
  const auto option = [&](const char* flag, std::optional<std::string>& into) {
    app.add_option(flag, into)->type_size(1)->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::Throw);
  };
  option("--config", typed.config);
  option("--module", typed.module);
  option("--store", typed.store);
  option("--host", typed.host);
  option("--port", typed.port);
  option("--tls-cert", typed.tls_cert);
  option("--tls-key", typed.tls_key);
  option("--threads", typed.threads);
  option("--budget", typed.budget);
  option("--connections", typed.connections);
  option("--timeout-ms", typed.timeout_ms);
  option("--control", typed.control);
  option("--test-control", typed.test_control);
  CLI::Option* check = app.add_option("--check", check_file)->expected(0, 1);
  app.add_flag("--allow-destroy", typed.allow_destroy);
  CLI::Option* explain = app.add_option("--explain", explain_file)->expected(0, 1);
  app.add_flag("--version", version_asked);
  app.add_flag("--help,-h", help_asked);
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ArgumentMismatch&) {
    for (const CLI::Option* o : app.get_options()) {
      if (o == check || o == explain || o->count() == 0) continue;
      if (o->count() > 1) return misused(o->get_name() + " is given twice");
    }
    return misused(arguments.back() + " needs a value");
  } catch (const CLI::ParseError& e) {
    return misused(e.what());
  }
  if (help_asked) return Stop{0, std::string(kUsage), {}};
  if (version_asked) return Stop{0, "sluice " + std::string(version) + "\n", {}};
  if (const std::vector<std::string> extras = app.remaining(); !extras.empty()) return unknown(extras[0]);
  if (check->count() != 0) typed.check = check_file;
  if (explain->count() != 0) typed.explain = explain_file;
  return typed;
}

}  // namespace

std::optional<std::uint64_t> find_size(std::string_view text) {
  struct Unit {
    std::string_view name;
    std::uint64_t bytes;
  };
  constexpr std::array<Unit, 9> units = {{{"", 1},
                                          {"B", 1},
                                          {"KiB", 1ull << 10},
                                          {"MiB", 1ull << 20},
                                          {"GiB", 1ull << 30},
                                          {"kB", 1'000},
                                          {"KB", 1'000},
                                          {"MB", 1'000'000},
                                          {"GB", 1'000'000'000}}};
  std::uint64_t n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc()) return std::nullopt;
  const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  for (const Unit& u : units) {
    if (u.name != unit) continue;
    if (n > std::numeric_limits<std::uint64_t>::max() / u.bytes) return std::nullopt;
    return n * u.bytes;
  }
  return std::nullopt;
}

void Overrides::apply(Settings& settings) const {
  if (host || port) settings.listen_place.clear();
  if (host) settings.host = *host;
  if (port) settings.port = *port;
  if (tls_cert) {
    // What the file says of clients' certificates stays.
    if (!settings.tls) settings.tls.emplace();
    settings.tls->cert = {*tls_cert, "--tls-cert"};
    settings.tls->key = {tls_key.value_or(""), "--tls-key"};
  }
  if (threads) settings.workers = *threads;
  if (budget_bytes) settings.payload_budget_bytes = *budget_bytes;
  if (connections) settings.connections = *connections;
  if (timeout_ms) settings.request_timeout_ms = *timeout_ms;
  if (control) settings.control = *control;
}

Result<Options, Stop> read_options(const std::vector<std::string>& arguments, std::string_view version) {
  Result<Typed, Stop> parsed = parse(arguments, version);
  if (!parsed) return std::move(parsed).error();
  Typed& typed = *parsed;

  Options options;
  options.check = typed.check || typed.explain;
  options.explain = typed.explain.has_value();
  options.allow_destroy = typed.allow_destroy;
  // `--check FILE` is short for `--config FILE --check`.
  for (const auto& [flag, file] : {std::pair{"--check", &typed.check}, std::pair{"--explain", &typed.explain}}) {
    if (!*file || (*file)->empty()) continue;
    if (typed.config) return misused(std::string(flag) + " names a file and --config another; give one");
    typed.config = *file;
  }
  if (typed.config && typed.module) return misused("--config and --module together; a config names its modules in stores{}");
  if (typed.config && typed.store) return misused("--store goes with --module; a config names its stores in stores{}");
  if (typed.module && !typed.store && !options.check) return misused("--module needs --store DIR, the folder of its store");
  if (typed.store && !typed.module) return misused("--store needs --module FILE, the module it is of");
  if (!typed.config && !typed.module)
    return misused("nothing to serve: give --config FILE, or --module FILE and --store DIR; see `sluice --help`");
  for (const auto& [flag, value] : {std::pair{"--config", &typed.config}, std::pair{"--module", &typed.module},
                                    std::pair{"--store", &typed.store}, std::pair{"--host", &typed.host},
                                    std::pair{"--control", &typed.control}, std::pair{"--test-control", &typed.test_control},
                                    std::pair{"--tls-cert", &typed.tls_cert}, std::pair{"--tls-key", &typed.tls_key}})
    if (*value && (*value)->empty()) return misused(std::string(flag) + " needs a value");
  options.config = typed.config.value_or("");
  options.module = typed.module.value_or("");
  options.store = typed.store.value_or("");
  options.test_control = typed.test_control.value_or("");

  Overrides& over = options.overrides;
  over.host = typed.host;
  if (typed.tls_cert.has_value() != typed.tls_key.has_value()) return misused("--tls-cert and --tls-key go together");
  over.tls_cert = typed.tls_cert;
  over.tls_key = typed.tls_key;
  if (typed.control) {
    // Of the folder that it was started in, whatever the config's is.
    std::error_code ignored;
    over.control = std::filesystem::absolute(*typed.control, ignored).string();
  }
  if (auto taken = take_number<std::uint16_t>("--port", typed.port, 0, 65535, over.port); !taken) return taken.error();
  if (auto taken = take_number<std::uint32_t>("--threads", typed.threads, 0, 256, over.threads); !taken)
    return taken.error();
  if (auto taken = take_number<std::uint32_t>("--connections", typed.connections, 1, 10'000'000, over.connections); !taken)
    return taken.error();
  if (auto taken = take_number<std::uint32_t>("--timeout-ms", typed.timeout_ms, 1, 86'400'000, over.timeout_ms); !taken)
    return taken.error();
  if (typed.budget) {
    over.budget_bytes = find_size(*typed.budget);
    if (!over.budget_bytes || *over.budget_bytes == 0)
      return misused("--budget takes a size such as 64MiB, not `" + *typed.budget + "`");
  }
  return options;
}

}  // namespace sluice::proxy
