// The module file (.pmod): bytes to a proven module, and a module to bytes.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "vm/base/result.h"
#include "vm/module.h"

namespace sluice::vm {

inline constexpr std::size_t kFileMax = 131072;  // bytes, exclusive

// Decodes and verifies. Errors: one sentence, "module: on take at 12: register 3 is T, not N".
Result<std::unique_ptr<const Module>, std::string> load(std::string_view file);

// Writes the one encoding of `module`. Errors: a sentence when it does not fit the format's limits.
// encode(*load(f)) == f for every f that loads.
Result<std::string, std::string> encode(const Module& module);

}  // namespace sluice::vm
