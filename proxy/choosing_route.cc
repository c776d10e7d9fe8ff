#include "proxy/choosing_route.h"

namespace sluice::proxy {

void answer_unrouted(Exchange& exchange, std::uint32_t allow, Response& scratch) {
  if (allow == 0) {
    respond_error(scratch, 404, Errc::route, "no such path");
  } else {
    if (allow & method_bit(Method::get)) allow |= method_bit(Method::head);
    if (exchange.request().method == Method::options) scratch.status = 204;
    else respond_error(scratch, 405, Errc::method, "the path does not take this method");
    scratch.allow = allow | method_bit(Method::options);
  }
  exchange.answer(scratch);
}

template <class AnyRouter>
void RouterRoute<AnyRouter>::start(Exchange& exchange, const Match& match, Services& services) {
  // Its own: an answer may start the next request of the connection, which may come here again, inside start() below.
  Match inner;
  inner.captured.swap(spare_);
  const std::string_view path = match.rest.empty() ? std::string_view("/") : match.rest;
  Route* const route = router_.find(exchange.request().method, path, inner);
  if (route == nullptr) {
    answer_unrouted(exchange, inner.allow, refusal_);
  } else {
    inner.captured.insert(inner.captured.begin(), match.captured.begin(), match.captured.end());
    exchange.passed_to = route;
    route->start(exchange, inner, services);
  }
  inner.captured.clear();
  spare_.swap(inner.captured);
}
template class RouterRoute<Router>;
template class RouterRoute<WordRouter>;

void MethodsRoute::start(Exchange& exchange, const Match& match, Services& services) {
  Route* const route = methods_.find(exchange.request().method);
  if (route == nullptr) return answer_unrouted(exchange, methods_.allow(), refusal_);
  exchange.passed_to = route;
  route->start(exchange, match, services);
}

}  // namespace sluice::proxy
