// Shared by the halves of an audit: comparing sums of records, and finding which record makes them differ.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vm/arena.h"
#include "vm/audit.h"
#include "vm/exact_sum.h"
#include "vm/fingerprint.h"
#include "vm/row_walk.h"

namespace sluice::vm {

struct Auditor {
  const AuditLimits& limits;
  Audit result;
  void say(std::string sentence);
  bool enough() const { return result.more; }
};

std::string hex(std::string_view bytes);
// A stored count or sum; absent when it is not as the one writer writes it (zero is not stored).
std::optional<std::uint64_t> read_count(std::string_view bytes);
std::optional<ExactSum> read_sum(std::string_view bytes);

class TableAudit {
 public:
  TableAudit(const Tables& tables, std::uint32_t table, Records& records, Auditor& told);
  void run();

 private:
  struct Amounts {
    std::string name, prefix;
    std::uint32_t part = 0;                   // as Tables::Derived
    bool sum = false;
  };
  void look_at_rows();
  void look_at_count();
  bool key_is_right(std::string_view key, const Row& row);
  void add(const Tables::Derived& d);
  void compare_amounts(const Amounts& what, const Fingerprint& wanted);
  // What differs is known to be there.
  void find_entries(std::uint32_t index);
  void find_amounts(const Amounts& what);
  template <class F>
  void each_derived(F f);

  const Tables& tables_;
  const TableLayout& layout_;
  const Table& table_;
  const std::uint32_t number_;
  const RowCodec codec_;
  Records& records_;
  Auditor& told_;
  Arena arena_;
  TableUse use_;
  std::optional<std::size_t> automatic_;
  std::uint64_t rows_ = 0;
  double last_ = 0;                           // the greatest automatic number
  std::vector<Fingerprint> indexes_, totals_; // of what the rows give
  Fingerprint groups_;
};

}  // namespace sluice::vm
