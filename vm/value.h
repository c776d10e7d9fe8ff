// A value while a module runs: 16 bytes, never null, never a reference count.
#pragma once
#include <cstdint>
#include <string_view>

namespace sluice::vm {

// What a register, a parameter, a field or an expression holds. Numbers are stored in module files.
enum class Type : std::uint8_t { none = 0, num = 1, text = 2, boolean = 3, bytes = 4, row = 5, cursor = 6 };

// Shape: a finite number (never -0), a bool, a span of at most 4 GiB, or a handle of the frame.
// Life:  a span points into the request, the module's constants, the store's mapping or the event's arena: it is
//        good until the event ends.
struct Value {
  union {
    double num;
    bool boolean;
    const char* data;
    std::uint32_t handle;
  };
  std::uint32_t size = 0;
  Type type = Type::none;

  Value() : num(0) {}
  static Value number(double n) { Value v; v.num = n; v.type = Type::num; return v; }
  static Value truth(bool b) { Value v; v.num = 0; v.boolean = b; v.type = Type::boolean; return v; }
  static Value span(std::string_view s, Type t = Type::text) {
    Value v;
    v.data = s.data();
    v.size = static_cast<std::uint32_t>(s.size());
    v.type = t;
    return v;
  }
  std::string_view text() const { return {data, size}; }
};
static_assert(sizeof(Value) == 16);

// How an event can fail. Numbers are stored in module files and never reused.
// Source: design module.md 1.5.
enum class Fault : std::uint8_t {
  none = 0, divide = 1, non_finite = 2, clamp = 3, limit = 4, not_found = 5, encoding = 6, exists = 7, denied = 8,
};
inline constexpr int kFaults = 9;
std::string_view name(Fault fault);

}  // namespace sluice::vm
