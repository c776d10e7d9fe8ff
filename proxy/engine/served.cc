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

}  // namespace

std::optional<std::uint32_t> Served::find_input(std::string_view name) const { return find(input_names, name); }
std::optional<std::uint32_t> Served::find_view(std::string_view name) const { return find(view_names, name); }

ServedPtr serve(std::unique_ptr<const vm::Module> module, std::uint64_t fuel) {
  auto served = std::make_shared<Served>();
  const vm::Module& m = *module;
  for (std::uint32_t i = 0; i < m.inputs.size(); ++i) {
    served->inputs.push_back(plan_input(m, i));
    served->input_names.emplace_back(m.inputs[i].name, i);
  }
  for (std::uint32_t i = 0; i < m.views.size(); ++i) {
    const vm::View& declared = m.views[i];
    const vm::Facts& facts = m.facts[declared.function];
    Served::View view;
    view.declared = &declared;
    for (const vm::Parameter& p : declared.parameters) view.asked.push_back({p.name, &p.slot});
    view.here = facts.fuel <= kFuelHere;
    view.reads_now = facts.reads_now;
    view.reads_seq = facts.reads_seq;
    served->views.push_back(std::move(view));
    served->view_names.emplace_back(declared.name, i);
  }
  std::sort(served->input_names.begin(), served->input_names.end());
  std::sort(served->view_names.begin(), served->view_names.end());
  for (std::size_t i = 0; i < m.states.size(); ++i)
    served->state_keys.push_back(vm::state_key(static_cast<std::uint16_t>(i)));
  served->catalog = vm::encode_catalog(m);
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
  served->module = std::move(module);
  return served;
}

}  // namespace sluice::proxy
