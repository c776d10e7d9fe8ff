// Tables: their columns, key, sizes, indexes and totals.
#include <algorithm>

#include "vm/check_base.h"
#include "vm/names.h"

namespace sluice::vm {
namespace {

bool is_number(Base base) { return base == Base::num || base == Base::integer || base == Base::u32; }

std::vector<std::string> column_names(const Table& t) {
  std::vector<std::string> out;
  for (const Column& c : t.columns) out.push_back(c.name);
  return out;
}

// A name that the list holds already.
template <class List>
bool has_name(const List& list, std::string_view name) {
  return std::any_of(list.begin(), list.end(), [&](const auto& one) { return one.name == name; });
}

}  // namespace

// The tables of the module are numbered as they are declared, right or wrong.
void Checker::table(std::uint32_t number) {
  TableSyntax& t = syntax_.tables[number];
  Table& out = module_->tables.emplace_back();
  out.name = t.name.text;
  columns(t, out);
  if (!failed_) key(t, out);
  if (!failed_) sizes(t, out);
  if (t.indexes.size() > kIndexesMax)
    complain(t.indexes[kIndexesMax].at, "a table has at most 8 indexes", "split the table");
  for (IndexSyntax& i : t.indexes)
    if (!failed_) index(i, out);
  if (t.totals.size() > kTotalsMax)
    complain(t.totals[kTotalsMax].at, "a table has at most 8 totals", "split the table");
  for (TotalSyntax& total_syntax : t.totals)
    if (!failed_) total(total_syntax, out);
  std::size_t totals = 0;
  for (const Table& one : module_->tables) totals += one.totals.size();
  if (totals > kAllTotalsMax)
    complain(t.name.span, "a module has at most 256 totals", "split the module");
  if (!failed_) table_names(t, out);
}

void Checker::columns(TableSyntax& t, Table& out) {
  if (t.columns.empty())
    return complain(t.name.span, "a table has at least one column",
                    "write `table " + t.name.text + " { name: slug, key name }`");
  if (t.columns.size() > kColumnsMax)
    return complain(t.columns[kColumnsMax].name.span, "a table has at most 32 columns", "split the table");
  for (ColumnSyntax& c : t.columns) {
    if (has_name(out.columns, c.name.text))
      complain(c.name.span, "there is already a column called `" + c.name.text + "`", "choose another name");
    if (failed_) return;
    column(t, c, out);
  }
}

void Checker::column(TableSyntax& t, ColumnSyntax& c, Table& out) {
  Column column;
  column.name = c.name.text;
  column.automatic = c.auto_at.length != 0;
  if (c.was) column.was = c.was->text;
  if (c.slot.base == Base::bytes)
    return complain(c.slot.base_at, "a column cannot be bytes", "use text, or keep bytes in a document");
  const std::optional<Slot> checked = slot(c.slot, "a column", kColumnTextMax);
  if (!checked) return;
  column.slot = *checked;
  if (column.automatic) {
    if (c.slot.base != Base::integer)
      return complain(c.slot.base_at, "only an int is numbered", "write `" + c.name.text + ": int auto`");
    if (c.slot.optional)
      return complain(c.slot.optional_at, "a numbered column always has a value", "leave out the `?`");
    if (c.slot.range == Range::clamp)
      return complain(c.slot.range_at, "numbers of rows are not saturated", "write `in` for the range that they must stay in");
    if (c.first)
      return complain(c.first->span, "a numbered column has no default", "rows are numbered from 1");
    for (const Column& other : out.columns)
      if (other.automatic)
        return complain(c.auto_at, "`" + t.name.text + "` numbers `" + other.name + "` already",
                        "a table has one numbered column");
  }
  if (c.first) column.first = first_value(c.name, column.slot, *c.first, "default");
  if (!failed_) out.columns.push_back(std::move(column));
}

std::optional<std::uint8_t> Checker::find_column(const Table& t, const Name& name) {
  for (std::size_t i = 0; i < t.columns.size(); ++i)
    if (t.columns[i].name == name.text) return static_cast<std::uint8_t>(i);
  const std::string near = nearest(name.text, column_names(t));
  complain(name.span, "`" + t.name + "` has no column `" + name.text + "`",
           near.empty() ? "declare it: `" + name.text + ": num`" : "did you mean `" + near + "`?");
  return std::nullopt;
}

bool Checker::fits_key(const Table& t, std::uint8_t column, Span at, std::string_view what) {
  const Column& c = t.columns[column];
  if (c.slot.base != Base::text) return true;
  if (c.slot.max > kKeyTextMax) {
    complain(at, "`" + c.name + "` is too long for " + std::string(what) + ": up to " +
                     std::to_string(c.slot.max) + " bytes",
             "write `" + c.name + ": text max 200` or less, or use slug");
    return false;
  }
  if (c.first && c.first->text().find('\0') != std::string_view::npos) {
    complain(at, "`" + c.name + "` cannot be part of " + std::string(what) + ", as its default has U+0000",
             "give it another default, or none");
    return false;
  }
  return true;
}

bool Checker::fits_width(std::size_t width, Span at, std::string_view what) {
  if (width <= kEncodedKeyMax) return true;
  complain(at, std::string(what) + " takes up to " + std::to_string(width) + " bytes, and a key has 500",
           "lower the `max` of its texts, or leave a column out");
  return false;
}

void Checker::key(TableSyntax& t, Table& out) {
  if (t.keys.empty())
    return complain(t.name.span, "`" + t.name.text + "` has no key", "write `key " + out.columns[0].name + "`");
  if (t.keys.size() > 1)
    return complain(t.keys[1].at, "`" + t.name.text + "` has a key already",
                    "a key of several columns is `key (a, b)`");
  const KeySyntax& k = t.keys[0];
  if (k.parts.size() > kKeyColumnsMax)
    return complain(k.parts[kKeyColumnsMax].column.span, "a key has at most 4 columns",
                    "the others are columns like any");
  for (const PartSyntax& p : k.parts) {
    const auto column = find_column(out, p.column);
    if (!column) return;
    if (std::find(out.key.begin(), out.key.end(), *column) != out.key.end())
      return complain(p.column.span, "`" + p.column.text + "` is in the key already", "leave it out");
    if (out.columns[*column].slot.optional)
      return complain(p.column.span, "a key always has a value, and `" + p.column.text + "` may have none",
                      "leave out its `?`");
    if (!fits_key(out, *column, p.column.span, "a key")) return;
    out.key.push_back(*column);
  }
  fits_width(order_bytes(out, 0), k.at, "this key");
}

void Checker::sizes(TableSyntax& t, Table& out) {
  for (SizeSyntax& s : t.sizes)
    if (!failed_) size(t, s, out);
}

void Checker::size(TableSyntax& t, SizeSyntax& s, Table& out) {
  const bool group = !s.per.empty();
  if ((group ? out.group_size : out.size) != Size::none)
    return complain(s.at, group ? "there is a size of a group already" : "there is a size of the table already",
                    "keep one of them");
  const auto rows = known_whole(s.rows, 1, UINT32_MAX, s.size == Size::max ? "`max`" : "`keep`");
  if (!rows) return;
  (group ? out.group_size : out.size) = s.size;
  (group ? out.group_rows : out.rows) = *rows;
  for (std::size_t i = 0; i < s.per.size(); ++i) {
    const auto column = find_column(out, s.per[i]);
    if (!column) return;
    if (i < out.key.size() && out.key[i] == *column) continue;
    // A key with the group's columns in front would do.
    std::string key;
    for (const Name& n : s.per) key += (key.empty() ? "" : ", ") + n.text;
    for (const std::uint8_t k : out.key)
      if (std::none_of(s.per.begin(), s.per.end(), [&](const Name& n) { return n.text == out.columns[k].name; }))
        key += ", " + out.columns[k].name;
    return complain(s.per[i].span, "`per` takes the first columns of the key, and `" + s.per[i].text +
                                       "` is not one of them",
                    "write `key (" + key + ")`");
  }
  if (s.per.size() == out.key.size() && group)
    return complain(s.per[0].span, "`per` takes a part of the key, and this is all of it",
                    "there is one row of each `" + t.name.text + "[...]` anyway");
  if (group) out.per = static_cast<std::uint8_t>(s.per.size());
}

void Checker::index(IndexSyntax& i, Table& out) {
  const std::string what = i.unique ? "a unique index" : "an index";
  if (has_name(out.indexes, i.name.text))
    return complain(i.name.span, "`" + out.name + "` has an index `" + i.name.text + "` already",
                    "choose another name");
  if (i.parts.size() > kOrderColumnsMax)
    return complain(i.parts[kOrderColumnsMax].column.span, "an index has at most 8 columns",
                    "the key is part of it anyway");
  if (i.unique && i.ranked_at.length != 0)
    return complain(i.ranked_at, "a unique index is not ranked",
                    "declare another one for ranks: `index by_" + i.name.text + " ... ranked`");
  Index index;
  index.name = i.name.text;
  index.unique = i.unique;
  index.ranked = i.ranked_at.length != 0;
  std::vector<std::uint8_t> columns;
  for (const PartSyntax& p : i.parts) {
    const auto column = find_column(out, p.column);
    if (!column) return;
    if (std::find(columns.begin(), columns.end(), *column) != columns.end())
      return complain(p.column.span, "`" + p.column.text + "` is in the index already", "leave it out");
    if (!fits_key(out, *column, p.column.span, what)) return;
    columns.push_back(*column);
    index.parts.push_back({*column, p.desc_at.length != 0});
  }
  out.indexes.push_back(std::move(index));
  // Equal entries are told apart by the key of their rows.
  fits_width(order_bytes(out, static_cast<unsigned>(out.indexes.size())), i.name.span,
             i.unique ? "this index" : "this index, with the key,");
}

void Checker::total(TotalSyntax& t, Table& out) {
  if (has_name(out.totals, t.name.text))
    return complain(t.name.span, "`" + out.name + "` has a total `" + t.name.text + "` already",
                    "choose another name");
  Total total;
  total.name = t.name.text;
  if (t.sum) {
    const auto column = find_column(out, *t.sum);
    if (!column) return;
    const Base base = out.columns[*column].slot.base;
    if (!is_number(base))
      return complain(t.sum->span, "a total sums numbers, and `" + t.sum->text + "` is a " +
                                       std::string(base_word(base)),
                      "write `count` to count rows");
    total.sum = true;
    total.column = *column;
  }
  if (t.by.size() > kOrderColumnsMax)
    return complain(t.by[kOrderColumnsMax].column.span, "a total is kept by at most 8 columns");
  for (const PartSyntax& p : t.by) {
    const auto column = find_column(out, p.column);
    if (!column) return;
    if (std::find(total.by.begin(), total.by.end(), *column) != total.by.end())
      return complain(p.column.span, "`" + p.column.text + "` is in the group already", "leave it out");
    if (out.columns[*column].slot.optional)
      return complain(p.column.span, "a group always has a value, and `" + p.column.text + "` may have none",
                      "leave out its `?`");
    if (!fits_key(out, *column, p.column.span, "a group")) return;
    total.by.push_back(*column);
  }
  if (!fits_width(total_bytes(out, total), t.name.span, "the group of this total")) return;
  out.totals.push_back(std::move(total));
}

// What the table and its columns were called, and what is gone.
void Checker::table_names(TableSyntax& t, Table& out) {
  if (t.was) out.was = t.was->text;
  for (const Name& gone : t.drops) out.drops.push_back(gone.text);
  renamed(t.columns, t.drops, "column");
}

}  // namespace sluice::vm
