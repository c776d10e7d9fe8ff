#include <doctest/doctest.h>

#include "vm/lexer.h"
#include "vm/names.h"

namespace sluice::vm {
namespace {

std::vector<Tok> kinds(std::string_view source) {
  std::vector<Tok> out;
  for (const Token& t : tokenize(source)) out.push_back(t.kind);
  return out;
}

TEST_CASE("numbers take separators, fractions, exponents and units") {
  const std::vector<Token> t = tokenize("12 1_000_000 0.5 1e6 2.5e-3 200ms 5s 10min 2h 7d 64KiB 1MiB 1e-999");
  const double values[] = {12,     1000000, 0.5,       1e6,   2.5e-3,  200, 5000,
                           600000, 7200000, 604800000, 65536, 1048576, 0};
  REQUIRE(t.size() == 14);
  for (std::size_t i = 0; i < 13; ++i) {
    CHECK(t[i].kind == Tok::number);
    CHECK(t[i].number == values[i]);
  }
}

TEST_CASE("a range is not a fraction") {
  CHECK(kinds("0..100") == std::vector<Tok>{Tok::number, Tok::dotdot, Tok::number, Tok::end});
  CHECK(kinds("1.5..2.5") == std::vector<Tok>{Tok::number, Tok::dotdot, Tok::number, Tok::end});
}

TEST_CASE("a number beyond the doubles is an error, not infinity") {
  CHECK(kinds("1e999")[0] == Tok::error);
  CHECK(kinds("1e308MiB")[0] == Tok::error);
}

TEST_CASE("texts are cut where values are inserted, also inside each other") {
  CHECK(kinds(R"("a{b}c")") == std::vector<Tok>{Tok::text_head, Tok::name, Tok::text_tail, Tok::end});
  CHECK(kinds(R"("{a}{b}")") ==
        std::vector<Tok>{Tok::text_head, Tok::name, Tok::text_mid, Tok::name, Tok::text_tail, Tok::end});
  CHECK(kinds(R"("x{f("y{z}")}")") == std::vector<Tok>{Tok::text_head, Tok::name, Tok::lparen, Tok::text_head,
                                                       Tok::name, Tok::text_tail, Tok::rparen, Tok::text_tail,
                                                       Tok::end});
  CHECK(tokenize(R"("\"\{\}\\\n\t\u{e9}\u{1F600}")")[0].text == "\"{}\\\n\t\xc3\xa9\xf0\x9f\x98\x80");
}

TEST_CASE("comments and line ends are spaces, CRLF too") {
  const std::vector<Token> t = tokenize("a // b\r\n c");
  REQUIRE(t.size() == 3);
  CHECK(t[1].text == "c");
  CHECK(t[1].first_on_line);
  CHECK(t[1].span.offset == 9);
}

TEST_CASE("what is broken inside a text does not swallow the next line") {
  const std::vector<Token> t = tokenize("\"a {b\nc");
  CHECK(t.back().kind == Tok::end);
  CHECK(t[t.size() - 2].text == "c");
}

TEST_CASE("the nearest name is offered, and only when it is near") {
  CHECK(nearest("hist", {"hits", "lamp"}) == "hits");
  CHECK(nearest("amonut", {"count", "amount"}) == "amount");
  CHECK(nearest("x", {"y"}).empty());
  CHECK(nearest("winner", {"loser", "level"}).empty());
}

}  // namespace
}  // namespace sluice::vm
