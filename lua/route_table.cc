#include "lua/route_table.h"

#include <utility>

#include "lua/box.h"
#include "lua/context.h"
#include "vm/base/check.h"

namespace sluice::lua {
namespace {

// Between turns: so many steps of the collector, and one generator looked at for slots nobody needs.
constexpr int kStepsPerIdle = 2;

class LuaRouteTable final : public proxy::RouteTable {
 public:
  LuaRouteTable(std::shared_ptr<const ConfigData> config, proxy::Log* log) : config_(std::move(config)), runtime_(log) {}

  Runtime& runtime() { return runtime_; }

  void attach(proxy::Services& services) override {
    runtime_.services = runtime_.home.services = &services;
    for (const SharedSpec& s : config_->shared) s.table->set_limit(s.bytes);
    runtime_.vm->adopt_thread();
  }

  proxy::Route* find(proxy::Method method, std::string_view path, proxy::Match& match) override {
    const Hook* hook = &runtime_.hooks[static_cast<std::size_t>(method)];
    if (empty(*hook) && method == proxy::Method::head) hook = &runtime_.hooks[static_cast<std::size_t>(proxy::Method::get)];
    if (empty(*hook)) hook = &runtime_.any;
    if (hook->router) return hook->router->find(method, path, match);
    match.rest = path;
    match.captured.clear();
    match.allow = 0;
    if (hook->route) return hook->route;
    if (hook->target) {
      proxy::Route* route = hook->target->methods.find(method);
      if (!route) match.allow = hook->target->methods.allow();
      return route;
    }
    match.allow = allow_;
    return nullptr;
  }

  void idle() override {
    for (int i = 0; i < kStepsPerIdle; ++i) runtime_.vm->collect_step();
    if (runtime_.fgens.empty() || !runtime_.services) return;
    if (next_trim_ >= runtime_.fgens.size()) next_trim_ = 0;
    runtime_.fgens[next_trim_++]->trim(runtime_.services->monotonic_us());
  }

  std::uint64_t memory_bytes() const override { return runtime_.vm->used_bytes(); }
  std::uint32_t slots() const override { return runtime_.slots; }
  std::uint32_t slots_in_use() const override { return runtime_.slots_in_use; }

  // Of hooks by method alone: what a 405 lists.
  void note_hooks() {
    if (!empty(runtime_.any)) return;
    for (std::size_t m = 0; m < proxy::kMethods; ++m)
      if (!empty(runtime_.hooks[m])) allow_ |= 1u << m;
    if (allow_ & proxy::method_bit(proxy::Method::get)) allow_ |= proxy::method_bit(proxy::Method::head);
    if (allow_ != 0) allow_ |= proxy::method_bit(proxy::Method::options);
  }

 private:
  static bool empty(const Hook& h) { return h.route == nullptr && h.router == nullptr && h.target == nullptr; }

  const std::shared_ptr<const ConfigData> config_;   // its text and modules: the VM points into it
  Runtime runtime_;
  std::uint32_t allow_ = 0;
  std::size_t next_trim_ = 0;
};

class TargetResolver final : public Resolver {
 public:
  TargetResolver(Runtime& runtime, const proxy::StoreSet& stores, const std::vector<PoolSpec>& pools)
      : runtime_(runtime), stores_(stores), pools_(pools) {}

  void push_store(lua_State* L, const std::string& name) override {
    proxy::StorePtr store = stores_.find(name);
    if (!store) {
      luaL_error(L, "store `%s` is not open", name.c_str());
      return;
    }
    auto target = std::make_unique<Target>();
    target->kind = Target::Kind::store;
    target->name = name;
    target->store = std::move(store);
    push_target(L, runtime_, std::move(target));
  }

  void push_pool(lua_State* L, std::uint32_t index) override {
    const PoolSpec& spec = pools_[index];
    auto target = std::make_unique<Target>();
    target->kind = Target::Kind::pool;
    target->name = spec.name;
    std::vector<proxy::StorePtr> stores;
    for (const std::string& name : spec.stores) {
      proxy::StorePtr store = stores_.find(name);
      if (store) stores.push_back(std::move(store));
    }
    Result<proxy::Pool, std::string> pool = proxy::Pool::make(spec.name, std::move(stores), spec.seed);
    if (pool && pool->stores().size() == spec.stores.size()) target->pool = std::make_shared<const proxy::Pool>(*std::move(pool));
    if (target->pool) push_target(L, runtime_, std::move(target));
    else luaL_error(L, "a store of pool `%s` is not open", spec.name.c_str());
  }

 private:
  Runtime& runtime_;
  const proxy::StoreSet& stores_;
  const std::vector<PoolSpec>& pools_;
};

struct Pushing {
  const Value& value;
  Resolver& resolver;
};

// Pushes the value in a protected call: leaves it in the registry's place `kPushed`.
constexpr const char* kPushed = "sluice.pushed";
int push_in_lua(lua_State* L) {
  const auto& p = *static_cast<const Pushing*>(lua_touserdata(L, 1));
  push_value(L, p.value, p.resolver);
  lua_setfield(L, LUA_REGISTRYINDEX, kPushed);
  return 0;
}

}  // namespace

Result<std::unique_ptr<proxy::RouteTable>, std::string> make_route_table(std::shared_ptr<const ConfigData> config,
                                                                         std::shared_ptr<const proxy::StoreSet> stores,
                                                                         std::uint16_t worker,
                                                                         std::shared_ptr<Watchdog> watchdog,
                                                                         std::uint32_t load_time_ms,
                                                                         proxy::Log* log) {
  const ConfigData& data = *config;
  auto table = std::make_unique<LuaRouteTable>(config, log);
  Runtime& runtime = table->runtime();
  Result<std::unique_ptr<Vm>, std::string> vm = Vm::make(data.settings.lua_memory_bytes, data.settings.lua_jit, std::move(watchdog));
  if (!vm) return data.path + ": " + vm.error();
  runtime.vm = std::move(*vm);
  runtime.vm->set_time_limit(load_time_ms);
  lua_State* L = runtime.vm->main();
  open_sandbox(L, data.modules, nullptr);
  open_common(L, data.source, log, runtime.home);
  for (const SharedSpec& s : data.shared) add_shared(L, s);
  runtime.callbacks = lua_newthread(L);
  luaL_ref(L, LUA_REGISTRYINDEX);   // for as long as the VM
  open_worker_stage(L, runtime, stores);

  if (auto ran = run_file(*runtime.vm, data); !ran) return ran.error();
  TargetResolver resolver(runtime, *stores, data.pools);
  Pushing pushing{data.value, resolver};
  if (!runtime.vm->protect(push_in_lua, &pushing)) {
    const std::string why(text_at(L, -1));
    return data.path + ": " + why;
  }
  lua_getfield(L, LUA_REGISTRYINDEX, kPushed);
  lua_pushnil(L);
  lua_setfield(L, LUA_REGISTRYINDEX, kPushed);
  if (auto built = call_library(*runtime.vm, data, "routes", 1, 0); !built) return built.error();
  if (!runtime.attached) return data.path + ": sluice_config_routes() attached nothing: see sluice.attach()";
  if (auto closed = call_library(*runtime.vm, data, "close", 0, 0); !closed) return closed.error();
  lua_settop(L, 0);
  runtime.sealed = true;
  runtime.home.loading = false;
  table->note_hooks();
  runtime.vm->collect_all();
  runtime.vm->set_time_limit(data.settings.lua_time_ms);
  return std::unique_ptr<proxy::RouteTable>(std::move(table));
}

}  // namespace sluice::lua
