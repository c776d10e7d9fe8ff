// The language's own functions: one table that compiler, verifier and machine read.
#pragma once
#include <cstdint>
#include <string_view>

#include "vm/value.h"

namespace sluice::vm {

// Shape: at most 4 arguments. Fuel is per call; `fuel_shift` adds argument bytes >> shift (255: none).
struct Builtin {
  std::uint8_t number;              // kept in files; never reused
  std::string_view name;
  std::uint8_t arity;
  Type arguments[4];
  Type result;
  bool partial;                     // may be absent
  bool chance;                      // random, token
  std::uint16_t fuel;
  std::uint8_t fuel_shift;
};

// Source: design module.md 3.2, "Language functions".
inline constexpr int kBuiltins = 38;
const Builtin& builtin(std::uint8_t number);   // number < kBuiltins
// By name and argument types (`size` and `text` are overloaded); nullptr when there is none.
const Builtin* find_builtin(std::string_view name, const Type* types, int count);
bool is_builtin_name(std::string_view name);

}  // namespace sluice::vm
