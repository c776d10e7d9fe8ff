// A worker's way to the stores: resolves its calls, answers cheap reads on a snapshot, and hands the rest to owners.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "proxy/engine.h"
#include "proxy/engine/core.h"
#include "proxy/engine/environment.h"
#include "proxy/engine/fields.h"
#include "proxy/engine/local_store.h"
#include "proxy/engine/snapshot_host.h"
#include "vm/machine.h"

namespace sluice::proxy {

// Units: fuel that one evaluation may really take here, bytes included (1 ms); beyond it the owner answers.
inline constexpr std::uint64_t kFuelHereMost = 100'000;

// Thread: its worker.
class WorkerEngine final : public Engine {
 public:
  // Life: `core` outlives it.
  WorkerEngine(std::shared_ptr<Core> core, std::uint16_t index) : core_(std::move(core)), slot_(core_->workers[index]), index_(index) {}
  ~WorkerEngine() override;

  bool prepare(Event& event, const Call& call) override;
  bool evaluate(Event& event) override;
  void enqueue(EventPtr event) override;
  void flush(const std::function<void(EventPtr)>& refused) override;

 private:
  // What this worker keeps of one store.
  struct Near {
    explicit Near(const HomePtr& the_home) : home(the_home), host(the_home->environment) {
      outgoing.resize(home->owners.size());
    }
    HomePtr home;
    SnapshotHost host;
    const Served* seen = nullptr;                 // what `module` is
    std::shared_ptr<const void> module;           // counted by this worker alone, so that no count is shared
    std::vector<std::vector<EventPtr>> outgoing;  // by shard
    bool to_flush = false;
  };
  Near& near(const LocalStore& store);
  bool evaluate_view(Event& event, Near& store, const Served& served);
  bool evaluate_show(Event& event, Near& store, const Served& served);
  void forget_closed();

  const std::shared_ptr<Core> core_;
  WorkerSlot& slot_;
  const std::uint16_t index_;
  std::vector<std::unique_ptr<Near>> near_;       // by the store's id; null: not used here, or gone
  std::vector<Near*> touched_;                    // in this turn
  std::vector<EventPtr> refused_;
  vm::Machine machine_;
  std::vector<vm::Value> fields_ = std::vector<vm::Value>(kMostFields);
};

}  // namespace sluice::proxy
