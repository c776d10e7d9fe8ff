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
  Reg destination(std::optional<unsigned> target, Type type);
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

  // --- statements (codegen.cc)
  void block(const Block& statements);
  void statement(const Stmt& s);
  void local(const Stmt& s);
  void assign(const Stmt& s);
  void branch(const Stmt& s);
  void count_loop(const Stmt& s);
  void fail(const Stmt& s);
  void reply(const Stmt& s);
  void cell(const Cell& c);
  void give(const Stmt& s);
  void write_document(const Stmt& s);
  void arithmetic(Operator op, unsigned a, unsigned b, unsigned c);

  void begin(const Body& body, std::size_t parameters);
  void finish(Function& function, const Name& name, std::string_view what);
  void function(const FnSyntax& f);
  void handler(const OnSyntax& o);
  void view(const ViewSyntax& v, std::size_t index);

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
};

}  // namespace sluice::vm
