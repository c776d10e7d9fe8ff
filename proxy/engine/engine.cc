// How the rest of the proxy gets an engine.
#include "proxy/engine.h"

#include "proxy/engine/control.h"

namespace sluice::proxy {

std::unique_ptr<EngineControl> make_engine() { return make_engine(EngineOptions{}); }

std::unique_ptr<EngineControl> make_engine(const EngineOptions& options) { return std::make_unique<Control>(options); }

}  // namespace sluice::proxy
