// Queries over rows, and the expressions that hold one.
#include <algorithm>

#include "vm/parse_base.h"

namespace sluice::vm {
namespace {

constexpr std::string_view kClauses[] = {"by", "from", "above", "to", "below", "desc", "limit", "where"};
constexpr std::string_view kAggregates[] = {"sum", "min", "max", "first", "count", "any", "all"};

// What other query languages would have here.
struct Foreign {
  std::string_view word, hint;
};
constexpr std::string_view kOrder = "rows come in the order of the key, or of an index: `t by index`";
constexpr Foreign kForeign[] = {
    {"order", kOrder},
    {"sort", kOrder},
    {"sorted", kOrder},
    {"asc", "rows rise unless there is a `desc`"},
    {"between", "write `from a to b`"},
    {"offset", "start behind a row with `above`; views are paged by who asks"},
    {"skip", "start behind a row with `above`; views are paged by who asks"},
    {"group", "keep a `total` in the table: `total n count by a`"},
    {"having", "keep a `total` in the table: `total n count by a`"},
    {"join", "read the other row by its key, as in `other[r.id].name`"},
};

bool contains(const auto& list, std::string_view word) {
  return std::find(std::begin(list), std::end(list), word) != std::end(list);
}

void deepen_by(Expr& e, const Query& q) {
  for (const ExprPtr& g : q.group) deepen(e, g);
  for (const ExprPtr* part : {&q.low, &q.high, &q.limit, &q.where}) deepen(e, *part);
}

}  // namespace

bool ExprParser::at_query_clause() const { return is_word(token()) && contains(kClauses, token().text); }

bool ExprParser::at_query() const {
  if (!at(Tok::name)) return false;
  const Token& next = token(1);
  return next.kind == Tok::lbracket || next.kind == Tok::lbrace || is_word(next);
}

// Behind `count(`: a query, not the row of an aggregate.
bool ExprParser::at_count() const {
  if (!at(Tok::name)) return false;
  const Token& next = token(1);
  return next.kind == Tok::lbracket || next.kind == Tok::rparen ||
         (is_word(next) && contains(kClauses, next.text));
}

ExprPtr ExprParser::count(ExprPtr call) {
  call->kind = ExprKind::count;
  // A bound is a sum, and a sum in one would go round without passing expression().
  Nested nested(nesting_);
  if (nested.too_deep()) complain(call->at, "this is nested too deep", "give parts of it names with `let`");
  call->query = failed_ ? std::make_unique<Query>() : query();
  if (!failed_) need(Tok::rparen, "`)`");
  deepen_by(*call, *call->query);
  call->span = join(call->span, last());
  return call;
}

// `rank(e by index)`, read up to the `by`.
ExprPtr ExprParser::rank(ExprPtr call) {
  call->kind = ExprKind::rank;
  if (call->text != "rank")
    complain(token().span, "`by` stands in a query or in `rank`",
             "write `" + call->text + "(r.column for r in t by index)`");
  advance();
  call->row = need_name("the name of an index");
  if (!failed_) need(Tok::rparen, "`)`");
  call->span = join(call->span, last());
  return call;
}

// `sum(e for r in q)`, read up to the `for`.
ExprPtr ExprParser::aggregate(ExprPtr call) {
  call->kind = ExprKind::aggregate;
  if (!at_word("for"))
    expected("`for`", "write `" + call->text + "(r.column for r in t ...)`");
  else if (!contains(kAggregates, call->text))
    complain(call->at, "`" + call->text + "` does not go over rows",
             call->text == "avg" || call->text == "average" || call->text == "mean"
                 ? "write `sum(... for r in t) / count(t)`"
                 : "sum, min, max, first, count, any and all do");
  if (failed_) return call;
  mark(Mark::clause);
  advance();
  call->row = need_name("a name for the row");
  if (!failed_) need_word("in");
  if (failed_) return call;
  if (call->text == "count") {
    const Expr& counted = *call->args[0];
    if (counted.kind != ExprKind::name || counted.text != call->row.text)
      complain(counted.span, "`count` counts rows",
               "write `count(" + call->row.text + " for " + call->row.text + " in ...)`; `where` says which");
    call->args.clear();
  }
  call->query = query();
  if (!failed_) need(Tok::rparen, "`)`");
  deepen_by(*call, *call->query);
  call->span = join(call->span, last());
  return call;
}

// One of `from above to below`; false: there is none.
bool ExprParser::bound(Query& q) {
  const bool low = at_word("from") || at_word("above");
  if (!low && !at_word("to") && !at_word("below")) return false;
  mark(Mark::clause);
  const Token& t = token();
  if ((low ? q.low : q.high) != nullptr) {
    complain(t.span, low ? "there is a lower bound already" : "there is an upper bound already",
             low ? "keep one of `from` (and up) and `above` (beyond)"
                 : "keep one of `to` (up to and with it) and `below` (short of it)");
    return true;
  }
  (low ? q.low_excluded : q.high_excluded) = t.text == "above" || t.text == "below";
  (low ? q.low_at : q.high_at) = t.span;
  advance();
  (low ? q.low : q.high) = sum();
  return true;
}

void ExprParser::foreign_clause() {
  if (!is_word(token())) return;
  for (const Foreign& f : kForeign)
    if (token().text == f.word)
      return complain(token().span, "there is no `" + token().text + "` in a query", std::string(f.hint));
}

QueryPtr ExprParser::query() {
  auto q = std::make_unique<Query>();
  const Span from = token().span;
  q->span = from;
  q->table = need_name("the name of a table");
  if (!failed_ && accept_word("by")) q->index = need_name("the name of an index");
  if (!failed_ && at(Tok::lbracket)) {
    q->group_at = token().span;
    advance();
    if (at(Tok::rbracket))
      complain(join(q->group_at, token().span), "these brackets hold nothing",
               "leave them out to mean all rows");
    Expr group;
    if (!failed_) arguments(group, Tok::rbracket, "`,` or `]`");
    q->group = std::move(group.args);
    q->group_at = join(q->group_at, last());
    if (at_word("by"))
      complain(token().span, "`by` comes before the brackets",
               "write `" + q->table.text + " by " + (is_word(token(1)) ? token(1).text : "index") + "[...]`");
  }
  while (!failed_) {
    if (at_word("desc")) {
      if (q->desc_at.length != 0) complain(token().span, "there is a `desc` already", "keep one of them");
      q->desc_at = token().span;
      mark(Mark::clause);
      advance();
    } else if (!bound(*q)) {
      break;
    }
  }
  if (!failed_ && at_word("limit")) {
    q->limit_at = token().span;
    mark(Mark::clause);
    advance();
    q->limit = sum();
  }
  if (!failed_ && at_word("where")) {
    q->where_at = token().span;
    mark(Mark::clause);
    advance();
    q->where = expression();
    if (at(Tok::assign)) complain(token().span, "`=` sets a value", "compare with `==`");
  }
  // What follows a query is never one of its words, so it is one in the wrong place.
  if (!failed_ && at_query_clause()) {
    const std::string word = token().text;
    if (word == "limit" && q->where)
      complain(token().span, "`limit` comes before `where`",
               "the limit is how many rows are read; `where` then keeps some of them");
    else if (word == "by")
      complain(token().span, q->index ? "there is an order already" : "`by` follows the table",
               q->index ? "rows are read in the order of one index"
                        : "write `" + q->table.text + " by " + (is_word(token(1)) ? token(1).text : "index") +
                              " ...`");
    else if (word == (q->where ? "where" : "limit"))
      complain(token().span, "there is a `" + word + "` already",
               q->where ? "join the conditions with `and`" : "keep one of them");
    else
      complain(token().span, "`" + word + "` comes before `" + (q->limit ? "limit" : "where") + "`",
               "bounds and `desc` stand first, then `limit`, then `where`");
  }
  if (!failed_) foreign_clause();
  q->span = join(from, last());
  return q;
}

}  // namespace sluice::vm
