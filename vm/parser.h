// From tokens to a module as it was written.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "vm/ast.h"

namespace sluice::vm {

// Something wrong at a place; the compiler turns it into a Diagnostic.
struct Complaint {
  Span span;
  std::string message;
  std::string hint;
};

// A module as its words, each marked with what it was taken for, and its comments, both in their order.
struct Written {
  std::vector<Token> tokens;
  std::vector<Span> comments;
};

// Errors: at most one complaint per declaration; reading goes on at the next one.
// Shape:  expressions and blocks nest at most 100 deep, so walking the result recursively is safe.
// Source: design module.md 1.10.
Syntax parse(std::string_view source, std::vector<Complaint>& complaints, Written* written = nullptr);

}  // namespace sluice::vm
