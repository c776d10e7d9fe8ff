// sluice.stat and sluice.server_stats: what a config counts itself, and what the server does.
#include <cmath>

#include "lua/answer_cache.h"
#include "lua/user_stat.h"
#include "proxy/config.h"

namespace sluice::lua {
namespace {

constexpr const char* kStats = "sluice.stats";   // in the registry: name -> {cell, is it a histogram}

// stat(name [, n]): adds n to a counter, 1 unless said; records n in a histogram.
int stat(lua_State* L) {
  const Home& home = *static_cast<const Home*>(lua_touserdata(L, lua_upvalueindex(1)));
  if (lua_type(L, 1) != LUA_TSTRING) return luaL_error(L, "sluice.stat: a name expected, got a %s", luaL_typename(L, 1));
  if (home.loading) return luaL_error(L, "sluice.stat: routes and crons count, not a config that is read");
  const double n = luaL_optnumber(L, 2, 1);
  lua_pushvalue(L, 1);
  lua_rawget(L, lua_upvalueindex(2));
  StatCell* cell = static_cast<StatCell*>(lua_touserdata(L, -1));
  if (cell == nullptr) return luaL_error(L, "sluice.stat: there is no `%s`: declare it with stats { NAME = \"counter\" }", lua_tostring(L, 1));
  if (!cell->buckets) {
    if (!(std::fabs(n) <= 9007199254740992.0) || n != std::floor(n))
      return luaL_error(L, "sluice.stat: what is added to a counter is a whole number");
    cell->add(n);
  } else {
    if (!std::isfinite(n)) return luaL_error(L, "sluice.stat: what is recorded is a finite number");
    cell->record(n);
  }
  return 0;
}

void number(lua_State* L, const char* name, double n) {
  lua_pushnumber(L, n);
  lua_setfield(L, -2, name);
}

// backends: by their labels, with what each counts. Into the table at 2.
void push_backends(lua_State* L, const Home& home) {
  lua_newtable(L);
  if (home.backends)
    for (const proxy::BackendPtr& b : *home.backends) {
      push(L, b->name);
      lua_createtable(L, 0, 16);
      b->stats->each([L](std::string_view name, std::uint64_t n) {
        push(L, name);
        lua_pushnumber(L, static_cast<double>(n));
        lua_rawset(L, -3);
      });
      lua_rawset(L, -3);
    }
  lua_setfield(L, 2, "backends");
}

// The field `caches` of the table at 2: what each route_cache has done, all workers together.
void push_caches(lua_State* L, const Home& home) {
  lua_createtable(L, 0, home.caches ? static_cast<int>(home.caches->size()) : 0);
  if (home.caches)
    for (const auto& [name, shared] : *home.caches) {
      const CacheShared::Totals sum = shared->totals();
      push(L, name);
      lua_createtable(L, 0, 6);
      number(L, "hits", static_cast<double>(sum.hits));
      number(L, "misses", static_cast<double>(sum.misses));
      number(L, "passed", static_cast<double>(sum.passed));
      number(L, "evicted", static_cast<double>(sum.evicted));
      number(L, "entries", static_cast<double>(sum.entries));
      number(L, "bytes", static_cast<double>(sum.bytes));
      lua_rawset(L, -3);
    }
  lua_setfield(L, 2, "caches");
}

// Adds to the number called `name` of the table at the top.
void add_number(lua_State* L, const char* name, const proxy::Counter& n) {
  lua_getfield(L, -1, name);
  lua_pushnumber(L, lua_tonumber(L, -1) + static_cast<double>(n.get()));
  lua_setfield(L, -3, name);
  lua_pop(L, 1);
}

// workers = a table for each VM, generators = by name, those of all workers together.
void push_routes(lua_State* L, const Home& home) {
  const proxy::RouteRecords records = home.server ? home.server->records() : proxy::RouteRecords();
  lua_createtable(L, 0, 2);
  lua_createtable(L, static_cast<int>(records.size()), 0);
  lua_createtable(L, 0, 16);
  for (std::size_t i = 0; i < records.size(); ++i) {
    const proxy::RouteRecord& r = *records[i];
    lua_createtable(L, 0, 8);
    number(L, "worker", r.worker);
    add_number(L, "bytes", r.memory_bytes);
    add_number(L, "limit", r.memory_limit);
    add_number(L, "refused", r.refused);
    add_number(L, "stopped", r.stopped);
    add_number(L, "collections", r.collections);
    add_number(L, "collector_steps", r.collector_steps);
    add_number(L, "longest_step_us", r.longest_step_us);
    lua_rawseti(L, -3, static_cast<int>(i) + 1);
    for (const auto& g : r.generators) {
      push(L, g->name);
      lua_pushvalue(L, -1);
      lua_rawget(L, -3);
      if (lua_isnil(L, -1)) {
        lua_pop(L, 1);
        lua_createtable(L, 0, 3);
      }
      add_number(L, "slots", g->slots);
      add_number(L, "in_use", g->in_use);
      add_number(L, "bytes", g->bytes);
      lua_rawset(L, -3);
    }
  }
  lua_setfield(L, -3, "generators");
  lua_setfield(L, -2, "workers");
}

// server_stats([section]): all that is counted, or one section of it.
int server_stats(lua_State* L) {
  const Home& home = *static_cast<const Home*>(lua_touserdata(L, lua_upvalueindex(1)));
  const auto& stats = *static_cast<const std::vector<std::shared_ptr<UserStat>>*>(lua_touserdata(L, lua_upvalueindex(2)));
  const std::string_view section = lua_isnoneornil(L, 1) ? std::string_view() : (luaL_checkstring(L, 1), text_at(L, 1));
  if (!section.empty() && section != "server" && section != "user" && section != "caches" && section != "backends" &&
      section != "routes")
    return luaL_error(L, "sluice.server_stats: the sections are server, user, caches, backends and routes");
  if (home.loading) return luaL_error(L, "sluice.server_stats: routes and crons ask, not a config that is read");
  lua_settop(L, 1);
  lua_createtable(L, 0, 3);
  if (section.empty() || section == "routes") {
    push_routes(L, home);
    lua_setfield(L, 2, "routes");
  }
  if (section.empty() || section == "server") {
    lua_createtable(L, 0, 32);
    if (home.server)
      home.server->each([L](std::string_view name, std::uint64_t n) {
        push(L, name);
        lua_pushnumber(L, static_cast<double>(n));
        lua_rawset(L, -3);
      });
    lua_setfield(L, 2, "server");
  }
  if (section.empty() || section == "user") {
    lua_createtable(L, 0, static_cast<int>(stats.size()));
    for (const std::shared_ptr<UserStat>& s : stats) {
      push(L, s->name());
      const proxy::Counted sum = s->read();
      if (!sum.histogram) {
        lua_pushnumber(L, static_cast<double>(sum.count));
      } else {
        lua_createtable(L, 0, 8);
        number(L, "count", static_cast<double>(sum.count));
        number(L, "sum", sum.sum);
        number(L, "min", sum.least);
        number(L, "max", sum.most);
        for (std::size_t i = 0; i < sum.quantiles.size(); ++i) number(L, proxy::Counted::kQuantileNames[i].data(), sum.quantiles[i]);
      }
      lua_rawset(L, -3);
    }
    lua_setfield(L, 2, "user");
  }
  if (section.empty() || section == "caches") push_caches(L, home);
  if (section.empty() || section == "backends") push_backends(L, home);
  if (!section.empty()) lua_getfield(L, 2, lua_tostring(L, 1));
  return 1;
}

}  // namespace

void open_stats(lua_State* L, const Home& home, const std::vector<std::shared_ptr<UserStat>>& stats) {
  const StackGuard guard(L);
  lua_getglobal(L, "sluice");
  push_pointer(L, &home);
  lua_newtable(L);
  lua_pushvalue(L, -1);
  lua_setfield(L, LUA_REGISTRYINDEX, kStats);
  lua_pushcclosure(L, stat, 2);
  lua_setfield(L, -2, "stat");
  push_pointer(L, &home);
  push_pointer(L, &stats);
  lua_pushcclosure(L, server_stats, 2);
  lua_setfield(L, -2, "server_stats");
}

void add_stat(lua_State* L, UserStat& stat, std::uint16_t worker) {
  const StackGuard guard(L);
  lua_getfield(L, LUA_REGISTRYINDEX, kStats);
  push(L, stat.name());
  lua_pushlightuserdata(L, &stat.cell(worker));
  lua_rawset(L, -3);
}

}  // namespace sluice::lua
