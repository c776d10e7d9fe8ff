// Reads a module from its file, as source (.aup) or compiled (.pmod).
#pragma once
#include <memory>
#include <string>

#include "vm/base/result.h"
#include "vm/module.h"

namespace sluice::proxy {

// Errors: of a source its diagnostics as `aupc check` prints them; else one sentence that names the file.
Result<std::unique_ptr<const vm::Module>, std::string> read_module(const std::string& path);

}  // namespace sluice::proxy
