// Going over rows: the bytes between the bounds of a query, and the rows behind the entries found there.
#include <cmath>
#include <cstring>

#include "vm/tables.h"
#include "vm/tables_impl.h"

namespace sluice::vm {
namespace {
// A bound in the sense of the column's values, brought to one that a stored value can have.
struct Edge {
  Bound bound = Bound::none;
  Value value;
};
enum class Side : bool { low, high };

// Among whole numbers of 32 bits a bound between two of them is the nearer one inside. False: nothing is inside.
bool fit_number(Side side, Edge& edge) {
  const bool including = edge.bound == Bound::including;
  double n = edge.value.num;
  if (side == Side::low) {
    n = including ? std::ceil(n) : std::floor(n) + 1;
    if (n > 4294967295.0) return false;
    if (n < 0) n = 0;
  } else {
    n = including ? std::floor(n) : std::ceil(n) - 1;
    if (n < 0) return false;
    if (n > 4294967295.0) n = 4294967295.0;
  }
  edge = {Bound::including, Value::number(n)};
  return true;
}

// A text that no key can have, being too long or with a U+0000 inside, comes behind the part of it that one can, and
// before everything that comes behind that part.
void fit_text(const Slot& slot, Side side, Edge& edge) {
  const std::string_view text = edge.value.text();
  const std::string_view part = text.substr(0, std::min<std::size_t>(text.find('\0'), slot.max));
  if (part.size() == text.size()) return;
  edge = {side == Side::low ? Bound::excluding : Bound::including, Value::span(part)};
}

bool fit(const Slot& slot, Side side, Edge& edge) {
  switch (slot.base) {
    case Base::u32: return fit_number(side, edge);
    case Base::text: case Base::slug: fit_text(slot, side, edge); return true;
    default: return true;
  }
}
}  // namespace

Fault Tables::range(TableUse& use, const Scan& scan, const Value* window, KeyRange& out) const {
  const TableFacts& facts = impl_->tables[scan.table];
  const OrderFacts& order = facts.orders[scan.order];
  out = {};
  out.backward = scan.descending;

  KeyBuffer low;
  low.append(order.prefix);
  bool possible = true;
  for (std::size_t i = 0; i < scan.prefix; ++i) {
    const Slot& slot = facts.table->columns[order.parts[i].column].slot;
    if (!has_key_form(slot, window[i])) {
      possible = false;
      break;
    }
    const Fault fault = append_key(low, slot, order.parts[i].descending, window[i]);
    if (fault != Fault::none) return fault;
  }
  const Value* bound = window + scan.prefix;
  KeyBuffer high = low;
  bool has_end = next_key(high);
  if (possible && (scan.low != Bound::none || scan.high != Bound::none)) {
    const KeyPart part = order.parts[scan.prefix];
    const Slot& slot = facts.table->columns[part.column].slot;
    const KeyBuffer start = low;
    const auto apply = [&](Side side, Bound kind) {
      Edge edge{kind, *bound++};
      if (!fit(slot, side, edge)) {
        possible = false;
        return Fault::none;
      }
      // Where the bytes fall as the values rise, the low bound is the end.
      const bool is_end = (side == Side::high) != part.descending;
      KeyBuffer& key = is_end ? high : low;
      key = start;
      const Fault fault = append_key(key, slot, part.descending, edge.value);
      if (fault != Fault::none) return fault;
      // All keys with the bound's value begin with it: behind them, or before them.
      bool has_next = true;
      if (is_end == (edge.bound == Bound::including)) has_next = next_key(key);
      if (is_end) has_end = has_next;
      return Fault::none;
    };
    if (scan.low != Bound::none)
      if (const Fault fault = apply(Side::low, scan.low); fault != Fault::none) return fault;
    if (scan.high != Bound::none)
      if (const Fault fault = apply(Side::high, scan.high); fault != Fault::none) return fault;
  }

  const std::size_t high_size = has_end ? high.size : 0;
  char* const at = use.arena.take(low.size + high_size, use.reserved);
  if (at == nullptr) return Fault::limit;
  std::memcpy(at, low.bytes, low.size);
  if (high_size != 0) std::memcpy(at + low.size, high.bytes, high_size);
  out.low = {at, low.size};
  out.high = possible ? std::string_view(at + low.size, high_size) : out.low;
  return Fault::none;
}

std::string_view Tables::row_of(TableUse& use, const Scan& scan, const Entry& entry) const {
  const TableFacts& facts = impl_->tables[scan.table];
  const OrderFacts& order = facts.orders[scan.order];
  if (scan.order == 0) return entry.key;
  std::string_view row = entry.value;
  if (!order.unique) {
    row = entry.key.substr(std::min(order.prefix.size(), entry.key.size()));
    for (const KeyPart& part : order.parts) {
      const std::size_t size = key_part_size(facts.table->columns[part.column].slot.base, part.descending, row);
      if (size == std::string_view::npos) return {};
      row.remove_prefix(size);
    }
  }
  const std::string_view prefix = facts.orders[0].prefix;
  if (row.empty() || row.size() > KeyBuffer::kSize - prefix.size()) return {};
  char* const at = use.arena.take(prefix.size() + row.size(), use.reserved);
  if (at == nullptr) return {};
  std::memcpy(at, prefix.data(), prefix.size());
  std::memcpy(at + prefix.size(), row.data(), row.size());
  return {at, prefix.size() + row.size()};
}

}  // namespace sluice::vm
