// `sluice.ratelim_tbf` and `sluice.ratelim_global_tbf`: limiters that Lua calls, and the route that asks one first.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "lua/commons.h"
#include "lua/home.h"
#include "lua/limiter.h"
#include "lua/state.h"
#include "proxy/route.h"

namespace sluice::lua {

// Reads {limit=, rate= or fillrate= and tickrate=, keys=, name=}. Errors: a sentence in `why`. `name` stays when it is not given.
bool read_limit(lua_State* L, int index, LimitSpec& spec, std::string& name, std::string& why);
// The one of that name and shape that all workers share.
std::shared_ptr<Limiter> global_limiter(Commons& commons, const std::string& name, const LimitSpec& spec);

// The class of limiters: called as limiter([key,] [n]).
void open_limiters(lua_State* L, const Home& home);
void push_limiter(lua_State* L, Limiter& limiter);

// Which part of a request is the key. Shape: "", "client_ip", "key", "header:NAME", "query:NAME".
struct LimitKey {
  enum class From : std::uint8_t { nothing, client_ip, key, header, query };
  From from = From::nothing;
  std::string name;
  static std::optional<LimitKey> read(std::string_view text);
};

// Thread: worker. Life: `child` outlives it.
class LimitRoute final : public proxy::Route {
 public:
  LimitRoute(std::shared_ptr<Limiter> limiter, LimitKey key, proxy::Route& child)
      : limiter_(std::move(limiter)), key_(std::move(key)), child_(child) {}
  void start(proxy::Exchange& exchange, const proxy::Match& match, proxy::Services& services) override;
  void client_gone(proxy::Exchange& exchange) override { child_.client_gone(exchange); }
  bool is_module() const override { return child_.is_module(); }

 private:
  const std::shared_ptr<Limiter> limiter_;
  const LimitKey key_;
  proxy::Route& child_;
  proxy::Response refusal_;
};

}  // namespace sluice::lua
