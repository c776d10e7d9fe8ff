// The table of the language's own functions. Their code is in builtin_run.cc.
#include "vm/builtin.h"

#include "vm/base/check.h"

namespace sluice::vm {
namespace {
constexpr Type N = Type::num, T = Type::text, B = Type::boolean, Y = Type::bytes, o = Type::none;
constexpr std::uint8_t kFlat = 255;  // fuel does not depend on the arguments' bytes

// number, name, arity, arguments, result, may be absent, chance, fuel, argument bytes >> shift
constexpr Builtin kTable[kBuiltins] = {
    {0, "abs", 1, {N, o, o, o}, N, false, false, 2, kFlat},
    {1, "floor", 1, {N, o, o, o}, N, false, false, 2, kFlat},
    {2, "ceil", 1, {N, o, o, o}, N, false, false, 2, kFlat},
    {3, "round", 1, {N, o, o, o}, N, false, false, 2, kFlat},
    {4, "trunc", 1, {N, o, o, o}, N, false, false, 2, kFlat},
    {5, "sqrt", 1, {N, o, o, o}, N, false, false, 2, kFlat},
    {6, "min", 2, {N, N, o, o}, N, false, false, 2, kFlat},
    {7, "max", 2, {N, N, o, o}, N, false, false, 2, kFlat},
    {8, "div", 2, {N, N, o, o}, N, false, false, 4, kFlat},
    {9, "clamp", 3, {N, N, N, o}, N, false, false, 2, kFlat},
    {10, "size", 1, {T, o, o, o}, N, false, false, 2, kFlat},
    {11, "size", 1, {Y, o, o, o}, N, false, false, 2, kFlat},
    {12, "chars", 1, {T, o, o, o}, N, false, false, 3, 5},
    {13, "upper", 1, {T, o, o, o}, T, false, false, 5, 4},
    {14, "lower", 1, {T, o, o, o}, T, false, false, 5, 4},
    {15, "trim", 1, {T, o, o, o}, T, false, false, 3, 4},
    {16, "starts", 2, {T, T, o, o}, B, false, false, 3, 5},
    {17, "ends", 2, {T, T, o, o}, B, false, false, 3, 5},
    {18, "contains", 2, {T, T, o, o}, B, false, false, 5, 3},
    {19, "find", 2, {T, T, o, o}, N, true, false, 5, 3},
    {20, "slice", 3, {T, N, N, o}, T, false, false, 4, kFlat},
    {21, "before", 2, {T, T, o, o}, T, true, false, 5, 3},
    {22, "after", 2, {T, T, o, o}, T, true, false, 5, 3},
    {23, "replace", 3, {T, T, T, o}, T, false, false, 8, 3},
    {24, "num", 1, {T, o, o, o}, N, true, false, 8, 3},
    {25, "text", 1, {N, o, o, o}, T, false, false, 10, kFlat},
    {26, "text", 1, {B, o, o, o}, T, false, false, 2, kFlat},
    {27, "text", 1, {Y, o, o, o}, T, false, false, 3, 5},
    {28, "hash", 1, {T, o, o, o}, N, false, false, 4, 5},
    {29, "bucket", 2, {T, N, o, o}, N, false, false, 5, 5},
    {30, "base62", 1, {N, o, o, o}, T, false, false, 6, kFlat},
    {31, "pad", 3, {T, N, T, o}, T, false, false, 8, 5},
    {32, "is_slug", 1, {T, o, o, o}, B, false, false, 8, kFlat},
    {33, "json_valid", 1, {T, o, o, o}, B, false, false, 10, 4},
    {34, "json_text", 2, {T, T, o, o}, T, true, false, 15, 4},
    {35, "json_num", 2, {T, T, o, o}, N, true, false, 15, 4},
    {36, "random", 1, {N, o, o, o}, N, false, true, 25, kFlat},
    {37, "token", 1, {N, o, o, o}, T, false, true, 150, kFlat},
};
}  // namespace

const Builtin& builtin(std::uint8_t number) {
  SLUICE_ASSERT(number < kBuiltins);
  return kTable[number];
}

const Builtin* find_builtin(std::string_view name, const Type* types, int count) {
  for (const Builtin& one : kTable) {
    if (one.name != name || one.arity != count) continue;
    bool same = true;
    for (int i = 0; i < count; ++i) same = same && one.arguments[i] == types[i];
    if (same) return &one;
  }
  return nullptr;
}

bool is_builtin_name(std::string_view name) {
  for (const Builtin& one : kTable)
    if (one.name == name) return true;
  return false;
}

}  // namespace sluice::vm
