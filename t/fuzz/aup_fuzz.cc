// Arbitrary text through the compiler: it says what is wrong or makes a module that loads and behaves.
#include <cstdint>

#include "t/fuzz/module_play.h"
#include "vm/base/check.h"
#include "vm/compiler.h"
#include "vm/format.h"

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
  if (!compiled.module) return 0;
  const auto file = encode(*compiled.module);
  SLUICE_CHECK(file.has_value());
  const auto loaded = load(*file);
  SLUICE_CHECK(loaded.has_value());
  SLUICE_CHECK(*encode(**loaded) == *file);
  play_module(**loaded);
  return 0;
}
