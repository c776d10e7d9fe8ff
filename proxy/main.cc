// Builds the parts and passes each what it needs.
#include <cstdio>
#include <memory>
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

using namespace sluice;
using namespace sluice::proxy;

namespace {

void say(std::FILE* to, const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), to);
  if (text.empty() || text.back() != '\n') std::fputc('\n', to);
  std::fflush(to);
}

int cannot_start(const std::string& why) {
  say(stderr, "sluice: " + one_line(why));
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  const auto options = read_options(std::vector<std::string>(argv + 1, argv + argc), SLUICE_VERSION);
  if (!options) {
    if (!options.error().out.empty()) say(stdout, options.error().out);
    if (!options.error().error.empty()) say(stderr, options.error().error);
    return options.error().code;
  }
  Signals signals;
  std::unique_ptr<Log> log = make_log(2, LogLevel::info);
  const bool bare = options->config.empty();
  const std::string& path = bare ? options->module : options->config;
  const std::unique_ptr<EngineControl> engine = make_engine();
  const std::unique_ptr<ConfigReader> reader =
      bare ? make_module_reader(options->store) : lua::make_config_reader(log.get());

  if (options->check) {
    const auto checked = Reloader(*reader, *engine, path, options->overrides).check();
    if (!checked) {
      say(stderr, checked.error());
      return 1;
    }
    say(stdout, path + ": ok");
    return 0;
  }
  std::string failure, counters;
  {
    Server server({signals, *log, *engine, *reader}, path, options->overrides, SLUICE_VERSION);
    if (const auto started = server.start(); !started) {
      failure = started.error();
    } else {
      say(stdout, started->line);
      counters = server.serve();
    }
  }
  log.reset();         // what it was told to write comes before our last line
  if (!failure.empty()) return cannot_start(failure);
  say(stderr, counters);
  return 0;
}
