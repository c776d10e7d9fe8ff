// Arbitrary text through the compiler: it says what is wrong or makes a module that loads and behaves. And through the
// layout: what can be read is laid out, keeps its words and comments, and is its own result when laid out
// again.
#include <algorithm>
#include <cstdint>

#include "t/fuzz/module_play.h"
#include "vm/base/check.h"
#include "vm/compiler.h"
#include "vm/fmt.h"
#include "vm/format.h"
#include "vm/lexer.h"

namespace sluice::vm {
namespace {

struct Text {
  std::vector<std::string_view> words;  // without commas, which are layout in tables
  std::vector<std::string_view> comments;
};

Text text_of(std::string_view source) {
  Text out;
  std::vector<Span> comments;
  for (const Token& t : tokenize(source, &comments))
    if (t.kind != Tok::comma) out.words.push_back(source.substr(t.span.offset, t.span.length));
  for (const Span& c : comments) {
    const std::string_view text = source.substr(c.offset, c.length);
    out.comments.push_back(text.substr(0, text.find_last_not_of(" \t\r") + 1));
  }
  // Those amid words go above them, past others that stood higher in what encloses them.
  std::sort(out.comments.begin(), out.comments.end());
  return out;
}

void check_layout(std::string_view source, const Compiled& compiled) {
  const Formatted once = reformat(source);
  if (!once.diagnostics.empty()) {
    SLUICE_CHECK(once.text.empty() && !compiled.module);
    return;
  }
  const Text before = text_of(source), after = text_of(once.text);
  SLUICE_CHECK(before.words == after.words);
  SLUICE_CHECK(before.comments == after.comments);
  const Formatted twice = reformat(once.text);
  SLUICE_CHECK(twice.diagnostics.empty() && twice.text == once.text);
  if (!compiled.module) return;
  Compiled again = compile(once.text);
  SLUICE_CHECK(again.module != nullptr);
  again.module->lines = compiled.module->lines;
  SLUICE_CHECK(*encode(*again.module) == *encode(*compiled.module));
}

}  // namespace
}  // namespace sluice::vm

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sluice::vm;
  const std::string_view source(reinterpret_cast<const char*>(data), size);
  const Compiled compiled = compile(source);
  bool wrong = false;
  std::uint32_t line = 0;
  for (const Diagnostic& d : compiled.diagnostics) {
    wrong = wrong || d.kind == Diagnostic::Kind::error;
    SLUICE_CHECK(d.line >= line && d.column >= 1 && d.length >= 1 && !d.message.empty());
    SLUICE_CHECK(!d.message.starts_with("the compiler made"));
    line = d.line;
    SLUICE_CHECK(!render("m.aup", source, d).empty());
  }
  SLUICE_CHECK(wrong == (compiled.module == nullptr));
  check_layout(source, compiled);
  if (!compiled.module) return 0;
  const auto file = encode(*compiled.module);
  SLUICE_CHECK(file.has_value());
  const auto loaded = load(*file);
  SLUICE_CHECK(loaded.has_value());
  SLUICE_CHECK(*encode(**loaded) == *file);
  play_module(**loaded);
  return 0;
}
