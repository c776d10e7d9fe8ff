// What runs on a worker's thread: the loop, and everything that its connections and routes take from.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/connection.h"
#include "proxy/http_writer.h"
#include "proxy/loop.h"
#include "proxy/remote/backend_clients.h"
#include "proxy/ticket_table.h"
#include "proxy/timer_wheel.h"
#include "proxy/worker.h"

namespace sluice::proxy {

// A generation in use: the Services that its routes see, and the count that says when it may go.
// Thread: worker.
class LiveGeneration final : public Services {
 public:
  LiveGeneration(WorkerLoop& worker, Generation g) : generation(std::move(g)), worker_(worker) {}
  ~LiveGeneration() override;

  Engine& engine() override;
  EventPtr take_event() override;
  void recycle(EventPtr event) override;
  Ticket submit(EventPtr event, Waiter* waiter, std::uint32_t tag) override;
  void forget(const Ticket& ticket) override;
  void keep() override { ++kept; }
  void let_go() override { --kept; }
  BackendClient* use(const std::shared_ptr<Backend>& backend) override;
  TimerId start_timer(std::uint64_t delay_us, Waiter* waiter, std::uint32_t tag) override;
  void stop_timer(TimerId& id) override;
  std::uint64_t monotonic_us() override;
  std::uint64_t wall_ms() override;
  std::uint16_t worker_index() override;
  Budget& budget() override;
  const Settings& settings() override { return *generation.settings; }

  // The requests that use it, the oldest first. Each is in the list of one generation until its route has answered.
  void begin(ConnectionExchange& exchange);
  void end(ConnectionExchange& exchange);
  const ConnectionExchange* oldest() const { return oldest_; }
  bool in_use() const { return exchanges + events + kept > 0; }

  Generation generation;
  std::uint64_t exchanges = 0, events = 0, kept = 0;   // requests, tickets, and what keep() holds

 private:
  ConnectionExchange* oldest_ = nullptr;
  ConnectionExchange* newest_ = nullptr;
  WorkerLoop& worker_;
  std::vector<BackendClient*> backends_;   // one take() each
};

// Thread: worker. The constructor's arguments outlive it.
class WorkerLoop final : private Waiter {
 public:
  WorkerLoop(std::uint16_t index, ProcessLimits& limits, Inbox<EventPtr>& results, Inbox<News>& news, Counters& counters,
             std::unique_ptr<Engine> engine, Clock& clock);
  ~WorkerLoop() override;
  WorkerLoop(const WorkerLoop&) = delete;
  WorkerLoop& operator=(const WorkerLoop&) = delete;

  void install(Generation next);
  // Accepts there from now on, and nowhere else: what waits elsewhere is accepted first. What goes on is not touched.
  void listen(std::vector<Listening> listening);
  void leave(bool leaving);                              // Worker::install()
  void report(std::uint64_t asked);                      // Worker::report()
  // A connected, non-blocking socket. `tls`: null for a plain one.
  void adopt(int fd, std::string_view client_ip, std::string_view tag = {}, const std::shared_ptr<const Tls>& tls = nullptr);
  void post(const StorePtr& store, const CronEvent& event, std::uint32_t id);
  void drain();
  // Waits, handles what is ready, and ends the turn: events to owners, answers to sockets.
  void turn(Loop::Wait wait);
  // Lets everything go and gives the generations back. The last call.
  void end();
  Loop& loop() { return loop_; }

  // For connections and exchanges.
  std::uint64_t now_us();
  std::uint64_t wall_ms();
  std::string_view date_line() { return date_.at(wall_ms()); }
  TimerWheel& wheel() { return wheel_; }
  // When a timer is to fire that must not be early.
  TimerId start_timer_at(std::uint64_t at_us, void* target, std::uint32_t tag, TimerWheel::Fire fire, const void* owner);
  Counters& counters() { return counters_; }
  ProcessLimits& limits() { return limits_; }
  std::uint16_t index() const { return index_; }
  bool draining() const { return draining_; }
  bool closes() const { return draining_ || leaving_; }   // connections, with their next answer
  LiveGeneration& current() { return *lives_.back(); }
  const Settings& settings() { return current().settings(); }
  void mark_dirty(Connection& connection);
  void closed(Connection& connection);
  ConnectionExchange& take_exchange();
  void give_back(ConnectionExchange& exchange);
  std::unique_ptr<Output> take_output();
  void give_back(std::unique_ptr<Output> output);
  Match& match() { return match_; }
  char* read_buffer() { return read_buffer_.get(); }
  static constexpr std::size_t kReadBytes = 64 * 1024;
  char* cipher_buffer();                                 // of TLS; made when it is first needed

 private:
  friend class LiveGeneration;
  // Of crons' events.
  void answered(std::uint32_t tag, EventPtr event) override;
  void timed_out(std::uint32_t) override {}
  void tell(std::uint32_t id, std::uint16_t status, Errc error, std::string_view body);
  struct Acceptor {
    WorkerLoop* worker = nullptr;
    ListenSocketPtr socket;
    std::string tag;
    std::shared_ptr<const Tls> tls;
    FdEvent event;
  };
  static constexpr std::uint64_t kOutstanding = 65'536;   // what the results inbox holds
  static void on_accept(evutil_socket_t fd, short what, void* acceptor);
  static void on_results(evutil_socket_t fd, short what, void* self);
  static void on_accept_again(void* self, std::uint32_t tag);
  // Returns false when the queue is empty or accepting has to wait.
  bool accept_one(const Acceptor& acceptor);
  void accept_waiting(Acceptor& acceptor, int most);     // and no more from there
  std::string_view take_tag(std::string_view tag);       // for a connection, which points at it until give_back_tag()
  void give_back_tag(std::string_view tag);
  void end_turn();
  void deliver(EventPtr event);
  void submit_refused(EventPtr event, Errc code);
  void flush_dirty();
  void retire();
  void send_news();
  void arm_wheel();

  const std::uint16_t index_;
  ProcessLimits& limits_;
  Inbox<EventPtr>& results_;
  Inbox<News>& news_;
  Counters& counters_;
  Clock& clock_;
  Loop loop_;                       // before everything that has an event in it
  std::unique_ptr<Engine> engine_;
  TimerWheel wheel_;
  TicketTable tickets_;
  FdEvent results_event_;
  std::map<std::string, std::uint64_t, std::less<>> tags_;   // of open connections, and of how many
  std::vector<std::unique_ptr<Acceptor>> acceptors_;
  TimerId accept_again_;
  DateLine date_;
  Match match_;
  std::unique_ptr<char[]> read_buffer_, cipher_buffer_;
  BackendClients backends_;                              // behind the loop and the wheel, before the generations that hold them
  std::vector<std::unique_ptr<LiveGeneration>> lives_;   // the newest last
  std::vector<News> unsent_;
  std::vector<EventPtr> events_;                         // spare
  std::vector<EventPtr> refused_, refused_batch_;        // to be answered at the end of the turn
  std::function<void(EventPtr)> refuse_;                 // made once, for Engine::flush
  std::vector<std::unique_ptr<ConnectionExchange>> exchanges_;   // all of them
  std::vector<ConnectionExchange*> free_exchanges_;
  std::vector<std::unique_ptr<Connection>> free_connections_, closed_;
  std::vector<std::unique_ptr<Output>> free_outputs_;
  std::vector<Connection*> dirty_, dirty_batch_;
  Connection* first_connection_ = nullptr;
  std::uint32_t refused_open_ = 0;                       // connections over the limit that are being told so
  std::uint64_t now_us_ = 0, wall_ms_ = 0;
  std::uint64_t wheel_at_ms_ = TimerWheel::kNever;       // what the loop's timer was set to last
  std::uint64_t outstanding_ = 0;
  bool now_fresh_ = false, wall_fresh_ = false;
  bool submitted_ = false;
  bool worked_ = false;                                  // a route ran in this turn
  bool draining_ = false, leaving_ = false, drained_ = false, ended_ = false;
};

}  // namespace sluice::proxy
