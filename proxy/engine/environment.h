// One open store::Store with all that keeps it open: it closes when nobody reads it any more, and never under a reader.
//
// Whoever holds a snapshot holds a pin. Closing is asked for when the last reference to the store has gone, when a commit
// failed, or at the end of the process; it happens when the last pin goes, on an owner's thread while there is one.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "proxy/wake.h"
#include "store/store.h"

namespace sluice::proxy {

// Thread: any, but store(), which needs a pin or an owner's word that it has not closed.
class Environment {
 public:
  Environment(std::string name, std::unique_ptr<store::Store> store) : name_(std::move(name)), store_(std::move(store)) {}
  ~Environment();
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

  const std::string& name() const { return name_; }
  store::Store& store() { return *store_; }
  // What an answer holds on to. Life: `home` is what this is a part of, set once after it is made.
  void belongs_to(const std::shared_ptr<void>& home) { home_ = home; }
  std::shared_ptr<Environment> shared() { return {home_.lock(), this}; }

  // False: it closes or has closed.
  bool try_pin();
  void pin_more() { state_.fetch_add(1); }  // by one who has a pin
  void unpin();

  // No new pins from now on.
  void start_closing();
  bool closing() const { return (state_.load() & kClosing) != 0; }
  // Closes if closing was started and no pin is left. True: it is closed now.
  bool try_close();
  // Waits until it is closed, at most so long. Thread: control.
  bool wait_closed(int timeout_ms);

  // A commit failed with an unknown outcome: nothing is served until the store is opened again.
  void set_failed() { failed_.store(true, std::memory_order_release); }
  bool failed() const { return failed_.load(std::memory_order_acquire); }

  // Who looks after closing while there are owners: an unpin that leaves nothing rings there; without one it closes
  // itself. Life: `bell` lives as long as this.
  void set_bell(const Wake* bell) { bell_.store(bell); }

  // Units: ms since 1970. The clock never runs behind this: what was stored, and every burst's reading since.
  std::uint64_t clock(std::uint64_t wall_ms) {
    std::uint64_t floor = clock_ms_.load(std::memory_order_relaxed);
    while (wall_ms > floor && !clock_ms_.compare_exchange_weak(floor, wall_ms, std::memory_order_relaxed)) {
    }
    return wall_ms > floor ? wall_ms : floor;
  }
  // The same without moving it, for views.
  std::uint64_t clock_seen(std::uint64_t wall_ms) const {
    const std::uint64_t floor = clock_ms_.load(std::memory_order_relaxed);
    return wall_ms > floor ? wall_ms : floor;
  }

 private:
  static constexpr std::uint32_t kClosing = 1u << 31;
  static constexpr std::uint32_t kClosed = 1u << 30;
  static constexpr std::uint32_t kPins = kClosed - 1;

  const std::string name_;
  std::weak_ptr<void> home_;
  std::unique_ptr<store::Store> store_;
  std::atomic<std::uint32_t> state_{0};     // the two bits, and how many pins
  std::atomic<bool> failed_{false};
  std::atomic<std::uint64_t> clock_ms_{0};
  std::atomic<const Wake*> bell_{nullptr};
  std::mutex mutex_;                        // for closed_ alone
  std::condition_variable closed_;
  bool gone_ = false;                       // guarded by mutex_
};
using EnvironmentPtr = std::shared_ptr<Environment>;

// A thread's reader of an environment, which pins it while it has a snapshot.
// Thread: the one that uses it.
class PinnedReader {
 public:
  explicit PinnedReader(Environment& environment) : environment_(&environment) {}
  ~PinnedReader() { rest(); }
  PinnedReader(const PinnedReader&) = delete;
  PinnedReader& operator=(const PinnedReader&) = delete;

  // Keeps the store open until rest(), without a snapshot. Errors: stopped.
  Result<void> pin();
  // The newest commit. Errors: stopped when the store closes; storage, damaged. Life: until renewed or rest().
  Result<const store::Snapshot*> renew();
  const store::Snapshot* snapshot() const { return snapshot_ ? &*snapshot_ : nullptr; }
  // Lets go, so that an idle thread pins no old pages.
  void rest();

 private:
  Environment* environment_;
  std::optional<store::Reader> reader_;
  std::optional<store::Snapshot> snapshot_;
  bool pinned_ = false;
};

// A document's bytes on their way to a client: what keeps them good. Thread: any.
class Lent {
 public:
  // The caller has a pin.
  Lent(EnvironmentPtr environment, store::Loan loan) : environment_(std::move(environment)), loan_(std::move(loan)) {
    environment_->pin_more();
  }
  ~Lent() {
    loan_.reset();
    environment_->unpin();
  }
  Lent(const Lent&) = delete;
  Lent& operator=(const Lent&) = delete;

 private:
  EnvironmentPtr environment_;
  store::Loan loan_;
};

}  // namespace sluice::proxy
