// `route_cache`: keeps what its child answered, and answers with it while that is sure to be fresh.
//
// What a user may rely on. An answer is never given when it is as old as `ttl`, counted from when the child was asked; never
// after a write through the route, on whatever worker, has begun; and with `revalidate` never after any commit of a store
// below the route. Who has just written through the route reads what is there now.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lua/answer_cache.h"
#include "proxy/route.h"

namespace sluice::lua {

// Shape: `vary` are header names that are part of the key. `stores` are those below the child, of `revalidate`.
struct CacheSpec {
  std::uint64_t ttl_us = 0;                      // 0: for ever, with `revalidate`
  std::uint64_t limit_bytes = 8u << 20;          // per worker
  std::uint64_t item_bytes = 256u << 10;         // of the largest body that is kept
  bool revalidate = false;
  bool everybody = false;                        // the answers are the same whoever asks
  std::vector<std::string> vary;
  std::vector<proxy::StorePtr> stores;
};

// Thread: worker; made and destroyed on control. Life: `child` outlives it.
class CacheRoute final : public proxy::Route {
 public:
  CacheRoute(CacheSpec spec, std::shared_ptr<CacheShared> shared, proxy::Route& child);
  ~CacheRoute() override;
  void start(proxy::Exchange& exchange, const proxy::Match& match, proxy::Services& services) override;
  void client_gone(proxy::Exchange& exchange) override;

 private:
  class Held;                                    // an exchange that the child has, between it and the client's
  bool passes_by(const proxy::Request& request) const;
  void make_key(const proxy::Request& request, std::string_view own);  // into key_
  std::uint64_t changes() const;                 // 0: a store cannot say
  bool fresh(const StoredAnswer& answer, std::uint64_t now_us, std::uint64_t changes) const;
  void give(proxy::Exchange& exchange, const StoredPtr& answer, std::uint64_t now_us);
  void ask(proxy::Exchange& exchange, const proxy::Match& match, proxy::Services& services, bool writes, std::uint64_t changes);
  void keep(Held& held, const proxy::Response& response);
  // For how long what its header lines say may be kept; 0: not at all.
  std::uint64_t allowed_us(std::string_view lines, std::uint64_t& age_us) const;
  void recycle(Held& held);

  const CacheSpec spec_;
  AnswerCache cache_;
  proxy::Route& child_;
  std::string key_;                              // scratch of one look-up
  std::vector<std::unique_ptr<Held>> held_;
  std::vector<std::uint32_t> free_;
  proxy::Response response_;
};

}  // namespace sluice::lua
