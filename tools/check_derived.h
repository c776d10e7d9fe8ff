// Whether what a store in memory derived from its rows is what a rebuild from them gives.
#pragma once
#include <string>

#include "vm/memory_records.h"
#include "vm/orders.h"
#include "vm/tables.h"

namespace sluice::tools {

// Between two events: entries of indexes, unique values, totals, counts of groups and tables, next automatic numbers, and
// the positions in ranked orders. Empty when all is right; else one sentence that names the table.
std::string check_derived(const vm::Tables& tables, vm::MemoryRecords& records, vm::Orders& orders);

}  // namespace sluice::tools
