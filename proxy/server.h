// The life of the process on its control thread: start, serve, reload, drain, end.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/config.h"
#include "proxy/control_socket.h"
#include "proxy/counters.h"
#include "proxy/crew.h"
#include "proxy/engine.h"
#include "proxy/generations.h"
#include "proxy/listen_set.h"
#include "proxy/log.h"
#include "proxy/options.h"
#include "proxy/reload.h"
#include "proxy/signals.h"
#include "proxy/test_control.h"
#include "proxy/worker.h"
#include "vm/base/result.h"

namespace sluice::proxy {

// What a server is built over; all of it outlives the server.
struct ServerParts {
  Signals& signals;
  Log& log;
  EngineControl& engine;
  ConfigReader& reader;
  TestControl* test_control = nullptr;     // null: the time is the system's
};

struct Started {
  std::uint16_t port = 0;
  std::string line;                        // to print: {"port":8767,"threads":2,"host":"127.0.0.1",...}
};

// Thread: control.
class Server final : private ServerStats {
 public:
  // `path` is what `reader` reads: a config, or a module.
  Server(ServerParts parts, std::string path, Overrides overrides, std::string version);
  ~Server() override;
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Listens, opens the stores and starts the workers.
  // Errors: why it cannot; nothing runs then.
  Result<Started, std::string> start();

  // Reloads on SIGHUP, until SIGINT or SIGTERM; then finishes what was accepted, answers it, and ends the workers, the
  // owners and the stores. The line of counters, as JSON.
  std::string serve();

  // What is alive of each config, and what holds it; heard before serve() returns, once every worker has answered.
  void report_generations(Generations::Hear hear) { crew_->report(std::move(hear)); }
  const ListenSet& listeners() const { return listen_set_; }

 private:
  struct Next;                             // what the first phase of a reload, or of the start, has made
  Result<Next, std::string> prepare();
  std::vector<std::string> switch_to(Next next);   // lines for the log
  Crew::ListeningOf listening() const;
  void wait_for_news();                    // and for signals
  void wait_for_workers();                 // for their news alone
  void hear_signals();
  void hear(News news);
  void reload();
  void reload_failed(std::string_view why);

  // server_control.cc: what the control socket asks.
  void after(std::uint64_t ms, std::function<void()> f);   // of what a command does later
  std::uint64_t control_next_ms(std::uint64_t now_ms) const;   // when control has something to do for them
  void run_timers();
  // Where the socket is to be, by these settings: opens it when it is not there already, for listen_for_control().
  // Errors: why it cannot. A path that nobody asked for is no error but a warning.
  Result<void, std::string> open_control(const Settings& settings);
  void listen_for_control();
  void add_commands();
  void answer_reloads(std::string_view error);
  void tell_stats(const ControlAsked& asked, Asker to);
  void tell_generations(Asker to);
  void begin_crons();                      // those of the config that serves now; the last one's end
  std::uint32_t send(CronEvent event);
  void run_crons();
  void note(const Crons::Ran& ran);
  void look_at_listeners();
  void look_at_generations();              // says what holds an old one for long
  void drain();
  void each(const std::function<void(std::string_view, std::uint64_t)>& f) const override;
  RouteRecords records() const override { return records_.get(); }
  void keep_records(const std::vector<Generation>& generations);
  std::string routes_json() const;         // memory of VMs and generators
  void take_profile(const ControlAsked& asked, Asker to);
  std::string counters() const;

  ServerParts parts_;
  Reloader reloader_;
  const std::string version_;
  std::unique_ptr<ProcessLimits> limits_;
  Inbox<News> news_;
  std::unique_ptr<Crew> crew_;
  ListenSet listen_set_;
  std::uint64_t held_said_ms_ = 0;         // when it was last said what holds an old generation
  std::shared_ptr<const Config> cron_config_;
  Crons* crons_ = nullptr;                 // cron_config_'s
  std::uint32_t cron_ids_ = 0, cron_events_ = 0;   // the last number given; events under way
  struct Timer {
    std::uint64_t at_ms = 0;
    std::function<void()> f;
  };
  ControlSocket control_;
  std::unique_ptr<UnixSocket> opened_;     // of a config that does not serve yet
  bool keeps_control_ = false;             // it is to be where it is
  std::vector<Timer> timers_;
  std::vector<Asker> reload_askers_;       // of a reload that has not read the file yet
  std::vector<Asker> reloading_for_;       // of the one under way
  std::vector<std::string> reload_notes_;  // its
  bool reload_wanted_ = false;             // a SIGHUP that is not served yet
  bool reload_unsaid_ = false;             // switched to, but not by every worker
  bool end_wanted_ = false;
  RecordBook records_;
  bool profiling_ = false;                 // one at a time
  Counter cron_runs_, cron_failures_;
  Counter reloads_, reload_failures_;      // control writes them, routes may ask
};

// `text` as one line for a person: what comes before its first line feed, and its hints ("hint: ...").
std::string one_line(std::string_view text);

// What the files of the server share.
std::uint64_t monotonic_ms();
std::string in_json(std::string_view text);   // as a JSON string

}  // namespace sluice::proxy
