#include "proxy/engine/served.h"

#include <algorithm>

#include "vm/image.h"

namespace sluice::proxy {
namespace {

using Names = std::vector<std::pair<std::string_view, std::uint32_t>>;

constexpr std::size_t kFew = 16;

std::optional<std::uint32_t> find(const Names& names, std::string_view name) {
  if (names.size() <= kFew) {
    // Sizes mostly differ, so this compares the bytes of about one.
    for (const auto& [known, number] : names)
      if (known.size() == name.size() && __builtin_memcmp(known.data(), name.data(), name.size()) == 0) return number;
    return std::nullopt;
  }
  const auto at = std::lower_bound(names.begin(), names.end(), name,
                                   [](const auto& entry, std::string_view n) { return entry.first < n; });
  if (at == names.end() || at->first != name) return std::nullopt;
  return at->second;
}

bool writes(const vm::Module& module, const vm::Handler* handler) {
  return handler != nullptr && module.facts[handler->function].writes;
}

Served::Input plan_input(const vm::Module& module, std::uint32_t number) {
  const vm::Input& declared = module.inputs[number];
  Served::Input in;
  in.declared = &declared;
  in.takes_body = declared.takes_body();
  in.down = module.find_handler(vm::event_of(number));
  if (declared.kind == vm::InputKind::key) in.up = module.find_handler(vm::event_of(number, true));
  in.writes = writes(module, in.down) || writes(module, in.up);
  std::size_t short_fields = declared.fields.size();
  if (declared.kind == vm::InputKind::text) {
    in.body.base = vm::Base::text;
    in.body.max = declared.max;
    short_fields = 0;
  } else if (in.takes_body) {
    in.body = declared.fields.back().slot;
    --short_fields;
  }
  for (std::size_t i = 0; i < short_fields; ++i) in.asked.push_back({declared.fields[i].name, &declared.fields[i].slot});
  return in;
}

// Whether the view, or of a table view any of its functions, has that fact.
bool reads(const vm::Module& module, const vm::View& view, bool vm::Facts::*fact) {
  const auto has = [&](std::uint32_t function) { return module.facts[function].*fact; };
  return has(view.function) || (view.where && has(*view.where)) ||
         std::any_of(view.cells.begin(), view.cells.end(), [&](const vm::ViewCell& cell) { return has(cell.function); });
}

// Rows that the query of a table view goes over at most.
std::uint64_t rows_of(const vm::Module& module, const vm::View& view) {
  std::uint64_t most = 0;
  for (const vm::Word w : module.functions[view.function].code)
    if (vm::op_of(w) == vm::Op::open) most = std::max<std::uint64_t>(most, module.scans[vm::c_of(w)].limit);
  return most;
}

// The rows of a query with `where` are all looked at for each page. What cells cost is seen while they run.
bool here(const vm::Module& module, const vm::View& view) {
  if (reads(module, view, &vm::Facts::ranks)) return false;
  std::uint64_t fuel = module.facts[view.function].fuel;
  if (view.where) fuel += module.facts[*view.where].fuel * rows_of(module, view);
  return fuel <= kFuelHere;
}

}  // namespace

std::optional<std::uint32_t> Served::find_input(std::string_view name) const { return find(input_names, name); }
std::optional<std::uint32_t> Served::find_view(std::string_view name) const { return find(view_names, name); }

ServedPtr serve(std::unique_ptr<const vm::Module> module, std::uint64_t fuel, const vm::Catalog& catalog) {
  auto served = std::make_shared<Served>();
  const vm::Module& m = *module;
  for (std::uint32_t i = 0; i < m.inputs.size(); ++i) {
    served->inputs.push_back(plan_input(m, i));
    served->input_names.emplace_back(m.inputs[i].name, i);
  }
  for (std::uint32_t i = 0; i < m.views.size(); ++i) {
    const vm::View& declared = m.views[i];
    Served::View view;
    view.declared = &declared;
    for (const vm::Parameter& p : declared.parameters) view.asked.push_back({p.name, &p.slot});
    view.here = here(m, declared);
    view.reads_now = reads(m, declared, &vm::Facts::reads_now);
    view.reads_seq = reads(m, declared, &vm::Facts::reads_seq);
    served->views.push_back(std::move(view));
    served->view_names.emplace_back(declared.name, i);
  }
  std::sort(served->input_names.begin(), served->input_names.end());
  std::sort(served->view_names.begin(), served->view_names.end());
  for (const vm::KeptState& state : catalog.states) served->state_keys.push_back(vm::state_key(state.number));
  served->catalog = vm::encode(catalog);
  if (m.serves_objects()) {
    const auto number = [&](const vm::Input* in) { return static_cast<std::uint32_t>(in - m.inputs.data()); };
    served->show = number(m.show());
    served->edit = number(m.edit());
    if (m.remove() != nullptr) served->remove = number(m.remove());
    const vm::Handler* show = served->inputs[*served->show].down;
    const vm::Facts none;
    const vm::Facts& facts = show != nullptr ? m.facts[show->function] : none;
    served->show_here = !facts.writes && !facts.chance && facts.fuel <= kFuelHere;
    served->show_reads_now = facts.reads_now;
    served->show_reads_seq = facts.reads_seq;
  }
  served->fuel = fuel;
  if (!m.tables.empty()) served->tables = std::make_unique<const vm::Tables>(m, vm::layout_of(catalog));
  served->module = std::move(module);
  return served;
}

}  // namespace sluice::proxy
