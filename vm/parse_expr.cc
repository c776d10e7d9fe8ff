// Expressions and records.
#include "vm/lexer.h"
#include "vm/parse_base.h"

namespace sluice::vm {

std::string quoted(const Token& token, std::string_view source) {
  if (token.kind == Tok::end) return "the end of the file";
  if (token.kind == Tok::text || token.kind == Tok::text_head) return "a text";
  if (token.kind == Tok::text_mid || token.kind == Tok::text_tail) return "`}`";
  return "`" + std::string(source.substr(token.span.offset, token.span.length)) + "`";
}

void ParserBase::expected(std::string_view what, std::string hint) {
  const Token& t = token();
  if (t.kind == Tok::error) {
    complain(t.span, t.text, t.hint);
    return;
  }
  complain(t.span, "expected " + std::string(what) + ", found " + quoted(t, source_), std::move(hint));
}

Name ParserBase::need_name(std::string_view what) {
  const Token& t = token();
  if (t.kind == Tok::word) {
    complain(t.span, "`" + t.text + "` is a word of the language", "choose another name");
    return {t.text, t.span};
  }
  if (t.kind != Tok::name) {
    expected(what);
    return {{}, t.span};
  }
  Name name{t.text, t.span};
  if (t.text == "now" || t.text == "seq" || t.text == "row" || t.text == "doc")
    complain(t.span, "`" + t.text + "` is kept by the language", "choose another name");
  advance();
  return name;
}

Name ParserBase::need_any_word(std::string_view what) {
  const Token& t = token();
  if (!is_word(t)) {
    expected(what);
    return {{}, t.span};
  }
  Name name{t.text, t.span};
  advance();
  return name;
}

ExprPtr ExprParser::make(ExprKind kind, Span span) const {
  auto e = std::make_unique<Expr>();
  e->kind = kind;
  e->span = span;
  e->at = span;
  return e;
}

ExprPtr ExprParser::binary(ExprKind kind, ExprPtr left, Span op_at, ExprPtr right) {
  ExprPtr e = make(kind, join(left->span, right->span));
  e->at = op_at;
  e->depth = static_cast<std::uint16_t>(1 + std::max(left->depth, right->depth));
  // A long chain is as deep as it is long, and whoever walks it recurses.
  if (e->depth > 2 * kDepthMax) {
    complain(op_at, "this expression is too long", "give parts of it names with `let`");
    return left;
  }
  e->args.push_back(std::move(left));
  e->args.push_back(std::move(right));
  return e;
}

ExprPtr ExprParser::expression() {
  Nested nested(nesting_);
  if (nested.too_deep()) {
    complain(token().span, "this is nested too deep", "give parts of it names with `let`, or use a function");
    return make(ExprKind::none, token().span);
  }
  ExprPtr left = logical_or();
  if (!at(Tok::coalesce) || failed_) return left;
  const Span op_at = token().span;
  advance();
  return binary(ExprKind::coalesce, std::move(left), op_at, expression());
}

ExprPtr ExprParser::logical_or() {
  ExprPtr left = logical_and();
  while (at_clause("or") && !failed_) {
    mark(Mark::clause);
    const Span op_at = token().span;
    advance();
    left = binary(ExprKind::logical_or, std::move(left), op_at, logical_and());
  }
  return left;
}

ExprPtr ExprParser::logical_and() {
  ExprPtr left = logical_not();
  while (at_clause("and") && !failed_) {
    mark(Mark::clause);
    const Span op_at = token().span;
    advance();
    left = binary(ExprKind::logical_and, std::move(left), op_at, logical_not());
  }
  return left;
}

ExprPtr ExprParser::logical_not() {
  if (!at_word("not")) return comparison();
  Nested nested(nesting_);
  const Span from = token().span;
  if (nested.too_deep()) complain(from, "this is nested too deep", "two `not` are none");
  if (failed_) return make(ExprKind::none, from);
  advance();
  ExprPtr inner = logical_not();
  ExprPtr e = make(ExprKind::logical_not, join(from, inner->span));
  e->at = from;
  e->depth = static_cast<std::uint16_t>(inner->depth + 1);
  e->args.push_back(std::move(inner));
  return e;
}

namespace {
std::optional<Operator> comparison_of(Tok kind) {
  switch (kind) {
    case Tok::eq:
      return Operator::eq;
    case Tok::ne:
      return Operator::ne;
    case Tok::lt:
      return Operator::lt;
    case Tok::le:
      return Operator::le;
    case Tok::gt:
      return Operator::gt;
    case Tok::ge:
      return Operator::ge;
    default:
      return std::nullopt;
  }
}
}  // namespace

ExprPtr ExprParser::comparison() {
  ExprPtr left = sum();
  const std::optional<Operator> op = comparison_of(token().kind);
  if (!op || failed_) return left;
  const Span op_at = token().span;
  advance();
  ExprPtr e = binary(ExprKind::binary, std::move(left), op_at, sum());
  e->op = *op;
  if (comparison_of(token().kind))
    complain(token().span, "comparisons do not chain", "write `a < b and b < c`");
  return e;
}

ExprPtr ExprParser::sum() {
  ExprPtr left = product();
  while ((at(Tok::plus) || at(Tok::minus)) && !failed_) {
    const Operator op = at(Tok::plus) ? Operator::add : Operator::subtract;
    const Span op_at = token().span;
    advance();
    left = binary(ExprKind::binary, std::move(left), op_at, product());
    left->op = op;
  }
  return left;
}

ExprPtr ExprParser::product() {
  ExprPtr left = unary();
  while ((at(Tok::star) || at(Tok::slash) || at(Tok::percent)) && !failed_) {
    const Operator op = at(Tok::star)    ? Operator::multiply
                        : at(Tok::slash) ? Operator::divide
                                         : Operator::modulo;
    const Span op_at = token().span;
    advance();
    left = binary(ExprKind::binary, std::move(left), op_at, unary());
    left->op = op;
  }
  return left;
}

ExprPtr ExprParser::unary() {
  const bool minus = at(Tok::minus);
  if (!minus && !at_word("has")) return path();
  Nested nested(nesting_);
  const Span from = token().span;
  if (nested.too_deep()) complain(from, "this is nested too deep", "give parts of it names with `let`");
  if (failed_) return make(ExprKind::none, from);
  if (minus) mark(Mark::sign);
  advance();
  ExprPtr inner = minus ? unary() : path();
  ExprPtr e = make(minus ? ExprKind::negate : ExprKind::has, join(from, inner->span));
  e->at = from;
  e->depth = static_cast<std::uint16_t>(inner->depth + 1);
  e->args.push_back(std::move(inner));
  return e;
}

ExprPtr ExprParser::path() {
  ExprPtr e = primary();
  while (at(Tok::dot) && !failed_) {
    advance();
    const Name word = need_any_word("a name");
    ExprPtr member = make(ExprKind::member, join(e->span, word.span));
    member->at = word.span;
    member->text = word.text;
    member->depth = static_cast<std::uint16_t>(e->depth + 1);
    if (member->depth > 2 * kDepthMax)
      complain(word.span, "this expression is too long", "give parts of it names with `let`");
    member->args.push_back(std::move(e));
    e = std::move(member);
  }
  return e;
}

ExprPtr ExprParser::primary() {
  const Token& t = token();
  switch (t.kind) {
    case Tok::number: {
      ExprPtr e = make(ExprKind::number, t.span);
      e->number = t.number;
      advance();
      return e;
    }
    case Tok::text: {
      ExprPtr e = make(ExprKind::text, t.span);
      e->text = t.text;
      advance();
      return e;
    }
    case Tok::text_head:
      return joined_text();
    case Tok::lparen: {
      const Span from = t.span;
      advance();
      ExprPtr e = expression();
      need(Tok::rparen, "`)`");
      e->span = join(from, last());
      return e;
    }
    case Tok::name:
      return name_or_call();
    case Tok::word:
      if (t.text == "true" || t.text == "false") {
        ExprPtr e = make(ExprKind::boolean, t.span);
        e->truth = t.text == "true";
        advance();
        return e;
      }
      if (t.text == "none") {
        ExprPtr e = make(ExprKind::none, t.span);
        advance();
        return e;
      }
      if (t.text == "if") {
        const Span from = t.span;
        advance();
        ExprPtr e = make(ExprKind::conditional, from);
        e->at = from;
        e->args.push_back(expression());
        if (!failed_ && !at_word("then")) expected("`then`", "as a value: `if c then a else b`");
        mark(Mark::clause);
        accept_word("then");
        e->args.push_back(expression());
        if (!failed_ && !at_word("else"))
          expected("`else`", "as a value, an `if` needs both: `if c then a else b`");
        mark(Mark::clause);
        accept_word("else");
        e->args.push_back(expression());
        for (const ExprPtr& a : e->args)
          e->depth = std::max<std::uint16_t>(e->depth, static_cast<std::uint16_t>(a->depth + 1));
        e->span = join(from, e->args.back()->span);
        return e;
      }
      if (t.text == "insert" || t.text == "put")
        complain(t.span, "a row is inserted by a statement", "write `let id = insert t { ... }`");
      if (t.text == "update")
        complain(t.span, "`update` gives no value", "write it as a statement of its own");
      if (t.text == "for")
        complain(t.span, "rows are no value",
                 "write `view v = for r in t { r.a }`, or `sum(r.a for r in t)`");
      break;
    case Tok::plus:
      expected("a value", "to add one, write `x += 1`");
      break;
    default:
      break;
  }
  expected("a value");
  return make(ExprKind::none, t.span);
}

ExprPtr ExprParser::joined_text() {
  const Span from = token().span;
  ExprPtr e = make(ExprKind::joined, from);
  auto literal = [&] {
    if (!token().text.empty()) {
      ExprPtr part = make(ExprKind::text, token().span);
      part->text = token().text;
      e->args.push_back(std::move(part));
    }
    advance();
  };
  literal();
  while (!failed_) {
    ExprPtr value = expression();
    e->depth = std::max<std::uint16_t>(e->depth, static_cast<std::uint16_t>(value->depth + 1));
    e->args.push_back(std::move(value));
    if (failed_) break;
    if (at(Tok::text_tail)) {
      literal();
      break;
    }
    if (!at(Tok::text_mid)) {
      expected("`}`", "what is inserted in a text ends with `}`");
      break;
    }
    literal();
  }
  e->span = join(from, last());
  return e;
}

bool ExprParser::arguments(Expr& to, Tok close, std::string_view what) {
  if (accept(close)) return true;
  while (!failed_) {
    ExprPtr arg = expression();
    deepen(to, arg);
    to.args.push_back(std::move(arg));
    if (to.kind == ExprKind::call && to.args.size() == 1 && (at_word("for") || at_query_clause()))
      return false;
    if (accept(Tok::comma)) continue;
    need(close, what);
    return true;
  }
  return true;
}

ExprPtr ExprParser::name_or_call() {
  const Token& t = token();
  ExprPtr e = make(ExprKind::name, t.span);
  e->text = t.text;
  advance();
  if (at(Tok::lparen)) {
    mark(Mark::call);
    advance();
    e->kind = ExprKind::call;
    if (e->text == "count" && !own_count_ && at_count()) return count(std::move(e));
    if (!arguments(*e, Tok::rparen, "`,` or `)`"))
      return at_word("by") ? rank(std::move(e)) : aggregate(std::move(e));
  } else if (accept(Tok::lbracket)) {
    e->kind = ExprKind::index;
    arguments(*e, Tok::rbracket, "`,` or `]`");
  }
  e->span = join(e->span, last());
  return e;
}

std::vector<Cell> ExprParser::cells() {
  std::vector<Cell> out;
  mark(Mark::list);
  need(Tok::lbrace, "`{`");
  while (!failed_ && !accept(Tok::rbrace)) {
    Cell cell;
    mark(Mark::item);
    if (is_word(token()) && token(1).kind == Tok::colon) {
      cell.name = {token().text, token().span};
      advance();
      advance();
      cell.value = expression();
    } else {
      cell.value = path();
      const Expr& e = *cell.value;
      if (at(Tok::assign)) expected("`:`", "write `name: value`");
      if (e.kind == ExprKind::name || e.kind == ExprKind::member)
        cell.name = {e.text, e.at};
      else
        complain(e.span, "this needs a name", "write `name: ...`");
    }
    out.push_back(std::move(cell));
    if (accept(Tok::comma) || at(Tok::rbrace)) continue;
    expected("`,` or `}`", "what is not a name alone needs one: `name: ...`");
  }
  return out;
}

}  // namespace sluice::vm
