// A catalog out of a module, and what running needs out of a catalog.
#include "vm/catalog.h"

namespace sluice::vm {

KeptTable first_table(const Table& table, std::uint16_t number) {
  KeptTable kept;
  kept.number = number;
  kept.name = table.name;
  kept.size = table.size;
  kept.rows = table.rows;
  kept.group_size = table.group_size;
  kept.group_rows = table.group_rows;
  kept.per = table.per;
  Shape shape;
  for (const Column& c : table.columns) {
    KeptColumn column;
    column.number = kept.next_column++;
    column.name = c.name;
    column.slot = c.slot;
    column.automatic = c.automatic;
    shape.columns.push_back({column.number, form_of(c.slot.base)});
    kept.columns.push_back(std::move(column));
  }
  kept.shapes.push_back(std::move(shape));
  for (const std::uint8_t c : table.key) kept.key.push_back(kept.columns[c].number);
  for (const Index& i : table.indexes) kept.indexes.push_back(kept_index(i, kept, kept.next_index++));
  for (const Total& t : table.totals) kept.totals.push_back(kept_total(t, kept, kept.next_total++));
  return kept;
}

KeptIndex kept_index(const Index& index, const KeptTable& table, std::uint16_t number) {
  KeptIndex kept;
  kept.number = number;
  kept.name = index.name;
  kept.unique = index.unique;
  for (const KeyPart& part : index.parts) kept.parts.push_back({table.columns[part.column].number, part.descending});
  return kept;
}

KeptTotal kept_total(const Total& total, const KeptTable& table, std::uint16_t number) {
  KeptTotal kept;
  kept.number = number;
  kept.name = total.name;
  kept.sum = total.sum;
  if (total.sum) kept.column = table.columns[total.column].number;
  for (const std::uint8_t c : total.by) kept.by.push_back(table.columns[c].number);
  return kept;
}

Catalog first_catalog(const Module& module) {
  Catalog catalog;
  catalog.name = module.name;
  catalog.version = module.version;
  catalog.code = module.code_hash;
  catalog.documents = module.documents;
  for (const State& state : module.states) catalog.states.push_back({catalog.next_state++, state.name, state.slot});
  for (const Table& table : module.tables) catalog.tables.push_back(first_table(table, catalog.next_table++));
  return catalog;
}

Layout layout_of(const Catalog& catalog) {
  Layout layout;
  for (const KeptState& state : catalog.states) layout.states.push_back(state.number);
  for (const KeptTable& table : catalog.tables) {
    TableLayout& out = layout.tables.emplace_back();
    out.number = table.number;
    for (const KeptColumn& c : table.columns) {
      out.columns.push_back(c.number);
      std::optional<Value> before;
      if (c.before.type == Type::num) before = Value::number(c.before.num);
      if (c.before.type == Type::boolean) before = Value::truth(c.before.boolean);
      if (c.before.type == Type::text) before = Value::span(layout.texts.emplace_back(c.before.text));
      out.before.push_back(before);
    }
    out.shapes = table.shapes;
    out.shape = table.shape;
    for (const KeptIndex& index : table.indexes) out.indexes.push_back(index.number);
    for (const KeptTotal& total : table.totals) out.totals.push_back(total.number);
  }
  return layout;
}

std::unique_ptr<const Module> module_of(const Catalog& catalog) {
  auto module = std::make_unique<Module>();
  module->name = catalog.name;
  module->version = catalog.version;
  module->documents = catalog.documents;
  for (const KeptState& state : catalog.states) module->states.push_back({state.name, state.slot, std::nullopt});
  for (const KeptTable& kept : catalog.tables) {
    Table table;
    const auto place = [&kept](std::uint16_t column) {
      return static_cast<std::uint8_t>(kept.find_column(column) - kept.columns.data());
    };
    table.name = kept.name;
    table.size = kept.size;
    table.rows = kept.rows;
    table.group_size = kept.group_size;
    table.group_rows = kept.group_rows;
    table.per = kept.per;
    for (const KeptColumn& c : kept.columns) {
      Column column;
      column.name = c.name;
      column.slot = c.slot;
      column.automatic = c.automatic;
      table.columns.push_back(std::move(column));
    }
    for (const std::uint16_t c : kept.key) table.key.push_back(place(c));
    for (const KeptIndex& i : kept.indexes) {
      Index& index = table.indexes.emplace_back();
      index.name = i.name;
      index.unique = i.unique;
      for (const KeptIndex::Part& part : i.parts) index.parts.push_back({place(part.column), part.descending});
    }
    for (const KeptTotal& t : kept.totals) {
      Total& total = table.totals.emplace_back();
      total.name = t.name;
      total.sum = t.sum;
      if (t.sum) total.column = place(t.column);
      for (const std::uint16_t c : t.by) total.by.push_back(place(c));
    }
    module->tables.push_back(std::move(table));
  }
  return module;
}

}  // namespace sluice::vm
