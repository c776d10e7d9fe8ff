// The one place where a value is checked before it is stored.
#pragma once
#include "vm/base/result.h"
#include "vm/module.h"

namespace sluice::vm {

// Narrows `value` to what `slot` stores: `clamp` saturates; otherwise the fault is clamp (outside a range, a fraction
// or beyond 2^53 for int, beyond u32), limit (too long) or encoding (not a slug). Result: Fault::none and the value in place.
Fault narrow(const Slot& slot, Value& value);

bool is_slug(std::string_view text);  // 1..64 of A-Z a-z 0-9 - _

// A value as text read from a query, or absent when it is not of the slot's type (400 `query`). Numbers outside the
// declared range are read: `narrow` then gives the fault. Life: a text points into `text`.
std::optional<Value> read_slot(const Slot& slot, std::string_view text);

}  // namespace sluice::vm
