#include "proxy/engine/open_store.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "proxy/engine/module_file.h"
#include "proxy/engine/upgrade_records.h"
#include "proxy/log.h"
#include "vm/image.h"
#include "vm/slot.h"
#include "vm/upgrade.h"

namespace sluice::proxy {
namespace {

// Hears the one commit that creates a store.
class Verdict final : public CommitListener {
 public:
  void durable() override { done = true; }
  void failed(const Error& e) override { error = e; }
  bool done = false;
  Error error;
};

}  // namespace

Result<ModulePtr, std::string> load_module(const StoreSpec& spec) {
  auto module = read_module(spec.module_path);
  if (!module) return spec.said() + module.error();
  if (spec.shards > 1) {
    const std::string why = (*module)->why_not_sharded();
    if (!why.empty())
      return spec.said() + "`" + (*module)->name + "` cannot run on " + std::to_string(spec.shards) + " shards: " + why;
  }
  return module;
}

std::string why_not_opened(const StoreSpec& spec) {
  if (!vm::is_slug(spec.name)) return spec.said() + "a store's name is 1 to 64 of A-Z a-z 0-9 - _";
  if (spec.name == "views" || spec.name == "inputs" || spec.name == "objects")
    return spec.said() + "this name is the first word of the module interface's own paths";
  if (spec.shards < 1 || spec.shards > 64) return spec.said() + "shards are 1 to 64";
  if (spec.path.empty()) return spec.said() + "it needs a path for its folder";
  return {};
}

Result<std::unique_ptr<Opening>, std::string> Opening::look(const std::shared_ptr<Core>& core, const StoreSpec& spec, ModulePtr module) {
  std::unique_ptr<Opening> opening(new Opening(core, spec, std::move(module)));
  std::error_code ignored;
  opening->created_ = !std::filesystem::exists(spec.path, ignored);
  store::Options options = core->options.store;
  if (spec.quota_bytes != 0) options.quota_bytes = spec.quota_bytes;
  if (spec.map_bytes != 0) options.map_bytes = spec.map_bytes;
  auto opened = store::Store::open(spec.path, options);
  if (!opened) {
    opening->created_ = false;
    return spec.said() + opened.error();
  }
  opening->home_ = std::make_shared<Home>(core, spec.name, std::move(*opened));
  opening->home_->environment.belongs_to(opening->home_);
  if (const Result<void, std::string> looked = opening->look(); !looked) return spec.said() + looked.error();
  return opening;
}

Opening::~Opening() {
  if (!home_) return;
  home_->owners.clear();
  if (home_->committer) home_->committer->stop();
  home_->environment.start_closing();
  home_->environment.try_close();
  if (created_) remove_created(spec_);
}

Result<void, std::string> Opening::look() {
  UpgradeRecords records(home_->environment.store());
  if (Result<void, std::string> begun = records.begin(); !begun) return begun;
  std::string_view catalog, clock;
  const bool known = records.get(vm::kCatalogKey, catalog);
  const bool ticked = records.get(vm::kClockKey, clock);
  if (Result<void, std::string> read = records.commit(); !read) return read;
  if (ticked) {
    const std::optional<vm::Clock> read = vm::decode_clock(clock);
    if (!read) return std::string("its data is damaged");
    clock_ = *read;
  }
  if (!known) return {};
  created_ = false;   // somebody else made it since we looked: not ours to remove
  Result<vm::Catalog, std::string> read = vm::decode_catalog(catalog);
  if (!read) return read.error();
  now_ = std::move(*read);
  plan_ = vm::plan_upgrade(*now_, *module_);
  if (std::string why = plan_.why_not(spec_.allow_destroy || core_->options.allow_destroy); !why.empty()) return why;
  if (vm::continues(*now_, plan_)) return {};
  return vm::check_upgrade(plan_, *module_, records);
}

void Opening::say(const std::string& line) const {
  if (core_->options.log != nullptr) core_->options.log->info("store `" + spec_.name + "`: " + line);
}

Result<ServedPtr, std::string> Opening::upgrade() {
  if (vm::continues(*now_, plan_)) say("an upgrade that was cut short goes on");
  for (const vm::Step& step : plan_.steps) say(std::string(name(step.kind)) + " " + step.text);
  UpgradeRecords records(home_->environment.store());
  if (const Result<void, std::string> begun = records.begin(); !begun) return begun.error();
  const Result<vm::Catalog, std::string> next = vm::run_upgrade(*now_, plan_, *module_, records);
  if (!next) return next.error();
  if (!plan_.steps.empty()) say("has version " + std::to_string(next->version) + " of `" + next->name + "` now");
  return serve(std::move(module_), spec_.fuel, *next);
}

// All in one commit, so that a crash leaves a store that was created whole or not at all: catalog, first values, and what
// `on start` makes of them.
Result<ServedPtr, std::string> Opening::create(std::uint64_t now_ms) {
  const vm::Catalog first = vm::first_catalog(*module_);
  ServedPtr served = serve(std::move(module_), spec_.fuel, first);
  home_->committer = std::make_unique<OwnCommitter>(home_->environment, clock_);
  Burst burst(home_->environment, served);
  PinnedReader reader(home_->environment);
  const Result<const store::Snapshot*> snapshot = reader.renew();
  if (!snapshot) return std::string(snapshot.error().what);
  burst.load_first(now_ms);
  burst.begin(**snapshot, now_ms);
  const std::string fault = burst.start();
  if (!fault.empty()) return "`on start` failed: " + fault;
  store::Batch& batch = burst.stage();
  batch.put(vm::kCatalogKey, served->catalog);
  Verdict verdict;
  home_->committer->submit({&batch, burst.events_changed(), now_ms}, verdict);
  if (!verdict.done) return std::string("its first commit failed: ") + verdict.error.what;
  clock_ = home_->committer->clock();
  return served;
}

Result<void, std::string> Opening::make_owners(const ServedPtr& served) {
  if (spec_.shards > 1) home_->committer = std::make_unique<GroupCommitter>(home_->environment, clock_);
  else home_->committer = std::make_unique<OwnCommitter>(home_->environment, clock_);
  for (std::uint32_t shard = 0; shard < spec_.shards; ++shard)
    home_->owners.push_back(std::make_unique<Owner>(*home_, shard, served));
  for (const auto& owner : home_->owners) {
    if (!owner->inbox().wake().works()) return std::string("no descriptor is left for its thread; raise the limit (ulimit -n)");
    if (const Result<void> loaded = owner->load(); !loaded) return std::string(loaded.error().what);
  }
  home_->environment.set_bell(&home_->owners.front()->inbox().wake());
  return {};
}

Result<Opening::Ready, std::string> Opening::ready() {
  const std::uint64_t now_ms = home_->environment.clock(std::max(clock_.now_ms, core_->wall_ms()));
  Result<ServedPtr, std::string> served = now_ ? upgrade() : create(now_ms);
  if (!served) return spec_.said() + served.error();
  if (const Result<void, std::string> made = make_owners(*served); !made) return spec_.said() + made.error();
  return Ready{std::exchange(home_, nullptr), std::move(*served), created_};
}

void remove_created(const StoreSpec& spec) {
  std::error_code ignored;
  std::filesystem::remove_all(spec.path, ignored);
}

}  // namespace sluice::proxy
