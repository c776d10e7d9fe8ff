#include "proxy/engine/environment.h"

#include <chrono>

namespace sluice::proxy {

Environment::~Environment() { SLUICE_CHECK((state_.load() & kPins) == 0); }

bool Environment::try_pin() {
  std::uint32_t state = state_.load();
  do {
    if ((state & (kClosing | kClosed)) != 0) return false;
  } while (!state_.compare_exchange_weak(state, state + 1));
  return true;
}

void Environment::unpin() {
  const std::uint32_t before = state_.fetch_sub(1);
  SLUICE_ASSERT((before & kPins) > 0);
  if ((before & kPins) != 1 || (before & kClosing) == 0) return;
  // An owner that ends takes its bell away and then looks for itself: one of the two sees the last pin go.
  if (const Wake* bell = bell_.load()) bell->ring();
  else try_close();
}

void Environment::start_closing() { state_.fetch_or(kClosing); }

bool Environment::try_close() {
  std::uint32_t state = kClosing;
  if (!state_.compare_exchange_strong(state, kClosing | kClosed)) return (state & kClosed) != 0;
  store_.reset();
  const std::lock_guard<std::mutex> hold(mutex_);
  gone_ = true;
  closed_.notify_all();
  return true;
}

bool Environment::wait_closed(int timeout_ms) {
  std::unique_lock<std::mutex> hold(mutex_);
  return closed_.wait_for(hold, std::chrono::milliseconds(timeout_ms), [this] { return gone_; });
}

Result<void> PinnedReader::pin() {
  if (pinned_) return {};
  if (!environment_->try_pin()) return fail(Errc::stopped, "the store is closing");
  pinned_ = true;
  return {};
}

Result<const store::Snapshot*> PinnedReader::renew() {
  if (const Result<void> pinned = pin(); !pinned) return pinned.error();
  if (!reader_) reader_.emplace(environment_->store());
  Result<store::Snapshot> newest = reader_->snapshot();
  if (!newest) {
    const Error error = newest.error();
    rest();
    return error;
  }
  snapshot_.emplace(std::move(*newest));
  return &*snapshot_;
}

void PinnedReader::rest() {
  if (!pinned_) return;
  snapshot_.reset();
  if (reader_) reader_->rest();
  pinned_ = false;
  environment_->unpin();
}

}  // namespace sluice::proxy
