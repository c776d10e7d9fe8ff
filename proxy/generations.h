// Which generations of config are alive, since when, and what each worker still holds of them.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "proxy/worker.h"

namespace sluice::proxy {

// One generation, for a person or a program.
struct GenerationReport {
  std::uint64_t number = 0;
  std::uint64_t since_ms = 0;              // 1970
  bool serves = false;                     // the one that new requests use
  struct Part {
    std::uint16_t worker = 0;
    HeldGeneration held;
  };
  std::vector<Part> parts;                 // of the workers that have it, by number
};

// "generation 3, since 61 s: worker 0: 1 request (GET /slow, 60.2 s), 1 of 4 slots, 812 KiB of Lua". `now_ms` since 1970.
std::string describe(const GenerationReport& report, std::uint64_t now_ms);

// Thread: control; alive() any.
class Generations {
 public:
  using Hear = std::function<void(const std::vector<GenerationReport>&)>;

  // A worker was given it; a worker has given it back.
  void given(std::uint64_t number, std::uint64_t now_ms);
  void returned(std::uint64_t number);
  std::uint64_t alive() const { return alive_.get(); }
  std::uint64_t newest() const { return list_.empty() ? 0 : list_.rbegin()->first; }
  // When the oldest that does not serve any more was replaced; 0: there is none.
  std::uint64_t oldest_held_since_ms() const;

  // Asks `workers`, which then answer with News::held; `hear` is called when the last one has. Returns the number to ask with.
  std::uint64_t ask(std::vector<std::uint16_t> workers, Hear hear);
  void answered(const News& news);
  void ended(std::uint16_t worker);        // it answers no more

 private:
  struct Alive {
    std::uint64_t since_ms = 0;
    std::uint32_t workers = 0;
  };
  struct Asked {
    std::vector<std::uint16_t> waiting;
    std::vector<GenerationReport> found;
    Hear hear;
  };
  void heard_from(std::map<std::uint64_t, Asked>::iterator at, std::uint16_t worker);

  std::map<std::uint64_t, Alive> list_;    // by number
  std::map<std::uint64_t, Asked> asked_;
  std::uint64_t asks_ = 0;
  Counter alive_;
};

}  // namespace sluice::proxy
