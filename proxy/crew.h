// The workers of the process: as many as the config says, started and retired while the others go on.
//
// Those that serve are numbered from 0. When they are to be fewer, the last ones stop accepting, end their connections with
// the next answer, and end when the last is done; meanwhile they get each new generation, and may be taken back.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "proxy/counters.h"
#include "proxy/engine.h"
#include "proxy/generations.h"
#include "proxy/inbox.h"
#include "proxy/worker.h"
#include "vm/base/result.h"

namespace sluice::proxy {

// Thread: control, but what is marked.
class Crew {
 public:
  static constexpr std::uint16_t kMost = 256;

  // All outlive it.
  Crew(EngineControl& engine, ProcessLimits& limits, Inbox<News>& news) : engine_(engine), limits_(limits), news_(news) {}

  std::uint16_t size() const { return size_.load(std::memory_order_relaxed); }   // that serve. Thread: any
  // With `wanted` serving: the numbers of those that need a generation, which are the others that still run, too.
  std::vector<std::uint16_t> indices(std::uint16_t wanted) const;
  // Before indices(): none of the first `wanted` is ending any more. `wait` hears news.
  void make_room(std::uint16_t wanted, const std::function<void()>& wait);
  // Before install(), when all else that a config opens is open. Errors: no descriptors for more threads.
  Result<void, std::string> check_descriptors(std::uint16_t wanted) const;

  // Gives each of indices(wanted) its generation and what it accepts on, and starts those that do not run.
  using ListeningOf = std::function<std::vector<Listening>(std::uint16_t worker)>;
  void install(std::uint16_t wanted, std::vector<Generation> generations, const ListeningOf& listening, std::uint64_t wall_ms);
  // Only where they accept.
  void listen(const ListeningOf& listening);
  // Some worker has not taken the newest generation over yet.
  bool switching() const;

  // Of every News, before anybody else.
  void hear(const News& news);
  Worker& serving(std::uint32_t turn) { return *members_[turn % size()].worker; }

  // What workers hold, heard later.
  void report(Generations::Hear hear);
  const Generations& generations() const { return generations_; }

  // The end, in this order; `wait` hears news.
  void drain(const std::function<void()>& wait);
  void end();

  // Of a place for a worker, which may have had several; nullptr: none ever had it. Thread: any.
  const Counters* counters(std::uint16_t worker) const {
    return worker < counted_.load(std::memory_order_acquire) ? counters_[worker].get() : nullptr;
  }
  // All workers together, those that have ended too. Thread: any.
  std::uint64_t sum(Counter Counters::*counter) const;

 private:
  enum class State : std::uint8_t { none, serves, leaves, ends };
  struct Member {
    std::unique_ptr<Worker> worker;
    State state = State::none;
    bool drained = false;
    std::uint64_t sent = 0, taken = 0;     // generations
  };
  void finish(std::uint16_t index);

  EngineControl& engine_;
  ProcessLimits& limits_;
  Inbox<News>& news_;
  Generations generations_;
  std::vector<Member> members_;
  std::atomic<std::uint16_t> size_{0}, counted_{0};
  std::array<std::unique_ptr<Counters>, kMost> counters_;   // the first counted_; they outlive their worker and go on with the next
};

}  // namespace sluice::proxy
