#include "lua/config.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <utility>

#include "lua/config_data.h"
#include "lua/route_table.h"
#include "lua/watchdog.h"

namespace sluice::lua {
namespace {

constexpr std::size_t kFileBytes = 16u << 20;
class LuaConfig final : public proxy::Config {
 public:
  LuaConfig(std::shared_ptr<const ConfigData> data, std::shared_ptr<Watchdog> watchdog, std::uint32_t load_time_ms,
            proxy::Log* log)
      : data_(std::move(data)), watchdog_(std::move(watchdog)), load_time_ms_(load_time_ms), log_(log) {}
  const proxy::Settings& settings() const override { return data_->settings; }
  const std::vector<proxy::StoreSpec>& stores() const override { return data_->stores; }
  bool has_routes() const override { return data_->has_routes; }
  Result<std::unique_ptr<proxy::RouteTable>, std::string> make_routes(std::shared_ptr<const proxy::StoreSet> stores,
                                                                      std::uint16_t worker) const override {
    return make_route_table(data_, std::move(stores), worker, watchdog_, load_time_ms_, log_);
  }

 private:
  const std::shared_ptr<const ConfigData> data_;
  const std::shared_ptr<Watchdog> watchdog_;
  const std::uint32_t load_time_ms_;
  proxy::Log* log_;
};

// Errors: why not.
std::optional<std::string> read_file(const std::string& path, std::string& text) {
  std::FILE* f = std::fopen(path.c_str(), "rb");
  if (f == nullptr) return path + ": " + std::strerror(errno);
  char block[65536];
  std::size_t n = 0;
  while (text.size() <= kFileBytes && (n = std::fread(block, 1, sizeof block, f)) > 0) text.append(block, n);
  const int why = std::ferror(f) != 0 ? errno : 0;
  std::fclose(f);
  if (why != 0) return path + ": " + std::strerror(why);
  if (text.size() > kFileBytes) return path + ": a config file has at most 16 MiB";
  return std::nullopt;
}

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
    if (std::optional<std::string> why = read_file(path, data->source.text)) return *why;

    Draft draft;
    draft.folder = slash == path.npos ? "" : path.substr(0, slash + 1);
    auto vm = Vm::make(limits_.memory_bytes, false, watchdog_);
    if (!vm) return path + ": " + vm.error();
    (*vm)->set_time_limit(limits_.time_ms);
    lua_State* L = (*vm)->main();
    open_sandbox(L, data->modules, &data->modules);
    open_common(L, data->source, log_, nullptr);
    open_config_stage(L, draft);
    if (auto ran = run_file(**vm, *data); !ran) return ran.error();
    if (auto asked = call_library(**vm, *data, "has_routes", 0, 1); !asked) return asked.error();
    data->has_routes = lua_toboolean(L, -1) != 0;
    lua_pop(L, 1);
    if (auto asked = call_library(**vm, *data, "pools", 0, 1); !asked) return asked.error();
    std::string why;
    if (!read_value(L, lua_gettop(L), data->value, why)) return path + ": " + why;
    lua_pop(L, 1);
    draft.closed = true;
    data->settings = std::move(draft.settings);
    data->stores = std::move(draft.stores);
    data->pools = std::move(draft.pools);
    return std::shared_ptr<const proxy::Config>(std::make_shared<LuaConfig>(std::move(data), watchdog_, limits_.time_ms, log_));
  }

 private:
  const std::shared_ptr<Watchdog> watchdog_;
  const LoadLimits limits_;
  proxy::Log* log_;
};

}  // namespace

std::unique_ptr<proxy::ConfigReader> make_config_reader(proxy::Log* log, const LoadLimits& limits) {
  return std::make_unique<LuaConfigReader>(log, limits);
}

}  // namespace sluice::lua
