// Requests drawn at random for one module: mostly the ones its transcript would ask, sometimes ones nobody should.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/calls.h"
#include "vm/module.h"

namespace sluice::tools {

// The same numbers everywhere, unlike the distributions of the standard library.
// Source: Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators", 2014 (SplitMix64).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  std::uint64_t below(std::uint64_t n) { return next() % n; }
  bool one_in(std::uint64_t n) { return below(n) == 0; }
  template <class List>
  const auto& pick(const List& list) { return list[below(list.size())]; }

 private:
  std::uint64_t state_;
};

struct Request {
  std::uint64_t clock_ms = 0;
  std::string timer;                          // empty: an HTTP request
  std::string method, target, body;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string asked;                          // of the module: "on take", "view left"; empty: nothing it has
};

class RandomRequests {
 public:
  // Values that `steps` use are used again, under the same names.
  // Life: `module` outlives it.
  RandomRequests(const vm::Module& module, const std::vector<Step>& steps, std::uint64_t seed);
  Request next();
  // What was answered is asked about later: keys that were given out, revisions.
  void learn(const Request& request, const Answer& answer);

 private:
  void learn_query(std::string_view target);
  void remember(std::vector<std::string>& list, std::string value);
  std::string value(std::string_view name, const vm::Slot& slot);
  std::string number(const vm::Slot& slot);
  void add_query(Request& request, std::string_view name, const vm::Slot& slot, char& separator);
  std::string body_for(const std::string& path);
  Request input(const vm::Input& in);
  Request view(const vm::View& v);
  Request object();

  const vm::Module& module_;
  Random random_;
  std::map<std::string, std::vector<std::string>, std::less<>> values_, bodies_;
  std::vector<std::string> given_;            // short replies
  std::map<std::string, std::uint64_t> revisions_;
  std::uint64_t clock_ms_ = 0;
};

}  // namespace sluice::tools
