// Slots and tables.
#include <algorithm>

#include "vm/parse_base.h"

namespace sluice::vm {

SlotSyntax TableParser::slot() {
  SlotSyntax s;
  struct BaseName {
    std::string_view name;
    Base base;
  };
  static constexpr BaseName kBases[] = {{"num", Base::num},      {"int", Base::integer}, {"u32", Base::u32},
                                        {"bool", Base::boolean}, {"text", Base::text},   {"slug", Base::slug},
                                        {"bytes", Base::bytes}};
  s.base_at = token().span;
  const auto found =
      std::find_if(std::begin(kBases), std::end(kBases), [&](const BaseName& b) { return at_word(b.name); });
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
  while (!failed_ && (at_clause("in") || at_clause("clamp") || at_clause("max"))) {
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

std::optional<Name> TableParser::was() {
  if (!at_clause("was")) return std::nullopt;
  advance();
  Name old = need_any_word("the old name");
  if (failed_) return std::nullopt;
  return old;
}

void TableParser::rising(const std::vector<PartSyntax>& parts, std::string_view message,
                         std::string_view hint) {
  for (const PartSyntax& p : parts)
    if (p.desc_at.length != 0) complain(p.desc_at, std::string(message), std::string(hint));
}

// `a` or `(a, b desc)`.
std::vector<PartSyntax> TableParser::columns_of(std::string_view what, std::string_view hint) {
  std::vector<PartSyntax> out;
  const bool several = accept(Tok::lparen);
  while (!failed_) {
    // `index ready` and then a column is a clause without its own.
    if (!is_word(token()) || token(1).kind == Tok::colon) {
      expected(what, std::string(hint));
      break;
    }
    PartSyntax p;
    p.column = need_any_word(what);
    if (at_clause("desc")) {
      p.desc_at = token().span;
      advance();
    } else if (at_clause("asc")) {
      complain(token().span, "there is no `asc`", "columns rise unless there is a `desc`");
    }
    out.push_back(std::move(p));
    if (!several || failed_) break;
    if (accept(Tok::comma)) continue;
    need(Tok::rparen, "`,` or `)`");
    break;
  }
  return out;
}

void TableParser::size(TableSyntax& t) {
  SizeSyntax s;
  mark(Mark::size);
  s.at = token().span;
  s.size = at_word("max") ? Size::max : Size::keep;
  advance();
  s.rows = sum();
  if (failed_) return;
  if (accept_word("per")) {
    const std::vector<PartSyntax> parts = columns_of("a column", "write `per user` or `per (a, b)`");
    rising(parts, "groups have no order", "leave the `desc` out");
    for (const PartSyntax& p : parts) s.per.push_back(p.column);
  }
  accept(Tok::comma);
  if (!failed_) t.sizes.push_back(std::move(s));
}

void TableParser::column(TableSyntax& t) {
  ColumnSyntax c;
  c.name = need_any_word("a name");
  if (!failed_) need(Tok::colon, "`:`");
  if (!failed_) c.slot = slot();
  if (failed_) return;
  if (at_clause("auto")) {
    c.auto_at = token().span;
    advance();
  }
  if (accept(Tok::assign)) c.first = expression();
  if (!failed_) c.was = was();
  if (!failed_ && at(Tok::assign))
    complain(
        token().span, c.was ? "the default comes before `was`" : "there is a default already",
        c.was ? "write `" + c.name.text + ": ... = default was " + c.was->text + "`" : "keep one of them");
  if (at_clause("auto"))
    complain(token().span, c.auto_at.length != 0 ? "there is an `auto` already" : "`auto` follows the type",
             c.auto_at.length != 0 ? "keep one of them" : "write `" + c.name.text + ": int auto`");
  if (at_clause("default"))
    complain(token().span, "there is no `default`", "write `" + c.name.text + ": ... = value`");
  if (at_clause("primary"))
    complain(token().span, "there is no `primary key`", "write `key " + c.name.text + "` behind the columns");
  if ((at_clause("not") || at_clause("null")) && !failed_)
    complain(token().span, "there is no `null`", "a column has a value unless its type ends with `?`");
  if (!failed_) t.columns.push_back(std::move(c));
}

void TableParser::total(TableSyntax& t, Span from) {
  TotalSyntax total;
  total.at = from;
  total.name = need_any_word("the name of the total");
  if (failed_) return;
  if (!accept_word("count")) {
    if (!at_word("sum"))
      return expected("`count` or `sum`", "write `total " + total.name.text + " count by a`, or `total " +
                                              total.name.text + " sum(b) by a`");
    advance();
    if (!at(Tok::lparen)) return expected("`(`", "write `sum(column)`");
    mark(Mark::call);
    advance();
    total.sum = need_any_word("a column");
    if (!failed_) need(Tok::rparen, "`)`");
    if (failed_) return;
  }
  if (at_clause("by")) {
    advance();
    total.by = columns_of("a column", "write `by a` or `by (a, b)`");
    rising(total.by, "groups have no order", "leave the `desc` out");
  }
  if (!failed_) t.totals.push_back(std::move(total));
}

void TableParser::clause(TableSyntax& t) {
  const Span from = token().span;
  if (accept_word("key")) {
    KeySyntax k;
    k.at = from;
    k.parts = columns_of("the columns of the key", "write `key a` or `key (a, b)`");
    rising(k.parts, "a key rises", "read it backwards with `desc` in the query, or declare an index");
    if (!failed_) t.keys.push_back(std::move(k));
    return;
  }
  if (at_word("index") || at_word("unique")) {
    IndexSyntax i;
    i.at = from;
    i.unique = at_word("unique");
    const std::string word = token().text;
    advance();
    if (!is_word(token()))
      return expected(i.unique ? "a name for the rule" : "a name for the index",
                      "write `" + word + " NAME a` or `" + word + " NAME (a, b)`");
    i.name = need_any_word("a name");
    i.parts =
        columns_of("the columns of `" + i.name.text + "`",
                   "write `" + word + " " + i.name.text + " a` or `" + word + " " + i.name.text + " (a, b)`");
    if (failed_) return;
    if (at_clause("ranked")) {
      i.ranked_at = token().span;
      advance();
    }
    t.indexes.push_back(std::move(i));
    return;
  }
  if (accept_word("total")) return total(t, from);
  if (accept_word("drop")) {
    Name gone = need_any_word("the name of a column that is gone");
    if (!failed_) t.drops.push_back(std::move(gone));
    return;
  }
  std::string hint = "a column is `name: type`; clauses are key, index, unique, total and drop";
  if (is_word(token()) && is_word(token(1)) && !token(1).first_on_line)
    hint = "a column is `" + token().text + ": " + token(1).text +
           "`; clauses are key, index, unique, total and drop";
  if (at_word("max") || at_word("keep"))
    hint = "a size stands before the braces: `table " + t.name.text + " max N { ... }`";
  if (at_word("primary")) hint = "write `key a` or `key (a, b)`";
  // `index ready` alone took the first word of the next line for its column.
  const auto alone = [&](const std::vector<PartSyntax>& parts) {
    return parts.size() == 1 && parts[0].column.span.end() == last().end() && tokens_[at_ - 1].first_on_line;
  };
  if (is_word(token()) && !t.indexes.empty() && alone(t.indexes.back().parts)) {
    const IndexSyntax& i = t.indexes.back();
    return complain(i.name.span, "`" + i.name.text + "` needs columns",
                    std::string("write `") + (i.unique ? "unique " : "index ") + i.name.text + " a`");
  }
  expected("a column or a clause", std::move(hint));
}

TableSyntax TableParser::table(Span from) {
  TableSyntax t;
  t.at = from;
  t.name = need_name("a name");
  while (!failed_ && !at(Tok::lbrace)) {
    if (at_word("max") || at_word("keep")) {
      size(t);
    } else if (at_clause("was")) {
      if (t.was) complain(token().span, "there is a `was` already", "keep one of them");
      t.was = was();
    } else {
      expected("`{`", at(Tok::number) ? "a size is `max N` or `keep N`, with `per user` for each group" : "");
    }
  }
  if (failed_) return t;
  mark(Mark::table);
  advance();
  while (!failed_ && !at(Tok::rbrace)) {
    mark(Mark::item);
    if (at(Tok::end)) {
      expected("`}`", "a table ends with `}`");
    } else if (is_word(token()) && token(1).kind == Tok::colon) {
      column(t);
    } else {
      clause(t);
    }
    accept(Tok::comma);
  }
  if (!failed_) advance();
  return t;
}

}  // namespace sluice::vm
