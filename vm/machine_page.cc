// Pages of table views: which rows, how many there are in all, and their cells.
#include <algorithm>

#include "vm/base/check.h"
#include "vm/base/json.h"
#include "vm/base/number_text.h"
#include "vm/machine_impl.h"

namespace sluice::vm {
namespace {
constexpr std::size_t kPageBytes = 1024 * 1024;   // of a page's text; the row that passes it is the last
constexpr std::uint64_t kFar = kPageMax;          // rows that are stepped over rather than looked up

KeyRange copy(const KeyRange& range, KeyBuffer& low, KeyBuffer& high) {
  low.size = high.size = 0;
  SLUICE_CHECK(low.append(range.low) && high.append(range.high));
  return {low.view(), high.view(), range.backward};
}

void append_cell(std::string& out, const Value& value) {
  switch (value.type) {
    case Type::num: append_number(out, value.num); break;
    case Type::boolean: out.append(value.boolean ? "true" : "false"); break;
    default: append_json_string(out, value.text()); break;
  }
}
}  // namespace

struct Machine::Impl::Page {
  const View& view;
  std::uint64_t from, count;
  std::uint64_t rows = 0;           // in all
  std::uint64_t used = 0;           // fuel
  const Scan* scan = nullptr;
  KeyRange range{};
  KeyBuffer low{}, high{}, key{};   // of the range; of the row at hand

  bool is_bounded() const { return scan->low != Bound::none || scan->high != Bound::none; }
  bool has(std::uint64_t position) const { return position >= from && position - from < count; }
};

Outcome Machine::page(const Module& module, const View& view, const Event& event, Host& host, std::uint64_t from,
                      std::uint64_t count) {
  SLUICE_CHECK(module.facts.size() == module.functions.size());
  SLUICE_CHECK(event.fields.size() >= view.parameters.size());
  Impl& run = *impl_;
  run.begin(module, event, host);
  Impl::Page page{view, from, std::min<std::uint64_t>(count, kPageMax)};
  Fault fault = run.page_rows(page);
  if (fault == Fault::none) fault = run.render(page);
  Outcome& outcome = run.outcome;
  if (outcome.elsewhere) {
    outcome = Outcome();
    outcome.fault = Fault::limit;
    outcome.elsewhere = true;
    return outcome;
  }
  outcome.fuel_used = page.used;
  if (fault != Fault::none) {
    outcome.fault = fault;
    return outcome;
  }
  run.out.swap(run.page_text);
  outcome = Outcome();
  outcome.fuel_used = page.used;
  outcome.reply = {ReplyKind::owned, ContentType::json, 0, run.out};
  return outcome;
}

// Says which rows: how many in all, and the entries of those that are asked for.
Fault Machine::Impl::page_rows(Page& page) {
  begin_run(page.view.function);
  std::copy_n(event->fields.begin(), page.view.parameters.size(), registers);
  paged = true;
  run(page.view.function, event->fuel);
  paged = false;
  page.used = outcome.fuel_used;
  if (outcome.fault != Fault::none) return outcome.fault;
  page.scan = page_scan;
  page.range = copy(page_range, page.low, page.high);
  page_entries.clear();
  if (page.view.where) return filter_rows(page);
  if (const Fault fault = count_rows(page); fault != Fault::none) return fault;
  return find_rows(page);
}

// Makes the row of an entry the one at hand, and gives what its register holds.
Value Machine::Impl::enter_row(Page& page, const Entry& entry) {
  rows.clear();
  const std::uint32_t table = page.scan->table;
  std::string_view key = entry.key;
  if (page.scan->order != 0) {
    arena.reset();
    page.key.size = 0;
    page.key.append(tables->row_of(*use, *page.scan, entry));
    key = page.key.view();
    load(table, key);
  } else {
    RowCache::One& one = rows.place(table, key);
    if (tables->decode(table, entry.value, one.row)) rows.keep(one);
  }
  return Value::span(key, Type::row);
}

// Runs a function of the view on a row.
void Machine::Impl::run_on_row(Page& page, std::uint32_t function, const Value& row, std::uint64_t position,
                               std::uint64_t budget) {
  begin_run(function);
  rows.clear_but(row.data);
  const std::size_t parameters = page.view.parameters.size();
  std::copy_n(event->fields.begin(), parameters, registers);
  registers[parameters] = row;
  registers[parameters + 1] = Value::number(static_cast<double>(position));
  run(function, budget);
  page.used += outcome.fuel_used;
}

// With a condition: it is asked for every row that the limit allows, on the fuel of the one event that this is.
Fault Machine::Impl::filter_rows(Page& page) {
  Steps steps;
  steps.start(page.range);
  for (std::uint32_t left = page.scan->limit; left != 0; --left) {
    const Entry* const entry = steps.next(use->records, left);
    if (entry == nullptr) break;
    page.used += flat_fuel(Op::next);
    if (page.used > event->fuel) return Fault::limit;
    run_on_row(page, *page.view.where, enter_row(page, *entry), 0, event->fuel - page.used);
    if (outcome.fault != Fault::none) return outcome.fault;
    if (!result.boolean) continue;
    if (page.has(page.rows)) page_entries.push_back(*entry);
    ++page.rows;
  }
  return Fault::none;
}

Fault Machine::Impl::count_rows(Page& page) {
  const Scan& scan = *page.scan;
  const Table& table = module->tables[scan.table];
  const auto at_most = [&scan](std::uint64_t there) {
    return scan.limit == 0 ? there : std::min<std::uint64_t>(there, scan.limit);
  };
  bool sparse = false;
  for (std::size_t i = 0; i < order_size(table, scan.order); ++i)
    sparse = sparse || table.columns[order_part(table, scan.order, i).column].slot.optional;
  if (!page.is_bounded() && scan.prefix == 0 && !sparse) {
    page.rows = at_most(tables->rows(*use, scan.table));
    return Fault::none;
  }
  if (!page.is_bounded() && scan.order == 0 && scan.prefix == table.per) {
    std::uint64_t there = 0;
    // The window of the OPEN is still in its registers: only its RET has run since.
    const Fault fault = tables->group_rows(*use, scan.table, page_window, there);
    page.rows = at_most(there);
    return fault;
  }
  if (scan.limit != 0) {
    Steps steps;
    steps.start(page.range);
    while (page.rows < scan.limit && steps.next(use->records, scan.limit - page.rows) != nullptr) ++page.rows;
    page.used += page.rows;
    return Fault::none;
  }
  if (use->orders == nullptr) {
    outcome.elsewhere = true;
    return Fault::limit;
  }
  const std::string_view prefix = tables->order_prefix(scan.table, scan.order);
  const std::uint64_t before = use->orders->rank(prefix, page.range.low, use->records);
  const std::uint64_t end = use->orders->rank(prefix, page.range.high, use->records);
  page.rows = end > before ? end - before : 0;
  return Fault::none;
}

Fault Machine::Impl::find_rows(Page& page) {
  const Scan& scan = *page.scan;
  page.from = std::min(page.from, page.rows);
  page.count = std::min(page.count, page.rows - page.from);
  if (page.count == 0) return Fault::none;
  std::uint64_t skip = page.from;
  // With a limit there are never many to step over.
  if (skip > kFar && scan.limit == 0) {
    if (use->orders == nullptr) {
      outcome.elsewhere = true;
      return Fault::limit;
    }
    const std::string_view prefix = tables->order_prefix(scan.table, scan.order);
    const std::string_view start = page.range.backward ? page.range.high : page.range.low;
    const std::uint64_t before = use->orders->rank(prefix, start, use->records);
    const std::uint64_t position = page.range.backward ? before - 1 - skip : before + skip;
    Entry first;
    if (!use->orders->at(prefix, position, use->records, first)) return Fault::none;
    KeyBuffer& edge = page.range.backward ? page.high : page.low;
    edge.size = 0;
    SLUICE_CHECK(edge.append(first.key));
    if (page.range.backward) SLUICE_CHECK(edge.append(std::string_view("\0", 1)));
    (page.range.backward ? page.range.high : page.range.low) = edge.view();
    skip = 0;
  }
  Steps steps;
  steps.start(page.range);
  for (std::uint64_t wanted = skip + page.count; wanted != 0; --wanted) {
    const Entry* const entry = steps.next(use->records, static_cast<std::size_t>(wanted));
    if (entry == nullptr) break;
    if (wanted <= page.count) page_entries.push_back(*entry);
  }
  return Fault::none;
}

Fault Machine::Impl::render(Page& page) {
  page.from = std::min(page.from, page.rows);
  if (page_text.capacity() > kKeptReply) std::string().swap(page_text);
  page_text.assign("{\"rows\":");
  append_number(page_text, static_cast<double>(page.rows));
  page_text.append(",\"from\":");
  append_number(page_text, static_cast<double>(page.from));
  page_text.append(",\"items\":[");
  const std::uint64_t rows_used = page.used;
  std::uint64_t position = page.from;
  for (const Entry& entry : page_entries) {
    if (position != page.from) page_text.push_back(',');
    page_text.push_back('{');
    const Value row = enter_row(page, entry);
    for (const ViewCell& cell : page.view.cells) {
      if (&cell != &page.view.cells.front()) page_text.push_back(',');
      append_json_string(page_text, cell.name);
      page_text.push_back(':');
      run_on_row(page, cell.function, row, position, event->fuel);
      if (outcome.elsewhere) return Fault::limit;
      if (outcome.fault == Fault::none) {
        append_cell(page_text, result);
      } else {
        page_text.append("null");
      }
    }
    page_text.push_back('}');
    ++position;
    if (page.used - rows_used >= event->fuel || page_text.size() > kPageBytes) break;
  }
  page_text.append("]}");
  return Fault::none;
}

}  // namespace sluice::vm
