#include "proxy/engine/local_store.h"

#include <algorithm>

#include "vm/base/check.h"

namespace sluice::proxy {

std::shared_ptr<const void> LocalStore::lend_module(const Served* now) const {
  const std::lock_guard<std::mutex> hold(mutex_);
  ServedPtr found;
  if (held_.get() == now) found = held_;
  for (const Retired& old : retired_)
    if (old.served.get() == now) found = old.served;
  SLUICE_CHECK(found != nullptr);
  auto counted = std::make_shared<ServedPtr>(std::move(found));
  const Served* served = counted->get();
  return {std::move(counted), served};
}

void LocalStore::swap(ServedPtr served, const Core& core) {
  const ServedPtr next = served;
  spec_.fuel = served->fuel;
  // Before the owners write as the next module means it: a worker that has looked up the present one sees it once it reads
  // what they wrote.
  held_->retired.store(true, std::memory_order_release);
  // The owners first: whoever resolves against the new module finds owners that know of it.
  for (const auto& owner : home_->owners) owner->swap(next);
  const std::lock_guard<std::mutex> hold(mutex_);
  Retired old{std::move(held_), {}};
  held_ = std::move(served);
  served_.store(held_.get(), std::memory_order_release);
  for (const WorkerSlot& worker : core.workers) {
    if (worker.results.load(std::memory_order_acquire) == nullptr) break;
    old.turns.push_back(worker.turns.load(std::memory_order_acquire));
  }
  retired_.push_back(std::move(old));
}

void LocalStore::reap(const Core& core) {
  const auto unseen = [&core](const Retired& old) {
    for (std::size_t i = 0; i < old.turns.size(); ++i)
      if (old.turns[i] != WorkerSlot::kEnded && core.workers[i].turns.load(std::memory_order_acquire) == old.turns[i]) return false;
    return true;
  };
  const std::lock_guard<std::mutex> hold(mutex_);
  retired_.erase(std::remove_if(retired_.begin(), retired_.end(), unseen), retired_.end());
}

}  // namespace sluice::proxy
