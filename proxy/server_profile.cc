// What a server says of its routes' memory, and the profiles that it takes of them when it is asked.
#include <spdlog/fmt/fmt.h>

#include <cmath>
#include <utility>

#include "proxy/server.h"

namespace sluice::proxy {
namespace {

constexpr double kLongestSeconds = 600, kUsualSeconds = 5;
constexpr std::size_t kMostRows = 1000;          // of one answer, whose total is of all

std::string rows_json(const std::vector<RouteProfile::Row>& rows) {
  std::uint64_t weight = 0, count = 0;
  std::string list;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const RouteProfile::Row& r = rows[i];
    weight += r.weight;
    count += r.count;
    if (i < kMostRows)
      list += fmt::format(R"({}{{"function":{},"place":{},"weight":{},"count":{}}})", i == 0 ? "" : ",", in_json(r.function), in_json(r.place), r.weight, r.count);
  }
  return fmt::format(R"("weight":{},"count":{},"rows":[{}])", weight, count, list);
}

}  // namespace

void Server::keep_records(const std::vector<Generation>& generations) {
  RouteRecords records;
  for (const Generation& g : generations)
    if (auto record = g.routes->record()) records.push_back(std::move(record));
  records_.set(std::move(records));
}

std::string Server::routes_json() const {
  std::string vms, generators;
  for (const auto& r : records_.get()) {
    vms += fmt::format(R"({}{{"worker":{},"bytes":{},"limit":{},"refused":{},"stopped":{},"collections":{},"collector_steps":{},"longest_step_us":{}}})",
                       vms.empty() ? "" : ",", r->worker, r->memory_bytes.get(), r->memory_limit.get(), r->refused.get(), r->stopped.get(),
                       r->collections.get(), r->collector_steps.get(), r->longest_step_us.get());
    for (const auto& g : r->generators)
      generators += fmt::format(R"({}{{"worker":{},"name":{},"slots":{},"in_use":{},"bytes":{}}})", generators.empty() ? "" : ",", r->worker, in_json(g->name),
                                g->slots.get(), g->in_use.get(), g->bytes.get());
  }
  return fmt::format(R"({{"workers":[{}],"generators":[{}]}})", vms, generators);
}

void Server::take_profile(const ControlAsked& asked, Asker to) {
  if (profiling_) return control_.refuse(to, "a profile is being taken; ask again when it is done");
  const std::string kind = asked.text("kind").value_or("memory");
  if (kind != "memory" && kind != "time") return control_.refuse(to, "the kind of a profile is memory or time");
  const double seconds = asked.raw("seconds").empty() ? kUsualSeconds : asked.number("seconds").value_or(-1);
  if (!(seconds >= 0.01 && seconds <= kLongestSeconds)) return control_.refuse(to, "a profile takes 0.01 to 600 seconds");
  const double every = asked.raw("every").empty() ? 0 : asked.number("every").value_or(-1);
  if (!(every >= 0 && every <= RouteProfile::kMostBytes) || every != std::floor(every))
    return control_.refuse(to, "`every` is a whole number of bytes or microseconds, up to 1048576");
  RouteRecords records = records_.get();
  if (records.empty()) return control_.refuse(to, "this server has no routes in Lua");
  profiling_ = true;
  for (const auto& r : records) r->profile.start(kind == "time" ? RouteProfile::Kind::time : RouteProfile::Kind::memory, static_cast<std::uint32_t>(every));
  after(static_cast<std::uint64_t>(std::llround(seconds * 1000)), [this, to, kind, seconds, records = std::move(records)] {
    profiling_ = false;
    std::vector<std::vector<RouteProfile::Row>> lists;
    std::string workers;
    for (const auto& r : records) {
      lists.push_back(r->profile.stop());
      workers += fmt::format(R"({}{{"worker":{},{}}})", workers.empty() ? "" : ",", r->worker, rows_json(lists.back()));
    }
    control_.answer(to, fmt::format(R"("kind":{},"seconds":{},{},"workers":[{}])", in_json(kind), seconds, rows_json(merge(lists)), workers));
  });
}

}  // namespace sluice::proxy
