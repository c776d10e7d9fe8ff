// Queries: which rows, in which order, and how many at most.
#include "vm/check_query.h"

#include <algorithm>

#include "vm/check_base.h"
#include "vm/names.h"

namespace sluice::vm {
namespace {

constexpr std::string_view kLimit = "add `limit N` (at most 10000)";

// "user, sku"
std::string names_of(const Table& t, const std::vector<std::uint8_t>& columns, std::size_t n) {
  std::string out;
  for (std::size_t i = 0; i < n; ++i) out += (i == 0 ? "" : ", ") + t.columns[columns[i]].name;
  return out;
}

// Whether the query's group gives every one of these columns.
template <class List>
bool given(const Query& q, const std::vector<std::uint8_t>& order, const List& wanted, std::size_t n) {
  return std::all_of(wanted.begin(), wanted.begin() + static_cast<std::ptrdiff_t>(n), [&](std::uint8_t column) {
    const auto end = order.begin() + static_cast<std::ptrdiff_t>(q.group.size());
    return std::find(order.begin(), end, column) != end;
  });
}

// A key or a unique index that is given whole leads to one row.
bool single(const Query& q, const Table& t, const std::vector<std::uint8_t>& order) {
  if (given(q, order, t.key, t.key.size())) return true;
  return q.order > 0 && t.indexes[q.order - 1].unique && q.group.size() == order.size();
}

}  // namespace

Kept kept_count(const Query& q, const Table& t) {
  if (q.low || q.high || q.where) return Kept::no;
  if (q.order == 0 && t.per > 0 && q.group.size() == t.per) return Kept::group;
  if (!q.group.empty()) return Kept::no;
  // Rows without a value are left out of an index.
  if (q.order > 0)
    for (const KeyPart& p : t.indexes[q.order - 1].parts)
      if (t.columns[p.column].slot.optional) return Kept::no;
  return Kept::table;
}

std::vector<const Expr*> window_of(const Query& q) {
  std::vector<const Expr*> out;
  for (const ExprPtr& g : q.group) out.push_back(g.get());
  if (q.low) out.push_back(q.low.get());
  if (q.high) out.push_back(q.high.get());
  return out;
}

bool absent_bounds(const Query& q) {
  const std::vector<const Expr*> all = window_of(q);
  return std::any_of(all.begin(), all.end(), [](const Expr* e) { return e->absent; });
}

bool Checker::query(Query& q, Reading reading) {
  const Table* t = find_table(q.table, q.table_index, "only rows are gone over with `for`");
  if (!t) return false;
  std::vector<std::uint8_t> columns;
  if (!order(q, *t, columns)) return false;
  for (std::size_t i = 0; i < q.group.size() && !failed_; ++i) column_of(*q.group[i], *t, columns[i]);
  if (!failed_) bounds(q, *t, columns);
  if (!failed_) bounded(q, *t, columns, reading);
  return !failed_;
}

bool Checker::order(Query& q, const Table& t, std::vector<std::uint8_t>& columns) {
  std::string what = "the key of `" + t.name + "`";
  if (q.index) {
    const auto found = std::find_if(t.indexes.begin(), t.indexes.end(),
                                    [&](const Index& i) { return i.name == q.index->text; });
    if (found == t.indexes.end()) {
      std::vector<std::string> known;
      for (const Index& i : t.indexes) known.push_back(i.name);
      const std::string near = nearest(q.index->text, known);
      complain(q.index->span, "`" + t.name + "` has no index `" + q.index->text + "`",
               near.empty() ? "declare it in the table: `index " + q.index->text + " ...`"
                            : "did you mean `" + near + "`?");
      return false;
    }
    q.order = 1 + static_cast<std::uint32_t>(found - t.indexes.begin());
    what = "the index `" + found->name + "`";
    for (const KeyPart& p : found->parts) columns.push_back(p.column);
  } else {
    columns = t.key;
  }
  if (q.group.size() > columns.size()) {
    complain(q.group[columns.size()]->span,
             what + " has " + columns_in_words(columns.size()) + ", not " + std::to_string(q.group.size()),
             "it takes `[" + names_of(t, columns, columns.size()) + "]`; what else counts goes into `where`");
    return false;
  }
  return true;
}

void Checker::bounds(Query& q, const Table& t, const std::vector<std::uint8_t>& columns) {
  if (!q.low && !q.high) return;
  if (q.group.size() == columns.size())
    return complain(q.low ? q.low_at : q.high_at,
                    "no column is left for `" + source_of(q.low ? q.low_at : q.high_at) + "`",
                    "the brackets give all of `" + names_of(t, columns, columns.size()) + "`" +
                        "; leave the last one out");
  const std::uint8_t next = columns[q.group.size()];
  if (q.low) column_of(*q.low, t, next);
  if (q.high && !failed_) column_of(*q.high, t, next);
}

void Checker::bounded(Query& q, const Table& t, const std::vector<std::uint8_t>& columns, Reading reading) {
  std::uint32_t limit = 0;
  if (q.limit) {
    const auto rows = known_whole(q.limit, 1, kLoopMax, "a limit");
    if (!rows) return;
    limit = *rows;
  }
  std::uint32_t most = kLoopMax + 1;
  if (t.size != Size::none) most = std::min(most, t.rows);
  if (t.group_size != Size::none && given(q, columns, t.key, t.per)) most = std::min(most, t.group_rows);
  if (single(q, t, columns)) most = 1;
  if (limit > 0) most = std::min(most, limit);
  if (reading == Reading::first && !q.where) most = 1;
  const bool kept = kept_count(q, t) != Kept::no;
  if (reading == Reading::page && limit == 0) {
    // Pages over few rows count them where they are read, unless the table knows their number; over many, the owner
    // knows positions.
    q.rows = kept || most > kPageMax ? 0 : most;
    return;
  }
  if (reading == Reading::count && kept) {
    q.rows = limit;
    return;
  }
  if (most > kLoopMax) return unbounded(q, t, columns, reading);
  q.rows = most;
}

// Says so where the table is named, and how to bound what is read.
void Checker::unbounded(const Query& q, const Table& t, const std::vector<std::uint8_t>& columns,
                        Reading reading) {
  const std::string message = "this could read every row of `" + t.name + "`";
  const std::string limit(kLimit);
  if (reading == Reading::count && !q.where && !q.low && !q.high && !q.group.empty()) {
    std::string groups;
    for (const ExprPtr& g : q.group) groups += ", " + source_of(g->span);
    for (const Total& total : t.totals)
      if (!total.sum && total.by.size() == q.group.size() &&
          std::equal(total.by.begin(), total.by.end(), columns.begin()))
        return complain(q.table.span, message,
                        "the table keeps this count: write `total(" + t.name + "." + total.name + groups + ")`");
    const std::string by = names_of(t, columns, q.group.size());
    return complain(q.table.span, message,
                    "keep the count in the table, `total n count by " +
                        (q.group.size() == 1 ? by : "(" + by + ")") + "`, and write `total(" + t.name + ".n" +
                        groups + ")`");
  }
  if (t.group_size != Size::none && t.group_rows <= kLoopMax && !given(q, columns, t.key, t.per))
    return complain(q.table.span, message,
                    limit + ", or name the group: `" + t.name + "[" + names_of(t, t.key, t.per) + "]`");
  if (t.size != Size::none)
    return complain(q.table.span, message,
                    limit + "; the table may have " + std::to_string(t.rows) + " rows");
  complain(q.table.span, message, limit + ", or bound the table: `table " + t.name + " max 1000 {`");
}

bool Checker::deeper(Span at) {
  if (loops_ < kLoopsDeep) return true;
  complain(at, "loops go at most " + std::to_string(kLoopsDeep) + " deep",
           "move the inner one into a function");
  return false;
}

}  // namespace sluice::vm
