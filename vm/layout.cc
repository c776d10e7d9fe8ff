#include "vm/layout.h"

namespace sluice::vm {
namespace {
std::vector<std::uint16_t> first_numbers(std::size_t count) {
  std::vector<std::uint16_t> out;
  for (std::size_t i = 0; i < count; ++i) out.push_back(static_cast<std::uint16_t>(i));
  return out;
}
}  // namespace

Form form_of(Base base) {
  switch (base) {
    case Base::num: return Form::num;
    case Base::integer: case Base::u32: return Form::whole;
    case Base::boolean: return Form::boolean;
    case Base::text: case Base::slug: case Base::bytes: return Form::text;
  }
  return Form::num;
}

Layout first_layout(const Module& module) {
  Layout out;
  out.states = first_numbers(module.states.size());
  for (const Table& table : module.tables) {
    TableLayout one;
    one.number = static_cast<std::uint16_t>(out.tables.size());
    one.columns = first_numbers(table.columns.size());
    one.before.resize(table.columns.size());
    one.indexes = first_numbers(table.indexes.size());
    one.totals = first_numbers(table.totals.size());
    Shape shape;
    for (std::size_t c = 0; c < table.columns.size(); ++c)
      shape.columns.push_back({one.columns[c], form_of(table.columns[c].slot.base)});
    one.shapes.push_back(std::move(shape));
    out.tables.push_back(std::move(one));
  }
  return out;
}

}  // namespace sluice::vm
