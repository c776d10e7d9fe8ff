// Compares everything that is derived from rows with the rows, and every record with the catalog: what a rebuild would
// give against what is there.
//
// Memory does not grow with the store. Each order, total and group count is first compared as one number, a sum over its
// records that comes out the same whatever the order; only where two such sums differ are the records looked up one by one.
// Source: design module.md 4.4.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "vm/catalog.h"
#include "vm/records.h"

namespace sluice::vm {

struct AuditLimits {
  std::size_t differences = 20;             // told; more are only said to be there
  std::size_t groups = 200'000;             // of a total that differs, kept at once
};

struct Audit {
  std::uint64_t rows = 0, derived = 0;      // looked at
  std::vector<std::string> differences;     // a sentence each; empty: the store is right
  bool more = false;                        // and others, not told
};

// What could not be read counts as absent: `records` knows.
Audit audit(const Catalog& catalog, Records& records, const AuditLimits& limits = {});

}  // namespace sluice::vm
