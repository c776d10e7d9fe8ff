#include "vm/audit.h"

#include <algorithm>
#include <utility>

#include "vm/audit_base.h"
#include "vm/base/check.h"
#include "vm/image.h"
#include "vm/plan_base.h"
#include "vm/slot.h"
#include "vm/varint.h"

namespace sluice::vm {

std::string hex(std::string_view bytes) {
  constexpr char digits[] = "0123456789abcdef";
  std::string out;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    (out += digits[byte >> 4]) += digits[byte & 15];
  }
  return out;
}

std::optional<std::uint64_t> read_count(std::string_view bytes) {
  std::uint64_t n = 0;
  char again[kVarintMax];
  const std::string_view given = bytes;
  if (!take_varint(bytes, n) || !bytes.empty() || n == 0 || std::string_view(again, put_varint(again, n)) != given)
    return std::nullopt;
  return n;
}

std::optional<ExactSum> read_sum(std::string_view bytes) {
  ExactSum sum;
  char again[ExactSum::kEncodedMax];
  if (!sum.decode(bytes) || sum.is_zero() || std::string_view(again, sum.encode(again)) != bytes) return std::nullopt;
  return sum;
}

namespace {

// The sum as an element of the fingerprint's field. Shape: as ExactSum encodes it.
std::uint64_t element(std::string_view sum) {
  std::uint64_t place = 0;
  if (sum.empty() || !take_varint(sum, place)) return 0;
  std::int64_t bit = 8 * unzigzag(place);
  std::uint64_t out = 0;
  for (const char c : sum) {
    out = (out + Fingerprint::times(static_cast<unsigned char>(c), Fingerprint::power_of_two(bit))) % Fingerprint::kPrime;
    bit += 8;
  }
  // Two's complement: the bytes that are not written are all ff.
  if ((sum.back() & 0x80) != 0) out = (out + Fingerprint::kPrime - Fingerprint::power_of_two(bit)) % Fingerprint::kPrime;
  return out;
}

bool stored_as(const Slot& slot, const Value& value) {
  if (value.type == Type::none) return slot.optional;
  Slot strict = slot;
  if (strict.range == Range::clamp) strict.range = Range::in;
  Value narrowed = value;
  return narrow(strict, narrowed) == Fault::none;
}

}  // namespace

TableAudit::TableAudit(const Tables& tables, std::uint32_t table, Records& records, Auditor& told)
    : tables_(tables), layout_(tables.layout().tables[table]), table_(tables.module().tables[table]), number_(table),
      codec_(table_, layout_), records_(records), told_(told), use_{records, arena_} {
  indexes_.resize(table_.indexes.size());
  totals_.resize(table_.totals.size());
  for (std::size_t c = 0; c < table_.columns.size(); ++c)
    if (table_.columns[c].automatic) automatic_ = c;
}

void TableAudit::run() {
  look_at_rows();
  for (std::uint32_t i = 0; i < indexes_.size(); ++i) {
    Fingerprint stored;
    RecordWalk walk(records_, tables_.order_prefix(number_, i + 1));
    while (const Entry* entry = walk.next()) {
      stored.add_entry(entry->key, entry->value);
      ++told_.result.derived;
    }
    if (!(stored == indexes_[i])) find_entries(i);
  }
  for (std::uint32_t i = 0; i < totals_.size(); ++i)
    compare_amounts({table_.name + " total " + table_.totals[i].name, record_prefix(0x12, layout_.number, layout_.totals[i]),
                     i, table_.totals[i].sum}, totals_[i]);
  if (table_.per != 0)
    compare_amounts({"the count of table " + table_.name, record_prefix(0x13, layout_.number), Tables::kGroup, false}, groups_);
  look_at_count();
}

void TableAudit::look_at_rows() {
  RecordWalk walk(records_, tables_.order_prefix(number_, 0));
  while (const Entry* entry = walk.next()) {
    ++rows_;
    ++told_.result.rows;
    Row row;
    if (!codec_.decode(entry->value, row.columns)) {
      told_.say("a row of the table " + table_.name + " is damaged, under the key " + hex(entry->key));
      continue;
    }
    bool usable = true;
    for (std::size_t c = 0; c < table_.columns.size(); ++c) {
      if (stored_as(table_.columns[c].slot, row.columns[c])) continue;
      told_.say(row_name(table_, row) + "." + table_.columns[c].name + " is " + written(row.columns[c]) + ", which does not fit " +
                describe(table_.columns[c].slot));
      usable = false;
    }
    if (!usable) continue;
    if (automatic_ && row.columns[*automatic_].num > last_) last_ = row.columns[*automatic_].num;
    if (!key_is_right(entry->key, row)) continue;
    const Fault fault = tables_.derive(use_, number_, entry->key, row, [this](const Tables::Derived& d) { add(d); });
    if (fault != Fault::none) told_.say(row_name(table_, row) + " has a value that cannot come into a key");
  }
}

bool TableAudit::key_is_right(std::string_view key, const Row& row) {
  Value parts[kKeyColumnsMax];
  for (std::size_t i = 0; i < table_.key.size(); ++i) parts[i] = row.columns[table_.key[i]];
  arena_.reset();
  std::string_view right;
  if (tables_.row_key(use_, number_, parts, right) == Fault::none && right == key) return true;
  told_.say(row_name(table_, row) + " lies under a key that is not its own, " + hex(key));
  return false;
}

void TableAudit::add(const Tables::Derived& d) {
  using Kind = Tables::Derived::Kind;
  switch (d.kind) {
    case Kind::entry: case Kind::unique: indexes_[d.part].add_entry(d.key, d.value); return;
    case Kind::count:
      if (d.part == Tables::kGroup) groups_.add(d.key, 1);
      else if (d.part != Tables::kTable) totals_[d.part].add(d.key, 1);
      return;
    case Kind::sum: totals_[d.part].add(d.key, element(d.value)); return;
  }
}

void TableAudit::compare_amounts(const Amounts& what, const Fingerprint& wanted) {
  Fingerprint stored;
  bool sound = true;
  RecordWalk walk(records_, what.prefix);
  while (const Entry* entry = walk.next()) {
    ++told_.result.derived;
    if (what.sum) {
      if (read_sum(entry->value)) stored.add(entry->key, element(entry->value));
      else sound = false;
      continue;
    }
    const auto count = read_count(entry->value);
    if (count) stored.add(entry->key, *count % Fingerprint::kPrime);
    else sound = false;
    if (count && what.part == Tables::kGroup && table_.group_size != Size::none && *count > table_.group_rows)
      told_.say("table " + table_.name + " has " + std::to_string(*count) + " rows in one group, and may have " +
                std::to_string(table_.group_rows));
  }
  if (!sound || !(stored == wanted)) find_amounts(what);
}

void TableAudit::look_at_count() {
  std::string_view bytes;
  std::uint64_t stored = 0, next = 1;
  if (records_.get(record_prefix(0x14, layout_.number), bytes)) {
    ++told_.result.derived;
    if (!take_varint(bytes, stored) || (automatic_ && !take_varint(bytes, next)))
      return told_.say("the number of rows of table " + table_.name + " is damaged");
  }
  if (stored != rows_)
    told_.say("table " + table_.name + " counts " + std::to_string(stored) + " rows, and has " + std::to_string(rows_));
  if (table_.size != Size::none && rows_ > table_.rows)
    told_.say("table " + table_.name + " has " + std::to_string(rows_) + " rows, and may have " + std::to_string(table_.rows));
  if (automatic_ && static_cast<double>(next) <= last_)
    told_.say("table " + table_.name + " would number its next row " + std::to_string(next) + ", and has row " +
              std::to_string(static_cast<std::uint64_t>(last_)));
}

void Auditor::say(std::string sentence) {
  if (result.differences.size() < limits.differences) result.differences.push_back(std::move(sentence));
  else result.more = true;
}

namespace {

void look_at_states(const Catalog& catalog, Records& records, Auditor& told) {
  for (const KeptState& state : catalog.states) {
    std::string_view bytes;
    Value value;
    if (records.get(state_key(state.number), bytes)) {
      const auto kept = decode_state(state.slot, bytes);
      if (!kept) {
        told.say("the state " + state.name + " is damaged");
        continue;
      }
      value = *kept;
    }
    if (!stored_as(state.slot, value))
      told.say("the state " + state.name + " is " + written(value) + ", which does not fit " + describe(state.slot));
  }
}

// Prefixes of all that the catalog accounts for; what is to be erased and what is being built included.
std::vector<std::string> known(const Catalog& catalog) {
  std::vector<std::string> out{std::string("\x00", 1), "\x01"};
  const auto add = [&out](const Catalog& c) {
    for (const KeptState& s : c.states) out.push_back(record_prefix(0x02, s.number));
    for (const KeptTable& t : c.tables) {
      for (const std::uint8_t kind : {0x10, 0x14}) out.push_back(record_prefix(kind, t.number));
      if (t.per != 0) out.push_back(record_prefix(0x13, t.number));
      for (const KeptIndex& i : t.indexes) out.push_back(record_prefix(0x11, t.number, i.number));
      for (const KeptTotal& total : t.totals) out.push_back(record_prefix(0x12, t.number, total.number));
    }
  };
  add(catalog);
  if (catalog.upgrade)
    if (const auto target = decode_catalog(catalog.upgrade->target)) add(*target);
  for (const Erase& erase : catalog.erases) out.push_back(erase.prefix);
  std::sort(out.begin(), out.end());
  return out;
}

void look_for_strays(const Catalog& catalog, Records& records, Auditor& told) {
  std::string low;
  const auto look = [&](std::string_view high) {
    Entry found[32];
    while (low < high || high.empty()) {
      const std::size_t n = records.scan({low, high, false}, found);
      for (std::size_t i = 0; i < n; ++i) told.say("a record belongs to nothing, under the key " + hex(found[i].key));
      if (n < std::size(found) || told.result.more) return;
      low = just_above(found[n - 1].key);
    }
  };
  for (const std::string& prefix : known(catalog)) {
    look(prefix);
    low = std::max(low, behind(prefix));
  }
  look({});
}

}  // namespace

Audit audit(const Catalog& catalog, Records& records, const AuditLimits& limits) {
  Auditor told{limits, {}};
  look_at_states(catalog, records, told);
  const auto module = module_of(catalog);
  const Tables tables(*module, layout_of(catalog));
  for (std::uint32_t t = 0; t < module->tables.size(); ++t) TableAudit(tables, t, records, told).run();
  look_for_strays(catalog, records, told);
  return std::move(told.result);
}

}  // namespace sluice::vm
