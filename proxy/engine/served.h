// A module as the engine serves it: proven code, with what every event asks of it worked out once.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "vm/catalog.h"
#include "vm/module.h"
#include "vm/tables.h"

namespace sluice::proxy {

// A short field of a message or a parameter of a view: what the query must carry.
struct Asked {
  std::string_view name;
  const vm::Slot* slot = nullptr;
};

// Thread: frozen, but for the two that say who may evaluate.
struct Served {
  struct Input {
    const vm::Input* declared = nullptr;
    std::vector<Asked> asked;             // the fields of the query, in declared order
    bool takes_body = false;
    vm::Slot body;                        // when it takes one
    const vm::Handler* down = nullptr;    // nullptr: nothing happens, and that is a success
    const vm::Handler* up = nullptr;      // keys only
    bool writes = false;                  // a handler may change the store
  };
  struct View {
    const vm::View* declared = nullptr;
    std::vector<Asked> asked;
    bool here = false;                    // cheap enough for a worker, on a snapshot
    bool reads_now = false;
    bool reads_seq = false;
    // A table view: its answer is a page of rows.
    bool paged() const { return declared->type == vm::Type::cursor; }
  };

  std::unique_ptr<const vm::Module> module;
  std::unique_ptr<const vm::Tables> tables;   // null: it has none
  std::uint64_t fuel = vm::kFuel;         // per event
  std::vector<Input> inputs;              // as Module::inputs
  std::vector<View> views;                // as Module::views
  std::vector<std::string> state_keys;    // as Module::states
  std::string catalog;                    // as the store keeps it with this module
  std::optional<std::uint32_t> show, edit, remove;   // inputs; show and edit only together
  bool show_here = false;
  bool show_reads_now = false;
  bool show_reads_seq = false;

  std::optional<std::uint32_t> find_input(std::string_view name) const;
  std::optional<std::uint32_t> find_view(std::string_view name) const;
  bool serves_objects() const { return show.has_value(); }
  // The same file with the same budget: nothing to swap.
  bool same_as(const vm::Module& other, std::uint64_t its_fuel) const {
    return module->code_hash == other.code_hash && fuel == its_fuel;
  }

  // Sorted by name.
  std::vector<std::pair<std::string_view, std::uint32_t>> input_names, view_names;

  // What a worker reads of a snapshot has to be what this module means by it. Thread: any.
  // False: states that it brings are not stored yet; set by the owner, with the commit that stores them.
  mutable std::atomic<bool> settled{true};
  // Another module is about to write to the store; set by control before the owners hear of it.
  mutable std::atomic<bool> retired{false};
};
using ServedPtr = std::shared_ptr<const Served>;

// Units: static fuel up to which a worker evaluates a view itself, so that no connection waits for a neighbour's.
// Source: design README, "Views by cost".
inline constexpr std::uint64_t kFuelHere = 20'000;
// Units: rows that a worker steps over to reach a page; farther ones are the owner's, who has positions.
inline constexpr std::uint64_t kFromHere = 1'000;

// `catalog`: what its store keeps with this module, and under which numbers.
ServedPtr serve(std::unique_ptr<const vm::Module> module, std::uint64_t fuel, const vm::Catalog& catalog);

}  // namespace sluice::proxy
