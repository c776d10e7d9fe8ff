#include "lua/static_route.h"

#include <utility>

#include "vm/base/hash.h"

namespace sluice::lua {

StaticRoute::StaticRoute(std::uint16_t status, std::string headers, std::string_view body, bool tagged)
    : status_(status), headers_(std::move(headers)), body_(std::make_shared<const std::string>(body)) {
  // 53 bits, so that a script reads it as it is; 0 would be none.
  if (tagged && status == 200) tag_ = (xxh3_64(*body_) >> 11) | 1;
}

void StaticRoute::start(proxy::Exchange& exchange, const proxy::Match&, proxy::Services&) {
  response_.status = status_;
  response_.revision = tag_;
  response_.headers.assign(headers_);
  if (!body_->empty()) {
    response_.body.loan = body_;
    response_.body.pieces.push_back(*body_);
  }
  exchange.answer(response_);
}

}  // namespace sluice::lua
