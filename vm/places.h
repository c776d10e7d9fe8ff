// From a place in a text to the line and column that a message names.
#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "vm/compiler.h"
#include "vm/parser.h"

namespace sluice::vm {

// Life: needs the source only while it is made.
class Places {
 public:
  explicit Places(std::string_view source);
  Diagnostic at(const Complaint& c, Diagnostic::Kind kind) const;

 private:
  std::vector<std::uint32_t> starts_;  // of lines
};

// What keeps a text from being read at all: it is too long, or no UTF-8.
std::optional<Complaint> unreadable(std::string_view source);

}  // namespace sluice::vm
