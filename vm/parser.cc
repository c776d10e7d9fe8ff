// Declarations.
#include "vm/parser.h"

#include <algorithm>

#include "vm/lexer.h"
#include "vm/parse_base.h"

namespace sluice::vm {
namespace {

class Parser : public TableParser {
 public:
  using TableParser::TableParser;

  Syntax run() {
    mark(Mark::item);
    header();
    while (!at(Tok::end)) {
      failed_ = false;
      const std::size_t before = at_;
      mark(Mark::item);
      declaration();
      if (!failed_) continue;
      // What could not even begin a declaration is stepped over, so that reading always gets on.
      if (at_ == before) advance();
      resume(before);
    }
    return std::move(syntax_);
  }

  std::vector<Token> tokens() && { return std::move(tokens_); }

 private:
  // --- declarations
  void header() {
    if (!at_word("module")) {
      expected("`module`", "a module begins with `module NAME 1`");
      resume(0);
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
    if (failed_) resume(0);
  }

  // To the next declaration: a word that starts one, first on its line and outside the braces opened since
  // `from`, or unindented. Inside them such a word is a clause or a column of a table.
  void resume(std::size_t from) {
    int braces = 0;
    for (std::size_t i = from; i < at_; ++i) {
      if (tokens_[i].kind == Tok::lbrace) ++braces;
      if (tokens_[i].kind == Tok::rbrace && braces > 0) --braces;
    }
    for (; !at(Tok::end); advance()) {
      if (at(Tok::lbrace)) ++braces;
      if (at(Tok::rbrace) && braces > 0) --braces;
      if (starts_declaration() && token().first_on_line && (braces == 0 || unindented())) return;
    }
  }
  void declaration() {
    const Token& t = token();
    if (accept_word("const")) return const_declaration();
    if (accept_word("state")) return state_declaration();
    if (accept_word("table")) {
      TableSyntax read = table(t.span);
      if (!failed_) syntax_.tables.push_back(std::move(read));
      return;
    }
    if (accept_word("documents")) return documents_declaration(t.span);
    if (accept_word("input")) return input_declaration();
    if (accept_word("message")) return message_declaration();
    if (accept_word("fn")) return fn_declaration();
    if (accept_word("on")) return on_declaration();
    if (accept_word("view")) return view_declaration();
    if (accept_word("drop")) return drop_declaration();
    if (at_word("module"))
      return complain(t.span, "the module has its name already", "one file is one module");
    expected("a declaration",
             "declarations are const, state, table, documents, input, message, fn, on, view and drop");
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
    if (!failed_) s.was = was();
    if (s.was) swallowed("the old name");
    if (!failed_ && at(Tok::assign))
      complain(token().span, s.was ? "the first value comes before `was`" : "there is a first value already",
               s.was ? "write `state " + s.name.text + ": ... = first was " + s.was->text + "`" : "keep one of them");
    if (!failed_) syntax_.states.push_back(std::move(s));
  }

  // The name that ends a declaration is missing, and the word that starts the next one was taken for it.
  void swallowed(std::string_view what) {
    if (failed_ || at(Tok::end) || starts_declaration()) return;
    --at_;
    if (token().first_on_line && starts_declaration())
      expected(what);
    else
      ++at_;
  }

  void documents_declaration(Span from) {
    DocumentsSyntax d;
    d.at = from;
    if (accept_word("text"))
      d.kind = DocumentKind::text;
    else if (accept_word("bytes"))
      d.kind = DocumentKind::bytes;
    else if (accept_word("json"))
      d.kind = DocumentKind::json;
    else
      return expected("text, bytes or json", "write `documents text`");
    if (accept_word("max")) d.max = sum();
    if (!failed_) syntax_.documents.push_back(std::move(d));
  }

  void input_declaration() {
    InputSyntax i;
    if (accept_word("text"))
      i.kind = InputKind::text;
    else if (accept_word("key"))
      i.kind = InputKind::key;
    else if (accept_word("timer"))
      i.kind = InputKind::timer;
    else
      return expected("text, key or timer", "inputs with fields are written `message NAME { ... }`");
    i.name = need_any_word("a name");
    if (failed_) return;
    if (i.kind == InputKind::text && accept_word("max")) i.max = sum();
    if (i.kind == InputKind::timer) {
      if (!at_word("every") && i.name.text == "every")
        complain(i.name.span, "expected a name, found `every`", "write `input timer NAME every 10s`");
      if (!at_word("every")) expected("`every`", "write `input timer " + i.name.text + " every 10s`");
      if (!failed_) advance();
      if (!failed_) i.every = sum();
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
    mark(Mark::list);
    need(Tok::lbrace, "`{`");
    while (!failed_ && !accept(Tok::rbrace)) {
      mark(Mark::item);
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

  std::vector<ParameterSyntax> parameters() {
    std::vector<ParameterSyntax> out;
    mark(Mark::call);
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
      mark(Mark::clause);
      advance();
      v.of_rows = true;
      v.row = need_name("a name for the row");
      if (!failed_) need_word("in");
      if (!failed_) v.query = query();
      v.cells_at = token().span;
      if (!failed_) v.cells = cells();
    } else {
      expected("`:`", "say what the view gives: `view " + v.name.text + ": num = ...`");
    }
    if (!failed_) syntax_.views.push_back(std::move(v));
  }

  void drop_declaration() {
    DropSyntax d;
    d.table = at_word("table");
    if (!d.table && !at_word("state"))
      return expected("`state` or `table`", "a column is dropped in its table");
    advance();
    d.name = need_any_word("a name");
    swallowed("a name");
    if (!failed_) syntax_.drops.push_back(std::move(d));
  }

  Syntax syntax_;
};

}  // namespace

Syntax parse(std::string_view source, std::vector<Complaint>& complaints, Written* written) {
  Parser parser(source, tokenize(source, written ? &written->comments : nullptr), complaints);
  Syntax syntax = parser.run();
  if (written) written->tokens = std::move(parser).tokens();
  return syntax;
}

}  // namespace sluice::vm
