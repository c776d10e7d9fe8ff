// One counter or histogram of a config's own, as it is now.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::proxy {

struct Counted {
  static constexpr std::array<double, 4> kQuantiles = {0.5, 0.9, 0.99, 0.999};
  static constexpr std::array<std::string_view, 4> kQuantileNames = {"p50", "p90", "p99", "p999"};
  std::string name;
  bool histogram = false;
  std::int64_t count = 0;                 // of a counter: its value; of a histogram: how many were recorded
  double sum = 0, least = 0, most = 0;    // of a histogram
  std::array<double, 4> quantiles{};
};

}  // namespace sluice::proxy
