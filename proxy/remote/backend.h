// A remote backend as a config describes it, and what all workers have of it in common.
//
// Two configs that describe it alike share one of these: that is how a reload finds the connections of each worker again.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/budget.h"
#include "proxy/counters.h"
#include "proxy/remote/address.h"
#include "proxy/remote/options.h"

namespace sluice::proxy {

class Log;

// What a config says of one.
struct BackendSpec {
  std::string label;                          // what results, logs and counters call it
  std::string prefix;                         // of its pool: connections of its own
  std::string host_field;                     // the Host that is sent; empty: the place's
  BackendPlace place;
  BackendOptions options;
  std::vector<SocketAddress> addresses;       // empty: it is down by its description

  std::string name() const { return prefix + label; }
  // Equal for descriptions that are alike, whatever the order of the addresses.
  std::string key() const;
};

// Thread: written by one worker, read by any.
struct alignas(64) BackendCounters {
  Counter requests;                           // taken on, those refused at once included
  Counter answers;                            // whole ones, of any status
  Counter errors;                             // failed: not connected, broken off, not HTTP
  Counter timeouts;
  Counter refused;                            // failed at once: down, or over the depth limit
  Counter retries;                            // sent again on another connection
  Counter connects, connect_failures;
  Counter bytes_sent, bytes_received;
  Counter waiting, in_flight, connections;    // now
  Counter down;                               // now: 1 or 0
};

// Counts per worker under one name, over reloads.
class BackendStats {
 public:
  static constexpr std::size_t kCells = 256;
  BackendStats() = default;
  ~BackendStats();
  BackendStats(const BackendStats&) = delete;
  BackendStats& operator=(const BackendStats&) = delete;
  // Made when it is asked for first. Thread: that worker.
  BackendCounters& cell(std::uint16_t worker);
  // All workers together. Thread: any. What is counted meanwhile is seen in part.
  void each(const std::function<void(std::string_view name, std::uint64_t value)>& f) const;

 private:
  std::array<std::atomic<BackendCounters*>, kCells> cells_{};
};

// Frozen, but for the depth. Thread: any.
struct Backend {
  Backend(BackendSpec its, std::shared_ptr<BackendStats> counted, Log* its_log);
  const BackendSpec spec;
  const std::string name;                     // Life: views of it are in responses; whoever holds those holds this
  const std::string host_line;                // "Host: ...\r\n"
  const std::shared_ptr<BackendStats> stats;
  Log* const log;                             // may be null
  Budget depth;                               // requests waiting or in flight, when options.depth_limit is not 0
};
using BackendPtr = std::shared_ptr<Backend>;

// Appends `,"backends":{"LABEL":{"requests":1,...},...}` with what each counts; nothing when there are none.
void append_backend_stats(std::string& out, std::span<const BackendPtr> backends);

}  // namespace sluice::proxy
