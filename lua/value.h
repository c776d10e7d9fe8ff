// A plain value on its way from the config VM to the workers' VMs: what sluice_config_pools() returned, copied.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "lua/state.h"
#include "proxy/remote/backend_pool.h"

namespace sluice::lua {

// Pools as the config VM describes them. Shape: `stores` are names; or it is one of remote backends.
struct PoolSpec {
  std::string name;
  std::vector<std::string> stores;
  std::uint64_t seed = 0;
  proxy::KeyFilter filter;
  std::shared_ptr<const proxy::BackendPool> remote;
};

// Thread: frozen once read.
struct Value {
  struct Store { std::string name; };
  struct Pool { std::uint32_t index; };            // in the config's list of PoolSpecs
  struct Limiter { std::uint32_t index; };         // in its list of limiters
  using Table = std::vector<std::pair<Value, Value>>;
  std::variant<std::monostate, bool, double, std::string, Store, Pool, Limiter, Table> held;
};

// Reads the value at `index`. Shape: nil, booleans, numbers, strings, stores, pools, limiters, and tables of them without cycles.
// Errors: a sentence that says where in the value and why. Never raises.
bool read_value(lua_State* L, int index, Value& out, std::string& why);

// Pushes it; stores and pools through `resolve`, which pushes one value. May raise for memory.
class Resolver {
 public:
  virtual ~Resolver() = default;
  virtual void push_store(lua_State* L, const std::string& name) = 0;
  virtual void push_pool(lua_State* L, std::uint32_t index) = 0;
  virtual void push_limiter(lua_State* L, std::uint32_t index) = 0;
};
void push_value(lua_State* L, const Value& value, Resolver& resolver);

// Words of a list nearest to one that was mistyped. Empty when none is near.
std::string nearest(std::string_view word, const std::vector<std::string>& known);

}  // namespace sluice::lua
