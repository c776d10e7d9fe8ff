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
// `x*` is n and as many x. Sections 1 to 10 are always there, 11 never in this version, 12 when there are lines.
//
//    1 module       text name, n version, n cost model (1)
//    2 constants    f64*, text*
//    3 states       (text name, slot, u8 has a first value, first value as of its slot: f64, u8 0 or 1, or text)*
//    4 tables       n 0: the place of tables
//    5 documents    u8 kind (0 none, 1 text, 2 bytes, 3 json), n max unless none
//    6 inputs       (text name, u8 kind (0 text, 1 key, 2 message, 3 timer), then by kind
//                    text: n max; key: nothing; message: u8 keyed, (text name, slot)*; timer: f64 period in ms)*
//    7 descriptors  n 0, n 0: the place of scans and row shapes
//    8 functions    (u8 kind (0 function, 1 handler, 2 view), u8 result type, u8 flags (1 partial, 2 writes),
//                    text name if kind is 0, n parameters, u8 type of each register*, n words of code)*
//    9 code         u32 for each word, function after function
//   10 handlers     (n event, n function)* rising by event; views (text name, u8 type, (text name, slot)*, n function)*
//   11 evolution    the place of `was` and `drop`
//   12 lines        for each function (n run, n line less the line before, zigzag)*: runs of words with one line,
//                   none for a function without lines
//
//   slot            u8 base, u8 flags (1 optional, 2 in, 4 clamp), f64 low and f64 high with a range, n max for text and
//                   bytes (a slug's is 64)
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

void write_state(Writer& out, const State& state) {
  out.text(state.name);
  write_slot(out, state.slot);
  out.u8(state.first ? 1 : 0);
  if (!state.first) return;
  switch (type_of(state.slot.base)) {
    case Type::num: out.f64(state.first->num); break;
    case Type::boolean: out.u8(state.first->boolean ? 1 : 0); break;
    default: out.text(state.first->text()); break;
  }
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
  out.u8(static_cast<std::uint8_t>(function.result.type));
  out.u8(static_cast<std::uint8_t>((function.partial ? 1 : 0) | (function.writes ? 2 : 0)));
  if (function.kind == FunctionKind::function) out.text(bare_name(function));
  out.count(function.parameters.size());
  out.count(function.registers.size());
  for (const RegisterType& one : function.registers) out.u8(static_cast<std::uint8_t>(one.type));
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
  }
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
      for (const State& state : module.states) write_state(out, state);
      break;
    case Section::tables: out.number(0); break;
    case Section::documents:
      out.u8(static_cast<std::uint8_t>(module.documents.kind));
      if (module.documents.kind != DocumentKind::none) out.number(module.documents.max);
      break;
    case Section::inputs:
      out.count(module.inputs.size());
      for (const Input& input : module.inputs) write_input(out, input);
      break;
    case Section::descriptors:
      out.number(0);
      out.number(0);
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
    case Section::evolution: break;
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
    if (section == Section::evolution || (section == Section::lines && !has_lines(module))) continue;
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
