// What each handler, view and cell can cost at most: what `aupc explain` prints.
#pragma once
#include <string>
#include <string_view>

#include "vm/module.h"

namespace sluice::vm {

// "quota.aup: on take    61 instructions, at most   1,348 fuel,   2 rows read,     5 written", a line each.
// Of a table view: its rows once per page, its `where` for each row read, its cells for each row shown.
// The module comes from load().
std::string explain(std::string_view file, const Module& module);

// 1,348; with `width`, filled with spaces in front.
std::string grouped(std::uint64_t n, std::size_t width = 0);

}  // namespace sluice::vm
