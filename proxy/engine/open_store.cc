#include "proxy/engine/open_store.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "proxy/engine/module_file.h"
#include "vm/image.h"
#include "vm/slot.h"

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

// The first commit: catalog, first values, and what `on start` makes of them.
std::string create(Home& home, const ServedPtr& served, std::uint64_t now_ms) {
  // All in one commit, so that a crash leaves a store that was created whole or not at all.
  Burst burst(home.environment, served);
  PinnedReader reader(home.environment);
  const Result<const store::Snapshot*> snapshot = reader.renew();
  if (!snapshot) return snapshot.error().what;
  burst.load_first(now_ms);
  burst.begin(**snapshot, now_ms);
  const std::string fault = burst.start();
  if (!fault.empty()) return "`on start` failed: " + fault;
  store::Batch& first = burst.stage();
  first.put(vm::kCatalogKey, served->catalog);
  Verdict verdict;
  home.committer->submit({&first, burst.events_changed(), now_ms}, verdict);
  if (!verdict.done) return std::string("its first commit failed: ") + verdict.error.what;
  return {};
}

}  // namespace

Result<ServedPtr, std::string> load_served(const StoreSpec& spec) {
  auto module = read_module(spec.module_path);
  if (!module) return spec.said() + module.error();
  if (spec.shards > 1) {
    const std::string why = (*module)->why_not_sharded();
    if (!why.empty())
      return spec.said() + "`" + (*module)->name + "` cannot run on " + std::to_string(spec.shards) + " shards: " + why;
  }
  vm::Layout layout = vm::first_layout(**module);
  return serve(std::move(*module), spec.fuel, std::move(layout));
}

std::string why_not_opened(const StoreSpec& spec) {
  if (!vm::is_slug(spec.name)) return spec.said() + "a store's name is 1 to 64 of A-Z a-z 0-9 - _";
  if (spec.name == "views" || spec.name == "inputs" || spec.name == "objects")
    return spec.said() + "this name is the first word of the module interface's own paths";
  if (spec.shards < 1 || spec.shards > 64) return spec.said() + "shards are 1 to 64";
  if (spec.path.empty()) return spec.said() + "it needs a path for its folder";
  return {};
}

Result<HomePtr, std::string> open_home(const std::shared_ptr<Core>& core, const StoreSpec& spec, const ServedPtr& served,
                                       bool& created) {
  std::error_code ignored;
  created = !std::filesystem::exists(spec.path, ignored);
  store::Options options = core->options.store;
  if (spec.quota_bytes != 0) options.quota_bytes = spec.quota_bytes;
  if (spec.map_bytes != 0) options.map_bytes = spec.map_bytes;
  auto opened = store::Store::open(spec.path, options);
  if (!opened) return spec.said() + opened.error();

  const auto home = std::make_shared<Home>(core, spec.name, std::move(*opened));
  home->environment.belongs_to(home);
  const auto give_up = [&](const std::string& why) -> std::string {
    home->owners.clear();
    if (home->committer) home->committer->stop();
    home->environment.start_closing();
    home->environment.try_close();
    if (created) remove_created(spec);
    return spec.said() + why;
  };

  vm::Clock clock;
  std::string catalog;
  {
    PinnedReader reader(home->environment);
    const Result<const store::Snapshot*> snapshot = reader.renew();
    if (!snapshot) return give_up(snapshot.error().what);
    const auto stored = (*snapshot)->get(vm::kCatalogKey);
    const auto clock_bytes = (*snapshot)->get(vm::kClockKey);
    if (!stored || !clock_bytes) return give_up("its data cannot be read");
    if (*stored) catalog = **stored;
    if (*clock_bytes) {
      const std::optional<vm::Clock> read = vm::decode_clock(**clock_bytes);
      if (!read) return give_up("its data is damaged");
      clock = *read;
    }
  }
  if (!catalog.empty()) {
    created = false;   // somebody else made it since we looked: not ours to remove
    if (const std::string why = vm::why_not_served(catalog, *served->module); !why.empty()) return give_up(why);
  }
  const std::uint64_t now_ms = home->environment.clock(std::max(clock.now_ms, core->wall_ms()));
  if (catalog.empty()) {
    home->committer = std::make_unique<OwnCommitter>(home->environment, clock);
    if (const std::string why = create(*home, served, now_ms); !why.empty()) return give_up(why);
    clock = home->committer->clock();
  }
  if (spec.shards > 1) home->committer = std::make_unique<GroupCommitter>(home->environment, clock);
  else home->committer = std::make_unique<OwnCommitter>(home->environment, clock);
  for (std::uint32_t shard = 0; shard < spec.shards; ++shard)
    home->owners.push_back(std::make_unique<Owner>(*home, shard, served));
  for (const auto& owner : home->owners) {
    if (!owner->inbox().wake().works()) return give_up("no descriptor is left for its thread; raise the limit (ulimit -n)");
    if (const Result<void> loaded = owner->load(); !loaded) return give_up(loaded.error().what);
  }
  home->environment.set_bell(&home->owners.front()->inbox().wake());
  return home;
}

void remove_created(const StoreSpec& spec) {
  std::error_code ignored;
  std::filesystem::remove_all(spec.path, ignored);
}

}  // namespace sluice::proxy
