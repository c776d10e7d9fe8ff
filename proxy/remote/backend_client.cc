#include "proxy/remote/backend_client.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "proxy/log.h"
#include "proxy/remote/backend_clients.h"
#include "proxy/worker_loop.h"
#include "vm/base/check.h"

namespace sluice::proxy {
namespace {
// Units: bytes that are left of an answer nobody waits for, and worth reading to keep its connection.
constexpr std::uint64_t kDrained = 64 * 1024;
}  // namespace

BackendClient::BackendClient(BackendClients& all, BackendPtr backend)
    : all_(all),
      backend_(std::move(backend)),
      counters_(backend_->stats->cell(all.worker().index())),
      health_(backend_->spec.options) {}

BackendClient::~BackendClient() {
  WorkerLoop& w = worker();
  if (waited_at_us_ != 0) w.wheel().stop(waited_timer_);
  w.wheel().stop(retry_timer_);
  const auto drop = [this](BackendCall& call) {
    if (call.in_depth) backend_->depth.give_back(1);
    all_.release(call);
  };
  while (first_waiting_) {
    BackendCall& call = *first_waiting_;
    leave_queue(call);
    drop(call);
  }
  for (const auto& c : connections_) {
    if (c->state() == BackendConnection::State::closed) continue;
    BackendCall* const call = c->call();
    end(*c);
    if (!call) continue;
    counters_.in_flight.sub();
    w.counters().backend_in_flight.sub();
    drop(*call);
  }
  if (counted_down_) counters_.down.sub(), w.counters().backends_down.sub();
}

WorkerLoop& BackendClient::worker() { return all_.worker(); }

void BackendClient::start(BackendCall& call) {
  call.client = this;
  counters_.requests.add();
  worker().counters().backend_requests.add();
  if (options().down) return refuse(call, 502, Errc::backend, "the backend is taken down", 0);
  if (options().depth_limit != 0) {
    call.in_depth = backend_->depth.take(1);
    if (!call.in_depth) return refuse(call, 503, Errc::overload, "too many requests are under way to the backend", 1);
  }
  if (!health_.admit(call.on_trial)) {
    const std::uint64_t now = worker().now_us(), at = health_.retry_at_us();
    return refuse(call, 502, Errc::backend, "the backend is down", static_cast<std::uint32_t>(at > now ? (at - now) / 1'000'000 + 1 : 1));
  }
  note_health();
  call.deadline_us = worker().now_us() + std::uint64_t{options().connect_timeout_ms} * 1000;
  if (!first_waiting_)
    if (BackendConnection* const idle = take_idle()) return send_on(*idle, call);
  wait(call, false);
  pump();
}

void BackendClient::refuse(BackendCall& call, std::uint16_t status, Errc code, const char* why, std::uint32_t retry_after_s) {
  counters_.refused.add();
  worker().counters().backend_refused.add();
  respond_error(call.response, status, code, why);
  call.response.retry_after_s = retry_after_s;
  deliver(call);
}

void BackendClient::fail(BackendCall& call, Errc code, const char* why) {
  const bool late = code == Errc::backend_timeout;
  (late ? counters_.timeouts : counters_.errors).add();
  (late ? worker().counters().backend_timeouts : worker().counters().backend_errors).add();
  // What had come of an answer is not one.
  call.response.reset();
  respond_error(call.response, late ? 504 : code == Errc::payload_budget ? 503 : 502, code == Errc::limit ? Errc::backend : code, why);
  if (code == Errc::payload_budget) call.response.retry_after_s = 1;
  deliver(call);
}

void BackendClient::deliver(BackendCall& call) {
  if (call.in_depth) backend_->depth.give_back(1);
  call.in_depth = false;
  call.response.backend = backend_->name;
  if (Exchange* const exchange = call.exchange) {
    call.exchange = nullptr;
    exchange->route_slot = 0;
    // Others may be started in here.
    exchange->answer(call.response);
  }
  all_.release(call);
}

void BackendClient::cancel(BackendCall& call) {
  call.exchange = nullptr;
  if (call.state == BackendCall::State::waiting) {
    leave_queue(call);
    if (call.on_trial) health_.undecided(), note_health();
    return deliver(call);
  }
  SLUICE_ASSERT(call.state == BackendCall::State::sent);
  BackendConnection& c = *call.connection;
  if (c.written() && c.reader().left() <= kDrained) return;
  if (call.on_trial) health_.undecided(), note_health();
  --busy_;
  counters_.in_flight.sub();
  worker().counters().backend_in_flight.sub();
  end(c);
  deliver(call);
  pump();
}

void BackendClient::wait(BackendCall& call, bool first) {
  call.state = BackendCall::State::waiting;
  call.previous = first ? nullptr : last_waiting_;
  call.next = first ? first_waiting_ : nullptr;
  (call.previous ? call.previous->next : first_waiting_) = &call;
  (call.next ? call.next->previous : last_waiting_) = &call;
  ++waiting_;
  counters_.waiting.add();
  arm_waited(call.deadline_us);
}

void BackendClient::leave_queue(BackendCall& call) {
  (call.previous ? call.previous->next : first_waiting_) = call.next;
  (call.next ? call.next->previous : last_waiting_) = call.previous;
  call.previous = call.next = nullptr;
  --waiting_;
  counters_.waiting.sub();
}

// An early timer looks, and is set again: most calls never wait so long.
void BackendClient::arm_waited(std::uint64_t at_us) {
  if (waited_at_us_ != 0 && waited_at_us_ <= at_us) return;
  if (waited_at_us_ != 0) worker().wheel().stop(waited_timer_);
  waited_at_us_ = at_us;
  waited_timer_ = worker().start_timer_at(at_us, this, 0, on_waited, nullptr);
}

void BackendClient::on_waited(void* self, std::uint32_t) {
  BackendClient& me = *static_cast<BackendClient*>(self);
  me.waited_timer_ = {};
  me.waited_at_us_ = 0;
  const std::uint64_t now = me.worker().now_us();
  // Answering may change the list: it is looked at from its beginning after each.
  for (BackendCall* call = me.first_waiting_; call;) {
    if (call->deadline_us > now) {
      call = call->next;
      continue;
    }
    me.leave_queue(*call);
    if (call->on_trial) me.note_failure(true, "no connection in time", 0);
    me.fail(*call, Errc::backend_timeout, "no connection to the backend was free in time");
    call = me.first_waiting_;
  }
  for (const BackendCall* call = me.first_waiting_; call; call = call->next) me.arm_waited(call->deadline_us);
}

void BackendClient::pump() {
  while (first_waiting_) {
    if (BackendConnection* const idle = take_idle()) {
      BackendCall& call = *first_waiting_;
      leave_queue(call);
      send_on(*idle, call);
    } else if (connecting_ >= waiting_ || connecting_ + busy_ >= options().connections || !open_one()) {
      return;
    }
  }
}

// False: it failed at once, and is told.
bool BackendClient::open_one() {
  if (spare_.empty()) {
    connections_.push_back(std::make_unique<BackendConnection>(*this));
    spare_.reserve(connections_.size());
    idle_.reserve(connections_.size());
    spare_.push_back(connections_.back().get());
  }
  BackendConnection& c = *spare_.back();
  spare_.pop_back();
  ++connecting_;
  counters_.connections.add();
  if (c.open(worker().now_us() + std::uint64_t{options().connect_timeout_ms} * 1000)) return true;
  connect_failed(c);
  return false;
}

void BackendClient::send_on(BackendConnection& c, BackendCall& call) {
  // Its time runs from its first sending: one that is sent again has no more than the rest.
  if (!call.repeated) call.deadline_us = worker().now_us() + std::uint64_t{options().read_timeout_ms} * 1000;
  call.state = BackendCall::State::sent;
  ++busy_;
  counters_.in_flight.add();
  worker().counters().backend_in_flight.add();
  c.send(call);
}

BackendConnection* BackendClient::take_idle() {
  while (!idle_.empty()) {
    BackendConnection& c = *idle_.back();
    idle_.pop_back();
    if (c.is_fresh()) return &c;
    end(c);
  }
  return nullptr;
}

void BackendClient::park(BackendConnection& c) {
  idle_.push_back(&c);
  c.park(worker().now_us() + std::uint64_t{options().idle_timeout_ms} * 1000);
}

void BackendClient::end(BackendConnection& c) {
  c.close();
  spare_.push_back(&c);
  counters_.connections.sub();
}

void BackendClient::connected(BackendConnection& c) {
  --connecting_;
  counters_.connects.add();
  worker().counters().backend_connects.add();
  health_.connected();
  note_health();
  park(c);
  pump();
}

void BackendClient::connect_failed(BackendConnection& c) {
  --connecting_;
  counters_.connect_failures.add();
  const int error = c.error();
  end(c);
  note_failure(true, "cannot connect", error);
  // With none that could take them, those that wait would meet the same, one after the other.
  if (health_.state() == Health::State::down || connecting_ + busy_ == 0) fail_waiting("the backend cannot be connected to");
}

void BackendClient::answered(BackendConnection& c, BackendCall& call, bool reusable) {
  --busy_;
  counters_.in_flight.sub();
  worker().counters().backend_in_flight.sub();
  counters_.answers.add();
  note_success();
  if (reusable) park(c);
  else end(c);
  pump();
  deliver(call);
}

void BackendClient::failed(BackendConnection& c, BackendCall& call, Errc code, const char* why, bool nothing_came) {
  --busy_;
  counters_.in_flight.sub();
  worker().counters().backend_in_flight.sub();
  // A connection that was kept may have been closed just when it was used again: that says nothing of the backend.
  const bool stale = nothing_came && c.served() > 0 && code == Errc::backend;
  const int error = c.error();
  end(c);
  // An answer that is too large for us comes from a backend that is well.
  if (code == Errc::limit || code == Errc::payload_budget) note_success();
  else if (!stale) note_failure(call.on_trial, why, error);
  const bool again = nothing_came && code == Errc::backend && call.may_repeat && !call.repeated && call.exchange && !health_.bad();
  if (again || (stale && call.on_trial && call.may_repeat && !call.repeated && call.exchange)) {
    call.repeated = true;
    counters_.retries.add();
    worker().counters().backend_retries.add();
    wait(call, true);
    return pump();
  }
  if (stale && call.on_trial) health_.undecided(), note_health();
  if (health_.state() == Health::State::down) fail_waiting("the backend is down");
  fail(call, code, why);
  pump();
}

void BackendClient::idle_ended(BackendConnection& c) {
  std::erase(idle_, &c);
  end(c);
}

void BackendClient::note_success() {
  if (!health_.succeeded(worker().now_us())) return;
  note_health();
  worker().wheel().stop(retry_timer_);
  say("is up again", nullptr, 0);
}

void BackendClient::note_failure(bool trial, const char* why, int error) {
  if (!health_.failed(worker().now_us(), trial, all_.chance())) return;
  note_health();
  say("is down", why, error);
  worker().wheel().stop(retry_timer_);
  retry_timer_ = worker().start_timer_at(health_.retry_at_us(), this, 0, on_retry, nullptr);
  // They are no better than the one that failed.
  while (!idle_.empty()) {
    BackendConnection& c = *idle_.back();
    idle_.pop_back();
    end(c);
  }
}

void BackendClient::on_retry(void* self, std::uint32_t) {
  BackendClient& me = *static_cast<BackendClient*>(self);
  me.retry_timer_ = {};
  me.health_.try_again();
  // All are busy with what was sent before: a request finds out.
  if (me.connecting_ + me.busy_ >= me.options().connections) me.health_.connected();
  else me.open_one();
  me.note_health();
}

void BackendClient::fail_waiting(const char* why) {
  // Those that are here now: what is started while they are answered has a chance of its own.
  for (std::uint32_t n = waiting_; n > 0 && first_waiting_; --n) {
    BackendCall& call = *first_waiting_;
    leave_queue(call);
    fail(call, Errc::backend, why);
  }
}

void BackendClient::note_health() {
  if (health_.bad() == counted_down_) return;
  counted_down_ = health_.bad();
  if (counted_down_) counters_.down.add(), worker().counters().backends_down.add();
  else counters_.down.sub(), worker().counters().backends_down.sub();
}

void BackendClient::say(const char* what, const char* why, int error) {
  Log* const log = backend_->log;
  if (!log) return;
  std::string line = "backend " + backend_->name + ": " + what;
  if (why) line.append(": ").append(why);
  if (error != 0) line.append(" (").append(strerrordesc_np(error) ? strerrordesc_np(error) : "an unknown error").append(")");
  if (!why) return log->event(LogLevel::info, "backend_up", line, {{"backend", backend_->name}});
  const std::uint64_t wait_ms = health_.wait_us() / 1000;
  line.append("; next try in ").append(std::to_string(wait_ms)).append(" ms");
  log->event(LogLevel::warn, "backend_down", line, {{"backend", backend_->name}, {"reason", why}, {"retry_ms", wait_ms}});
}

}  // namespace sluice::proxy
