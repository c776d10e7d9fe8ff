#include "lua/route_table.h"

#include <utility>

#include "lua/box.h"
#include "lua/context.h"
#include "lua/limiter_api.h"
#include "lua/targets.h"
#include "lua/unsandboxed.h"
#include "vm/base/check.h"

namespace sluice::lua {
namespace {

class LuaRouteTable final : public proxy::RouteTable {
 public:
  LuaRouteTable(std::shared_ptr<const ConfigData> config, proxy::Log* log) : config_(std::move(config)), runtime_(log) {}

  Runtime& runtime() { return runtime_; }

  void attach(proxy::Services& services) override {
    runtime_.services = runtime_.home.services = &services;
    for (proxy::BackendRoute* route : runtime_.backends) route->attach(services);
    for (const SharedSpec& s : config_->shared) s.table->set_limit(s.bytes);
    runtime_.vm->adopt_thread();
  }

  proxy::Route* find(proxy::Method method, std::string_view path, proxy::Match& match) override {
    return find_in(method, path, {}, {}, match);
  }

  proxy::Route* find_for(const proxy::Request& request, proxy::Match& match) override {
    return find_in(request.method, request.path, request.tag, by_host_ ? host_of(request) : std::string_view(), match);
  }

  // Between turns: a step of the collector, and one generator looked at for slots nobody needs.
  void idle() override {
    Vm& vm = *runtime_.vm;
    vm.collect_step();
    vm.sample(runtime_.record);
    note();
    if (runtime_.fgens.empty() || !runtime_.services) return;
    if (next_trim_ >= runtime_.fgens.size()) next_trim_ = 0;
    runtime_.fgens[next_trim_++]->trim(runtime_.services->monotonic_us());
  }

  std::uint64_t memory_bytes() const override { return runtime_.vm->used_bytes(); }
  std::uint32_t slots() const override { return runtime_.slots; }
  std::uint32_t slots_in_use() const override { return runtime_.slots_in_use; }
  std::shared_ptr<proxy::RouteRecord> record() const override { return runtime_.record; }

  void note() {
    const Vm& vm = *runtime_.vm;
    proxy::RouteRecord& r = *runtime_.record;
    r.memory_bytes.set(vm.used_bytes());
    r.refused.set(vm.refused());
    r.stopped.set(vm.interrupted());
    r.collections.set(vm.collector().cycles);
    r.collector_steps.set(vm.collector().steps);
    r.longest_step_us.set(vm.collector().longest_us);
  }

  // Of hooks by method alone: what a 405 lists.
  void note_hooks() {
    using proxy::Method, proxy::method_bit;
    for (HookSet& set : runtime_.hooks) {
      by_host_ = by_host_ || !set.host.empty();
      if (!set.any.empty()) continue;
      for (std::size_t m = 0; m < proxy::kMethods; ++m)
        if (!set.hooks[m].empty()) set.allow |= 1u << m;
      if (set.allow & method_bit(Method::get)) set.allow |= method_bit(Method::head);
      if (set.allow != 0) set.allow |= method_bit(Method::options);
    }
  }

 private:
  // Without its port and the root's dot. The target's own, where it is a whole URL, stands before the header.
  // Source: RFC 9112, 3.2.2.
  static std::string_view host_of(const proxy::Request& request) {
    std::string_view host = request.target;
    if (const std::size_t scheme = host.starts_with('/') ? host.npos : host.find("://"); scheme != host.npos) {
      host.remove_prefix(scheme + 3);
      host = host.substr(0, host.find_first_of("/?"));
    } else {
      host = request.header("host").value_or("");
    }
    if (const std::size_t colon = host.rfind(':'); colon != host.npos && host.find(']', colon) == host.npos) host = host.substr(0, colon);
    if (host.ends_with('.')) host.remove_suffix(1);
    return host;
  }

  proxy::Route* find_in(proxy::Method method, std::string_view path, std::string_view tag, std::string_view host,
                        proxy::Match& match) {
    match.rest = path;
    match.captured.clear();
    match.allow = 0;
    for (const HookSet& set : runtime_.hooks) {
      if (!set.takes(tag, host)) continue;
      const Hook* hook = set.find(method);
      if (!hook) {
        match.allow |= set.allow;
        continue;
      }
      match.allow = 0;
      if (hook->router) return hook->router->find(method, path, match);
      if (hook->words) return hook->words->find(method, path, match);
      if (hook->route) return hook->route;
      proxy::Route* route = hook->target->methods.find(method);
      if (!route) match.allow = hook->target->methods.allow();
      return route;
    }
    return nullptr;
  }

  const std::shared_ptr<const ConfigData> config_;   // its text and modules: the VM points into it
  Runtime runtime_;
  bool by_host_ = false;
  std::size_t next_trim_ = 0;
};

class TargetResolver final : public Resolver {
 public:
  TargetResolver(Runtime& runtime, const proxy::StoreSet& stores, const ConfigData& data)
      : runtime_(runtime), stores_(stores), pools_(data.pools), limiters_(data.limiters) {}

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
    if (spec.remote) {
      auto route = std::make_unique<proxy::BackendRoute>(spec.remote);
      target->kind = Target::Kind::route;
      target->name = spec.name;
      target->route = route.get();
      runtime_.backends.push_back(route.get());
      runtime_.routes.push_back(std::move(route));
      push_target(L, runtime_, std::move(target));
      return;
    }
    target->kind = Target::Kind::pool;
    target->name = spec.name;
    std::vector<proxy::StorePtr> stores;
    for (const std::string& name : spec.stores) {
      proxy::StorePtr store = stores_.find(name);
      if (store) stores.push_back(std::move(store));
    }
    Result<proxy::Pool, std::string> pool = proxy::Pool::make(spec.name, std::move(stores), spec.seed, spec.filter);
    if (pool && pool->stores().size() == spec.stores.size()) target->pool = std::make_shared<const proxy::Pool>(*std::move(pool));
    if (target->pool) push_target(L, runtime_, std::move(target));
    else luaL_error(L, "a store of pool `%s` is not open", spec.name.c_str());
  }

  void push_limiter(lua_State* L, std::uint32_t index) override { sluice::lua::push_limiter(L, *limiters_[index]); }

 private:
  Runtime& runtime_;
  const proxy::StoreSet& stores_;
  const std::vector<PoolSpec>& pools_;
  const std::vector<std::shared_ptr<Limiter>>& limiters_;
};

// core.tags: of the listeners, each with true.
void add_tags(lua_State* L, const proxy::Settings& settings) {
  const StackGuard guard(L);
  push_core(L);
  lua_newtable(L);
  const auto add = [L](const std::string& tag) {
    if (tag.empty()) return;
    lua_pushboolean(L, 1);
    lua_setfield(L, -2, tag.c_str());
  };
  add(settings.tag);
  for (const proxy::Settings::Listener& l : settings.more_listeners) add(l.tag);
  lua_setfield(L, -2, "tags");
}

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
                                                                         std::shared_ptr<Commons> commons,
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
  runtime.record = std::make_shared<proxy::RouteRecord>(worker);
  runtime.record->memory_limit.set(data.settings.lua_memory_bytes);
  runtime.commons = std::move(commons);
  runtime.home.server = runtime.commons->server;
  runtime.home.log = log;
  runtime.home.backends = &data.backends;
  runtime.vm->set_time_limit(load_time_ms);
  lua_State* L = runtime.vm->main();
  open_sandbox(L, data.modules, nullptr);
  if (!data.settings.lua_sandbox) open_unsandboxed(L);
  open_common(L, data.source, runtime.home);
  for (const SharedSpec& s : data.shared) add_shared(L, s);
  open_file_reader(L, data.modules, nullptr);
  open_stats(L, runtime.home, data.stats);
  for (const auto& s : data.stats) add_stat(L, *s, worker);
  runtime.callbacks = lua_newthread(L);
  luaL_ref(L, LUA_REGISTRYINDEX);   // for as long as the VM
  open_worker_stage(L, runtime, stores);
  add_tags(L, data.settings);

  if (auto ran = run_file(*runtime.vm, data); !ran) return ran.error();
  TargetResolver resolver(runtime, *stores, data);
  Pushing pushing{data.value, resolver};
  if (!runtime.vm->protect(push_in_lua, &pushing)) {
    const std::string why(text_at(L, -1));
    return data.path + ": " + why;
  }
  lua_getfield(L, LUA_REGISTRYINDEX, kPushed);
  lua_pushnil(L);
  lua_setfield(L, LUA_REGISTRYINDEX, kPushed);
  if (auto built = call_library(*runtime.vm, data, "routes", 1, 0); !built) return built.error();
  if (runtime.hooks.empty()) return data.path + ": sluice_config_routes() attached nothing: see sluice.attach()";
  if (auto closed = call_library(*runtime.vm, data, "close", 0, 0); !closed) return closed.error();
  lua_settop(L, 0);
  runtime.sealed = true;
  runtime.home.loading = false;
  table->note_hooks();
  runtime.vm->collect_all();
  table->note();
  runtime.vm->set_time_limit(data.settings.lua_time_ms);
  return std::unique_ptr<proxy::RouteTable>(std::move(table));
}

}  // namespace sluice::lua
