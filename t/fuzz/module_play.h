// Runs everything of a module on chosen values, several times over, and aborts when something is not as promised: fuel
// under its bound, failed events without a trace, states and rows of their slots, all that is derived as a rebuild has it.
#pragma once
#include "vm/module.h"

namespace sluice::vm {

// Shape: loaded. The choices are made from its hash, so the same file always plays the same.
void play_module(const Module& module);

}  // namespace sluice::vm
