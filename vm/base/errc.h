// The names of everything that can go wrong, in one list: what a client reads in `X-Pure-Error` first.
#pragma once
#include <cstdint>
#include <string_view>

namespace sluice {

// The order is not stored anywhere; add where it reads best.
// Source: design http.md, "Errors".
enum class Errc : std::uint8_t {
  none,
  // What a client can be told. The enumerator is the name in X-Pure-Error.
  request, query, missing_field, body, keyed, invalid, unauthorized, denied, route, no_view, no_input, no_value,
  not_found, method, timeout, exists, length, conflict, limit, target, headers, range, expect, divide, non_finite,
  clamp, encoding, condition, rate, storage, durability_unknown, lua, coding, backend, backend_timeout, deadline,
  full, store_busy, payload_budget, allocation, stopped, overload, version,
  // What stays inside: set-up and files.
  io, config, module_refused, in_use, foreign, damaged, future,
};

// The name as a client sees it in X-Pure-Error. Life: static.
std::string_view name(Errc code);

}  // namespace sluice
