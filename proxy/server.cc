#include "proxy/server.h"

#include <poll.h>
#include <sched.h>
#include <sys/resource.h>
#include <spdlog/fmt/fmt.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "proxy/remote/backend.h"

namespace sluice::proxy {
namespace {

constexpr std::size_t kNews = 4096;
constexpr std::uint64_t kNever = ~std::uint64_t{0};
constexpr rlim_t kOtherDescriptors = 1024;   // stores, wake-ups, logs
constexpr std::uint32_t kCronEvents = 100;   // under way at once: fewer than a worker's commands, so that a reload has room
constexpr std::uint64_t kHeldLong_ms = 60'000;  // an old generation, until it is said what holds it; and again

// The cores this process may use, which taskset and containers make fewer than the machine has.
std::uint16_t cores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return static_cast<std::uint16_t>(std::clamp<int>(CPU_COUNT(&set), 1, Crew::kMost));
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

std::uint64_t wall_ms() {
  timespec t{};
  clock_gettime(CLOCK_REALTIME, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1000 + static_cast<std::uint64_t>(t.tv_nsec) / 1'000'000;
}

}  // namespace

std::uint64_t monotonic_ms() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1000 + static_cast<std::uint64_t>(t.tv_nsec) / 1'000'000;
}

std::string in_json(std::string_view text) {
  std::string out;
  append_json_text(out, text);
  return out;
}

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

struct Server::Next {
  Prepared config;
  std::uint16_t workers = 0;
  ListenSet::Plan listeners;
};

// Phase one: changes nothing that serves.
Result<Server::Next, std::string> Server::prepare() {
  Result<Prepared, std::string> read = reloader_.read_next();
  if (!read) return std::move(read).error();
  Next next;
  next.config = *std::move(read);
  const Settings& settings = *next.config.settings;
  if (settings.workers > Crew::kMost) return fmt::format("workers: at most {}, not {}", Crew::kMost, settings.workers);
  next.workers = settings.workers == 0 ? cores() : static_cast<std::uint16_t>(settings.workers);
  // Before the stores: who starts a second server by mistake hears of the port, and no store was touched.
  raise_descriptor_limit(settings.connections, parts_.log);
  Result<ListenSet::Plan, std::string> listeners = listen_set_.prepare(settings.listeners(), next.workers);
  if (!listeners) return (settings.listen_place.empty() ? "" : settings.listen_place + ": ") + listeners.error();
  next.listeners = *std::move(listeners);
  if (!crew_) {
    limits_ = std::make_unique<ProcessLimits>(settings);
    crew_ = std::make_unique<Crew>(parts_.engine, *limits_, news_);
  }
  if (auto opened = open_control(settings); !opened) return std::move(opened).error();
  crew_->make_room(next.workers, [this] { wait_for_workers(); });
  if (auto made = reloader_.prepare(next.config, crew_->indices(next.workers)); !made) return std::move(made).error();
  if (auto enough = crew_->check_descriptors(next.workers); !enough) return std::move(enough).error();
  for (std::size_t i = 0; i < next.listeners.places.size(); ++i) next.listeners.places[i].tls = next.config.tls[i];
  return next;
}

// Phase two; cannot fail.
std::vector<std::string> Server::switch_to(Next next) {
  std::vector<Generation> generations = reloader_.apply(std::move(next.config));
  keep_records(generations);
  const Settings& settings = reloader_.settings();
  limits_->apply(settings);
  parts_.log.set_level(find_log_level(settings.log_level).value_or(LogLevel::info));
  std::vector<std::string> lines = listen_set_.apply(std::move(next.listeners), monotonic_ms());
  const std::uint16_t before = crew_->size();
  const std::uint16_t workers = next.workers;
  crew_->install(workers, std::move(generations), [this, workers](std::uint16_t w) { return listen_set_.of_worker(w, workers); }, wall_ms());
  if (before != 0 && before != workers) lines.push_back(fmt::format("workers {} -> {}", before, workers));
  begin_crons();
  listen_for_control();
  return lines;
}

Result<Started, std::string> Server::start() {
  if (!news_.wake().works()) return std::string("no descriptors are left; raise the limit (ulimit -n)");
  Result<Next, std::string> next = prepare();
  if (!next) return std::move(next).error();
  for (const std::string& w : next->config.warnings) parts_.log.warn(w);
  const std::size_t stores = next->config.plan->stores()->stores.size();
  switch_to(*std::move(next));
  const std::vector<const ListenSet::Place*> places = listen_set_.places();
  const ListenSet::Place& first = *places[0];
  const auto tls = [](const ListenSet::Place& place) { return place.asked.tls ? R"(,"tls":true)" : ""; };
  std::string more;
  for (std::size_t i = 1; i < places.size(); ++i)
    more += fmt::format(R"({}{{"host":{},"port":{},"tag":{}{}}})", i == 1 ? "" : ",", in_json(places[i]->asked.host), places[i]->address.port(),
                        in_json(places[i]->asked.tag), tls(*places[i]));
  if (!more.empty()) more = ",\"more\":[" + more + "]";
  if (control_.socket()) more += ",\"control\":" + in_json(control_.socket()->path());
  parts_.log.event(LogLevel::info, "serving", fmt::format("serving {} on {}", reloader_.path(), describe(first)));
  return Started{first.address.port(),
                 fmt::format(R"({{"port":{},"threads":{},"host":{},"stores":{},"pid":{},"version":{}{}{}}})", first.address.port(), crew_->size(),
                             in_json(first.asked.host), stores, getpid(), in_json(version_), tls(first), more)};
}

std::string Server::serve() {
  while (!end_wanted_) {
    wait_for_news();
    run_crons();
    run_timers();
    look_at_listeners();
    look_at_generations();
    // One that came while the last was being switched to runs now: the file may have changed behind it.
    if (reload_wanted_ && !crew_->switching() && !end_wanted_) reload();
  }
  drain();
  return counters();
}

void Server::wait_for_workers() {
  news_.wake().wait(-1);
  news_.drain([this](News&& news) { hear(std::move(news)); });
}

void Server::look_at_listeners() {
  if (!listen_set_.tick(monotonic_ms())) return;
  crew_->listen([this](std::uint16_t w) { return listen_set_.of_worker(w, crew_->size()); });
}

void Server::look_at_generations() {
  const std::uint64_t since = crew_->generations().oldest_held_since_ms(), now = wall_ms();
  if (since == 0 || now < std::max(since, held_said_ms_) + kHeldLong_ms) return;
  held_said_ms_ = now;
  crew_->report([this](const std::vector<GenerationReport>& reports) {
    for (const GenerationReport& r : reports)
      if (!r.serves) parts_.log.event(LogLevel::warn, "generation_held", "still held: " + describe(r, wall_ms()), {{"generation", r.number}});
  });
}

void Server::wait_for_news() {
  TestControl* const test = parts_.test_control;
  std::vector<pollfd> fds{{parts_.signals.fd(), POLLIN, 0}, {news_.wake().fd(), POLLIN, 0}, {test ? test->fd() : -1, POLLIN, 0}};
  const std::size_t mine = fds.size();
  control_.wait_for(fds);
  const std::uint64_t now = monotonic_ms();
  std::uint64_t next = control_next_ms(now);
  // A drain runs none of these.
  if (!end_wanted_) {
    next = std::min(next, listen_set_.next_ms(now));
    if (crons_) next = std::min(next, crons_->next_ms());
    // A clock of the wall's may jump: it is looked at now and then.
    if (crew_->generations().oldest_held_since_ms() != 0) next = std::min(next, now + kHeldLong_ms);
  }
  int timeout_ms = -1;
  if (next != kNever) timeout_ms = static_cast<int>(std::min<std::uint64_t>(next > now ? next - now : 0, 3'600'000));
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
  crew_->hear(news);
  if (news.kind == News::Kind::answered) {
    --cron_events_;
    if (crons_) note(crons_->answered(news.cron).value_or(Crons::Ran{}));
  }
  if (!reload_unsaid_ || crew_->switching()) return;
  reload_unsaid_ = false;
  reloads_.add();
  parts_.log.event(LogLevel::info, "reloaded", fmt::format("reloaded {}: generation {}", reloader_.path(), reloader_.generation()),
                   {{"generation", reloader_.generation()}});
  answer_reloads({});
}

void Server::reload() {
  reload_wanted_ = false;
  // Who asks from here on asks for the next one: this one may have read the file before.
  reloading_for_.insert(reloading_for_.end(), reload_askers_.begin(), reload_askers_.end());
  reload_askers_.clear();
  Result<Next, std::string> next = prepare();
  if (!next) return reload_failed(next.error());
  reload_notes_ = next->config.warnings;
  for (const std::string& w : next->config.warnings) parts_.log.event(LogLevel::warn, "reload_note", "reload: " + w);
  const std::vector<std::string> lines = switch_to(*std::move(next));
  reload_notes_.insert(reload_notes_.end(), lines.begin(), lines.end());
  reload_unsaid_ = true;
  for (const std::string& line : lines) parts_.log.event(LogLevel::info, "reload_note", "reload: " + line);
}

void Server::reload_failed(std::string_view why) {
  opened_.reset();
  reload_failures_.add();
  parts_.log.event(LogLevel::error, "reload_failed",
                   fmt::format("reload failed: {}; generation {} goes on", one_line(why), reloader_.generation()),
                   {{"generation", reloader_.generation()}, {"error", why}});
  answer_reloads(why);
}

void Server::begin_crons() {
  Crons* const next = reloader_.config()->crons();
  if (next) next->start(monotonic_ms(), crons_, [this](CronEvent event) { return send(std::move(event)); });
  if (crons_) crons_->stop();
  crons_ = next;
  cron_config_ = reloader_.config();
}

std::uint32_t Server::send(CronEvent event) {
  StorePtr store = reloader_.find_store(event.store);
  if (!store || cron_events_ == kCronEvents) return 0;
  if (++cron_ids_ == 0) ++cron_ids_;
  const std::uint32_t id = cron_ids_;
  if (!crew_->serving(id).post(std::move(store), std::move(event), id)) return 0;
  ++cron_events_;
  return id;
}

void Server::run_crons() {
  if (!crons_ || end_wanted_) return;
  note(crons_->run(monotonic_ms()));
}

void Server::note(const Crons::Ran& ran) {
  cron_runs_.add(ran.runs);
  cron_failures_.add(ran.failures);
  if (ran.reload_wanted) reload_wanted_ = true;
}

void Server::drain() {
  if (crons_) crons_->stop();
  crons_ = nullptr;
  listen_set_.refuse_new();
  for (const Asker& asker : std::exchange(reload_askers_, {})) control_.refuse(asker, "the server is ending");
  // It may take its time, and can be looked at.
  crew_->drain([this] {
    wait_for_news();
    run_timers();
  });
  parts_.engine.stop();
  crew_->end();
  news_.drain([this](News&& news) { hear(std::move(news)); });
  control_.close();
}

void Server::each(const std::function<void(std::string_view, std::uint64_t)>& put) const {
  const auto sum = [this](Counter Counters::*counter) { return crew_->sum(counter); };
  const EngineCounters engine = parts_.engine.counters();
  put("active", sum(&Counters::active));
  put("accepted", sum(&Counters::accepted));
  put("requests", sum(&Counters::requests));
  put("bursts", engine.bursts);
  put("burst_events", engine.burst_events);
  put("expired", sum(&Counters::expired));
  put("retained_payload_bytes", limits_->payload.held());
  put("threads", crew_->size());
  put("commits", engine.commits);
  put("reloads", reloads_.get());
  put("reload_failures", reload_failures_.get());
  put("generations", crew_->generations().alive());
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
  put("backend_requests", sum(&Counters::backend_requests));
  put("backend_errors", sum(&Counters::backend_errors));
  put("backend_timeouts", sum(&Counters::backend_timeouts));
  put("backend_refused", sum(&Counters::backend_refused));
  put("backend_retries", sum(&Counters::backend_retries));
  put("backend_connects", sum(&Counters::backend_connects));
  put("backend_in_flight", sum(&Counters::backend_in_flight));
  put("backends_down", sum(&Counters::backends_down));
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
  append_backend_stats(out, reloader_.config() ? reloader_.config()->backends() : std::span<const BackendPtr>());
  return out + "}";
}

}  // namespace sluice::proxy
