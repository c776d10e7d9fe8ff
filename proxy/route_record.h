// What the routes of one generation on one worker hold: written by the worker as it goes on, read by whoever asks.
#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "proxy/counters.h"
#include "proxy/route_profile.h"

namespace sluice::proxy {

// One maker of request contexts (slots). Thread: its name frozen, the rest as Counter.
struct GeneratorRecord {
  explicit GeneratorRecord(std::string its_name) : name(std::move(its_name)) {}
  const std::string name;
  Counter slots, in_use;
  Counter bytes;                // of all its slots: what building each took from its VM, and its objects in C++
};

// Thread: the list is frozen once the generation is made; the rest as Counter.
struct RouteRecord {
  explicit RouteRecord(std::uint16_t its_worker) : worker(its_worker) {}
  const std::uint16_t worker;
  std::vector<std::unique_ptr<GeneratorRecord>> generators;

  Counter memory_bytes;         // of the VM, as it was at the end of the last turn
  Counter memory_limit;         // 0: none
  Counter refused;              // times that it was asked for more
  Counter stopped;              // stretches of Lua that ran too long
  Counter collections;          // whole cycles of the collector
  Counter collector_steps;      // between turns of the loop
  Counter longest_step_us;
  RouteProfile profile;
};

using RouteRecords = std::vector<std::shared_ptr<RouteRecord>>;   // one per worker

// Those of the newest generation. Thread: any.
class RecordBook {
 public:
  void set(RouteRecords records) {
    const std::lock_guard<std::mutex> hold(mutex_);
    records_.swap(records);
  }
  RouteRecords get() const {
    const std::lock_guard<std::mutex> hold(mutex_);
    return records_;
  }

 private:
  mutable std::mutex mutex_;    // held to copy a few pointers
  RouteRecords records_;        // guarded by mutex_
};

}  // namespace sluice::proxy
