// Arbitrary text through the compiler: it says what is wrong or makes a module that loads.
//
// With libFuzzer (option `fuzz`) inputs are invented; as a plain program it runs the files of the folders it
// is given.
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

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
  return 0;
}

#ifdef SLUICE_CORPUS_MAIN
int main(int argc, char** argv) {
  int files = 0;
  for (int i = 1; i < argc; ++i)
    for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[i])) {
      if (!entry.is_regular_file()) continue;
      std::ifstream in(entry.path(), std::ios::binary);
      std::ostringstream bytes;
      bytes << in.rdbuf();
      const std::string text = bytes.str();
      LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
      // A cut file is where a parser runs out of tokens in every place.
      for (std::size_t n = 0; n < text.size(); n += 1 + text.size() / 64)
        LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(text.data()), n);
      ++files;
    }
  std::cout << files << " files\n";
  return files == 0 ? 1 : 0;
}
#endif
