// What the parts of the parser share: the place in the tokens, and how to complain.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "vm/ast.h"
#include "vm/parser.h"

namespace sluice::vm {

inline constexpr std::uint16_t kDepthMax = 100;

// What an expression holds is one deeper than itself.
inline void deepen(Expr& e, const ExprPtr& part) {
  if (part && part->depth >= e.depth) e.depth = static_cast<std::uint16_t>(part->depth + 1);
}

std::string quoted(const Token& token, std::string_view source);

// Thread: one parse.
class ParserBase {
 public:
  ParserBase(std::string_view source, std::vector<Token> tokens, std::vector<Complaint>& complaints)
      : source_(source), tokens_(std::move(tokens)), complaints_(complaints) {
    for (std::size_t i = 0; i + 1 < tokens_.size() && !own_count_; ++i)
      own_count_ = tokens_[i].kind == Tok::word && tokens_[i].text == "fn" && tokens_[i + 1].text == "count";
  }

 protected:
  const Token& token(std::size_t ahead = 0) const {
    return tokens_[at_ + ahead < tokens_.size() ? at_ + ahead : tokens_.size() - 1];
  }
  bool at(Tok kind) const { return token().kind == kind; }
  static bool is_word(const Token& t) { return t.kind == Tok::name || t.kind == Tok::word; }
  bool at_word(std::string_view text) const { return is_word(token()) && token().text == text; }
  void advance() {
    if (at_ + 1 < tokens_.size()) ++at_;
  }
  bool accept(Tok kind) {
    if (!at(kind)) return false;
    advance();
    return true;
  }
  // A word that means something here, unless it is the name of the column that follows: `max: num`.
  bool at_clause(std::string_view text) const { return at_word(text) && token(1).kind != Tok::colon; }
  bool accept_word(std::string_view text) {
    if (!at_word(text)) return false;
    advance();
    return true;
  }
  void mark(Mark m) { tokens_[at_].mark = m; }
  Span last() const { return at_ == 0 ? Span{} : tokens_[at_ - 1].span; }

  // The first complaint of a declaration counts; the parser then unwinds without further ones.
  void complain(Span span, std::string message, std::string hint = {}) {
    if (failed_) return;
    failed_ = true;
    complaints_.push_back({span, std::move(message), std::move(hint)});
  }
  void expected(std::string_view what, std::string hint = {});
  bool need(Tok kind, std::string_view what) {
    if (accept(kind)) return true;
    expected(what);
    return false;
  }
  bool need_word(std::string_view text) {
    if (accept_word(text)) return true;
    expected("`" + std::string(text) + "`");
    return false;
  }
  // A name that can be used bare in an expression, so no word of the language.
  Name need_name(std::string_view what);
  // A name of an input, a view or a column: any word.
  Name need_any_word(std::string_view what);

  std::string_view source_;
  std::vector<Token> tokens_;
  std::vector<Complaint>& complaints_;
  std::size_t at_ = 0;
  bool failed_ = false;
  bool own_count_ = false;  // the module has a function `count`, so `count(x)` calls it
  int nesting_ = 0;
};

// Counts how deep the parser is; `too_deep` once it is beyond what can be walked recursively.
class Nested {
 public:
  explicit Nested(int& depth) : depth_(depth) { ++depth_; }
  ~Nested() { --depth_; }
  Nested(const Nested&) = delete;
  Nested& operator=(const Nested&) = delete;
  bool too_deep() const { return depth_ > kDepthMax; }

 private:
  int& depth_;
};

class ExprParser : public ParserBase {
 public:
  using ParserBase::ParserBase;

 protected:
  // None of these returns null, also after an error.
  ExprPtr expression();
  ExprPtr sum();
  std::vector<Cell> cells();
  ExprPtr path();
  // --- queries (parse_query.cc)
  QueryPtr query();
  // After `in`: rows, not numbers. A first number that starts like a query goes in parentheses.
  bool at_query() const;
  bool at_query_clause() const;

 private:
  ExprPtr logical_or();
  ExprPtr logical_and();
  ExprPtr logical_not();
  ExprPtr comparison();
  ExprPtr product();
  ExprPtr unary();
  ExprPtr primary();
  ExprPtr name_or_call();
  ExprPtr joined_text();
  ExprPtr make(ExprKind kind, Span span) const;
  ExprPtr binary(ExprKind kind, ExprPtr left, Span at, ExprPtr right);
  // False: stopped behind the first argument of what is an aggregate.
  bool arguments(Expr& to, Tok close, std::string_view what);
  // --- queries (parse_query.cc)
  ExprPtr aggregate(ExprPtr call);
  ExprPtr rank(ExprPtr call);
  ExprPtr count(ExprPtr call);
  bool at_count() const;
  bool bound(Query& q);
  void foreign_clause();
};

class StmtParser : public ExprParser {
 public:
  using ExprParser::ExprParser;

 protected:
  bool unindented() const;
  bool starts_declaration() const;
  Block block(Span* end = nullptr);

 private:
  StmtPtr start(StmtKind kind);
  StmtPtr statement();
  StmtPtr local();
  StmtPtr insert();
  StmtPtr update();
  StmtPtr remove();
  ExprPtr condition();
  StmtPtr branch();
  StmtPtr loop();
  StmtPtr check();
  StmtPtr reply();
  StmtPtr splice();
  StmtPtr assignment();
  bool starts_expression() const;
};

// Slots and tables (parse_table.cc).
class TableParser : public StmtParser {
 public:
  using StmtParser::StmtParser;

 protected:
  SlotSyntax slot();
  std::optional<Name> was();
  TableSyntax table(Span from);

 private:
  void size(TableSyntax& t);
  void column(TableSyntax& t);
  void clause(TableSyntax& t);
  void total(TableSyntax& t, Span from);
  std::vector<PartSyntax> columns_of(std::string_view what, std::string_view hint);
  // `desc` where the order is fixed.
  void rising(const std::vector<PartSyntax>& parts, std::string_view message, std::string_view hint);
};

}  // namespace sluice::vm
