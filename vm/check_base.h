// The checker's state: the names of the module and the declaration being looked at.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "vm/ast.h"
#include "vm/check_query.h"
#include "vm/parser.h"

namespace sluice::vm {

inline constexpr std::size_t kStatesMax = 256;
inline constexpr std::size_t kInputsMax = 128;
inline constexpr std::size_t kFieldsMax = 16;
inline constexpr std::size_t kViewsMax = 512;    // and their cells
inline constexpr std::size_t kFunctionsMax = 512;  // handlers, views and cells included
inline constexpr std::size_t kCalledMax = 256;  // functions: CALL names one with a byte
inline constexpr std::uint32_t kCallsDeep = 8;
inline constexpr int kConstsDeep = 100;
inline constexpr int kLoopsDeep = 4;
inline constexpr std::uint32_t kStateTextMax = 64 * 1024;  // bytes

std::string with_article(Type type);  // "a num"
std::string number_text(double n);
std::string_view base_word(Base base);
std::string columns_in_words(std::size_t n);  // "2 columns"

struct Global {
  Meaning meaning = Meaning::unknown;
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
  void limits();
  void declare(const Name& name, Meaning meaning, std::uint32_t index);
  void header();
  void documents();
  void input(InputSyntax& i);
  void field(InputSyntax& i, std::size_t n, Input& out);
  void timer(InputSyntax& i, Input& out);
  void drops();
  bool hides(const Name& name);
  // The names that `was` and `drop` speak of: each once, and none that is still there.
  template <class List>
  void renamed(const List& list, const std::vector<Name>& dropped, std::string_view what) {
    std::map<std::string, const Name*, std::less<>> taken;  // by what takes its values
    for (const auto& item : list) {
      if (!item.was || failed_) continue;
      was(item.name, *item.was);
      for (const auto& other : list)
        if (other.name.text == item.was->text) still_there(*item.was, what);
      if (!taken.try_emplace(item.was->text, &item.name).second)
        complain(item.was->span, "`" + taken[item.was->text]->text + "` was `" + item.was->text + "` already",
                 "only one " + std::string(what) + " can take its values over");
    }
    for (const Name& gone : dropped) {
      for (const auto& item : list)
        if (item.name.text == gone.text) still_there(gone, what);
      if (!taken.try_emplace(gone.text, &gone).second)
        complain(gone.span, "`" + gone.text + "` is dropped, but its values are taken over",
                 "leave out the `drop` or the `was`");
    }
  }
  void was(const Name& name, const Name& old);
  void still_there(const Name& name, std::string_view what);

  // --- what is known when compiled (check_slot.cc)
  const Constant* constant(std::uint32_t index);
  void state(StateSyntax& s);
  std::optional<Slot> slot(SlotSyntax& s, std::string_view what, std::uint32_t text_max);
  // What a state or a column holds at first. Null: nothing, or an error.
  std::optional<Value> first_value(const Name& name, const Slot& slot, Expr& e, std::string_view what);
  std::optional<Value> usual_value(const Name& name, const Slot& slot);
  Value value_of_constant(const Constant& c);
  std::optional<double> known_number(ExprPtr& e);
  std::optional<std::uint32_t> known_whole(ExprPtr& e, std::uint32_t low, std::uint32_t high,
                                           std::string_view what);

  // --- tables (check_table.cc)
  void table(std::uint32_t index);
  void columns(TableSyntax& t, Table& out);
  void column(TableSyntax& t, ColumnSyntax& c, Table& out);
  void key(TableSyntax& t, Table& out);
  void sizes(TableSyntax& t, Table& out);
  void size(TableSyntax& t, SizeSyntax& s, Table& out);
  void index(IndexSyntax& i, Table& out);
  void total(TotalSyntax& t, Table& out);
  void table_names(TableSyntax& t, Table& out);
  // The number of a column, or nothing after a complaint.
  std::optional<std::uint8_t> find_column(const Table& t, const Name& name);
  // A column that goes into the bytes of a key.
  bool fits_key(const Table& t, std::uint8_t column, Span at, std::string_view what);
  bool fits_width(std::size_t width, Span at, std::string_view what);

  // --- functions, handlers, views (check_function.cc)
  void function(std::uint32_t index);
  void handler(OnSyntax& o);
  void view(ViewSyntax& v);
  void view_of_rows(ViewSyntax& v, View& out);
  void no_row(Span at);
  RegisterType signature_type(const Name& name);
  void parameters(std::vector<ParameterSyntax>& list, Body& body);
  void enter(Place place, Body& body);

  // --- expressions (check_expr.cc)
  void expr(Expr& e);
  void value(Expr& e);                                              // and it is not `none`
  bool value_of(Expr& e, RegisterType type, std::string_view who);  // and it is of this type
  void arithmetic(Expr& e);
  void comparison(Expr& e);
  void coalesce(Expr& e);
  void conditional(Expr& e);
  void has(Expr& e);
  void joined(Expr& e);
  void finish(Expr& e);
  // "a num", "a row of `item`".
  std::string kind_of(RegisterType type) const;
  std::string kind_of(const Expr& e) const { return kind_of(register_type(e)); }
  void wants(const Expr& e, std::string_view who, RegisterType type);

  // --- names (check_name.cc)
  void name_expr(Expr& e);
  void member(Expr& e);
  void row_of(Expr& e);
  void column_of(Expr& e, const Table& t, std::uint8_t column);
  bool document_allowed(Span at);
  void unknown_name(const Expr& e, std::string_view text);
  std::vector<std::string> known_names() const;
  bool not_known(Span at, std::string_view what);
  // The table of this name, or null after a complaint; `only` says what tables are needed for here.
  const Table* find_table(const Name& name, std::uint32_t& index, std::string_view only);
  bool is_field(std::string_view name) const;
  const Local* find_local(std::string_view name, std::uint32_t* index) const;

  // --- calls (check_call.cc)
  void call(Expr& e);
  void call_function(Expr& e, std::uint32_t index);
  void call_builtin(Expr& e);
  void kept_total(Expr& e);  // `total(table.name, groups)`
  bool allow_chance(Span at, std::string_view what);
  bool allow_write(Span at, std::string_view what);

  // --- queries (check_query.cc)
  // What a query is for says what has to bound it: nothing need bound pages and kept counts.
  enum class Reading : std::uint8_t { rows, page, count, first };
  // Everything but `where`, for which the row's name has to be known first.
  bool query(Query& q, Reading reading);
  bool order(Query& q, const Table& t, std::vector<std::uint8_t>& columns);
  void bounds(Query& q, const Table& t, const std::vector<std::uint8_t>& columns);
  void bounded(Query& q, const Table& t, const std::vector<std::uint8_t>& columns, Reading reading);
  void unbounded(const Query& q, const Table& t, const std::vector<std::uint8_t>& columns, Reading reading);
  bool deeper(Span at);
  // `part` is done for each row: what it writes says whether the query may stream.
  template <class Part>
  void for_each_row(Query& q, Part part) {
    const bool before = std::exchange(body_->writes_tables, false);
    ++loops_;
    if (q.where) condition(*q.where);
    if (!failed_) part();
    --loops_;
    q.streams = !body_->writes_tables;
    body_->writes_tables |= before;
  }

  // --- expressions over rows (check_aggregate.cc)
  void aggregate(Expr& e);
  void aggregate_value(Expr& e);
  void count(Expr& e);
  void rank(Expr& e);

  // --- statements (check_stmt.cc)
  // True when control can reach what stands behind.
  bool block(Block& statements);
  bool statement(Stmt& s);
  void assign(Stmt& s);
  void assign_to(Stmt& s, RegisterType type, std::string_view what);
  void assign_state(Stmt& s, std::uint32_t index);
  void set_none(const Stmt& s, bool optional, const std::string& what);
  void local(Stmt& s);
  void effect(Stmt& s);
  bool count_loop(Stmt& s);
  bool branch(Stmt& s);
  void condition(Expr& e);
  void fault_text(Stmt& s);
  void reply(Stmt& s);
  void cells(std::vector<Cell>& cells, bool of_view);
  void give(Stmt& s);
  void document_write(Stmt& s);
  void content(Expr& e);
  std::optional<std::uint32_t> new_local(const Name& name, RegisterType type, bool changeable);

  // --- statements about rows (check_row.cc)
  void row_loop(Stmt& s);
  void insert(Stmt& s);
  void update(Stmt& s);
  void delete_row(Stmt& s);
  void assign_column(Stmt& s);
  // The row that a statement changes. False: it is none, and that was said.
  bool target_row(Expr& e, std::string_view what);
  bool settable(const Table& t, std::uint8_t column, Span at);
  void column_value(Expr& e, const Table& t, std::uint8_t column);
  bool writes_table(Span at);

  void complain(Span span, std::string message, std::string hint = {}) {
    if (failed_) return;
    failed_ = true;
    complaints_.push_back({span, std::move(message), std::move(hint)});
  }
  std::uint32_t line_of(Span span) const;
  std::string source_of(Span span) const { return std::string(source_.substr(span.offset, span.length)); }

  std::string_view source_;
  Syntax& syntax_;
  std::vector<Complaint>& complaints_;
  std::unique_ptr<Module> module_ = std::make_unique<Module>();
  std::map<std::string, Global, std::less<>> globals_;
  std::vector<bool> table_known_;  // its declaration was right, so uses of it can be checked
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
  bool in_cells_ = false;               // where `row` is the position
  bool effect_ = false;                 // the call that follows is a statement: it need not give anything
};

}  // namespace sluice::vm
