// How a new config comes to life: made ready whole, then switched to, or dropped with nothing changed.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "proxy/config.h"
#include "proxy/engine.h"
#include "proxy/options.h"
#include "proxy/settings.h"
#include "proxy/worker.h"
#include "vm/base/result.h"

namespace sluice::proxy {

class TlsTickets;

// A config that is ready: read, its stores planned, its routes made for every worker. Dropping it undoes everything.
struct Prepared {
  std::shared_ptr<const Config> config;
  std::shared_ptr<const Settings> settings;             // with the flags' word over the file's; keeps `config` too
  std::unique_ptr<StorePlan> plan;
  std::vector<std::unique_ptr<RouteTable>> routes;      // one per worker that was asked for
  std::vector<std::shared_ptr<const Tls>> tls;          // by listener; null: a plain one
  std::vector<std::string> warnings;                    // certificates out of date
};

// Thread: control.
class Reloader {
 public:
  // `reader` and `engine` outlive it. `path` is the file that is read each time.
  Reloader(ConfigReader& reader, EngineControl& engine, std::string path, Overrides overrides);

  // Phase one, in two steps, since the settings say how many workers there will be: reads the file; then plans its stores
  // and makes routes for the workers of these numbers. Changes nothing that serves.
  // Errors: why, as the reader or the engine says it.
  Result<Prepared, std::string> read_next();
  Result<void, std::string> prepare(Prepared& next, std::span<const std::uint16_t> workers);

  // Phase two; cannot fail. The generations are for Worker::start() or install(), one per worker that was asked for.
  std::vector<Generation> apply(Prepared prepared);

  // Reads, checks modules and makes one worker's routes, and leaves the disk as it is. What the config says of its routes.
  Result<std::string, std::string> check();

  std::uint64_t generation() const { return generation_; }     // of the last apply()
  const Settings& settings() const { return *settings_; }      // of the last apply()
  const std::shared_ptr<const Config>& config() const { return config_; }      // likewise
  StorePtr find_store(std::string_view name) const { return stores_ ? stores_->find(name) : nullptr; }
  const std::string& path() const { return path_; }

 private:
  Result<std::shared_ptr<const Config>, std::string> read();
  Result<std::vector<std::shared_ptr<const Tls>>, std::string> make_tls(const Settings& settings, std::vector<std::string>& warnings) const;

  ConfigReader& reader_;
  EngineControl& engine_;
  const std::string path_;
  const Overrides overrides_;
  std::shared_ptr<const Config> config_;
  std::shared_ptr<const StoreSet> stores_;
  std::shared_ptr<const Settings> settings_;
  const std::shared_ptr<TlsTickets> tickets_;          // of all listeners and generations
  std::uint64_t generation_ = 0;
};

}  // namespace sluice::proxy
