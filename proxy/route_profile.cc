#include "proxy/route_profile.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <map>

namespace sluice::proxy {
namespace {

void sort_rows(std::vector<RouteProfile::Row>& rows) {
  std::sort(rows.begin(), rows.end(), [](const RouteProfile::Row& a, const RouteProfile::Row& b) {
    return a.weight != b.weight ? a.weight > b.weight : a.place != b.place ? a.place < b.place : a.function < b.function;
  });
}

}  // namespace

void RouteProfile::start(Kind kind, std::uint32_t every) {
  const bool memory = kind == Kind::memory;
  if (every == 0) every = memory ? kUsualBytes : kUsualUs;
  every = std::clamp(every, memory ? kLeastBytes : kLeastUs, memory ? kMostBytes : kMostUs);
  const std::lock_guard<std::mutex> hold(mutex_);
  sums_.clear();
  order_.store(++serial_ << 23 | std::uint64_t{every} << 2 | static_cast<std::uint64_t>(kind), std::memory_order_release);
}

std::vector<RouteProfile::Row> RouteProfile::stop() {
  const std::lock_guard<std::mutex> hold(mutex_);
  order_.store(++serial_ << 23, std::memory_order_release);
  std::vector<Row> rows = sorted();
  sums_.clear();
  return rows;
}

std::vector<RouteProfile::Row> RouteProfile::rows() const {
  const std::lock_guard<std::mutex> hold(mutex_);
  return sorted();
}

void RouteProfile::add(std::uint64_t order, std::string_view function, std::string_view place, std::uint64_t weight,
                       std::uint64_t count) {
  const std::lock_guard<std::mutex> hold(mutex_);
  if (order != order_.load(std::memory_order_relaxed)) return;
  auto at = sums_.find(place);
  if (at == sums_.end()) {
    const bool room = sums_.size() < kMostRows;
    at = sums_.emplace(room ? std::string(place) : "(others)", Sum{room ? std::string(function) : std::string(), 0, 0}).first;
  }
  at->second.weight += weight;
  at->second.count += count;
}

std::vector<RouteProfile::Row> RouteProfile::sorted() const {
  std::vector<Row> rows;
  rows.reserve(sums_.size());
  for (const auto& [place, sum] : sums_) rows.push_back({sum.function, place, sum.weight, sum.count});
  sort_rows(rows);
  return rows;
}

std::vector<RouteProfile::Row> merge(const std::vector<std::vector<RouteProfile::Row>>& lists) {
  std::map<std::string_view, RouteProfile::Row> by_place;
  for (const auto& list : lists)
    for (const RouteProfile::Row& r : list) {
      RouteProfile::Row& sum = by_place.try_emplace(r.place, RouteProfile::Row{r.function, r.place, 0, 0}).first->second;
      sum.weight += r.weight;
      sum.count += r.count;
    }
  std::vector<RouteProfile::Row> rows;
  rows.reserve(by_place.size());
  for (auto& [place, row] : by_place) rows.push_back(std::move(row));
  sort_rows(rows);
  return rows;
}

std::string profile_table(RouteProfile::Kind kind, const std::vector<RouteProfile::Row>& rows, std::size_t most) {
  const bool memory = kind == RouteProfile::Kind::memory;
  std::uint64_t weight = 0, count = 0;
  for (const RouteProfile::Row& r : rows) {
    weight += r.weight;
    count += r.count;
  }
  std::string out = fmt::format("{:>15} {:>6} {:>12}  function\n", memory ? "bytes" : "microseconds", "part", memory ? "allocations" : "samples");
  const auto line = [&](std::uint64_t w, std::uint64_t n, std::string_view what) {
    out += fmt::format("{:>15} {:>5.1f}% {:>12}  {}\n", w, weight ? 100.0 * static_cast<double>(w) / static_cast<double>(weight) : 0.0, n, what);
  };
  std::size_t shown = 0;
  std::uint64_t rest_weight = 0, rest_count = 0;
  for (const RouteProfile::Row& r : rows) {
    if (++shown > most) {
      rest_weight += r.weight;
      rest_count += r.count;
      continue;
    }
    line(r.weight, r.count, r.function.empty() ? r.place : r.function + " (" + r.place + ")");
  }
  if (rows.size() > most) line(rest_weight, rest_count, fmt::format("({} more)", rows.size() - most));
  line(weight, count, "total");
  return out;
}

}  // namespace sluice::proxy
