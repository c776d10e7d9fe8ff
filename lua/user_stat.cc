#include "lua/user_stat.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sluice::lua {
namespace {

// One writer: no locked instruction is needed.
template <class T>
void plus(std::atomic<T>& a, T n) {
  a.store(a.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
}

std::int64_t sum_of(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return b < 0 ? std::numeric_limits<std::int64_t>::min() : std::numeric_limits<std::int64_t>::max();
  return sum;
}
// What JSON has no number for would take all of the stats with it.
double sum_of(double a, double b) { return std::clamp(a + b, std::numeric_limits<double>::lowest(), std::numeric_limits<double>::max()); }

}  // namespace

void StatCell::add(double n) {
  count.store(sum_of(count.load(std::memory_order_relaxed), static_cast<std::int64_t>(n)), std::memory_order_relaxed);
}

std::size_t StatCell::bucket_of(double value) {
  if (!(value > 0)) return 0;
  int power = 0;
  const double part = std::frexp(value, &power);          // 0.5 <= part < 1
  if (power - 1 < kLowest) return 0;
  if (power - 1 >= kHighest) return kBuckets - 1;
  const int within = static_cast<int>((part - 0.5) * 2 * kPerPower);
  return static_cast<std::size_t>((power - 1 - kLowest) * kPerPower + within);
}

double StatCell::middle_of(std::size_t bucket) {
  const int at = static_cast<int>(bucket);
  const double low = std::ldexp(1.0 + static_cast<double>(at % kPerPower) / kPerPower, at / kPerPower + kLowest);
  return low * (1 + 0.5 / kPerPower);
}

void StatCell::record(double value) {
  if (count.load(std::memory_order_relaxed) == 0) {
    least.store(value, std::memory_order_relaxed);
    most.store(value, std::memory_order_relaxed);
  } else {
    if (value < least.load(std::memory_order_relaxed)) least.store(value, std::memory_order_relaxed);
    if (value > most.load(std::memory_order_relaxed)) most.store(value, std::memory_order_relaxed);
  }
  plus<std::int64_t>(count, 1);
  sum.store(sum_of(sum.load(std::memory_order_relaxed), value), std::memory_order_relaxed);
  plus<std::uint64_t>((*buckets)[bucket_of(value)], 1);
}

UserStat::~UserStat() {
  for (auto& c : cells_) delete c.load(std::memory_order_relaxed);
}

StatCell& UserStat::cell(std::uint16_t worker) {
  std::atomic<StatCell*>& place = cells_[std::min<std::size_t>(worker, kCells - 1)];
  if (StatCell* there = place.load(std::memory_order_relaxed)) return *there;
  auto made = std::make_unique<StatCell>();
  if (kind_ == Kind::histogram) made->buckets = std::make_unique<std::array<std::atomic<std::uint64_t>, StatCell::kBuckets>>();
  StatCell* cell = made.release();
  place.store(cell, std::memory_order_release);
  return *cell;
}

proxy::Counted UserStat::read() const {
  proxy::Counted s;
  s.name = name_;
  s.histogram = kind_ == Kind::histogram;
  std::vector<std::uint64_t> all(kind_ == Kind::histogram ? StatCell::kBuckets : 0);
  std::uint64_t recorded = 0;
  bool some = false;
  for (const auto& place : cells_) {
    const StatCell* c = place.load(std::memory_order_acquire);
    const std::int64_t n = c ? c->count.load(std::memory_order_relaxed) : 0;
    if (n == 0) continue;
    s.count = sum_of(s.count, n);
    if (kind_ == Kind::counter) continue;
    s.sum = sum_of(s.sum, c->sum.load(std::memory_order_relaxed));
    const double least = c->least.load(std::memory_order_relaxed), most = c->most.load(std::memory_order_relaxed);
    s.least = some ? std::min(s.least, least) : least;
    s.most = some ? std::max(s.most, most) : most;
    some = true;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::uint64_t in = (*c->buckets)[i].load(std::memory_order_relaxed);
      all[i] += in;
      recorded += in;
    }
  }
  if (kind_ == Kind::counter) return s;
  for (std::size_t i = 0; i < s.quantiles.size(); ++i) {
    const double q = proxy::Counted::kQuantiles[i];
    const auto wanted = static_cast<std::uint64_t>(std::ceil(q * static_cast<double>(recorded)));
    std::uint64_t seen = 0;
    std::size_t at = 0;
    while (at < all.size() && (seen += all[at]) < wanted) ++at;
    s.quantiles[i] = recorded == 0 ? 0 : std::clamp(StatCell::middle_of(std::min(at, all.size() - 1)), s.least, s.most);
  }
  return s;
}

}  // namespace sluice::lua
