// Little endian; n is a varint (LEB128, shortest), t a text: n bytes and the bytes.
//
//   u16 format 2 | u32 version | u64 shape hash | u64 code hash | t name | u8 documents kind, n max
//   n next state | n states: n number, t name, slot
//   n next table | n tables, each:
//     n number, t name | u8 size, n rows | u8 group size, n rows, n per | n next column, n next index, n next total
//     n columns: n number, t name, slot, u8 auto, value before
//     n key columns: n number
//     n indexes: n number, t name, u8 unique, n parts: n column, u8 descending
//     n totals: n number, t name, u8 sum, n column, n by: n column
//     n shapes: n columns: n number, u8 form | n present shape
//   n erases: t prefix, t parts
//   u8 upgrade: nothing, or t target (a catalog without this part), n table, t after
//
//   slot:   u8 base | u8 flags: 1 optional, 2 in, 4 clamp | with a range f64 low, f64 high | of text, slug, bytes: n max
//   value:  u8 type (0 none, 1 num, 2 text, 3 bool) | f64, t or u8
//
// Format 1, before there were tables: u16 1 | u32 version | u64 shape hash | u64 code hash | t name | t documents kind, n max |
// n states, numbered from 0: t name, t slot as it is written in a module.
#include "vm/catalog.h"

#include <algorithm>

#include "vm/base/hash.h"
#include "vm/base/number_text.h"
#include "vm/slot.h"
#include "vm/wire.h"

namespace sluice::vm {
namespace {

constexpr std::uint16_t kFirstFormat = 1, kCatalogFormat = 2;
constexpr std::string_view kDocumentKinds[] = {"", "text", "bytes", "json"};

bool sized(Base base) { return base == Base::text || base == Base::slug || base == Base::bytes; }

void put_slot(Writer& w, const Slot& slot) {
  w.u8(static_cast<std::uint8_t>(slot.base));
  w.u8(static_cast<std::uint8_t>((slot.optional ? 1 : 0) | (slot.range == Range::in ? 2 : slot.range == Range::clamp ? 4 : 0)));
  if (slot.range != Range::none) {
    w.f64(slot.low);
    w.f64(slot.high);
  }
  if (sized(slot.base)) w.number(slot.max);
}

Slot take_slot(Reader& in) {
  Slot slot;
  const std::uint8_t base = in.u8(), flags = in.u8();
  if (base > static_cast<std::uint8_t>(Base::bytes) || flags > 5 || flags == 6) return in.bad(), slot;
  slot.base = static_cast<Base>(base);
  slot.optional = (flags & 1) != 0;
  slot.range = (flags & 2) != 0 ? Range::in : (flags & 4) != 0 ? Range::clamp : Range::none;
  if (slot.range != Range::none) {
    slot.low = in.f64();
    slot.high = in.f64();
    if (!is_number(slot.low) || !is_number(slot.high) || slot.low > slot.high || sized(slot.base) || slot.base == Base::boolean)
      in.bad();
  }
  if (sized(slot.base)) slot.max = in.number();
  return slot;
}

void put_value(Writer& w, const KeptValue& value) {
  w.u8(static_cast<std::uint8_t>(value.type));
  if (value.type == Type::num) w.f64(value.num);
  if (value.type == Type::boolean) w.u8(value.boolean ? 1 : 0);
  if (value.type == Type::text) w.text(value.text);
}

KeptValue take_value(Reader& in) {
  KeptValue value;
  const std::uint8_t type = in.u8();
  if (type > static_cast<std::uint8_t>(Type::boolean)) return in.bad(), value;
  value.type = static_cast<Type>(type);
  if (value.type == Type::num && !is_number(value.num = in.f64())) in.bad();
  if (value.type == Type::boolean) {
    const std::uint8_t truth = in.u8();
    if (truth > 1) in.bad();
    value.boolean = truth == 1;
  }
  if (value.type == Type::text) value.text = in.text();
  return value;
}

// A number of the store's, below `next`.
std::uint16_t take_number(Reader& in, std::uint32_t next = 65'536) {
  const std::uint32_t n = in.number();
  return static_cast<std::uint16_t>(n < next ? n : in.bad());
}

bool take_flag(Reader& in) {
  const std::uint8_t flag = in.u8();
  if (flag > 1) in.bad();
  return flag == 1;
}

void put_columns(Writer& w, const std::vector<std::uint16_t>& columns) {
  w.count(columns.size());
  for (const std::uint16_t c : columns) w.number(c);
}

void put_table(Writer& w, const KeptTable& table) {
  w.number(table.number);
  w.text(table.name);
  w.u8(static_cast<std::uint8_t>(table.size));
  w.number(table.rows);
  w.u8(static_cast<std::uint8_t>(table.group_size));
  w.number(table.group_rows);
  w.number(table.per);
  w.number(table.next_column);
  w.number(table.next_index);
  w.number(table.next_total);
  w.count(table.columns.size());
  for (const KeptColumn& c : table.columns) {
    w.number(c.number);
    w.text(c.name);
    put_slot(w, c.slot);
    w.u8(c.automatic ? 1 : 0);
    put_value(w, c.before);
  }
  put_columns(w, table.key);
  w.count(table.indexes.size());
  for (const KeptIndex& index : table.indexes) {
    w.number(index.number);
    w.text(index.name);
    w.u8(index.unique ? 1 : 0);
    w.count(index.parts.size());
    for (const KeptIndex::Part& part : index.parts) {
      w.number(part.column);
      w.u8(part.descending ? 1 : 0);
    }
  }
  w.count(table.totals.size());
  for (const KeptTotal& total : table.totals) {
    w.number(total.number);
    w.text(total.name);
    w.u8(total.sum ? 1 : 0);
    w.number(total.column);
    put_columns(w, total.by);
  }
  w.count(table.shapes.size());
  for (const Shape& shape : table.shapes) {
    w.count(shape.columns.size());
    for (const Shape::At& at : shape.columns) {
      w.number(at.column);
      w.u8(static_cast<std::uint8_t>(at.form));
    }
  }
  w.number(table.shape);
}

Size take_size(Reader& in) {
  const std::uint8_t size = in.u8();
  return static_cast<Size>(size <= static_cast<std::uint8_t>(Size::keep) ? size : in.bad());
}

// The live columns' numbers, so that what names a column names one that is there.
class Columns {
 public:
  explicit Columns(const KeptTable& table) : table_(table) {}
  std::uint16_t take(Reader& in) const {
    const std::uint16_t number = take_number(in);
    if (table_.find_column(number) == nullptr) in.bad();
    return number;
  }
  std::vector<std::uint16_t> take_all(Reader& in, std::size_t most) const {
    std::vector<std::uint16_t> out;
    std::uint32_t n = in.count();
    if (n > most) n = in.bad();
    for (; in.ok() && n > 0; --n) out.push_back(take(in));
    return out;
  }

 private:
  const KeptTable& table_;
};

bool knows_all(const Shape& shape, const KeptTable& table) {
  if (shape.columns.size() != table.columns.size()) return false;
  return std::all_of(table.columns.begin(), table.columns.end(), [&](const KeptColumn& c) {
    const Shape::At wanted{c.number, form_of(c.slot.base)};
    return std::find(shape.columns.begin(), shape.columns.end(), wanted) != shape.columns.end();
  });
}

void take_shapes(Reader& in, KeptTable& table) {
  std::uint32_t shapes = in.count();
  if (shapes > kShapesInTable) shapes = in.bad();
  for (; in.ok() && shapes > 0; --shapes) {
    Shape& shape = table.shapes.emplace_back();
    std::uint32_t columns = in.count();
    if (columns > kColumnsMax) columns = in.bad();
    for (; in.ok() && columns > 0; --columns) {
      Shape::At at;
      at.column = take_number(in, table.next_column);
      const std::uint8_t form = in.u8();
      if (form > static_cast<std::uint8_t>(Form::text)) in.bad();
      at.form = static_cast<Form>(form);
      if (!shape.columns.empty() && shape.columns.back().column >= at.column) in.bad();
      shape.columns.push_back(at);
    }
  }
  table.shape = take_number(in, static_cast<std::uint32_t>(table.shapes.size()));
  if (in.ok() && !knows_all(table.shapes[table.shape], table)) in.bad();
}

KeptTable take_table(Reader& in, std::uint32_t next_table) {
  KeptTable table;
  table.number = take_number(in, next_table);
  table.name = in.text();
  table.size = take_size(in);
  table.rows = in.number();
  table.group_size = take_size(in);
  table.group_rows = in.number();
  table.per = static_cast<std::uint8_t>(take_number(in, kKeyColumnsMax + 1));
  table.next_column = take_number(in);
  table.next_index = take_number(in);
  table.next_total = take_number(in);
  std::uint32_t columns = in.count();
  if (columns == 0 || columns > kColumnsMax) columns = in.bad();
  for (; in.ok() && columns > 0; --columns) {
    KeptColumn c;
    c.number = take_number(in, table.next_column);
    if (table.find_column(c.number) != nullptr) in.bad();
    c.name = in.text();
    c.slot = take_slot(in);
    if (c.slot.base == Base::bytes) in.bad();
    c.automatic = take_flag(in);
    c.before = take_value(in);
    if (c.before.type != Type::none && c.before.type != type_of(c.slot.base)) in.bad();
    table.columns.push_back(std::move(c));
  }
  const Columns names(table);
  table.key = names.take_all(in, kKeyColumnsMax);
  if (table.key.empty() || table.per > table.key.size()) in.bad();
  std::uint32_t indexes = in.count();
  if (indexes > kIndexesMax) indexes = in.bad();
  for (; in.ok() && indexes > 0; --indexes) {
    KeptIndex index;
    index.number = take_number(in, table.next_index);
    index.name = in.text();
    index.unique = take_flag(in);
    std::uint32_t parts = in.count();
    if (parts == 0 || parts > kOrderColumnsMax) parts = in.bad();
    for (; in.ok() && parts > 0; --parts) {
      const std::uint16_t column = names.take(in);
      index.parts.push_back({column, take_flag(in)});
    }
    table.indexes.push_back(std::move(index));
  }
  std::uint32_t totals = in.count();
  if (totals > kTotalsMax) totals = in.bad();
  for (; in.ok() && totals > 0; --totals) {
    KeptTotal total;
    total.number = take_number(in, table.next_total);
    total.name = in.text();
    total.sum = take_flag(in);
    if (total.sum) total.column = names.take(in);
    else if (in.number() != 0) in.bad();
    total.by = names.take_all(in, kOrderColumnsMax);
    table.totals.push_back(std::move(total));
  }
  take_shapes(in, table);
  return table;
}

std::string encode_declared(const Catalog& catalog) {
  std::string out;
  Writer w(out);
  w.u8(static_cast<std::uint8_t>(catalog.documents.kind));
  w.number(catalog.documents.kind == DocumentKind::none ? 0 : catalog.documents.max);
  w.number(catalog.next_state);
  w.count(catalog.states.size());
  for (const KeptState& state : catalog.states) {
    w.number(state.number);
    w.text(state.name);
    put_slot(w, state.slot);
  }
  w.number(catalog.next_table);
  w.count(catalog.tables.size());
  for (const KeptTable& table : catalog.tables) put_table(w, table);
  return out;
}

void take_declared(Reader& in, Catalog& catalog) {
  const std::uint8_t kind = in.u8();
  if (kind > static_cast<std::uint8_t>(DocumentKind::json)) in.bad();
  catalog.documents.kind = static_cast<DocumentKind>(kind);
  catalog.documents.max = in.number();
  catalog.next_state = take_number(in);
  for (std::uint32_t n = in.count(); in.ok() && n > 0; --n) {
    KeptState state;
    state.number = take_number(in, catalog.next_state);
    state.name = in.text();
    state.slot = take_slot(in);
    catalog.states.push_back(std::move(state));
  }
  catalog.next_table = take_number(in);
  std::uint32_t tables = in.count();
  if (tables > kTablesMax) tables = in.bad();
  for (; in.ok() && tables > 0; --tables) catalog.tables.push_back(take_table(in, catalog.next_table));
}

// A slot as `describe` writes it: what format 1 kept.
std::optional<Slot> read_described(std::string_view text) {
  constexpr std::string_view bases[] = {"num", "int", "u32", "bool", "text", "slug", "bytes"};
  Slot slot;
  bool known = false;
  const auto taken = [&text](std::string_view word) {
    if (!text.starts_with(word)) return false;
    text.remove_prefix(word.size());
    return true;
  };
  for (std::size_t i = 0; i < std::size(bases) && !known; ++i)
    if ((known = taken(bases[i]))) slot.base = static_cast<Base>(i);
  if (!known) return std::nullopt;
  slot.optional = taken("?");
  if (taken(" in ")) slot.range = Range::in;
  else if (taken(" clamp ")) slot.range = Range::clamp;
  if (slot.range != Range::none) {
    const std::size_t dots = text.find("..");
    if (dots == std::string_view::npos) return std::nullopt;
    const auto low = read_number(text.substr(0, dots)), high = read_number(text.substr(dots + 2));
    if (!low || !high) return std::nullopt;
    slot.low = *low;
    slot.high = *high;
    text = {};
  }
  if (taken(" max ")) {
    const auto max = read_number(text);
    if (!max) return std::nullopt;
    slot.max = static_cast<std::uint32_t>(*max);
    text = {};
  }
  if (slot.base == Base::slug) slot.max = kSlugMax;
  if (!text.empty()) return std::nullopt;
  return slot;
}

void take_first_format(Reader& in, Catalog& catalog) {
  const std::string_view kind = in.text();
  const auto at = std::find(std::begin(kDocumentKinds), std::end(kDocumentKinds), kind);
  if (at == std::end(kDocumentKinds)) in.bad();
  else catalog.documents.kind = static_cast<DocumentKind>(at - std::begin(kDocumentKinds));
  catalog.documents.max = in.number();
  for (std::uint32_t n = in.count(); in.ok() && n > 0; --n) {
    KeptState state;
    state.number = catalog.next_state++;
    state.name = in.text();
    const std::optional<Slot> slot = read_described(in.text());
    if (!slot) in.bad();
    else state.slot = *slot;
    catalog.states.push_back(std::move(state));
  }
}

std::string_view name_of(const KeptTable& table, std::uint16_t column) { return table.find_column(column)->name; }

}  // namespace

KeptValue KeptValue::of(const std::optional<Value>& value) {
  KeptValue kept;
  if (!value) return kept;
  kept.type = value->type;
  if (kept.type == Type::num) kept.num = value->num;
  if (kept.type == Type::boolean) kept.boolean = value->boolean;
  if (kept.type == Type::text) kept.text = value->text();
  return kept;
}

const KeptColumn* KeptTable::find_column(std::uint16_t number_of_it) const {
  for (const KeptColumn& c : columns)
    if (c.number == number_of_it) return &c;
  return nullptr;
}

std::uint64_t Catalog::shape_hash() const {
  std::string out(kDocumentKinds[static_cast<int>(documents.kind)]);
  const auto word = [&out](std::string_view w) { (out += w) += ' '; };
  const auto number = [&out](std::uint64_t n) { (out += std::to_string(n)) += ' '; };
  number(documents.kind == DocumentKind::none ? 0 : documents.max);
  for (const KeptState& s : states) {
    word("\nstate");
    word(s.name);
    word(describe(s.slot));
  }
  for (const KeptTable& t : tables) {
    word("\ntable");
    word(t.name);
    for (const std::uint64_t n : {std::uint64_t{static_cast<std::uint8_t>(t.size)}, std::uint64_t{t.rows},
                                  std::uint64_t{static_cast<std::uint8_t>(t.group_size)}, std::uint64_t{t.group_rows}, std::uint64_t{t.per}})
      number(n);
    for (const KeptColumn& c : t.columns) {
      word(c.automatic ? "\nauto" : "\ncolumn");
      word(c.name);
      word(describe(c.slot));
    }
    word("\nkey");
    for (const std::uint16_t c : t.key) word(name_of(t, c));
    for (const KeptIndex& i : t.indexes) {
      word(i.unique ? "\nunique" : "\nindex");
      word(i.name);
      for (const KeptIndex::Part& part : i.parts) {
        word(name_of(t, part.column));
        if (part.descending) word("desc");
      }
    }
    for (const KeptTotal& total : t.totals) {
      word("\ntotal");
      word(total.name);
      word(total.sum ? name_of(t, total.column) : std::string_view("count"));
      for (const std::uint16_t c : total.by) word(name_of(t, c));
    }
  }
  return xxh64(out);
}

bool Catalog::keeps_as(const Catalog& other) const {
  return name == other.name && encode_declared(*this) == encode_declared(other);
}

std::string encode(const Catalog& catalog) {
  std::string out;
  Writer w(out);
  w.u16(kCatalogFormat);
  w.u32(catalog.version);
  w.u64(catalog.shape_hash());
  w.u64(catalog.code);
  w.text(catalog.name);
  out += encode_declared(catalog);
  w.count(catalog.erases.size());
  for (const Erase& erase : catalog.erases) {
    w.text(erase.prefix);
    w.text(erase.parts);
  }
  w.u8(catalog.upgrade ? 1 : 0);
  if (catalog.upgrade) {
    w.text(catalog.upgrade->target);
    w.number(catalog.upgrade->table);
    w.text(catalog.upgrade->after);
  }
  return out;
}

Result<Catalog, std::string> decode_catalog(std::string_view bytes) {
  Reader in(bytes);
  const std::uint16_t format = in.u16();
  if (in.ok() && format > kCatalogFormat)
    return "its catalog has format " + std::to_string(format) + ", and this version reads up to " +
           std::to_string(kCatalogFormat) + "; it was written by a later one";
  Catalog catalog;
  catalog.version = in.u32();
  in.u64();                                // the shape hash: for people and tools
  catalog.code = in.u64();
  catalog.name = in.text();
  if (format == kFirstFormat) {
    take_first_format(in, catalog);
  } else if (format == kCatalogFormat) {
    take_declared(in, catalog);
    for (std::uint32_t n = in.count(); in.ok() && n > 0; --n) {
      Erase erase;
      erase.prefix = in.text();
      erase.parts = in.text();
      // Never what is not some state's or table's own.
      if (erase.prefix.size() < 2 || std::string_view("\x02\x10\x11\x12\x13\x14").find(erase.prefix.front()) == std::string_view::npos) in.bad();
      catalog.erases.push_back(std::move(erase));
    }
    if (take_flag(in)) {
      Upgrade& upgrade = catalog.upgrade.emplace();
      upgrade.target = in.text();
      upgrade.table = in.number();
      upgrade.after = in.text();
    }
  } else {
    in.bad();
  }
  if (!in.used_up()) return std::string("its catalog is damaged");
  return catalog;
}

}  // namespace sluice::vm
