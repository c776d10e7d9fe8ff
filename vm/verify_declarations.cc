// What a module declares must make sense by itself before any code is looked at.
// Source: design module.md 1.9, 3.4.
#include <cmath>
#include <string_view>

#include "vm/base/utf8.h"
#include "vm/slot.h"
#include "vm/verify.h"
#include "vm/verify_base.h"
#include "vm/wire.h"

namespace sluice::vm {
namespace {
constexpr double kWholeMax = 9007199254740992.0;
}  // namespace

std::string slot_problem(const Slot& slot, std::uint32_t max) {
  const Type type = type_of(slot.base);
  if (slot.range != Range::none) {
    if (type != Type::num) return "has a range, but is no number";
    if (!is_number(slot.low) || !is_number(slot.high)) return "has a range that is not of numbers";
    if (slot.low > slot.high) return "has a range that holds nothing";
    if (slot.base != Base::num) {
      const double low = slot.base == Base::u32 ? 0 : -kWholeMax;
      const double high = slot.base == Base::u32 ? 4294967295.0 : kWholeMax;
      // The ends are what `clamp` stores.
      if (slot.range == Range::clamp && (slot.low < low || slot.high > high || slot.low != std::trunc(slot.low) ||
                                         slot.high != std::trunc(slot.high)))
        return "saturates at a number that it cannot hold";
      if (slot.high < low || slot.low > high) return "has a range that holds nothing";
    }
  }
  if (slot.base == Base::text || slot.base == Base::bytes) {
    if (slot.max == 0 || slot.max > max) return "has a max that is not 1 to " + std::to_string(max);
  }
  return {};
}

std::string first_problem(const Slot& slot, const std::optional<Value>& first, std::string_view what) {
  if (!first) return {};
  const std::string its = "its " + std::string(what);
  Value value = *first;
  if (value.type != type_of(slot.base)) return its + " is of another type";
  if (value.type == Type::num && !is_number(value.num)) return its + " is not a number";
  if (value.type == Type::text && !valid_utf8(value.text())) return its + " is not UTF-8";
  const double before = value.type == Type::num ? value.num : 0;
  if (narrow(slot, value) != Fault::none || (value.type == Type::num && value.num != before))
    return its + " is not " + describe(slot);
  return {};
}

namespace {
std::string states_problem(const Module& module) {
  if (module.states.size() > kStates) return "there are more than 256 states";
  if (std::string why = names("state", module.states); !why.empty()) return why;
  if (std::string why = former_names("state", module.states, module.dropped_states); !why.empty()) return why;
  for (const State& state : module.states) {
    const std::string where = "state `" + state.name + "`: ";
    if (state.slot.base == Base::bytes) return where + "bytes are not stored in states";
    if (std::string why = slot_problem(state.slot, kTextMax); !why.empty()) return where + why;
    if (!state.first && !state.slot.optional) return where + "has no first value";
    if (std::string why = first_problem(state.slot, state.first, "first value"); !why.empty()) return where + why;
  }
  return {};
}

std::string fields_problem(const Input& input) {
  if (input.fields.size() > kFields) return "has more than 16 fields";
  if (std::string why = names("field", input.fields); !why.empty()) return why;
  for (std::size_t i = 0; i < input.fields.size(); ++i) {
    const Field& field = input.fields[i];
    const std::string where = "field `" + field.name + "`: ";
    if (field.slot.base == Base::boolean) return where + "a field is no bool";
    if (field.slot.optional) return where + "a field is never absent";
    if (std::string why = slot_problem(field.slot, kBytesMax); !why.empty()) return where + why;
    const bool body = field.slot.base == Base::text || field.slot.base == Base::bytes;
    if (body && i + 1 != input.fields.size()) return where + "a text or bytes field must be the last one";
  }
  return {};
}

std::string inputs_problem(const Module& module) {
  if (module.inputs.size() > kInputs) return "there are more than 128 inputs";
  if (std::string why = names("input", module.inputs); !why.empty()) return why;
  for (const Input& input : module.inputs) {
    const std::string where = "input `" + input.name + "`: ";
    if (input.kind == InputKind::timer && !(input.every_ms >= 1 && input.every_ms <= kEveryMax && input.every_ms == std::trunc(input.every_ms)))
      return where + "does not run every 1 to " + std::to_string(static_cast<std::uint64_t>(kEveryMax)) + " whole milliseconds";
    if (input.kind != InputKind::message) {
      if (!input.fields.empty()) return where + "has fields, but is no message";
      if (input.keyed) return where + "is keyed, but is no message";
    }
    if (input.keyed && module.documents.kind == DocumentKind::none) return where + "is keyed, but there are no documents";
    if (input.kind == InputKind::text && (input.max == 0 || input.max > kBytesMax))
      return where + "has a max that is not 1 to " + std::to_string(kBytesMax);
    if (std::string why = fields_problem(input); !why.empty()) return where + why;
  }
  return {};
}

std::string problem(const Module& module) {
  if (!is_name(module.name)) return "its name is not 1 to 64 of A-Z a-z 0-9 - _";
  if (module.cost_model != 1) return "has cost model " + std::to_string(module.cost_model) + ", and this version knows 1";
  if (module.numbers.size() > kConstants || module.texts.size() > kConstants) return "has more than 65536 constants";
  for (const double n : module.numbers)
    if (!is_number(n)) return "has a constant that is not a number";
  for (const std::string& text : module.texts)
    if (!valid_utf8(text)) return "has a constant that is not UTF-8";
  if (module.documents.kind != DocumentKind::none && (module.documents.max == 0 || module.documents.max > kBytesMax))
    return "documents have a max that is not 1 to " + std::to_string(kBytesMax);
  if (std::string why = states_problem(module); !why.empty()) return why;
  if (std::string why = tables_problem(module); !why.empty()) return why;
  if (std::string why = inputs_problem(module); !why.empty()) return why;
  if (std::string why = descriptors_problem(module); !why.empty()) return why;
  if (std::string why = functions_problem(module); !why.empty()) return why;
  return bindings_problem(module);
}
}  // namespace

const Input* input_of(const Module& module, std::uint32_t event) {
  if (event == 0 || (event - 1) / 2 >= module.inputs.size()) return nullptr;
  return &module.inputs[(event - 1) / 2];
}

std::string why_not_declared(const Module& module) {
  const std::string why = problem(module);
  return why.empty() ? why : "module: " + why;
}

void name_functions(Module& module) {
  for (const Handler& handler : module.handlers) {
    const Input* input = input_of(module, handler.event);
    std::string& name = module.functions[handler.function].name;
    name = "on " + (input == nullptr ? std::string("start") : input->name);
    if (input != nullptr && input->kind == InputKind::key) name += (handler.event - 1) % 2 == 1 ? " up" : " down";
  }
  for (const View& view : module.views) {
    module.functions[view.function].name = "view " + view.name;
    if (view.where) module.functions[*view.where].name = "view " + view.name + " where";
    for (const ViewCell& cell : view.cells) module.functions[cell.function].name = "view " + view.name + "." + cell.name;
  }
}

}  // namespace sluice::vm
