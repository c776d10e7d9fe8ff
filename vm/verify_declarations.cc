// What a module declares must make sense by itself before any code is looked at.
// Source: design module.md 1.9, 3.4.
#include <algorithm>
#include <set>
#include <string_view>

#include "vm/base/utf8.h"
#include "vm/slot.h"
#include "vm/verify.h"
#include "vm/wire.h"

namespace sluice::vm {
namespace {
constexpr std::size_t kStates = 256, kInputs = 128, kFields = 16, kViews = 512, kFunctions = 512, kRegisters = 200;
constexpr std::size_t kWords = 65535, kConstants = 65536;
constexpr std::uint32_t kTextMax = 65536;  // bytes of a stored text
constexpr double kWholeMax = 9007199254740992.0;

bool is_name(std::string_view name) { return is_slug(name); }  // the same letters and length

// Names of one kind must be well formed and unique. Empty, or what is wrong.
template <class List>
std::string names(std::string_view kind, const List& list) {
  std::set<std::string_view> seen;
  for (const auto& one : list) {
    if (!is_name(one.name)) return "the name of a " + std::string(kind) + " is not 1 to 64 of A-Z a-z 0-9 - _";
    if (!seen.insert(one.name).second) return "there are two of the " + std::string(kind) + " `" + one.name + "`";
  }
  return {};
}

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

std::string states_problem(const Module& module) {
  if (module.states.size() > kStates) return "there are more than 256 states";
  if (std::string why = names("state", module.states); !why.empty()) return why;
  for (const State& state : module.states) {
    const std::string where = "state `" + state.name + "`: ";
    if (state.slot.base == Base::bytes) return where + "bytes are not stored in states";
    if (std::string why = slot_problem(state.slot, kTextMax); !why.empty()) return where + why;
    if (!state.first) {
      if (!state.slot.optional) return where + "has no first value";
      continue;
    }
    Value value = *state.first;
    if (value.type == Type::num && !is_number(value.num)) return where + "its first value is not a number";
    if (value.type == Type::text && !valid_utf8(value.text())) return where + "its first value is not UTF-8";
    const double before = value.type == Type::num ? value.num : 0;
    if (narrow(state.slot, value) != Fault::none || (value.type == Type::num && value.num != before))
      return where + "its first value is not " + describe(state.slot);
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
    if (input.kind == InputKind::timer) return where + "is a timer, which this version does not serve";
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

std::string functions_problem(const Module& module) {
  if (module.functions.size() > kFunctions) return "there are more than 512 functions";
  std::vector<const Function*> plain;
  std::set<std::string_view> seen;
  for (std::size_t i = 0; i < module.functions.size(); ++i) {
    const Function& function = module.functions[i];
    const std::string where = "function " + std::to_string(i) + ": ";
    if (function.kind == FunctionKind::function) {
      std::string_view name = function.name;
      if (name.starts_with("fn ")) name.remove_prefix(3);
      if (!is_name(name)) return where + "its name is not 1 to 64 of A-Z a-z 0-9 - _";
      if (!seen.insert(name).second) return "there are two of the function `" + std::string(name) + "`";
    }
    if (function.registers.size() > kRegisters) return where + "has more than 200 registers";
    if (function.code.empty() || function.code.size() > kWords) return where + "has no code, or more than 65535 words";
    for (const auto& [type, table] : function.registers) {
      if (type == Type::row || type == Type::cursor) return where + "has rows or cursors, which this version does not serve";
      if (type == Type::none) return where + "has a register without a type";
    }
    if (function.result.type > Type::bytes) return where + "gives a row or cursor, which this version does not serve";
    if (function.partial && function.result == Type::none) return where + "may be absent, but has no result";
    if (function.kind == FunctionKind::handler && (!function.parameters.empty() || function.result != Type::none))
      return where + "is a handler with parameters or a result";
    if (function.kind == FunctionKind::view && function.writes) return where + "is a view that writes";
  }
  return {};
}

// Each handler and view function belongs to exactly one event or view.
std::string bindings_problem(const Module& module) {
  std::vector<int> bound(module.functions.size(), 0);
  std::int64_t before = -1;
  for (const Handler& handler : module.handlers) {
    const std::string where = "event " + std::to_string(handler.event) + ": ";
    if (handler.event <= before) return where + "handlers do not rise by event";
    before = handler.event;
    if (handler.event != 0) {
      const Input* input = input_of(module, handler.event);
      if (input == nullptr) return where + "there is no such input";
      if ((handler.event - 1) % 2 == 1 && input->kind != InputKind::key) return where + "only a key has an up edge";
    }
    if (handler.function >= module.functions.size()) return where + "there is no function " + std::to_string(handler.function);
    if (module.functions[handler.function].kind != FunctionKind::handler)
      return where + "function " + std::to_string(handler.function) + " is no handler";
    if (++bound[handler.function] > 1)
      return where + "function " + std::to_string(handler.function) + " handles another event too";
  }
  if (module.views.size() > kViews) return "there are more than 512 views";
  if (std::string why = names("view", module.views); !why.empty()) return why;
  for (const View& view : module.views) {
    const std::string where = "view `" + view.name + "`: ";
    if (view.type != Type::num && view.type != Type::text && view.type != Type::boolean)
      return where + "is of no type that a view has";
    if (view.parameters.size() > kFields) return where + "has more than 16 parameters";
    if (std::string why = names("parameter", view.parameters); !why.empty()) return where + why;
    if (view.function >= module.functions.size()) return where + "there is no function " + std::to_string(view.function);
    const Function& function = module.functions[view.function];
    if (function.kind != FunctionKind::view) return where + "function " + std::to_string(view.function) + " is no view";
    if (++bound[view.function] > 1) return where + "function " + std::to_string(view.function) + " is another view's too";
    if (function.result != view.type) return where + "its function gives another type";
    if (function.parameters.size() != view.parameters.size()) return where + "its function takes other parameters";
    for (std::size_t i = 0; i < view.parameters.size(); ++i) {
      const Parameter& parameter = view.parameters[i];
      const std::string what = where + "parameter `" + parameter.name + "`: ";
      if (parameter.name == "from" || parameter.name == "count" || parameter.name == "after")
        return what + "the name is kept for pages";
      if (parameter.slot.optional) return what + "a parameter is never absent";
      if (parameter.slot.base == Base::bytes) return what + "a parameter is no bytes";
      if (std::string why = slot_problem(parameter.slot, kTextMax); !why.empty()) return what + why;
      if (function.parameters[i] != type_of(parameter.slot.base)) return where + "its function takes other parameters";
    }
  }
  for (std::size_t i = 0; i < bound.size(); ++i)
    if (module.functions[i].kind != FunctionKind::function && bound[i] == 0)
      return "function " + std::to_string(i) + ": belongs to no event or view";
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
  if (!module.tables.empty()) return "has tables, which this version does not serve";
  if (module.documents.kind != DocumentKind::none && (module.documents.max == 0 || module.documents.max > kBytesMax))
    return "documents have a max that is not 1 to " + std::to_string(kBytesMax);
  if (std::string why = states_problem(module); !why.empty()) return why;
  if (std::string why = inputs_problem(module); !why.empty()) return why;
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
  for (const View& view : module.views) module.functions[view.function].name = "view " + view.name;
}

}  // namespace sluice::vm
