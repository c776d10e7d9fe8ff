#include "proxy/remote/backend_route.h"

#include "proxy/ascii.h"
#include "proxy/module_call.h"
#include "proxy/remote/backend_clients.h"
#include "proxy/remote/request_writer.h"

namespace sluice::proxy {
namespace {

// May a request that failed without an answer be sent again? One with a condition that had been applied would be told that
// it does not hold.
// Source: RFC 9110, 9.2.2.
bool may_repeat(const Request& r) {
  if (is_safe(r.method)) return true;
  if (r.method != Method::put && r.method != Method::del) return false;
  for (const Header& h : r.headers)
    if ((h.name.size() == 8 && same_text(h.name, "if-match")) || (h.name.size() == 13 && same_text(h.name, "if-none-match"))) return false;
  return true;
}

}  // namespace

void BackendRoute::attach(Services& services) {
  for (const BackendPtr& b : pool_->backends()) {
    BackendClient* const client = services.use(b);
    if (!client) return clients_.clear();
    clients_.push_back(client);
  }
}

void BackendRoute::start(Exchange& exchange, const Match& match, Services& services) {
  const Request& request = exchange.request();
  if (clients_.empty()) {
    respond_error(refusal_, 502, Errc::backend, "this server has no connections to backends");
    return exchange.answer(refusal_);
  }
  // An exact pattern has nothing behind it: there the path is the whole one.
  const std::string_view path = !match.rest.empty() ? match.rest : match.captured.empty() ? std::string_view("/") : request.path;
  std::string_view key = exchange.own_key();
  if (key.empty()) key = distribution_key(path, request.query);
  if (key.empty()) key = path;
  BackendClient& client = *clients_[pool_->pick(key)];
  BackendClients& all = client.all();
  BackendCall& call = all.take_call();
  if (!append_request_head(call.head, request, path, client.backend().host_line)) {
    all.release(call);
    respond_error(refusal_, 502, Errc::backend, "the request goes round in a circle of nodes");
    return exchange.answer(refusal_);
  }
  call.exchange = &exchange;
  exchange.route_slot = call.index + 1;
  call.head_request = request.method == Method::head;
  call.may_repeat = may_repeat(request);
  call.body = request.body;
  client.start(call);
}

void BackendRoute::client_gone(Exchange& exchange) {
  if (exchange.route_slot == 0 || !is_safe(exchange.request().method) || clients_.empty()) return;
  BackendCall& call = clients_[0]->all().call(exchange.route_slot - 1);
  exchange.route_slot = 0;
  call.client->cancel(call);
  exchange.answer(refusal_);   // into nothing
}

}  // namespace sluice::proxy
