#include "proxy/remote/backend.h"

#include <algorithm>

#include "vm/base/json.h"

namespace sluice::proxy {
namespace {

// Without a port that goes without saying.
std::string host_line_of(const BackendSpec& spec) {
  std::string host = spec.host_field;
  if (host.empty() && !spec.place.path.empty()) host = "localhost";
  if (host.empty()) {
    host = spec.place.text();
    if (spec.place.port == 80) host.resize(host.rfind(':'));
  }
  return "Host: " + host + "\r\n";
}

}  // namespace

std::string BackendSpec::key() const {
  std::vector<std::string> at;
  for (const SocketAddress& a : addresses) at.push_back(a.text);
  std::sort(at.begin(), at.end());
  std::string key;
  const auto put = [&key](std::string_view part) { key.append(part).push_back('\n'); };
  put(label), put(prefix), put(host_field), put(place.text());
  const BackendOptions& o = options;
  for (const std::uint64_t n :
       {std::uint64_t{o.connections}, std::uint64_t{o.connect_timeout_ms}, std::uint64_t{o.read_timeout_ms},
        std::uint64_t{o.idle_timeout_ms}, std::uint64_t{o.failure_limit}, std::uint64_t{o.retry_waittime_ms},
        std::uint64_t{o.flap_time_ms}, std::uint64_t{o.flap_backoff_max_ms}, std::uint64_t{o.depth_limit},
        std::uint64_t{o.head_bytes}, o.body_bytes, std::uint64_t{o.tcp_keepalive}, std::uint64_t{o.down}})
    put(std::to_string(n));
  put(std::to_string(o.flap_backoff_ramp));
  for (const std::string& a : at) put(a);
  return key;
}

BackendStats::~BackendStats() {
  for (const auto& c : cells_) delete c.load(std::memory_order_relaxed);
}

BackendCounters& BackendStats::cell(std::uint16_t worker) {
  std::atomic<BackendCounters*>& place = cells_[worker % kCells];
  BackendCounters* c = place.load(std::memory_order_relaxed);
  if (!c) {
    c = new BackendCounters;
    place.store(c, std::memory_order_release);
  }
  return *c;
}

void BackendStats::each(const std::function<void(std::string_view, std::uint64_t)>& f) const {
  struct Named {
    std::string_view name;
    Counter BackendCounters::*counter;
  };
  static constexpr Named kAll[] = {
      {"requests", &BackendCounters::requests}, {"answers", &BackendCounters::answers}, {"errors", &BackendCounters::errors},
      {"timeouts", &BackendCounters::timeouts}, {"refused", &BackendCounters::refused}, {"retries", &BackendCounters::retries},
      {"connects", &BackendCounters::connects}, {"connect_failures", &BackendCounters::connect_failures},
      {"bytes_sent", &BackendCounters::bytes_sent}, {"bytes_received", &BackendCounters::bytes_received},
      {"waiting", &BackendCounters::waiting}, {"in_flight", &BackendCounters::in_flight},
      {"connections", &BackendCounters::connections}, {"down", &BackendCounters::down}};
  for (const Named& n : kAll) {
    std::uint64_t sum = 0;
    for (const auto& c : cells_)
      if (const BackendCounters* cell = c.load(std::memory_order_acquire)) sum += (cell->*n.counter).get();
    f(n.name, sum);
  }
}

Backend::Backend(BackendSpec its, std::shared_ptr<BackendStats> counted, Log* its_log)
    : spec(std::move(its)),
      name(spec.name()),
      host_line(host_line_of(spec)),
      stats(std::move(counted)),
      log(its_log),
      depth(spec.options.depth_limit ? spec.options.depth_limit : ~std::uint64_t{0}) {}

void append_backend_stats(std::string& out, std::span<const BackendPtr> backends) {
  if (backends.empty()) return;
  out.append(",\"backends\":{");
  std::string_view before;
  for (std::size_t i = 0; i < backends.size(); ++i) {
    const BackendPtr& b = backends[i];
    // Those of one name count together.
    if (std::any_of(backends.begin(), backends.begin() + static_cast<std::ptrdiff_t>(i), [&](const BackendPtr& o) { return o->name == b->name; })) continue;
    out.append(before);
    before = ",";
    append_json_string(out, b->name);
    char open = '{';
    out.push_back(':');
    b->stats->each([&](std::string_view name, std::uint64_t value) {
      out.push_back(open);
      open = ',';
      out.append("\"").append(name).append("\":").append(std::to_string(value));
    });
    out.push_back('}');
  }
  out.push_back('}');
}

}  // namespace sluice::proxy
