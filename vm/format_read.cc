// Reads a module file, whose layout format_write.cc draws: container, sections, then the proof.
#include <array>

#include "vm/base/hash.h"
#include "vm/format.h"
#include "vm/verify.h"
#include "vm/wire.h"

namespace sluice::vm {
namespace {
using Sections = std::array<std::string_view, kSections + 1>;  // by number

constexpr std::string_view kNames[kSections + 1] = {"",       "module",      "constants", "states", "tables",
                                                    "documents", "inputs",   "scans and row shapes", "functions",
                                                    "code",   "handlers and views", "evolution", "lines"};

std::string section_name(std::uint32_t number) {
  return "section " + std::to_string(number) + " (" + std::string(kNames[number]) + ")";
}

// Finds the sections. Empty, or what is wrong.
std::string open_container(std::string_view file, Sections& sections, std::array<bool, kSections + 1>& there) {
  if (file.size() < kHeaderBytes || file.substr(0, 4) != kMagic) return "is not a module file";
  if (file.size() >= kFileMax) return "is too large: a file has less than 131072 bytes";
  Reader head(file.substr(4, kHeaderBytes - 4));
  const std::uint16_t format = head.u16();
  if (format != kFormat) return "has format " + std::to_string(format) + ", and this version reads format 1";
  if (head.u16() != 0) return "has flags that this version does not know";
  if (head.u32() != file.size()) return "is not as long as it says";
  const std::uint32_t count = head.u32();
  if (head.u32() != crc32c(file.substr(kHeaderBytes))) return "is damaged: its checksum does not match";
  for (const char c : file.substr(20, 12))
    if (c != 0) return "has a header that this version does not know";
  if (count > kSections) return "has more sections than there are";

  const std::uint64_t start = kHeaderBytes + std::uint64_t{kEntryBytes} * count;
  if (start > file.size()) return "ends within its list of sections";
  Reader list(file.substr(kHeaderBytes, kEntryBytes * count));
  std::uint64_t offset = start;
  std::uint32_t before = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t number = list.u32();
    const std::uint32_t at = list.u32();
    const std::uint32_t size = list.u32();
    if (number == 0 || number > kSections) return "has a section " + std::to_string(number) + ", which there is not";
    if (number <= before) return "has sections out of order";
    if (at != offset || size > file.size() - offset) return section_name(number) + " is not where the one before it ends";
    sections[number] = file.substr(at, size);
    there[number] = true;
    offset += size;
    before = number;
  }
  if (offset != file.size()) return "goes on behind its last section";
  for (std::uint32_t number = 1; number <= static_cast<std::uint32_t>(Section::handlers); ++number)
    if (!there[number]) return section_name(number) + " is missing";
  return {};
}

Slot read_slot_type(Reader& in) {
  Slot slot;
  const std::uint8_t base = in.u8();
  const std::uint8_t flags = in.u8();
  if (base > static_cast<std::uint8_t>(Base::bytes) || flags > 7 || (flags & 6) == 6) {
    in.bad();
    return slot;
  }
  slot.base = static_cast<Base>(base);
  slot.optional = (flags & 1) != 0;
  slot.range = (flags & 2) != 0 ? Range::in : (flags & 4) != 0 ? Range::clamp : Range::none;
  if (slot.range != Range::none) {
    slot.low = in.f64();
    slot.high = in.f64();
  }
  if (slot.base == Base::text || slot.base == Base::bytes) slot.max = in.number();
  if (slot.base == Base::slug) slot.max = kSlugMax;
  return slot;
}

// 0 or 1; anything else is not a file we write.
bool read_flag(Reader& in) {
  const std::uint8_t n = in.u8();
  if (n > 1) in.bad();
  return n == 1;
}

// A byte that numbers one of few things.
template <class Kind>
Kind read_kind(Reader& in, Kind last) {
  const std::uint8_t n = in.u8();
  if (n > static_cast<std::uint8_t>(last)) in.bad();
  return in.ok() ? static_cast<Kind>(n) : Kind{};
}

RegisterType read_type(Reader& in) {
  const Type type = read_kind(in, Type::cursor);
  return {type, type == Type::row || type == Type::cursor ? in.u8() : 0u};
}

std::optional<Value> read_first(Reader& in, const Slot& slot, Module& module) {
  if (!read_flag(in)) return std::nullopt;
  switch (type_of(slot.base)) {
    case Type::num: return Value::number(in.f64());
    case Type::boolean: return Value::truth(read_flag(in));
    default:
      module.text_pool.emplace_back(in.text());
      return Value::span(module.text_pool.back(), type_of(slot.base));
  }
}

void read_constants(Reader& in, Module& module) {
  for (std::uint32_t n = in.count(); in.ok() && n > 0; --n) module.numbers.push_back(in.f64());
  for (std::uint32_t n = in.count(); in.ok() && n > 0; --n) module.texts.emplace_back(in.text());
}

void read_states(Reader& in, Module& module) {
  for (std::uint32_t n = in.count(); in.ok() && n > 0; --n) {
    State state;
    state.name = in.text();
    state.slot = read_slot_type(in);
    state.first = read_first(in, state.slot, module);
    module.states.push_back(std::move(state));
  }
}

Size read_size(Reader& in, std::uint32_t& rows) {
  const Size size = read_kind(in, Size::keep);
  if (size != Size::none) rows = in.number();
  return size;
}

std::uint8_t read_byte(Reader& in) {
  const std::uint32_t n = in.number();
  if (n > 255) in.bad();
  return static_cast<std::uint8_t>(n);
}

std::vector<std::uint8_t> read_columns(Reader& in) {
  const std::string_view bytes = in.text();
  return {bytes.begin(), bytes.end()};
}

void read_columns_of(Reader& in, Module& module, Table& table) {
  for (std::uint32_t n = in.count(); in.ok() && n > 0; --n) {
    Column column;
    column.name = in.text();
    column.slot = read_slot_type(in);
    column.automatic = read_flag(in);
    column.first = read_first(in, column.slot, module);
    table.columns.push_back(std::move(column));
  }
}

void read_indexes(Reader& in, Table& table) {
  for (std::uint32_t n = in.count(); in.ok() && n > 0; --n) {
    Index index;
    index.name = in.text();
    const std::uint8_t flags = in.u8();
    if (flags > 3) in.bad();
    index.unique = (flags & 1) != 0;
    index.ranked = (flags & 2) != 0;
    for (std::uint32_t k = in.count(); in.ok() && k > 0; --k) {
      const std::uint8_t column = in.u8();
      index.parts.push_back({column, read_flag(in)});
    }
    table.indexes.push_back(std::move(index));
  }
}

void read_totals(Reader& in, Table& table) {
  for (std::uint32_t n = in.count(); in.ok() && n > 0; --n) {
    Total total;
    total.name = in.text();
    total.sum = read_flag(in);
    if (total.sum) total.column = in.u8();
    total.by = read_columns(in);
    table.totals.push_back(std::move(total));
  }
}

void read_tables(Reader& in, Module& module) {
  for (std::uint32_t n = in.count(); in.ok() && n > 0; --n) {
    Table table;
    table.name = in.text();
    table.size = read_size(in, table.rows);
    table.group_size = read_size(in, table.group_rows);
    if (table.group_size != Size::none) table.per = read_byte(in);
    read_columns_of(in, module, table);
    table.key = read_columns(in);
    read_indexes(in, table);
    read_totals(in, table);
    module.tables.push_back(std::move(table));
  }
}

void read_descriptors(Reader& in, Module& module) {
  for (std::uint32_t n = in.count(); in.ok() && n > 0; --n) {
    Scan scan;
    scan.table = in.u8();
    scan.order = in.u8();
    scan.prefix = in.u8();
    scan.low = read_kind(in, Bound::excluding);
    scan.high = read_kind(in, Bound::excluding);
    const std::uint8_t flags = in.u8();
    if (flags > 3) in.bad();
    scan.descending = (flags & 1) != 0;
    scan.streams = (flags & 2) != 0;
    scan.limit = in.number();
    module.scans.push_back(scan);
  }
  for (std::uint32_t n = in.count(); in.ok() && n > 0; --n) {
    RowShape shape;
    shape.table = in.u8();
    shape.writing = read_kind(in, Writing::update);
    shape.columns = read_columns(in);
    module.shapes.push_back(std::move(shape));
  }
}

void read_documents(Reader& in, Module& module) {
  module.documents.kind = read_kind(in, DocumentKind::json);
  if (module.documents.kind != DocumentKind::none) module.documents.max = in.number();
}

void read_inputs(Reader& in, Module& module) {
  for (std::uint32_t n = in.count(); in.ok() && n > 0; --n) {
    Input input;
    input.name = in.text();
    input.kind = read_kind(in, InputKind::timer);
    switch (input.kind) {
      case InputKind::text: input.max = in.number(); break;
      case InputKind::key: break;
      case InputKind::message:
        input.keyed = read_flag(in);
        for (std::uint32_t k = in.count(); in.ok() && k > 0; --k) {
          Field field;
          field.name = in.text();
          field.slot = read_slot_type(in);
          input.fields.push_back(std::move(field));
        }
        break;
      case InputKind::timer: input.every_ms = in.f64(); break;
    }
    module.inputs.push_back(std::move(input));
  }
}

void read_functions(Reader& in, Module& module) {
  for (std::uint32_t n = in.count(); in.ok() && n > 0; --n) {
    Function function;
    function.kind = read_kind(in, FunctionKind::view);
    function.result = read_type(in);
    const std::uint8_t flags = in.u8();
    if (flags > 3) in.bad();
    function.partial = (flags & 1) != 0;
    function.writes = (flags & 2) != 0;
    if (function.kind == FunctionKind::function) function.name = "fn " + std::string(in.text());
    const std::uint32_t parameters = in.number();
    for (std::uint32_t k = in.count(); in.ok() && k > 0; --k) function.registers.push_back(read_type(in));
    if (parameters > function.registers.size()) in.bad();
    if (in.ok()) function.parameters.assign(function.registers.begin(), function.registers.begin() + parameters);
    const std::uint32_t words = in.number();
    if (words > kFileMax / sizeof(Word)) in.bad();
    if (in.ok()) function.code.resize(words);
    module.functions.push_back(std::move(function));
  }
}

void read_code(Reader& in, Module& module) {
  for (Function& function : module.functions) {
    for (Word& w : function.code) {
      w = in.u32();
      if (!in.ok()) return;
    }
  }
}

void read_handlers(Reader& in, Module& module) {
  for (std::uint32_t n = in.count(); in.ok() && n > 0; --n) {
    Handler handler;
    handler.event = in.number();
    handler.function = in.number();
    module.handlers.push_back(handler);
  }
  for (std::uint32_t n = in.count(); in.ok() && n > 0; --n) {
    View view;
    view.name = in.text();
    view.type = read_kind(in, Type::cursor);
    for (std::uint32_t k = in.count(); in.ok() && k > 0; --k) {
      Parameter parameter;
      parameter.name = in.text();
      parameter.slot = read_slot_type(in);
      view.parameters.push_back(std::move(parameter));
    }
    view.function = in.number();
    if (view.type == Type::cursor) {
      const std::uint32_t where = in.number();
      if (where > 0) view.where = where - 1;
      for (std::uint32_t k = in.count(); in.ok() && k > 0; --k) {
        ViewCell cell;
        cell.name = in.text();
        cell.function = in.number();
        view.cells.push_back(std::move(cell));
      }
    }
    module.views.push_back(std::move(view));
  }
}

// An index into a list, greater than the one before it.
template <class List>
bool read_rising(Reader& in, std::int64_t& before, const List& list) {
  const std::uint32_t i = in.number();
  if (i <= before || i >= list.size()) in.bad();
  before = i;
  return in.ok();
}

// A name that says nothing is not written.
void read_name(Reader& in, std::string& name) {
  name = in.text();
  if (name.empty()) in.bad();
}

template <class List>
void read_was(Reader& in, List& list) {
  std::int64_t before = -1;
  for (std::uint32_t n = in.count(); in.ok() && n > 0; --n)
    if (read_rising(in, before, list)) read_name(in, list[static_cast<std::size_t>(before)].was);
}

void read_evolution(Reader& in, Module& module) {
  const std::size_t all = in.left();
  read_was(in, module.states);
  read_was(in, module.tables);
  std::int64_t before = -1;
  for (std::uint32_t n = in.count(); in.ok() && n > 0; --n) {
    const std::uint32_t t = in.number();
    const std::uint32_t c = in.number();
    const std::int64_t at = (std::int64_t{t} << 32) + c;
    if (at <= before || t >= module.tables.size() || c >= module.tables[t].columns.size()) in.bad();
    before = at;
    if (in.ok()) read_name(in, module.tables[t].columns[c].was);
  }
  for (auto* list : {&module.dropped_states, &module.dropped_tables})
    for (std::uint32_t n = in.count(); in.ok() && n > 0; --n) read_name(in, list->emplace_back());
  std::uint32_t last = 0;
  for (std::uint32_t n = in.count(); in.ok() && n > 0; --n) {
    const std::uint32_t t = in.number();
    if (t < last || t >= module.tables.size()) in.bad();
    last = t;
    if (in.ok()) read_name(in, module.tables[t].drops.emplace_back());
  }
  // Six empty lists would have been no section.
  if (all == 6) in.bad();
}

void read_lines(Reader& in, Module& module) {
  bool any = false;
  for (const Function& function : module.functions) {
    std::vector<std::uint32_t>& lines = module.lines.emplace_back();
    std::uint32_t line = 0;
    std::uint32_t runs = in.count();
    for (std::uint32_t i = 0; in.ok() && i < runs; ++i) {
      const std::uint32_t length = in.number();
      const std::int32_t step = unzigzag(in.number());
      // Runs that could be one run, or that say more words than there are, are not what we write.
      if (length == 0 || (i > 0 && step == 0) || length > function.code.size() - lines.size()) in.bad();
      line += static_cast<std::uint32_t>(step);
      if (line > 0x7fffffffu) in.bad();
      if (in.ok()) lines.insert(lines.end(), length, line);
    }
    if (!lines.empty() && lines.size() != function.code.size()) in.bad();
    any = any || !lines.empty();
    if (!in.ok()) return;
  }
  if (!any) in.bad();
}

std::string read_section(Section section, std::string_view bytes, Module& module) {
  Reader in(bytes);
  switch (section) {
    case Section::module:
      module.name = in.text();
      module.version = in.number();
      module.cost_model = in.number();
      break;
    case Section::constants: read_constants(in, module); break;
    case Section::states: read_states(in, module); break;
    case Section::tables: read_tables(in, module); break;
    case Section::documents: read_documents(in, module); break;
    case Section::inputs: read_inputs(in, module); break;
    case Section::descriptors: read_descriptors(in, module); break;
    case Section::functions: read_functions(in, module); break;
    case Section::code: read_code(in, module); break;
    case Section::handlers: read_handlers(in, module); break;
    case Section::evolution: read_evolution(in, module); break;
    case Section::lines: read_lines(in, module); break;
  }
  const auto number = static_cast<std::uint32_t>(section);
  if (!in.ok()) return section_name(number) + " is not well formed";
  if (!in.used_up()) return section_name(number) + " has bytes left over";
  return {};
}
}  // namespace

Result<std::unique_ptr<const Module>, std::string> load(std::string_view file) {
  Sections sections;
  std::array<bool, kSections + 1> there{};
  if (std::string why = open_container(file, sections, there); !why.empty()) return "module: " + why;

  auto module = std::make_unique<Module>();
  for (std::uint32_t number = 1; number <= kSections; ++number) {
    if (!there[number]) continue;
    if (std::string why = read_section(static_cast<Section>(number), sections[number], *module); !why.empty())
      return "module: " + why;
  }
  if (std::string why = why_not_declared(*module); !why.empty()) return why;
  name_functions(*module);
  if (std::string why = verify_code(*module); !why.empty()) return why;
  module->code_hash = xxh64(file);
  return std::unique_ptr<const Module>(std::move(module));
}

}  // namespace sluice::vm
