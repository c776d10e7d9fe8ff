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
struct Query;
struct Stmt;
using QueryPtr = std::unique_ptr<Query>;
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
  aggregate,  // text `(` args[0] `for` row `in` query `)`; text is sum, min, max, first, any or all, or count, which has
              // no args: what stands before its `for` is the row itself
  count,      // `count(` query `)`
  rank,       // `rank(` args[0] `by` row `)`: row names the index
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
  table,     // of an index expression: a row of it
  column,    // of a member
  position,  // `row` in a cell
  total,     // `total(table.name, groups)`
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
  QueryPtr query;  // aggregate, count
  Name row;        // aggregate: the row's name; rank: the index
  std::uint16_t depth = 1;  // of the tree; bounded, so that walking it recursively is safe

  // checked
  Type type = Type::none;  // none: an error was reported, or it is `none`
  bool absent = false;     // may have no value
  bool never = false;      // never has one: `none` in one form or another
  Meaning meaning = Meaning::unknown;
  std::uint32_t index = 0;  // of the state, function, builtin, local, field, table, column, total (of the module) or, of a
                            // rank, index; of an aggregate its row's local
  std::uint32_t table = 0;  // when type is row; of a column, an index or a rank, whose
  std::optional<Constant> constant;
};

// `t`, `t[...]`, `t by index`, `t by index[...]`, then bounds, desc, limit and where.
struct Query {
  Span span;
  Name table;
  std::optional<Name> index;
  std::vector<ExprPtr> group;  // between the brackets
  Span group_at;               // zero length: there are none
  ExprPtr low, high;           // `from` or `above`, `to` or `below`
  bool low_excluded = false, high_excluded = false;
  Span low_at, high_at;        // the words
  Span desc_at;                // zero length: not `desc`
  ExprPtr limit, where;
  Span limit_at, where_at;

  // checked
  std::uint32_t table_index = 0;
  std::uint32_t order = 0;     // as Scan::order
  std::uint32_t rows = 0;      // as Scan::limit
  bool streams = false;
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
  insert,      // `insert` of cells into `table`; with a name: `let name = insert ...`
  put,         // the same, replacing
  update,      // of the row `target`
  delete_row,  // `target`
};

using Block = std::vector<StmtPtr>;

struct Stmt {
  StmtKind kind = StmtKind::let;
  Span at;                     // its first word; of `let id = insert ...` the `insert`
  Name name;                   // let, var, loops; the fault of check and fail
  ExprPtr target;              // assign
  std::optional<Operator> op;  // of `+=` and its like
  Span op_at;
  ExprPtr value;  // let, var, assign, call, check, reply, give, append; the condition of a branch
  ExprPtr first, last, limit;  // count_loop: first..last; splice: at, remove
  ExprPtr text;                // what a fault says
  std::vector<Cell> cells;
  Name table;       // insert, put
  bool changeable = false;  // of `var id = insert ...`
  QueryPtr query;   // row_loop
  Block body, otherwise;

  // checked
  std::uint32_t local = 0;  // let, var, count_loop, row_loop, insert with a name
  std::uint32_t table_index = 0;  // insert, put, update, delete_row
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
  std::optional<Name> was;
};
struct SizeSyntax {
  Span at;
  Size size = Size::max;
  ExprPtr rows;
  std::vector<Name> per;
};
struct ColumnSyntax {
  Name name;
  SlotSyntax slot;
  Span auto_at;  // zero length: not `auto`
  ExprPtr first;
  std::optional<Name> was;
};
struct PartSyntax {
  Name column;
  Span desc_at;  // zero length: rising
};
struct KeySyntax {
  Span at;
  std::vector<PartSyntax> parts;
};
struct IndexSyntax {
  Span at;
  Name name;
  std::vector<PartSyntax> parts;
  bool unique = false;
  Span ranked_at;  // zero length: not ranked
};
struct TotalSyntax {
  Span at;
  Name name;
  std::optional<Name> sum;  // its column; none: count
  std::vector<PartSyntax> by;
};
struct TableSyntax {
  Span at;
  Name name;
  std::vector<SizeSyntax> sizes;
  std::optional<Name> was;
  std::vector<ColumnSyntax> columns;
  std::vector<KeySyntax> keys;  // one, if it is right
  std::vector<IndexSyntax> indexes;
  std::vector<TotalSyntax> totals;
  std::vector<Name> drops;
};
struct DropSyntax {
  bool table = false;  // else a state
  Name name;
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
  ExprPtr every;  // timers
  std::vector<FieldSyntax> fields;
};
struct Local {
  std::string name;
  Span span;
  RegisterType type;
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
  bool writes = false;        // a state, a table or the document
  bool writes_tables = false;
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
  std::vector<RegisterType> types;
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
  // Of a table view, instead of the body's value: `for row in query { cells }`.
  Name row;
  QueryPtr query;
  std::vector<Cell> cells;
  Span cells_at;

  // checked
  Type result = Type::none;
};
struct Syntax {
  Name name;
  double version = 1;
  Span version_at;
  std::vector<ConstSyntax> consts;
  std::vector<StateSyntax> states;
  std::vector<TableSyntax> tables;
  std::vector<DocumentsSyntax> documents;
  std::vector<InputSyntax> inputs;
  std::vector<FnSyntax> functions;
  std::vector<OnSyntax> handlers;
  std::vector<ViewSyntax> views;
  std::vector<DropSyntax> drops;
};

}  // namespace sluice::vm
