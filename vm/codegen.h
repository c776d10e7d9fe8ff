// From a checked module to bytecode.
#pragma once
#include <string_view>
#include <vector>

#include "vm/ast.h"
#include "vm/parser.h"

namespace sluice::vm {

// Adds functions, handlers, constants and line tables to the declarations that `check` returned.
// Functions come first and in the order of the file, so that each calls only smaller numbers; then handlers,
// rising by event; then views. Errors: a complaint for a function that does not fit the machine (registers,
// instructions).
void generate(std::string_view source, const Syntax& syntax, Module& module,
              std::vector<Complaint>& complaints);

}  // namespace sluice::vm
