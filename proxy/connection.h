// One client's socket: bytes in, requests started, answers out in order.
//
// A connection that waits for its next request holds this object and nothing else: what is read goes through its
// worker's buffer, requests live in pooled exchanges, and an Output is kept only for a slow reader.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "proxy/http_parser.h"
#include "proxy/loop.h"
#include "proxy/output.h"
#include "proxy/route.h"

namespace sluice::proxy {

class Connection;
class ConnectionExchange;
class LiveGeneration;
class Tls;
class TlsSession;
class WorkerLoop;

// Thread: worker. Life: pooled; see open().
class Connection final {
 public:
  explicit Connection(WorkerLoop& worker);
  ~Connection();

  // Takes a non-blocking socket over and waits for its first request. `refused`: over the limit of connections; it is told so, and closed.
  // `tls`: null for a plain one.
  void open(int fd, std::string_view client_ip, bool refused, std::string_view tag = {}, const std::shared_ptr<const Tls>& tls = nullptr);
  bool is_open() const { return fd_ >= 0; }
  // The client is gone, or has to be: closes the socket, lets go of every exchange, goes back to the pool.
  void lose();
  // Writes what is answered and starts what waited for it. At the end of a turn, when something was answered.
  void flush();
  // Draining: reads what has come already, then closes when there is nothing to answer.
  void wind_down();

  // An exchange of this connection has its answer.
  void answered(ConnectionExchange& exchange);
  // Some exchange before this one may still write.
  bool behind_write(const ConnectionExchange& exchange) const;
  void held(int change) { held_writes_ += change; }

  // Where a window of a transfer began.
  struct Pace {
    std::uint64_t since_us = 0;
    std::uint64_t bytes = 0;
  };

 private:
  friend class WorkerLoop;
  enum class Phase : std::uint8_t { none, head, body };
  static void on_event(evutil_socket_t fd, short what, void* self);
  static void on_timer(void* self, std::uint32_t tag);
  void read_some();
  void process(std::string_view bytes);
  void discard(std::size_t bytes);
  void ended_by_client();
  ConnectionExchange& begin_exchange();
  void note_progress();
  void arrived(ConnectionExchange& exchange);
  void route(ConnectionExchange& exchange);
  void start(ConnectionExchange& exchange, const Match& match);
  void start_blocked();
  void answer_here(ConnectionExchange& exchange, std::uint16_t status, Errc code, std::string_view line);
  void expire(ConnectionExchange& exchange);
  void pop_front();
  void drop_filling();
  void detach_all();
  bool compose(Output& out);          // true: the last answer is in it
  bool write_pending();               // false: the socket is full, or lost
  void release_output();
  bool end_loans();                   // false: the budget has no room for what was lent
  void finish();                      // after the last answer
  void settle();                      // interest, idleness and timer, when everything else is done
  bool idle() const;
  void say_and_close(std::uint16_t status, Errc code, std::string_view line);   // to one without requests
  void check_time();
  std::uint64_t next_deadline() const;

  // connection_tls.cc. All but the first only where there is a `tls_`.
  bool begin_tls(const std::shared_ptr<const Tls>& tls);
  bool shaking() const;               // false of a plain one
  bool greeting() const;              // likewise
  Output& wire();
  void read_tls();
  void shaken();
  void end_tls();
  void refuse_plain();
  bool push_wire();                   // false: the socket is full, or lost
  bool write_tls();
  bool flush_tls();                   // false: the rest is done, or it is lost
  void say_farewell();
  void drop_tls();

  WorkerLoop& worker_;
  Connection* previous_ = nullptr;    // the worker's list of open ones
  Connection* next_ = nullptr;
  FdEvent event_;
  int fd_ = -1;
  std::uint32_t count_ = 0;           // exchanges, the one being received included
  HttpParser parser_;
  ConnectionExchange* first_ = nullptr;
  ConnectionExchange* last_ = nullptr;
  ConnectionExchange* filling_ = nullptr;   // the last one, while it is being received
  std::unique_ptr<Output> pending_;   // begun and not taken by the socket
  std::unique_ptr<std::string> stash_;      // read and not parsed: too many in flight
  std::unique_ptr<TlsSession> tls_;         // null: plain
  std::unique_ptr<Output> wire_;            // of TLS: sealed and not taken by the socket
  std::uint64_t greeting_until_us_ = 0;     // of TLS: for the handshake; then, in a drain, for the first request
  TimerId timer_;
  std::uint64_t timer_at_us_ = 0;     // 0: none
  std::uint64_t idle_since_us_ = 0;
  Pace incoming_;                     // of the head, then of the body
  Pace outgoing_;                     // of `pending_`
  std::uint64_t pending_since_us_ = 0;
  std::uint64_t loans_until_us_ = 0;  // of `pending_` and what is ready behind it
  std::uint64_t end_since_us_ = 0;    // the client's FIN, or ours when lingering
  std::uint64_t drained_bytes_ = 0;
  std::uint64_t served_ = 0;
  std::uint64_t discarded_ = 0;       // bytes behind the last request
  std::uint32_t unsafe_modules_ = 0;  // arrived, not answered
  std::uint32_t unsafe_routes_ = 0;
  std::uint32_t blocked_ = 0;         // whole, not started
  int held_writes_ = 0;
  bool counted_ = false;              // in the process's count of connections
  bool read_closed_ = false;
  bool no_more_requests_ = false;     // an answer that closes is on its way
  bool unread_ = false;               // bytes of the client's that nobody reads may wait in the socket
  bool closing_ = false;              // `pending_` ends with the last answer
  bool lingering_ = false;            // we have closed; the client's bytes are dropped until it has, too
  bool processing_ = false;
  bool dirty_ = false;                // in the worker's list
  bool paused_ = false;               // not reading: too many in flight
  bool write_untracked_ = false;      // a write goes on behind an answered 504
  bool fresh_tls_ = false;            // not a byte of the handshake has come
  Phase phase_ = Phase::none;
  std::string_view tag_;                 // of its listener
  std::uint8_t ip_size_ = 0;
  std::array<char, 46> ip_{};
};

// A request from its first byte to the last byte of its answer.
// Thread: worker. Life: pooled. It goes back when its route has answered and its connection needs it no more.
class ConnectionExchange final : public Exchange {
 public:
  explicit ConnectionExchange(WorkerLoop& worker) : worker_(worker) {}
  const Request& request() const override { return slot.request; }
  bool gone() const override { return connection == nullptr || expired; }
  void answer(Response& response) override;
  bool behind_write() const override;
  void hold_writes(bool held) override;

  // The rest is between connection and worker.
  void reset();
  void release_generation();
  // The connection needs it no more.
  void leave_connection();

  RequestSlot slot;
  Response response;
  Connection* connection = nullptr;
  LiveGeneration* live = nullptr;
  Route* route = nullptr;
  ConnectionExchange* next = nullptr;
  ConnectionExchange* older = nullptr;   // in its generation's list
  ConnectionExchange* newer = nullptr;
  std::uint64_t begun_us = 0;
  std::uint64_t arrived_us = 0;
  bool whole = false;
  bool blocked = false;
  bool started = false;           // the route has it
  bool returned = false;          // the route has answered
  bool ready = false;             // `response` may be written
  bool expired = false;           // 504 was answered in the route's place
  bool safe = true, module = false;
  bool holds_writes = false;
  bool counted_active = false;
  bool counted_unsafe = false;
  bool close = false, say_keep_alive = false;
  bool wants_continue = false, continue_noted = false;
  std::uint32_t pool_index = 0;   // the worker's: where it keeps this

 private:
  void charge();
  void keep_client();
  WorkerLoop& worker_;
  std::uint64_t charged_bytes_ = 0;   // of the budget, for the answer
  std::string client_;                // of a client that has gone: what the request says of it
};

}  // namespace sluice::proxy
