// What the checks of declarations share: limits, names, and whether a slot and a value of it make sense.
// Source: design module.md 1.9, 3.4.
#pragma once
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "vm/module.h"
#include "vm/slot.h"

namespace sluice::vm {

inline constexpr std::size_t kStates = 256, kInputs = 128, kFields = 16, kViews = 512, kFunctions = 512, kRegisters = 200;
inline constexpr std::size_t kWords = 65535, kConstants = 65536;
inline constexpr std::uint32_t kTextMax = 65536;  // bytes of a stored text

inline bool is_name(std::string_view name) { return is_slug(name); }  // the same letters and length
inline std::string bad_name() { return "is not 1 to 64 of A-Z a-z 0-9 - _"; }

// Names of one kind must be well formed and unique. Empty, or what is wrong.
template <class List>
std::string names(std::string_view kind, const List& list) {
  std::set<std::string_view> seen;
  for (const auto& one : list) {
    if (!is_name(one.name)) return "the name of a " + std::string(kind) + " " + bad_name();
    if (!seen.insert(one.name).second) return "there are two of the " + std::string(kind) + " `" + one.name + "`";
  }
  return {};
}

// The names that things had before, and those of what is gone: well formed, each told once, and of nothing that is there.
template <class List>
std::string former_names(std::string_view kind, const List& list, const std::vector<std::string>& dropped) {
  std::set<std::string_view> present, told;
  for (const auto& one : list) present.insert(one.name);
  const auto problem = [&](std::string_view name) -> std::string {
    const std::string what = std::string(kind) + " `" + std::string(name) + "`";
    if (!is_name(name)) return "the former name of a " + std::string(kind) + " " + bad_name();
    if (present.contains(name)) return "the " + what + " is there, but is said to be gone";
    if (!told.insert(name).second) return "the " + what + " is said to be gone twice";
    return {};
  };
  for (const auto& one : list) {
    if (one.was.empty()) continue;
    if (std::string why = problem(one.was); !why.empty()) return why;
  }
  for (const std::string& name : dropped)
    if (std::string why = problem(name); !why.empty()) return why;
  return {};
}

// Empty, or what is wrong, as the end of a sentence. `max`: bytes of a text at most.
std::string slot_problem(const Slot& slot, std::uint32_t max);
// Of a first value or a default, which `what` says.
std::string first_problem(const Slot& slot, const std::optional<Value>& first, std::string_view what);

// Tables, then what queries and writes say about them. Empty, or what is wrong.
std::string tables_problem(const Module& module);
std::string descriptors_problem(const Module& module);
// Functions, and the events and views they belong to.
std::string functions_problem(const Module& module);
std::string bindings_problem(const Module& module);

}  // namespace sluice::vm
