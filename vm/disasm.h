// A proven module as a listing: what `aupc disasm` prints.
#pragma once
#include <string>

#include "vm/module.h"

namespace sluice::vm {

// One instruction, "LEN     r2 = r1 <= r0", without its number; an operand that leads nowhere is printed as its number.
std::string disassemble(const Module& module, const Function& function, Word word);

// What the scans are, then every function: a line with its name and registers, then a numbered line for each word.
std::string disassemble(const Module& module);

}  // namespace sluice::vm
