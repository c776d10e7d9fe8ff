// Builds the parts and passes each what it needs.
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lua/config.h"
#include "proxy/engine.h"
#include "proxy/log.h"
#include "proxy/module_config.h"
#include "proxy/options.h"
#include "proxy/reload.h"
#include "proxy/server.h"
#include "proxy/signals.h"
#include "proxy/test_control.h"

using namespace sluice;
using namespace sluice::proxy;

namespace {

void say(std::FILE* to, const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), to);
  if (text.empty() || text.back() != '\n') std::fputc('\n', to);
  std::fflush(to);
}

// What is left to say when everything is gone, and the exit code.
struct Outcome {
  int code = 0;
  std::string out, error;
};

Outcome check(Reloader reloader, bool explain) {
  const auto checked = reloader.check();
  if (!checked) return {1, {}, checked.error()};
  return {0, explain ? *checked : reloader.path() + ": ok", {}};
}

Outcome serve(Server server) {
  const auto started = server.start();
  if (!started) return {1, {}, "sluice: " + one_line(started.error())};
  say(stdout, started->line);
  return {0, {}, server.serve()};
}

Outcome run(const Options& options, std::optional<Signals>& signals, Log& log) {
  const bool bare = options.config.empty();
  const std::string& path = bare ? options.module : options.config;
  std::unique_ptr<TestControl> test_control;
  if (!options.test_control.empty() && !options.check) {
    auto opened = TestControl::open(options.test_control);
    if (!opened) return {1, {}, "sluice: " + opened.error()};
    test_control = std::move(*opened);
  }
  const std::unique_ptr<EngineControl> engine =
      make_engine({.log = &log,
                   .test_clock_ms = test_control ? &test_control->clock_ms() : nullptr,
                   .allow_destroy = options.allow_destroy});
  // Only a check comes without a folder, and it opens none.
  const std::unique_ptr<ConfigReader> reader =
      bare ? make_module_reader(options.store.empty() ? "." : options.store) : lua::make_config_reader(&log);
  if (options.check) return check(Reloader(*reader, *engine, path, options.overrides), options.explain);
  return serve(Server({*signals, log, *engine, *reader, test_control.get()}, path, options.overrides, SLUICE_VERSION));
}

}  // namespace

int main(int argc, char** argv) {
  const auto options = read_options(std::vector<std::string>(argv + 1, argv + argc), SLUICE_VERSION);
  if (!options) {
    if (!options.error().out.empty()) say(stdout, options.error().out);
    if (!options.error().error.empty()) say(stderr, options.error().error);
    return options.error().code;
  }
  // Before the first thread. A check has nothing to finish: what wants to end it does.
  std::optional<Signals> signals;
  if (!options->check) signals.emplace();
  Outcome outcome;
  {
    // Gone, and written out, before our own last line.
    Streams streams;
    const std::unique_ptr<Log> log = make_log(2, LogLevel::info);
    log->set_streams(&streams);
    outcome = run(*options, signals, *log);
  }
  if (!outcome.out.empty()) say(stdout, outcome.out);
  if (!outcome.error.empty()) say(stderr, outcome.error);
  return outcome.code;
}
