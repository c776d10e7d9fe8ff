// `route_static`: one answer, made when the config loads, to every request. Its body is lent, never copied.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "proxy/route.h"

namespace sluice::lua {

// Thread: worker. Life: answers that still leave hold its bytes.
class StaticRoute final : public proxy::Route {
 public:
  // Shape: `headers` are whole lines, as of Response. With status 200 and `tagged` the answer has an ETag of its bytes, so
  //        that a client that names it in If-None-Match gets a 304.
  StaticRoute(std::uint16_t status, std::string headers, std::string_view body, bool tagged);
  void start(proxy::Exchange& exchange, const proxy::Match& match, proxy::Services& services) override;

 private:
  const std::uint16_t status_;
  const std::string headers_;
  const std::shared_ptr<const std::string> body_;
  std::uint64_t tag_ = 0;
  proxy::Response response_;
};

}  // namespace sluice::lua
