// The planner's half that compares a table with what it was.
#include <algorithm>
#include <limits>

#include "vm/plan_base.h"

namespace sluice::vm {
namespace {

using Kind = Step::Kind;

std::string key_text(const KeptTable& table) {
  std::string out;
  for (const std::uint16_t c : table.key) out += (out.empty() ? "" : ", ") + table.find_column(c)->name;
  return out;
}

std::string group_text(const KeptTable& table) {
  std::string out;
  for (std::uint8_t i = 0; i < table.per; ++i) out += (i == 0 ? "" : ", ") + table.find_column(table.key[i])->name;
  return out;
}

std::uint64_t most(Size size, std::uint32_t rows) {
  return size == Size::none ? std::numeric_limits<std::uint64_t>::max() : rows;
}

// The same records serve the index as it is now declared.
bool keeps(const KeptIndex& before, const KeptTable& then, const KeptIndex& after, const KeptTable& now) {
  if (before.parts != after.parts || before.unique != after.unique) return false;
  return std::all_of(after.parts.begin(), after.parts.end(), [&](const KeptIndex::Part& p) {
    return key_bytes(then.find_column(p.column)->slot.base) == key_bytes(now.find_column(p.column)->slot.base);
  });
}

// Sums are exact whatever the numbers were, so theirs stay as they are.
bool keeps(const KeptTotal& before, const KeptTable& then, const KeptTotal& after, const KeptTable& now) {
  if (before.sum != after.sum || before.column != after.column || before.by != after.by) return false;
  const auto base = [](const KeptTable& t, std::uint16_t c) { return t.find_column(c)->slot.base; };
  return std::all_of(after.by.begin(), after.by.end(),
                     [&](std::uint16_t c) { return key_bytes(base(then, c)) == key_bytes(base(now, c)); });
}

}  // namespace

void Planner::plan_table(std::uint32_t place, const KeptTable& before) {
  const Table& table = module_.tables[place];
  KeptTable after;
  after.number = before.number;
  after.name = table.name;
  after.next_column = before.next_column;
  after.next_index = before.next_index;
  after.next_total = before.next_total;
  after.shapes = before.shapes;
  TableWork work;
  work.table = place;
  plan_columns(table, before, after, work);
  plan_key(table, before, after);
  plan_sizes(table, before, after, work);
  plan_indexes(table, before, after, work);
  plan_totals(table, before, after, work);
  settle_shape(after);
  if (work.checks() || work.builds()) plan_.tables.push_back(std::move(work));
  plan_.next.tables.push_back(std::move(after));
}

void Planner::plan_columns(const Table& table, const KeptTable& before, KeptTable& after, TableWork& work) {
  const Words words{table.name + ".", "drop ", " in the table", "values", "column"};
  std::vector<std::string_view> old_names;
  std::vector<Name> names;
  for (const KeptColumn& c : before.columns) old_names.push_back(c.name);
  for (const Column& c : table.columns) names.push_back({c.name, c.was});
  const Match matched = match(old_names, names, table.drops, words);
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    const Column& column = table.columns[i];
    const std::string said = table.name + "." + column.name;
    KeptColumn kept;
    kept.name = column.name;
    kept.slot = column.slot;
    kept.automatic = column.automatic;
    if (!matched[i]) {
      kept.number = number(after.next_column);
      kept.before = KeptValue::of(column.first);
      if (column.automatic)
        step(Kind::refuse, said + ": new, and old rows have no number; an `auto` column comes with its table");
      else if (!column.first && !column.slot.optional)
        step(Kind::refuse, said + ": new, and old rows have no value; give it a default, or make it a `" +
                               std::string(base_name(column.slot.base)) + "?`");
      else
        step(Kind::free, said + ": new, old rows read " + (column.first ? written(*column.first) : "none"));
      after.columns.push_back(std::move(kept));
      continue;
    }
    const KeptColumn& was = before.columns[*matched[i]];
    kept.number = was.number;
    kept.before = was.before;
    const std::string change = said + ": " + describe(was.slot) + " to " + describe(column.slot);
    const bool in_key = std::find(before.key.begin(), before.key.end(), was.number) != before.key.end();
    const SlotChange how = change_of(was.slot, column.slot);
    if (how == SlotChange::other)
      step(Kind::refuse, said + ": " + with_article(base_name(was.slot.base)) + " does not become " +
                             with_article(base_name(column.slot.base)) + "; add a column and fill it");
    else if (in_key && key_bytes(was.slot.base) != key_bytes(column.slot.base))
      step(Kind::refuse, said + ": in a key " + with_article(base_name(was.slot.base)) + " does not become " +
                             with_article(base_name(column.slot.base)) + "; add a table and fill it");
    else if (how == SlotChange::wider)
      step(Kind::free, change);
    else if (how == SlotChange::narrower) {
      step(Kind::check, change + ", every row must fit");
      work.fits.push_back(static_cast<std::uint8_t>(i));
    }
    if (column.automatic && !was.automatic) {
      step(Kind::build, said + ": `auto`, its next number comes from the rows");
      work.numbers = true;
    }
    if (was.automatic && !column.automatic) step(Kind::free, said + ": no longer `auto`");
    after.columns.push_back(std::move(kept));
  }
  gone(old_names, matched, table.drops, words);
}

void Planner::plan_key(const Table& table, const KeptTable& before, KeptTable& after) {
  for (const std::uint8_t c : table.key) after.key.push_back(after.columns[c].number);
  if (after.key == before.key) return;
  step(Kind::refuse, "table " + table.name + ": its key was `" + key_text(before) + "` and is `" + key_text(after) +
                         "`; add a table and fill it");
}

void Planner::plan_sizes(const Table& table, const KeptTable& before, KeptTable& after, TableWork& work) {
  after.size = table.size;
  after.rows = table.rows;
  after.group_size = table.group_size;
  after.group_rows = table.group_rows;
  after.per = table.per;
  if (after.key != before.key) return;          // refused: what its rows and groups are is no question any more
  const auto say = [](std::uint64_t rows) {
    return rows == std::numeric_limits<std::uint64_t>::max() ? std::string("any number of rows") : std::to_string(rows) + " rows";
  };
  const std::uint64_t was = most(before.size, before.rows), is = most(after.size, after.rows);
  if (was < is) step(Kind::free, "table " + table.name + ": " + say(was) + " to " + say(is));
  if (is < was) {
    step(Kind::check, "table " + table.name + ": " + say(was) + " to " + say(is) + ", it must have no more");
    work.rows = true;
  }
  if (before.per != after.per) {
    if (after.per == 0) {
      step(Kind::free, "table " + table.name + " per " + group_text(before) + ": gone, its counts are erased");
      return;
    }
    const std::string said = "table " + table.name + " per " + group_text(after);
    if (after.group_size != Size::none) {
      step(Kind::check, said + ": no group may have more than " + say(after.group_rows));
      work.groups = true;
    }
    step(Kind::build, said + ": counted from the rows");
    work.counts = true;
    return;
  }
  const std::uint64_t group_was = most(before.group_size, before.group_rows), group_is = most(after.group_size, after.group_rows);
  const std::string said = "table " + table.name + " per " + group_text(after) + ": " + say(group_was) + " to " + say(group_is);
  if (group_was < group_is) step(Kind::free, said);
  if (group_is < group_was) {
    step(Kind::check, said + ", no group may have more");
    work.groups = true;
  }
}

void Planner::check_text(const Table& table, std::uint8_t column, const KeptTable& before, const KeptTable& after, TableWork& work) {
  if (table.columns[column].slot.base != Base::text) return;
  const std::uint16_t number_of_it = after.columns[column].number;
  const KeptColumn* was = before.find_column(number_of_it);
  if (was == nullptr || was->slot.base == Base::slug) return;
  if (std::find(work.keys.begin(), work.keys.end(), column) != work.keys.end()) return;
  step(Kind::check, table.name + "." + table.columns[column].name + ": no text may have U+0000, as it comes into a key");
  work.keys.push_back(column);
}

void Planner::plan_indexes(const Table& table, const KeptTable& before, KeptTable& after, TableWork& work) {
  std::vector<bool> taken(before.indexes.size(), false);
  std::vector<std::optional<std::size_t>> from(table.indexes.size());
  // By name first; then a new name takes over what no name is left for.
  for (const bool named : {true, false})
    for (std::size_t i = 0; i < table.indexes.size(); ++i)
      for (std::size_t b = 0; b < before.indexes.size() && !from[i]; ++b) {
        const KeptIndex wanted = kept_index(table.indexes[i], after, 0);
        if (taken[b] || (before.indexes[b].name == wanted.name) != named || !keeps(before.indexes[b], before, wanted, after)) continue;
        taken[b] = true;
        from[i] = b;
      }
  for (std::size_t i = 0; i < table.indexes.size(); ++i) {
    const Index& index = table.indexes[i];
    const std::string said = table.name + (index.unique ? " unique " : " index ") + index.name;
    if (from[i]) {
      const KeptIndex& was = before.indexes[*from[i]];
      after.indexes.push_back(kept_index(index, after, was.number));
      if (was.name != index.name) step(Kind::free, said + ": was " + was.name);
      continue;
    }
    const auto was = std::find_if(before.indexes.begin(), before.indexes.end(), [&](const KeptIndex& b) { return b.name == index.name; });
    after.indexes.push_back(kept_index(index, after, number(after.next_index)));
    if (index.unique) {
      step(Kind::check, said + ": no two rows may agree in it");
      work.distinct.push_back(static_cast<std::uint8_t>(i));
    }
    for (const KeyPart& part : index.parts) check_text(table, part.column, before, after, work);
    step(Kind::build, said + (was == before.indexes.end() ? ": built from the rows" : ": built again from the rows"));
    work.indexes.push_back(static_cast<std::uint8_t>(i));
  }
  for (std::size_t b = 0; b < before.indexes.size(); ++b) {
    const KeptIndex& was = before.indexes[b];
    const bool named = std::any_of(table.indexes.begin(), table.indexes.end(), [&](const Index& i) { return i.name == was.name; });
    if (!taken[b] && !named)
      step(Kind::free, table.name + (was.unique ? " unique " : " index ") + was.name + ": gone, its records are erased");
  }
}

void Planner::plan_totals(const Table& table, const KeptTable& before, KeptTable& after, TableWork& work) {
  std::vector<bool> taken(before.totals.size(), false);
  std::vector<std::optional<std::size_t>> from(table.totals.size());
  for (const bool named : {true, false})
    for (std::size_t i = 0; i < table.totals.size(); ++i)
      for (std::size_t b = 0; b < before.totals.size() && !from[i]; ++b) {
        const KeptTotal wanted = kept_total(table.totals[i], after, 0);
        if (taken[b] || (before.totals[b].name == wanted.name) != named || !keeps(before.totals[b], before, wanted, after)) continue;
        taken[b] = true;
        from[i] = b;
      }
  for (std::size_t i = 0; i < table.totals.size(); ++i) {
    const Total& total = table.totals[i];
    const std::string said = table.name + " total " + total.name;
    if (from[i]) {
      const KeptTotal& was = before.totals[*from[i]];
      after.totals.push_back(kept_total(total, after, was.number));
      if (was.name != total.name) step(Kind::free, said + ": was " + was.name);
      continue;
    }
    const auto was = std::find_if(before.totals.begin(), before.totals.end(), [&](const KeptTotal& b) { return b.name == total.name; });
    after.totals.push_back(kept_total(total, after, number(after.next_total)));
    for (const std::uint8_t c : total.by) check_text(table, c, before, after, work);
    step(Kind::build, said + (was == before.totals.end() ? ": counted from the rows" : ": counted again from the rows"));
    work.totals.push_back(static_cast<std::uint8_t>(i));
  }
  for (std::size_t b = 0; b < before.totals.size(); ++b) {
    const KeptTotal& was = before.totals[b];
    const bool named = std::any_of(table.totals.begin(), table.totals.end(), [&](const Total& t) { return t.name == was.name; });
    if (!taken[b] && !named) step(Kind::free, table.name + " total " + was.name + ": gone, its records are erased");
  }
}

void Planner::settle_shape(KeptTable& after) {
  Shape shape;
  for (const KeptColumn& c : after.columns) shape.columns.push_back({c.number, form_of(c.slot.base)});
  std::sort(shape.columns.begin(), shape.columns.end(), [](const Shape::At& a, const Shape::At& b) { return a.column < b.column; });
  const auto known = std::find(after.shapes.begin(), after.shapes.end(), shape);
  after.shape = static_cast<std::uint16_t>(known - after.shapes.begin());
  if (known != after.shapes.end()) return;
  if (after.shapes.size() >= kShapesInTable) used_up_ = true;
  after.shapes.push_back(std::move(shape));
}

}  // namespace sluice::vm
