// The one layout of a module.
//
// What the author decides stays: which lines are kept apart by an empty one, whether a block that fits stands
// on one line, which columns, cells and fields share a line, whether an `else` starts one. All else follows
// from the words: spaces, indentation, commas, where long lines break, the column of comments.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "vm/compiler.h"

namespace sluice::vm {

// Shape: `text` ends with a line feed. Its lines have at most 100 characters, but for comments, and for texts
//        and names that leave no place to break them. Empty when there is a diagnostic.
struct Formatted {
  std::string text;
  std::vector<Diagnostic> diagnostics;
};

// Errors: a module that cannot be read is not laid out; the diagnostics are those of compile(). What a module
// means is not looked at.
Formatted reformat(std::string_view source);

}  // namespace sluice::vm
