#include "vm/fmt.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "vm/base/utf8.h"
#include "vm/format.h"
#include "vm/lexer.h"
#include "vm/parser.h"

namespace sluice::vm {
namespace {

namespace fs = std::filesystem;

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

std::vector<fs::path> modules_in(const fs::path& folder) {
  std::vector<fs::path> out;
  for (const fs::directory_entry& e : fs::directory_iterator(folder))
    if (e.path().extension() == ".aup") out.push_back(e.path());
  std::sort(out.begin(), out.end());
  return out;
}

// All modules there are that can be read: examples, corpus and those the compiler complains about for what
// they mean.
std::vector<fs::path> readable_modules() {
  std::vector<fs::path> out;
  for (const char* folder : {SLUICE_MODULES, SLUICE_CORPUS, SLUICE_GOLDEN})
    for (const fs::path& path : modules_in(folder)) {
      std::vector<Complaint> complaints;
      const std::string source = read_file(path);
      parse(source, complaints);
      if (complaints.empty()) out.push_back(path);
    }
  return out;
}

std::string laid_out(std::string_view source) {
  const Formatted f = reformat(source);
  for (const Diagnostic& d : f.diagnostics) MESSAGE(d.line << ": " << d.message);
  REQUIRE(f.diagnostics.empty());
  return f.text;
}

// The words without commas, which are layout in tables, and the comments.
std::vector<std::string> words_of(std::string_view source) {
  std::vector<Span> comments;
  std::vector<std::string> out;
  for (const Token& t : tokenize(source, &comments))
    if (t.kind != Tok::comma) out.emplace_back(source.substr(t.span.offset, t.span.length));
  return out;
}
std::vector<std::string> comments_of(std::string_view source) {
  std::vector<Span> comments;
  tokenize(source, &comments);
  std::vector<std::string> out;
  for (const Span& c : comments) {
    std::string text(source.substr(c.offset, c.length));
    text.erase(text.find_last_not_of(" \t\r") + 1);
    out.push_back(std::move(text));
  }
  return out;
}

std::string code_of(const Compiled& compiled) {
  const auto file = encode(*compiled.module);
  REQUIRE(file);
  auto loaded = load(*file);
  REQUIRE(loaded);
  return *file;
}

// What a module is compiled to, apart from its lines.
std::string code_of(std::string_view source) {
  Compiled compiled = compile(source);
  if (!compiled.module) return {};
  compiled.module->lines.clear();
  return code_of(compiled);
}

TEST_CASE("the examples are laid out as they should be") {
  for (const fs::path& path : modules_in(SLUICE_MODULES)) {
    INFO(path.filename().string());
    const std::string source = read_file(path);
    CHECK(laid_out(source) == source);
  }
}

TEST_CASE("laying out keeps every word and comment, what it means, and its own result") {
  const std::vector<fs::path> all = readable_modules();
  REQUIRE(all.size() >= 80);
  for (const fs::path& path : all) {
    INFO(path.filename().string());
    const std::string source = read_file(path);
    const std::string once = laid_out(source);
    CHECK(laid_out(once) == once);
    CHECK(words_of(once) == words_of(source));
    CHECK(comments_of(once) == comments_of(source));
    CHECK(code_of(once) == code_of(source));
  }
}

// Another text with the same layout: spaces, tabs, carriage returns, empty lines and line ends where they
// mean nothing.
std::string scrambled(std::string_view source, std::mt19937& random) {
  std::vector<Complaint> complaints;
  Written w;
  parse(source, complaints, &w);
  const auto below = [&](unsigned n) { return random() % n; };
  std::string out;
  std::size_t comment = 0;
  std::uint32_t end = 0;
  int texts = 0;
  const auto spaces = [&](bool needed) {
    static constexpr const char* kSpaces[] = {"", " ", "  ", "\t", " \t "};
    out += kSpaces[needed ? 1 + below(4) : below(5)];
  };
  const auto line_ends = [&](std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) {
      spaces(false);
      out += below(2) ? "\n" : "\r\n";
    }
    spaces(false);
  };
  const auto feeds = [&](std::uint32_t to) {
    return static_cast<std::size_t>(std::count(source.begin() + end, source.begin() + to, '\n'));
  };
  const auto same_lines = [&](std::uint32_t to) {
    const std::size_t n = feeds(to);
    if (n == 0 && end > 0)
      spaces(true);
    else
      line_ends(n > 1 ? 2 + below(3) : n);
  };
  for (std::size_t i = 0; i < w.tokens.size(); ++i) {
    const Token& t = w.tokens[i];
    const std::uint32_t to = t.kind == Tok::end ? static_cast<std::uint32_t>(source.size()) : t.span.offset;
    bool commented = false;
    for (; comment < w.comments.size() && w.comments[comment].offset < to; ++comment) {
      const Span c = w.comments[comment];
      same_lines(c.offset);
      out += source.substr(c.offset, c.length);
      end = c.end();
      commented = true;
    }
    const bool chained =
        i > 0 && t.kind == Tok::word && t.text == "else" && w.tokens[i - 1].kind == Tok::rbrace;
    const auto wordy = [](const Token& k) {
      return k.kind == Tok::name || k.kind == Tok::word || k.kind == Tok::number;
    };
    const bool needed = i > 0 && wordy(w.tokens[i - 1]) && wordy(t);
    if (t.kind == Tok::end)
      line_ends(commented ? 1 + below(3) : below(3));
    else if (commented || t.mark == Mark::item || chained)
      same_lines(to);
    else if (t.kind == Tok::text_mid || t.kind == Tok::text_tail || texts > 0 || below(4) != 0)
      spaces(needed);
    else
      line_ends(1 + below(3));
    if (t.kind == Tok::text_head) ++texts;
    if (t.kind == Tok::text_tail) --texts;
    out += source.substr(t.span.offset, t.span.length);
    end = t.span.end();
  }
  return out;
}

TEST_CASE("whatever spaces a module has, it is laid out the same") {
  std::mt19937 random(7);
  for (const fs::path& path : readable_modules()) {
    const std::string source = read_file(path);
    const std::string expected = laid_out(source);
    for (int round = 0; round < 20; ++round) {
      const std::string other = scrambled(source, random);
      INFO(path.filename().string() << '\n' << other);
      REQUIRE(laid_out(other) == expected);
    }
  }
}

TEST_CASE("comments anywhere are kept, and end in a place where they stay") {
  std::mt19937 random(11);
  for (const fs::path& path : readable_modules()) {
    const std::string source = read_file(path);
    for (int round = 0; round < 20; ++round) {
      std::string commented;
      std::uint32_t end = 0;
      int texts = 0, number = 0;
      for (const Token& t : tokenize(source)) {
        if (t.kind == Tok::text_head) ++texts;
        if (t.kind == Tok::text_tail) --texts;
        commented += source.substr(end, t.span.offset - end);
        if (texts == 0 && t.kind != Tok::text_tail && random() % 8 == 0) {
          if (random() % 3 == 0) commented += '\n';
          commented += "// " + std::to_string(number++) + (random() % 4 == 0 ? "\n\n" : "\n");
        }
        commented += source.substr(t.span.offset, t.span.length);
        end = t.span.end();
      }
      INFO(path.filename().string() << '\n' << commented);
      const std::string once = laid_out(commented);
      REQUIRE(laid_out(once) == once);
      REQUIRE(words_of(once) == words_of(source));
      std::vector<std::string> kept = comments_of(once), given = comments_of(commented);
      std::sort(kept.begin(), kept.end());
      std::sort(given.begin(), given.end());
      REQUIRE(kept == given);
    }
  }
}

TEST_CASE("no line is longer than 100 characters where it can be broken") {
  for (const fs::path& path : readable_modules()) {
    std::istringstream lines(laid_out(read_file(path)));
    for (std::string line; std::getline(lines, line);) {
      INFO(path.filename().string() << ": " << line);
      const bool comment = line.find("//") != std::string::npos;
      CHECK((comment || line.find('"') != std::string::npos || count_chars(line) <= 100));
      CHECK_FALSE(line.ends_with(' '));
    }
  }
}

// What becomes of statements in a handler, or of declarations.
std::string body(std::string_view statements) {
  const std::string out = laid_out("module m 1\non a {\n" + std::string(statements) + "\n}\n");
  const std::string head = "module m 1\non a {\n";
  REQUIRE(out.starts_with(head));
  REQUIRE(out.ends_with("}\n"));
  return out.substr(head.size(), out.size() - head.size() - 2);
}
std::string rest(std::string_view declarations) {
  const std::string out = laid_out("module m 1\n" + std::string(declarations));
  REQUIRE(out.starts_with("module m 1\n"));
  return out.substr(11);
}

TEST_CASE("words stand apart as they are read") {
  CHECK(body("x=-1+ -y*( 2-z )") == "  x = -1 + -y * (2 - z)\n");
  CHECK(body("t[ 1 ,2 ] . n-=f( a,b )??0") == "  t[1, 2].n -= f(a, b) ?? 0\n");
  CHECK(body("x=\"a { b+1 } { f( c ) }\"") == "  x = \"a {b + 1} {f(c)}\"\n");
  CHECK(body("for i in 0 .. n-1 limit 5{ }") == "  for i in 0..n - 1 limit 5 { }\n");
  CHECK(body("check not(a)and has(b)else limit\"why\"") ==
        "  check not (a) and has (b) else limit \"why\"\n");
  CHECK(rest("fn f ( a:num,r : t ):num ?=rank( t [a]by top )") ==
        "fn f(a: num, r: t): num? = rank(t[a] by top)\n");
  CHECK(rest("state a:num?in 0 .. 5=1 was b") == "state a: num? in 0..5 = 1 was b\n");
  CHECK(rest("table t max 5 keep 2*3 per(a,b),{a:u32,b:u32 key(a,b)index i(a desc)ranked drop c}") ==
        "table t max 5, keep 2 * 3 per (a, b) { a: u32, b: u32, key (a, b), index i (a desc) ranked, drop c "
        "}\n");
  CHECK(rest("table t{a:u32 key a total n sum ( a )by b}") ==
        "table t { a: u32, key a, total n sum(a) by b }\n");
  CHECK(rest("message a keyed{}\ninput timer b every 5s\non a{}on a(line){}") ==
        "message a keyed { }\ninput timer b every 5s\non a { }\non a (line) { }\n");
  CHECK(rest("view v(a:u32)=for r in t[a]from-1 desc limit 5 where r.a>1{r.a,b:row}") ==
        "view v(a: u32) = for r in t[a] from -1 desc limit 5 where r.a > 1 { r.a, b: row }\n");
}

TEST_CASE("a block stays on its line when it was on one and fits") {
  CHECK(body("if a { b = 1 c = 2 }") == "  if a { b = 1  c = 2 }\n");
  CHECK(body("if a {\nb = 1 }") == "  if a {\n    b = 1\n  }\n");
  CHECK(body("if a { b = 1\nc = 2 }") == "  if a {\n    b = 1\n    c = 2\n  }\n");
  CHECK(body("if a { if b {\nc = 1 } }") == "  if a {\n    if b {\n      c = 1\n    }\n  }\n");
  const std::string name(60, 'n');
  CHECK(body("if " + name + " { x = " + name + " }") == "  if " + name + " {\n    x = " + name + "\n  }\n");
  CHECK(rest("on a { b = 1 }\non c { }") == "on a { b = 1 }\non c { }\n");
}

TEST_CASE("an else follows its brace, or starts a line before a short block") {
  CHECK(body("if a { b = 1 } else { c = 1 }") == "  if a { b = 1 } else { c = 1 }\n");
  CHECK(body("if a { b = 1 }\nelse if d { c = 1 }\nelse { }") ==
        "  if a { b = 1 }\n  else if d { c = 1 }\n  else { }\n");
  CHECK(body("if a {\nb = 1 }\nelse { c = 1 }") == "  if a {\n    b = 1\n  } else {\n    c = 1\n  }\n");
  const std::string name(30, 'n');
  const std::string set = "{ " + name + " = " + name + " }";
  CHECK(body("if a " + set + " else " + set) == "  if a " + set + "\n  else " + set + "\n");
  CHECK(body("if a { b = 1 } // one\n// two\nelse { c = 1 }") ==
        "  if a { b = 1 }                      // one\n  // two\n  else { c = 1 }\n");
  CHECK(body("if a {\nb = 1 } // one\nelse { c = 1 }") ==
        "  if a {\n    b = 1\n  }                                   // one\n  else {\n    c = 1\n  }\n");
}

TEST_CASE("columns, fields and cells share the lines they shared") {
  CHECK(rest("table t {\na: u32, b: u32\nc: u32 key a, drop x,\n}") ==
        "table t {\n  a: u32, b: u32\n  c: u32\n  key a\n  drop x\n}\n");
  CHECK(body("reply {\na, b: 1\n,c, }") == "  reply {\n    a, b: 1, c\n  }\n");
  CHECK(body("reply {\na, b: 1,\nc, }") == "  reply {\n    a, b: 1,\n    c\n  }\n");
  CHECK(body("reply { a, b: 1,\nc, }") == "  reply { a, b: 1, c }\n");
  const std::string name(42, 'n');
  CHECK(body("insert t { a: " + name + ", b: " + name + ", c: 1 }") ==
        "  insert t {\n    a: " + name + ", b: " + name + ",\n    c: 1\n  }\n");
  CHECK(rest("table t { a" + name + ": u32, b" + name + ": u32, key a" + name + " }") ==
        "table t {\n  a" + name + ": u32\n  b" + name + ": u32\n  key a" + name + "\n}\n");
}

TEST_CASE("a comment stays where it was: above, behind, or last in its braces") {
  CHECK(rest("// one\n\n\n// two\nstate a: num // three\n// four\n\n//five  \n") ==
        "// one\n\n// two\nstate a: num                          // three\n// four\n\n//five\n");
  CHECK(rest("table t { // one\na: u32, // two\n// three\nkey a // four\n// five\n}") ==
        "table t {                             // one\n  a: u32                              // two\n  // "
        "three\n"
        "  key a                               // four\n  // five\n}\n");
  CHECK(body("reply { a // one\n, // two\nb // three\n}") ==
        "  reply {\n    a,                                // one\n    // two\n"
        "    b                                 // three\n  }\n");
  CHECK(body("if a { // why\n}") == "  if a {                              // why\n  }\n");
  CHECK(body("if a { b = 1 // why\n}") == "  if a {\n    b = 1                             // why\n  }\n");
  const std::string name(50, 'n');
  CHECK(rest("state " + name + ": num// why") == "state " + name + ": num  // why\n");
  const std::string why = "// " + std::string(70, 'w');
  CHECK(rest("state a: num " + why) == "state a: num  " + why + "\n");
}

TEST_CASE("a comment amid words goes above what they belong to, with the empty line there") {
  CHECK(body("a = 1\n\nx = b + // one\nc -\n// two\nd // three") ==
        "  a = 1\n\n  // one\n  // two\n  x = b + c - d                       // three\n");
  CHECK(rest("table t max // one\n5 { a: u32, key // two\na }") ==
        "// one\ntable t max 5 {\n  a: u32\n  // two\n  key a\n}\n");
}

TEST_CASE("one empty line stays, and none at the edge of braces") {
  CHECK(rest("\n\nstate a: num\n\n\n\nstate b: num\nstate c: num\n\n\n") ==
        "\nstate a: num\n\nstate b: num\nstate c: num\n");
  CHECK(body("\n\na = 1\n\n\nb = 2\n\n") == "  a = 1\n\n  b = 2\n");
  CHECK(laid_out("\n\n\n// head\n\n\nmodule m 1\n\n\n") == "// head\n\nmodule m 1\n");
}

TEST_CASE("a long line breaks where least is torn apart") {
  const std::string n(20, 'n');
  CHECK(body("x = " + n + " + " + n + " * " + n + " - " + n + " * " + n) ==
        "  x = " + n + " + " + n + " * " + n + "\n      - " + n + " * " + n + "\n");
  CHECK(body("check " + n + " > " + n + " and " + n + " < " + n + " else limit \"why\"") ==
        "  check " + n + " > " + n + " and " + n + " < " + n + "\n      else limit \"why\"\n");
  CHECK(body("let x = f(" + n + ", " + n + ", g(" + n + ", " + n + "), " + n + ")") ==
        "  let x = f(" + n + ", " + n + ",\n      g(" + n + ", " + n + "), " + n + ")\n");
  CHECK(rest("view v: text = \"" + n + n + n + n + "\"") == "view v: text = \"" + n + n + n + n + "\"\n");
  CHECK(rest("view v: text = \"" + n + n + n + n + "long\"") ==
        "view v: text =\n    \"" + n + n + n + n + "long\"\n");
  // A name that looks like a clause is none.
  CHECK(rest("view where: num = " + n + " + " + n + " + " + n + " + " + n) ==
        "view where: num =\n    " + n + " + " + n + " + " + n + " + " + n + "\n");
  // A break that does not help is none.
  CHECK(rest("const A = \"" + std::string(100, 'n') + '"') ==
        "const A = \"" + std::string(100, 'n') + "\"\n");
  CHECK(rest("view v(" + n + ": num) = for " + n + " in " + n + " by " + n + " limit 5 where " + n + ".a { " +
             n + ".a }") == "view v(" + n + ": num) =\n    for " + n + " in " + n + " by " + n +
                                " limit 5\n    where " + n + ".a {\n  " + n + ".a\n}\n");
}

TEST_CASE("characters are counted, not bytes") {
  std::string text;
  for (int i = 0; i < 80; ++i) text += "\xc3\xa9";
  CHECK(rest("view v: text = \"" + text + "\"") == "view v: text = \"" + text + "\"\n");
}

TEST_CASE("what cannot be read is not laid out, and says why as the compiler does") {
  for (const char* source : {"", "module m 1\nstate a num\n", "module m 1\n\"", "module m 1\n\xff"}) {
    const Formatted f = reformat(source);
    CHECK(f.text.empty());
    REQUIRE_FALSE(f.diagnostics.empty());
    const Compiled c = compile(source);
    REQUIRE(f.diagnostics.size() == c.diagnostics.size());
    CHECK(render("m", source, f.diagnostics[0]) == render("m", source, c.diagnostics[0]));
  }
}

}  // namespace
}  // namespace sluice::vm
