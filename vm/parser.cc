// Declarations and statements.
#include "vm/parser.h"

#include <algorithm>

#include "vm/lexer.h"
#include "vm/parse_base.h"

namespace sluice::vm {
namespace {

constexpr std::string_view kDeclarations[] = {"module", "const", "state", "table", "documents", "input",
                                              "message", "fn",   "on",    "view",  "drop"};

class Parser : public ExprParser {
 public:
  using ExprParser::ExprParser;

  Syntax run() {
    header();
    while (!at(Tok::end)) {
      failed_ = false;
      const std::size_t before = at_;
      declaration();
      if (!failed_) continue;
      // What could not even begin a declaration is stepped over, so that reading always gets on.
      if (at_ == before) advance();
      resume();
    }
    return std::move(syntax_);
  }

 private:
  // --- declarations
  void header() {
    if (!at_word("module")) {
      expected("`module`", "a module begins with `module NAME 1`");
      resume();
      return;
    }
    advance();
    syntax_.name = need_name("the name of the module");
    if (!failed_ && !at(Tok::number)) expected("a version", "write `module " + syntax_.name.text + " 1`");
    if (!failed_) {
      syntax_.version = token().number;
      syntax_.version_at = token().span;
      advance();
    }
    if (failed_) resume();
  }

  // To the next declaration: a word that starts one, first on its line and outside braces or unindented.
  void resume() {
    int braces = 0;
    for (; !at(Tok::end); advance()) {
      if (at(Tok::lbrace)) ++braces;
      if (at(Tok::rbrace) && braces > 0) --braces;
      if (starts_declaration() && token().first_on_line && (braces == 0 || unindented())) return;
    }
  }
  bool unindented() const {
    const std::uint32_t from = token().span.offset;
    return from == 0 || source_[from - 1] == '\n';
  }
  bool starts_declaration() const {
    return is_word(token()) && std::find(std::begin(kDeclarations), std::end(kDeclarations), token().text) != std::end(kDeclarations);
  }

  void declaration() {
    const Token& t = token();
    if (accept_word("const")) return const_declaration();
    if (accept_word("state")) return state_declaration();
    if (accept_word("table")) return table_declaration(t.span);
    if (accept_word("documents")) return documents_declaration(t.span);
    if (accept_word("input")) return input_declaration();
    if (accept_word("message")) return message_declaration();
    if (accept_word("fn")) return fn_declaration();
    if (accept_word("on")) return on_declaration();
    if (accept_word("view")) return view_declaration();
    if (accept_word("drop")) return drop_declaration(t.span);
    if (at_word("module")) return complain(t.span, "the module has its name already", "one file is one module");
    expected("a declaration", "declarations are const, state, documents, input, message, fn, on and view");
  }

  void const_declaration() {
    ConstSyntax c;
    c.name = need_name("a name");
    if (!failed_) need(Tok::assign, "`=`");
    if (!failed_) c.value = expression();
    if (!failed_) syntax_.consts.push_back(std::move(c));
  }

  void state_declaration() {
    StateSyntax s;
    s.name = need_name("a name");
    if (!failed_) need(Tok::colon, "`:`");
    if (!failed_) s.slot = slot();
    if (!failed_ && accept(Tok::assign)) s.first = expression();
    if (!failed_) was();
    if (!failed_) syntax_.states.push_back(std::move(s));
  }

  void was() {
    if (!at_word("was")) return;
    syntax_.unserved.push_back({Unserved::What::was, token().span});
    advance();
    need_any_word("the old name");
  }

  // Read as far as its end; its columns mean nothing to this version.
  void table_declaration(Span at_table) {
    const Name name = need_name("a name");
    if (failed_) return;
    syntax_.tables.push_back(name);
    syntax_.unserved.push_back({Unserved::What::table, at_table});
    while (!at(Tok::lbrace)) {
      if (at(Tok::end) || starts_declaration()) return expected("`{`");
      advance();
    }
    int braces = 0;
    do {
      if (at(Tok::end)) return expected("`}`");
      if (at(Tok::lbrace)) ++braces;
      if (at(Tok::rbrace)) --braces;
      advance();
    } while (braces > 0);
  }

  void documents_declaration(Span from) {
    DocumentsSyntax d;
    d.at = from;
    if (accept_word("text")) d.kind = DocumentKind::text;
    else if (accept_word("bytes")) d.kind = DocumentKind::bytes;
    else if (accept_word("json")) d.kind = DocumentKind::json;
    else return expected("text, bytes or json", "write `documents text`");
    if (accept_word("max")) d.max = sum();
    if (!failed_) syntax_.documents.push_back(std::move(d));
  }

  void input_declaration() {
    InputSyntax i;
    const Span kind = token().span;
    if (accept_word("text")) i.kind = InputKind::text;
    else if (accept_word("key")) i.kind = InputKind::key;
    else if (accept_word("timer")) i.kind = InputKind::timer;
    else return expected("text, key or timer", "inputs with fields are written `message NAME { ... }`");
    i.name = need_any_word("a name");
    if (failed_) return;
    if (i.kind == InputKind::text && accept_word("max")) i.max = sum();
    if (i.kind == InputKind::timer) {
      syntax_.unserved.push_back({Unserved::What::timer, kind});
      if (need_word("every")) sum();
    }
    if (!failed_) syntax_.inputs.push_back(std::move(i));
  }

  void message_declaration() {
    InputSyntax m;
    m.kind = InputKind::message;
    m.name = need_any_word("a name");
    if (failed_) return;
    if (at_word("keyed")) {
      m.keyed_at = token().span;
      advance();
    }
    need(Tok::lbrace, "`{`");
    while (!failed_ && !accept(Tok::rbrace)) {
      FieldSyntax f;
      f.name = need_name("the name of a field");
      if (!failed_) need(Tok::colon, "`:`");
      if (!failed_) f.slot = slot();
      if (failed_) return;
      m.fields.push_back(std::move(f));
      if (accept(Tok::comma) || at(Tok::rbrace)) continue;
      expected("`,` or `}`");
    }
    if (!failed_) syntax_.inputs.push_back(std::move(m));
  }

  SlotSyntax slot() {
    SlotSyntax s;
    struct BaseName {
      std::string_view name;
      Base base;
    };
    static constexpr BaseName kBases[] = {{"num", Base::num},   {"int", Base::integer}, {"u32", Base::u32}, {"bool", Base::boolean},
                                          {"text", Base::text}, {"slug", Base::slug},   {"bytes", Base::bytes}};
    s.base_at = token().span;
    const auto found = std::find_if(std::begin(kBases), std::end(kBases), [&](const BaseName& b) { return at_word(b.name); });
    if (found == std::end(kBases)) {
      expected("a type", "types are num, int, u32, bool, text, slug and bytes");
      return s;
    }
    s.base = found->base;
    advance();
    if (at(Tok::question)) {
      s.optional = true;
      s.optional_at = token().span;
      advance();
    }
    while (!failed_ && (at_word("in") || at_word("clamp") || at_word("max"))) {
      const Token& t = token();
      const bool range = t.text != "max";
      if (range ? s.range != Range::none : s.max != nullptr) {
        complain(t.span, range ? "there is a range already" : "there is a `max` already", "keep one of them");
        break;
      }
      if (range) {
        s.range = t.text == "in" ? Range::in : Range::clamp;
        s.range_at = t.span;
        advance();
        s.low = sum();
        if (!failed_) need(Tok::dotdot, "`..`");
        if (!failed_) s.high = sum();
      } else {
        s.max_at = t.span;
        advance();
        s.max = sum();
      }
    }
    return s;
  }

  std::vector<ParameterSyntax> parameters() {
    std::vector<ParameterSyntax> out;
    need(Tok::lparen, "`(`");
    if (failed_ || accept(Tok::rparen)) return out;
    while (!failed_) {
      ParameterSyntax p;
      p.name = need_name("the name of a parameter");
      if (!failed_) need(Tok::colon, "`:`");
      if (!failed_) p.type = need_any_word("a type");
      if (failed_) break;
      out.push_back(std::move(p));
      if (accept(Tok::comma)) continue;
      need(Tok::rparen, "`,` or `)`");
      break;
    }
    return out;
  }

  void fn_declaration() {
    FnSyntax f;
    f.name = need_name("a name");
    if (!failed_) f.parameters = parameters();
    if (!failed_ && accept(Tok::colon)) {
      f.result = need_any_word("a type");
      f.partial = accept(Tok::question);
    }
    if (!failed_) {
      if (accept(Tok::assign)) {
        f.body.value = expression();
      } else if (at(Tok::lbrace)) {
        f.is_block = true;
        f.body.block = block(&f.body.end);
      } else {
        expected("`=` or `{`");
      }
    }
    if (!failed_) syntax_.functions.push_back(std::move(f));
  }

  void on_declaration() {
    OnSyntax o;
    o.name = need_any_word("the name of an input");
    if (failed_) return;
    o.start = o.name.text == "start";
    if (at_word("down") || at_word("up")) {
      o.edge = at_word("down") ? Edge::down : Edge::up;
      o.edge_at = token().span;
      advance();
    }
    if (accept(Tok::lparen)) {
      o.line = need_name("a name for the text");
      if (!failed_) need(Tok::rparen, "`)`");
    }
    if (!failed_) o.body.block = block(&o.body.end);
    if (!failed_) syntax_.handlers.push_back(std::move(o));
  }

  void view_declaration() {
    ViewSyntax v;
    v.name = need_any_word("a name");
    if (!failed_ && at(Tok::lparen)) v.parameters = parameters();
    if (failed_) return;
    if (accept(Tok::colon)) {
      v.type = need_any_word("a type");
      if (!failed_) need(Tok::assign, "`=`");
      if (!failed_) v.body.value = expression();
    } else if (at(Tok::assign) && token(1).text == "for" && token(1).kind == Tok::word) {
      advance();
      const Span at_for = token().span;
      advance();
      v.of_rows = true;
      need_name("a name for the row");
      if (!failed_) need_word("in");
      if (!failed_) query();
      if (!failed_) cells();
      if (!failed_) syntax_.unserved.push_back({Unserved::What::row_view, at_for});
    } else {
      expected("`:`", "say what the view gives: `view " + v.name.text + ": num = ...`");
    }
    if (!failed_) syntax_.views.push_back(std::move(v));
  }

  void drop_declaration(Span from) {
    syntax_.unserved.push_back({Unserved::What::drop, from});
    if (!accept_word("state") && !accept_word("table")) return expected("`state` or `table`");
    need_any_word("a name");
  }

  // --- statements
  Block block(Span* end = nullptr) {
    Block out;
    Nested nested(nesting_);
    if (nested.too_deep()) complain(token().span, "this is nested too deep", "use a function");
    if (failed_) return out;
    need(Tok::lbrace, "`{`");
    while (!failed_ && !at(Tok::rbrace)) {
      StmtPtr s = statement();
      if (s) out.push_back(std::move(s));
    }
    if (end) *end = token().span;
    if (!failed_) advance();
    return out;
  }

  StmtPtr start(StmtKind kind) {
    auto s = std::make_unique<Stmt>();
    s->kind = kind;
    s->at = token().span;
    return s;
  }

  StmtPtr statement() {
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
    if (at_word("delete")) {
      StmtPtr s = start(StmtKind::delete_document);
      advance();
      if (at_word("doc") && token(1).kind != Tok::lbracket) {
        advance();
        return s;
      }
      s->kind = StmtKind::table_write;
      s->target = path();
      return s;
    }
    if (at_word("insert") || at_word("put")) return insert();
    if (at_word("update")) {
      StmtPtr s = start(StmtKind::table_write);
      advance();
      s->target = path();
      if (!failed_) s->cells = cells();
      return s;
    }
    if (at(Tok::name)) return assignment();
    if (at(Tok::end)) {
      expected("`}`", "a block ends with `}`");
      return nullptr;
    }
    if (at_word("else")) {
      expected("a statement", "an `else` follows the `}` of its `if`");
      return nullptr;
    }
    expected("a statement", starts_declaration() && unindented() ? "the block above is not closed with `}`" : "");
    return nullptr;
  }

  StmtPtr local() {
    StmtPtr s = start(at_word("let") ? StmtKind::let : StmtKind::var);
    advance();
    s->name = need_name("a name");
    if (!failed_) need(Tok::assign, "`=`");
    if (failed_) return s;
    if (at_word("insert") || at_word("put")) {
      StmtPtr row = insert();
      s->target = std::move(row->target);
      s->cells = std::move(row->cells);
      s->kind = StmtKind::table_write;
      s->at = row->at;
      return s;
    }
    s->value = expression();
    return s;
  }

  StmtPtr insert() {
    StmtPtr s = start(StmtKind::table_write);
    advance();
    const Name table = need_name("the name of a table");
    s->target = std::make_unique<Expr>();
    s->target->kind = ExprKind::name;
    s->target->text = table.text;
    s->target->span = s->target->at = table.span;
    if (!failed_) s->cells = cells();
    return s;
  }

  // A condition, and the usual slip in one.
  ExprPtr condition() {
    ExprPtr e = expression();
    if (at(Tok::assign)) complain(token().span, "`=` sets a value", "compare with `==`");
    return e;
  }

  StmtPtr branch() {
    Nested nested(nesting_);
    StmtPtr s = start(StmtKind::branch);
    if (nested.too_deep()) complain(s->at, "this is nested too deep", "use a function");
    if (failed_) return s;
    advance();
    s->value = condition();
    if (!failed_) s->body = block();
    if (failed_ || !accept_word("else")) return s;
    if (at_word("if")) s->otherwise.push_back(branch());
    else s->otherwise = block();
    return s;
  }

  StmtPtr loop() {
    StmtPtr s = start(StmtKind::count_loop);
    advance();
    s->name = need_name("a name");
    if (!failed_) need_word("in");
    if (failed_) return s;
    if (at_query()) {
      s->kind = StmtKind::row_loop;
      s->target = std::make_unique<Expr>();
      s->target->kind = ExprKind::name;
      s->target->text = token().text;
      s->target->span = s->target->at = token().span;
      query();
    } else {
      s->first = sum();
      if (!failed_ && !at(Tok::dotdot)) expected("`..`", "write `for " + s->name.text + " in a..b limit 100 { ... }`");
      if (!failed_) advance();
      if (!failed_) s->last = sum();
      if (!failed_ && !at_word("limit"))
        expected("`limit`", "say how many rounds at most: `for " + s->name.text + " in a..b limit 100 { ... }`");
      if (!failed_) advance();
      if (!failed_) s->limit = sum();
    }
    if (!failed_) s->body = block();
    return s;
  }

  StmtPtr check() {
    StmtPtr s = start(at_word("check") ? StmtKind::check : StmtKind::fail);
    advance();
    if (s->kind == StmtKind::check) {
      s->value = condition();
      if (!failed_ && !at_word("else")) expected("`else`", "say how it fails: `check ... else limit \"why\"`");
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

  StmtPtr reply() {
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

  StmtPtr splice() {
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

  StmtPtr assignment() {
    StmtPtr s = start(StmtKind::assign);
    s->target = path();
    if (failed_) return s;
    const Token& t = token();
    switch (t.kind) {
      case Tok::assign: break;
      case Tok::plus_assign: s->op = Operator::add; break;
      case Tok::minus_assign: s->op = Operator::subtract; break;
      case Tok::star_assign: s->op = Operator::multiply; break;
      case Tok::slash_assign: s->op = Operator::divide; break;
      default:
        if (s->target->kind == ExprKind::call || s->target->kind == ExprKind::aggregate) {
          s->kind = StmtKind::call;
          s->value = std::move(s->target);
          return s;
        }
        if ((at(Tok::plus) || at(Tok::minus)) && token(1).kind == t.kind)
          complain(join(t.span, token(1).span), at(Tok::plus) ? "there is no `++`" : "there is no `--`", at(Tok::plus) ? "write `x += 1`" : "write `x -= 1`");
        expected("`=`", "a statement sets something, calls a function or is one of let var if for check fail reply return");
        return s;
    }
    s->op_at = t.span;
    advance();
    s->value = expression();
    return s;
  }

  // A word that can begin a statement does not begin a value, but for `if`, which the grammar reads as a value here.
  bool starts_expression() const {
    switch (token().kind) {
      case Tok::number: case Tok::text: case Tok::text_head: case Tok::lparen: case Tok::minus: case Tok::error: return true;
      case Tok::name:
        // `reply` alone, then an assignment that is never reached, reads better as that.
        return token(1).kind != Tok::assign;
      case Tok::word:
        return at_word("true") || at_word("false") || at_word("none") || at_word("not") || at_word("has") || at_word("if");
      default: return false;
    }
  }

  Syntax syntax_;
};

}  // namespace

Syntax parse(std::string_view source, std::vector<Complaint>& complaints) {
  return Parser(source, tokenize(source), complaints).run();
}

}  // namespace sluice::vm
