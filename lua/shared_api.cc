#include "lua/shared_api.h"

#include <cmath>

#include "lua/box.h"

namespace sluice::lua {
namespace {

constexpr double kLongestS = 10.0 * 366 * 86'400;
constexpr std::size_t kMostKeys = 1024, kKeptBytes = 64 * 1024;

Home& home(lua_State* L) { return *static_cast<Home*>(lua_touserdata(L, lua_upvalueindex(1))); }

SharedTable& self(lua_State* L) { return check_boxed<SharedTable>(L, 1, Kind::shared_table, "a shared table"); }

// What serves must not see what a config writes that may yet be refused.
SharedTable& writable(lua_State* L, const char* method) {
  SharedTable& t = self(L);
  if (home(L).loading) luaL_error(L, "%s: a shared table is written by routes and crons, not while the config is read", method);
  return t;
}

std::string_view key_at(lua_State* L, const char* method) {
  if (lua_type(L, 2) != LUA_TSTRING && lua_type(L, 2) != LUA_TNUMBER)
    luaL_error(L, "%s: a key is a string, got a %s", method, luaL_typename(L, 2));
  const std::string_view key = text_at(L, 2);
  if (key.size() > SharedTable::kKeyBytes)
    luaL_error(L, "%s: a key has at most %d bytes", method, static_cast<int>(SharedTable::kKeyBytes));
  return key;
}

SharedValue value_at(lua_State* L, int index, const char* method) {
  switch (lua_type(L, index)) {
    case LUA_TBOOLEAN: return {SharedValue::Type::boolean, lua_toboolean(L, index) ? 1.0 : 0.0, {}};
    case LUA_TNUMBER: return {SharedValue::Type::number, lua_tonumber(L, index), {}};
    case LUA_TSTRING:
      if (text_at(L, index).size() <= UINT32_MAX) return {SharedValue::Type::text, 0, text_at(L, index)};
      break;
    default: break;
  }
  luaL_error(L, "%s: a value is a string, a number or a boolean, got a %s", method, luaL_typename(L, index));
  return {};
}

// A ttl in seconds, or none.
std::uint64_t expiry_at(lua_State* L, int index, std::uint64_t now_us, const char* method) {
  if (lua_isnoneornil(L, index)) return 0;
  const double s = lua_type(L, index) == LUA_TNUMBER ? lua_tonumber(L, index) : 0;
  if (!(s > 0 && s <= kLongestS)) luaL_error(L, "%s: a ttl is a number of seconds above 0", method);
  return now_us + static_cast<std::uint64_t>(std::ceil(s * 1e6));
}

int get(lua_State* L) {
  SharedTable& t = self(L);
  Home& h = home(L);
  const std::optional<SharedValue> value = t.get(key_at(L, "get"), h.now_us(), h.scratch);
  if (!value) lua_pushnil(L);
  else if (value->type == SharedValue::Type::boolean) lua_pushboolean(L, value->number != 0);
  else if (value->type == SharedValue::Type::number) lua_pushnumber(L, value->number);
  else push(L, value->text);
  // One large value must not keep its room for good.
  if (h.scratch.capacity() > kKeptBytes) h.scratch = std::string();
  return 1;
}

int said(lua_State* L, SharedPut outcome) {
  const char* why = nullptr;
  switch (outcome) {
    case SharedPut::done: lua_pushboolean(L, 1); return 1;
    case SharedPut::exists: why = "exists"; break;
    case SharedPut::absent: why = "not found"; break;
    case SharedPut::no_room: why = "no room"; break;
    case SharedPut::no_number: why = "not a number"; break;
    case SharedPut::too_large: why = "too large"; break;
  }
  lua_pushboolean(L, 0);
  lua_pushstring(L, why);
  return 2;
}

int put(lua_State* L, SharedTable::When when, const char* method) {
  SharedTable& t = writable(L, method);
  const std::string_view key = key_at(L, method);
  const std::uint64_t now = home(L).now_us();
  const SharedValue value = value_at(L, 3, method);
  return said(L, t.put(key, value, when, now, expiry_at(L, 4, now, method)));
}
int set(lua_State* L) { return put(L, SharedTable::When::always, "set"); }
int add(lua_State* L) { return put(L, SharedTable::When::absent, "add"); }
int replace(lua_State* L) { return put(L, SharedTable::When::present, "replace"); }

// incr(key, by [, initial [, ttl of the initial]])
int incr(lua_State* L) {
  SharedTable& t = writable(L, "incr");
  const std::string_view key = key_at(L, "incr");
  const double by = luaL_checknumber(L, 3);
  std::optional<double> initial;
  if (!lua_isnoneornil(L, 4)) initial = luaL_checknumber(L, 4);
  // One of them would make the counter useless for good.
  if (!std::isfinite(by) || !std::isfinite(initial.value_or(0))) return luaL_error(L, "incr: what is added is a finite number");
  const std::uint64_t now = home(L).now_us();
  double sum = 0;
  const SharedPut outcome = t.increment(key, by, initial, now, expiry_at(L, 5, now, "incr"), sum);
  if (outcome != SharedPut::done) {
    said(L, outcome);
    lua_pushnil(L);
    lua_replace(L, -3);   // no sum, rather than false
    return 2;
  }
  lua_pushnumber(L, sum);
  return 1;
}

int remove(lua_State* L) {
  SharedTable& t = writable(L, "delete");
  lua_pushboolean(L, t.remove(key_at(L, "delete"), home(L).now_us()));
  return 1;
}

// Seconds that are left, 0: for ever, nil: not there.
int ttl(lua_State* L) {
  SharedTable& t = self(L);
  const std::uint64_t now = home(L).now_us();
  const std::optional<std::uint64_t> at = t.expires(key_at(L, "ttl"), now);
  if (!at) lua_pushnil(L);
  else lua_pushnumber(L, *at == 0 ? 0 : static_cast<double>(*at - now) / 1e6);
  return 1;
}

// expire(key [, ttl]): without one it stays.
int expire(lua_State* L) {
  SharedTable& t = writable(L, "expire");
  const std::string_view key = key_at(L, "expire");
  const std::uint64_t now = home(L).now_us();
  lua_pushboolean(L, t.expire(key, now, expiry_at(L, 3, now, "expire")));
  return 1;
}

// keys([most]): a list, the most recently used first.
int keys(lua_State* L) {
  SharedTable& t = self(L);
  const double most = luaL_optnumber(L, 2, kMostKeys);
  if (!(most >= 0 && most <= kMostKeys)) return luaL_error(L, "keys: at most %d", static_cast<int>(kMostKeys));
  const std::vector<std::string> found = t.keys(static_cast<std::size_t>(most), home(L).now_us());
  lua_createtable(L, static_cast<int>(found.size()), 0);
  for (std::size_t i = 0; i < found.size(); ++i) {
    push(L, found[i]);
    lua_rawseti(L, -2, static_cast<int>(i) + 1);
  }
  return 1;
}

int clear(lua_State* L) {
  writable(L, "clear").clear();
  return 0;
}

int stats(lua_State* L) {
  const SharedTable::Stats s = self(L).stats();
  lua_createtable(L, 0, 6);
  const auto field = [L](const char* name, std::uint64_t n) {
    lua_pushnumber(L, static_cast<double>(n));
    lua_setfield(L, -2, name);
  };
  field("entries", s.entries);
  field("bytes", s.bytes);
  field("limit", s.limit_bytes);
  field("hits", s.hits);
  field("misses", s.misses);
  field("evicted", s.evicted);
  return 1;
}

int no_such_table(lua_State* L) {
  const char* name = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : luaL_typename(L, 2);
  return luaL_error(L, "there is no shared table `%s`: declare it with shared { NAME = \"1MiB\" }", name);
}

int not_yours(lua_State* L) { return luaL_error(L, "sluice.shared has the tables that shared{} declares, and no others"); }

}  // namespace

void open_shared(lua_State* L, const Home& its_home) {
  const StackGuard guard(L);
  static constexpr luaL_Reg kMethods[] = {
      {"get", get}, {"set", set}, {"add", add}, {"replace", replace}, {"incr", incr}, {"delete", remove}, {"ttl", ttl},
      {"expire", expire}, {"keys", keys}, {"clear", clear}, {"stats", stats}, {nullptr, nullptr}};
  make_class(L, Kind::shared_table, "sluice.shared_table", kMethods, &its_home);
  lua_getglobal(L, "sluice");
  lua_newtable(L);
  lua_createtable(L, 0, 3);
  lua_pushcfunction(L, no_such_table);
  lua_setfield(L, -2, "__index");
  lua_pushcfunction(L, not_yours);
  lua_setfield(L, -2, "__newindex");
  lua_pushliteral(L, "sluice.shared");
  lua_setfield(L, -2, "__metatable");
  lua_setmetatable(L, -2);
  lua_setfield(L, -2, "shared");
}

void add_shared(lua_State* L, const SharedSpec& spec) {
  const StackGuard guard(L);
  lua_getglobal(L, "sluice");
  lua_getfield(L, -1, "shared");
  push(L, spec.name);
  push_box(L, Kind::shared_table, spec.table.get());
  lua_rawset(L, -3);
}

}  // namespace sluice::lua
