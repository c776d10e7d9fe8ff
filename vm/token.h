// The words a module is made of, each with its place in the text.
#pragma once
#include <cstdint>
#include <string>

namespace sluice::vm {

// Shape: bytes of the source; a zero length means the place alone.
struct Span {
  std::uint32_t offset = 0;
  std::uint32_t length = 0;
  std::uint32_t end() const { return offset + length; }
};
inline Span join(Span a, Span b) { return {a.offset, b.end() > a.offset ? b.end() - a.offset : a.length}; }

enum class Tok : std::uint8_t {
  end,
  name,  // [A-Za-z_][A-Za-z0-9_]*
  word,  // the same, but a word of the language
  number,
  text,  // "whole"
  text_head,
  text_mid,
  text_tail,  // "head{ }mid{ }tail"
  lbrace,
  rbrace,
  lparen,
  rparen,
  lbracket,
  rbracket,
  comma,
  colon,
  dot,
  dotdot,
  question,
  assign,
  plus_assign,
  minus_assign,
  star_assign,
  slash_assign,
  eq,
  ne,
  lt,
  le,
  gt,
  ge,
  plus,
  minus,
  star,
  slash,
  percent,
  coalesce,
  error,  // `text` says what is wrong, `hint` what to write
};

// What the parser took a token for, as far as it matters to how a module is laid out.
enum class Mark : std::uint8_t {
  none,
  item,    // the first of a declaration, statement, cell, field, column or clause
  size,    // `max` or `keep` of a table
  block,   // `{` of statements
  table,   // `{` of columns and clauses
  list,    // `{` of cells or fields
  call,    // `(` that belongs to the name before it
  sign,    // `-` of one value
  clause,  // a word before which a line may well end: `and`, `else`, `limit`, `where` ...
};

struct Token {
  Tok kind = Tok::end;
  Mark mark = Mark::none;
  bool first_on_line = false;
  Span span;
  double number = 0;
  std::string text;  // a name as written; a text with its escapes replaced
  std::string hint;
};

}  // namespace sluice::vm
