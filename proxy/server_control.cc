// What a server does for its control socket: where that is, and the commands.
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <system_error>
#include <utility>

#include "proxy/remote/backend.h"
#include "proxy/server.h"
#include "vm/base/json.h"
#include "vm/base/number_text.h"

namespace sluice::proxy {
namespace {

std::string number(double n) {
  std::string out;
  append_number(out, std::isfinite(n) ? n : 0);
  return out;
}

struct Named {
  std::string_view name;
  Counter Counters::*counter;
};

// Of each worker: all of Counters.
constexpr Named kCounters[] = {
    {"connections", &Counters::connections},
    {"active", &Counters::active},
    {"outstanding", &Counters::outstanding},
    {"generations", &Counters::generations},
    {"accepted", &Counters::accepted},
    {"requests", &Counters::requests},
    {"answers", &Counters::answers},
    {"expired", &Counters::expired},
    {"clients_gone", &Counters::clients_gone},
    {"timeouts", &Counters::timeouts},
    {"deadlines", &Counters::deadlines},
    {"refused_connections", &Counters::refused_connections},
    {"refused_requests", &Counters::refused_requests},
    {"refused_budget", &Counters::refused_budget},
    {"refused_active", &Counters::refused_active},
    {"refused_busy", &Counters::refused_busy},
    {"accept_failures", &Counters::accept_failures},
    {"route_slots", &Counters::route_slots},
    {"route_slots_in_use", &Counters::route_slots_in_use},
    {"route_memory_bytes", &Counters::route_memory_bytes},
    {"turns", &Counters::turns},
    {"backend_requests", &Counters::backend_requests},
    {"backend_errors", &Counters::backend_errors},
    {"backend_timeouts", &Counters::backend_timeouts},
    {"backend_refused", &Counters::backend_refused},
    {"backend_retries", &Counters::backend_retries},
    {"backend_connects", &Counters::backend_connects},
    {"backend_in_flight", &Counters::backend_in_flight},
    {"backends_down", &Counters::backends_down},
    {"tls_handshakes", &Counters::tls_handshakes},
    {"tls_resumptions", &Counters::tls_resumptions},
    {"tls_failures", &Counters::tls_failures},
};

std::string counted_json(const Counted& c) {
  if (!c.histogram) return std::to_string(c.count);
  std::string out = fmt::format(R"({{"count":{},"sum":{},"min":{},"max":{})", c.count, number(c.sum), number(c.least), number(c.most));
  for (std::size_t i = 0; i < c.quantiles.size(); ++i) out += fmt::format(R"(,"{}":{})", Counted::kQuantileNames[i], number(c.quantiles[i]));
  return out + "}";
}

// An object's or a list's end instead of its last comma.
void close(std::string& out, char end) {
  if (out.back() == ',') out.back() = end;
  else out.push_back(end);
}

}  // namespace

// ---------------------------------------------------------------------------------------------------- where it is

Result<void, std::string> Server::open_control(const Settings& settings) {
  const std::string path = control_path(settings.control, reloader_.path());
  opened_.reset();
  // One that somebody has removed is made again.
  keeps_control_ = control_.socket() && control_.socket()->path() == path && control_.socket()->there();
  if (keeps_control_ || path.empty()) return {};
  if (settings.control) {
    std::error_code ignored;                   // who cannot make it cannot bind in it, which says why
    const std::filesystem::path folder = std::filesystem::path(path).parent_path();
    if (!folder.empty()) std::filesystem::create_directories(folder, ignored);
  }
  auto opened = UnixSocket::open(path, UnixSocket::Kind::stream);
  if (opened) {
    opened_ = *std::move(opened);
  } else if (settings.control) {
    return "control: " + opened.error();
  } else {
    parts_.log.event(LogLevel::warn, "no_control",
                     fmt::format("no control socket: {}; settings {{ control = PATH }} says where else", opened.error()));
  }
  return {};
}

void Server::listen_for_control() {
  if (!keeps_control_) control_.listen(std::move(opened_));
}

// ----------------------------------------------------------------------------------------------------------- times

void Server::after(std::uint64_t ms, std::function<void()> f) { timers_.push_back({monotonic_ms() + ms, std::move(f)}); }

std::uint64_t Server::control_next_ms(std::uint64_t now_ms) const {
  const int soon_ms = control_.timeout_ms();
  std::uint64_t next = soon_ms < 0 ? ~std::uint64_t{0} : now_ms + static_cast<std::uint64_t>(soon_ms);
  for (const Timer& t : timers_) next = std::min(next, t.at_ms);
  return next;
}

void Server::run_timers() {
  const std::uint64_t now = monotonic_ms();
  std::vector<Timer> due;
  for (Timer& t : timers_)
    if (t.at_ms <= now) due.push_back(std::move(t));
  if (due.empty()) return;
  std::erase_if(timers_, [now](const Timer& t) { return t.at_ms <= now; });
  for (const Timer& t : due) t.f();
}

// -------------------------------------------------------------------------------------------------------- commands

void Server::add_commands() {
  control_.add({"reload", {}, [this](const ControlAsked&, Asker to) {
                  if (end_wanted_) return control_.refuse(to, "the server is ending");
                  reload_askers_.push_back(to);
                  reload_wanted_ = true;
                }});
  control_.add({"stats", {"workers"}, [this](const ControlAsked& asked, Asker to) { tell_stats(asked, to); }});
  control_.add({"luaprof", {"kind", "seconds", "every"}, [this](const ControlAsked& asked, Asker to) { take_profile(asked, to); }});
  control_.add({"generations", {}, [this](const ControlAsked&, Asker to) { tell_generations(to); }});
  control_.add({"watch", {"streams"}, [this](const ControlAsked& asked, Asker to) {
                  const auto names = asked.texts("streams");
                  std::vector<Stream> streams;
                  for (const std::string& name : names.value_or(std::vector<std::string>())) {
                    const auto stream = find_stream(name);
                    if (!stream) return control_.refuse(to, "there is no stream `" + name + "`; there are requests, events and user");
                    streams.push_back(*stream);
                  }
                  if (streams.empty()) return control_.refuse(to, "watch takes streams, a list of requests, events and user");
                  control_.watch(to, streams);
                  control_.answer(to);
                }});
}

void Server::answer_reloads(std::string_view error) {
  const std::string generation = fmt::format(R"("generation":{})", reloader_.generation());
  std::string notes = ",\"notes\":[";
  for (const std::string& note : std::exchange(reload_notes_, {})) notes += in_json(note) + ",";
  close(notes, ']');
  for (const Asker& asker : std::exchange(reloading_for_, {})) {
    if (error.empty()) control_.answer(asker, generation + notes);
    else control_.refuse(asker, error, generation);
  }
}

void Server::tell_stats(const ControlAsked& asked, Asker to) {
  std::string out = "\"server\":{";
  each([&out](std::string_view name, std::uint64_t value) { out += fmt::format("\"{}\":{},", name, value); });
  close(out, '}');
  out += ",\"stores\":{";
  parts_.engine.each_store([&out](const StoreCounters& s) {
    out += fmt::format(R"({}:{{"shards":{},"bursts":{},"burst_events":{},"commits":{},"faults":{}}},)", in_json(s.name), s.shards, s.bursts,
                       s.burst_events, s.commits, s.faults);
  });
  close(out, '}');
  append_backend_stats(out, reloader_.config()->backends());
  out += ",\"user\":{";
  for (const Counted& c : reloader_.config()->counted()) out += in_json(c.name) + ":" + counted_json(c) + ",";
  close(out, '}');
  out += ",\"routes\":" + routes_json();
  if (asked.flag("workers")) {
    out += ",\"workers\":[";
    for (std::uint16_t w = 0; const Counters* const its = crew_->counters(w); ++w) {
      out += "{";
      for (const Named& n : kCounters) out += fmt::format("\"{}\":{},", n.name, (its->*n.counter).get());
      close(out, '}');
      out += ",";
    }
    close(out, ']');
  }
  control_.answer(to, out);
}

void Server::tell_generations(Asker to) {
  // Workers say it, each between two turns of its loop.
  crew_->report([this, to](const std::vector<GenerationReport>& all) {
    std::string out = fmt::format(R"("generation":{},"generations":[)", reloader_.generation());
    for (const GenerationReport& g : all) {
      out += fmt::format(R"({{"generation":{},"since":"{}","serves":{},"workers":[)", g.number, time_text(g.since_ms), g.serves);
      for (const GenerationReport::Part& part : g.parts) {
        const HeldGeneration& h = part.held;
        out += fmt::format(R"({{"worker":{},"requests":{},"events":{},"kept":{},"slots":{},"slots_in_use":{},"memory_bytes":{})", part.worker,
                           h.exchanges, h.events, h.kept, h.slots, h.slots_in_use, h.memory_bytes);
        if (!h.oldest.empty()) out += fmt::format(R"(,"oldest":{},"oldest_us":{})", in_json(h.oldest), h.oldest_us);
        out += "},";
      }
      close(out, ']');
      out += "},";
    }
    close(out, ']');
    control_.answer(to, out);
  });
}

}  // namespace sluice::proxy
