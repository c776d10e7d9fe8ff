// A function generator: a route that makes one Lua function per slot, and the slots it has made.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lua/runtime.h"
#include "vm/base/result.h"

namespace sluice::lua {

class Context;

inline constexpr int kHandlesPerFgen = 256;
// One inside the other. A request nests as many coroutines, on one stack of the thread's.
inline constexpr std::uint32_t kDeepestRoutes = 64;

// Thread: as Runtime.
class Fgen final : public proxy::Route {
 public:
  Fgen(Runtime& runtime, std::uint32_t id);
  ~Fgen() override;

  void start(proxy::Exchange& exchange, const proxy::Match& match, proxy::Services& services) override;
  void client_gone(proxy::Exchange& exchange) override;

  // The integers that Lua sees carry the generator, so that another's are told apart.
  lua_Integer add_handle(const Target* target);
  // -1: not one of ours.
  int handle_index(lua_Number handle) const;

  // Takes the generator at the top of the main stack and the argument below it, and builds the first slot.
  // Errors: a sentence of Lua's, with its position.
  Result<void, std::string> ready(int generator_ref, int argument_ref, std::string name, std::uint32_t objects);
  bool is_ready() const { return ready_; }

  Runtime& runtime() { return runtime_; }
  const std::string& name() const { return name_; }
  const std::vector<const Target*>& handles() const { return handles_; }
  std::uint32_t depth() const { return depth_; }
  int generator() const { return generator_; }
  int argument() const { return argument_; }
  std::uint32_t objects() const { return objects_; }
  std::uint64_t bytes() const { return bytes_; }   // of its slots, as they were built
  std::uint32_t slots() const { return static_cast<std::uint32_t>(all_.size()); }
  std::uint32_t free_slots() const { return static_cast<std::uint32_t>(free_.size()); }

  void give_back(Context& context);
  // Lets go of half of the slots that nobody needed for a minute.
  void trim(std::uint64_t now_us);

 private:
  Result<Context*, std::string> make_slot();
  void note();

  Runtime& runtime_;
  const std::uint32_t id_;
  bool ready_ = false;
  std::string name_ = "anonymous";
  int generator_ = LUA_NOREF, argument_ = LUA_NOREF;
  std::uint32_t objects_ = 0, depth_ = 1;
  std::vector<const Target*> handles_;
  std::vector<std::unique_ptr<Context>> all_;
  std::vector<Context*> free_;                   // the last one back goes out first: its stack is warm
  std::size_t fewest_free_ = 0;                  // since trim_at_ was set
  std::uint64_t trim_at_us_ = 0;
  std::uint64_t bytes_ = 0, vm_bytes_per_slot_ = 0;   // the latter of the last slot that was measured
  proxy::GeneratorRecord* record_ = nullptr;     // the runtime's, from ready() on
  proxy::Response refusal_;
};

}  // namespace sluice::lua
