// A store as routes see it, over the module it serves now and the environment its data is in.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "proxy/engine.h"
#include "proxy/engine/owner.h"
#include "proxy/engine/served.h"

namespace sluice::proxy {

// Thread: any; swap() and reap() control.
// Life: events and routes hold it; with the last of them the environment closes.
class LocalStore final : public Store {
 public:
  // `home` is null for a store that is only asked about itself (`--check`).
  LocalStore(StoreSpec spec, std::string folder, std::uint32_t id, ServedPtr served, HomePtr home)
      : spec_(std::move(spec)), folder_(std::move(folder)), id_(id), home_(std::move(home)), held_(std::move(served)), served_(held_.get()) {}
  ~LocalStore() override {
    if (home_) home_->release();
  }
  LocalStore(const LocalStore&) = delete;
  LocalStore& operator=(const LocalStore&) = delete;

  std::string_view name() const override { return spec_.name; }
  bool serves_objects() const override { return served()->serves_objects(); }
  bool has_remove() const override { return served()->remove.has_value(); }
  std::uint32_t shards() const override { return spec_.shards; }
  bool has_view(std::string_view name) const override { return served()->find_view(name).has_value(); }
  bool has_input(std::string_view name) const override { return served()->find_input(name).has_value(); }
  bool input_takes_body(std::string_view name) const override {
    const Served* now = served();
    const auto number = now->find_input(name);
    return number && now->inputs[*number].takes_body;
  }
  std::uint64_t changes() const override {
    if (!home_ || home_->environment.failed() || !home_->environment.try_pin()) return 0;
    const std::uint64_t commit = home_->environment.store().published();
    home_->environment.unpin();
    return commit;
  }

  const StoreSpec& spec() const { return spec_; }
  const std::string& folder() const { return folder_; }   // the spec's path in its one spelling
  std::uint32_t id() const { return id_; }        // of this engine's stores, never given twice
  const HomePtr& home() const { return home_; }
  // Life: until the turn of the worker that asked ends.
  const Served* served() const { return served_.load(std::memory_order_acquire); }
  // `now`, which served() has just given, with a count of its own: whoever touches it shares no count with others.
  std::shared_ptr<const void> lend_module(const Served* now) const;
  // Thread: control.
  const ServedPtr& held() const { return held_; }
  // A worker may still look at the older module: it is kept until every worker has ended the turn it was in.
  void swap(ServedPtr served, const Core& core);
  void reap(const Core& core);

 private:
  struct Retired {
    ServedPtr served;
    std::vector<std::uint64_t> turns;             // of each worker, when it was retired
  };
  StoreSpec spec_;
  const std::string folder_;
  const std::uint32_t id_;
  const HomePtr home_;
  mutable std::mutex mutex_;                      // held to look at or change the next two, once per worker and module
  ServedPtr held_;                                // changed by control alone
  std::vector<Retired> retired_;
  std::atomic<const Served*> served_;
};

}  // namespace sluice::proxy
