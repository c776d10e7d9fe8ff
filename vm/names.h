// The known name that a wrong one was probably meant to be.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace sluice::vm {

// Empty when none is near: a changed, missing, additional or swapped letter per three or so.
// Source: optimal string alignment distance.
std::string nearest(std::string_view name, const std::vector<std::string>& known);

}  // namespace sluice::vm
