// Functions have the form of their kind, and each handler and view function belongs to exactly one event or view.
// Source: design module.md 3.4.
#include "vm/verify.h"
#include "vm/verify_base.h"

namespace sluice::vm {
namespace {
// Whose row or cursor it is must be known, and of other types nothing is said.
std::string type_problem(const Module& module, RegisterType type) {
  if (type.type == Type::row || type.type == Type::cursor)
    return type.table < module.tables.size() ? std::string() : "there is no table " + std::to_string(type.table);
  return type.table == 0 ? std::string() : "names the table of what is no row";
}
}  // namespace

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
    for (const RegisterType& type : function.registers) {
      if (type.type == Type::none) return where + "has a register without a type";
      if (std::string why = type_problem(module, type); !why.empty()) return where + why;
    }
    for (const RegisterType& type : function.parameters)
      if (type.type == Type::cursor) return where + "takes a cursor";
    if (std::string why = type_problem(module, function.result); !why.empty()) return where + why;
    if (function.result.type == Type::row) return where + "gives a row";
    if (function.result.type == Type::cursor && (function.kind != FunctionKind::view || function.partial))
      return where + "gives a cursor, but not for the rows of a view";
    if (function.partial && function.result == Type::none) return where + "may be absent, but has no result";
    if (function.kind == FunctionKind::handler && (!function.parameters.empty() || function.result != Type::none))
      return where + "is a handler with parameters or a result";
    if (function.kind == FunctionKind::view && function.writes) return where + "is a view that writes";
  }
  return {};
}

namespace {
using Bindings = std::vector<int>;   // per function: to how many events and views it belongs

std::string event_problem(const Module& module, const Handler& handler, Bindings& bound) {
  if (handler.event != 0) {
    const Input* input = input_of(module, handler.event);
    if (input == nullptr) return "there is no such input";
    if ((handler.event - 1) % 2 == 1 && input->kind != InputKind::key) return "only a key has an up edge";
  }
  const std::string which = "function " + std::to_string(handler.function);
  if (handler.function >= module.functions.size()) return "there is no " + which;
  if (module.functions[handler.function].kind != FunctionKind::handler) return which + " is no handler";
  if (++bound[handler.function] > 1) return which + " handles another event too";
  return {};
}

std::string parameters_problem(const View& view) {
  if (view.parameters.size() > kFields) return "has more than 16 parameters";
  if (std::string why = names("parameter", view.parameters); !why.empty()) return why;
  for (const Parameter& parameter : view.parameters) {
    const std::string what = "parameter `" + parameter.name + "`: ";
    if (parameter.name == "from" || parameter.name == "count" || parameter.name == "after")
      return what + "the name is kept for pages";
    if (parameter.slot.optional) return what + "a parameter is never absent";
    if (parameter.slot.base == Base::bytes) return what + "a parameter is no bytes";
    if (std::string why = slot_problem(parameter.slot, kTextMax); !why.empty()) return what + why;
  }
  return {};
}

// A function of the view: of its parameters and then of `more`, and no other view's. `its`: what it is to the view.
std::string function_problem(const Module& module, const View& view, std::uint32_t index, std::string_view its,
                             const std::vector<RegisterType>& more, Bindings& bound) {
  const std::string which = "function " + std::to_string(index);
  if (index >= module.functions.size()) return "there is no " + which;
  const Function& function = module.functions[index];
  if (function.kind != FunctionKind::view) return which + " is no view";
  if (++bound[index] > 1) return which + " is another view's too";
  std::vector<RegisterType> takes;
  for (const Parameter& parameter : view.parameters) takes.push_back(type_of(parameter.slot.base));
  takes.insert(takes.end(), more.begin(), more.end());
  if (function.parameters != takes) return std::string(its) + " takes other parameters";
  return {};
}

bool is_shown(Type type) { return type == Type::num || type == Type::text || type == Type::boolean; }

std::string table_view_problem(const Module& module, const View& view, Bindings& bound) {
  const Function& rows = module.functions[view.function];
  const RegisterType row{Type::row, rows.result.table};
  if (view.where) {
    if (std::string why = function_problem(module, view, *view.where, "its condition", {row}, bound); !why.empty()) return why;
    const Function& where = module.functions[*view.where];
    if (where.result != Type::boolean) return "its condition is no bool";
    if (where.partial) return "its condition may be absent";
  }
  if (view.cells.empty()) return "has no cells";
  if (std::string why = names("cell", view.cells); !why.empty()) return why;
  for (const ViewCell& cell : view.cells) {
    const std::string what = "cell `" + cell.name + "`: ";
    if (std::string why = function_problem(module, view, cell.function, "its function", {row, Type::num}, bound); !why.empty())
      return what + why;
    if (!is_shown(module.functions[cell.function].result.type)) return what + "is of no type that a cell has";
  }
  return {};
}

std::string view_problem(const Module& module, const View& view, Bindings& bound) {
  if (!is_shown(view.type) && view.type != Type::cursor) return "is of no type that a view has";
  if (std::string why = parameters_problem(view); !why.empty()) return why;
  if (std::string why = function_problem(module, view, view.function, "its function", {}, bound); !why.empty()) return why;
  if (module.functions[view.function].result.type != view.type) return "its function gives another type";
  if (view.type == Type::cursor) return table_view_problem(module, view, bound);
  return view.where || !view.cells.empty() ? "has cells, but no rows" : std::string();
}
}  // namespace

std::string bindings_problem(const Module& module) {
  Bindings bound(module.functions.size(), 0);
  std::int64_t before = -1;
  for (const Handler& handler : module.handlers) {
    const std::string where = "event " + std::to_string(handler.event) + ": ";
    if (handler.event <= before) return where + "handlers do not rise by event";
    before = handler.event;
    if (std::string why = event_problem(module, handler, bound); !why.empty()) return where + why;
  }
  std::size_t views = module.views.size();
  for (const View& view : module.views) views += view.cells.size();
  if (views > kViews) return "there are more than 512 views and cells";
  if (std::string why = names("view", module.views); !why.empty()) return why;
  for (const View& view : module.views)
    if (std::string why = view_problem(module, view, bound); !why.empty()) return "view `" + view.name + "`: " + why;
  for (std::size_t i = 0; i < bound.size(); ++i)
    if (module.functions[i].kind != FunctionKind::function && bound[i] == 0)
      return "function " + std::to_string(i) + ": belongs to no event or view";
  return {};
}

}  // namespace sluice::vm
