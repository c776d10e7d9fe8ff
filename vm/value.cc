#include "vm/value.h"

namespace sluice::vm {

std::string_view name(Fault fault) {
  constexpr std::string_view names[kFaults] = {"none",      "divide",   "non_finite", "clamp", "limit",
                                               "not_found", "encoding", "exists",     "denied"};
  const auto i = static_cast<int>(fault);
  return i < kFaults ? names[i] : std::string_view("unknown");
}

}  // namespace sluice::vm
