// Jobs that the config VM runs on control at intervals: sluice.register_cron, and what a job may do.
#pragma once
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "lua/library.h"
#include "lua/state.h"
#include "proxy/cron.h"
#include "proxy/pool.h"

namespace sluice::lua {

struct CronSpec {
  std::string name;
  std::uint64_t every_ms = 0;
  bool rerun = true;                             // false: once after each reload
  int function = LUA_NOREF;
  std::string place{};                           // of the function: "FILE:LINE"
};

// Keeps the config VM, and what it points at, for as long as the config lives.
class LuaCrons final : public proxy::Crons {
 public:
  // Registers register_cron and the calls of jobs in `L`. `self` is filled by adopt(); before it nothing may be sent.
  static void open(lua_State* L, LuaCrons& self);
  explicit LuaCrons(proxy::Log* log) : log_(log) {}
  ~LuaCrons() override;

  // Errors of the config: raised. Thread: while the config is read.
  void add(lua_State* L, CronSpec spec);
  bool empty() const { return jobs_.empty(); }
  // A line for each, for a person.
  std::string explain() const;
  // The VM in which open() was called. Units: of one run.
  void adopt(std::unique_ptr<Vm> vm, std::unique_ptr<Draft> draft, std::uint32_t time_limit_ms);

  void start(std::uint64_t now_ms, const proxy::Crons* before, Send send) override;
  void stop() override;
  std::uint64_t next_ms() const override;
  Ran run(std::uint64_t now_ms) override;
  std::optional<Ran> answered(const proxy::CronAnswer& answer) override;

 private:
  friend int register_cron(lua_State* L);
  friend int schedule_config_reload(lua_State* L);
  friend int ask(lua_State* L, proxy::Method method, const char* folder, const char* what);
  struct Job {
    CronSpec spec;
    std::uint64_t at_ms = kNever;
  };
  void report(std::string_view job, std::string_view why);
  bool call(int arguments);                      // of the function beneath them; false: it failed, and that is said
  // `event.store` may name a pool: then the store of the event's key is put there. False: there is neither.
  bool choose_store(proxy::CronEvent& event) const;

  proxy::Log* log_;
  std::unique_ptr<Draft> draft_;                 // what the VM's functions point at
  std::unique_ptr<Vm> vm_;
  std::vector<Job> jobs_;
  std::vector<proxy::Pool> pools_;
  Send send_;                                    // empty: it does not serve
  std::string running_;                          // the job that runs, or that waited for the answer that is heard
  bool reload_wanted_ = false;
  struct Waiting {
    std::string job;
    int function = LUA_NOREF;                    // LUA_NOREF: only failures are said
  };
  std::unordered_map<std::uint32_t, Waiting> waiting_;
};

}  // namespace sluice::lua
