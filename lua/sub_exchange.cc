#include "lua/sub_exchange.h"

#include "lua/context.h"

namespace sluice::lua {

bool SubExchange::freeze(const RequestObject& from, const proxy::Request* around) {
  // Sized first: views into the arena must not move.
  const std::string_view written = from.owned ? std::string_view() : from.live->target;   // by the client
  std::size_t bytes = from.its_path().size() + written.size() + (from.owned ? from.own_key.size() : from.live->method_text.size());
  const auto each_query = [&](auto&& f) {
    if (from.owned)
      for (std::size_t i = 0; i < from.query_count; ++i) f(from.query[i].name, from.query[i].value);
    else
      for (const proxy::Parameter& p : from.live->query) f(p.name, p.value);
  };
  const auto each_header = [&](auto&& f) {
    if (from.owned)
      for (std::size_t i = 0; i < from.header_count; ++i) f(from.headers[i].name, from.headers[i].value);
    else
      for (const proxy::Header& h : from.live->headers) f(h.name, h.value);
  };
  const auto count = [&](std::string_view name, std::string_view value) { bytes += name.size() + value.size(); };
  each_query(count);
  each_header(count);
  for (const auto& c : from.captured) bytes += c.name.size() + c.value.size();
  if (around) bytes += around->client_ip.size() + around->tls_peer_cn.size();
  arena_.clear();
  arena_.reserve(bytes);
  const auto keep = [&](std::string_view text) {
    const std::size_t at = arena_.size();
    arena_.append(text);
    return std::string_view(arena_).substr(at, text.size());
  };
  request_.method = from.its_method();
  request_.method_text = from.owned ? proxy::name(request_.method) : keep(from.live->method_text);
  request_.path = keep(from.its_path());
  request_.target = keep(written);
  own_key_ = from.owned ? keep(from.own_key) : std::string_view();
  request_.query.clear();
  each_query([&](std::string_view n, std::string_view v) { const auto k = keep(n); request_.query.push_back({k, keep(v)}); });
  request_.headers.clear();
  each_header([&](std::string_view n, std::string_view v) { const auto k = keep(n); request_.headers.push_back({k, keep(v)}); });
  match_.captured.clear();
  for (const auto& c : from.captured) {
    const auto k = keep(c.name);
    match_.captured.push_back({k, keep(c.value)});
  }
  match_.rest = request_.path;
  match_.allow = 0;
  request_.client_ip = around ? keep(around->client_ip) : std::string_view();
  request_.tls_peer_cn = around ? keep(around->tls_peer_cn) : std::string_view();
  request_.tag = around ? around->tag : std::string_view();   // of the worker, not of the request
  request_.fd = around ? around->fd : -1;
  request_.minor = around ? around->minor : 1;
  request_.body.reset();
  if (!from.owned) {
    request_.body = from.live->body;
    request_.has_length = from.live->has_length;
  } else {
    request_.has_length = true;
    if (from.has_body && !from.body.empty()) {
      request_.body = proxy::Buffer::copy(from.body, &runtime_.services->budget());
      if (!request_.body) return false;
    }
  }
  return true;
}

void SubExchange::send(Context& parent, std::uint32_t index, proxy::Route& route, bool behind_write) {
  parent_ = &parent;
  index_ = index;
  route_ = &route;
  behind_write_ = behind_write;
  route_slot = 0;
  passed_to = nullptr;
  runtime_.services->keep();
  route.start(*this, match_, *runtime_.services);
}

void SubExchange::detach() {
  parent_ = nullptr;
  route_->client_gone(*this);
}

void SubExchange::drop() { recycle(); }

bool SubExchange::gone() const { return parent_ == nullptr || parent_->cancelled(); }

void SubExchange::answer(proxy::Response& response) {
  Context* parent = parent_;
  const std::uint32_t index = index_;
  recycle();
  if (parent) parent->sub_answered(index, response);
  response.reset();
  runtime_.services->let_go();
}

void SubExchange::hold_writes(bool held) {
  if (parent_) parent_->sub_holds_writes(index_, held);
}

void SubExchange::recycle() {
  parent_ = nullptr;
  route_ = nullptr;
  request_.body.reset();
  runtime_.free_subs.push_back(this);
}

}  // namespace sluice::lua
