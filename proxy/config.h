// What a config file says, as plain frozen data, and who can read one.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/counted.h"
#include "proxy/cron.h"
#include "proxy/engine.h"
#include "proxy/route.h"
#include "proxy/route_record.h"
#include "proxy/settings.h"
#include "vm/base/result.h"

namespace sluice::proxy {

// One generation, read and checked; its routes are made per worker.
// Thread: control; make_routes() too (it runs the file in a fresh VM that a worker then takes over).
class Config {
 public:
  virtual ~Config() = default;
  virtual const Settings& settings() const = 0;
  virtual const std::vector<StoreSpec>& stores() const = 0;
  // False: no routes{}, so the module interface is served.
  virtual bool has_routes() const = 0;
  // The remote backends of its pools, each once. Life: the config's.
  virtual std::span<const std::shared_ptr<Backend>> backends() const { return {}; }
  // The tree of routes, for a person: lines.
  virtual std::string explain() const { return "the module interface of the store\n"; }
  // Its jobs, or null. Life: the config's; they change while they run, the config does not.
  virtual Crons* crons() const { return nullptr; }
  // What the config counts itself, and its limiters, as of now.
  virtual std::vector<Counted> counted() const { return {}; }
  // Errors: "FILE:LINE: sentence".
  virtual Result<std::unique_ptr<RouteTable>, std::string> make_routes(std::shared_ptr<const StoreSet> stores,
                                                                       std::uint16_t worker) const = 0;
};

// What the process counts, by name. Thread: any, once the first generation serves.
class ServerStats {
 public:
  virtual ~ServerStats() = default;
  virtual void each(const std::function<void(std::string_view name, std::uint64_t value)>& f) const = 0;
  // Of the newest generation, one per worker.
  virtual RouteRecords records() const { return {}; }
};

// lua/ implements it; main.cc hands it to the server.
class ConfigReader {
 public:
  virtual ~ConfigReader() = default;
  // Errors: "FILE:LINE: sentence", with the line itself and the nearest known name where that helps.
  virtual Result<std::shared_ptr<const Config>, std::string> read(const std::string& path) = 0;
  // For configs that ask. Life: outlives the reader's last VM that runs.
  virtual void set_stats(const ServerStats* stats) {}
};

}  // namespace sluice::proxy
