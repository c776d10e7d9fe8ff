// The code generator's state: the constants of the module and the function being written.
//
// An expression is told where its value goes, so that nothing is moved into windows afterwards. What may be
// absent jumps to `absent_`, where the nearest `??`, `has`, cell or `?` function takes over; without one the
// event fails.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vm/ast.h"
#include "vm/check_query.h"
#include "vm/function_code.h"
#include "vm/parser.h"

namespace sluice::vm {

// Thread: one compilation.
class Generator {
 public:
  Generator(std::string_view source, const Syntax& syntax, Module& module,
            std::vector<Complaint>& complaints);
  void run();

 private:
  // A register, and whether it is the holder's to free: locals keep theirs.
  struct Reg {
    unsigned number = 0;
    bool owned = false;
  };
  struct Window {
    unsigned first = 0;
    std::size_t owned = 0;  // how many to free
  };

  // --- expressions (codegen_expr.cc)
  Reg operand(const Expr& e) { return value(e, std::nullopt); }
  void into(const Expr& e, unsigned target) { value(e, target); }
  Reg value(const Expr& e, std::optional<unsigned> target);
  Reg value_of_kind(const Expr& e, std::optional<unsigned> target);
  Reg destination(std::optional<unsigned> target, RegisterType type);
  void release(Reg r) {
    if (r.owned) code_.free(r.number);
  }
  Reg constant(const Constant& c, std::optional<unsigned> target);
  Reg name(const Expr& e, std::optional<unsigned> target);
  Reg call(const Expr& e, std::optional<unsigned> target);
  Reg binary(const Expr& e, std::optional<unsigned> target);
  Reg coalesce(const Expr& e, std::optional<unsigned> target);
  Reg conditional(const Expr& e, std::optional<unsigned> target);
  Reg logical(const Expr& e, std::optional<unsigned> target);
  Reg joined(const Expr& e, std::optional<unsigned> target);
  Window arguments(const std::vector<const Expr*>& args);
  Window arguments(const std::vector<ExprPtr>& args);
  void release(Window w) { code_.free_window(w.first, w.owned); }
  void text_part(const Expr& e, unsigned target);
  void number_constant(double n, unsigned target);
  void text_constant(const std::string& text, unsigned target);
  void may_be_absent(bool partial);
  // Evaluates with what is absent, or `none`, going to `to`.
  template <class Evaluate>
  auto with_absent(Label& to, Evaluate evaluate) {
    Label* const outer_absent = absent_;
    Label* const outer_none = none_;
    absent_ = &to;
    none_ = nullptr;
    const auto result = evaluate();
    absent_ = outer_absent;
    none_ = outer_none;
    return result;
  }
  // Goes to `to` when `e` is `wanted`, else on.
  void branch_on(const Expr& e, bool wanted, Label& to);
  void branch_on_has(const Expr& e, bool wanted, Label& to);

  // --- rows and their columns (codegen_row.cc)
  Reg row(const Expr& e, std::optional<unsigned> target);
  Reg column(const Expr& e, std::optional<unsigned> target);
  Reg total(const Expr& e, std::optional<unsigned> target);
  Reg rank(const Expr& e, std::optional<unsigned> target);
  void insert(const Stmt& s);
  void update(const Stmt& s);
  void delete_row(const Stmt& s);
  // The cells in a window, and the shape that says which columns they are.
  Window columns(const std::vector<Cell>& cells, std::uint32_t table, RowShape& shape);
  void column_into(const Expr& e, const Slot& slot, unsigned first);
  unsigned shape_index(const RowShape& shape, Span at);
  // 0, false or the empty text, where a register only has to hold something.
  void blank(Type type, unsigned target);

  // --- queries (codegen_query.cc)
  struct Rows {
    unsigned cursor = 0, row = 0;
    std::uint32_t head = 0;
    Label exit;
  };
  // False: control does not come here.
  bool open(const Query& q, Rows& rows);
  void close(Rows& rows, Span at);
  void row_loop(const Stmt& s);
  Reg aggregate(const Expr& e, std::optional<unsigned> target);
  void accumulate(const Expr& e, unsigned to, std::optional<unsigned> have, Label& next);
  Reg kept(const Query& q, std::optional<unsigned> target);
  void absent_unless(unsigned flag);
  unsigned scan_index(const Query& q);
  // No jump leaves a loop, so what is absent inside ends the function from inside.
  template <class Body>
  void inside_loop(Body body) {
    Label absent;
    Label* const outer = absent_;
    if (in_partial_) absent_ = &absent;
    body();
    absent_ = outer;
    if (absent.uses.empty()) return;
    Label next;
    code_.jump(next);
    code_.bind(absent);
    code_.end(Op::retabs);
    code_.bind(next);
  }

  // --- statements (codegen_stmt.cc)
  void block(const Block& statements);
  void statement(const Stmt& s);
  void local(const Stmt& s);
  void assign(const Stmt& s);
  // Of a state or a column: `read` gives what it holds, `store` and `clear` change it.
  template <class Read, class Store, class Clear>
  void assign_stored(const Stmt& s, bool optional, Read read, Store store, Clear clear);
  void branch(const Stmt& s);
  void count_loop(const Stmt& s);
  void fail(const Stmt& s);
  void reply(const Stmt& s);
  void cell(const Cell& c);
  void give(const Stmt& s);
  void write_document(const Stmt& s);
  void arithmetic(Operator op, unsigned a, unsigned b, unsigned c);

  // Functions (codegen.cc). The parameters are locals, by their numbers.
  void begin(const Body& body, const std::vector<std::uint32_t>& parameters);
  void finish(Function& function, const Name& name, std::string_view what);
  void function(const FnSyntax& f);
  void handler(const OnSyntax& o);
  void view(const ViewSyntax& v, View& out);
  void view_of_rows(const ViewSyntax& v, View& out);
  void view_value(const Expr& e, Function& out);
  void view_function(const ViewSyntax& v, Function& out);

  std::uint16_t number_index(double n);
  std::uint16_t text_index(const std::string& text);
  void at(Span span);

  const Syntax& syntax_;
  Module& module_;
  std::vector<Complaint>& complaints_;
  std::vector<std::uint32_t> line_starts_;
  std::map<std::uint64_t, std::uint16_t> numbers_;
  std::map<std::string, std::uint16_t, std::less<>> texts_;

  // The function being written.
  FunctionCode code_;
  std::vector<Reg> locals_;  // by Body::locals
  std::vector<std::uint32_t> scope_;
  Label* absent_ = nullptr;
  Label* none_ = nullptr;  // where a written `none` goes when that is elsewhere: `s = if c then x else none`
  bool in_partial_ = false;
  unsigned position_ = 0;  // of a cell: the register of `row`
};

}  // namespace sluice::vm
