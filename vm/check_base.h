// The checker's state: the names of the module and the declaration being looked at.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "vm/ast.h"
#include "vm/parser.h"

namespace sluice::vm {

inline constexpr std::size_t kStatesMax = 256;
inline constexpr std::size_t kInputsMax = 128;
inline constexpr std::size_t kFieldsMax = 16;
inline constexpr std::size_t kViewsMax = 512;
inline constexpr std::size_t kCalledMax = 256;  // functions: CALL names one with a byte
inline constexpr std::uint32_t kCallsDeep = 8;
inline constexpr int kConstsDeep = 100;
inline constexpr int kLoopsDeep = 4;
inline constexpr std::uint32_t kRoundsMax = 10'000;
inline constexpr std::uint32_t kStateTextMax = 64 * 1024;  // bytes

std::string with_article(Type type);  // "a num"

struct Global {
  Meaning meaning = Meaning::unknown;  // unknown: a table
  std::uint32_t index = 0;
  Span span;
};

// Thread: one check.
class Checker {
 public:
  Checker(std::string_view source, Syntax& syntax, std::vector<Complaint>& complaints)
      : source_(source), syntax_(syntax), complaints_(complaints) {}
  std::unique_ptr<Module> run();

 private:
  enum class Place : std::uint8_t { constant, function, handler, view };

  // --- declarations (check_decl.cc)
  void collect();
  void declare(const Name& name, Meaning meaning, std::uint32_t index);
  void unserved();
  void header();
  const Constant* constant(std::uint32_t index);
  void state(StateSyntax& s);
  void documents();
  void input(InputSyntax& i);
  void function(std::uint32_t index);
  void handler(OnSyntax& o);
  void view(ViewSyntax& v);
  std::optional<Slot> slot(SlotSyntax& s, std::string_view what, std::uint32_t text_max);
  std::optional<double> known_number(ExprPtr& e);
  std::optional<std::uint32_t> known_whole(ExprPtr& e, std::uint32_t low, std::uint32_t high,
                                           std::string_view what);
  Type signature_type(const Name& name);
  void parameters(std::vector<ParameterSyntax>& list, Body& body);
  bool hides(const Name& name);
  void enter(Place place, Body& body);

  // --- expressions (check_expr.cc)
  void expr(Expr& e);
  void value(Expr& e);                                      // and it is not `none`
  bool value_of(Expr& e, Type type, std::string_view who);  // and it is of this type
  void name_expr(Expr& e);
  void member(Expr& e);
  void call(Expr& e);
  void call_function(Expr& e, std::uint32_t index);
  void call_builtin(Expr& e);
  void arithmetic(Expr& e);
  void comparison(Expr& e);
  void coalesce(Expr& e);
  void conditional(Expr& e);
  void has(Expr& e);
  void joined(Expr& e);
  void finish(Expr& e);
  void no_tables(Span at);
  bool document_allowed(Span at);
  void unknown_name(const Expr& e, std::string_view text);
  std::vector<std::string> known_names() const;
  void wants(const Expr& e, std::string_view who, Type type);
  bool not_known(Span at, std::string_view what);
  bool allow_chance(Span at, std::string_view what);
  bool allow_write(Span at, std::string_view what);

  // --- statements (check_stmt.cc)
  // True when control can reach what stands behind.
  bool block(Block& statements);
  bool statement(Stmt& s);
  void assign(Stmt& s);
  void assign_to(Stmt& s, Type type, std::string_view what);
  void local(Stmt& s);
  bool count_loop(Stmt& s);
  bool branch(Stmt& s);
  void condition(Expr& e);
  void fault_text(Stmt& s);
  void reply(Stmt& s);
  void give(Stmt& s);
  void document_write(Stmt& s);
  void content(Expr& e);
  std::optional<std::uint32_t> new_local(const Name& name, Type type, bool changeable);
  bool is_field(std::string_view name) const;
  const Local* find_local(std::string_view name, std::uint32_t* index) const;

  void complain(Span span, std::string message, std::string hint = {}) {
    if (failed_) return;
    failed_ = true;
    complaints_.push_back({span, std::move(message), std::move(hint)});
  }
  std::uint32_t line_of(Span span) const;

  std::string_view source_;
  Syntax& syntax_;
  std::vector<Complaint>& complaints_;
  std::unique_ptr<Module> module_ = std::make_unique<Module>();
  std::map<std::string, Global, std::less<>> globals_;
  enum class Visit : std::uint8_t { no, now, done, failed };
  std::vector<Visit> const_visits_;
  int const_depth_ = 0;

  // The declaration being checked.
  bool failed_ = false;
  Place place_ = Place::constant;
  Body* body_ = nullptr;
  FnSyntax* fn_ = nullptr;
  std::uint32_t fn_index_ = 0;
  OnSyntax* on_ = nullptr;
  const InputSyntax* input_ = nullptr;  // of the handler
  std::vector<std::uint32_t> scope_;    // locals that can be named now
  int loops_ = 0;
};

}  // namespace sluice::vm
