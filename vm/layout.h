// The numbers under which a store keeps a module's states, tables, columns, indexes and totals.
//
// A store gives them once and never to anything else, so they can differ from the order of the declarations after an
// upgrade. Its catalog remembers them (vm/catalog.h); here is what reading and writing needs.
// Source: design module.md 3.11, 4.1, 4.3.
#pragma once
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "vm/module.h"

namespace sluice::vm {

// How a column's value is written in a row: a double; a zigzag varint (int, u32); a bit; length and bytes (text, slug).
enum class Form : std::uint8_t { num = 0, whole = 1, boolean = 2, text = 3 };
Form form_of(Base base);

// One way in which rows of a table were written: the columns that the writer knew, rising by number.
struct Shape {
  struct At {
    std::uint16_t column = 0;       // its number in the store
    Form form = Form::num;
    bool operator==(const At&) const = default;
  };
  std::vector<At> columns;
  bool operator==(const Shape&) const = default;
};

struct TableLayout {
  std::uint16_t number = 0;
  std::vector<std::uint16_t> columns;         // numbers, as declared
  // As declared: what a row reads that was written before the column was there; none: it is absent. Spans: Layout::texts.
  std::vector<std::optional<Value>> before;
  std::vector<Shape> shapes;                  // by shape number
  std::uint16_t shape = 0;                    // that rows are written in now: all declared columns in their present form
  std::vector<std::uint16_t> indexes, totals; // numbers, as declared; each its own sequence in the table
};

struct Layout {
  Layout() = default;
  Layout(Layout&&) = default;
  Layout& operator=(Layout&&) = default;
  Layout(const Layout&) = delete;             // values point into texts

  std::vector<std::uint16_t> states;          // numbers, as declared
  std::vector<TableLayout> tables;
  std::deque<std::string> texts;
};

// Of a new store: everything numbered from 0 as declared, one shape.
Layout first_layout(const Module& module);

}  // namespace sluice::vm
