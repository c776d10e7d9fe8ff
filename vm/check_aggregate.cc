// What is computed over rows: sum, min, max, first, count, any, all, and rank.
#include <algorithm>

#include "vm/check_base.h"
#include "vm/names.h"

namespace sluice::vm {

void Checker::aggregate(Expr& e) {
  if (not_known(e.at, e.text)) return;
  Query& q = *e.query;
  const Reading reading = e.text == "count"   ? Reading::count
                          : e.text == "first" ? Reading::first
                                              : Reading::rows;
  if (!query(q, reading) || !deeper(e.at)) return;
  const std::size_t scope = scope_.size();
  const auto row = new_local(e.row, {Type::row, q.table_index}, false);
  if (!row) return;
  e.index = *row;
  for_each_row(q, [&] { aggregate_value(e); });
  scope_.resize(scope);
  e.absent |= absent_bounds(q) || (q.where && q.where->absent);
}

void Checker::aggregate_value(Expr& e) {
  if (e.text == "count") {
    e.type = Type::num;
    return;
  }
  Expr& v = *e.args[0];
  const std::string who = "`" + e.text + "` takes";
  if (e.text == "sum") {
    if (value_of(v, Type::num, who)) e.type = Type::num;
  } else if (e.text == "any" || e.text == "all") {
    if (value_of(v, Type::boolean, who)) e.type = Type::boolean;
  } else {
    value(v);
    if (failed_) return;
    const bool first = e.text == "first";
    if (v.type == Type::row)
      return complain(v.span, who + " a value, and this is " + kind_of(v),
                      "take a column of it: `" + source_of(v.span) + ".column`");
    if (!first && v.type == Type::boolean)
      return complain(v.span, who + " a num or a text, and this is a bool",
                      e.text == "max" ? "write `any(...)`" : "write `all(...)`");
    e.type = v.type;
    // Of no rows there is none.
    e.absent = true;
  }
  e.absent |= v.absent;
}

void Checker::count(Expr& e) {
  if (not_known(e.at, e.text)) return;
  Query& q = *e.query;
  if (q.where)
    return complain(q.where_at, "this `where` has no name for the row",
                    "write `count(r for r in " + q.table.text + " ... where ...)`");
  if (!query(q, Reading::count)) return;
  q.streams = true;
  e.type = Type::num;
  e.absent = absent_bounds(q);
}

void Checker::rank(Expr& e) {
  Expr& row = *e.args[0];
  value(row);
  if (failed_) return;
  if (row.type != Type::row)
    return complain(row.span, "`rank` takes a row, and this is " + kind_of(row),
                    "write `rank(t[key] by " + e.row.text + ")`");
  const Table& t = module_->tables[row.table];
  const auto found = std::find_if(t.indexes.begin(), t.indexes.end(),
                                  [&](const Index& i) { return i.name == e.row.text; });
  if (found == t.indexes.end()) {
    std::vector<std::string> known;
    for (const Index& i : t.indexes) known.push_back(i.name);
    const std::string near = nearest(e.row.text, known);
    return complain(e.row.span, "`" + t.name + "` has no index `" + e.row.text + "`",
                    near.empty() ? "declare it in the table: `index " + e.row.text + " ... ranked`"
                                 : "did you mean `" + near + "`?");
  }
  if (!found->ranked)
    return complain(e.row.span, "the index `" + e.row.text + "` is not ranked",
                    "declare it with `ranked` to make ranks fast");
  e.table = row.table;
  e.index = static_cast<std::uint32_t>(found - t.indexes.begin());
  e.type = Type::num;
  e.absent = std::any_of(found->parts.begin(), found->parts.end(),
                         [&](const KeyPart& p) { return t.columns[p.column].slot.optional; });
}

}  // namespace sluice::vm
