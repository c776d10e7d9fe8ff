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

Result<std::unique_ptr<RouteTable>, std::string> routes_of(const Config& config, std::shared_ptr<const StoreSet> stores,
                                                           std::uint16_t worker) {
  if (config.has_routes()) return config.make_routes(std::move(stores), worker);
  return make_module_table(std::move(stores));
}

}  // namespace

Reloader::Reloader(ConfigReader& reader, EngineControl& engine, std::string path, Overrides overrides)
    : reader_(reader), engine_(engine), path_(std::move(path)), overrides_(std::move(overrides)), tickets_(std::make_shared<TlsTickets>()) {}

Result<std::shared_ptr<const Config>, std::string> Reloader::read() {
  auto config = reader_.read(path_);
  if (!config) return config;
  if (const std::string& level = (*config)->settings().log_level; !find_log_level(level))
    return path_ + ": log_level is one of " + std::string(kLogLevels) + ", not `" + level + "`";
  return config;
}

Result<Prepared, std::string> Reloader::read_next() {
  auto config = read();
  if (!config) return std::move(config).error();
  Prepared next;
  next.config = *std::move(config);
  Settings settings = next.config->settings();
  overrides_.apply(settings);
  const auto held = std::make_shared<const Held>(Held{next.config, std::move(settings)});
  next.settings = std::shared_ptr<const Settings>(held, &held->settings);
  return next;
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

Result<void, std::string> Reloader::prepare(Prepared& next, std::span<const std::uint16_t> workers) {
  auto tls = make_tls(*next.settings, next.warnings);
  if (!tls) return std::move(tls).error();
  next.tls = *std::move(tls);
  auto plan = engine_.prepare(next.config->stores());
  if (!plan) return std::move(plan).error();
  next.plan = *std::move(plan);
  for (const std::uint16_t w : workers) {
    auto routes = routes_of(*next.config, next.plan->stores(), w);
    // What was made is destroyed before the plan that it refers to: members go in reverse order.
    if (!routes) return std::move(routes).error();
    next.routes.push_back(*std::move(routes));
  }
  return {};
}

std::vector<Generation> Reloader::apply(Prepared prepared) {
  stores_ = engine_.apply(std::move(prepared.plan));
  config_ = std::move(prepared.config);
  settings_ = std::move(prepared.settings);
  ++generation_;
  std::vector<Generation> generations;
  generations.reserve(prepared.routes.size());
  for (auto& routes : prepared.routes) generations.push_back({generation_, settings_, std::move(routes)});
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
