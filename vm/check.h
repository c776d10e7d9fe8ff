// Whether a module as it was written means something: names, types, slots, effects, reachability.
#pragma once
#include <memory>
#include <string_view>
#include <vector>

#include "vm/ast.h"
#include "vm/parser.h"

namespace sluice::vm {

// Completes the syntax and returns the module's declarations, without code. Nothing of both may be used when
// there is a complaint. Errors: at most one complaint per declaration and per cause, in no order. Source:
// design module.md 1.11.
std::unique_ptr<Module> check(std::string_view source, Syntax& syntax, std::vector<Complaint>& complaints);

}  // namespace sluice::vm
