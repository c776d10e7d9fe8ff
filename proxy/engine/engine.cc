// How the rest of the proxy gets an engine.
#include "proxy/engine.h"

#include "proxy/engine/control.h"

namespace sluice::proxy {

std::unique_ptr<EngineControl> make_engine(const EngineParts& parts) {
  EngineOptions options;
  options.log = parts.log;
  options.allow_destroy = parts.allow_destroy;
  if (parts.test_clock_ms != nullptr) {
    options.timers = false;
    options.context = const_cast<std::atomic<std::uint64_t>*>(parts.test_clock_ms);
    options.wall_ms = [](void* clock) { return static_cast<const std::atomic<std::uint64_t>*>(clock)->load(); };
  }
  return make_engine(options);
}

std::unique_ptr<EngineControl> make_engine(const EngineOptions& options) { return std::make_unique<Control>(options); }

}  // namespace sluice::proxy
