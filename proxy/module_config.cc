#include "proxy/module_config.h"

#include <utility>
#include <vector>

#include "proxy/module_call.h"
#include "proxy/module_route.h"

namespace sluice::proxy {
namespace {

class ModuleConfig final : public Config {
 public:
  explicit ModuleConfig(StoreSpec spec) : stores_{std::move(spec)} {
    settings_.control = "";                // no socket but the one that a flag asks for
  }
  const Settings& settings() const override { return settings_; }
  const std::vector<StoreSpec>& stores() const override { return stores_; }
  bool has_routes() const override { return false; }
  Result<std::unique_ptr<RouteTable>, std::string> make_routes(std::shared_ptr<const StoreSet> stores,
                                                               std::uint16_t worker) const override {
    return make_module_table(std::move(stores));
  }

 private:
  Settings settings_;
  const std::vector<StoreSpec> stores_;
};

class ModuleReader final : public ConfigReader {
 public:
  explicit ModuleReader(std::string store_folder) : store_folder_(std::move(store_folder)) {}
  Result<std::shared_ptr<const Config>, std::string> read(const std::string& path) override {
    StoreSpec spec;
    spec.name = store_name(path);
    spec.module_path = path;
    spec.path = store_folder_;
    return std::shared_ptr<const Config>(std::make_shared<ModuleConfig>(std::move(spec)));
  }

 private:
  const std::string store_folder_;
};

}  // namespace

std::string store_name(std::string_view module_path) {
  std::string_view name = module_path.substr(module_path.find_last_of('/') + 1);
  name = name.substr(0, name.find_last_of('.'));
  // Those three are what the module interface itself is made of.
  if (!is_name(name) || name == "views" || name == "inputs" || name == "objects") return "store";
  return std::string(name);
}

std::unique_ptr<ConfigReader> make_module_reader(std::string store_folder) {
  return std::make_unique<ModuleReader>(std::move(store_folder));
}

}  // namespace sluice::proxy
