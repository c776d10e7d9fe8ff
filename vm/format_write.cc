// Writes a module file. Little endian; one byte string per module.
//
//    0  "PMOD"
//    4  u16 1             format
//    6  u16 0             flags
//    8  u32               size of the file, < 131072
//   12  u32 n             sections
//   16  u32               CRC-32C of everything from byte 32
//   20  12 bytes 0
//   32  n x (u32 number, u32 offset, u32 size), rising by number; the sections follow in that order without gaps
//
// Below, `n` is LEB128 of at most 32 bits in its shortest form, `text` is n and as many bytes, `f64` 8 bytes, and
// `x*` is n and as many x. Sections 1 to 10 are always there, 11 and 12 when they would say something.
//
//    1 module       text name, n version, n cost model (1)
//    2 constants    f64*, text*
//    3 states       (text name, slot, first)*
//    4 tables       (text name, size, group size, n per unless the group size is 0,
//                    (text name, slot, u8 auto, first)* columns, u8* key,
//                    (text name, u8 flags (1 unique, 2 ranked), (u8 column, u8 descending)*)* indexes,
//                    (text name, u8 sum, u8 column of a sum, u8* by)* totals)*
//    5 documents    u8 kind (0 none, 1 text, 2 bytes, 3 json), n max unless none
//    6 inputs       (text name, u8 kind (0 text, 1 key, 2 message, 3 timer), then by kind
//                    text: n max; key: nothing; message: u8 keyed, (text name, slot)*; timer: f64 period in ms)*
//    7 descriptors  (u8 table, u8 order, u8 prefix, u8 low, u8 high (0 none, 1 including, 2 excluding),
//                    u8 flags (1 descending, 2 streams), n limit)* scans;
//                    (u8 table, u8 writing (0 insert, 1 put, 2 update), u8* columns)* row shapes
//    8 functions    (u8 kind (0 function, 1 handler, 2 view), type of the result, u8 flags (1 partial, 2 writes),
//                    text name if kind is 0, n parameters, type of each register*, n words of code)*
//    9 code         u32 for each word, function after function
//   10 handlers     (n event, n function)* rising by event;
//                   views (text name, u8 type, (text name, slot)*, n function, and of a table view (type 6)
//                    n 0 or 1 + function of `where`, (text name, n function)* cells)*
//   11 evolution    `was`: (n state, text)*, (n table, text)*, (n table, n column, text)*, each rising;
//                   `drop`: text* states, text* tables, (n table, text)* columns, rising by table
//   12 lines        for each function (n run, n line less the line before, zigzag)*: runs of words with one line,
//                   none for a function without lines
//
//   slot            u8 base, u8 flags (1 optional, 2 in, 4 clamp), f64 low and f64 high with a range, n max for text and
//                   bytes (a slug's is 64)
//   first           u8 whether there is one, then the value as of its slot: f64, u8 0 or 1, or text
//   size            u8 kind (0 none, 1 max, 2 keep), n rows unless none
//   type            u8, of a row or a cursor also u8 table
#include <limits>

#include "vm/base/hash.h"
#include "vm/format.h"
#include "vm/verify.h"
#include "vm/wire.h"

namespace sluice::vm {
namespace {

void write_slot(Writer& out, const Slot& slot) {
  out.u8(static_cast<std::uint8_t>(slot.base));
  unsigned flags = slot.optional ? 1 : 0;
  if (slot.range == Range::in) flags |= 2;
  if (slot.range == Range::clamp) flags |= 4;
  out.u8(static_cast<std::uint8_t>(flags));
  if (slot.range != Range::none) {
    out.f64(slot.low);
    out.f64(slot.high);
  }
  if (slot.base == Base::text || slot.base == Base::bytes) out.number(slot.max);
}

void write_first(Writer& out, const Slot& slot, const std::optional<Value>& first) {
  out.u8(first ? 1 : 0);
  if (!first) return;
  switch (type_of(slot.base)) {
    case Type::num: out.f64(first->num); break;
    case Type::boolean: out.u8(first->boolean ? 1 : 0); break;
    default: out.text(first->text()); break;
  }
}

void write_size(Writer& out, Size size, std::uint32_t rows) {
  out.u8(static_cast<std::uint8_t>(size));
  if (size != Size::none) out.number(rows);
}

void write_columns(Writer& out, const std::vector<std::uint8_t>& columns) {
  out.count(columns.size());
  for (const std::uint8_t column : columns) out.u8(column);
}

void write_table(Writer& out, const Table& table) {
  out.text(table.name);
  write_size(out, table.size, table.rows);
  write_size(out, table.group_size, table.group_rows);
  if (table.group_size != Size::none) out.number(table.per);
  out.count(table.columns.size());
  for (const Column& column : table.columns) {
    out.text(column.name);
    write_slot(out, column.slot);
    out.u8(column.automatic ? 1 : 0);
    write_first(out, column.slot, column.first);
  }
  write_columns(out, table.key);
  out.count(table.indexes.size());
  for (const Index& index : table.indexes) {
    out.text(index.name);
    out.u8(static_cast<std::uint8_t>((index.unique ? 1 : 0) | (index.ranked ? 2 : 0)));
    out.count(index.parts.size());
    for (const KeyPart& part : index.parts) {
      out.u8(part.column);
      out.u8(part.descending ? 1 : 0);
    }
  }
  out.count(table.totals.size());
  for (const Total& total : table.totals) {
    out.text(total.name);
    out.u8(total.sum ? 1 : 0);
    if (total.sum) out.u8(total.column);
    write_columns(out, total.by);
  }
}

void write_scan(Writer& out, const Scan& scan) {
  for (const std::uint8_t n : {scan.table, scan.order, scan.prefix, static_cast<std::uint8_t>(scan.low), static_cast<std::uint8_t>(scan.high)})
    out.u8(n);
  out.u8(static_cast<std::uint8_t>((scan.descending ? 1 : 0) | (scan.streams ? 2 : 0)));
  out.number(scan.limit);
}

void write_shape(Writer& out, const RowShape& shape) {
  out.u8(shape.table);
  out.u8(static_cast<std::uint8_t>(shape.writing));
  write_columns(out, shape.columns);
}

void write_type(Writer& out, RegisterType type) {
  out.u8(static_cast<std::uint8_t>(type.type));
  if (type.type == Type::row || type.type == Type::cursor) out.u8(type.table);
}

void write_input(Writer& out, const Input& input) {
  out.text(input.name);
  out.u8(static_cast<std::uint8_t>(input.kind));
  switch (input.kind) {
    case InputKind::text: out.number(input.max); break;
    case InputKind::key: break;
    case InputKind::message:
      out.u8(input.keyed ? 1 : 0);
      out.count(input.fields.size());
      for (const Field& field : input.fields) {
        out.text(field.name);
        write_slot(out, field.slot);
      }
      break;
    case InputKind::timer: out.f64(input.every_ms); break;
  }
}

// A function's name in the file is without the "fn " that errors and listings show.
std::string_view bare_name(const Function& function) {
  const std::string_view name = function.name;
  return name.starts_with("fn ") ? name.substr(3) : name;
}

void write_function(Writer& out, const Function& function) {
  out.u8(static_cast<std::uint8_t>(function.kind));
  write_type(out, function.result);
  out.u8(static_cast<std::uint8_t>((function.partial ? 1 : 0) | (function.writes ? 2 : 0)));
  if (function.kind == FunctionKind::function) out.text(bare_name(function));
  out.count(function.parameters.size());
  out.count(function.registers.size());
  for (const RegisterType& one : function.registers) write_type(out, one);
  out.count(function.code.size());
}

void write_views(Writer& out, const Module& module) {
  out.count(module.views.size());
  for (const View& view : module.views) {
    out.text(view.name);
    out.u8(static_cast<std::uint8_t>(view.type));
    out.count(view.parameters.size());
    for (const Parameter& parameter : view.parameters) {
      out.text(parameter.name);
      write_slot(out, parameter.slot);
    }
    out.number(view.function);
    if (view.type != Type::cursor) continue;
    out.number(view.where ? 1 + *view.where : 0);
    out.count(view.cells.size());
    for (const ViewCell& cell : view.cells) {
      out.text(cell.name);
      out.number(cell.function);
    }
  }
}

// Those of a list that were called otherwise.
template <class List>
void write_was(Writer& out, const List& list) {
  std::size_t n = 0;
  for (const auto& one : list) n += !one.was.empty();
  out.count(n);
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i].was.empty()) continue;
    out.count(i);
    out.text(list[i].was);
  }
}

void write_evolution(Writer& out, const Module& module) {
  write_was(out, module.states);
  write_was(out, module.tables);
  std::size_t renamed = 0, dropped = 0;
  for (const Table& table : module.tables) {
    for (const Column& column : table.columns) renamed += !column.was.empty();
    dropped += table.drops.size();
  }
  out.count(renamed);
  for (std::size_t t = 0; t < module.tables.size(); ++t) {
    const std::vector<Column>& columns = module.tables[t].columns;
    for (std::size_t c = 0; c < columns.size(); ++c) {
      if (columns[c].was.empty()) continue;
      out.count(t);
      out.count(c);
      out.text(columns[c].was);
    }
  }
  for (const auto* list : {&module.dropped_states, &module.dropped_tables}) {
    out.count(list->size());
    for (const std::string& name : *list) out.text(name);
  }
  out.count(dropped);
  for (std::size_t t = 0; t < module.tables.size(); ++t) {
    for (const std::string& name : module.tables[t].drops) {
      out.count(t);
      out.text(name);
    }
  }
}

bool has_evolution(const Module& module) {
  if (!module.dropped_states.empty() || !module.dropped_tables.empty()) return true;
  for (const State& state : module.states)
    if (!state.was.empty()) return true;
  for (const Table& table : module.tables) {
    if (!table.was.empty() || !table.drops.empty()) return true;
    for (const Column& column : table.columns)
      if (!column.was.empty()) return true;
  }
  return false;
}

void write_lines(Writer& out, const std::vector<std::uint32_t>& lines) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> runs;  // length, line
  for (const std::uint32_t line : lines) {
    if (runs.empty() || runs.back().second != line) runs.emplace_back(0, line);
    ++runs.back().first;
  }
  out.count(runs.size());
  std::uint32_t before = 0;
  for (const auto& [length, line] : runs) {
    out.number(length);
    out.number(zigzag(static_cast<std::int32_t>(line - before)));
    before = line;
  }
}

bool has_lines(const Module& module) {
  for (const auto& lines : module.lines)
    if (!lines.empty()) return true;
  return false;
}

// What verification takes for granted because a file cannot say otherwise, but a module made in memory can.
std::string why_not_written(const Module& module) {
  for (const Function& function : module.functions) {
    if (function.parameters.size() > function.registers.size())
      return "module: " + function.name + ": has more parameters than registers";
    for (std::size_t i = 0; i < function.parameters.size(); ++i)
      if (function.parameters[i] != function.registers[i])
        return "module: " + function.name + ": parameters are not its first registers";
  }
  for (const State& state : module.states)
    if (state.first && state.first->type != type_of(state.slot.base))
      return "module: state `" + state.name + "`: its first value is of another type";
  for (const Table& table : module.tables)
    for (const Column& column : table.columns)
      if (column.first && column.first->type != type_of(column.slot.base))
        return "module: table `" + table.name + "`: column `" + column.name + "`: its default is of another type";
  if (!module.lines.empty()) {
    if (module.lines.size() != module.functions.size()) return "module: lines are not one list per function";
    for (std::size_t i = 0; i < module.lines.size(); ++i) {
      if (!module.lines[i].empty() && module.lines[i].size() != module.functions[i].code.size())
        return "module: " + module.functions[i].name + ": lines are not one per word";
      for (const std::uint32_t line : module.lines[i])
        if (line > static_cast<std::uint32_t>(std::numeric_limits<std::int32_t>::max()))
          return "module: " + module.functions[i].name + ": a line number is too large";
    }
  }
  return {};
}

std::string write_section(const Module& module, Section section) {
  std::string bytes;
  Writer out(bytes);
  switch (section) {
    case Section::module:
      out.text(module.name);
      out.number(module.version);
      out.number(module.cost_model);
      break;
    case Section::constants:
      out.count(module.numbers.size());
      for (const double n : module.numbers) out.f64(n);
      out.count(module.texts.size());
      for (const std::string& text : module.texts) out.text(text);
      break;
    case Section::states:
      out.count(module.states.size());
      for (const State& state : module.states) {
        out.text(state.name);
        write_slot(out, state.slot);
        write_first(out, state.slot, state.first);
      }
      break;
    case Section::tables:
      out.count(module.tables.size());
      for (const Table& table : module.tables) write_table(out, table);
      break;
    case Section::documents:
      out.u8(static_cast<std::uint8_t>(module.documents.kind));
      if (module.documents.kind != DocumentKind::none) out.number(module.documents.max);
      break;
    case Section::inputs:
      out.count(module.inputs.size());
      for (const Input& input : module.inputs) write_input(out, input);
      break;
    case Section::descriptors:
      out.count(module.scans.size());
      for (const Scan& scan : module.scans) write_scan(out, scan);
      out.count(module.shapes.size());
      for (const RowShape& shape : module.shapes) write_shape(out, shape);
      break;
    case Section::functions:
      out.count(module.functions.size());
      for (const Function& function : module.functions) write_function(out, function);
      break;
    case Section::code:
      for (const Function& function : module.functions)
        for (const Word w : function.code) out.u32(w);
      break;
    case Section::handlers:
      out.count(module.handlers.size());
      for (const Handler& handler : module.handlers) {
        out.number(handler.event);
        out.number(handler.function);
      }
      write_views(out, module);
      break;
    case Section::evolution: write_evolution(out, module); break;
    case Section::lines:
      for (const auto& lines : module.lines) write_lines(out, lines);
      break;
  }
  return bytes;
}
}  // namespace

Result<std::string, std::string> encode(const Module& module) {
  using Written = Result<std::string, std::string>;
  if (std::string why = why_not_written(module); !why.empty()) return Written::failure(std::move(why));
  if (std::string why = why_not_declared(module); !why.empty()) return Written::failure(std::move(why));

  std::vector<std::pair<Section, std::string>> sections;
  for (std::uint32_t number = 1; number <= kSections; ++number) {
    const auto section = static_cast<Section>(number);
    if ((section == Section::evolution && !has_evolution(module)) || (section == Section::lines && !has_lines(module)))
      continue;
    sections.emplace_back(section, write_section(module, section));
  }

  std::string body;
  Writer out(body);
  std::size_t offset = kHeaderBytes + kEntryBytes * sections.size();
  for (const auto& [section, bytes] : sections) {
    out.u32(static_cast<std::uint32_t>(section));
    out.u32(static_cast<std::uint32_t>(offset));
    out.u32(static_cast<std::uint32_t>(bytes.size()));
    offset += bytes.size();
  }
  if (offset >= kFileMax) return Written::failure("module: is too large: a file has less than 131072 bytes");
  for (const auto& [section, bytes] : sections) body += bytes;

  std::string file(kMagic);
  Writer head(file);
  head.u16(kFormat);
  head.u16(0);
  head.u32(static_cast<std::uint32_t>(offset));
  head.u32(static_cast<std::uint32_t>(sections.size()));
  head.u32(crc32c(body));
  file.append(12, '\0');
  file += body;
  return file;
}

}  // namespace sluice::vm
