// The exchange's own half of the contract in proxy/route.h: what a route may call, and when the object goes back.
#include <utility>

#include "proxy/connection.h"
#include "proxy/worker_loop.h"

namespace sluice::proxy {
namespace {
// Units: answers up to so many bytes are not charged to the budget; how many there are is bounded by the pipelines.
constexpr std::size_t kUncharged = 4096;
}  // namespace

void ConnectionExchange::answer(Response& given) {
  SLUICE_ASSERT(started && !returned);
  returned = true;
  hold_writes(false);
  Counters& counters = worker_.counters();
  counters.active.sub();
  if (counted_active) worker_.limits().active.give_back(1);
  counted_active = false;
  release_generation();
  if (gone()) {
    counters.expired.add();
    given.reset();
    // An expired one whose 504 still waits in the queue goes back from there.
    if (!connection) worker_.give_back(*this);
    return;
  }
  swap(response, given);
  given.reset();
  // What is no final status would break the framing of everything behind it.
  if (response.status < 200 || response.status > 599)
    respond_error(response, 500, Errc::lua, "the route answered with a status that HTTP does not have");
  // The request's own bytes are done with; where the answer repeats them it counts them itself.
  slot.request.body.reset();
  charge();
  ready = true;
  connection->answered(*this);
}

// An answer waits for those before it and for a slow reader, and is payload that the process holds for so long. Buffers
// and loans are accounted for where they come from.
void ConnectionExchange::charge() {
  const std::size_t bytes = response.body.text.size();
  if (bytes <= kUncharged) return;
  if (worker_.limits().payload.take(bytes)) {
    charged_bytes_ = bytes;
    return;
  }
  worker_.counters().refused_budget.add();
  response.reset();
  respond_error(response, 503, Errc::payload_budget, "too many payload bytes are held now");
  response.retry_after_s = 1;
}

bool ConnectionExchange::behind_write() const { return connection && connection->behind_write(*this); }

void ConnectionExchange::hold_writes(bool held) {
  if (held == holds_writes) return;
  holds_writes = held;
  if (connection) connection->held(held ? 1 : -1);
}

void ConnectionExchange::release_generation() {
  if (live) live->end(*this);
  live = nullptr;
}

void ConnectionExchange::leave_connection() {
  if (holds_writes && connection) connection->held(-1);
  connection = nullptr;
  next = nullptr;
  if (!started || returned) return worker_.give_back(*this);
  keep_client();
}

// The connection's own bytes are soon those of another client.
void ConnectionExchange::keep_client() {
  Request& r = slot.request;
  const std::size_t ip_bytes = r.client_ip.size(), tag_bytes = r.tag.size();
  client_.assign(r.client_ip).append(r.tag).append(r.tls_peer_cn);
  r.client_ip = std::string_view(client_).substr(0, ip_bytes);
  r.tag = std::string_view(client_).substr(ip_bytes, tag_bytes);
  r.tls_peer_cn = std::string_view(client_).substr(ip_bytes + tag_bytes);
}

void ConnectionExchange::reset() {
  slot.reset();
  response.reset();
  if (charged_bytes_) worker_.limits().payload.give_back(std::exchange(charged_bytes_, 0));
  connection = nullptr;
  live = nullptr;
  route = nullptr;
  next = nullptr;
  arrived_us = 0;
  route_slot = 0;
  passed_to = nullptr;
  whole = blocked = started = returned = ready = expired = false;
  safe = true;
  module = holds_writes = counted_active = counted_unsafe = false;
  close = say_keep_alive = wants_continue = continue_noted = false;
}

}  // namespace sluice::proxy
