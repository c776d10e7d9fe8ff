#include "proxy/remote/health.h"

#include <algorithm>

namespace sluice::proxy {
namespace {
constexpr std::uint32_t kMostLevels = 64;   // so that the power below stays finite
constexpr double kJitter = 0.25;            // of a wait, either way
}  // namespace

bool Health::admit(bool& trial) {
  trial = state_ == State::ready;
  if (trial) state_ = State::on_trial;
  return trial || state_ == State::up;
}

bool Health::succeeded(std::uint64_t now_us) {
  failures_ = 0;
  if (state_ == State::up) return false;
  state_ = State::up;
  up_since_us_ = now_us;
  return true;
}

bool Health::failed(std::uint64_t now_us, bool trial, double chance) {
  switch (state_) {
    case State::up:
      if (failures_ > 0 && now_us - counted_at_us_ < kSpacing_us) return false;
      counted_at_us_ = now_us;
      ++failures_;
      if (options_.failure_limit == 0 || failures_ < options_.failure_limit) return false;
      level_ = was_down_ && now_us - up_since_us_ < std::uint64_t{options_.flap_time_ms} * 1000 ? level_ + 1 : 0;
      break;
    case State::trying:
    case State::ready:
    case State::on_trial:
      if (!trial) return false;   // of a request from before
      ++level_;
      break;
    case State::down: return false;
  }
  go_down(now_us, chance);
  return true;
}

void Health::go_down(std::uint64_t now_us, double chance) {
  state_ = State::down;
  was_down_ = true;
  failures_ = 0;
  level_ = std::min(level_, kMostLevels);
  const double most = static_cast<double>(options_.flap_backoff_max_ms) * 1000;
  double wait = static_cast<double>(options_.retry_waittime_ms) * 1000;
  for (std::uint32_t i = 0; i < level_ && wait < most; ++i) wait *= options_.flap_backoff_ramp;
  wait = std::min(wait, most) * (1 - kJitter + 2 * kJitter * chance);
  wait_us_ = static_cast<std::uint64_t>(wait);
  retry_at_us_ = now_us + wait_us_;
}

}  // namespace sluice::proxy
