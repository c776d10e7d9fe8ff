// What the language's own functions do.
#pragma once
#include <cstdint>

#include "vm/arena.h"
#include "vm/machine.h"
#include "vm/value.h"

namespace sluice::vm {

// What a call needs beyond its arguments.
struct BuiltinContext {
  Arena& arena;
  Host& host;
  std::uint64_t& chance_calls;   // in this event so far
  std::size_t reserved = 0;      // bytes of the event's memory that are in use outside the arena
};

// Runs language function `number`; the verifier has seen to the number and types of `arguments`. On Fault::none `out` is
// the result, of Type::none when it is absent (partial functions only). `out` may be one of the arguments.
Fault run_builtin(std::uint8_t number, const Value* arguments, Value& out, BuiltinContext& context);

// Makes a result what a value may be: finite and never -0.
Fault finish_number(double n, Value& out);
// Floored remainder; b != 0.
double floor_mod(double a, double b);

}  // namespace sluice::vm
