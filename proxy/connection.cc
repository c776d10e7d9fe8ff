#include "proxy/connection.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "proxy/http_writer.h"
#include "proxy/tls_session.h"
#include "proxy/worker_loop.h"

namespace sluice::proxy {
namespace {
constexpr std::uint64_t kLinger_us = 1'000'000;       // for a client to read our last answer
constexpr std::uint64_t kHalfClosed_us = 1'000'000;   // for answers to a client that has said it sends no more
constexpr std::uint64_t kDiscarded = 256 * 1024;      // bytes read and dropped behind the last request
constexpr std::uint64_t kNever = ~std::uint64_t{0};
constexpr std::uint64_t kLoan_us = 2'000'000;         // for a reader to take a lent document where it lies
constexpr std::uint64_t kLoanMost_us = 30'000'000;    // the same when the budget has no room to copy it
constexpr std::size_t kComposed = 64 * 1024;          // own bytes in one Output: what a slow reader holds beside the budget
constexpr std::size_t kLentPieces = 512;

// Whether a window of a transfer is over without the bytes that its rate asks for; else a full one starts anew. Counted
// by window, not from the start: a fast first megabyte earns nobody an hour of silence.
bool too_slow(Connection::Pace& pace, std::uint64_t now_us, std::uint64_t bytes, std::uint32_t window_ms, std::uint32_t rate) {
  if (now_us < pace.since_us + std::uint64_t{window_ms} * 1000) return false;
  if (bytes - pace.bytes < std::uint64_t{window_ms} * rate / 1000 || bytes == pace.bytes) return true;
  pace = {now_us, bytes};
  return false;
}

// The document's bytes out of the store's mapping, into room of `budget`'s. False: there is none.
bool take_over(Body& body, Budget& budget) {
  if (!body.loan) return true;
  Buffer copy = Buffer::make(body.size(), &budget);
  if (!copy) return false;
  for (const std::string_view piece : body.pieces) copy.append(piece);
  body.reset();
  body.buffer_size = copy.size();
  body.buffer = std::move(copy);
  return true;
}
}  // namespace

Connection::Connection(WorkerLoop& worker) : worker_(worker) {}
Connection::~Connection() = default;

void Connection::open(int fd, std::string_view client_ip, bool refused, std::string_view tag, const std::shared_ptr<const Tls>& tls) {
  fd_ = fd;
  tag_ = tag;
  count_ = 0;
  first_ = last_ = filling_ = nullptr;
  timer_ = {};
  timer_at_us_ = end_since_us_ = 0;
  incoming_ = outgoing_ = {};
  drained_bytes_ = served_ = discarded_ = 0;
  unsafe_modules_ = unsafe_routes_ = blocked_ = 0;
  held_writes_ = 0;
  counted_ = !refused;
  read_closed_ = no_more_requests_ = unread_ = closing_ = lingering_ = false;
  processing_ = dirty_ = paused_ = write_untracked_ = fresh_tls_ = false;
  phase_ = Phase::none;
  ip_size_ = static_cast<std::uint8_t>(std::min(client_ip.size(), ip_.size()));
  if (ip_size_) std::memcpy(ip_.data(), client_ip.data(), ip_size_);
  idle_since_us_ = worker_.now_us();
  if (tls && !begin_tls(tls)) return lose();
  if (refused) return say_and_close(503, Errc::overload, "too many connections are open");
  settle();
}

void Connection::say_and_close(std::uint16_t status, Errc code, std::string_view line) {
  Response answer;
  respond_error(answer, status, code, line);
  if (status == 503) answer.retry_after_s = 1;
  pending_ = worker_.take_output();
  HeadFacts facts;
  facts.close = true;
  write_response(*pending_, answer, facts, worker_.date_line());
  drained_bytes_ = 0;
  outgoing_ = {worker_.now_us(), 0};
  pending_since_us_ = outgoing_.since_us;
  loans_until_us_ = pending_since_us_ + kLoan_us;
  no_more_requests_ = unread_ = closing_ = true;
  flush();
}

void Connection::on_event(evutil_socket_t, short what, void* self) {
  Connection& c = *static_cast<Connection*>(self);
  if (what & EV_READ) c.read_some();
  if (c.is_open() && (what & EV_WRITE)) c.flush();
}

void Connection::read_some() {
  if (tls_) return read_tls();
  const ssize_t n = recv(fd_, worker_.read_buffer(), WorkerLoop::kReadBytes, 0);
  if (n < 0) {
    if (errno != EAGAIN && errno != EINTR) lose();
    return;
  }
  if (n == 0) return ended_by_client();
  if (no_more_requests_) return discard(static_cast<std::size_t>(n));
  process({worker_.read_buffer(), static_cast<std::size_t>(n)});
  flush();
}

void Connection::discard(std::size_t bytes) {
  unread_ = true;
  discarded_ += bytes;
  if (discarded_ <= kDiscarded) return;
  if (lingering_) lose();
  else settle();                      // stops reading
}

void Connection::ended_by_client() {
  read_closed_ = true;
  no_more_requests_ = true;
  drop_filling();
  stash_.reset();
  if (lingering_ || (!first_ && !pending_)) return lose();
  // It may only have said that it sends no more: answers still go out. See check_time().
  end_since_us_ = worker_.now_us();
  flush();
}

void Connection::process(std::string_view bytes) {
  processing_ = true;
  while (!bytes.empty() && is_open()) {
    if (no_more_requests_) {
      discarded_ += bytes.size();
      unread_ = true;
      break;
    }
    if (!filling_) {
      if (count_ >= std::max(1u, worker_.settings().pipeline)) {
        paused_ = true;
        stash_ = std::make_unique<std::string>(bytes);
        break;
      }
      parser_.begin(begin_exchange().slot, worker_.settings(), &worker_.limits().payload);
    }
    bytes.remove_prefix(parser_.feed(bytes));
    const HttpParser::State state = parser_.state();
    if (state == HttpParser::State::whole || state == HttpParser::State::refused) arrived(*filling_);
    else note_progress();
  }
  processing_ = false;
}

ConnectionExchange& Connection::begin_exchange() {
  ConnectionExchange& e = worker_.take_exchange();
  e.connection = this;
  e.live = &worker_.current();
  e.live->begin(e);
  e.begun_us = worker_.now_us();
  e.slot.request.client_ip = {ip_.data(), ip_size_};
  e.slot.request.tls_peer_cn = tls_ ? tls_->peer_cn() : std::string_view();
  e.slot.request.tag = tag_;
  e.slot.request.fd = fd_;
  if (last_) last_->next = &e;
  else first_ = &e;
  last_ = filling_ = &e;
  ++count_;
  return e;
}

void Connection::note_progress() {
  if (!parser_.started()) return;
  const Phase phase = parser_.state() == HttpParser::State::body ? Phase::body : Phase::head;
  if (phase != phase_) {
    phase_ = phase;
    incoming_ = {worker_.now_us(), 0};
  }
  if (!parser_.awaits_continue()) {
    filling_->wants_continue = false;
  } else if (!filling_->continue_noted) {
    filling_->wants_continue = filling_->continue_noted = true;
  }
}

void Connection::arrived(ConnectionExchange& e) {
  const Refusal& refusal = parser_.refusal();
  const Settings& settings = e.live->settings();
  filling_ = nullptr;
  phase_ = Phase::none;
  e.whole = true;
  e.wants_continue = false;
  e.arrived_us = worker_.now_us();
  ++served_;
  worker_.counters().requests.add();
  const bool last = settings.requests_per_connection && served_ >= settings.requests_per_connection;
  e.close = refusal.fatal || last || !parser_.keep_alive();
  e.say_keep_alive = e.slot.request.minor == 0;
  if (e.close) no_more_requests_ = true;
  if (!refusal.status) return route(e);
  if (refusal.fatal) unread_ = true;
  (refusal.code == Errc::payload_budget ? worker_.counters().refused_budget : worker_.counters().refused_requests).add();
  answer_here(e, refusal.status, refusal.code, refusal.line);
  if (refusal.code == Errc::payload_budget) e.response.retry_after_s = 1;
}

void Connection::answer_here(ConnectionExchange& e, std::uint16_t status, Errc code, std::string_view line) {
  respond_error(e.response, status, code, line);
  e.ready = true;
  answered(e);
}

void Connection::route(ConnectionExchange& e) {
  const Request& r = e.slot.request;
  Match& match = worker_.match();
  match.rest = {};
  match.captured.clear();
  match.allow = 0;
  constexpr auto bit = [](Method m) { return 1u << static_cast<unsigned>(m); };
  if (r.path == "*") {
    match.allow = bit(Method::get) | bit(Method::head) | bit(Method::post) | bit(Method::put) | bit(Method::del);
  } else {
    e.route = e.live->generation.routes->find_for(r, match);
  }
  if (!e.route) {
    if (match.allow == 0) return answer_here(e, 404, Errc::route, "no such path");
    if (match.allow & bit(Method::get)) match.allow |= bit(Method::head);
    e.response.allow = match.allow | bit(Method::options);
    if (r.method != Method::options) return answer_here(e, 405, Errc::method, "the path does not take this method");
    e.response.status = 204;
    e.ready = true;
    return answered(e);
  }
  e.safe = is_safe(r.method);
  e.module = e.route->is_module();
  const bool waits = e.module ? unsafe_routes_ > 0 : unsafe_routes_ + unsafe_modules_ > 0;
  if (!e.safe) {
    e.counted_unsafe = true;
    ++(e.module ? unsafe_modules_ : unsafe_routes_);
  }
  if (waits) {
    e.blocked = true;
    ++blocked_;
    return;
  }
  start(e, match);
}

void Connection::start(ConnectionExchange& e, const Match& match) {
  ProcessLimits& limits = worker_.limits();
  if (limits.counts_active.load(std::memory_order_relaxed)) {
    if (!limits.active.take(1)) {
      worker_.counters().refused_active.add();
      answer_here(e, 503, Errc::overload, "too many requests are being served");
      e.response.retry_after_s = 1;
      return;
    }
    e.counted_active = true;
  }
  worker_.counters().active.add();
  e.started = true;
  e.route->start(e, match, *e.live);
}

// A walk over what is in flight, and only when something waited: the rule of http.md for each against those before it.
void Connection::start_blocked() {
  std::uint32_t unsafe_modules = 0, unsafe_routes = 0;
  for (ConnectionExchange* e = first_; e && blocked_ > 0; e = e->next) {
    if (!e->whole || e->ready) continue;
    if (e->blocked && (e->module ? unsafe_routes == 0 : unsafe_routes + unsafe_modules == 0)) {
      e->blocked = false;
      --blocked_;
      Match& match = worker_.match();
      match.rest = {};
      match.captured.clear();
      match.allow = 0;
      const Request& r = e->slot.request;
      // The same table and path as when it arrived: only the captures are made anew.
      e->live->generation.routes->find_for(r, match);
      start(*e, match);
    }
    if (!e->safe && !e->ready) ++(e->module ? unsafe_modules : unsafe_routes);
  }
}

void Connection::answered(ConnectionExchange& e) {
  if (e.counted_unsafe) {
    e.counted_unsafe = false;
    --(e.module ? unsafe_modules_ : unsafe_routes_);
  }
  if (!processing_) worker_.mark_dirty(*this);
}

bool Connection::behind_write(const ConnectionExchange& exchange) const {
  if (write_untracked_) return true;
  if (held_writes_ == 0) return false;
  for (const ConnectionExchange* e = first_; e && e != &exchange; e = e->next)
    if (e->holds_writes) return true;
  return false;
}

bool Connection::compose(Output& out) {
  const std::string_view date = worker_.date_line();
  while (first_ && first_->ready && out.own_bytes() < kComposed && out.lent_count() < kLentPieces) {
    ConnectionExchange& e = *first_;
    const Request& request = e.slot.request;
    Response& response = e.response;
    HeadFacts facts;
    facts.head_request = request.method == Method::head;
    // While the worker ends, the answer behind which nothing has come is the last.
    facts.close = e.close || response.close || (worker_.closes() && &e == last_ && !stash_);
    facts.say_keep_alive = e.say_keep_alive;
    if (response.status == 200 && response.revision && (request.method == Method::get || facts.head_request) &&
        none_match_names(request, response.revision)) {
      response.status = 304;
      response.body.reset();
    }
    worker_.counters().answers.add();
    if (write_response(out, response, facts, date)) {
      pop_front();
      out.hold(&e);
    } else {
      pop_front();
      e.leave_connection();
    }
    if (facts.close) return true;
  }
  if (first_ && first_->wants_continue) {
    first_->wants_continue = false;
    incoming_ = {worker_.now_us(), 0};   // the body was not asked for until now
    out.append("HTTP/1.1 100 Continue\r\n\r\n");
  }
  return false;
}

void Connection::pop_front() {
  ConnectionExchange* const e = first_;
  first_ = e->next;
  if (!first_) last_ = nullptr;
  e->next = nullptr;
  --count_;
  if (e->holds_writes) write_untracked_ = true;
}

bool Connection::write_pending() {
  if (tls_) return write_tls();
  while (!pending_->done()) {
    const ssize_t n = pending_->write_to(fd_);
    if (n >= 0) {
      drained_bytes_ += static_cast<std::uint64_t>(n);
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) lose();
    return false;
  }
  release_output();
  return true;
}

void Connection::release_output() {
  for (ConnectionExchange* e : pending_->held()) e->leave_connection();
  pending_->held().clear();
  worker_.give_back(std::move(pending_));
}

// A snapshot that a slow reader holds keeps every page that later commits free, so the file would grow for as long as
// the reader likes: what is left of a document is then copied, which the budget bounds.
bool Connection::end_loans() {
  Budget& budget = worker_.limits().payload;
  std::vector<ConnectionExchange*>& held = pending_->held();
  if (std::any_of(held.begin(), held.end(), [](const ConnectionExchange* e) { return bool(e->response.body.loan); })) {
    if (!pending_->take_over(budget)) return false;
    for (ConnectionExchange* e : held) e->leave_connection();
    held.clear();
  }
  for (ConnectionExchange* e = first_; e; e = e->next)
    if (e->ready && !take_over(e->response.body, budget)) return false;
  loans_until_us_ = worker_.now_us() + kLoan_us;   // for those that get ready from here on
  return true;
}

void Connection::flush() {
  if (!is_open() || processing_) return;
  for (;;) {
    if (blocked_) {
      processing_ = true;
      start_blocked();
      processing_ = false;
    }
    if (pending_) {
      if (!write_pending()) break;
      if (closing_) return finish();
    }
    if (first_ && (first_->ready || first_->wants_continue)) {
      pending_ = worker_.take_output();
      drained_bytes_ = 0;
      outgoing_ = {worker_.now_us(), 0};
      pending_since_us_ = outgoing_.since_us;
      loans_until_us_ = pending_since_us_ + kLoan_us;
      closing_ = compose(*pending_);
      continue;
    }
    if (!paused_ || count_ >= std::max(1u, worker_.settings().pipeline)) break;
    paused_ = false;
    const std::unique_ptr<std::string> bytes = std::move(stash_);
    if (bytes) process(*bytes);
  }
  if (!is_open() || (tls_ && !flush_tls())) return;
  idle_since_us_ = worker_.now_us();
  settle();
}

void Connection::finish() {
  detach_all();                       // a route ended the connection before those behind it
  shutdown(fd_, SHUT_WR);
  if (read_closed_) return lose();
  // Closing over unread bytes resets the connection, and our answer with it.
  const ssize_t n = recv(fd_, worker_.read_buffer(), WorkerLoop::kReadBytes, 0);
  if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR) || (n < 0 && !unread_)) return lose();
  lingering_ = no_more_requests_ = true;
  discarded_ = 0;
  end_since_us_ = worker_.now_us();
  settle();
}

void Connection::drop_filling() {
  if (!filling_) return;
  ConnectionExchange* const e = filling_;
  filling_ = nullptr;
  phase_ = Phase::none;
  if (first_ == e) {
    first_ = last_ = nullptr;
  } else {
    ConnectionExchange* before = first_;
    while (before->next != e) before = before->next;
    before->next = nullptr;
    last_ = before;
  }
  --count_;
  e->leave_connection();
}

void Connection::detach_all() {
  bool lost = false;
  while (first_) {
    ConnectionExchange& e = *first_;
    pop_front();
    const bool running = e.started && !e.returned;
    Route* const route = e.route;
    const bool told = e.expired;
    lost |= running;
    e.leave_connection();
    if (running && !told) route->client_gone(e);
  }
  filling_ = nullptr;
  blocked_ = 0;
  if (lost) worker_.counters().clients_gone.add();
}

void Connection::lose() {
  if (!is_open()) return;
  event_.stop();
  if (tls_) say_farewell();
  close(fd_);
  fd_ = -1;
  worker_.wheel().stop(timer_);
  timer_at_us_ = 0;
  const bool was_processing = processing_;
  processing_ = true;                 // what detaching answers is not to be flushed
  detach_all();
  if (pending_) release_output();
  stash_.reset();
  if (tls_) drop_tls();
  processing_ = was_processing;
  worker_.closed(*this);
}

bool Connection::idle() const { return !pending_ && (!first_ || (first_ == filling_ && !parser_.started())); }

void Connection::settle() {
  if (idle() && !lingering_ && (read_closed_ || (worker_.draining() && !greeting()))) return lose();
  const bool reads = !read_closed_ && !paused_ && discarded_ <= kDiscarded;
  const bool writes = tls_ ? wire_ != nullptr : pending_ != nullptr;
  event_.watch(worker_.loop(), fd_, static_cast<short>((reads ? EV_READ : 0) | (writes ? EV_WRITE : 0)), on_event, this);
  const std::uint64_t next = next_deadline();
  if (next == kNever || (timer_at_us_ && timer_at_us_ <= next)) return;   // an early timer looks and is set again
  worker_.wheel().stop(timer_);
  timer_at_us_ = next;
  timer_ = worker_.start_timer_at(next, this, 0, on_timer, nullptr);
}

std::uint64_t Connection::next_deadline() const {
  const Settings& s = worker_.settings();
  if (lingering_) return end_since_us_ + kLinger_us;
  if (shaking() || (worker_.draining() && greeting())) return greeting_until_us_;
  if (idle()) return idle_since_us_ + std::uint64_t{s.idle_timeout_ms} * 1000;
  std::uint64_t next = kNever;
  if (pending_) next = std::min({next, outgoing_.since_us + std::uint64_t{s.drain_timeout_ms} * 1000, loans_until_us_});
  if (phase_ == Phase::head) next = std::min(next, incoming_.since_us + std::uint64_t{s.head_timeout_ms} * 1000);
  if (phase_ == Phase::body && !filling_->wants_continue)
    next = std::min(next, incoming_.since_us + std::uint64_t{s.body_timeout_ms} * 1000);
  if (read_closed_) next = std::min(next, end_since_us_ + kHalfClosed_us);
  for (const ConnectionExchange* e = first_; e; e = e->next)
    if (e->whole && !e->ready) {
      // The oldest: the others came later and have as long.
      next = std::min(next, e->arrived_us + std::uint64_t{s.request_timeout_ms} * 1000);
      break;
    }
  return next;
}

void Connection::on_timer(void* self, std::uint32_t) {
  Connection& c = *static_cast<Connection*>(self);
  c.timer_ = {};
  c.timer_at_us_ = 0;
  c.check_time();
}

void Connection::check_time() {
  const Settings& s = worker_.settings();
  const std::uint64_t now = worker_.now_us();
  Counters& counters = worker_.counters();
  if (lingering_) {
    if (now >= end_since_us_ + kLinger_us) return lose();
    return settle();
  }
  if (shaking()) {
    if (now < greeting_until_us_) return settle();
    counters.timeouts.add();
    return lose();
  }
  if (idle()) {
    if (now >= idle_since_us_ + std::uint64_t{s.idle_timeout_ms} * 1000) return lose();
    return settle();
  }
  if (pending_ && too_slow(outgoing_, now, drained_bytes_, s.drain_timeout_ms, s.drain_rate)) {
    counters.timeouts.add();
    return lose();
  }
  if (pending_ && now >= loans_until_us_ && !end_loans()) {
    if (now >= pending_since_us_ + kLoanMost_us) {
      counters.refused_budget.add();
      return lose();
    }
    loans_until_us_ = now + kLoan_us;   // there may be room then
  }
  const bool slow_head = phase_ == Phase::head && now >= incoming_.since_us + std::uint64_t{s.head_timeout_ms} * 1000;
  const bool slow_body = phase_ == Phase::body && !filling_->wants_continue &&
                         too_slow(incoming_, now, parser_.body_received(), s.body_timeout_ms, s.body_rate);
  if (slow_head || slow_body) {
    ConnectionExchange& e = *filling_;
    counters.timeouts.add();
    filling_ = nullptr;
    phase_ = Phase::none;
    e.whole = e.close = true;
    e.wants_continue = false;
    no_more_requests_ = unread_ = true;
    answer_here(e, 408, Errc::timeout, slow_head ? "the request head did not arrive in time" : "the body arrives too slowly");
  }
  for (ConnectionExchange* e = first_; e; e = e->next)
    if (e->whole && !e->ready && now >= e->arrived_us + std::uint64_t{s.request_timeout_ms} * 1000) expire(*e);
  if (read_closed_ && now >= end_since_us_ + kHalfClosed_us) {
    pollfd p{fd_, 0, 0};
    bool unsafe = false;
    for (const ConnectionExchange* e = first_; e; e = e->next) unsafe |= !e->safe;
    // A FIN does not say whether anybody still reads. Safe requests are let go; a write's answer is worth waiting for.
    if ((poll(&p, 1, 0) > 0 && (p.revents & (POLLERR | POLLHUP))) || (!unsafe && !pending_)) return lose();
    end_since_us_ = now;
  }
  flush();
}

void Connection::expire(ConnectionExchange& e) {
  worker_.counters().deadlines.add();
  if (e.blocked) {
    e.blocked = false;
    --blocked_;
  }
  e.expired = true;
  const bool running = e.started && !e.returned;
  answer_here(e, 504, Errc::deadline, "the request was not answered in time");
  if (running) e.route->client_gone(e);
}

void Connection::wind_down() {
  if (!lingering_ && !read_closed_ && !paused_) read_some();
  if (is_open()) flush();
}

}  // namespace sluice::proxy
