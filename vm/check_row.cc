// Statements that change rows, and loops over them.
#include <algorithm>

#include "vm/check_base.h"

namespace sluice::vm {

bool Checker::writes_table(Span at) {
  body_->writes_tables = true;
  return allow_write(at, {});
}

void Checker::row_loop(Stmt& s) {
  std::uint32_t table = 0;
  if (!find_table(s.query->table, table, "over numbers, write `for " + s.name.text + " in a..b limit 100 { ... }`"))
    return;
  if (!query(*s.query, Reading::rows) || !deeper(s.at)) return;
  const std::size_t scope = scope_.size();
  const auto row = new_local(s.name, {Type::row, s.query->table_index}, false);
  if (!row) return;
  s.local = *row;
  for_each_row(*s.query, [&] { block(s.body); });
  scope_.resize(scope);
}

// A value for a column; `none` where it may have none.
void Checker::column_value(Expr& e, const Table& t, std::uint8_t column) {
  const Column& c = t.columns[column];
  expr(e);
  if (failed_) return;
  if (e.never) {
    if (!c.slot.optional)
      complain(e.span, "`" + c.name + "` of `" + t.name + "` always has a value",
               "write `?` behind its type to let it have none");
    return;
  }
  wants(e, "`" + c.name + "` of `" + t.name + "` is", type_of(c.slot.base));
}

// `insert` and `put`, also with `let id =` before them.
void Checker::insert(Stmt& s) {
  if (!writes_table(s.at)) return;
  const Table* t = find_table(s.table, s.table_index, "rows go into tables");
  if (!t) return;
  const auto numbered =
      std::find_if(t->columns.begin(), t->columns.end(), [](const Column& c) { return c.automatic; });
  if (s.kind == StmtKind::put && numbered != t->columns.end())
    return complain(s.at, "`put` replaces a row, and the rows of `" + t->name + "` are numbered",
                    "write `insert " + t->name + " { ... }` for a new one, or `update " + t->name +
                        "[...] { ... }`");
  std::vector<bool> given(t->columns.size(), false);
  for (Cell& c : s.cells) {
    const auto column = find_column(*t, c.name);
    if (!column) return;
    if (t->columns[*column].automatic)
      return complain(c.name.span, "`" + c.name.text + "` is numbered by the table",
                      "leave it out; `let id = insert " + t->name + " { ... }` tells the number");
    if (given[*column])
      return complain(c.name.span, "there is already a `" + c.name.text + "` in this row", "keep one of them");
    given[*column] = true;
    column_value(*c.value, *t, *column);
    if (failed_) return;
  }
  std::vector<std::string> missing;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const Column& c = t->columns[i];
    if (!given[i] && !c.automatic && !c.first && !c.slot.optional) missing.push_back(c.name);
  }
  if (!missing.empty()) {
    std::string all = "`" + missing[0] + "`";
    for (std::size_t i = 1; i < missing.size(); ++i)
      all += (i + 1 == missing.size() ? " and `" : ", `") + missing[i] + "`";
    return complain(s.at, "a row of `" + t->name + "` needs " + all,
                    "add `" + missing[0] + ": ...`, or give the column a default or a `?`");
  }
  if (s.name.text.empty()) return;
  if (numbered == t->columns.end())
    return complain(s.name.span, "`" + t->name + "` numbers no rows, so `insert` gives nothing",
                    "declare a column `id: int auto`, or leave out `let " + s.name.text + " =`");
  if (const auto local = new_local(s.name, Type::num, s.changeable)) s.local = *local;
}

bool Checker::target_row(Expr& e, std::string_view what) {
  value(e);
  if (failed_) return false;
  if (e.type == Type::row) return true;
  complain(e.span, std::string(what) + " takes a row, and this is " + kind_of(e), "a row is `t[key]`, or a name for one");
  return false;
}

// Key columns tell rows apart, so they stay.
bool Checker::settable(const Table& t, std::uint8_t column, Span at) {
  const Column& c = t.columns[column];
  if (std::find(t.key.begin(), t.key.end(), column) != t.key.end())
    complain(at, "`" + c.name + "` is in the key of `" + t.name + "`, which never changes",
             "delete the row and insert another");
  else if (c.automatic)
    complain(at, "`" + c.name + "` is numbered by the table", "it stays as it is");
  return !failed_;
}

void Checker::update(Stmt& s) {
  if (!writes_table(s.at) || !target_row(*s.target, "`update`")) return;
  s.table_index = s.target->table;
  const Table& t = module_->tables[s.table_index];
  std::vector<bool> given(t.columns.size(), false);
  for (Cell& c : s.cells) {
    const auto column = find_column(t, c.name);
    if (!column || !settable(t, *column, c.name.span)) return;
    if (given[*column])
      return complain(c.name.span, "`" + c.name.text + "` is set already", "keep one of them");
    given[*column] = true;
    column_value(*c.value, t, *column);
    if (failed_) return;
  }
}

void Checker::delete_row(Stmt& s) {
  if (!writes_table(s.at) || !target_row(*s.target, "`delete`")) return;
  s.table_index = s.target->table;
}

// `r.column = e`, `t[key].column -= e`
void Checker::assign_column(Stmt& s) {
  Expr& t = *s.target;
  expr(t);
  if (failed_) return;
  if (t.meaning != Meaning::column)
    return complain(t.span, "`" + source_of(t.span) + "` cannot be set", "the server keeps it");
  const Table& table = module_->tables[t.table];
  const std::uint8_t column = static_cast<std::uint8_t>(t.index);
  if (!settable(table, column, t.at) || !writes_table(t.at)) return;
  expr(*s.value);
  if (failed_) return;
  if (s.value->never) return set_none(s, table.columns[column].slot.optional, t.text);
  assign_to(s, t.type, t.text);
}

}  // namespace sluice::vm
