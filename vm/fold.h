// The value of an expression whose parts are known when the module is compiled.
#pragma once
#include <optional>
#include <string_view>

#include "vm/ast.h"

namespace sluice::vm {

struct Folded {
  std::optional<Constant> value;
  std::string_view problem;  // why there never is a value: "this divides by zero"
};

// By the machine's rules: finite, no -0, `%` and `div` floor.
// Shape: `e` is checked without an error, its arguments included.
Folded fold(const Expr& e);

}  // namespace sluice::vm
