#include "vm/base/errc.h"

namespace sluice {

std::string_view name(Errc code) {
  switch (code) {
#define SLUICE_NAME(x) \
  case Errc::x: return #x;
    SLUICE_NAME(none) SLUICE_NAME(request) SLUICE_NAME(query) SLUICE_NAME(missing_field) SLUICE_NAME(body)
    SLUICE_NAME(keyed) SLUICE_NAME(invalid) SLUICE_NAME(unauthorized) SLUICE_NAME(denied) SLUICE_NAME(route)
    SLUICE_NAME(no_view) SLUICE_NAME(no_input) SLUICE_NAME(no_value) SLUICE_NAME(not_found) SLUICE_NAME(method)
    SLUICE_NAME(timeout) SLUICE_NAME(exists) SLUICE_NAME(length) SLUICE_NAME(conflict) SLUICE_NAME(limit)
    SLUICE_NAME(target) SLUICE_NAME(headers) SLUICE_NAME(range) SLUICE_NAME(expect) SLUICE_NAME(divide)
    SLUICE_NAME(non_finite) SLUICE_NAME(clamp) SLUICE_NAME(encoding) SLUICE_NAME(condition) SLUICE_NAME(rate)
    SLUICE_NAME(storage) SLUICE_NAME(durability_unknown) SLUICE_NAME(lua) SLUICE_NAME(coding)
    SLUICE_NAME(backend) SLUICE_NAME(backend_timeout) SLUICE_NAME(deadline) SLUICE_NAME(full)
    SLUICE_NAME(store_busy) SLUICE_NAME(payload_budget) SLUICE_NAME(allocation) SLUICE_NAME(stopped)
    SLUICE_NAME(overload) SLUICE_NAME(version) SLUICE_NAME(io) SLUICE_NAME(config) SLUICE_NAME(module_refused)
    SLUICE_NAME(in_use) SLUICE_NAME(foreign) SLUICE_NAME(damaged) SLUICE_NAME(future)
#undef SLUICE_NAME
  }
  return "unknown";
}

}  // namespace sluice
