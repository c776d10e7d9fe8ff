#include "lua/crons.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "lua/box.h"
#include "lua/fields.h"
#include "lua/value.h"
#include "proxy/module_call.h"

namespace sluice::lua {
namespace {

constexpr std::size_t kMostJobs = 100;
constexpr std::size_t kMostFields = 16;

// A store of which only the name matters: which of a pool's a key belongs to is asked before the event is on its way.
class NamedStore final : public proxy::Store {
 public:
  explicit NamedStore(std::string name) : name_(std::move(name)) {}
  std::string_view name() const override { return name_; }
  bool serves_objects() const override { return false; }
  bool has_remove() const override { return false; }
  std::uint32_t shards() const override { return 1; }
  bool has_view(std::string_view) const override { return false; }
  bool has_input(std::string_view) const override { return false; }
  bool input_takes_body(std::string_view) const override { return false; }

 private:
  const std::string name_;
};

LuaCrons& self(lua_State* L) { return *static_cast<LuaCrons*>(lua_touserdata(L, lua_upvalueindex(1))); }

}  // namespace

// register_cron(name, {every = seconds, func = f [, rerun = true]})
int register_cron(lua_State* L) {
  LuaCrons& crons = self(L);
  if (crons.vm_) return luaL_error(L, "sluice.register_cron: only while the config is read");
  luaL_checkstring(L, 1);
  luaL_checktype(L, 2, LUA_TTABLE);
  lua_settop(L, 2);
  CronSpec spec;
  spec.name = text_at(L, 1);
  if (!proxy::is_name(spec.name)) return luaL_error(L, "sluice.register_cron: `%s` is not a name: 1 to 64 of A-Z a-z 0-9 - _", spec.name.c_str());
  double every = 0;
  for (lua_pushnil(L); lua_next(L, 2) != 0; lua_pop(L, 1)) {
    const std::string field(lua_type(L, -2) == LUA_TSTRING ? text_at(L, -2) : std::string_view());
    if (field == "every") {
      every = lua_type(L, -1) == LUA_TNUMBER ? lua_tonumber(L, -1) : 0;
      if (!(every >= 0.05 && every <= 366.0 * 86'400)) return luaL_error(L, "sluice.register_cron: `every` is seconds, from 0.05 to a year");
    } else if (field == "func") {
      if (!lua_isfunction(L, -1)) return luaL_error(L, "sluice.register_cron: `func` is a function, got a %s", luaL_typename(L, -1));
    } else if (field == "rerun") {
      if (!lua_isboolean(L, -1)) return luaL_error(L, "sluice.register_cron: `rerun` is true or false");
      spec.rerun = lua_toboolean(L, -1) != 0;
    } else {
      const std::string near = nearest(field, {"every", "func", "rerun"});
      return luaL_error(L, "sluice.register_cron: a cron has no `%s`%s", field.c_str(), near.empty() ? "" : ("; did you mean `" + near + "`?").c_str());
    }
  }
  lua_getfield(L, 2, "func");
  if (every == 0 || lua_isnil(L, -1)) return luaL_error(L, "sluice.register_cron: a cron needs `every` and `func`");
  spec.every_ms = static_cast<std::uint64_t>(std::llround(every * 1000));
  lua_Debug d;
  lua_pushvalue(L, -1);
  if (lua_getinfo(L, ">S", &d) != 0) spec.place = std::string(d.short_src) + ":" + std::to_string(d.linedefined);
  crons.add(L, std::move(spec));
  return 0;
}

int schedule_config_reload(lua_State* L) {
  LuaCrons& crons = self(L);
  if (!crons.send_) return luaL_error(L, "sluice.schedule_config_reload: crons ask for it, not a config that is read");
  crons.reload_wanted_ = true;
  return 0;
}

// post(store, input [, fields [, body [, f]]]), view(store, name [, fields [, f]]), get(store, key [, f]): true, or false when too many
// are under way. f(status, body, error) hears the answer.
int ask(lua_State* L, proxy::Method method, const char* folder, const char* what) {
  LuaCrons& crons = self(L);
  if (!crons.send_) return luaL_error(L, "sluice.%s: crons send events, not a config that is read", what);
  luaL_checkstring(L, 1);
  luaL_checkstring(L, 2);
  lua_settop(L, 5);
  const bool posts = method == proxy::Method::post;
  const bool has_fields = std::string_view(folder) != "/objects/";
  const int f = posts ? 5 : has_fields ? 4 : 3;
  if (!lua_isnil(L, f) && !lua_isfunction(L, f)) return luaL_error(L, "sluice.%s: argument %d is a function, got a %s", what, f, luaL_typename(L, f));
  bool sent = false;
  {
    proxy::CronEvent event;
    event.store = text_at(L, 1);
    event.method = method;
    event.path = std::string(folder) + std::string(text_at(L, 2));
    if (has_fields && !lua_isnil(L, 3)) {
      if (!lua_istable(L, 3)) return luaL_error(L, "sluice.%s: fields are a table, got a %s", what, luaL_typename(L, 3));
      for (lua_pushnil(L); lua_next(L, 3) != 0; lua_pop(L, 1)) {
        char number[40];
        const auto value = field_value(L, -1, number);
        if (lua_type(L, -2) != LUA_TSTRING || !value || event.fields.size() == kMostFields)
          return luaL_error(L, "sluice.%s: fields are at most 16 names with a string, a finite number or a boolean", what);
        event.fields.emplace_back(text_at(L, -2), *value);
      }
      // A table has no order, and a pool's choice must not depend on chance.
      std::sort(event.fields.begin(), event.fields.end());
    }
    if (posts && !lua_isnil(L, 4)) {
      luaL_checkstring(L, 4);
      event.body = text_at(L, 4);
      event.has_body = true;
    }
    if (!crons.choose_store(event)) {
      std::vector<std::string> known;
      for (const auto& s : crons.draft_->stores) known.push_back(s.name);
      for (const auto& p : crons.pools_) known.emplace_back(p.name());
      const std::string near = nearest(event.store, known);
      return luaL_error(L, "sluice.%s: there is no store or pool `%s`%s", what, event.store.c_str(), near.empty() ? "" : ("; did you mean `" + near + "`?").c_str());
    }
    LuaCrons::Waiting waiting;
    waiting.job = crons.running_;
    if (lua_isfunction(L, f)) {
      lua_pushvalue(L, f);
      waiting.function = luaL_ref(L, LUA_REGISTRYINDEX);
    }
    const std::uint32_t id = crons.send_(std::move(event));
    sent = id != 0;
    if (sent) crons.waiting_.emplace(id, std::move(waiting));
    else luaL_unref(L, LUA_REGISTRYINDEX, waiting.function);
  }
  lua_pushboolean(L, sent);
  return 1;
}

namespace {

int post(lua_State* L) { return ask(L, proxy::Method::post, "/inputs/", "post"); }
int view(lua_State* L) { return ask(L, proxy::Method::get, "/views/", "view"); }
int get(lua_State* L) { return ask(L, proxy::Method::get, "/objects/", "get"); }

}  // namespace

void LuaCrons::open(lua_State* L, LuaCrons& its) {
  const StackGuard guard(L);
  static constexpr luaL_Reg kPublic[] = {{"register_cron", register_cron}, {"schedule_config_reload", schedule_config_reload},
                                         {"post", post}, {"view", view}, {"get", get}, {nullptr, nullptr}};
  lua_getglobal(L, "sluice");
  push_pointer(L, &its);
  luaL_setfuncs(L, kPublic, 1);
}

LuaCrons::~LuaCrons() = default;

void LuaCrons::add(lua_State* L, CronSpec spec) {
  for (const Job& j : jobs_)
    if (j.spec.name == spec.name) luaL_error(L, "sluice.register_cron: `%s` is registered twice", spec.name.c_str());
  if (jobs_.size() == kMostJobs) luaL_error(L, "sluice.register_cron: more than 100 crons");
  spec.function = luaL_ref(L, LUA_REGISTRYINDEX);
  jobs_.push_back({std::move(spec), kNever});
}

std::string LuaCrons::explain() const {
  std::string text;
  for (const Job& j : jobs_) {
    text += "cron " + j.spec.name + "  every " + std::to_string(j.spec.every_ms / 1000);
    if (const std::uint64_t ms = j.spec.every_ms % 1000; ms != 0) {
      std::string part = std::to_string(1000 + ms).substr(1);
      while (part.back() == '0') part.pop_back();
      text += "." + part;
    }
    text += j.spec.rerun ? " s" : " s, once";
    text += "  function at " + j.spec.place + "\n";
  }
  return text;
}

void LuaCrons::adopt(std::unique_ptr<Vm> vm, std::unique_ptr<Draft> draft, std::uint32_t time_limit_ms) {
  vm_ = std::move(vm);
  draft_ = std::move(draft);
  vm_->set_time_limit(time_limit_ms);
  for (const PoolSpec& spec : draft_->pools) {
    std::vector<proxy::StorePtr> stores;
    for (const std::string& name : spec.stores) stores.push_back(std::make_shared<NamedStore>(name));
    // As the workers' pools are made: an event of a cron meets those of clients.
    if (auto pool = proxy::Pool::make(spec.name, std::move(stores), spec.seed, spec.filter)) pools_.push_back(*std::move(pool));
  }
}

bool LuaCrons::choose_store(proxy::CronEvent& event) const {
  for (const proxy::Pool& pool : pools_) {
    if (pool.name() != event.store) continue;
    std::vector<proxy::Parameter> query;
    for (const auto& [name, value] : event.fields) query.push_back({name, value});
    event.store = pool.pick(proxy::distribution_key(event.path, query))->name();
    return true;
  }
  return std::any_of(draft_->stores.begin(), draft_->stores.end(), [&](const auto& s) { return s.name == event.store; });
}

void LuaCrons::start(std::uint64_t now_ms, const proxy::Crons* before, Send send) {
  send_ = std::move(send);
  draft_->home.loading = false;
  const auto* old = dynamic_cast<const LuaCrons*>(before);
  for (Job& j : jobs_) {
    j.at_ms = now_ms + j.spec.every_ms;
    if (!old || !j.spec.rerun) continue;
    for (const Job& o : old->jobs_)
      if (o.spec.name == j.spec.name && o.spec.every_ms == j.spec.every_ms && o.at_ms != kNever) j.at_ms = o.at_ms;
  }
}

void LuaCrons::stop() {
  send_ = nullptr;
  for (Job& j : jobs_) j.at_ms = kNever;
  waiting_.clear();
}

std::uint64_t LuaCrons::next_ms() const {
  std::uint64_t next = kNever;
  for (const Job& j : jobs_) next = std::min(next, j.at_ms);
  return next;
}

void LuaCrons::report(std::string_view job, std::string_view why) {
  if (log_) log_->event(proxy::LogLevel::error, "cron_error", "lua: cron '" + std::string(job) + "': " + std::string(why), {{"cron", job}});
}

bool LuaCrons::call(int arguments) {
  lua_State* L = vm_->main();
  const std::uint64_t refused = vm_->refused();
  const bool good = vm_->call(L, arguments, 0);
  if (!good) report(running_, lua_type(L, -1) == LUA_TSTRING ? text_at(L, -1) : std::string_view("an error that is not a string"));
  // A VM at its limit has not been collected since; the next job would meet the same.
  if (vm_->refused() != refused) {
    lua_settop(L, 0);
    vm_->collect_all();
  }
  return good;
}

proxy::Crons::Ran LuaCrons::run(std::uint64_t now_ms) {
  Ran ran;
  lua_State* L = vm_->main();
  for (Job& j : jobs_) {
    if (j.at_ms > now_ms) continue;
    const std::uint64_t missed = (now_ms - j.at_ms) / j.spec.every_ms;
    // In step with when it was first due, so that it does not drift.
    j.at_ms = j.spec.rerun ? j.at_ms + (missed + 1) * j.spec.every_ms : kNever;
    const StackGuard guard(L);
    running_ = j.spec.name;
    lua_rawgeti(L, LUA_REGISTRYINDEX, j.spec.function);
    lua_pushnumber(L, static_cast<double>(missed));
    ++ran.runs;
    if (!call(1)) ++ran.failures;
  }
  for (int i = 0; i < 4; ++i) vm_->collect_step();
  ran.reload_wanted = std::exchange(reload_wanted_, false);
  return ran;
}

std::optional<proxy::Crons::Ran> LuaCrons::answered(const proxy::CronAnswer& a) {
  const auto at = waiting_.find(a.id);
  if (at == waiting_.end()) return std::nullopt;
  const Waiting w = std::move(at->second);
  waiting_.erase(at);
  if (w.function == LUA_NOREF) {
    if (a.status >= 400) report(w.job, "its event was answered " + std::to_string(a.status) + " " + std::string(name(a.error)));
    return Ran{};
  }
  lua_State* L = vm_->main();
  const StackGuard guard(L);
  running_ = w.job;
  lua_rawgeti(L, LUA_REGISTRYINDEX, w.function);
  luaL_unref(L, LUA_REGISTRYINDEX, w.function);
  lua_pushinteger(L, a.status);
  push(L, a.body);
  push(L, name(a.error));
  Ran ran;
  if (!call(3)) ++ran.failures;
  vm_->collect_step();
  ran.reload_wanted = std::exchange(reload_wanted_, false);
  return ran;
}

}  // namespace sluice::lua
