// Makes small modules word by word, for tests of the file, the verifier and the machine.
#pragma once
#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "t/vm/memory_host.h"
#include "vm/format.h"
#include "vm/module.h"
#include "vm/opcode.h"

namespace sluice::vm {

inline Slot slot(Base base, std::uint32_t max = 0) {
  Slot s;
  s.base = base;
  s.max = base == Base::slug ? kSlugMax : max;
  return s;
}
inline Slot ranged(Base base, Range range, double low, double high) {
  Slot s = slot(base);
  s.range = range;
  s.low = low;
  s.high = high;
  return s;
}
inline Slot maybe(Slot s) {
  s.optional = true;
  return s;
}

class Assembler {
 public:
  Assembler() { module.name = "sample"; }

  // "NTBYR0C1": one letter for each register; of a row or a cursor also the table.
  static std::vector<RegisterType> types(std::string_view letters) {
    std::vector<RegisterType> out;
    for (std::size_t i = 0; i < letters.size(); ++i) {
      switch (letters[i]) {
        case 'N': out.push_back(Type::num); break;
        case 'T': out.push_back(Type::text); break;
        case 'B': out.push_back(Type::boolean); break;
        case 'Y': out.push_back(Type::bytes); break;
        default: {
          const Type type = letters[i] == 'R' ? Type::row : Type::cursor;
          out.push_back({type, static_cast<unsigned>(letters.at(++i) - '0')});
        }
      }
    }
    return out;
  }
  unsigned text(std::string_view s) {
    module.texts.emplace_back(s);
    return static_cast<unsigned>(module.texts.size() - 1);
  }
  unsigned number(double n) {
    module.numbers.push_back(n);
    return static_cast<unsigned>(module.numbers.size() - 1);
  }
  unsigned state(std::string name, Slot s, std::optional<Value> first = std::nullopt) {
    if (first && first->type == Type::text) {
      module.text_pool.emplace_back(first->text());
      first = Value::span(module.text_pool.back());
    }
    module.states.push_back({std::move(name), s, first});
    return static_cast<unsigned>(module.states.size() - 1);
  }
  unsigned table(std::string name, std::vector<Column> columns, std::vector<std::uint8_t> key) {
    for (Column& column : columns) {
      if (!column.first || column.first->type != Type::text) continue;
      module.text_pool.emplace_back(column.first->text());
      column.first = Value::span(module.text_pool.back());
    }
    Table one;
    one.name = std::move(name);
    one.columns = std::move(columns);
    one.key = std::move(key);
    module.tables.push_back(std::move(one));
    return static_cast<unsigned>(module.tables.size() - 1);
  }
  unsigned scan(const Scan& one) {
    module.scans.push_back(one);
    return static_cast<unsigned>(module.scans.size() - 1);
  }
  unsigned shape(unsigned of_table, Writing writing, std::vector<std::uint8_t> columns) {
    module.shapes.push_back({static_cast<std::uint8_t>(of_table), writing, std::move(columns)});
    return static_cast<unsigned>(module.shapes.size() - 1);
  }
  void documents(DocumentKind kind, std::uint32_t max = kBytesMax) { module.documents = {kind, max}; }
  unsigned input(std::string name, InputKind kind, std::uint32_t max = 0) {
    Input one;
    one.name = std::move(name);
    one.kind = kind;
    one.max = max;
    module.inputs.push_back(std::move(one));
    return static_cast<unsigned>(module.inputs.size() - 1);
  }
  unsigned message(std::string name, std::vector<Field> fields, bool keyed = false) {
    const unsigned i = input(std::move(name), InputKind::message);
    module.inputs[i].fields = std::move(fields);
    module.inputs[i].keyed = keyed;
    return i;
  }
  unsigned function(std::string name, std::string_view parameters, char result, std::string_view others,
                    std::vector<Word> code) {
    Function f;
    f.name = "fn " + name;
    f.parameters = types(parameters);
    f.registers = types(std::string(parameters) + std::string(others));
    if (result != '-') f.result = types(std::string(1, result)).front();
    f.code = std::move(code);
    module.functions.push_back(std::move(f));
    return static_cast<unsigned>(module.functions.size() - 1);
  }
  unsigned handler(std::uint32_t event, std::string_view registers, std::vector<Word> code, bool writes = true) {
    const unsigned i = function("h", "", '-', registers, std::move(code));
    module.functions[i].kind = FunctionKind::handler;
    module.functions[i].writes = writes;
    module.handlers.push_back({event, i});
    return i;
  }
  unsigned view(std::string name, std::vector<Parameter> parameters, Type type, std::string_view registers,
                std::vector<Word> code) {
    Function f;
    f.kind = FunctionKind::view;
    f.result = type;
    f.registers = types(registers);
    f.parameters.assign(f.registers.begin(), f.registers.begin() + static_cast<std::ptrdiff_t>(parameters.size()));
    f.code = std::move(code);
    module.functions.push_back(std::move(f));
    const auto i = static_cast<unsigned>(module.functions.size() - 1);
    module.views.push_back({std::move(name), type, std::move(parameters), i});
    return i;
  }
  struct Cell {
    std::string name;
    Type type = Type::num;
    std::string registers;          // behind the parameters, the row and the position
    std::vector<Word> code;
    bool partial = false;
  };
  // A view of a table's rows. `rows`: registers behind the parameters, and code that ends with OPEN and RET.
  // `where`: the same for its condition, whose registers go on behind the parameters and the row.
  unsigned table_view(std::string name, std::vector<Parameter> parameters, unsigned of_table, std::string_view registers,
                      std::vector<Word> rows, const std::vector<Cell>& cells, const Cell* where = nullptr) {
    std::vector<RegisterType> taken;
    for (const Parameter& parameter : parameters) taken.push_back(type_of(parameter.slot.base));
    const auto add = [&](RegisterType result, std::vector<RegisterType> takes, std::string_view more, std::vector<Word> code) {
      Function f;
      f.kind = FunctionKind::view;
      f.result = result;
      f.parameters = std::move(takes);
      f.registers = f.parameters;
      for (const RegisterType& type : types(more)) f.registers.push_back(type);
      f.code = std::move(code);
      module.functions.push_back(std::move(f));
      return static_cast<std::uint32_t>(module.functions.size() - 1);
    };
    View view;
    view.name = std::move(name);
    view.type = Type::cursor;
    view.parameters = std::move(parameters);
    view.function = add({Type::cursor, of_table}, taken, registers, std::move(rows));
    taken.push_back({Type::row, of_table});
    if (where != nullptr) view.where = add(Type::boolean, taken, where->registers, where->code);
    taken.push_back(Type::num);
    for (const Cell& cell : cells) {
      view.cells.push_back({cell.name, add(cell.type, taken, cell.registers, cell.code)});
      module.functions.back().partial = cell.partial;
    }
    module.views.push_back(std::move(view));
    return static_cast<unsigned>(module.views.size() - 1);
  }
  // A handler of event 0.
  unsigned start(std::string_view registers, std::vector<Word> code, bool writes = true) {
    return handler(0, registers, std::move(code), writes);
  }

  std::unique_ptr<const Module> build() const {
    auto file = encode(module);
    REQUIRE_MESSAGE(file, (file ? std::string() : file.error()));
    auto loaded = load(*file);
    REQUIRE_MESSAGE(loaded, (loaded ? std::string() : loaded.error()));
    auto again = encode(**loaded);
    REQUIRE(again);
    CHECK(*again == *file);
    return std::move(*loaded);
  }
  // Why it is refused; "" when it is not.
  std::string refusal() const {
    auto file = encode(module);
    if (!file) return file.error();
    auto loaded = load(*file);
    return loaded ? std::string() : loaded.error();
  }

  Module module;
};

}  // namespace sluice::vm
