// The instructions: numbers that files keep for ever.
//
//   op:8 a:8 b:8 c:8   or   op:8 a:8 x:16     32 bits, little endian
//
// An instruction that may find nothing may be followed by ABSENT x: present, that word is skipped; absent, control
// goes to x; without it the event fails with not_found.
// Operands (r: register; a window is consecutive registers, named by its first):
//
//   JMP x  JT a x  JF a x      forward, inside the loop they stand in (its LOOP word included)
//   CALL a b c                 a = function c of the window b; a = 255: no result (and only then for a function without one)
//   RET a                      a = 255 in a function without a result; RETABS only in a partial function
//   DONE                       ends a handler without reply; in a function without a result the same as RET 255
//   FAIL a b                   fault b with the text a (255: none)
//   MOVE a b   NUMK a x  TEXTK a x (constants)   INT a x (x signed)   BOOL a b (b 0 or 1)
//   ADD..MOD a b c, EQN..LEN, EQT..LET, EQB a b c    NEG a b   NOT a b
//   CONCAT a b c               a = the c texts of the window b, c >= 1
//   BUILTIN a b c              a = language function c of the window b
//   FIELD a x                  field x of the message; the line of a text input is its field 0
//   GETS a x   SETS a x   CLRS x      state x; only a `?` state may be absent or cleared
//   ROW a b c                  a = the row of table c with the key in window b; may be absent
//   COL a b c                  a = column c of row b; may be absent if the column is `?`. Any instruction on a row that is
//                              gone faults not_found
//   SETCOL a b c               column b of row a = c        CLRCOL a b    column b of row a = none (`?` only)
//   INSERT a b c               the row of shape c (insert or put) from window b; a = its auto number, or 255
//   UPDATE a b c               the columns of shape c (update) of row a from window b
//   ERASE a                    removes row a
//   COUNT a x                  a = rows of table x
//   GCOUNT a b c               a = rows of the group of table c that the `per` key columns in window b name
//   TOTAL a b c                a = total c of the module, of the group in window b (b = 0 without `by`); may be absent if
//                              it sums num columns (its exact value is beyond the largest double)
//   RANK a b c                 a = rows before row b in index c of its table (ranked); may be absent: the row is not in it
//   OPEN a b c                 cursor a = the rows of scan c between the bounds in window b (b = 0 when it has none)
//   NEXT a b, ABSENT y         row a = the next one of cursor b; directly behind the OPEN of b; y is the word behind its
//                              LOOP. The body does not write b. In a function of a table view OPEN is followed by RET
//   FORP a x                   numbers r[a]..r[a+1], at most x of them (1..10000), else the fault limit; FORL follows directly
//   FORL a x, ABSENT y         the next number in r[a]; a and x as in its FORP; y is the word behind its LOOP. The body
//                              writes neither r[a] nor r[a+1]
//   LOOP x                     back to the FORL or NEXT at x
//   DOC a b                    b = 0: the document's content; b = 1: an empty value if there is a document (`has doc`)
//   DOCSET a   DOCAPP a        content in a      DOCSPL a   window: at, remove, content
//   JBEG  JFLD a x  JNUL x  REPLYJ    x: the name, a text constant; a: num, text or bool
//   REPLYV a   REPLYF a (field a: slug, text or bytes)   REPLYD   REPLYR a (row a as a record of all its columns)
//
// Operands that an instruction does not use are 0.
// Source: design module.md 3.2.
#pragma once
#include <cstdint>
#include <string_view>

namespace sluice::vm {

enum class Op : std::uint8_t {
  // control
  nop = 0x00, jmp = 0x01, jt = 0x02, jf = 0x03, absent = 0x04, loop = 0x05, call = 0x06, ret = 0x07, retabs = 0x08,
  done = 0x09, fail = 0x0a,
  // moves and constants
  move = 0x10, numk = 0x11, textk = 0x12, integer = 0x13, boolean = 0x14,
  // numbers and comparisons
  add = 0x20, sub = 0x21, mul = 0x22, div = 0x23, mod = 0x24, neg = 0x25, eqn = 0x26, ltn = 0x27, len = 0x28,
  eqt = 0x29, ltt = 0x2a, let = 0x2b, eqb = 0x2c, logical_not = 0x2d,
  // texts and language functions
  concat = 0x30, builtin = 0x31,
  // the event
  field = 0x40, now = 0x41, seq = 0x42, dockey = 0x43, docrev = 0x44,
  // states
  gets = 0x50, sets = 0x51, clrs = 0x52,
  // tables
  row = 0x60, col = 0x61, setcol = 0x62, clrcol = 0x63, insert = 0x64, update = 0x65, erase = 0x66, count = 0x67,
  gcount = 0x68, total = 0x69, rank = 0x6a,
  // loops
  open = 0x70, next = 0x71, forp = 0x72, forl = 0x73,
  // the document
  doc = 0x80, docset = 0x81, docdel = 0x82, docapp = 0x83, docspl = 0x84,
  // replies
  jbeg = 0x90, jfld = 0x91, jnul = 0x92, replyj = 0x93, replyv = 0x94, replyf = 0x95, replyd = 0x96, replyr = 0x97,
};

using Word = std::uint32_t;
inline Op op_of(Word w) { return static_cast<Op>(w & 0xff); }
inline std::uint8_t a_of(Word w) { return static_cast<std::uint8_t>(w >> 8); }
inline std::uint8_t b_of(Word w) { return static_cast<std::uint8_t>(w >> 16); }
inline std::uint8_t c_of(Word w) { return static_cast<std::uint8_t>(w >> 24); }
inline std::uint16_t x_of(Word w) { return static_cast<std::uint16_t>(w >> 16); }
constexpr Word word(Op op, unsigned a = 0, unsigned b = 0, unsigned c = 0) {
  return static_cast<Word>(op) | a << 8 | b << 16 | c << 24;
}
constexpr Word word_x(Op op, unsigned a, unsigned x) { return static_cast<Word>(op) | a << 8 | x << 16; }

// Rows that one `keep` removes at most for a new one: the second only where the table was allowed more rows before, so
// that it comes down to what it may have.
inline constexpr std::uint32_t kKeepRemoves = 2;

// Fuel of one run, under cost model 1: callees, language functions, bytes, and what indexes and totals add aside.
std::uint32_t flat_fuel(Op op);
struct Module;
struct Function;
// With what the indexes and totals of the table add that the instruction can move: 100 each, and for each `keep` of an
// INSERT's table what it costs to remove kKeepRemoves rows.
// Shape: a word of `function`, whose registers say whose row it is; the word is proven, or is about no table.
std::uint32_t fuel_of(const Module& module, const Function& function, Word w);

// The mnemonic as `aupc disasm` prints it; empty for a number that is no instruction.
std::string_view mnemonic(Op op);

inline constexpr unsigned kNoRegister = 255;  // CALL without a result, FAIL without a text, INSERT without a key

}  // namespace sluice::vm
