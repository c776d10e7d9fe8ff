// The exchange's own half of the contract in proxy/route.h: what a route may call, and when the object goes back.
#include "proxy/connection.h"
#include "proxy/worker_loop.h"

namespace sluice::proxy {

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
  ready = true;
  connection->answered(*this);
}

bool ConnectionExchange::behind_write() const { return connection && connection->behind_write(*this); }

void ConnectionExchange::hold_writes(bool held) {
  if (held == holds_writes) return;
  holds_writes = held;
  if (connection) connection->held(held ? 1 : -1);
}

void ConnectionExchange::release_generation() {
  if (live) worker_.let_go(*live);
  live = nullptr;
}

void ConnectionExchange::leave_connection() {
  if (holds_writes && connection) connection->held(-1);
  connection = nullptr;
  next = nullptr;
  if (!started || returned) worker_.give_back(*this);
}

void ConnectionExchange::reset() {
  slot.reset();
  response.reset();
  // One large answer must not keep its room for good.
  constexpr std::size_t retained = 64 * 1024;
  if (response.body.text.capacity() > retained) response.body.text = std::string();
  connection = nullptr;
  live = nullptr;
  route = nullptr;
  next = nullptr;
  arrived_us = 0;
  route_slot = 0;
  whole = blocked = started = returned = ready = expired = false;
  safe = true;
  module = holds_writes = counted_active = counted_unsafe = false;
  close = say_keep_alive = wants_continue = continue_noted = false;
}

}  // namespace sluice::proxy
