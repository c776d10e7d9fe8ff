#include "proxy/reload.h"

#include <ctime>
#include <utility>

#include "proxy/log.h"
#include "proxy/module_route.h"
#include "proxy/tls.h"

namespace sluice::proxy {
namespace {

// A generation's routes may refer to their config; its settings go with it to the worker and back.
struct Held {
  std::shared_ptr<const Config> config;
  Settings settings;
};

std::string differs(const char* setting, const std::string& running, const std::string& wanted) {
  return std::string(setting) + " " + running + " -> " + wanted + " takes effect at the next start";
}

// Listeners and threads are made once.
void keep_restart_only(Settings& next, const Settings& running, std::vector<std::string>& warnings) {
  if (next.host != running.host) {
    warnings.push_back(differs("host", running.host, next.host));
    next.host = running.host;
  }
  if (next.port != running.port) {
    warnings.push_back(differs("port", std::to_string(running.port), std::to_string(next.port)));
    next.port = running.port;
  }
  if (next.more_listeners != running.more_listeners || next.tag != running.tag) {
    warnings.push_back("what else is listened on takes effect at the next start");
    next.more_listeners = running.more_listeners;
    next.tag = running.tag;
  }
  if (next.workers != running.workers) {
    warnings.push_back(differs("workers", std::to_string(running.workers), std::to_string(next.workers)));
    next.workers = running.workers;
  }
}

Result<std::unique_ptr<RouteTable>, std::string> routes_of(const Config& config, std::shared_ptr<const StoreSet> stores,
                                                           std::uint16_t worker) {
  if (config.has_routes()) return config.make_routes(std::move(stores), worker);
  return make_module_table(std::move(stores));
}

}  // namespace

Reloader::Reloader(ConfigReader& reader, EngineControl& engine, std::string path, Overrides overrides)
    : reader_(reader), engine_(engine), path_(std::move(path)), overrides_(std::move(overrides)), tickets_(std::make_shared<TlsTickets>()) {}

Result<std::shared_ptr<const Config>, std::string> Reloader::read() {
  if (read_ahead_) return std::exchange(read_ahead_, nullptr);
  auto config = reader_.read(path_);
  if (!config) return config;
  if (const std::string& level = (*config)->settings().log_level; !find_log_level(level))
    return path_ + ": log_level is one of " + std::string(kLogLevels) + ", not `" + level + "`";
  return config;
}

Result<Settings, std::string> Reloader::read_settings() {
  auto config = read();
  if (!config) return std::move(config).error();
  read_ahead_ = *std::move(config);
  Settings settings = read_ahead_->settings();
  overrides_.apply(settings);
  return settings;
}

Result<std::vector<std::shared_ptr<const Tls>>, std::string> Reloader::make_tls(const Settings& settings,
                                                                              std::vector<std::string>& warnings) const {
  std::vector<const std::optional<TlsSettings>*> wanted{&settings.tls};
  for (const Settings::Listener& l : settings.more_listeners) wanted.push_back(&l.tls);
  std::vector<std::shared_ptr<const Tls>> all;
  for (const std::optional<TlsSettings>* const one : wanted) {
    all.emplace_back();
    if (!*one) continue;
    auto made = Tls::make(**one, tickets_, std::time(nullptr));
    if (!made) return std::move(made).error();
    all.back() = std::move(made->tls);
    for (std::string& w : made->warnings) warnings.push_back(std::move(w));
  }
  return all;
}

Result<Prepared, std::string> Reloader::prepare(std::uint16_t workers, const Settings* running) {
  auto config = read();
  if (!config) return std::move(config).error();
  Prepared ready;
  ready.config = *std::move(config);
  Settings settings = ready.config->settings();
  overrides_.apply(settings);
  if (running) keep_restart_only(settings, *running, ready.warnings);
  const auto held = std::make_shared<const Held>(Held{ready.config, std::move(settings)});
  ready.settings = std::shared_ptr<const Settings>(held, &held->settings);
  auto tls = make_tls(*ready.settings, ready.warnings);
  if (!tls) return std::move(tls).error();
  ready.tls = *std::move(tls);

  auto plan = engine_.prepare(ready.config->stores());
  if (!plan) return std::move(plan).error();
  ready.plan = *std::move(plan);
  for (std::uint16_t w = 0; w < workers; ++w) {
    auto routes = routes_of(*ready.config, ready.plan->stores(), w);
    // What was made is destroyed before the plan that it refers to: members go in reverse order.
    if (!routes) return std::move(routes).error();
    ready.routes.push_back(*std::move(routes));
  }
  return ready;
}

std::vector<Generation> Reloader::apply(Prepared prepared) {
  stores_ = engine_.apply(std::move(prepared.plan));
  config_ = std::move(prepared.config);
  settings_ = std::move(prepared.settings);
  ++generation_;
  std::vector<Generation> generations;
  generations.reserve(prepared.routes.size());
  for (auto& routes : prepared.routes) generations.push_back({generation_, settings_, std::move(routes), prepared.tls});
  return generations;
}

Result<std::string, std::string> Reloader::check() {
  using Checked = Result<std::string, std::string>;
  auto config = read();
  if (!config) return Checked::failure(std::move(config).error());
  std::vector<std::string> warnings;   // are said when it serves
  Settings settings = (*config)->settings();
  overrides_.apply(settings);
  if (auto tls = make_tls(settings, warnings); !tls) return Checked::failure(std::move(tls).error());
  auto stores = engine_.check((*config)->stores());
  if (!stores) return Checked::failure(std::move(stores).error());
  auto routes = routes_of(**config, *std::move(stores), 0);
  if (!routes) return Checked::failure(std::move(routes).error());
  return (*config)->explain();
}

}  // namespace sluice::proxy
