// Shared by the parts of the planner: the plan that grows, and how declarations of two versions find each other.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vm/plan.h"

namespace sluice::vm {

// How the values of a slot change with its declaration.
enum class SlotChange : std::uint8_t { same, wider, narrower, other };
SlotChange change_of(const Slot& before, const Slot& after);
// How a value is written in a key: a number in 8 bytes (num, int) or 4 (u32), a bool, a text.
std::uint8_t key_bytes(Base base);              // 8, 4, 1; 0: a text and its end
std::string_view base_name(Base base);
// As a module writes it; a long text is cut.
std::string written(const Value& value);

// The words for one kind of declaration in sentences.
struct Words {
  std::string prefix;                           // "item.", "state ", "table "
  std::string_view drop, in, lost, kind;        // "drop ", " in the table", "values", "column"
};

class Planner {
 public:
  Planner(const Catalog& now, const Module& module) : now_(now), module_(module) {}
  Plan run();

 private:
  struct Name {
    std::string_view name, was;
  };
  using Match = std::vector<std::optional<std::size_t>>;   // per declared name the place of what it was, if it was there

  void step(Step::Kind kind, std::string text) { plan_.steps.push_back({kind, std::move(text)}); }
  // Says what is refused and what is destroyed; `old_names` in the catalog's order.
  Match match(const std::vector<std::string_view>& old_names, const std::vector<Name>& names,
              const std::vector<std::string>& drops, const Words& words);
  void gone(const std::vector<std::string_view>& old_names, const Match& match, const std::vector<std::string>& drops,
            const Words& words);
  std::uint16_t number(std::uint16_t& next);

  void plan_documents();
  void plan_states();
  void plan_tables();
  void plan_version();
  void plan_table(std::uint32_t place, const KeptTable& before);
  void plan_columns(const Table& table, const KeptTable& before, KeptTable& after, TableWork& work);
  void plan_sizes(const Table& table, const KeptTable& before, KeptTable& after, TableWork& work);
  void plan_key(const Table& table, const KeptTable& before, KeptTable& after);
  void plan_indexes(const Table& table, const KeptTable& before, KeptTable& after, TableWork& work);
  void plan_totals(const Table& table, const KeptTable& before, KeptTable& after, TableWork& work);
  // What is built over a text that was in no key: keys take every text but one with U+0000.
  void check_text(const Table& table, std::uint8_t column, const KeptTable& before, const KeptTable& after, TableWork& work);
  void settle_shape(KeptTable& after);

  const Catalog& now_;
  const Module& module_;
  Plan plan_;
  bool used_up_ = false;
};

}  // namespace sluice::vm
