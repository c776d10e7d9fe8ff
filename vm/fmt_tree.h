// A module as lines that may be laid out: declarations, and in their braces statements, cells, fields or
// columns, each with the comments that belong to it.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "vm/parser.h"

namespace sluice::vm {

// On a line of its own. The text is without the spaces and the carriage return at its end.
struct LineComment {
  std::string_view text;
  bool after_blank = false;  // an empty line stands before it
};

struct Braces;

// Words up to a pair of braces, or to the end of the item.
struct Part {
  std::vector<LineComment> before;  // of an `else`: above it
  std::vector<const Token*> words;
  std::unique_ptr<Braces> braces;
  std::string_view behind;  // a comment on the line on which the part ends; empty: none
};

// Shape: at least one part, the first with a word. Several: an `if` with what its `else` begin.
struct Item {
  std::vector<LineComment> before;
  bool after_blank = false;
  bool first_on_line = false;
  bool column = false;  // of a table, not a clause
  std::vector<Part> parts;
  std::string flat;  // all of it on one line, filled in by who lays it out; empty: it cannot be
};

struct Braces {
  Mark kind = Mark::block;       // block, table or list
  std::string_view behind_open;  // a comment behind the `{`
  std::vector<Item> items;
  std::vector<LineComment> tail;  // above the `}`
  std::string flat;               // as that of an item
};

// Shape: written comes from a parse() without complaints. A comment amid the words of an item becomes one
// above it. Life: points into source and written.
Braces arrange(std::string_view source, const Written& written);

}  // namespace sluice::vm
