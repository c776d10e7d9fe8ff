// What has to happen to a store before a module can serve it, worked out from the store's catalog and the module alone.
//
// A plan is a list of steps for people, the work behind them, and the catalog as it will be. Nothing is touched here:
// vm/upgrade.h does the work.
// Source: design module.md 3.11.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "vm/catalog.h"
#include "vm/module.h"

namespace sluice::vm {

struct Step {
  // free: nothing to do, or next to nothing; build: from the rows; check: every row, and the first that does not fit
  // refuses the module; destroy: something is lost; refuse: the module cannot serve this store.
  enum class Kind : std::uint8_t { free, build, check, destroy, refuse } kind = Kind::free;
  std::string text;
};
std::string_view name(Step::Kind kind);

// What is to be looked at and built in a table that was there. Columns, indexes and totals by their place in the module.
struct TableWork {
  std::uint32_t table = 0;                    // its place in the module
  std::vector<std::uint8_t> fits;             // columns: every row's value fits the slot as it is now declared
  std::vector<std::uint8_t> keys;             // columns: every row's text can be in a key
  bool rows = false, groups = false;          // there are at most as many rows, in all or in each group, as now declared
  std::vector<std::uint8_t> distinct;         // unique indexes: no two rows agree in them
  std::vector<std::uint8_t> indexes, totals;  // to build
  bool counts = false;                        // of groups, to build
  bool numbers = false;                       // the next auto number is to be found
  bool checks() const { return !fits.empty() || !keys.empty() || rows || groups || !distinct.empty(); }
  bool builds() const { return !indexes.empty() || !totals.empty() || counts || numbers; }
};

struct StateWork {
  std::uint32_t state = 0;                    // its place in the module
  bool fresh = false;                         // it gets its first value; else it was kept as:
  Slot before;
  bool fits = false;                          // its value must fit
  bool rewrite = false;                       // its bytes change
};

struct Plan {
  std::vector<Step> steps;
  Catalog next;                               // its erases: what the old catalog still had to erase, and what this adds
  std::vector<TableWork> tables;
  std::vector<StateWork> states;

  bool has(Step::Kind kind) const;
  bool refused() const { return has(Step::Kind::refuse); }
  // A server may take the module between two events.
  bool hot() const { return !refused() && !has(Step::Kind::build) && !has(Step::Kind::check) && !has(Step::Kind::destroy); }
  // Empty when a store may take the module; else why not, one sentence: all that refuses, or what must be allowed first.
  std::string why_not(bool allow_destroy) const;
  // As `aupc plan` prints it: "  free     item.color: new, old rows read none\n", a line per step.
  std::string text() const;
};

// No steps: the store can be served as it is, and going back to an earlier version is no matter either.
Plan plan_upgrade(const Catalog& now, const Module& module);

// How the records of a kind begin: states 02, rows 10, indexes 11, totals 12, groups 13, tables 14; then numbers.
std::string record_prefix(std::uint8_t kind, std::uint16_t number);
std::string record_prefix(std::uint8_t kind, std::uint16_t number, std::uint16_t part);
// Records of orders and totals that `from` has and `to` has not, or has otherwise: of tables and states that are gone, all.
std::vector<Erase> erases_between(const Catalog& from, const Catalog& to);

}  // namespace sluice::vm
