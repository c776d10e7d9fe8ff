// From the text of a module (.aup) to a module, or to what is wrong with it.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "vm/module.h"

namespace sluice::vm {

// Shape: 1-based line and column (in bytes) and the length in bytes of the words meant.
struct Diagnostic {
  enum class Kind : std::uint8_t { error, warning } kind = Kind::error;
  std::uint32_t line = 1, column = 1, length = 1;
  std::string message;   // lower case, no full stop, code in backquotes
  std::string hint;      // what to write; may be empty
};

struct Compiled {
  std::unique_ptr<Module> module;          // null when there is an error
  std::vector<Diagnostic> diagnostics;     // in the order of the file
};

Compiled compile(std::string_view source);

// "FILE:4:16: error: ...", the line, a caret with tildes, the hint: design module.md 1.12.
std::string render(std::string_view file, std::string_view source, const Diagnostic& diagnostic);

}  // namespace sluice::vm
