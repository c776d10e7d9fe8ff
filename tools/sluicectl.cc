// sluicectl: asks a running server through its control socket, and shows what it says.
//
// Exit codes: 0 it is done; 1 the server refused, failed or is not there; 2 wrong usage.
#include <CLI/CLI.hpp>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lua/config.h"
#include "proxy/control_socket.h"
#include "tools/control_client.h"
#include "tools/sluicectl.h"
#include "vm/base/json.h"

namespace {
using namespace sluice;
using namespace sluice::tools;

constexpr int kDone = 0, kFailed = 1, kUsage = 2;

struct Where {
  std::string socket, config;
  int timeout_ms = -1;
};

int failed(const std::string& why) {
  std::cerr << "sluicectl: " << why << '\n';
  return kFailed;
}

// The config is read as the server reads it, since it may say where its socket is.
Result<std::unique_ptr<ControlClient>, std::string> connect(const Where& where) {
  if (!where.socket.empty()) return ControlClient::connect(where.socket);
  if (where.config.empty()) {
    const char* const named = std::getenv("SLUICE_SOCKET");
    return ControlClient::connect(named != nullptr && *named != '\0' ? named : "sluice.sock");
  }
  const auto config = lua::make_config_reader(nullptr)->read(where.config);
  const std::optional<std::string> said = config ? (*config)->settings().control : std::nullopt;
  const std::string path = proxy::control_path(said, where.config);
  if (path.empty()) return where.config + ": its settings say that there is no control socket";
  auto client = ControlClient::connect(path);
  // A config that was broken since the server read it hides where the socket is, not that there is one.
  if (!client && !config) return client.error() + "; the config cannot say where else: " + config.error() + "; --socket says it";
  return client;
}

// One command and its answer. Errors: a sentence for standard error.
Result<std::string, std::string> ask(ControlClient& client, const std::string& command, int timeout_ms) {
  using Answer = Result<std::string, std::string>;
  std::string line;
  if (!client.send(command)) return Answer::failure("the server has ended");
  switch (client.hear(line, timeout_ms)) {
    case ControlClient::Heard::end: return Answer::failure("the server ended without an answer");
    case ControlClient::Heard::late: return Answer::failure("no answer within " + std::to_string(timeout_ms / 1000) + " s; what was asked goes on");
    case ControlClient::Heard::line: break;
  }
  const auto ok = json_find(line, "/ok");
  if (ok && *ok == "true") return line;
  return Answer::failure(json_text(line, "/error").value_or("an answer that is none: " + line));
}

int reload(ControlClient& client, const Where& where) {
  const auto answer = ask(client, R"({"do":"reload"})", where.timeout_ms);
  if (!answer) return failed("reload failed: " + answer.error());
  json_each(json_find(*answer, "/notes").value_or("[]"),
            [](std::string_view, std::string_view raw) { std::cerr << "note: " << json_unquote(raw) << '\n'; });
  std::cout << "generation " << json_find(*answer, "/generation").value_or("?") << std::endl;
  return kDone;
}

int stats(ControlClient& client, const Where& where, std::vector<std::string> names, bool workers, bool as_json) {
  for (const std::string& n : names) workers = workers || n == "workers" || n.starts_with("workers.");
  const auto answer = ask(client, workers ? R"({"do":"stats","workers":true})" : R"({"do":"stats"})", where.timeout_ms);
  if (!answer) return failed(answer.error());
  if (as_json && names.empty()) {
    std::cout << *answer << std::endl;
    return kDone;
  }
  std::vector<std::string> missing;
  std::cout << show_stats(*answer, names, missing) << std::flush;
  if (missing.empty()) return kDone;
  return failed("there is no counter `" + missing.front() + "`; `sluicectl stats --workers` shows all");
}

int watch(ControlClient& client, const Where& where, const std::vector<std::string>& streams, bool as_json) {
  std::string command = R"({"do":"watch","streams":[)";
  for (const std::string& s : streams) {
    if (command.back() != '[') command += ",";
    append_json_string(command, s);
  }
  const auto answer = ask(client, command + "]}", where.timeout_ms);
  if (!answer) return failed(answer.error());
  std::string line;
  while (client.hear(line, -1) == ControlClient::Heard::line) {
    std::cout << (as_json ? line : show_line(line)) << std::endl;
    if (!std::cout) return kFailed;
  }
  return failed("the server has ended");
}

int generations(ControlClient& client, const Where& where, bool as_json) {
  const auto answer = ask(client, R"({"do":"generations"})", where.timeout_ms);
  if (!answer) return failed(answer.error());
  std::cout << (as_json ? *answer + "\n" : show_generations(*answer)) << std::flush;
  return kDone;
}

struct ProfileAsked {
  bool time = false;
  double seconds = 5;
  std::uint32_t every = 0;
  std::size_t rows = 30;
};

int luaprof(ControlClient& client, const Where& where, const ProfileAsked& asked, bool as_json) {
  const std::string command = std::string(R"({"do":"luaprof","kind":")") + (asked.time ? "time" : "memory") + R"(","seconds":)" + std::to_string(asked.seconds) +
                              R"(,"every":)" + std::to_string(asked.every) + "}";
  const auto answer = ask(client, command, where.timeout_ms);
  if (!answer) return failed(answer.error());
  std::cout << (as_json ? *answer + "\n" : show_profile(*answer, asked.rows)) << std::flush;
  return kDone;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Asks a running sluice through its control socket."};
  app.require_subcommand(1);
  Where where;
  double timeout_s = 0;
  CLI::Option* socket = app.add_option("--socket", where.socket, "the socket's path");
  CLI::Option* config = app.add_option("--config", where.config, "the config that the server serves: its socket is asked");
  config->excludes(socket);
  app.add_option("--timeout", timeout_s, "seconds to wait for an answer (0: as long as it takes)")->check(CLI::Range(0.0, 86'400.0));
  app.footer("Without --socket and --config: $SLUICE_SOCKET, else ./sluice.sock.");

  bool as_json = false, workers = false;
  std::vector<std::string> names, streams;
  CLI::App* reload_command = app.add_subcommand("reload", "read the config again; wait, and say which generation serves or why not");
  CLI::App* stats_command = app.add_subcommand("stats", "print counters");
  stats_command->add_option("NAME", names, "only these: a counter, or a section such as stores or user.orders");
  stats_command->add_flag("--workers", workers, "those of each worker too");
  stats_command->add_flag("--json", as_json, "as one JSON object");
  CLI::App* watch_command = app.add_subcommand("watch", "follow what happens, until interrupted");
  watch_command->add_option("STREAM", streams, "requests (log_req), events (of the server) or user (sluice.log)")
      ->required()
      ->check(CLI::IsMember({"requests", "events", "user"}));
  watch_command->add_flag("--json", as_json, "lines of JSON as they come");
  CLI::App* generations_command = app.add_subcommand("generations", "print the generations of config that are alive, and what they hold");
  generations_command->add_flag("--json", as_json, "as one JSON object");

  ProfileAsked profile;
  CLI::App* luaprof_command = app.add_subcommand("luaprof", "for some seconds, see which functions of routes allocate, or use the processor");
  luaprof_command->add_flag("--time", profile.time, "the processor's time, not memory");
  luaprof_command->add_option("--seconds", profile.seconds, "how long")->capture_default_str()->check(CLI::Range(0.01, 600.0));
  luaprof_command->add_option("--every", profile.every, "bytes or microseconds between samples (0: 4096 or 1000)")->check(CLI::Range(0, 1'048'576));
  luaprof_command->add_option("--rows", profile.rows, "how many functions are shown")->capture_default_str()->check(CLI::Range(1, 1000));
  luaprof_command->add_flag("--json", as_json, "as one JSON object, with those of each worker");

  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& e) {
    app.exit(e);
    return kDone;
  } catch (const CLI::ParseError& e) {
    std::cerr << "sluicectl: " << e.what() << "; `sluicectl --help` says more\n";
    return kUsage;
  }
  if (timeout_s > 0) where.timeout_ms = static_cast<int>(timeout_s * 1000);
  const auto client = connect(where);
  if (!client) return failed(client.error());
  if (reload_command->parsed()) return reload(**client, where);
  if (stats_command->parsed()) return stats(**client, where, names, workers, as_json);
  if (watch_command->parsed()) return watch(**client, where, streams, as_json);
  if (luaprof_command->parsed()) return luaprof(**client, where, profile, as_json);
  if (generations_command->parsed()) return generations(**client, where, as_json);
  return kUsage;
}
