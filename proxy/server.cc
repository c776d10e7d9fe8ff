#include "proxy/server.h"

#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <spdlog/fmt/fmt.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "proxy/listener.h"
#include "vm/base/json.h"

namespace sluice::proxy {
namespace {

constexpr std::size_t kNews = 4096;
constexpr std::uint32_t kMaxWorkers = 256;
constexpr rlim_t kOtherDescriptors = 1024;   // stores, wake-ups, logs
constexpr std::uint32_t kCronEvents = 100;   // under way at once: fewer than a worker's commands, so that a reload has room
constexpr std::size_t kWorkerDescriptors = 8; // of each worker: its loop and its inboxes

// The cores this process may use, which taskset and containers make fewer than the machine has.
std::uint32_t cores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::clamp<std::uint32_t>(static_cast<std::uint32_t>(CPU_COUNT(&set)), 1, kMaxWorkers);
}

// Shells give 1,024 descriptors, and as many as the hard limit says to whoever asks.
void raise_descriptor_limit(std::uint32_t connections, Log& log) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const rlim_t wanted = connections + kOtherDescriptors;
  if (limit.rlim_cur >= wanted) return;
  limit.rlim_cur = std::min(wanted, limit.rlim_max);
  setrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur < wanted)
    log.warn(fmt::format("{} connections need {} descriptors and the limit is {}: the last ones will be refused", connections,
                         wanted, limit.rlim_cur));
}

// Whether so many more can be opened: at start, when no other thread opens any. libevent ends the process when it cannot.
bool descriptors_left(std::size_t count) {
  std::vector<int> opened;
  while (opened.size() < count) {
    const int fd = eventfd(0, EFD_CLOEXEC);
    if (fd < 0) break;
    opened.push_back(fd);
  }
  for (const int fd : opened) close(fd);
  return opened.size() == count;
}

std::uint64_t now_ms() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1000 + static_cast<std::uint64_t>(t.tv_nsec) / 1'000'000;
}

std::string json(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

}  // namespace

std::string one_line(std::string_view text) {
  std::string line(text.substr(0, text.find('\n')));
  std::size_t at = line.size();
  while (at < text.size()) {
    const std::size_t begin = at + 1;
    at = std::min(text.find('\n', begin), text.size());
    std::string_view next = text.substr(begin, at - begin);
    next.remove_prefix(std::min(next.find_first_not_of(' '), next.size()));
    // Hints of the first error only: those of others would read as if they were its own.
    if (next.find(": error: ") != std::string_view::npos) break;
    if (next.starts_with("hint: ")) line.append("; ").append(next);
  }
  return line;
}

Server::Server(ServerParts parts, std::string path, Overrides overrides, std::string version)
    : parts_(parts),
      reloader_(parts.reader, parts.engine, std::move(path), std::move(overrides)),
      version_(std::move(version)),
      news_("control.news", kNews),
      control_(parts.log.streams()) {
  parts_.reader.set_stats(this);
  add_commands();
}

Server::~Server() = default;

Result<Started, std::string> Server::start() {
  const auto settings = reloader_.read_settings();
  if (!settings) return settings.error();
  parts_.log.set_level(find_log_level(settings->log_level).value_or(LogLevel::info));
  if (settings->workers > kMaxWorkers) return fmt::format("workers: at most {}, not {}", kMaxWorkers, settings->workers);
  const auto count = static_cast<std::uint16_t>(settings->workers == 0 ? cores() : settings->workers);
  raise_descriptor_limit(settings->connections, parts_.log);

  // Before the stores: who starts a second server by mistake hears of the port, and no store was touched.
  std::vector<std::vector<int>> fds(count);       // of each worker, in the order of the listeners
  std::vector<std::string> tags{settings->tag};
  const auto close_all = [&fds] {
    for (const auto& of_one : fds)
      for (const int fd : of_one) close(fd);
  };
  const auto listen = [&fds, count](const std::string& host, std::uint16_t port) -> Result<std::uint16_t, std::string> {
    auto opened = open_listeners(host, port, count);
    if (!opened) return std::move(opened).error();
    for (std::uint16_t w = 0; w < count; ++w) fds[w].push_back(opened->fds[w]);
    return opened->port;
  };
  const auto port = listen(settings->host, settings->port);
  if (!port) return port.error();
  std::string listening;                          // the others, for the line
  for (const Settings::Listener& l : settings->more_listeners) {
    const auto its = listen(l.host, l.port);
    if (!its) {
      close_all();
      return its.error();
    }
    tags.push_back(l.tag);
    listening += fmt::format(R"({}{{"host":{},"port":{},"tag":{}{}}})", listening.empty() ? "" : ",", json(l.host), *its, json(l.tag),
                             l.tls ? R"(,"tls":true)" : "");
  }
  if (auto opened = open_control(*settings); !opened) {
    close_all();
    return opened.error();
  }
  auto prepared = reloader_.prepare(count, nullptr);
  if (!prepared) {
    close_all();
    return prepared.error();
  }
  if (!descriptors_left(kWorkerDescriptors * count) || !news_.wake().works()) {
    close_all();
    return fmt::format("no descriptors are left for {} threads; raise the limit (ulimit -n)", count);
  }
  for (const std::string& w : prepared->warnings) parts_.log.warn(w);
  const std::size_t stores = prepared->plan->stores()->stores.size();
  std::vector<Generation> generations = reloader_.apply(*std::move(prepared));
  keep_records(generations);
  limits_ = std::make_unique<ProcessLimits>(reloader_.settings());
  taken_over_.assign(count, reloader_.generation());
  std::vector<std::unique_ptr<Engine>> engines;
  for (std::uint16_t w = 0; w < count; ++w) {
    workers_.push_back(std::make_unique<Worker>(w, *limits_, news_));
    engines.push_back(parts_.engine.worker(w, workers_[w]->results()));
  }
  for (std::uint16_t w = 0; w < count; ++w)
    workers_[w]->start(std::move(engines[w]), std::move(fds[w]), std::move(generations[w]), tags);
  begin_crons();
  listen_for_control();
  parts_.log.event(LogLevel::info, "serving", fmt::format("serving {} on {} port {}", reloader_.path(), settings->host, *port));
  if (!listening.empty()) listening = ",\"more\":[" + listening + "]";
  if (control_.socket()) listening += ",\"control\":" + json(control_.socket()->path());
  return Started{*port, fmt::format(R"({{"port":{},"threads":{},"host":{},"stores":{},"pid":{},"version":{}{}{}}})", *port, count,
                                    json(settings->host), stores, getpid(), json(version_), settings->tls ? R"(,"tls":true)" : "", listening)};
}

std::string Server::serve() {
  while (!end_wanted_) {
    wait_for_news();
    run_crons();
    run_timers();
    // One that came while the last was being switched to runs now: the file may have changed behind it.
    if (reload_wanted_ && !switching() && !end_wanted_) reload();
  }
  drain();
  return counters();
}

bool Server::switching() const {
  return std::any_of(taken_over_.begin(), taken_over_.end(),
                     [this](std::uint64_t g) { return g != reloader_.generation(); });
}

void Server::wait_for_news() {
  TestControl* const test = parts_.test_control;
  std::vector<pollfd> fds{{parts_.signals.fd(), POLLIN, 0}, {news_.wake().fd(), POLLIN, 0}, {test ? test->fd() : -1, POLLIN, 0}};
  const std::size_t mine = fds.size();
  control_.wait_for(fds);
  int timeout_ms = control_timeout_ms();
  if (crons_ && crons_->next_ms() != Crons::kNever) {
    const std::uint64_t now = now_ms(), next = crons_->next_ms();
    const auto cron_ms = static_cast<int>(std::min<std::uint64_t>(next > now ? next - now : 0, 3'600'000));
    timeout_ms = timeout_ms < 0 ? cron_ms : std::min(timeout_ms, cron_ms);
  }
  if (poll(fds.data(), fds.size(), timeout_ms) < 0) return;
  if (fds[0].revents != 0) hear_signals();
  if (fds[2].revents != 0) test->hear(parts_.engine);
  if (fds[1].revents != 0) {
    news_.wake().quiet();
    news_.drain([this](News&& news) { hear(std::move(news)); });
  }
  control_.hear(fds.data() + mine);
}

void Server::hear_signals() {
  while (const std::optional<int> signal = parts_.signals.next()) {
    if (*signal == SIGHUP) {
      reload_wanted_ = true;
      continue;
    }
    end_wanted_ = true;
    parts_.signals.let_next_end_us();
    parts_.log.event(LogLevel::info, "ending", "ending: finishing what was accepted; a second signal ends at once");
    return;
  }
}

// What a worker gives back is destroyed here, at the end of this call.
void Server::hear(News news) {
  switch (news.kind) {
    case News::Kind::installed:
      taken_over_[news.worker] = news.generation.number;
      if (!reload_unsaid_ || switching()) return;
      reload_unsaid_ = false;
      reloads_.add();
      parts_.log.event(LogLevel::info, "reloaded", fmt::format("reloaded {}: generation {}", reloader_.path(), reloader_.generation()),
                       {{"generation", reloader_.generation()}});
      answer_reloads({});
      return;
    case News::Kind::drained: ++drained_; return;
    case News::Kind::answered:
      --cron_events_;
      if (crons_) note(crons_->answered(news.cron).value_or(Crons::Ran{}));
      return;
    case News::Kind::retired:
    case News::Kind::ended: return;
  }
}

void Server::reload() {
  reload_wanted_ = false;
  // Who asks from here on asks for the next one: this one may have read the file before.
  reloading_for_.insert(reloading_for_.end(), reload_askers_.begin(), reload_askers_.end());
  reload_askers_.clear();
  auto prepared = reloader_.prepare(static_cast<std::uint16_t>(workers_.size()), &reloader_.settings());
  if (!prepared) return reload_failed(prepared.error());
  if (auto opened = open_control(*prepared->settings); !opened) return reload_failed(opened.error());
  for (const std::string& w : prepared->warnings) parts_.log.event(LogLevel::warn, "reload_warning", "reload: " + w);
  reload_warnings_ = prepared->warnings;
  std::vector<Generation> generations = reloader_.apply(*std::move(prepared));
  keep_records(generations);
  limits_->apply(reloader_.settings());
  begin_crons();
  listen_for_control();
  parts_.log.set_level(find_log_level(reloader_.settings().log_level).value_or(LogLevel::info));
  reload_unsaid_ = true;
  for (std::size_t w = 0; w < workers_.size(); ++w) {
    // There is room: at most one generation is on its way to a worker, as reloads wait for the last to be taken over.
    const Result<void> sent = workers_[w]->install(std::move(generations[w]));
    SLUICE_CHECK(sent.has_value());
  }
}

void Server::reload_failed(std::string_view why) {
  reload_failures_.add();
  parts_.log.event(LogLevel::error, "reload_failed",
                   fmt::format("reload failed: {}; generation {} goes on", one_line(why), reloader_.generation()),
                   {{"generation", reloader_.generation()}, {"error", why}});
  answer_reloads(why);
}

void Server::begin_crons() {
  Crons* const next = reloader_.config()->crons();
  if (next) next->start(now_ms(), crons_, [this](CronEvent event) { return send(std::move(event)); });
  if (crons_) crons_->stop();
  crons_ = next;
  cron_config_ = reloader_.config();
}

std::uint32_t Server::send(CronEvent event) {
  StorePtr store = reloader_.find_store(event.store);
  if (!store || cron_events_ == kCronEvents) return 0;
  if (++cron_ids_ == 0) ++cron_ids_;
  const std::uint32_t id = cron_ids_;
  if (!workers_[id % workers_.size()]->post(std::move(store), std::move(event), id)) return 0;
  ++cron_events_;
  return id;
}

void Server::run_crons() {
  if (!crons_ || end_wanted_) return;
  note(crons_->run(now_ms()));
}

void Server::note(const Crons::Ran& ran) {
  cron_runs_.add(ran.runs);
  cron_failures_.add(ran.failures);
  if (ran.reload_wanted) reload_wanted_ = true;
}

void Server::drain() {
  if (crons_) crons_->stop();
  crons_ = nullptr;
  for (const Asker& asker : std::exchange(reload_askers_, {})) control_.refuse(asker, "the server is ending");
  for (const auto& w : workers_) w->drain();
  // A drain may take its time, and can be looked at.
  while (drained_ < workers_.size()) {
    wait_for_news();
    run_timers();
  }
  parts_.engine.stop();
  for (const auto& w : workers_) w->end();
  for (const auto& w : workers_) w->join();
  news_.drain([this](News&& news) { hear(std::move(news)); });
  control_.close();
}

void Server::each(const std::function<void(std::string_view, std::uint64_t)>& put) const {
  const auto sum = [this](Counter Counters::*counter) {
    std::uint64_t n = 0;
    for (const auto& w : workers_) n += (w->counters().*counter).get();
    return n;
  };
  const EngineCounters engine = parts_.engine.counters();
  put("active", sum(&Counters::active));
  put("accepted", sum(&Counters::accepted));
  put("requests", sum(&Counters::requests));
  put("bursts", engine.bursts);
  put("burst_events", engine.burst_events);
  put("expired", sum(&Counters::expired));
  put("retained_payload_bytes", limits_->payload.held());
  put("threads", workers_.size());
  put("commits", engine.commits);
  put("reloads", reloads_.get());
  put("reload_failures", reload_failures_.get());
  put("cron_runs", cron_runs_.get());
  put("cron_failures", cron_failures_.get());
  put("answers", sum(&Counters::answers));
  put("evaluated", engine.evaluated);
  put("faults", engine.faults);
  put("clients_gone", sum(&Counters::clients_gone));
  put("timeouts", sum(&Counters::timeouts));
  put("deadlines", sum(&Counters::deadlines));
  put("refused_connections", sum(&Counters::refused_connections));
  put("refused_requests", sum(&Counters::refused_requests));
  put("refused_budget", sum(&Counters::refused_budget));
  put("refused_active", sum(&Counters::refused_active));
  put("refused_busy", sum(&Counters::refused_busy));
  put("accept_failures", sum(&Counters::accept_failures));
  put("tls_handshakes", sum(&Counters::tls_handshakes));
  put("tls_resumptions", sum(&Counters::tls_resumptions));
  put("tls_failures", sum(&Counters::tls_failures));
  put("route_slots", sum(&Counters::route_slots));
  put("route_slots_in_use", sum(&Counters::route_slots_in_use));
  put("route_memory_bytes", sum(&Counters::route_memory_bytes));
}

std::string Server::counters() const {
  std::string out;
  each([&out](std::string_view name, std::uint64_t value) {
    out += fmt::format("{}\"{}\":{}", out.empty() ? "{" : ",", name, value);
  });
  return out + "}";
}

}  // namespace sluice::proxy
