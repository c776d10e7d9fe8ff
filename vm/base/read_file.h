// A whole file as bytes, for what is read once when a process starts or reloads.
#pragma once
#include <cstddef>
#include <string>

#include "vm/base/result.h"

namespace sluice {

// Never waits and never reads without end: a pipe, a device or a folder is refused, as is a file of more than `most` bytes.
// Errors: "PATH: why".
Result<std::string, std::string> read_file(const std::string& path, std::size_t most);

}  // namespace sluice
