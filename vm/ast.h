// A module as it was written: what the parser makes, the checker completes and the code generator reads.
//
// The parser fills in words and places. What stands under "checked" is the checker's: types, what a name
// means, what is known already.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "vm/module.h"
#include "vm/token.h"

namespace sluice::vm {

struct Expr;
struct Stmt;
using ExprPtr = std::unique_ptr<Expr>;
using StmtPtr = std::unique_ptr<Stmt>;

struct Name {
  std::string text;
  Span span;
};

// What is known when compiled.
struct Constant {
  Type type = Type::none;
  double number = 0;
  bool truth = false;
  std::string text;
};

enum class ExprKind : std::uint8_t {
  number,
  boolean,
  none,
  text,    // `text`
  joined,  // texts and values: args
  name,
  member,     // args[0] `.` text
  index,      // text `[` args `]`
  call,       // text `(` args `)`
  aggregate,  // text `(` ... over a query `)`
  negate,
  logical_not,
  has,
  binary,  // args[0] op args[1]
  coalesce,
  logical_and,
  logical_or,
  conditional,  // if args[0] then args[1] else args[2]
};
enum class Operator : std::uint8_t { add, subtract, multiply, divide, modulo, eq, ne, lt, le, gt, ge };

// What a bare name or a call means.
enum class Meaning : std::uint8_t {
  unknown,
  constant,
  state,
  function,
  builtin,
  local,
  field,
  now,
  seq,
  doc,
  doc_key,
  doc_revision,
};

struct Expr {
  ExprKind kind = ExprKind::none;
  Span span;  // all of it
  Span at;    // the operator, or the name
  std::string text;
  double number = 0;
  bool truth = false;
  Operator op = Operator::add;
  std::vector<ExprPtr> args;
  std::uint16_t depth = 1;  // of the tree; bounded, so that walking it recursively is safe

  // checked
  Type type = Type::none;  // none: an error was reported, or it is `none`
  bool absent = false;     // may have no value
  bool never = false;      // never has one: `none` in one form or another
  Meaning meaning = Meaning::unknown;
  std::uint32_t index = 0;  // of the state, function, builtin, local or field
  std::optional<Constant> constant;
};

// `name: e`, `name` or `path.word`; the last two name themselves.
struct Cell {
  Name name;
  ExprPtr value;
};

enum class StmtKind : std::uint8_t {
  let,
  var,
  assign,
  call,
  branch,
  count_loop,
  row_loop,
  check,
  fail,
  reply_value,
  reply_record,
  reply_nothing,
  give,
  append,
  splice,
  delete_document,
  table_write,  // insert, put, update, delete of rows
};

using Block = std::vector<StmtPtr>;

struct Stmt {
  StmtKind kind = StmtKind::let;
  Span at;                     // its first word
  Name name;                   // let, var, loops; the fault of check and fail
  ExprPtr target;              // assign
  std::optional<Operator> op;  // of `+=` and its like
  Span op_at;
  ExprPtr value;  // let, var, assign, call, check, reply, give, append; the condition of a branch
  ExprPtr first, last, limit;  // count_loop: first..last; splice: at, remove
  ExprPtr text;                // what a fault says
  std::vector<Cell> cells;
  Block body, otherwise;

  // checked
  std::uint32_t local = 0;  // let, var, count_loop
  Fault fault = Fault::none;
  std::uint32_t rounds = 0;  // count_loop: its limit
};

// `base [?] { in a..b | clamp a..b | max n }`
struct SlotSyntax {
  Base base = Base::num;
  Span base_at;
  bool optional = false;
  Span optional_at;
  Range range = Range::none;
  Span range_at, max_at;
  ExprPtr low, high, max;
};

struct ConstSyntax {
  Name name;
  ExprPtr value;
};
struct StateSyntax {
  Name name;
  SlotSyntax slot;
  ExprPtr first;
};
struct DocumentsSyntax {
  Span at;
  DocumentKind kind = DocumentKind::none;
  ExprPtr max;
};
struct FieldSyntax {
  Name name;
  SlotSyntax slot;
};
struct InputSyntax {
  Name name;
  InputKind kind = InputKind::key;
  Span keyed_at;  // zero length: not keyed
  ExprPtr max;
  std::vector<FieldSyntax> fields;
};
struct Local {
  std::string name;
  Span span;
  Type type = Type::none;
  bool changeable = false;
};
struct ParameterSyntax {
  Name name;
  Name type;
};
// The body of an `on`, `fn` or `view`.
struct Body {
  ExprPtr value;  // `= e`
  Block block;
  Span end;  // the closing brace

  // checked
  std::vector<Local> locals;  // parameters first
  bool writes = false;        // a state or the document
  bool chance = false;
  std::uint32_t depth = 1;  // of calls, itself included
};
struct FnSyntax {
  Name name;
  std::vector<ParameterSyntax> parameters;
  std::optional<Name> result;
  bool partial = false;
  bool is_block = false;
  Body body;

  // checked
  std::vector<Type> types;
  Type type = Type::none;
  bool known = false;  // its head was right, so calls of it can be checked
};
enum class Edge : std::uint8_t { none, down, up };
struct OnSyntax {
  Name name;  // "start" for `on start`
  bool start = false;
  Edge edge = Edge::none;
  Span edge_at;
  std::optional<Name> line;
  Body body;

  // checked
  std::uint32_t input = 0;
  std::uint32_t event = 0;
};
struct ViewSyntax {
  Name name;
  std::vector<ParameterSyntax> parameters;
  bool of_rows = false;
  Name type;
  Body body;

  // checked
  Type result = Type::none;
};
// What this version only recognizes.
struct Unserved {
  enum class What : std::uint8_t { table, timer, was, drop, row_view } what = What::table;
  Span at;
};

struct Syntax {
  Name name;
  double version = 1;
  Span version_at;
  std::vector<ConstSyntax> consts;
  std::vector<StateSyntax> states;
  std::vector<Name> tables;
  std::vector<DocumentsSyntax> documents;
  std::vector<InputSyntax> inputs;
  std::vector<FnSyntax> functions;
  std::vector<OnSyntax> handlers;
  std::vector<ViewSyntax> views;
  std::vector<Unserved> unserved;
};

}  // namespace sluice::vm
