// The proof that a module may run without checks: declarations first, then each function in one pass.
#pragma once
#include <string>

#include "vm/module.h"

namespace sluice::vm {

// Declarations, descriptors, and what binds functions to events and views. Empty, or one sentence that begins "module: ".
std::string why_not_declared(const Module& module);

// Gives handlers and views the names that errors and listings show ("on take", "view left"). The module is declared well.
void name_functions(Module& module);

// Every function, in order; fills Module::facts. Empty, or one sentence: "module: on take at 12: register 3 is T, not N".
// The module is declared well.
std::string verify_code(Module& module);

// What a handler's event brings along: its input, or nullptr for `on start`.
const Input* input_of(const Module& module, std::uint32_t event);

}  // namespace sluice::vm
