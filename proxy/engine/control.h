// The control side of the engine: opens, swaps and lets go of stores in two phases, and ends them all.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/engine.h"
#include "proxy/engine/core.h"
#include "proxy/engine/local_store.h"

namespace sluice::proxy {

// Thread: control; counters() any.
class Control final : public EngineControl {
 public:
  explicit Control(const EngineOptions& options);
  ~Control() override;

  Result<std::shared_ptr<const StoreSet>, std::string> check(std::span<const StoreSpec> specs) override;
  Result<std::unique_ptr<StorePlan>, std::string> prepare(std::span<const StoreSpec> specs) override;
  std::shared_ptr<const StoreSet> apply(std::unique_ptr<StorePlan> plan) override;
  std::unique_ptr<Engine> worker(std::uint16_t index, Inbox<EventPtr>& results) override;
  void stop() override;
  Result<void, std::string> run_timer(std::string_view store, std::string_view timer) override;
  EngineCounters counters() const override;
  void each_store(const std::function<void(const StoreCounters&)>& f) const override;

 private:
  struct Plan;
  using LocalPtr = std::shared_ptr<LocalStore>;

  // Empty, or why not.
  std::string plan_store(const StoreSpec& spec, Plan& plan);
  std::string open_planned(Plan& plan);
  // A store with this folder that still serves: of the present set, or one that a route of an older set keeps.
  LocalPtr find_serving(const std::string& folder);
  // Joins the owners of stores that have closed.
  void reap();
  void count_in(const HomePtr& home, EngineCounters& sum) const;

  const std::shared_ptr<Core> core_;
  std::vector<LocalPtr> present_;            // of the set that serves
  std::vector<std::weak_ptr<LocalStore>> known_;   // every store that was ever applied and may still serve
  std::uint32_t next_id_ = 0;
  bool stopped_ = false;

  mutable std::mutex mutex_;                 // guards the next two: counters() is asked from any thread
  std::vector<HomePtr> homes_;               // until their owners are joined
  EngineCounters ended_;                     // of homes that are gone
};

// As make_engine(), with a clock and store settings of the caller's.
std::unique_ptr<EngineControl> make_engine(const EngineOptions& options);

}  // namespace sluice::proxy
