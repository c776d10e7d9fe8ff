// The examples of the language's description compile without a word.
#include <doctest/doctest.h>

#include <fstream>
#include <sstream>

#include "vm/compiler.h"

namespace sluice::vm {
namespace {

TEST_CASE("every example of the description compiles") {
  std::ifstream in(SLUICE_LANGUAGE);
  std::ostringstream all;
  all << in.rdbuf();
  const std::string text = all.str();
  int examples = 0;
  for (std::size_t at = 0; (at = text.find("```aup\n", at)) != std::string::npos;) {
    const std::size_t from = at + 7, to = text.find("```\n", from);
    REQUIRE(to != std::string::npos);
    const std::string source = text.substr(from, to - from);
    const Compiled compiled = compile(source);
    for (const Diagnostic& d : compiled.diagnostics) FAIL_CHECK(render("language.md", source, d));
    CHECK(compiled.module != nullptr);
    ++examples;
    at = to;
  }
  CHECK(examples >= 4);
}

}  // namespace
}  // namespace sluice::vm
