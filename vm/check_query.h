// What checker and code generator both ask of an expression or a query.
#pragma once
#include "vm/ast.h"

namespace sluice::vm {

inline RegisterType register_type(const Expr& e) { return {e.type, e.type == Type::row ? e.table : 0}; }

// Whether a table keeps the number of the query's rows, so that they need not be gone over.
enum class Kept : std::uint8_t { no, table, group };

// Shape: a checked query, `where` aside, or one whose table, order, group and bounds are known.
Kept kept_count(const Query& q, const Table& t);

// Something that its group or bounds need may have no value.
bool absent_bounds(const Query& q);

// Its group and bounds, in the order of OPEN's window.
std::vector<const Expr*> window_of(const Query& q);

}  // namespace sluice::vm
