#include "proxy/worker_loop.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "proxy/module_call.h"
#include "proxy/tls_session.h"

namespace sluice::proxy {
namespace {
constexpr int kAcceptsPerTurn = 64;
constexpr int kQueued = 4096;                        // what a listener's queue holds at most
constexpr std::uint64_t kAcceptPause_us = 100'000;   // without descriptors
constexpr std::uint32_t kRefusedOpen = 256;
constexpr std::size_t kSpareConnections = 1024, kSpareExchanges = 1024, kSpareEvents = 1024, kSpareOutputs = 64;
constexpr int kPasses = 8;                           // of one turn's end, so that a loop of answers starves nobody

std::string_view print_ip(const sockaddr_storage& from, std::array<char, INET6_ADDRSTRLEN>& text) {
  const void* const at = from.ss_family == AF_INET6
                             ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in6&>(from).sin6_addr)
                             : static_cast<const void*>(&reinterpret_cast<const sockaddr_in&>(from).sin_addr);
  if (from.ss_family != AF_INET && from.ss_family != AF_INET6) return {};
  return inet_ntop(from.ss_family, at, text.data(), text.size()) ? std::string_view(text.data()) : std::string_view();
}
}  // namespace

WorkerLoop::WorkerLoop(std::uint16_t index, ProcessLimits& limits, Inbox<EventPtr>& results, Inbox<News>& news,
                       Counters& counters, std::unique_ptr<Engine> engine, Clock& clock)
    : index_(index),
      limits_(limits),
      results_(results),
      news_(news),
      counters_(counters),
      clock_(clock),
      engine_(std::move(engine)),
      wheel_(clock.monotonic_us() / 1000),
      read_buffer_(new char[kReadBytes]),
      backends_(*this) {
  refuse_ = [this](EventPtr event) { submit_refused(std::move(event), Errc::store_busy); };
  results_event_.watch(loop_, results_.wake().fd(), EV_READ, on_results, this);
}

WorkerLoop::~WorkerLoop() { end(); }

void WorkerLoop::end() {
  if (ended_) return;
  ended_ = true;
  results_event_.stop();
  acceptors_.clear();
  while (first_connection_) first_connection_->lose();
  // Routes that still hold an exchange keep a pointer that nobody follows any more: their tables go next.
  for (const auto& live : lives_) wheel_.stop_all_of(live.get());
  for (auto& live : lives_) unsent_.push_back({News::Kind::retired, index_, std::move(live->generation)});
  lives_.clear();
  counters_.generations.set(0);
  unsent_.push_back({News::Kind::ended, index_, {}});
  engine_.reset();
  // Control reads until it has seen everybody's end.
  while (!unsent_.empty()) {
    send_news();
    if (!unsent_.empty()) usleep(1000);
  }
}

void WorkerLoop::install(Generation next) {
  const std::uint64_t number = next.number;
  lives_.push_back(std::make_unique<LiveGeneration>(*this, std::move(next)));
  lives_.back()->generation.routes->attach(*lives_.back());
  counters_.generations.set(lives_.size());
  // One flush, also of a worker that has nothing to send: what older modules it has looked at it has let go of.
  submitted_ = true;
  News news;
  news.worker = index_;
  news.generation.number = number;
  unsent_.push_back(std::move(news));
  retire();
  send_news();
}

void WorkerLoop::listen(std::vector<Listening> listening) {
  if (draining_) return;
  std::vector<std::unique_ptr<Acceptor>> before = std::exchange(acceptors_, {});
  for (Listening& l : listening) {
    const auto old = std::find_if(before.begin(), before.end(), [&l](const auto& a) { return a && a->socket == l.socket; });
    if (old != before.end()) {
      acceptors_.push_back(std::move(*old));
    } else {
      acceptors_.push_back(std::make_unique<Acceptor>());
      acceptors_.back()->worker = this;
      acceptors_.back()->socket = std::move(l.socket);
    }
    Acceptor& a = *acceptors_.back();
    a.tag = std::move(l.tag);
    a.tls = std::move(l.tls);
    if (accept_again_.generation == 0) a.event.watch(loop_, a.socket->fd(), EV_READ, on_accept, &a);
  }
  // Another worker takes them over, or nothing new has come for a while (ListenSet): there is little, if anything.
  for (const auto& a : before)
    if (a) accept_waiting(*a, kAcceptsPerTurn);
}

// Closing a listener resets what waits in its queue.
void WorkerLoop::accept_waiting(Acceptor& a, int most) {
  // Bounded, since clients that go on connecting could fill it as fast as it is emptied.
  for (int i = 0; i < most && accept_one(a); ++i) {}
  a.event.stop();
}

void WorkerLoop::leave(bool leaving) {
  leaving_ = leaving;
  drained_ = false;
}

void WorkerLoop::report(std::uint64_t asked) {
  News news;
  news.kind = News::Kind::held;
  news.worker = index_;
  news.asked = asked;
  for (const auto& live : lives_) {
    const RouteTable& routes = *live->generation.routes;
    HeldGeneration& held = news.held.emplace_back();
    held.number = live->generation.number;
    held.exchanges = live->exchanges;
    held.events = live->events;
    held.kept = live->kept;
    held.slots = routes.slots();
    held.slots_in_use = routes.slots_in_use();
    held.memory_bytes = routes.memory_bytes();
    const ConnectionExchange* const oldest = live->oldest();
    if (!oldest) continue;
    const Request& r = oldest->slot.request;
    held.oldest = oldest->whole ? std::string(r.method_text) + " " + std::string(r.path) : std::string("a request that is being received");
    held.oldest_us = now_us() - oldest->begun_us;
  }
  unsent_.push_back(std::move(news));
}

std::string_view WorkerLoop::take_tag(std::string_view tag) {
  if (tag.empty()) return {};
  auto at = tags_.find(tag);
  if (at == tags_.end()) at = tags_.emplace(tag, 0).first;
  ++at->second;
  return at->first;
}

void WorkerLoop::give_back_tag(std::string_view tag) {
  if (tag.empty()) return;
  const auto at = tags_.find(tag);
  if (--at->second == 0) tags_.erase(at);
}

void WorkerLoop::on_accept(evutil_socket_t, short, void* acceptor) {
  const Acceptor& a = *static_cast<Acceptor*>(acceptor);
  for (int i = 0; i < kAcceptsPerTurn; ++i)
    if (!a.worker->accept_one(a)) return;
}

bool WorkerLoop::accept_one(const Acceptor& acceptor) {
  sockaddr_storage from{};
  socklen_t size = sizeof from;
  const int fd = accept4(acceptor.socket->fd(), reinterpret_cast<sockaddr*>(&from), &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) {
    if (errno == EINTR || errno == ECONNABORTED) return true;
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      // The queue stays readable: look away for a while, or the loop spins.
      counters_.accept_failures.add();
      for (const auto& a : acceptors_) a->event.stop();
      if (accept_again_.generation == 0)
        accept_again_ = start_timer_at(now_us() + kAcceptPause_us, this, 0, on_accept_again, nullptr);
    }
    return false;
  }
  if (from.ss_family == AF_INET || from.ss_family == AF_INET6) {
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  std::array<char, INET6_ADDRSTRLEN> text{};
  adopt(fd, print_ip(from, text), acceptor.tag, acceptor.tls);
  return true;
}

char* WorkerLoop::cipher_buffer() {
  if (!cipher_buffer_) cipher_buffer_.reset(new char[TlsSession::kCipherBytes]);
  return cipher_buffer_.get();
}

void WorkerLoop::on_accept_again(void* self, std::uint32_t) {
  WorkerLoop& me = *static_cast<WorkerLoop*>(self);
  me.accept_again_ = {};
  for (const auto& a : me.acceptors_) a->event.watch(me.loop_, a->socket->fd(), EV_READ, on_accept, a.get());
}

void WorkerLoop::adopt(int fd, std::string_view client_ip, std::string_view tag, const std::shared_ptr<const Tls>& tls) {
  const bool room = limits_.connections.take(1);
  if (!room) {
    counters_.refused_connections.add();
    if (refused_open_ >= kRefusedOpen) {
      close(fd);
      return;
    }
    ++refused_open_;
  } else {
    counters_.accepted.add();
    counters_.connections.add();
  }
  std::unique_ptr<Connection> c;
  if (free_connections_.empty()) {
    c = std::make_unique<Connection>(*this);
  } else {
    c = std::move(free_connections_.back());
    free_connections_.pop_back();
  }
  Connection& open = *c.release();   // the list of open ones owns it
  open.previous_ = nullptr;
  open.next_ = first_connection_;
  if (first_connection_) first_connection_->previous_ = &open;
  first_connection_ = &open;
  open.open(fd, client_ip, !room, take_tag(tag), tls);
}

void WorkerLoop::closed(Connection& c) {
  if (c.previous_) c.previous_->next_ = c.next_;
  else first_connection_ = c.next_;
  if (c.next_) c.next_->previous_ = c.previous_;
  give_back_tag(c.tag_);
  if (c.counted_) {
    limits_.connections.give_back(1);
    counters_.connections.sub();
  } else {
    --refused_open_;
  }
  closed_.emplace_back(&c);          // until the turn ends: a callback of its own may be under way
}

void WorkerLoop::tell(std::uint32_t id, std::uint16_t status, Errc error, std::string_view body) {
  News news;
  news.kind = News::Kind::answered;
  news.worker = index_;
  news.cron = {id, status, error, std::string(body)};
  unsent_.push_back(std::move(news));
}

void WorkerLoop::post(const StorePtr& store, const CronEvent& asked, std::uint32_t id) {
  LiveGeneration& live = current();
  std::vector<Parameter> query;
  for (const auto& [name, value] : asked.fields) query.push_back({name, value});
  Buffer body;
  if (asked.has_body && !asked.body.empty()) {
    body = Buffer::copy(asked.body, &limits_.payload);
    if (!body) return tell(id, 503, Errc::payload_budget, {});
  }
  Call call;
  Response refused;
  if (!make_call(call, refused, store, {.method = asked.method, .path = asked.path, .query = query, .headers = {}, .body = &body, .has_length = true}))
    return tell(id, refused.status, refused.error, refused.body.flat());
  EventPtr event = live.take_event();
  if (!engine_->prepare(*event, call)) {
    tell(id, event->answer.status, event->answer.error, event->answer.body.flat());
    return live.recycle(std::move(event));
  }
  live.submit(std::move(event), this, id);
}

void WorkerLoop::answered(std::uint32_t tag, EventPtr event) {
  std::string body(event->answer.body.flat());
  // A large document lies in pieces.
  if (body.empty())
    for (const std::string_view p : event->answer.body.pieces) body.append(p);
  tell(tag, event->answer.status, event->answer.error, body);
  current().recycle(std::move(event));
}

void WorkerLoop::drain() {
  if (draining_) return;
  for (const auto& a : acceptors_) accept_waiting(*a, kQueued);
  acceptors_.clear();
  wheel_.stop(accept_again_);
  draining_ = true;
  drained_ = false;
  for (Connection* c = first_connection_; c;) {
    Connection* const next = c->next_;
    c->wind_down();
    c = next;
  }
}

void WorkerLoop::turn(Loop::Wait wait) {
  arm_wheel();
  if (wheel_.has_immediate() || !dirty_.empty() || !refused_.empty() || !closed_.empty()) loop_.poke();
  now_fresh_ = wall_fresh_ = false;
  counters_.turns.add();
  loop_.turn(wait);
  wheel_.advance(now_us() / 1000);
  end_turn();
}

void WorkerLoop::arm_wheel() {
  const std::uint64_t next = wheel_.next_ms();
  // What is set may be early, never late. An early one is over without anything to fire, and is set again.
  if (next == TimerWheel::kNever || (loop_.will_wake() && next >= wheel_at_ms_)) return;
  wheel_at_ms_ = next;
  const std::uint64_t now = clock_.monotonic_us();
  loop_.wake_in(next * 1000 > now ? next * 1000 - now : 0);
}

void WorkerLoop::end_turn() {
  for (int pass = 0; pass < kPasses; ++pass) {
    if (!refused_.empty()) {
      refused_batch_.swap(refused_);
      for (EventPtr& e : refused_batch_) deliver(std::move(e));
      refused_batch_.clear();
    }
    if (submitted_) {
      submitted_ = false;
      worked_ = true;
      engine_->flush(refuse_);       // owners begin while we write
    }
    if (dirty_.empty() && refused_.empty()) break;
    flush_dirty();
  }
  if (worked_) {
    worked_ = false;
    for (const auto& live : lives_) live->generation.routes->idle();
    const RouteTable& routes = *current().generation.routes;
    counters_.route_slots.set(routes.slots());
    counters_.route_memory_bytes.set(routes.memory_bytes());
  }
  // Each turn: a slot is also given back where nothing is written and no event comes, as when its client has left.
  counters_.route_slots_in_use.set(current().generation.routes->slots_in_use());
  if (dirty_.empty())
    for (auto& c : closed_) {
      if (free_connections_.size() < kSpareConnections) free_connections_.push_back(std::move(c));
    }
  if (dirty_.empty()) closed_.clear();
  retire();
  if (closes() && !drained_ && !first_connection_ && acceptors_.empty() && counters_.active.get() == 0 && outstanding_ == 0 &&
      !current().in_use() && lives_.size() == 1) {
    drained_ = true;
    News news;
    news.kind = News::Kind::drained;
    news.worker = index_;
    news.generation.number = current().generation.number;
    unsent_.push_back(std::move(news));
  }
  if (!unsent_.empty()) send_news();
}

void WorkerLoop::flush_dirty() {
  dirty_batch_.swap(dirty_);
  for (Connection* c : dirty_batch_) {
    c->dirty_ = false;
    c->flush();
  }
  dirty_batch_.clear();
}

void WorkerLoop::mark_dirty(Connection& c) {
  worked_ = true;
  if (c.dirty_) return;
  c.dirty_ = true;
  dirty_.push_back(&c);
}

void WorkerLoop::retire() {
  for (std::size_t i = 0; i + 1 < lives_.size();) {
    if (lives_[i]->in_use()) {
      ++i;
      continue;
    }
    wheel_.stop_all_of(lives_[i].get());
    unsent_.push_back({News::Kind::retired, index_, std::move(lives_[i]->generation)});
    lives_.erase(lives_.begin() + static_cast<std::ptrdiff_t>(i));
    counters_.generations.set(lives_.size());
  }
}

void WorkerLoop::send_news() { news_.push_all(unsent_); }

std::uint64_t WorkerLoop::now_us() {
  if (!now_fresh_) {
    now_us_ = clock_.monotonic_us();
    now_fresh_ = true;
  }
  return now_us_;
}

std::uint64_t WorkerLoop::wall_ms() {
  if (!wall_fresh_) {
    wall_ms_ = clock_.wall_ms();
    wall_fresh_ = true;
  }
  return wall_ms_;
}

TimerId WorkerLoop::start_timer_at(std::uint64_t at_us, void* target, std::uint32_t tag, TimerWheel::Fire fire,
                                   const void* owner) {
  return wheel_.start((at_us + 999) / 1000, target, tag, fire, owner);
}

ConnectionExchange& WorkerLoop::take_exchange() {
  worked_ = true;
  if (free_exchanges_.empty()) {
    exchanges_.push_back(std::make_unique<ConnectionExchange>(*this));
    exchanges_.back()->pool_index = static_cast<std::uint32_t>(exchanges_.size() - 1);
    return *exchanges_.back();
  }
  ConnectionExchange& e = *free_exchanges_.back();
  free_exchanges_.pop_back();
  return e;
}

void WorkerLoop::give_back(ConnectionExchange& e) {
  e.release_generation();
  e.reset();
  if (free_exchanges_.size() < kSpareExchanges) return free_exchanges_.push_back(&e);
  // After a crowd: the last one takes its place.
  const std::uint32_t at = e.pool_index;
  exchanges_.back()->pool_index = at;
  std::swap(exchanges_[at], exchanges_.back());
  exchanges_.pop_back();
}

std::unique_ptr<Output> WorkerLoop::take_output() {
  if (free_outputs_.empty()) return std::make_unique<Output>();
  std::unique_ptr<Output> out = std::move(free_outputs_.back());
  free_outputs_.pop_back();
  return out;
}

void WorkerLoop::give_back(std::unique_ptr<Output> out) {
  out->reset();
  if (free_outputs_.size() < kSpareOutputs) free_outputs_.push_back(std::move(out));
}

void WorkerLoop::on_results(evutil_socket_t, short, void* self) {
  WorkerLoop& me = *static_cast<WorkerLoop*>(self);
  me.results_.wake().quiet();
  me.results_.drain([&me](EventPtr event) { me.deliver(std::move(event)); });
}

void WorkerLoop::deliver(EventPtr event) {
  --outstanding_;
  counters_.outstanding.set(outstanding_);
  worked_ = true;
  TicketTable::Waiting waiting;
  if (!tickets_.take(event->ticket, waiting)) {
    current().recycle(std::move(event));
    return;
  }
  LiveGeneration& live = *static_cast<LiveGeneration*>(waiting.owner);
  const std::uint32_t tag = waiting.tag;
  if (waiting.waiter) waiting.waiter->answered(tag, std::move(event));
  else live.recycle(std::move(event));
  --live.events;
}

void WorkerLoop::submit_refused(EventPtr event, Errc code) {
  (code == Errc::store_busy ? counters_.refused_busy : counters_.refused_active).add();
  if (event->answer.error == Errc::none) {
    event->answer.status = 503;
    event->answer.error = code;
    event->answer.type = ContentType::text;
    event->answer.body.text = code == Errc::store_busy ? "the store's queue is full\n" : "too many events are under way\n";
  }
  refused_.push_back(std::move(event));
}

LiveGeneration::~LiveGeneration() {
  for (BackendClient* b : backends_) worker_.backends_.give_back(*b);
}

BackendClient* LiveGeneration::use(const std::shared_ptr<Backend>& backend) {
  BackendClient& client = worker_.backends_.take(backend);
  backends_.push_back(&client);
  return &client;
}

void LiveGeneration::begin(ConnectionExchange& e) {
  ++exchanges;
  e.older = newest_;
  e.newer = nullptr;
  (newest_ ? newest_->newer : oldest_) = &e;
  newest_ = &e;
}

void LiveGeneration::end(ConnectionExchange& e) {
  --exchanges;
  (e.older ? e.older->newer : oldest_) = e.newer;
  (e.newer ? e.newer->older : newest_) = e.older;
  e.older = e.newer = nullptr;
}

Engine& LiveGeneration::engine() { return *worker_.engine_; }

EventPtr LiveGeneration::take_event() {
  if (worker_.events_.empty()) return std::make_unique<Event>();
  EventPtr e = std::move(worker_.events_.back());
  worker_.events_.pop_back();
  return e;
}

void LiveGeneration::recycle(EventPtr event) {
  if (!event || worker_.events_.size() >= kSpareEvents) return;
  event->reset();
  worker_.events_.push_back(std::move(event));
}

Ticket LiveGeneration::submit(EventPtr event, Waiter* waiter, std::uint32_t tag) {
  const Ticket ticket = worker_.tickets_.add(waiter, tag, this);
  ++events;
  event->ticket = ticket;
  event->worker = worker_.index_;
  const bool room = worker_.outstanding_ < WorkerLoop::kOutstanding;
  ++worker_.outstanding_;
  worker_.counters_.outstanding.set(worker_.outstanding_);
  if (room) {
    worker_.engine_->enqueue(std::move(event));
    worker_.submitted_ = true;
  } else {
    worker_.submit_refused(std::move(event), Errc::overload);
  }
  return ticket;
}

void LiveGeneration::forget(const Ticket& ticket) { worker_.tickets_.forget(ticket); }

TimerId LiveGeneration::start_timer(std::uint64_t delay_us, Waiter* waiter, std::uint32_t tag) {
  constexpr TimerWheel::Fire fire = [](void* target, std::uint32_t fired) { static_cast<Waiter*>(target)->timed_out(fired); };
  if (delay_us == 0) return worker_.wheel_.start(0, waiter, tag, fire, this);
  return worker_.start_timer_at(worker_.now_us() + delay_us, waiter, tag, fire, this);
}

// Whoever goes on after a wait, or ends, stops its timer first: of a turn in which nothing but a timer fired, or a backend
// answered, this alone says that a route ran and may have left garbage.
void LiveGeneration::stop_timer(TimerId& id) {
  worker_.worked_ = true;
  worker_.wheel_.stop(id);
}
std::uint64_t LiveGeneration::monotonic_us() { return worker_.now_us(); }
std::uint64_t LiveGeneration::wall_ms() { return worker_.wall_ms(); }
std::uint16_t LiveGeneration::worker_index() { return worker_.index_; }
Budget& LiveGeneration::budget() { return worker_.limits_.payload; }

}  // namespace sluice::proxy
