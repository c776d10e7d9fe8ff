#include "proxy/engine/control.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "proxy/engine/open_store.h"
#include "proxy/engine/worker_engine.h"
#include "vm/plan.h"

namespace sluice::proxy {
namespace {

// A store that failed closes when the last answer that holds on to it has been sent; longer than this a reload does
// not wait for it.
constexpr int kCloseWaitMs = 2'000;

// One spelling per folder, whether it exists or not.
std::string canonical(const std::string& path) {
  std::error_code error;
  // Absolute first: weakly_canonical() leaves a relative path as it is while nothing of it exists, and would spell the same
  // folder otherwise once the store is made.
  std::filesystem::path whole = std::filesystem::absolute(path, error);
  if (!error) whole = std::filesystem::weakly_canonical(whole, error);
  return error ? path : whole.lexically_normal().string();
}

// What a store that serves takes without a stop. Errors: the end of a sentence.
Result<ServedPtr, std::string> plan_swap(const Served& present, ModulePtr module, std::uint64_t fuel) {
  const Result<vm::Catalog, std::string> now = vm::decode_catalog(present.catalog);
  if (!now) return now.error();
  const vm::Plan plan = vm::plan_upgrade(*now, *module);
  if (std::string why = plan.why_not(true); !why.empty()) return why;
  std::string needed;
  for (const vm::Step& step : plan.steps)
    if (step.kind != vm::Step::Kind::free) needed += (needed.empty() ? "" : "; ") + std::string(name(step.kind)) + " " + step.text;
  if (!needed.empty()) return needed + "; that needs a restart";
  ServedPtr next = serve(std::move(module), fuel, plan.next);
  // What the present one brought may still have to be stored.
  next->settled.store(plan.states.empty() && present.settled.load());
  return next;
}

}  // namespace

struct Control::Plan final : public StorePlan {
  struct Swap {
    LocalPtr store;
    ServedPtr served;
  };
  struct Opened {
    LocalPtr store;
    bool created = false;
  };
  // What is known of a store before it is ready.
  struct Known {
    std::string name, folder;
  };
  struct ToOpen {
    StoreSpec spec;
    std::string folder;
    std::unique_ptr<Opening> opening;
  };

  ~Plan() override {
    if (applied) return;
    for (Opened& o : opened) {
      const HomePtr home = o.store->home();
      // Whoever still has the store from stores() finds it stopped.
      home->environment.set_failed();
      home->environment.set_bell(nullptr);
      home->environment.start_closing();
      home->environment.try_close();
      home->committer->stop();
      if (o.created) remove_created(o.store->spec());
    }
  }
  std::shared_ptr<const StoreSet> stores() const override { return set; }

  std::shared_ptr<StoreSet> set = std::make_shared<StoreSet>();
  std::vector<LocalPtr> locals;              // the set's, as what they are
  std::vector<Known> known;
  std::vector<ToOpen> to_open;
  std::vector<Swap> swaps;
  std::vector<Opened> opened;
  bool applied = false;
};

Control::Control(const EngineOptions& options) : core_(std::make_shared<Core>()) { core_->options = options; }

Control::~Control() { stop(); }

Control::LocalPtr Control::find_serving(const std::string& folder) {
  LocalPtr found;
  std::size_t kept = 0;
  for (std::weak_ptr<LocalStore>& weak : known_) {
    const LocalPtr store = weak.lock();
    if (!store) continue;
    if (store->folder() == folder && !store->home()->environment.failed()) found = store;
    known_[kept++] = weak;
  }
  known_.resize(kept);
  return found;
}

std::string Control::plan_store(const StoreSpec& spec, Plan& plan) {
  const std::string said = spec.said();
  const std::string folder = canonical(spec.path);
  for (const Plan::Known& other : plan.known) {
    if (other.name == spec.name) return said + "there are two stores of this name";
    if (other.folder == folder) return said + "its folder is also that of the store `" + other.name + "`";
  }
  plan.known.push_back({spec.name, folder});
  Result<ModulePtr, std::string> module = load_module(spec);
  if (!module) return module.error();

  if (const LocalPtr present = find_serving(folder)) {
    const StoreSpec& now = present->spec();
    if (now.name != spec.name)
      return said + "its folder serves as the store `" + now.name + "`; a store is renamed by a restart";
    if (now.shards != spec.shards) return said + "the number of shards changes by a restart";
    if (now.quota_bytes != spec.quota_bytes || now.map_bytes != spec.map_bytes)
      return said + "its quota and map size change by a restart";
    if (!present->held()->same_as(**module, spec.fuel)) {
      Result<ServedPtr, std::string> next = plan_swap(*present->held(), std::move(*module), spec.fuel);
      if (!next) return said + next.error();
      plan.swaps.push_back({present, std::move(*next)});
    }
    plan.locals.push_back(present);
    return {};
  }

  // The folder may be that of a store which is closing: removed, or failed.
  {
    const std::lock_guard<std::mutex> hold(mutex_);
    for (const HomePtr& home : homes_) {
      if (home->folder == folder && !home->environment.wait_closed(kCloseWaitMs))
        return said + "it is still closing: answers that are being sent hold on to it; try again";
    }
  }
  Result<std::unique_ptr<Opening>, std::string> opening = Opening::look(core_, spec, std::move(*module));
  if (!opening) return opening.error();
  plan.to_open.push_back({spec, folder, std::move(*opening)});
  return {};
}

std::string Control::open_planned(Plan& plan) {
  for (Plan::ToOpen& one : plan.to_open) {
    Result<Opening::Ready, std::string> ready = one.opening->ready();
    if (!ready) return ready.error();
    ready->home->folder = one.folder;
    const auto store = std::make_shared<LocalStore>(one.spec, one.folder, next_id_++, ready->served, ready->home);
    plan.opened.push_back({store, ready->created});
    plan.locals.push_back(store);
  }
  plan.to_open.clear();
  return {};
}

Result<std::unique_ptr<StorePlan>, std::string> Control::prepare(std::span<const StoreSpec> specs) {
  reap();
  if (stopped_) return std::string("the engine has stopped");
  auto plan = std::make_unique<Plan>();
  // What can be said without opening anything is said before anything is created.
  for (const StoreSpec& spec : specs)
    if (std::string why = why_not_opened(spec); !why.empty()) return why;
  for (const StoreSpec& spec : specs)
    if (std::string why = plan_store(spec, *plan); !why.empty()) return why;
  // Every store was looked at: from here on something is changed.
  if (std::string why = open_planned(*plan); !why.empty()) return why;
  for (const LocalPtr& store : plan->locals) plan->set->stores.push_back(store);
  std::sort(plan->set->stores.begin(), plan->set->stores.end(),
            [](const StorePtr& a, const StorePtr& b) { return a->name() < b->name(); });
  return std::unique_ptr<StorePlan>(std::move(plan));
}

Result<std::shared_ptr<const StoreSet>, std::string> Control::check(std::span<const StoreSpec> specs) {
  auto set = std::make_shared<StoreSet>();
  std::vector<std::string> folders;
  for (const StoreSpec& spec : specs) {
    if (std::string why = why_not_opened(spec); !why.empty()) return why;
    const std::string folder = canonical(spec.path);
    if (set->find(spec.name)) return spec.said() + "there are two stores of this name";
    for (std::size_t i = 0; i < folders.size(); ++i)
      if (folders[i] == folder)
        return spec.said() + "its folder is also that of the store `" + std::string(set->stores[i]->name()) + "`";
    Result<ModulePtr, std::string> module = load_module(spec);
    if (!module) return module.error();
    const vm::Catalog first = vm::first_catalog(**module);
    ServedPtr served = serve(std::move(*module), spec.fuel, first);
    set->stores.push_back(std::make_shared<LocalStore>(spec, folder, 0, std::move(served), nullptr));
    folders.push_back(folder);
  }
  std::sort(set->stores.begin(), set->stores.end(),
            [](const StorePtr& a, const StorePtr& b) { return a->name() < b->name(); });
  return std::shared_ptr<const StoreSet>(std::move(set));
}

std::shared_ptr<const StoreSet> Control::apply(std::unique_ptr<StorePlan> prepared) {
  const std::unique_ptr<Plan> plan(static_cast<Plan*>(prepared.release()));
  plan->applied = true;
  for (const Plan::Swap& swap : plan->swaps) swap.store->swap(swap.served, *core_);
  for (const Plan::Opened& o : plan->opened) {
    {
      const std::lock_guard<std::mutex> hold(mutex_);
      homes_.push_back(o.store->home());
    }
    known_.push_back(o.store);
    for (const auto& owner : o.store->home()->owners) owner->start();
  }
  present_ = std::move(plan->locals);
  reap();
  return plan->set;
}

std::unique_ptr<Engine> Control::worker(std::uint16_t index, Inbox<EventPtr>& results) {
  SLUICE_CHECK(index < kMostWorkers);
  WorkerSlot& slot = core_->workers[index];
  if (slot.turns.load(std::memory_order_acquire) == WorkerSlot::kEnded) slot.turns.store(0, std::memory_order_release);
  slot.results.store(&results, std::memory_order_release);
  return std::make_unique<WorkerEngine>(core_, index);
}

void Control::count_in(const HomePtr& home, EngineCounters& sum) const {
  for (const auto& owner : home->owners) {
    const OwnerCounters& c = owner->counters();
    sum.bursts += c.bursts.load(std::memory_order_relaxed);
    sum.burst_events += c.events.load(std::memory_order_relaxed);
    sum.faults += c.faults.load(std::memory_order_relaxed);
  }
  sum.commits += home->committer->commits();
}

void Control::reap() {
  for (const LocalPtr& store : present_) store->reap(*core_);
  const std::lock_guard<std::mutex> hold(mutex_);
  std::size_t kept = 0;
  for (HomePtr& home : homes_) {
    const bool ended = std::all_of(home->owners.begin(), home->owners.end(), [](const auto& o) { return o->ended(); });
    if (!ended) {
      homes_[kept++] = std::move(home);
      continue;
    }
    for (const auto& owner : home->owners) owner->join();
    count_in(home, ended_);
  }
  homes_.resize(kept);
}

void Control::stop() {
  if (stopped_) return;
  stopped_ = true;
  std::vector<HomePtr> homes;
  {
    const std::lock_guard<std::mutex> hold(mutex_);
    homes = homes_;
  }
  for (const HomePtr& home : homes) home->end();
  for (const HomePtr& home : homes)
    for (const auto& owner : home->owners) owner->join();
  homes.clear();
  reap();
  present_.clear();
  known_.clear();
}

Result<void, std::string> Control::run_timer(std::string_view store, std::string_view timer) {
  for (const LocalPtr& present : present_) {
    if (present->name() != store) continue;
    // A module with timers has one shard.
    Result<void, std::string> ran = present->home()->owners.front()->run_timer(timer);
    if (!ran) return "timer `" + std::string(timer) + "` of the store `" + std::string(store) + "`: " + ran.error();
    return {};
  }
  return "there is no store `" + std::string(store) + "`";
}

void Control::each_store(const std::function<void(const StoreCounters&)>& f) const {
  std::vector<StoreCounters> all;
  {
    const std::lock_guard<std::mutex> hold(mutex_);
    for (const HomePtr& home : homes_) {
      EngineCounters sum;
      count_in(home, sum);
      all.push_back({home->environment.name(), static_cast<std::uint32_t>(home->owners.size()), sum.bursts, sum.burst_events, sum.commits, sum.faults});
    }
  }
  for (const StoreCounters& one : all) f(one);
}

EngineCounters Control::counters() const {
  EngineCounters sum;
  {
    const std::lock_guard<std::mutex> hold(mutex_);
    sum = ended_;
    for (const HomePtr& home : homes_) {
      count_in(home, sum);
      sum.owners += home->running.load();
    }
  }
  for (const WorkerSlot& worker : core_->workers) sum.evaluated += worker.evaluated.load(std::memory_order_relaxed);
  return sum;
}

}  // namespace sluice::proxy
