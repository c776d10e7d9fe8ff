// Statements.
#include <algorithm>

#include "vm/parse_base.h"

namespace sluice::vm {
namespace {

constexpr std::string_view kDeclarations[] = {"module",  "const", "state", "table", "documents", "input",
                                              "message", "fn",    "on",    "view",  "drop"};

}  // namespace

bool StmtParser::unindented() const {
  const std::uint32_t from = token().span.offset;
  return from == 0 || source_[from - 1] == '\n';
}
bool StmtParser::starts_declaration() const {
  return is_word(token()) && token(1).kind != Tok::colon &&
         std::find(std::begin(kDeclarations), std::end(kDeclarations), token().text) !=
             std::end(kDeclarations);
}

Block StmtParser::block(Span* end) {
  Block out;
  Nested nested(nesting_);
  if (nested.too_deep()) complain(token().span, "this is nested too deep", "use a function");
  if (failed_) return out;
  mark(Mark::block);
  need(Tok::lbrace, "`{`");
  while (!failed_ && !at(Tok::rbrace)) {
    mark(Mark::item);
    StmtPtr s = statement();
    if (s) out.push_back(std::move(s));
  }
  if (end) *end = token().span;
  if (!failed_) advance();
  return out;
}

StmtPtr StmtParser::start(StmtKind kind) {
  auto s = std::make_unique<Stmt>();
  s->kind = kind;
  s->at = token().span;
  return s;
}

StmtPtr StmtParser::statement() {
  if (at_word("let") || at_word("var")) return local();
  if (at_word("if")) return branch();
  if (at_word("for")) return loop();
  if (at_word("check") || at_word("fail")) return check();
  if (at_word("reply")) return reply();
  if (at_word("return")) {
    StmtPtr s = start(StmtKind::give);
    advance();
    if (starts_expression()) s->value = expression();
    return s;
  }
  if (at_word("append")) {
    StmtPtr s = start(StmtKind::append);
    advance();
    if (need_word("doc")) s->value = expression();
    return s;
  }
  if (at_word("splice")) return splice();
  if (at_word("delete")) return remove();
  if (at_word("insert") || at_word("put")) return insert();
  if (at_word("update")) return update();
  if (at(Tok::name)) return assignment();
  if (at(Tok::end)) {
    expected("`}`", "a block ends with `}`");
    return nullptr;
  }
  if (at_word("else")) {
    expected("a statement", "an `else` follows the `}` of its `if`");
    return nullptr;
  }
  expected("a statement",
           starts_declaration() && unindented() ? "the block above is not closed with `}`" : "");
  return nullptr;
}

StmtPtr StmtParser::local() {
  StmtPtr s = start(at_word("let") ? StmtKind::let : StmtKind::var);
  advance();
  s->name = need_name("a name");
  if (!failed_) need(Tok::assign, "`=`");
  if (failed_) return s;
  if (at_word("insert") || at_word("put")) {
    StmtPtr row = insert();
    row->name = std::move(s->name);
    row->changeable = s->kind == StmtKind::var;
    return row;
  }
  s->value = expression();
  return s;
}

StmtPtr StmtParser::insert() {
  StmtPtr s = start(at_word("insert") ? StmtKind::insert : StmtKind::put);
  const std::string word = token().text;
  advance();
  if (at_word("into") && is_word(token(1)))
    complain(token().span, "there is no `into`", "write `" + word + " " + token(1).text + " { ... }`");
  s->table = need_name("the name of a table");
  if (!failed_ && !at(Tok::lbrace))
    expected("`{`",
             at(Tok::lbracket)
                 ? "the key stands with the other columns: `" + word + " " + s->table.text + " { ... }`"
                 : "a row is written `" + word + " " + s->table.text + " { column: value }`");
  if (!failed_) s->cells = cells();
  return s;
}

StmtPtr StmtParser::update() {
  StmtPtr s = start(StmtKind::update);
  advance();
  s->target = path();
  if (!failed_ && !at(Tok::lbrace))
    expected("`{`", "write `update t[key] { column: value }`, or set one column: `t[key].column = value`");
  const Span open = token().span;
  if (!failed_) s->cells = cells();
  if (failed_) return s;
  if (s->cells.empty())
    complain(join(open, last()), "this changes no column", "write `column: value` between the braces");
  // What names itself would be the column as it is, or a local that happens to have its name.
  for (const Cell& c : s->cells)
    if (c.name.span.offset >= c.value->span.offset)
      complain(c.value->span, "say what `" + c.name.text + "` becomes", "write `" + c.name.text + ": ...`");
  return s;
}

StmtPtr StmtParser::remove() {
  StmtPtr s = start(StmtKind::delete_document);
  advance();
  if (at_word("doc") && token(1).kind != Tok::lbracket) {
    advance();
    return s;
  }
  s->kind = StmtKind::delete_row;
  if (at_word("from") && is_word(token(1)))
    complain(
        token().span, "there is no `delete from`",
        "write `delete " + token(1).text + "[key]`, or `for r in " + token(1).text + " ... { delete r }`");
  s->target = path();
  if (failed_) return s;
  const Expr& t = *s->target;
  if (t.kind == ExprKind::member)
    complain(
        t.span, "`delete` removes a whole row",
        "write `" + std::string(source_.substr(t.span.offset, t.span.length)) + " = none` for one column");
  if (at_query_clause())
    complain(token().span, "`delete` removes one row",
             "for several, write `for r in " + t.text + " ... { delete r }`");
  return s;
}

// A condition, and the usual slip in one.
ExprPtr StmtParser::condition() {
  ExprPtr e = expression();
  if (at(Tok::assign)) complain(token().span, "`=` sets a value", "compare with `==`");
  return e;
}

StmtPtr StmtParser::branch() {
  Nested nested(nesting_);
  StmtPtr s = start(StmtKind::branch);
  if (nested.too_deep()) complain(s->at, "this is nested too deep", "use a function");
  if (failed_) return s;
  advance();
  s->value = condition();
  if (!failed_) s->body = block();
  if (failed_ || !accept_word("else")) return s;
  if (at_word("if"))
    s->otherwise.push_back(branch());
  else
    s->otherwise = block();
  return s;
}

StmtPtr StmtParser::loop() {
  StmtPtr s = start(StmtKind::count_loop);
  advance();
  s->name = need_name("a name");
  if (!failed_) need_word("in");
  if (failed_) return s;
  if (at_query()) {
    s->kind = StmtKind::row_loop;
    s->query = query();
    if (!failed_ && (at(Tok::dot) || at(Tok::dotdot)))
      complain(s->query->span, "a first number like this goes in parentheses",
               "write `for " + s->name.text + " in (t[key].column)..b limit 100 { ... }`");
  } else {
    s->first = sum();
    if (!failed_ && !at(Tok::dotdot))
      expected("`..`", "write `for " + s->name.text + " in a..b limit 100 { ... }`");
    if (!failed_) advance();
    if (!failed_) s->last = sum();
    if (!failed_ && !at_word("limit"))
      expected("`limit`",
               "say how many rounds at most: `for " + s->name.text + " in a..b limit 100 { ... }`");
    if (!failed_) advance();
    if (!failed_) s->limit = sum();
  }
  if (!failed_) s->body = block();
  return s;
}

StmtPtr StmtParser::check() {
  StmtPtr s = start(at_word("check") ? StmtKind::check : StmtKind::fail);
  advance();
  if (s->kind == StmtKind::check) {
    s->value = condition();
    if (!failed_ && !at_word("else")) expected("`else`", "say how it fails: `check ... else limit \"why\"`");
    mark(Mark::clause);
    if (!failed_) advance();
  }
  if (failed_) return s;
  s->name = {token().text, token().span};
  for (int f = 1; f < kFaults; ++f)
    if (is_word(token()) && token().text == vm::name(static_cast<Fault>(f))) s->fault = static_cast<Fault>(f);
  if (s->fault == Fault::none) {
    expected("a fault", "faults are divide, non_finite, clamp, limit, not_found, encoding, exists, denied");
    return s;
  }
  advance();
  if (at(Tok::text) || at(Tok::text_head)) s->text = sum();
  return s;
}

StmtPtr StmtParser::reply() {
  StmtPtr s = start(StmtKind::reply_nothing);
  advance();
  if (at(Tok::lbrace)) {
    s->kind = StmtKind::reply_record;
    s->cells = cells();
  } else if (starts_expression()) {
    s->kind = StmtKind::reply_value;
    s->value = expression();
  }
  return s;
}

StmtPtr StmtParser::splice() {
  StmtPtr s = start(StmtKind::splice);
  advance();
  if (!need_word("doc") || !need_word("at")) return s;
  s->first = sum();
  if (failed_ || !need_word("remove")) return s;
  s->last = sum();
  if (failed_ || !need_word("insert")) return s;
  s->value = expression();
  return s;
}

StmtPtr StmtParser::assignment() {
  StmtPtr s = start(StmtKind::assign);
  s->target = path();
  if (failed_) return s;
  const Token& t = token();
  switch (t.kind) {
    case Tok::assign:
      break;
    case Tok::plus_assign:
      s->op = Operator::add;
      break;
    case Tok::minus_assign:
      s->op = Operator::subtract;
      break;
    case Tok::star_assign:
      s->op = Operator::multiply;
      break;
    case Tok::slash_assign:
      s->op = Operator::divide;
      break;
    default:
      if (s->target->kind == ExprKind::call || s->target->kind == ExprKind::aggregate) {
        s->kind = StmtKind::call;
        s->value = std::move(s->target);
        return s;
      }
      if ((at(Tok::plus) || at(Tok::minus)) && token(1).kind == t.kind)
        complain(join(t.span, token(1).span), at(Tok::plus) ? "there is no `++`" : "there is no `--`",
                 at(Tok::plus) ? "write `x += 1`" : "write `x -= 1`");
      expected(
          "`=`",
          "a statement sets something, calls a function or is one of let var if for check fail reply return");
      return s;
  }
  s->op_at = t.span;
  if (s->target->kind == ExprKind::index)
    complain(s->target->span, "a row is not set as a whole",
             "write `put " + s->target->text + " { ... }`, or one column: `x.column = ...`");
  advance();
  if (!failed_) s->value = expression();
  return s;
}

// A word that can begin a statement does not begin a value, but for `if`, which the grammar reads as a value
// here.
bool StmtParser::starts_expression() const {
  switch (token().kind) {
    case Tok::number:
    case Tok::text:
    case Tok::text_head:
    case Tok::lparen:
    case Tok::minus:
    case Tok::error:
      return true;
    case Tok::name:
      // `reply` alone, then an assignment that is never reached, reads better as that.
      return token(1).kind != Tok::assign;
    case Tok::word:
      return at_word("true") || at_word("false") || at_word("none") || at_word("not") || at_word("has") ||
             at_word("if");
    default:
      return false;
  }
}

}  // namespace sluice::vm
