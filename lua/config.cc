#include "lua/config.h"

#include <algorithm>
#include <utility>

#include "lua/config_data.h"
#include "lua/crons.h"
#include "lua/route_table.h"
#include "lua/watchdog.h"
#include "vm/base/read_file.h"

namespace sluice::lua {
namespace {

constexpr std::size_t kFileBytes = 16u << 20;
class LuaConfig final : public proxy::Config {
 public:
  LuaConfig(std::shared_ptr<const ConfigData> data, std::unique_ptr<LuaCrons> crons, std::shared_ptr<Commons> commons, std::shared_ptr<Watchdog> watchdog,
            std::uint32_t load_time_ms, proxy::Log* log)
      : data_(std::move(data)), commons_(std::move(commons)), crons_(std::move(crons)), watchdog_(std::move(watchdog)), load_time_ms_(load_time_ms), log_(log) {}
  const proxy::Settings& settings() const override { return data_->settings; }
  const std::vector<proxy::StoreSpec>& stores() const override { return data_->stores; }
  bool has_routes() const override { return data_->has_routes; }
  std::string explain() const override { return data_->explanation; }
  std::span<const proxy::BackendPtr> backends() const override { return data_->backends; }
  proxy::Crons* crons() const override { return crons_.get(); }
  std::vector<proxy::Counted> counted() const override {
    std::vector<proxy::Counted> all;
    for (const auto& stat : data_->stats) all.push_back(stat->read());
    return all;
  }
  Result<std::unique_ptr<proxy::RouteTable>, std::string> make_routes(std::shared_ptr<const proxy::StoreSet> stores,
                                                                      std::uint16_t worker) const override {
    return make_route_table(data_, commons_, std::move(stores), worker, watchdog_, load_time_ms_, log_);
  }

 private:
  const std::shared_ptr<const ConfigData> data_;
  const std::shared_ptr<Commons> commons_;
  const std::unique_ptr<LuaCrons> crons_;        // its VM points into data_
  const std::shared_ptr<Watchdog> watchdog_;
  const std::uint32_t load_time_ms_;
  proxy::Log* log_;
};

class LuaConfigReader final : public proxy::ConfigReader {
 public:
  LuaConfigReader(proxy::Log* log, const LoadLimits& limits)
      : watchdog_(std::make_shared<Watchdog>()), limits_(limits), log_(log) {}

  Result<std::shared_ptr<const proxy::Config>, std::string> read(const std::string& path) override {
    auto data = std::make_shared<ConfigData>();
    data->path = path;
    const std::size_t slash = path.rfind('/');
    data->source.file = slash == path.npos ? path : path.substr(slash + 1);
    data->modules.folder = slash == path.npos ? "./" : path.substr(0, slash + 1);
    Result<std::string, std::string> text = read_file(path, kFileBytes);
    if (!text) return std::move(text).error();
    data->source.text = *std::move(text);

    auto crons = std::make_unique<LuaCrons>(log_);
    auto kept = std::make_unique<Draft>();
    Draft& draft = *kept;
    draft.commons = commons_.get();
    draft.home.server = commons_->server;
    draft.home.log = log_;
    draft.source = &data->source;
    draft.folder = slash == path.npos ? "" : path.substr(0, slash + 1);
    auto vm = Vm::make(limits_.memory_bytes, false, watchdog_);
    if (!vm) return path + ": " + vm.error();
    (*vm)->set_time_limit(limits_.time_ms);
    lua_State* L = (*vm)->main();
    open_sandbox(L, data->modules, &data->modules);
    open_common(L, data->source, draft.home);
    open_file_reader(L, data->modules, &data->modules);
    open_stats(L, draft.home, draft.stats);
    open_config_stage(L, draft);
    LuaCrons::open(L, *crons);
    if (auto ran = run_file(**vm, *data); !ran) return ran.error();
    if (auto asked = call_library(**vm, *data, "has_routes", 0, 1); !asked) return asked.error();
    data->has_routes = lua_toboolean(L, -1) != 0;
    lua_pop(L, 1);
    if (auto asked = call_library(**vm, *data, "explain", 0, 1); !asked) return asked.error();
    data->explanation = std::string(text_at(L, -1)) + crons->explain();
    lua_pop(L, 1);
    if (auto asked = call_library(**vm, *data, "pools", 0, 1); !asked) return asked.error();
    // Most likely a file that an editor has just emptied and not yet written: a reload must not take that for a wish.
    if (draft.stores.empty() && !data->has_routes) return path + ": declares nothing: neither stores{} nor routes{}";
    std::string why;
    if (!read_value(L, lua_gettop(L), data->value, why)) return path + ": " + why;
    lua_pop(L, 1);
    draft.closed = true;
    data->modules.frozen = true;
    draft.source = nullptr;
    data->settings = std::move(draft.settings);
    // Copies: crons see the draft's.
    data->stores = draft.stores;
    data->pools = draft.pools;
    for (const PoolSpec& p : data->pools)
      for (const proxy::BackendPtr& b : p.remote ? p.remote->backends() : std::vector<proxy::BackendPtr>())
        if (std::find(data->backends.begin(), data->backends.end(), b) == data->backends.end()) data->backends.push_back(b);
    draft.home.backends = &data->backends;
    data->shared = draft.shared;
    data->limiters = draft.limiters;
    data->stats = draft.stats;
    if (crons->empty()) crons.reset();
    else crons->adopt(std::move(*vm), std::move(kept), data->settings.lua_time_ms);
    return std::shared_ptr<const proxy::Config>(std::make_shared<LuaConfig>(std::move(data), std::move(crons), commons_, watchdog_, limits_.time_ms, log_));
  }

  void set_stats(const proxy::ServerStats* stats) override { commons_->server = stats; }

 private:
  const std::shared_ptr<Watchdog> watchdog_;
  const std::shared_ptr<Commons> commons_ = std::make_shared<Commons>();
  const LoadLimits limits_;
  proxy::Log* log_;
};

}  // namespace

std::unique_ptr<proxy::ConfigReader> make_config_reader(proxy::Log* log, const LoadLimits& limits) {
  return std::make_unique<LuaConfigReader>(log, limits);
}

}  // namespace sluice::lua
