#include <doctest/doctest.h>

#include "vm/compiler.h"
#include "vm/format.h"

namespace sluice::vm {
namespace {

std::vector<std::string> code_of(std::string_view source, std::string_view function) {
  const Compiled c = compile(source);
  REQUIRE(c.module != nullptr);
  std::vector<std::string> out;
  for (const Function& f : c.module->functions)
    if (f.name == function)
      for (Word w : f.code) out.emplace_back(mnemonic(op_of(w)));
  return out;
}

TEST_CASE("arguments are computed where they are needed, without moves") {
  CHECK(code_of("module m 1\nmessage a { x: num, y: num }\non a { reply clamp(x + 1, 0, y * 2) }", "on a") ==
        std::vector<std::string>{"FIELD", "INT", "ADD", "INT", "FIELD", "INT", "MUL", "BUILTIN", "REPLYV"});
  CHECK(code_of("module m 1\nfn f(a: num, b: num): num = min(a, b)\nview v: num = f(1, 2)", "fn f") ==
        std::vector<std::string>{"BUILTIN", "RET"});
}

TEST_CASE("conditions jump instead of making values") {
  CHECK(code_of("module m 1\nmessage a { x: num }\non a { check x > 0 and x != 5 else limit }", "on a") ==
        std::vector<std::string>{"FIELD", "INT", "LTN", "JF", "FIELD", "INT", "EQN", "JF", "FAIL", "DONE"});
}

TEST_CASE("what is known is computed once, by the compiler") {
  CHECK(code_of("module m 1\nconst A = 3\nview v: num = (A + 1) * 2 - min(A, 1)", "view v") ==
        std::vector<std::string>{"INT", "RET"});
  CHECK(code_of("module m 1\nconst A = 3\nview v: text = \"a{A}{\"b\"}\"", "view v") ==
        std::vector<std::string>{"TEXTK", "RET"});
}

TEST_CASE("every word has the line it was written on") {
  const Compiled c = compile("module m 1\nstate n: num\nmessage a { }\non a {\n  n = 1\n  n = 2\n}\n");
  REQUIRE(c.module != nullptr);
  CHECK(c.module->lines == std::vector<std::vector<std::uint32_t>>{{5, 5, 6, 6, 7}});
}

TEST_CASE("events are numbered by input and handlers rise by event") {
  const Compiled c =
      compile("module m 1\ninput key a\ninput text b\non b { }\non a up { }\non a down { }\non start { }\n");
  REQUIRE(c.module != nullptr);
  std::vector<std::uint32_t> events;
  for (const Handler& h : c.module->handlers) events.push_back(h.event);
  CHECK(events == std::vector<std::uint32_t>{0, 1, 2, 3});
}

TEST_CASE("bytes that are not UTF-8 are pointed at") {
  const Compiled c = compile("module m 1\nview v: text = \"a\xff\"\n");
  REQUIRE(c.diagnostics.size() == 1);
  CHECK(c.diagnostics[0].line == 2);
  CHECK(c.diagnostics[0].column == 18);
  CHECK(c.diagnostics[0].message == "this is not UTF-8");
  CHECK(c.module == nullptr);
}

TEST_CASE("a byte order mark, a control character and an endless file are refused") {
  CHECK(compile("\xef\xbb\xbfmodule m 1").diagnostics.at(0).message == "a byte order mark cannot be here");
  CHECK(compile(std::string_view("module\0m 1", 10)).diagnostics.at(0).message ==
        "a control character cannot be here");
  CHECK(compile(std::string(1024 * 1024 + 1, ' ')).diagnostics.at(0).message ==
        "the module is longer than 1 MiB");
}

TEST_CASE("more than a file holds is refused at the name of the module") {
  std::string source = "module m 1\n";
  for (int i = 0; i < 400; ++i)
    source +=
        "view v" + std::to_string(i) + ": text = \"" + std::to_string(i) + std::string(400, 'x') + "\"\n";
  const Compiled c = compile(source);
  REQUIRE(c.diagnostics.size() == 1);
  CHECK(c.diagnostics[0].line == 1);
  CHECK(c.diagnostics[0].message.starts_with("the module does not fit its file: "));
}

TEST_CASE("each limit on declarations has its sentence") {
  auto many = [](int n, auto line) {
    std::string out = "module m 1\n";
    for (int i = 0; i < n; ++i) out += line(std::to_string(i)) + "\n";
    return out;
  };
  auto says = [](const std::string& source) {
    const Compiled c = compile(source);
    return c.diagnostics.empty() ? std::string() : c.diagnostics[0].message;
  };
  using S = std::string;
  CHECK(says(many(257, [](const S& i) { return "state s" + i + ": num"; })) ==
        "a module has at most 256 states");
  CHECK(says(many(129, [](const S& i) { return "input key k" + i + "\non k" + i + " down { }"; })) ==
        "a module has at most 128 inputs");
  CHECK(says(many(513, [](const S& i) { return "view v" + i + ": num = 1"; })) ==
        "a module has at most 512 views");
  CHECK(says(many(257, [](const S& i) { return "fn f" + i + "(): num = 1"; })) ==
        "a module has at most 256 functions");
  S fields = "module m 1\nmessage a { ";
  for (int i = 0; i < 17; ++i) fields += "f" + std::to_string(i) + ": num, ";
  CHECK(says(fields + "}\non a { }") == "a message has at most 16 fields");
  CHECK(says(many(10'000, [](const S& i) { return "const C" + i + " = C" + std::to_string(std::stoi(i) + 1); })) ==
        "consts lean on each other more than 100 deep here");
  CHECK(says(many(255, [](const S& i) { return "fn f" + i + "(): num = 1"; }) + "view v: num = f254()")
            .empty());
}

TEST_CASE("a message about a line wider than its number keeps its columns") {
  const Compiled c = compile("module m 1" + std::string(123456, '\n') + "state x: num = y");
  REQUIRE(c.diagnostics.size() == 1);
  CHECK(render("f.aup", "module m 1" + std::string(123456, '\n') + "state x: num = y", c.diagnostics[0]) ==
        "f.aup:123457:16: error: there is nothing called `y`\n"
        "123457 | state x: num = y\n"
        "       |                ^\n");
}

TEST_CASE("what is emitted loads, and encodes to the same bytes again") {
  const Compiled c = compile("module m 1\nstate n: num = 5\nview v: num = n\n");
  REQUIRE(c.module != nullptr);
  const Result<std::string, std::string> file = encode(*c.module);
  REQUIRE(file);
  const auto loaded = load(*file);
  REQUIRE(loaded);
  CHECK(*encode(**loaded) == *file);
  CHECK(c.module->code_hash == (*loaded)->code_hash);
  CHECK(c.module->facts.size() == 1);
}

}  // namespace
}  // namespace sluice::vm
